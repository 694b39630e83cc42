/**
 * Features of mixed tables as people write them: amounts whose logarithm they are, dates, shares.
 */

import { formatNumber } from "./elements.js";

const DAY_LENGTH = 86400000;

/** The amount that a feature stands for. */
export function amountOf(form, value) {
  if (form?.form === "log") return Math.exp(value);
  if (form?.form === "count") return Math.max(0, Math.expm1(value));
  if (form?.form === "robust") return form.middle + form.reach * Math.sinh(value);
  return value;
}

/** Days since 1970 as a date, with the time unless dates have none. */
export function dateText(days, isDays) {
  const found = new Date(Math.round(days * (isDays ? 1 : 1440)) * (isDays ? DAY_LENGTH : DAY_LENGTH / 1440));
  if (Number.isNaN(found.getTime())) return "\u2013";
  const text = found.toISOString();
  return isDays ? text.slice(0, 10) : text.slice(0, 16).replace("T", " ");
}

/** The value of a feature as text. */
export function featureText(header, j, value, digits = 4) {
  const form = header.forms?.[j];
  if (!form || Number.isNaN(value)) return formatNumber(value, digits);
  if (form.form === "date") return dateText(value, form.days);
  const amount = amountOf(form, value);
  return form.whole && Math.abs(amount) < 1e15
    ? Math.round(amount).toLocaleString("en-US")
    : formatNumber(amount, digits);
}

/** How likely each level of a column is, given the row of features. */
export function levelShares(column, values) {
  const clipped = Array.from({ length: column.size }, (_, k) =>
    Math.max(0, Math.min(1, values[column.at + k])),
  );
  let shares;
  if (column.kind === "ordered") {
    let above = 1;
    shares = column.levels.map((_, k) => {
      const next = k < column.size ? Math.min(above, clipped[k]) : 0;
      const share = above - next;
      above = next;
      return share;
    });
  } else {
    shares = column.groups.map((group, k) => clipped[group] * column.shares[k]);
  }
  const total = shares.reduce((sum, share) => sum + share, 0);
  return shares.map((share) => (total > 0 ? share / total : 1 / shares.length));
}

/** Cells of a row as its table has them: a level, a date or a number for each column, "" where one is missing. */
export function columnCells(header, values) {
  return header.columns.map((column) => {
    const value = values[column.at];
    if (Number.isNaN(value)) return "";
    if (column.levels) {
      const shares = levelShares(column, values);
      return column.levels[shares.indexOf(Math.max(...shares))];
    }
    const form = header.forms[column.at];
    if (form.form === "date") return dateText(value, form.days);
    const amount = amountOf(form, value);
    return String(form.whole ? Math.round(amount) : Number(amount.toPrecision(9)));
  });
}

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

/** What stands for an amount: the opposite of `amountOf`. NaN where its scale has no value for it. */
export function scaledAmount(form, amount) {
  if (form?.form === "log") return amount > 0 ? Math.log(amount) : NaN;
  if (form?.form === "count") return amount >= 0 ? Math.log1p(amount) : NaN;
  if (form?.form === "robust") return Math.asinh((amount - form.middle) / form.reach);
  return amount;
}

/** Days since 1970 as a date, with the time unless dates have none. */
export function dateText(days, isDays) {
  const found = new Date(Math.round(days * (isDays ? 1 : 1440)) * (isDays ? DAY_LENGTH : DAY_LENGTH / 1440));
  if (Number.isNaN(found.getTime())) return "\u2013";
  const text = found.toISOString();
  return isDays ? text.slice(0, 10) : text.slice(0, 16).replace("T", " ");
}

const MICROSECONDS_OF_DAY = 86400e6;

/** Days since 1970 as a field of a CSV file, as fine as their column is: `unit` in seconds, 0 for anything. */
function dateCell(days, unit) {
  if (Number.isNaN(days)) return "";
  const step = unit > 0 ? unit * 1e6 : 1;
  const all = (Math.round((days * MICROSECONDS_OF_DAY) / step) * step) / MICROSECONDS_OF_DAY;
  const day = Math.floor(all);
  const rest = Math.round((all - day) * MICROSECONDS_OF_DAY);
  const text = new Date(day * DAY_LENGTH + Math.floor(rest / 1000)).toISOString();
  if (unit >= 86400) return text.slice(0, 10);
  const clock = text.slice(0, 19).replace("T", " ");
  if (unit >= 60) return clock.slice(0, 16);
  return unit >= 1 ? clock : `${clock}.${String(rest % 1e6).padStart(6, "0")}`;
}

/** What is smaller than this share of a feature's largest value is rounding, and written as 0. */
const NOTHING_OF_RANGE = 1e-9;

/** The value of a feature as text. */
export function featureText(header, j, value, digits = 4) {
  const form = header.forms?.[j];
  if (Number.isNaN(value)) return formatNumber(value);
  const largest = Math.max(Math.abs(header.feature_low[j]), Math.abs(header.feature_high[j]));
  if (!form) return formatNumber(Math.abs(value) < NOTHING_OF_RANGE * largest ? 0 : value, digits);
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

/** What the level of a row of the table is called: rare levels that are joined cannot be told apart in it. */
export function levelOfRow(column, values) {
  const shares = levelShares(column, values);
  const own = shares.indexOf(Math.max(...shares));
  const joined = column.groups.filter((group) => group === column.groups[own]).length;
  const isJoined = column.kind !== "ordered" && joined > 1;
  return isJoined ? `one of ${joined} rare levels` : column.levels[own];
}

/** Less than this share of what a code leaves open is 0. */
const ZERO_OF_REACH = 1e-6;

/** As many significant digits as a step of a code leaves certain. */
function certainDigits(value, step) {
  const digits = Math.ceil(Math.log10(Math.abs(value) / step + 1));
  return Math.max(1, Math.min(9, digits));
}

/**
 * The number that a feature stands for, as a field of a CSV file: in a row of the table (with `step`, that of its
 * codes) without digits that only rounding made.
 */
export function numberCell(form, value, step = 0) {
  if (Number.isNaN(value)) return "";
  const amount = amountOf(form, value);
  if (form?.whole) return String(Math.round(amount));
  // How far the next code is off, in the unit of the amount.
  const reach = step > 0 ? Math.abs(amountOf(form, value + step) - amount) / 2 : 0;
  // What a code leaves of 0 by rounding.
  if (Math.abs(amount) < ZERO_OF_REACH * reach) return "0";
  if (form?.decimals !== undefined && step > 0 && reach < 10 ** -form.decimals) return amount.toFixed(form.decimals);
  return String(Number(amount.toPrecision(reach > 0 ? certainDigits(amount, reach) : 9)));
}

/** A value of the table that is kept beside the codes: an amount, or days where `form` is a date. */
export function ownCell(form, value) {
  if (form?.form === "date") return dateCell(value, form.unit);
  return Number.isNaN(value) ? "" : String(value);
}

/** The label of a row as a field of a CSV file. */
export function labelCell(label, i) {
  if (label.kind === "category") return label.values[label.codes[i]] ?? "";
  const number = label.numbers[i];
  if (label.kind === "date") return dateCell(number, label.unit);
  if (Number.isNaN(number)) return "";
  // Single precision holds numbers of so few digits as they are.
  return String(label.numbers instanceof Float32Array ? Number(number.toPrecision(7)) : number);
}

/**
 * Cells of a row as its table has them: a level, a date or a number for each column, "" where one is missing.
 * @param {(j: number) => number|undefined} own the value of the table of a column, where it is kept
 */
export function columnCells(header, values, steps = null, own = () => undefined) {
  return header.columns.map((column) => {
    const value = values[column.at];
    if (Number.isNaN(value)) return "";
    const kept = own(column.at);
    if (kept !== undefined) return ownCell(header.forms[column.at], kept);
    if (column.levels && steps) return levelOfRow(column, values);
    if (column.levels) {
      const shares = levelShares(column, values);
      return column.levels[shares.indexOf(Math.max(...shares))];
    }
    const form = header.forms[column.at];
    if (form.form === "date") return dateCell(value, form.unit);
    return numberCell(form, value, steps?.[column.at]);
  });
}

/** The column of each feature, -1 where a feature means nothing alone: the circle of the season. */
export function columnOfFeature(header) {
  const columnOf = new Int32Array(header.features.length).fill(-1);
  header.columns.forEach((column, k) => {
    const size = column.levels ? column.size : 1;
    columnOf.fill(k, column.at, column.at + size);
  });
  return columnOf;
}

/** The column of levels that a feature belongs to, if any. */
function levelColumn(header, j) {
  return header.columns?.find((column) => column.levels && j >= column.at && j < column.at + column.size) ?? null;
}

/** What the map is coloured by to show a feature. */
export function featureKey(header, j) {
  const column = levelColumn(header, j);
  return column ? `label:${column.name}` : `feature:${j}`;
}

/** What a feature is called where it stands alone. */
export function standingName(header, j) {
  const column = levelColumn(header, j);
  return column ? header.features[j] : (header.forms?.[j]?.title ?? header.features[j]);
}

/** The value of any feature: shares of levels as percentages, others as they are. */
export function cellText(header, j, value, digits) {
  if (!levelColumn(header, j) || Number.isNaN(value)) return featureText(header, j, value, digits);
  return `${Math.round(100 * value)}\u202f%`;
}

/** Its value where what stands out is listed, without digits that say nothing. */
export function standingText(header, j, value) {
  if (Number.isNaN(value)) return "unknown";
  const form = header.forms?.[j];
  if (levelColumn(header, j) || form?.form === "date") return cellText(header, j, value, 3);
  const isPlain = !form || form.form === "number";
  // Means of whole numbers are not whole.
  return isPlain ? roundedTo(value, header.usual.deviation[j]) : formatNumber(amountOf(form, value), 3);
}

/** "± 3": how far rows lie from a value, in the unit of the amount that it stands for; "" if that is not known. */
export function spreadText(header, j, value, spread) {
  if (!(spread > 0)) return "";
  const form = header.forms?.[j];
  if (levelColumn(header, j)) return `\u00b1 ${cellText(header, j, spread)}`;
  if (form?.form === "date") return `\u00b1 ${formatNumber(spread, 2)} days`;
  return `\u00b1 ${formatNumber((amountOf(form, value + spread) - amountOf(form, value - spread)) / 2, 2)}`;
}

/** A value with digits down to a hundredth of its deviation: what is smaller says nothing. */
function roundedTo(value, deviation) {
  const decimals = deviation > 0 ? 2 - Math.ceil(Math.log10(deviation)) : 0;
  const isPlain = decimals >= 0 && decimals <= 6;
  return formatNumber(isPlain ? Number(value.toFixed(decimals)) : value, 3);
}

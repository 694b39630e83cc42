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

const MICROSECONDS_OF_DAY = 86400e6;

/** From so many days on there are no dates. */
const MOST_DAYS = 1e8;

/** Days since 1970 as a field of a CSV file, as fine as their column is: `unit` in seconds, 0 for anything. */
function dateCell(days, unit) {
  if (!(Math.abs(days) < MOST_DAYS)) return "";
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

/** The same to look at: nobody reads less than seconds. */
export function dateText(days, unit) {
  return dateCell(days, unit || 1) || "\u2013";
}

/** What is smaller than this share of a feature's largest value is rounding, and written as 0. */
const NOTHING_OF_RANGE = 1e-9;

/** Of a feature that never changes. */
const CONSTANT_DIGITS = 6;

/** What is left of a double after some steps of arithmetic. */
const MOST_DIGITS = 12;

/** The power of ten of the first digit. */
function exponentOf(number) {
  return Math.floor(Math.log10(number));
}

/** A number with so many significant digits, and those that tell apart thousandths of the range that it is from. */
export function rangeText(value, low, high, digits = 3) {
  const ofRange = exponentOf(Math.abs(value)) - exponentOf((high - low) / 1000) + 1;
  const wanted = high > low ? ofRange : CONSTANT_DIGITS;
  return formatNumber(value, Math.min(MOST_DIGITS, Math.max(digits, wanted)));
}

/** The value of a feature as text: `digits` of it at least, where it is no whole number. */
export function featureText(header, j, value, digits = 4) {
  const form = header.forms?.[j];
  if (Number.isNaN(value)) return formatNumber(value);
  if (form?.form === "date") return dateText(value, form.unit);
  const [low, high] = [header.feature_low[j], header.feature_high[j]];
  const largest = Math.max(Math.abs(low), Math.abs(high));
  const isPlain = !form || form.form === "number";
  const amount = isPlain && Math.abs(value) < NOTHING_OF_RANGE * largest ? 0 : amountOf(form, value);
  return form?.whole && Math.abs(amount) < 1e15
    ? Math.round(amount).toLocaleString("en-US", { useGrouping: !areYears(header, j) })
    : rangeText(amount, amountOf(form, low), amountOf(form, high), digits);
}

/** Whether whole numbers are most likely years, which nobody writes with marks between thousands. */
function areYears(header, j) {
  const form = header.forms[j];
  return amountOf(form, header.feature_low[j]) >= 1000 && amountOf(form, header.feature_high[j]) < 3000;
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

/** The scales on which a mean, taken back, is no mean of amounts. */
const BENT_SCALES = new Set(["log", "count", "robust"]);

/** Whether a mean of the feature is that of a scale of its own, not of the amounts. */
export function hasBentScale(header, j) {
  return BENT_SCALES.has(header.forms?.[j]?.form);
}

/**
 * A value where what stands out is listed, with the digits that tell it from `other` beside it and from values
 * within its `spread`.
 */
export function standingText(header, j, value, { other = NaN, spread = NaN } = {}) {
  if (Number.isNaN(value)) return "unknown";
  const form = header.forms?.[j];
  if (levelColumn(header, j) || form?.form === "date") return cellText(header, j, value, 3);
  const amount = amountOf(form, value);
  const off = Math.abs(amount - amountOf(form, other));
  // Differences of less than a hundredth of a deviation say nothing.
  const least = 2 - exponentOf(reachOf(form, value, header.usual?.deviation[j]));
  const ofSpread = 1 - exponentOf(reachOf(form, value, spread));
  if (!Number.isFinite(ofSpread)) return decimalText(amount, least);
  const ofDifference = off > 0 ? Math.min(least, -exponentOf(off)) : -Infinity;
  // On a scale of its own an amount may be far smaller than its spread.
  const ofAmount = hasBentScale(header, j) ? 2 - exponentOf(Math.max(Math.abs(amount), form.form === "log" ? 0 : 1)) : -Infinity;
  return decimalText(amount, Math.max(ofSpread, ofDifference, ofAmount));
}

/** A value of the generated row beside its spread. */
export function generatedText(header, j, value, spread) {
  const isRounded = levelColumn(header, j) || header.forms?.[j]?.whole;
  return isRounded ? cellText(header, j, value, 3) : standingText(header, j, value, { spread });
}

/** How far a spread around a value reaches, in the unit of the amount that it stands for. */
function reachOf(form, value, spread) {
  return (amountOf(form, value + spread) - amountOf(form, value - spread)) / 2;
}

/** An amount with so many decimals, fewer than none where it is large. */
function decimalText(amount, decimals) {
  if (!Number.isFinite(decimals)) return formatNumber(amount, CONSTANT_DIGITS);
  const scale = 10 ** decimals;
  return formatNumber(Math.round(amount * scale) / scale, MOST_DIGITS);
}

const UNITS_OF_DAY = [["day", 1], ["hour", 24], ["minute", 1440]];

/** A time of some days in the largest unit of which it has one. */
function durationText(days) {
  const [unit, parts] = UNITS_OF_DAY.find(([, count]) => days * count >= 1) ?? UNITS_OF_DAY.at(-1);
  const text = formatNumber(days * parts, 2);
  return `${text} ${unit}${text === "1" ? "" : "s"}`;
}

/** "± 3": how far rows lie from a value, in the unit of the amount that it stands for; "" if that is not known. */
export function spreadText(header, j, value, spread) {
  if (!(spread > 0)) return "";
  const form = header.forms?.[j];
  if (levelColumn(header, j)) return `\u00b1 ${cellText(header, j, spread)}`;
  return `\u00b1 ${form?.form === "date" ? durationText(spread) : formatNumber(reachOf(form, value, spread), 2)}`;
}

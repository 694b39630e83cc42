/**
 * What is shown beside the generated row: the nearest real row, one that was asked for, a pasted one,
 * or the mean of a selection.
 */

import { countOf, formatNumber } from "./elements.js";
import { columnOfFeature, standingName, standingText } from "./feature_text.js";
import { labelValues, rowName } from "./row_names.js";
import { meanRow } from "./selection_view.js";

/**
 * @typedef {{values: ArrayLike<number>, title: string, detail?: string, role?: string}} Companion
 */

/** A real row, or null if the page does not hold its data. @returns {Companion|null} */
export function rowCompanion(atlas, row, isNearest) {
  const values = atlas.rowData(row);
  if (!values) return null;
  const name = rowName(atlas, row);
  const labels = labelValues(atlas, row);
  const role = isNearest ? "nearest" : "chosen";
  const detail = [role, labels].filter(Boolean).join(" \u00b7 ");
  return { values, title: name, detail, role };
}

/** @returns {Companion|null} */
export function meanCompanion(atlas, rows) {
  const mean = meanRow(atlas, rows);
  if (!mean) return null;
  const of = mean.count < rows.length ? `of ${mean.count.toLocaleString("en-US")} that have data here` : `of ${countOf(rows.length, "selected row")}`;
  return { values: mean.values, title: "Mean", detail: of };
}

/** @returns {Companion} */
export function pastedCompanion(header, values) {
  const cells = header.columns?.map(({ at }) => values[at]) ?? Array.from(values);
  const missing = cells.filter(Number.isNaN).length;
  return { values, title: "Pasted", detail: missing ? `${countOf(missing, "value")} missing` : "" };
}

/** Less than this share of the range of features is what arithmetic leaves of 0. */
const LEAST_ERROR = 1e-6;

function isRounding(header, error) {
  if (header.feature_spread) return error < LEAST_ERROR;
  const squares = header.feature_high.reduce((sum, high, j) => sum + (high - header.feature_low[j]) ** 2, 0);
  return error < LEAST_ERROR * Math.sqrt(squares / header.features.length);
}

/** How far a pasted row is from what the model makes of it. */
export function pastedNotice(header, values, error, image) {
  const observed = values.reduce((count, value) => count + !Number.isNaN(value), 0);
  const each = error / Math.sqrt(observed);
  const [whole, part] = isRounding(header, each) ? ["0", "0"] : [error, each].map((value) => formatNumber(value, 3));
  const units = header.feature_spread ? ", in units of each feature's spread" : "";
  const likely = header.left_open ? ` ${howUsual(header, values, image)}` : "";
  return `Pasted row: error ${whole}, that is ${part} a feature (root mean square${units}).${likely}`;
}

/** What was pasted and is not used: cells of no column, and cells that the model knows nothing of. */
export function leftOut(skipped, unknown) {
  const missing = unknown.length ? ` Counted as missing: ${unknown.join("; ")}.` : "";
  return missing + (skipped.length ? ` Skipped: ${skipped.join(", ")}.` : "");
}

/** Features that a notice names, and from how many usual deviations on one stands out. */
const MOST_NAMED = 3;
const STANDS_OUT = 2;

/** How many of the model's rows lie as far from the map as a row, and which features do most. */
export function howUsual(header, values, image) {
  const { features, rows } = header.left_open;
  const off = Array.from(values, (value, j) => (value - image[j]) / (features[j] || 1));
  const known = off.map((_, j) => j).filter((j) => !Number.isNaN(off[j]));
  const size = Math.sqrt(known.reduce((sum, j) => sum + off[j] ** 2, 0) / known.length);
  const nearer = rows.filter((one) => one < size).length - 1;
  const share = Math.max(0, Math.min(100, 100 - nearer));
  const often =
    share < 1 ? "Farther from the map than any row of the model." : `${share} % of the model's rows lie as far from the map.`;
  const named = oneOfEach(
    header,
    known
      .filter((j) => Math.abs(off[j]) >= STANDS_OUT)
      .sort((a, b) => Math.abs(off[b]) - Math.abs(off[a])),
  )
    .slice(0, MOST_NAMED)
    .map((j) => `${standingName(header, j)} (${formatNumber(Math.abs(off[j]), 2)} deviations ${off[j] > 0 ? "above" : "below"} ${standingText(header, j, image[j], { other: values[j] })})`);
  return named.length ? `${often} What stands out: ${named.join("; ")}.` : often;
}

/** Of features in their order the first of each column; of a table of numbers all. */
function oneOfEach(header, features) {
  if (!header.columns) return features;
  const columnOf = columnOfFeature(header);
  const seen = new Set([-1]);
  return features.filter((j) => !seen.has(columnOf[j]) && seen.add(columnOf[j]));
}

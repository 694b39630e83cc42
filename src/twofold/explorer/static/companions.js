/**
 * What is shown beside the generated row: the nearest real row, one that was asked for, a pasted one,
 * or the mean of a selection.
 */

import { countOf, formatNumber } from "./elements.js";
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
export function pastedCompanion(values) {
  const missing = values.reduce((count, value) => count + Number.isNaN(value), 0);
  return { values, title: "Pasted", detail: missing ? `${countOf(missing, "value")} missing` : "" };
}

/** How far a pasted row is from what the model makes of it. */
export function pastedNotice(header, values, error, skipped) {
  const observed = values.reduce((count, value) => count + !Number.isNaN(value), 0);
  const each = formatNumber(error / Math.sqrt(observed), 3);
  const units = header.feature_spread ? ", in units of each feature's spread" : "";
  const left = skipped.length ? ` Skipped: ${skipped.join(", ")}.` : "";
  return `Pasted row: error ${formatNumber(error, 3)}, that is ${each} a feature (root mean square${units}).${left}`;
}

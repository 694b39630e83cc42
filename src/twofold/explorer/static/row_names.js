/**
 * What rows are called and labelled.
 */

import { formatNumber } from "./elements.js";
import { dateText } from "./feature_text.js";

/** The name of row i; without names, its number counted from 1. */
export function rowName(atlas, i) {
  return atlas.names?.[i] ?? `row ${i + 1}`;
}

/** The label `column` of row i in words, or null where it has none. */
export function labelText(atlas, column, i) {
  const label = atlas.labels[column];
  if (label.kind !== "category") {
    const number = label.numbers[i];
    if (Number.isNaN(number)) return null;
    return label.kind === "date" ? dateText(number, label.days) : formatNumber(number);
  }
  return label.values[label.codes[i]] ?? null;
}

/** "class 3, age 41": all labels of row i. */
export function labelsText(atlas, i) {
  const parts = [];
  for (const column of Object.keys(atlas.labels)) {
    const text = labelText(atlas, column, i);
    if (text !== null) parts.push(`${column} ${text}`);
  }
  return parts.join(", ");
}

/** "row 12, class 3" */
export function rowWords(atlas, i) {
  return [rowName(atlas, i), labelsText(atlas, i)].filter(Boolean).join(", ");
}

/** "3 · 41": the labels of row i without their columns, where room is short. */
export function labelValues(atlas, i) {
  return Object.keys(atlas.labels)
    .map((column) => labelText(atlas, column, i))
    .filter((text) => text !== null)
    .join(" \u00b7 ");
}

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
    return label.kind === "date" ? dateText(number, label.unit) : formatNumber(number);
  }
  return label.values[label.codes[i]] ?? null;
}

/** More labels than this are too many for a line; a survey has one for each question. */
export const MOST_LABELS = 4;

/** The first labels of row i that it has, and "…" if there are more. */
function firstLabels(atlas, i, write) {
  const parts = [];
  for (const column of Object.keys(atlas.labels)) {
    const text = labelText(atlas, column, i);
    if (text === null) continue;
    if (parts.push(write(column, text)) > MOST_LABELS) return [...parts.slice(0, MOST_LABELS), "\u2026"];
  }
  return parts;
}

/** "class 3, age 41": the labels of row i. */
export function labelsText(atlas, i) {
  return firstLabels(atlas, i, (column, text) => `${column} ${text}`).join(", ");
}

/** "row 12, class 3" */
export function rowWords(atlas, i) {
  return [rowName(atlas, i), labelsText(atlas, i)].filter(Boolean).join(", ");
}

/** "3 · 41": the labels of row i without their columns, where room is short. */
export function labelValues(atlas, i) {
  return firstLabels(atlas, i, (_, text) => text).join(" \u00b7 ");
}

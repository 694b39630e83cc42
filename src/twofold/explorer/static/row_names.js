/**
 * What rows are called and labelled, and finding them by that.
 */

import { formatNumber } from "./elements.js";

/** The name of row i; without names, its number counted from 1. */
export function rowName(atlas, i) {
  return atlas.header.rows.names?.[i] ?? `row ${i + 1}`;
}

/** The label `column` of row i in words, or null where it has none. */
export function labelText(atlas, column, i) {
  const label = atlas.labels[column];
  if (label.kind === "number") {
    return Number.isNaN(label.numbers[i]) ? null : formatNumber(label.numbers[i]);
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

/**
 * Rows whose name or category label fits the text: equal first, then names that begin with it, then the rest.
 * @returns {number[]} at most `most` rows
 */
export function findRows(atlas, text, most = 12) {
  const wanted = text.toLowerCase();
  if (!wanted) return [];
  const tiers = [[], [], [], []];
  const categories = Object.values(atlas.labels)
    .filter((label) => label.kind === "category")
    .map((label) => ({
      codes: label.codes,
      fits: label.values.map((value) => nameFit(value.toLowerCase(), wanted)),
    }));
  for (let i = 0; i < atlas.n; i++) {
    let tier = nameFit(rowName(atlas, i).toLowerCase(), wanted);
    for (const { codes, fits } of categories) {
      // A label is shared by many rows, so it ranks behind a name of the same fit.
      tier = Math.min(tier, (fits[codes[i]] ?? 4) + 1);
    }
    if (tier < 4 && tiers[tier].length < most) tiers[tier].push(i);
    if (tiers[0].length >= most) break;
  }
  return tiers.flat().slice(0, most);
}

/** 0 equal (or the number of "row 12"), 1 begins with, 2 contains, 4 does not fit. */
function nameFit(name, wanted) {
  if (name === wanted || name === `row ${wanted}`) return 0;
  const at = name.indexOf(wanted);
  if (at === 0) return 1;
  return at > 0 ? 2 : 4;
}

/**
 * What a map can be coloured and filtered by, and which rows pass all filters.
 */

import { labelText } from "./row_names.js";

/**
 * A quantity that every row has: a label column, a feature, density or magnification.
 * @typedef {{key: string, title: string, kind: "category"|"number", group: string, log?: boolean}} Quantity
 */

/** All quantities of an atlas; values are fetched when needed. @returns {Quantity[]} */
export function listQuantities(atlas) {
  const quantities = Object.entries(atlas.labels).map(([name, label]) => ({
    key: `label:${name}`,
    title: name,
    kind: label.kind,
    group: "Labels",
  }));
  if (atlas.density) quantities.push({ key: "density", title: "Density", kind: "number", group: "The map" });
  if (atlas.magnification) {
    quantities.push({
      key: "magnification",
      title: "Magnification",
      kind: "number",
      group: "The map",
      log: true,
    });
  }
  atlas.header.features.forEach((name, j) => {
    const form = atlas.header.forms?.[j];
    if (form?.form === "hidden") return;
    quantities.push({ key: `feature:${j}`, title: form?.title ?? name, kind: "number", group: "Features", j });
  });
  return quantities;
}

/** The numbers of a quantity for all rows. @returns {Float32Array} */
export function quantityValues(atlas, quantity) {
  if (quantity.key === "density") return atlas.density;
  if (quantity.key === "magnification") return atlas.magnification;
  if (quantity.key.startsWith("feature:")) return atlas.feature(Number(quantity.key.slice(8)));
  return atlas.labels[quantity.key.slice(6)].numbers;
}

/** Lowest and highest number present. */
export function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (let i = 0; i < values.length; i++) {
    if (values[i] < low) low = values[i];
    if (values[i] > high) high = values[i];
  }
  return low <= high ? [low, high] : [0, 1];
}

/** How many rows have each category; the last count is of rows without one. */
export function categoryCounts(label) {
  const counts = new Uint32Array(label.values.length + 1);
  for (let i = 0; i < label.codes.length; i++) counts[Math.min(label.codes[i], label.values.length)] += 1;
  return counts;
}

/** Filters by quantity; a row is shown if it passes them all. */
export class RowFilters extends EventTarget {
  constructor(atlas) {
    super();
    this.atlas = atlas;
    /** @type {Map<string, {quantity: Quantity, chosen?: Set<number>, range?: [number, number], values?: Float32Array}>} */
    this.active = new Map();
  }

  get(key) {
    return this.active.get(key) ?? null;
  }

  /** Show only these category codes; null or empty shows all. */
  setCategories(quantity, chosen) {
    if (!chosen || chosen.size === 0) this.active.delete(quantity.key);
    else this.active.set(quantity.key, { quantity, chosen });
    this.changed();
  }

  /**
   * First click on a category shows it alone, further clicks add and remove.
   * @param {Quantity} quantity @param {number} code
   */
  toggleCategory(quantity, code) {
    const chosen = new Set(this.get(quantity.key)?.chosen ?? []);
    if (!chosen.delete(code)) chosen.add(code);
    this.setCategories(quantity, chosen);
  }

  /** Show only rows within the range; null takes the filter away. */
  setRange(quantity, range) {
    if (!range) {
      this.active.delete(quantity.key);
    } else {
      const values = this.get(quantity.key)?.values ?? quantityValues(this.atlas, quantity);
      this.active.set(quantity.key, { quantity, range, values });
    }
    this.changed();
  }

  remove(key) {
    this.active.delete(key);
    this.changed();
  }

  clear() {
    this.active.clear();
    this.changed();
  }

  changed() {
    this.dispatchEvent(new CustomEvent("change"));
  }

  /** @returns {Uint8Array|null} 1 for rows that pass; null when nothing is filtered */
  mask() {
    if (!this.active.size) return null;
    const mask = new Uint8Array(this.atlas.n).fill(1);
    for (const { quantity, chosen, range, values } of this.active.values()) {
      if (chosen) {
        const { codes } = this.atlas.labels[quantity.key.slice(6)];
        for (let i = 0; i < mask.length; i++) if (!chosen.has(codes[i])) mask[i] = 0;
      } else {
        // Written so that missing values do not pass.
        for (let i = 0; i < mask.length; i++)
          if (!(values[i] >= range[0] && values[i] <= range[1])) mask[i] = 0;
      }
    }
    return mask;
  }
}

/** "3: 41, 5: 12": the commonest labels among some rows, for each category column. */
export function commonLabels(atlas, rows, most = 4) {
  const lines = [];
  for (const [column, label] of Object.entries(atlas.labels)) {
    if (label.kind !== "category") continue;
    const counts = new Map();
    for (const i of rows) {
      const text = labelText(atlas, column, i) ?? "none";
      counts.set(text, (counts.get(text) ?? 0) + 1);
    }
    const top = [...counts].sort((a, b) => b[1] - a[1]);
    const words = top.slice(0, most).map(([text, count]) => `${text} (${count})`);
    if (top.length > most) words.push("others");
    lines.push(`${column}: ${words.join(", ")}`);
  }
  return lines;
}

/**
 * What a map can be coloured and filtered by, and which rows pass all filters.
 */

import { extent } from "./extent.js";
import { dateText, featureText, rangeText } from "./feature_text.js";
import { MOST_LABELS, labelText } from "./row_names.js";

/**
 * A quantity that every row has: a label column, a feature, density or magnification.
 * @typedef {{key: string, title: string, kind: "category"|"number", group: string, log?: boolean, j?: number}} Quantity
 */

/** A column of labels as a quantity; dates are numbers of days. @returns {Quantity} */
export function labelQuantity(name, label) {
  const kind = label.kind === "category" ? "category" : "number";
  return { key: `label:${name}`, title: name, kind, group: "Labels" };
}

/** All quantities of an atlas; values are fetched when needed. @returns {Quantity[]} */
export function listQuantities(atlas) {
  const quantities = Object.entries(atlas.labels).map(([name, label]) => labelQuantity(name, label));
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

/** The numbers of a quantity for all rows. @returns {Float32Array|Float64Array} */
export function quantityValues(atlas, quantity) {
  if (quantity.key === "density") return atlas.density;
  if (quantity.key === "magnification") return atlas.magnification;
  if (quantity.key.startsWith("feature:")) return atlas.feature(Number(quantity.key.slice(8)));
  return atlas.labels[quantity.key.slice(6)].numbers;
}

/** How numbers of a quantity are written. @returns {(value: number) => string} */
export function quantityFormat(atlas, quantity) {
  if (quantity.j !== undefined) return (value) => featureText(atlas.header, quantity.j, value, 3);
  const label = atlas.labels[quantity.key.slice(6)];
  if (label?.kind === "date") return (value) => dateText(value, label.unit);
  const [low, high] = extent(quantityValues(atlas, quantity));
  return (value) => rangeText(value, low, high);
}

/** The category of row i; of a row without one as many as there are. */
function categoryOf({ codes, values }, i) {
  return Math.min(codes[i], values.length);
}

/** What a category is called, and what rows without one have. */
export function categoryName(label, code) {
  return label.values[code] ?? (label.isMade ? "none" : "missing");
}

/** How many rows have each category; the last count is of rows without one. */
export function categoryCounts(label, mask = null) {
  const counts = new Uint32Array(label.values.length + 1);
  for (let i = 0; i < label.codes.length; i++) if (!mask || mask[i]) counts[categoryOf(label, i)] += 1;
  return counts;
}

/** Names of categories in the address; that of rows without one is empty, which no category's is. */
function namesInAddress(label) {
  return [...label.values, ""];
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

  /**
   * @param {string|null} except the key of a quantity whose own filter does not count
   * @returns {Uint8Array|null} 1 for rows that pass; null when nothing is filtered
   */
  mask(except = null) {
    const others = [...this.active.values()].filter(({ quantity }) => quantity.key !== except);
    if (!others.length) return null;
    const mask = new Uint8Array(this.atlas.n).fill(1);
    for (const { quantity, chosen, range, values } of others) {
      if (chosen) {
        const label = this.atlas.labels[quantity.key.slice(6)];
        for (let i = 0; i < mask.length; i++) if (!chosen.has(categoryOf(label, i))) mask[i] = 0;
      } else {
        // Written so that missing values do not pass.
        for (let i = 0; i < mask.length; i++)
          if (!(values[i] >= range[0] && values[i] <= range[1])) mask[i] = 0;
      }
    }
    return mask;
  }

  /** What passes, by key, for the address: names of categories, or a range. */
  get state() {
    const state = {};
    for (const [key, { quantity, chosen, range }] of this.active) {
      const names = quantity.kind === "category" ? namesInAddress(this.atlas.labels[key.slice(6)]) : null;
      state[key] = names ? [...chosen].sort((a, b) => a - b).map((code) => names[code]) : range;
    }
    return state;
  }

  /** Set all filters at once from such a state; what is not known any more is left out. */
  restore(state, quantities) {
    this.active.clear();
    for (const [key, passing] of Object.entries(state)) {
      const quantity = quantities.find((one) => one.key === key);
      if (!quantity) continue;
      if (quantity.kind === "category") {
        const names = namesInAddress(this.atlas.labels[key.slice(6)]);
        const chosen = new Set(passing.map((name) => names.indexOf(String(name))).filter((code) => code >= 0));
        if (chosen.size) this.active.set(key, { quantity, chosen });
      } else if (typeof passing[0] === "number") {
        this.active.set(key, { quantity, range: passing, values: quantityValues(this.atlas, quantity) });
      }
    }
    this.changed();
  }
}

/** "3: 41, 5: 12": the commonest labels among some rows, for each category column. */
export function commonLabels(atlas, rows, most = 4) {
  const lines = [];
  for (const [column, label] of Object.entries(atlas.labels)) {
    if (label.kind !== "category") continue;
    // What tells the rows apart is listed below anyway.
    if (lines.length === MOST_LABELS) return [...lines, "\u2026"];
    const counts = new Map();
    for (const i of rows) {
      const text = labelText(atlas, column, i) ?? categoryName(label);
      counts.set(text, (counts.get(text) ?? 0) + 1);
    }
    const top = [...counts].sort((a, b) => b[1] - a[1]);
    const words = top.slice(0, most).map(([text, count]) => `${text} (${count})`);
    if (top.length > most) words.push("others");
    lines.push(`${column}: ${words.join(", ")}`);
  }
  return lines;
}

/**
 * A row of a mixed table, column by column: amounts and dates with their place in the range of the
 * rows, categories with a bar for each of the likeliest levels.
 */

import { withDates } from "./date_circles.js";
import { element } from "./elements.js";
import { featureText, levelOfRow, levelShares } from "./feature_text.js";

/** Levels with a bar; the rest share one. */
export const MOST_LEVEL_BARS = 6;

export class RowColumns {
  constructor(header) {
    this.header = header;
    this.parts = header.columns.map((column) =>
      column.levels ? this.makeLevels(column) : this.makeAmount(column),
    );
    this.element = element(
      "div",
      { class: "tf-bars-box" },
      element(
        "ul",
        { class: "tf-bars tf-columns", tabindex: 0, "aria-label": "Columns of the generated row" },
        ...this.parts.map((part) => part.item),
      ),
    );
  }

  makeAmount(column) {
    const j = column.at;
    const { feature_low: lows, feature_high: highs } = this.header;
    const range = [lows[j], highs[j]].map((value) => featureText(this.header, j, value, 3));
    const fill = element("span", { class: "tf-bar-fill" });
    const tick = element("span", { class: "tf-bar-tick", hidden: true });
    const value = element("span", { class: "tf-bar-value" });
    const other = element("span", { class: "tf-column-other" });
    const item = element(
      "li",
      { "data-column": column.name },
      element("span", { class: "tf-bar-name", title: column.name }, column.name),
      value,
      element("span", { class: "tf-bar-track", "aria-hidden": "true" }, fill, tick),
      element("span", { class: "tf-bar-range" }, `${range[0]} to ${range[1]}`, other),
    );
    const share = (number) => Math.max(0, Math.min(1, (number - lows[j]) / (highs[j] - lows[j] || 1)));
    const draw = (values, companion) => {
      value.textContent = featureText(this.header, j, values[j]);
      fill.style.transform = `scaleX(${share(values[j]).toFixed(4)})`;
      const beside = companion ? companion[j] : NaN;
      tick.hidden = Number.isNaN(beside);
      if (!tick.hidden) tick.style.left = `calc(${share(beside).toFixed(4)} * (100% - 3px))`;
      other.textContent = tick.hidden ? "" : ` \u00b7 beside: ${featureText(this.header, j, beside)}`;
    };
    return { item, draw };
  }

  makeLevels(column) {
    const value = element("span", { class: "tf-bar-value" });
    const shown = Math.min(MOST_LEVEL_BARS, column.levels.length);
    const lines = Array.from({ length: shown }, () => {
      const name = element("span", { class: "tf-level-name" });
      const fill = element("span", { class: "tf-bar-fill" });
      const text = element("span", { class: "tf-level-share" });
      const track = element("span", { class: "tf-bar-track", "aria-hidden": "true" }, fill);
      return { name, fill, text, item: element("div", { class: "tf-level" }, name, track, text) };
    });
    const other = element("span", { class: "tf-column-other" });
    const item = element(
      "li",
      { "data-column": column.name },
      element("span", { class: "tf-bar-name", title: column.name }, column.name),
      value,
      element("div", { class: "tf-levels" }, ...lines.map((line) => line.item)),
      element("span", { class: "tf-bar-range" }, other),
    );
    const draw = (values, companion) => {
      const shares = levelShares(column, values);
      const likeliest = [...shares.keys()].sort((a, b) => shares[b] - shares[a] || a - b);
      value.textContent = column.levels[likeliest[0]];
      // The likeliest levels in their own order, so that bars keep their places.
      const order = likeliest.slice(0, shown).sort((a, b) => column.order.indexOf(a) - column.order.indexOf(b));
      lines.forEach((line, k) => {
        line.name.textContent = column.levels[order[k]];
        line.name.title = column.levels[order[k]];
        line.fill.style.transform = `scaleX(${shares[order[k]].toFixed(4)})`;
        line.text.textContent = `${Math.round(100 * shares[order[k]])}\u202f%`;
      });
      const rest = likeliest.slice(shown).reduce((sum, k) => sum + shares[k], 0);
      const words = [];
      if (likeliest.length > shown)
        words.push(`${likeliest.length - shown} others ${Math.round(100 * rest)}\u202f%`);
      if (companion && !Number.isNaN(companion[column.at]))
        words.push(`beside: ${levelOfRow(column, companion)}`);
      other.textContent = words.join(" \u00b7 ");
    };
    return { item, draw };
  }

  draw(values, companion) {
    const row = withDates(this.header, values);
    for (const part of this.parts) part.draw(row, companion);
  }
}

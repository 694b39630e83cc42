/**
 * A row as named bars: each bar runs over the range of its feature in the training rows.
 */

import { element } from "./elements.js";
import { featureText } from "./feature_text.js";

/** More bars than this cannot be read at a glance. */
export const MOST_BARS = 40;

export class RowBars {
  constructor(header) {
    this.header = header;
    this.list = element("ul", { class: "tf-bars" });
    this.note = element("p", { class: "tf-note" });
    this.element = element("div", { class: "tf-bars-box" }, this.list, this.note);
    this.bars = [];
    this.show(header.features.map((_, j) => j).slice(0, MOST_BARS));
  }

  /** Which features have a bar, in this order. */
  show(features) {
    const same = features.length === this.bars.length && features.every((j, k) => this.bars[k].j === j);
    if (same) return;
    this.bars = features.map((j) => this.makeBar(j));
    this.list.replaceChildren(...this.bars.map((bar) => bar.item));
    const D = this.header.features.length;
    this.note.textContent =
      features.length < D ? `The ${features.length} of ${D} features that change most here.` : "";
    this.note.hidden = features.length >= D;
    if (this.values) this.draw(this.values, this.companion);
  }

  makeBar(j) {
    const fill = element("span", { class: "tf-bar-fill" });
    const tick = element("span", { class: "tf-bar-tick", hidden: true });
    const value = element("span", { class: "tf-bar-value" });
    const name = this.header.features[j];
    const low = this.header.feature_low[j];
    const high = this.header.feature_high[j];
    const range = [low, high].map((end) => featureText(this.header, j, end, 3)).join(" to ");
    const item = element(
      "li",
      { title: `${name}: ${range} in the rows` },
      element("span", { class: "tf-bar-name" }, name),
      value,
      element("span", { class: "tf-bar-track", "aria-hidden": "true" }, fill, tick),
      element("span", { class: "tf-bar-range" }, range),
    );
    return { j, item, fill, tick, value, low, span: high > low ? high - low : 1 };
  }

  draw(values, companion) {
    this.values = values;
    this.companion = companion;
    for (const bar of this.bars) {
      const share = Math.max(0, Math.min(1, (values[bar.j] - bar.low) / bar.span));
      bar.fill.style.transform = `scaleX(${share.toFixed(4)})`;
      bar.value.textContent = featureText(this.header, bar.j, values[bar.j]);
      const other = companion ? companion[bar.j] : NaN;
      bar.tick.hidden = Number.isNaN(other);
      if (!bar.tick.hidden) {
        const place = Math.max(0, Math.min(1, (other - bar.low) / bar.span));
        bar.tick.style.left = `calc(${place.toFixed(4)} * (100% - 3px))`;
      }
    }
  }

  /** @param {Float64Array} change how strongly each feature changes here */
  setChange(change) {
    if (change.length <= MOST_BARS) return;
    const order = Array.from(change.keys()).sort((a, b) => change[b] - change[a]);
    this.show(order.slice(0, MOST_BARS));
  }
}

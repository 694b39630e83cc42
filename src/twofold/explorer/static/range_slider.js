/**
 * A slider with two thumbs for a range of numbers: two native sliders on one track, so that keyboard
 * and screen reader work as everywhere else.
 */

import { element, formatNumber } from "./elements.js";

/** Positions of a thumb; fine enough for a track as wide as a panel. */
const SLIDER_STEPS = 400;

export class RangeSlider extends EventTarget {
  /**
   * @param {{title: string, low: number, high: number, log?: boolean, range?: [number, number]|null,
   *   background?: string|null, format?: (value: number) => string}} options
   * Fires "range" with [low, high], or null when the range is whole again.
   */
  constructor({ title, low, high, log = false, range = null, background = null, format = null }) {
    super();
    this.format = format ?? ((value) => formatNumber(value, 3));
    this.log = log && low > 0;
    this.ends = [low, high];
    this.lower = this.makeThumb(`Lowest ${title}`, range ? this.toStep(range[0]) : 0);
    this.upper = this.makeThumb(`Highest ${title}`, range ? this.toStep(range[1]) : SLIDER_STEPS);
    this.track = element("div", { class: "tf-range-track" });
    if (background) this.track.style.background = background;
    this.rest = [
      element("div", { class: "tf-range-off" }),
      element("div", { class: "tf-range-off tf-range-off-right" }),
    ];
    this.track.append(...this.rest);
    this.texts = [element("span"), element("span")];
    this.element = element(
      "div",
      { class: "tf-range", role: "group", "aria-label": `Range of ${title}` },
      element("div", { class: "tf-range-box" }, this.track, this.lower, this.upper),
      element("div", { class: "tf-range-ends", "aria-hidden": "true" }, ...this.texts),
    );
    this.write();
  }

  makeThumb(label, value) {
    return element("input", {
      type: "range",
      min: 0,
      max: SLIDER_STEPS,
      value,
      "aria-label": label,
      oninput: (event) => this.moved(event.target),
    });
  }

  toValue(step) {
    const [low, high] = this.ends;
    const share = step / SLIDER_STEPS;
    return this.log ? low * (high / low) ** share : low + share * (high - low);
  }

  toStep(value) {
    const [low, high] = this.ends;
    if (!(high > low)) return 0;
    const share = this.log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return Math.round(SLIDER_STEPS * share);
  }

  moved(thumb) {
    // Thumbs stop at each other instead of crossing.
    if (Number(this.lower.value) > Number(this.upper.value)) {
      if (thumb === this.lower) this.lower.value = this.upper.value;
      else this.upper.value = this.lower.value;
    }
    this.write();
    this.dispatchEvent(new CustomEvent("range", { detail: this.range }));
  }

  /** The chosen range, null when it is whole. The ends are exact: rounding must not hide the extreme rows. */
  get range() {
    const [from, to] = [Number(this.lower.value), Number(this.upper.value)];
    if (from === 0 && to === SLIDER_STEPS) return null;
    return [
      from === 0 ? this.ends[0] : this.toValue(from),
      to === SLIDER_STEPS ? this.ends[1] : this.toValue(to),
    ];
  }

  write() {
    const [from, to] = [Number(this.lower.value), Number(this.upper.value)];
    const values = [this.toValue(from), this.toValue(to)].map((value) => this.format(value));
    this.texts.forEach((text, k) => {
      text.textContent = values[k];
    });
    this.lower.setAttribute("aria-valuetext", values[0]);
    this.upper.setAttribute("aria-valuetext", values[1]);
    this.rest[0].style.width = `${(100 * from) / SLIDER_STEPS}%`;
    this.rest[1].style.width = `${100 - (100 * to) / SLIDER_STEPS}%`;
    // With both thumbs at the right end the lower one must be on top, or neither could move.
    this.lower.style.zIndex = from > SLIDER_STEPS / 2 ? 3 : 2;
    this.upper.style.zIndex = from > SLIDER_STEPS / 2 ? 2 : 3;
  }
}

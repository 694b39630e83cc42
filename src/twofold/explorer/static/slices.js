/**
 * Latent dimensions beyond two: a slider for each, and how near each row is to the slice they set.
 */

import { element, formatNumber, uniqueId } from "./elements.js";

/** Rows this many kernel widths off the slice have faded by exp(-1/2). */
const SLICE_WIDTH = 1.5;

/** Rows far off the slice stay just visible: they are still part of the data. */
const LEAST_EMPHASIS = 0.06;

const SLICE_STEPS = 200;

/**
 * How strongly each row is drawn, 1 on the slice.
 * @param {{n: number, q: number, rowX: Float32Array, header: object}} atlas
 * @param {Float64Array} rest coordinates of the slice in dimensions 2, 3, ...
 */
export function sliceEmphasis(atlas, rest) {
  const { n, q, rowX } = atlas;
  const scale = atlas.header.regression.latent_scale;
  const alpha = new Float32Array(n);
  for (let i = 0; i < n; i++) {
    let distance = 0;
    for (let d = 2; d < q; d++) {
      const off = ((rowX[i * q + d] - rest[d - 2]) * scale[d]) / SLICE_WIDTH;
      distance += off * off;
    }
    alpha[i] = LEAST_EMPHASIS + (1 - LEAST_EMPHASIS) * Math.exp(-distance / 2);
  }
  return alpha;
}

export class Slices extends EventTarget {
  /** @param {object} atlas Fires "slice" with the coordinates of dimensions 2, 3, ... */
  constructor(atlas) {
    super();
    this.rest = new Float64Array(Math.max(0, atlas.q - 2));
    this.sliders = [];
    this.texts = [];
    this.ends = [];
    this.element = element("div", { class: "tf-slices" });
    for (let d = 2; d < atlas.q; d++) this.addSlider(d, atlas.low[d], atlas.high[d]);
  }

  addSlider(d, low, high) {
    const k = d - 2;
    const id = uniqueId("slice");
    this.ends[k] = [low, high];
    this.rest[k] = (low + high) / 2;
    this.texts[k] = element("output", { for: id });
    this.sliders[k] = element("input", {
      id,
      type: "range",
      min: 0,
      max: SLICE_STEPS,
      value: SLICE_STEPS / 2,
      oninput: () => {
        this.rest[k] = low + (Number(this.sliders[k].value) / SLICE_STEPS) * (high - low);
        this.write(k);
        this.dispatchEvent(new CustomEvent("slice", { detail: { rest: this.rest } }));
      },
    });
    this.element.append(
      element(
        "div",
        { class: "tf-slice" },
        element("label", { for: id }, `Dimension ${d + 1}`),
        this.sliders[k],
        this.texts[k],
      ),
    );
    this.write(k);
  }

  /** Set the slice without firing. */
  setRest(rest) {
    this.sliders.forEach((slider, k) => {
      const [low, high] = this.ends[k];
      this.rest[k] = rest[k];
      slider.value = String(Math.round((SLICE_STEPS * (rest[k] - low)) / (high - low || 1)));
      this.write(k);
    });
  }

  write(k) {
    this.texts[k].textContent = formatNumber(this.rest[k], 3);
    this.sliders[k].setAttribute("aria-valuetext", this.texts[k].textContent);
  }
}

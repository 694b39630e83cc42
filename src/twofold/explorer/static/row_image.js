/**
 * A row as an image: one canvas pixel for each pixel, enlarged by the style sheet without smoothing.
 */

import { element } from "./elements.js";

/** Lowest and highest value of any pixel: one grey scale for the whole image, not one a pixel. */
export function imageRange(header) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of header.feature_low) if (value < low) low = value;
  for (const value of header.feature_high) if (value > high) high = value;
  return high > low ? [low, high] : [low - 0.5, low + 0.5];
}

export class RowImage {
  /**
   * @param {object} header
   * @param {string} label what a screen reader calls the image
   */
  constructor(header, label) {
    const [height, width, channels = 1] = header.image_shape;
    this.channels = channels;
    this.nPixels = height * width;
    this.range = imageRange(header);
    this.canvas = element("canvas", {
      class: "tf-row-image",
      width,
      height,
      role: "img",
      "aria-label": label,
      style: `aspect-ratio: ${width} / ${height}`,
    });
    this.context = this.canvas.getContext("2d");
    // One buffer for all frames: a drag draws sixty images a second.
    this.image = this.context.createImageData(width, height);
  }

  /** @param {ArrayLike<number>} values */
  draw(values) {
    const [low, high] = this.range;
    const scale = 255 / (high - low);
    const pixels = this.image.data;
    for (let i = 0; i < this.nPixels; i++) {
      const from = i * this.channels;
      const red = values[from];
      const green = this.channels === 1 ? red : values[from + 1];
      const blue = this.channels === 1 ? red : values[from + 2];
      // The array clamps to 0..255 by itself. A missing pixel is left transparent.
      pixels[4 * i] = (red - low) * scale;
      pixels[4 * i + 1] = (green - low) * scale;
      pixels[4 * i + 2] = (blue - low) * scale;
      pixels[4 * i + 3] = red === red ? 255 : 0;
    }
    this.context.putImageData(this.image, 0, 0);
  }
}

/** A small copy of a row for lists. */
export function thumbnail(header, values) {
  const image = new RowImage(header, "");
  image.canvas.setAttribute("role", "presentation");
  image.canvas.removeAttribute("aria-label");
  image.canvas.classList.add("tf-thumbnail");
  image.draw(values);
  return image.canvas;
}

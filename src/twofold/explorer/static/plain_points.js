// The points on a plain canvas, for browsers without WebGL 2: the same methods and the same order as in
// point_layer.js, a part of them in each frame.

import { POINT_CONTEXT, PointLayer, shuffledOrder } from "./point_layer.js";

/** How long the points of a frame may take, and how many are drawn between looks at the clock. */
const PLAIN_FRAME_MS = 24;
const POINTS_BETWEEN_LOOKS = 500;

/** Discs this small, in pixels of the page, are drawn as squares. */
const SMALL_DISC = 3;

/** @returns {PointLayer|PlainPoints} what this browser can do */
export function makePointLayer(canvas, positions, middle) {
  const gl = canvas.getContext("webgl2", POINT_CONTEXT);
  return gl ? new PointLayer(canvas, positions, middle, gl) : new PlainPoints(canvas, positions);
}

export class PlainPoints {
  /** @param {HTMLCanvasElement} canvas @param {Float32Array} positions (n, 2) latent */
  constructor(canvas, positions) {
    this.canvas = canvas;
    this.positions = positions;
    this.n = positions.length / 2;
    this.order = shuffledOrder(this.n);
    this.colors = new Uint8Array(3 * this.n);
    this.alphas = new Uint8Array(this.n).fill(255);
    this.isSelected = new Uint8Array(this.n);
    this.hasSelection = false;
    this.drawn = 0;
    this.pen = canvas.getContext("2d", { willReadFrequently: true });
    this.isSoftware = true;
    this.isLost = false;
  }

  setColors(rgb) {
    this.colors = rgb;
  }

  setAlphas(alpha) {
    this.alphas = alpha;
  }

  setSelected(isSelected) {
    this.isSelected = isSelected;
    this.hasSelection = isSelected.includes(1);
  }

  get isComplete() {
    return this.drawn >= this.n;
  }

  /** As in point_layer.js. */
  draw(camera, style, isNew, isWhole = false) {
    const { pen, canvas, order } = this;
    if (isNew) this.drawn = 0;
    pen.setTransform(canvas.width / camera.width, 0, 0, canvas.height / camera.height, 0, 0);
    if (isNew) pen.clearRect(0, 0, camera.width, camera.height);
    const until = performance.now() + PLAIN_FRAME_MS;
    const fade = this.hasSelection ? style.fade : 1;
    while (!this.isComplete) {
      const stop = Math.min(this.n, this.drawn + POINTS_BETWEEN_LOOKS);
      for (; this.drawn < stop; this.drawn++) this.drawPoint(camera, order[this.drawn], style.diameter, style.opacity * fade);
      if (!isWhole && performance.now() > until) break;
    }
    // Those that are selected once more, above all others.
    if (this.hasSelection && this.isComplete) {
      for (const i of order) if (this.isSelected[i]) this.drawPoint(camera, i, style.diameter * 1.15 + 0.4, Math.min(0.95, 3 * style.opacity));
    }
  }

  drawPoint(camera, i, diameter, opacity) {
    const { pen, colors, positions } = this;
    const alpha = (this.alphas[i] / 255) * opacity;
    if (!(alpha > 0)) return;
    const [x, y] = camera.toScreen([positions[2 * i], positions[2 * i + 1]]);
    if (!(x > -diameter && y > -diameter && x < camera.width + diameter && y < camera.height + diameter)) return;
    pen.globalAlpha = alpha;
    pen.fillStyle = `rgb(${colors[3 * i]}, ${colors[3 * i + 1]}, ${colors[3 * i + 2]})`;
    if (diameter < SMALL_DISC) {
      pen.fillRect(x - diameter / 2, y - diameter / 2, diameter, diameter);
      return;
    }
    pen.beginPath();
    pen.arc(x, y, diameter / 2, 0, 2 * Math.PI);
    pen.fill();
  }

  destroy() {
    this.drawn = this.n;
  }
}

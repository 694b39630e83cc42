// Which part of the latent plane is on screen. Both axes have one scale, the second points up.

import { ROOM_FILL } from "./map_room.js";

/** How far one can zoom out and in, relative to all of the data. */
const LEAST_ZOOM = 0.4;
const MOST_ZOOM = 3000;

export class Camera {
  /** @param {number[]} low @param {number[]} high box of the data in latent units */
  constructor(low, high) {
    this.middle = [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2];
    // Data on a line, or a single row, still need an extent to zoom to.
    const widest = Math.max(high[0] - low[0], high[1] - low[1]) || 1;
    this.extent = [Math.max(high[0] - low[0], 1e-3 * widest), Math.max(high[1] - low[1], 1e-3 * widest)];
    this.center = [...this.middle];
    this.zoom = 1;
    this.width = 0;
    this.height = 0;
    this.room = null;
    this.isHome = true;
  }

  /**
   * Size of the host in pixels of the page, and where all data is shown in it. A view of all stays one;
   * otherwise zoom and middle stay.
   * @param {number} width @param {number} height
   * @param {{left: number, top: number, scale: number}|null} room place of the data's box; null for the middle
   */
  setSize(width, height, room = null) {
    this.width = width;
    this.height = height;
    this.room = room;
    if (this.isHome) this.goHome();
  }

  /** Show all of the data. */
  goHome() {
    this.center = this.home;
    this.zoom = 1;
    this.isHome = true;
  }

  /** What is in the middle of the view when all data is shown. */
  get home() {
    if (!this.room) return [...this.middle];
    const { left, top, scale } = this.room;
    const [x, y] = [left + (this.extent[0] * scale) / 2, top + (this.extent[1] * scale) / 2];
    return [this.middle[0] + (this.width / 2 - x) / scale, this.middle[1] - (this.height / 2 - y) / scale];
  }

  /** Pixels per latent unit when all data is shown. */
  get fitScale() {
    return this.room?.scale ?? ROOM_FILL * Math.min(this.width / this.extent[0], this.height / this.extent[1]);
  }

  get scale() {
    return this.zoom * this.fitScale;
  }

  /** Whether a point is in view. */
  shows(point) {
    const [x, y] = this.toScreen(point);
    return x >= 0 && y >= 0 && x <= this.width && y <= this.height;
  }

  toScreen(point) {
    const { center, scale } = this;
    return [this.width / 2 + (point[0] - center[0]) * scale, this.height / 2 - (point[1] - center[1]) * scale];
  }

  toLatent(pixel) {
    const { center, scale } = this;
    return [center[0] + (pixel[0] - this.width / 2) / scale, center[1] - (pixel[1] - this.height / 2) / scale];
  }

  /** Move what is seen by so many pixels; the middle of the view stays near the data. */
  panBy(dx, dy) {
    this.moveTo([this.center[0] - dx / this.scale, this.center[1] + dy / this.scale], this.zoom);
  }

  /** Zoom about a pixel, which keeps showing the same latent point. */
  zoomBy(factor, pixel) {
    const fixed = this.toLatent(pixel);
    this.zoom = clampZoom(this.zoom * factor);
    const { scale } = this;
    const center = [fixed[0] - (pixel[0] - this.width / 2) / scale, fixed[1] + (pixel[1] - this.height / 2) / scale];
    this.moveTo(center, this.zoom);
  }

  moveTo(center, zoom) {
    this.isHome = false;
    this.zoom = clampZoom(zoom);
    for (const d of [0, 1]) {
      const reach = this.extent[d] / 2 + (0.5 * [this.width, this.height][d]) / (this.scale || 1);
      this.center[d] = Math.min(this.middle[d] + reach, Math.max(this.middle[d] - reach, center[d]));
    }
  }

  /** @returns {{low: number[], high: number[]}} what is on screen */
  get view() {
    const [left, top] = this.toLatent([0, 0]);
    const [right, bottom] = this.toLatent([this.width, this.height]);
    return { low: [left, bottom], high: [right, top] };
  }
}

function clampZoom(zoom) {
  return Math.min(MOST_ZOOM, Math.max(LEAST_ZOOM, zoom));
}

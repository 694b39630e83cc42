// Which rows are meant: the one under the pointer, or those inside a lasso.

import { LatentIndex } from "./latent_index.js";

/** Candidates looked at under the pointer: some may be hidden. */
const MOST_CANDIDATES = 12;

export class RowPicker {
  /** @param {Float32Array} positions (n, 2) */
  constructor(positions) {
    this.positions = positions;
    this.n = positions.length / 2;
    this.index = null;
  }

  /** Built when first needed: a million rows take a moment. */
  get cells() {
    if (this.index) return this.index;
    const low = [Infinity, Infinity];
    const high = [-Infinity, -Infinity];
    for (let k = 0; k < this.positions.length; k++) {
      low[k % 2] = Math.min(low[k % 2], this.positions[k]);
      high[k % 2] = Math.max(high[k % 2], this.positions[k]);
    }
    const widest = Math.max(high[0] - low[0], high[1] - low[1], 1e-300);
    this.index = new LatentIndex(this.positions, this.n, 2, [1, 1], widest / Math.sqrt(this.n));
    return this.index;
  }

  /**
   * @param {number[]} point @param {number} radius latent units
   * @param {(row: number) => boolean} isShown
   * @returns {number} the nearest row that is shown, or -1
   */
  nearest(point, radius, isShown) {
    if (this.n === 0) return -1;
    const { rows, squares } = this.cells.nearest(point, MOST_CANDIDATES);
    for (let k = 0; k < rows.length && squares[k] <= radius * radius; k++) {
      if (isShown(rows[k])) return rows[k];
    }
    return -1;
  }

  /**
   * @param {number[][]} polygon latent units
   * @param {(row: number) => boolean} isShown
   * @returns {Uint32Array} rows inside, in order
   */
  inside(polygon, isShown) {
    if (polygon.length < 3) return new Uint32Array(0);
    const { positions } = this;
    const [left, right] = extremes(polygon, 0);
    const [bottom, top] = extremes(polygon, 1);
    const found = [];
    for (let i = 0; i < this.n; i++) {
      const x = positions[2 * i];
      const y = positions[2 * i + 1];
      if (x < left || x > right || y < bottom || y > top) continue;
      if (isInPolygon(polygon, x, y) && isShown(i)) found.push(i);
    }
    return Uint32Array.from(found);
  }
}

function extremes(polygon, d) {
  let low = Infinity;
  let high = -Infinity;
  for (const point of polygon) {
    low = Math.min(low, point[d]);
    high = Math.max(high, point[d]);
  }
  return [low, high];
}

/** Whether a ray from the place to the right crosses the polygon an odd number of times. */
export function isInPolygon(polygon, x, y) {
  let isInside = false;
  for (let k = 0, last = polygon.length - 1; k < polygon.length; last = k++) {
    const [x0, y0] = polygon[last];
    const [x1, y1] = polygon[k];
    if (y0 > y !== y1 > y && x < x0 + ((y - y0) / (y1 - y0)) * (x1 - x0)) isInside = !isInside;
  }
  return isInside;
}

// The references whose mean is the regression, of a model that takes those nearest on the map.
//
// Of references that are equally far the first in the order of their coordinates counts: on a line or a
// lattice many are. Where the map has parts of their own, all are of the part of the nearest one.

import { LatentIndex } from "./latent_index.js";

// Rounding must not lose a reference at the very edge of a ball.
const ROUNDING = 1 + 1e-12;

export class NearestReferences {
  /**
   * @param {{refX: Float32Array, refGroups: Int32Array|null, m: number, q: number}} atlas
   * @param {number} k how many take part in a mean
   */
  constructor({ refX, refGroups, m, q }, k) {
    this.k = k;
    this.index = new LatentIndex(refX, m, q, new Float64Array(q).fill(1), 0);
    this.groups = refGroups;
    this.masks = new Map();
    this.rank = ranksOfPoints(refX, m, q);
    this.places = new Int32Array(m);
    this.squares = new Float64Array(m);
  }

  /**
   * Write the references of the mean at a latent place into `rows`, nearest first; return how many.
   * @param {ArrayLike<number>} x finite
   */
  write(x, rows) {
    let mask = null;
    if (this.groups !== null) mask = this.maskOf(this.groups[this.nearest(x, 1, null)[0]]);
    const found = this.nearest(x, this.k, mask);
    rows.set(found);
    return found.length;
  }

  /** The k nearest references, ties by rank. @param {Uint8Array|null} mask 0 for those left out */
  nearest(x, k, mask) {
    const { index, places, squares, rank } = this;
    const { rows, squares: nearest } = index.nearest(x, k, mask);
    if (rows.length === 0) return [];
    const count = index.collect(x, nearest[rows.length - 1] * ROUNDING, places, squares, null);
    const candidates = [];
    for (let p = 0; p < count; p++) {
      const row = index.order[places[p]];
      if (mask === null || mask[row] !== 0) candidates.push({ row, square: squares[p] });
    }
    candidates.sort((a, b) => a.square - b.square || rank[a.row] - rank[b.row]);
    return candidates.slice(0, k).map(({ row }) => row);
  }

  maskOf(group) {
    if (!this.masks.has(group)) {
      this.masks.set(group, Uint8Array.from(this.groups, (other) => (other === group ? 1 : 0)));
    }
    return this.masks.get(group);
  }
}

/** The place of each point (n, q) in the order of their coordinates, the first one before the others. */
function ranksOfPoints(points, n, q) {
  const order = Int32Array.from({ length: n }, (_, i) => i);
  order.sort((a, b) => {
    for (let d = 0; d < q; d++) {
      const off = points[a * q + d] - points[b * q + d];
      if (off !== 0) return off;
    }
    return a - b;
  });
  const rank = new Int32Array(n);
  order.forEach((i, place) => (rank[i] = place));
  return rank;
}

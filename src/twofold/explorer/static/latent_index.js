// Latent points sorted into cells, so that those near a place are found without a search.
//
// The first up to three dimensions are cut into cells of one width. Points are kept in the order of
// their cells, so cells beside each other along the last gridded dimension are one contiguous run,
// and a ball around any place is covered by a few runs.

const MOST_GRIDDED = 3;

export class LatentIndex {
  /**
   * @param {Float32Array} points (n, q)
   * @param {number} n
   * @param {number} q
   * @param {ArrayLike<number>} scale what each dimension is multiplied by
   * @param {number} radius how far around a place points will be looked for, after scaling
   */
  constructor(points, n, q, scale, radius) {
    this.n = n;
    this.q = q;
    const scaled = new Float64Array(n * q);
    for (let i = 0, at = 0; i < n; i++) {
      for (let d = 0; d < q; d++, at++) scaled[at] = points[at] * scale[d];
    }
    this.layOutCells(scaled, radius);
    this.sortIntoCells(scaled);
    this.span = new Int32Array(2 * MOST_GRIDDED);
  }

  /** Choose the cells. Stray points far away make them wider, never more than two a point. */
  layOutCells(scaled, radius) {
    const { n, q } = this;
    this.gridded = Math.min(q, MOST_GRIDDED);
    this.low = new Float64Array(q).fill(Infinity);
    this.high = new Float64Array(q).fill(-Infinity);
    for (let i = 0, at = 0; i < n; i++) {
      for (let d = 0; d < q; d++, at++) {
        if (scaled[at] < this.low[d]) this.low[d] = scaled[at];
        if (scaled[at] > this.high[d]) this.high[d] = scaled[at];
      }
    }
    const extents = Array.from({ length: this.gridded }, (_, d) => this.high[d] - this.low[d]);
    const widest = Math.max(...extents, 1e-300);
    const count = (width) => extents.reduce((all, e) => all * (Math.floor(e / width) + 1), 1);
    let width = Math.max(radius / 2, widest * 1e-7);
    while (count(width) > 2 * n + 64) width *= 1.25;
    this.width = width;
    this.shape = extents.map((extent) => Math.floor(extent / width) + 1);
    while (this.shape.length < MOST_GRIDDED) this.shape.unshift(1);
  }

  sortIntoCells(scaled) {
    const { n, q, gridded, shape, low, width } = this;
    const pad = MOST_GRIDDED - gridded;
    const cellOf = new Int32Array(n);
    this.starts = new Int32Array(shape[0] * shape[1] * shape[2] + 1);
    for (let i = 0; i < n; i++) {
      let cell = 0;
      for (let d = 0; d < gridded; d++) {
        const step = Math.floor((scaled[i * q + d] - low[d]) / width);
        cell = cell * shape[pad + d] + Math.min(Math.max(step, 0), shape[pad + d] - 1);
      }
      cellOf[i] = cell;
      this.starts[cell + 1]++;
    }
    for (let c = 1; c < this.starts.length; c++) this.starts[c] += this.starts[c - 1];
    const place = this.starts.slice();
    /** Row of the original array at each place of the sorted one. */
    this.order = new Int32Array(n);
    this.points = new Float64Array(n * q);
    for (let i = 0; i < n; i++) {
      const to = place[cellOf[i]]++;
      this.order[to] = i;
      for (let d = 0; d < q; d++) this.points[to * q + d] = scaled[i * q + d];
    }
  }

  /** Write the first and the last cell that a ball touches, axis by axis, into `span`. */
  findSpan(x, radius) {
    const { span, shape, low, width, gridded } = this;
    const pad = MOST_GRIDDED - gridded;
    for (let axis = 0; axis < MOST_GRIDDED; axis++) {
      const last = shape[axis] - 1;
      const d = axis - pad;
      span[2 * axis] = 0;
      span[2 * axis + 1] = last;
      if (last === 0 || d < 0) continue;
      // Clamped before rounding: a place far outside has no cell number that fits an integer.
      span[2 * axis] = Math.min(Math.max((x[d] - radius - low[d]) / width, 0), last);
      span[2 * axis + 1] = Math.min(Math.max((x[d] + radius - low[d]) / width, 0), last);
    }
  }

  /**
   * Write places (in sorted order) and squared distances of all points with s <= limit.
   * @param {ArrayLike<number>} x a scaled place
   * @param {number} limit
   * @param {Int32Array} index room for n
   * @param {Float64Array} s room for n
   * @param {Float64Array|null} shrink what the squared distance to each point is multiplied by, >= 1
   * @returns {number} how many there are
   */
  collect(x, limit, index, s, shrink) {
    this.findSpan(x, Math.sqrt(limit));
    const { span, shape, starts } = this;
    let count = 0;
    for (let a = span[0]; a <= span[1]; a++) {
      for (let b = span[2]; b <= span[3]; b++) {
        const line = (a * shape[1] + b) * shape[2];
        const start = starts[line + span[4]];
        const stop = starts[line + span[5] + 1];
        if (start < stop) count = this.collectRun(x, start, stop, limit, index, s, shrink, count);
      }
    }
    return count;
  }

  collectRun(x, start, stop, limit, index, s, shrink, count) {
    const { q, points } = this;
    const x0 = x[0];
    const x1 = q > 1 ? x[1] : 0;
    for (let i = start, at = start * q; i < stop; i++, at += q) {
      const d0 = points[at] - x0;
      let square = d0 * d0;
      if (q > 1) {
        const d1 = points[at + 1] - x1;
        square += d1 * d1;
      }
      for (let d = 2; d < q; d++) {
        const off = points[at + d] - x[d];
        square += off * off;
      }
      if (shrink !== null) square *= shrink[i];
      if (square <= limit) {
        index[count] = i;
        s[count] = square;
        count++;
      }
    }
    return count;
  }

  /**
   * The k points nearest to a scaled place, nearest first.
   * @param {Uint8Array|null} mask 0 for rows of the original array that are left out
   * @returns {{rows: Int32Array, squares: Float64Array}} rows of the original array
   */
  nearest(x, k, mask = null) {
    const most = Math.min(k, this.n);
    const best = { rows: new Int32Array(most), squares: new Float64Array(most), count: 0, seen: 0 };
    let outside = 0;
    for (let d = 0; d < this.q; d++) {
      outside += Math.max(this.low[d] - x[d], x[d] - this.high[d], 0) ** 2;
    }
    let radius = Math.sqrt(outside) + this.width;
    while (most > 0) {
      best.count = best.seen = 0;
      this.scanBall(x, radius, best, mask);
      const farthest = best.count === most ? Math.sqrt(best.squares[most - 1]) : Infinity;
      if (farthest <= radius || best.seen === this.n || !(radius < Infinity)) break;
      // With k at hand one more look settles it; otherwise look twice as far.
      radius = Math.min(2 * radius, farthest);
    }
    const rows = best.rows.subarray(0, best.count).map((place) => this.order[place]);
    return { rows, squares: best.squares };
  }

  scanBall(x, radius, best, mask) {
    this.findSpan(x, radius);
    const { span, shape, starts, q, points, order } = this;
    for (let a = span[0]; a <= span[1]; a++) {
      for (let b = span[2]; b <= span[3]; b++) {
        const line = (a * shape[1] + b) * shape[2];
        const stop = starts[line + span[5] + 1];
        for (let i = starts[line + span[4]]; i < stop; i++) {
          best.seen++;
          if (mask !== null && mask[order[i]] === 0) continue;
          let square = 0;
          for (let d = 0; d < q; d++) {
            const off = points[i * q + d] - x[d];
            square += off * off;
          }
          keepIfNear(best, i, square);
        }
      }
    }
  }
}

/** Insert a candidate into a list of the nearest so far, which stays sorted. */
export function keepIfNear(best, row, square) {
  const { rows, squares } = best;
  const room = rows.length;
  if (best.count === room && !(square < squares[room - 1])) return;
  let slot = best.count < room ? best.count++ : room - 1;
  while (slot > 0 && square < squares[slot - 1]) {
    rows[slot] = rows[slot - 1];
    squares[slot] = squares[slot - 1];
    slot--;
  }
  rows[slot] = row;
  squares[slot] = square;
}

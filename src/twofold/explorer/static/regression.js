// The regression f of a fitted model, its density and its domain, in the page.
//
//   f(x) = Σ_i ω_i y_i F(s_i) / Σ_i ω_i F(s_i)     (degree 0; above, see local_fit.js)
//   p(x) = Σ_i ω_i F(s_i) / Σ_i ω_i
//
// with s the squared distance in kernel units. Of some models f is the mean of the K references nearest on
// the map instead, see nearest_means.js. Entries that are missing take no part, feature by
// feature; where no reference is in reach the mean stands in.

import { DensityGridSum } from "./density_grid.js";
import { DistantColumns } from "./distant_columns.js";
import { Gathering, kernelHalfWidth, kernelReach } from "./kernel_weights.js";
import { LatentIndex, keepIfNear } from "./latent_index.js";
import { LocalFit, columnPatterns } from "./local_fit.js";
import { NearestReferences } from "./nearest_means.js";
import { RowSums } from "./row_sums.js";

// How long the slow density grid works before it lets the page breathe, in milliseconds.
const SLICE_MS = 8;
// Rows whose data the file does not hold share a feature's value within this part of the distance at
// which a kernel falls to a half.
const SHARED_CELL = 0.2;
const COLUMNS_BETWEEN_LOOKS = 64;

export class Regression {
  /** @param {object} atlas what `decodePayload` returns */
  constructor(atlas) {
    const { regression, quantised, domain_threshold, domain_box } = atlas.header;
    this.atlas = atlas;
    this.kernel = regression.kernel;
    this.degree = regression.degree;
    this.mean = regression.mean;
    this.totalWeight = regression.total_weight;
    this.threshold = domain_threshold;
    // Where the domain is a box, the density is 1 inside and 0 outside.
    this.box = domain_box ?? null;
    this.low = Float64Array.from(quantised.low);
    this.step = Float64Array.from(quantised.step);
    this.missing = quantised.missing ?? null;
    // A model of scaled columns measures distances between rows in these units.
    const spread = atlas.header.feature_spread;
    this.perSpread = Float64Array.from(this.low, (_, j) => (spread ? 1 / spread[j] : 1));
    this.prepareReferences(regression);
    this.nearest = regression.neighbors ? new NearestReferences(atlas, regression.neighbors) : null;
    const { m, D, q } = atlas;
    this.table = new RowSums(atlas.refCodes, m, D, this.missing);
    if (!this.table.hasGaps) this.missing = null;
    this.fit = this.degree === 0 ? null : new LocalFit(this.degree, q);
    this.rows = new Int32Array(m);
    this.fitted = new Float64Array(m);
    this.present = new Float64Array(m);
    this.sums = new Float64Array(D);
    this.masses = new Float64Array(D);
    this.place = new Float64Array(q);
    const isFar = this.kernel === "gaussian" && this.nearest === null && this.missing !== null;
    this.distant = isFar ? new DistantColumns(this) : null;
    // The atlas asks for the features of rows whose data it does not hold.
    atlas.regression ??= this;
  }

  /** Sort the references into cells, in units of the widest kernel. */
  prepareReferences(regression) {
    const { refX, refWidths, refWeights, m, q } = this.atlas;
    const widest = refWidths === null ? 1 : refWidths.reduce((a, b) => Math.max(a, b), 0);
    this.scale = Float64Array.from(regression.latent_scale, (scale) => scale / widest);
    // Where a local fit rests on one or two references, its slope is told by the faint ones behind them.
    const cutoff = this.degree === 0 ? regression.cutoff : regression.cutoff ** 2;
    const reach = kernelReach(this.kernel, cutoff);
    const index = new LatentIndex(refX, m, q, this.scale, Math.sqrt(reach));
    const sorted = (value) => Float64Array.from(index.order, value);
    // What a kernel width is along each latent dimension, for an average reference.
    const average = refWidths === null ? 1 : refWidths.slice().sort()[m >> 1];
    this.kernelWidth = this.scale.map((scale) => average / widest / scale);
    this.own = refWeights === null ? null : sorted((i) => refWeights[i]);
    this.shrink = refWidths === null ? null : sorted((i) => (widest / refWidths[i]) ** 2);
    this.index = index;
    this.near = new Gathering(index, this.kernel, cutoff, this.shrink);
  }

  /** Gather the references in reach of a latent place; return their total weight. */
  gather(x) {
    const { place, near, own, rows, index } = this;
    near.count = 0;
    for (let d = 0; d < place.length; d++) {
      place[d] = x[d] * this.scale[d];
      if (!Number.isFinite(place[d])) return 0;
    }
    near.around(place);
    let total = 0;
    for (let k = 0; k < near.count; k++) {
      if (own !== null) near.weight[k] *= own[near.index[k]];
      total += near.weight[k];
      rows[k] = index.order[near.index[k]];
    }
    return total;
  }

  /** Gather the references that f is made of at a latent place; return their total weight. */
  gatherForMean(x) {
    const { nearest, near, rows } = this;
    if (nearest === null) return this.gather(x);
    const { refWeights } = this.atlas;
    const isPlace = Array.prototype.every.call(x, Number.isFinite);
    near.count = isPlace ? nearest.write(x, rows) : 0;
    let total = 0;
    for (let k = 0; k < near.count; k++) {
      near.weight[k] = refWeights === null ? 1 : refWeights[rows[k]];
      total += near.weight[k];
    }
    return total;
  }

  /**
   * The regression at a latent place.
   * @param {ArrayLike<number>} x (q,)
   * @param {Float64Array} [out] (D,) where to write it
   * @returns {Float64Array} (D,)
   */
  at(x, out = new Float64Array(this.atlas.D)) {
    const total = this.gatherForMean(x);
    this.sums.fill(0);
    if (!(total > 0)) this.masses.fill(0);
    else if (this.fit !== null) this.addFits();
    else this.addMeans(total);
    const { sums, masses, low, step, mean } = this;
    for (let j = 0; j < out.length; j++) {
      out[j] = masses[j] > 0 ? low[j] + step[j] * (sums[j] / masses[j]) : mean[j];
    }
    if (this.distant !== null && total > 0) {
      this.distant.mend(x, (j) => masses[j] / (this.fit === null ? 1 : total), out);
    }
    return out;
  }

  /** Sum codes and weights at degree 0. */
  addMeans(total) {
    const { near, rows, sums, masses, table } = this;
    for (let k = 0; k < near.count; k++) near.weight[k] /= total;
    table.addRows(rows, near.weight, near.count, sums);
    masses.fill(1);
    if (table.hasGaps) table.takeGaps(rows, near.weight, near.count, sums, masses);
  }

  /** Sum codes by local polynomials. */
  addFits() {
    const { near, rows, fitted, sums, masses, table, fit } = this;
    fit.around(this.place, this.index.points, near.index, near.weight, near.count);
    masses.fill(1);
    if (table.hasGaps) this.addFitsOfPatterns();
    else if (fit.weights(null, fitted)) table.addRows(rows, fitted, near.count, sums);
  }

  /**
   * The same where entries are missing: features missing in the same rows share a fit. With as many
   * fits as features the moments Σ_i ω_i F_i ξ_i y_i, which all fits share, save most of the work.
   */
  addFitsOfPatterns() {
    const { near, rows, fitted, sums, masses, table, fit } = this;
    this.moments ??= Array.from({ length: fit.p }, () => new Float64Array(this.atlas.D));
    this.moments.forEach((moment, a) => {
      moment.fill(0);
      fit.momentWeights(a, fitted);
      table.addRowsInDouble(rows, fitted, near.count, moment);
    });
    for (const columns of this.patterns()) {
      const total = fit.solve(this.markPresent(columns[0]));
      for (const j of columns) {
        masses[j] = total;
        for (let a = 0; a < fit.p; a++) sums[j] += fit.g[a] * this.moments[a][j];
      }
    }
  }

  patterns() {
    const { refCodes, m, D } = this.atlas;
    this.columnGroups ??= columnPatterns(refCodes, m, D, this.missing);
    return this.columnGroups;
  }

  /** Say which references in reach have a feature: 1 or 0 each, or null if all have. */
  markPresent(column) {
    const { near, rows, present, missing } = this;
    const { refCodes, D } = this.atlas;
    if (missing === null) return null;
    for (let k = 0; k < near.count; k++) {
      present[k] = refCodes[rows[k] * D + column] === missing ? 0 : 1;
    }
    return present;
  }

  /** One feature of the regression at a latent place. */
  featureAt(x, j) {
    const total = this.gatherForMean(x);
    const { near, rows, missing, fitted } = this;
    const { refCodes, D } = this.atlas;
    if (!(total > 0)) return this.mean[j];
    if (this.distant !== null) {
      const present = this.markPresent(j);
      let seen = 0;
      for (let k = 0; k < near.count; k++) seen += near.weight[k] * present[k];
      if (this.distant.isThin(j, seen / total)) return this.distant.featureAt(x, j);
    }
    const isFit = this.fit !== null;
    if (isFit) {
      this.fit.around(this.place, this.index.points, near.index, near.weight, near.count);
      if (!this.fit.weights(this.markPresent(j), fitted)) return this.mean[j];
    }
    const weight = isFit ? fitted : near.weight;
    let sum = 0;
    let mass = 0;
    for (let k = 0; k < near.count; k++) {
      const code = refCodes[rows[k] * D + j];
      if (missing !== null && code === missing) continue;
      sum += weight[k] * code;
      mass += weight[k];
    }
    if (isFit) mass = 1;
    return mass > 0 ? this.low[j] + this.step[j] * (sum / mass) : this.mean[j];
  }

  /** About how many products an evaluation takes, for those who must choose how often to. */
  evaluationCost() {
    if (this.knownCost !== undefined) return this.knownCost;
    const { m, q, D, refX } = this.atlas;
    const samples = Math.min(m, 16);
    let pairs = 0;
    for (let k = 0; k < samples; k++) {
      const i = Math.floor((k * m) / samples);
      this.gatherForMean(refX.subarray(i * q, (i + 1) * q));
      pairs += this.near.count / samples;
    }
    // Without vectors, and in fits, a product takes four times as long.
    const ofSums = D * (this.table.simd === null ? 4 : 1);
    const ofFits = this.fit === null ? 0 : this.patterns().length * 4 * this.fit.p * (this.fit.p + 1);
    this.knownCost = pairs * (ofSums + ofFits);
    return this.knownCost;
  }

  /**
   * One feature of the regression at many latent places, for colours: places much closer than a
   * kernel is wide share a value.
   * @param {Float32Array} places (n, q)
   * @returns {Float32Array} (n,)
   */
  featureAlong(places, n, j) {
    const { q } = this.atlas;
    const cell = this.kernelWidth.map((width) => SHARED_CELL * kernelHalfWidth(this.kernel) * width);
    const shared = new Map();
    const values = new Float32Array(n);
    for (let i = 0; i < n; i++) {
      const x = places.subarray(i * q, (i + 1) * q);
      let key = "";
      for (let d = 0; d < q; d++) key += `${Math.round(x[d] / cell[d])},`;
      let value = shared.get(key);
      if (value === undefined) {
        value = this.featureAt(x, j);
        shared.set(key, value);
      }
      values[i] = value;
    }
    return values;
  }

  /** The latent density, relative to a single reference of all weight. */
  density(x) {
    if (this.box !== null) return isInBox(this.box, x) ? 1 : 0;
    const total = this.gather(x);
    const { shift } = this.near;
    return ((shift > 0 ? Math.exp(-0.5 * shift) : 1) * total) / this.totalWeight;
  }

  /** Whether the data supports a latent place. */
  inDomain(x) {
    return this.density(x) >= this.threshold;
  }

  gridSum(low, high, size, rest = []) {
    const { index, own, shrink, kernel, totalWeight, scale } = this;
    const references = {
      points: index.points, n: index.n, q: index.q,
      own, shrink, kernel, reach: this.near.reach, totalWeight,
    };
    const scaled = (corner) => [0, 1].map((axis) => corner[axis] * (scale[axis] ?? 1));
    const further = Array.from(rest, (x, d) => x * scale[d + 2]);
    return new DensityGridSum(references, scaled(low), scaled(high), size, further);
  }

  /**
   * The density on a grid over latent dimensions 0 and 1; references that weigh less than the
   * cutoff count as nothing.
   * @param {ArrayLike<number>} low, high (2,) its corners, which are nodes
   * @param {number} size nodes along a side
   * @param {ArrayLike<number>} [rest] where dimensions 2 and up are fixed
   * @returns {Float64Array} (size, size) row-major, row 0 at low[1]
   */
  densityGrid(low, high, size, rest) {
    const sum = this.gridSum(low, high, size, rest);
    sum.run(Infinity);
    return sum.finish();
  }

  /**
   * The same without holding the page up.
   * @param {() => boolean} [isStale] whether the answer is no longer wanted
   * @returns {Promise<Float64Array|null>} null if it went stale
   */
  async densityGridSlowly(low, high, size, rest, isStale = () => false) {
    const sum = this.gridSum(low, high, size, rest);
    while (!sum.run(performance.now() + SLICE_MS)) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      if (isStale()) return null;
    }
    return sum.finish();
  }

  /**
   * The references whose rows are nearest to y, over the entries both have; where some are missing
   * the distance is scaled up to all observed entries of y.
   * @param {ArrayLike<number>} y (D,) NaN where missing
   * @returns {{ref: number, distance: number}[]} nearest first
   */
  nearestRefs(y, k) {
    const { m } = this.atlas;
    const most = Math.min(k, m);
    const best = { rows: new Int32Array(most), squares: new Float64Array(most), count: 0 };
    const columns = Int32Array.from(y.keys()).filter((j) => Number.isFinite(y[j]));
    const above = Float64Array.from(columns, (j) => (y[j] - this.low[j]) * this.perSpread[j]);
    const step = Float64Array.from(columns, (j) => this.step[j] * this.perSpread[j]);
    for (let i = 0; i < m; i++) {
      const bound = best.count === most ? best.squares[most - 1] : Infinity;
      keepIfNear(best, i, this.squareTo(i, columns, above, step, bound));
    }
    return Array.from(best.rows.subarray(0, best.count), (ref, place) => (
      { ref, distance: Math.sqrt(best.squares[place]) }
    )).filter((found) => found.distance < Infinity);
  }

  /** Squared distance to a reference's row; anything above `bound` if it is above that. */
  squareTo(i, columns, above, step, bound) {
    const { refCodes, D } = this.atlas;
    const missing = this.missing ?? -1;
    const from = i * D;
    let sum = 0;
    let common = 0;
    for (let start = 0; start < columns.length && sum <= bound; start += COLUMNS_BETWEEN_LOOKS) {
      const stop = Math.min(start + COLUMNS_BETWEEN_LOOKS, columns.length);
      for (let c = start; c < stop; c++) {
        const code = refCodes[from + columns[c]];
        if (code === missing) continue;
        const off = above[c] - step[c] * code;
        sum += off * off;
        common++;
      }
    }
    if (sum > bound) return Infinity;
    return common > 0 ? (sum * columns.length) / common : Infinity;
  }

  /**
   * The rows nearest to a latent place, in latent units.
   * @param {Uint8Array|null} [mask] 0 for rows that are not wanted
   * @returns {{row: number, distance: number}[]} nearest first
   */
  nearestRows(x, k, mask = null) {
    const { rowX, n, q } = this.atlas;
    this.rowIndex ??= new LatentIndex(rowX, n, q, new Float64Array(q).fill(1), 0);
    const { rows, squares } = this.rowIndex.nearest(x, k, mask);
    return Array.from(rows, (row, place) => ({ row, distance: Math.sqrt(squares[place]) }));
  }
}

/** Whether a place lies in a box, in the dimensions from `first` on. */
export function isInBox({ low, high }, x, first = 0) {
  for (let d = 0; d < x.length; d++) if (!(x[d] >= low[first + d] && x[d] <= high[first + d])) return false;
  return true;
}

// Where on the manifold a row belongs: the latent x in the domain whose f(x) is nearest to y.
//
// Starts are references whose rows are nearest to y, apart from each other in latent space, and a
// coarse set of places all over the map; the best of them go on with damped Gauss-Newton steps. A step
// that would leave the domain ends at its border, and the next one goes along it.
//
// A mean of nearest references has steps and no slopes. There the references of the K rows nearest to y,
// the mean of their places and the middles between them and their neighbours compete with the reference
// whose mean is nearest to y, as in the model.

import { kernelHalfWidth } from "./kernel_weights.js";

const NEAREST_REFS = 48;
const MOST_STEPS = 25;
const MOST_STARTS = 6;
// For small tables, all of which go on to their end: a start that is bad at first may end best.
const STARTS_OF_SMALL_TABLES = 16;
const MOST_COARSE = 128;
// About so many products may a projection take: a third of a second.
const PRODUCTS = 1e9;
const LEAST_EVALUATIONS = 36;
const STEP_TOLERANCE = 1e-5;
const DECREASE_TOLERANCE = 1e-6;
// In kernel widths: small enough for a derivative, large compared with rounding.
const DIFFERENCE = 1e-4;
// A density so little above the border's, as a share, is at the border.
const BORDER = 0.05;
const MOST_CORRECTIONS = 5;
const MOST_HALVINGS = 5;
// How much worse than the best a start may be to go on: narrower from step to step.
const SLACK = 0.6;
const SLACK_DECAY = 0.6;
const LEAST_SLACK = 0.02;

// Of so many references the mean at each is tried, half a second for a wide table; of more only those at
// the references whose rows are nearest.
const MOST_MEANS = 20_000;
const MEANS_OF_LARGE_TABLES = 256;

/**
 * Find the latent place of a row.
 * @param {Regression} regression
 * @param {ArrayLike<number>} y (D,) NaN where missing
 * @param {ArrayLike<number>|null} [observed] (D,) 0 where an entry is not to be used
 * @returns {{x: Float64Array, error: number}} the place and the distance of y to f there, over the
 *   observed entries, in units of the features' spread where the model scales them; the middle of the map and NaN if none is observed
 */
export function project(regression, y, observed = null) {
  const target = Float64Array.from(y, (value, j) => (observed && !observed[j] ? NaN : value));
  const columns = Int32Array.from(target.keys()).filter((j) => Number.isFinite(target[j]));
  if (columns.length === 0) return { x: middleOfMap(regression.atlas), error: NaN };
  const search = new ProjectionSearch(regression, target, columns);
  if (regression.nearest !== null) return placeAmongMeans(search);
  const descents = search.starts().map((x) => search.begin(x));
  for (let count = 0; count < MOST_STEPS; count++) {
    const best = Math.min(...descents.map((descent) => descent.error));
    const slack = search.isSmall ? Infinity : Math.max(SLACK * SLACK_DECAY ** count, LEAST_SLACK);
    const bound = best > 0 ? (1 + slack) * best : 0;
    const active = descents.filter((descent) => !descent.done && descent.error <= bound);
    if (active.length === 0 || search.evaluations > search.budget) break;
    for (const descent of active) search.advance(descent);
  }
  const found = descents.reduce((a, b) => (b.error < a.error ? b : a));
  return { x: found.x, error: Math.sqrt(found.error) };
}

/** The place of a row where f is a mean of nearest references. */
function placeAmongMeans(search) {
  const { regression, value, q } = search;
  const { refX, m } = regression.atlas;
  const placeOf = (ref) => Float64Array.from(refX.subarray(ref * q, (ref + 1) * q));
  let best = { x: placeOf(0), error: Infinity };
  const compete = (x, error, mayTie) => {
    if (error < best.error || (mayTie && error === best.error)) best = { x, error };
  };
  const refsNear = (count) => regression.nearestRefs(search.target, count).map(({ ref }) => ref);
  const isSmall = m <= MOST_MEANS;
  for (const ref of isSmall ? Array(m).keys() : refsNear(MEANS_OF_LARGE_TABLES)) {
    const x = placeOf(ref);
    compete(x, search.errorAt(x, value), false);
  }
  const ofReference = best;
  const near = refsNear(regression.nearest.k);
  const middle = meanPlace(near, regression.atlas);
  compete(middle, search.errorAt(middle, value), true);
  for (const ref of near) {
    const x = placeOf(ref);
    const others = regression.nearest.nearest(x, 2 * q + 1, null).filter((other) => other !== ref);
    for (const other of others.slice(0, 2 * q)) {
      const between = placeOf(other).map((place, d) => (place + x[d]) / 2);
      compete(between, search.errorAt(between, value), false);
    }
  }
  const { x, error } = regression.inDomain(best.x) ? best : ofReference;
  return { x, error: Math.sqrt(error) };
}

/** The mean of the places of references, each counted by its weight. */
function meanPlace(refs, { refX, refWeights, q }) {
  const x = new Float64Array(q);
  let mass = 0;
  for (const ref of refs) {
    const weight = refWeights === null ? 1 : refWeights[ref];
    mass += weight;
    for (let d = 0; d < q; d++) x[d] += weight * refX[ref * q + d];
  }
  return x.map((sum) => sum / mass);
}

function middleOfMap(atlas) {
  return atlas.low.map((low, d) => (low + atlas.high[d]) / 2);
}

class ProjectionSearch {
  constructor(regression, target, columns) {
    this.regression = regression;
    this.target = target;
    this.columns = columns;
    this.units = Float64Array.from(columns, (j) => regression.perSpread[j]);
    this.q = regression.atlas.q;
    this.budget = Math.max(PRODUCTS / regression.evaluationCost(), LEAST_EVALUATIONS);
    this.isSmall = this.budget >= STARTS_OF_SMALL_TABLES * MOST_STEPS * (this.q + 2);
    this.evaluations = 0;
    this.value = new Float64Array(target.length);
    this.beside = new Float64Array(target.length);
    // A kernel width along each latent dimension.
    const half = kernelHalfWidth(regression.kernel);
    this.unit = regression.kernelWidth.map((width) => half * width);
  }

  /** Write f(x) into `value`; return the squared distance of the row to it. */
  errorAt(x, value) {
    this.evaluations++;
    this.regression.at(x, value);
    return this.squareTo(value);
  }

  squareTo(value) {
    const { columns, units, target } = this;
    let sum = 0;
    for (let c = 0; c < columns.length; c++) {
      const off = (value[columns[c]] - target[columns[c]]) * units[c];
      sum += off * off;
    }
    return sum;
  }

  /** Places to start from, the best first. */
  starts() {
    const share = Math.floor(this.budget / 4);
    const places = [...this.placesOfNearest(Math.min(2 * MOST_STARTS, share))];
    const tried = places.map((x) => ({ x, error: this.errorAt(x, this.value) }));
    for (const { x, f } of this.coarsePlaces(Math.min(MOST_COARSE, share))) {
      tried.push({ x, error: this.squareTo(f) });
    }
    tried.sort((a, b) => a.error - b.error);
    const some = Math.min(MOST_STARTS, Math.max(2, Math.floor(this.budget / 40)));
    const most = this.isSmall ? STARTS_OF_SMALL_TABLES : some;
    return this.apart(tried.map((one) => one.x), most);
  }

  placesOfNearest(most) {
    const { refX } = this.regression.atlas;
    const near = this.regression.nearestRefs(this.target, NEAREST_REFS);
    const places = near.map(({ ref }) => refX.slice(ref * this.q, (ref + 1) * this.q));
    return this.apart(places.map((x) => Float64Array.from(x)), most);
  }

  /** Some references in the order of cells, which is all over the map, and f there; kept. */
  coarsePlaces(most) {
    const { regression, q } = this;
    const { order } = regression.index;
    const { refX, m } = regression.atlas;
    const count = Math.min(most, m);
    regression.coarseSet ??= Array.from({ length: count }, (_, k) => {
      const ref = order[Math.floor(((k + 0.5) * m) / count)];
      const x = Float64Array.from(refX.subarray(ref * q, (ref + 1) * q));
      return { x, f: Float32Array.from(regression.at(x, this.value)) };
    });
    return regression.coarseSet;
  }

  /** The first places of a list that are at least a kernel width apart. */
  apart(places, most) {
    const kept = [];
    for (const x of places) {
      if (kept.length >= most) break;
      if (kept.every((other) => this.distance(x, other) > 1)) kept.push(x);
    }
    return kept;
  }

  distance(a, b) {
    let square = 0;
    for (let d = 0; d < this.q; d++) square += ((a[d] - b[d]) / this.unit[d]) ** 2;
    return Math.sqrt(square);
  }

  begin(x) {
    const descent = { x: Float64Array.from(x), error: 0, damping: 1e-2, done: false };
    descent.error = this.errorAt(descent.x, this.value);
    this.linearise(descent);
    return descent;
  }

  /** Find JᵀJ and Jᵀr by differences, in kernel widths; `value` must hold f there. */
  linearise(descent) {
    const { q, columns, units, value, beside, target } = this;
    const slopes = [];
    for (let d = 0; d < q; d++) {
      const x = Float64Array.from(descent.x);
      x[d] += DIFFERENCE * this.unit[d];
      this.errorAt(x, beside);
      slopes.push(Float64Array.from(columns, (j, c) => ((beside[j] - value[j]) * units[c]) / DIFFERENCE));
    }
    const residual = Float64Array.from(columns, (j, c) => (value[j] - target[j]) * units[c]);
    descent.gradient = slopes.map((slope) => dotProduct(slope, residual));
    descent.hessian = slopes.map((a) => slopes.map((b) => dotProduct(a, b)));
  }

  /** One step: taken if it lowers the error within the domain, shortened the next time if not. */
  advance(descent) {
    const { gradient, hessian, damping } = descent;
    const largest = Math.max(...hessian.map((row, d) => row[d]));
    const damped = hessian.map((row, d) => {
      // The floor keeps the step finite where the manifold does not move at all.
      const added = damping * (row[d] + 1e-3 * largest) + Number.MIN_VALUE;
      return row.map((entry, c) => (c === d ? entry + added : entry));
    });
    const step = solvePositive(damped, gradient).map((length) => -length);
    const free = this.moved(descent.x, step);
    const x = this.regression.inDomain(free) ? free : this.withinDomain(descent.x, step, damped);
    descent.done = !(Math.hypot(...step) >= STEP_TOLERANCE);
    if (descent.done) return;
    const before = descent.error;
    const error = this.errorAt(x, this.value);
    if (!(error < before)) {
      descent.damping = damping * 5;
      return;
    }
    Object.assign(descent, { x, error, damping: damping * 0.2 });
    // A step that the border cut short says nothing about the next.
    descent.done = x === free && before - error <= DECREASE_TOLERANCE * before;
    if (!descent.done) this.linearise(descent);
  }

  moved(x, step, share = 1) {
    return x.map((place, d) => place + share * step[d] * this.unit[d]);
  }

  /** The end of a step that would leave the domain: at the border, or along it from there. */
  withinDomain(x, step, damped) {
    const { regression } = this;
    if (regression.box !== null) return nearestInBox(regression.box, this.moved(x, step));
    const density = regression.density(x);
    const toBorder = this.shortened(x, step);
    if (toBorder !== x && density > (1 + BORDER) * regression.threshold) return toBorder;
    const uphill = this.unit.map((unit, d) => {
      const beside = Float64Array.from(x);
      beside[d] += DIFFERENCE * unit;
      return (regression.density(beside) - density) / DIFFERENCE;
    });
    // The best step that does not change the density, in the metric of the error.
    const back = solvePositive(damped, uphill);
    const share = dotProduct(uphill, step) / (dotProduct(uphill, back) || 1);
    const along = step.map((length, d) => length - share * back[d]);
    let end = this.moved(x, along);
    for (let count = 0; count < MOST_CORRECTIONS; count++) {
      const lacking = (1 + 0.1 * BORDER) * regression.threshold - regression.density(end);
      if (lacking <= 0.1 * BORDER * regression.threshold) return end;
      end = this.moved(end, uphill, lacking / dotProduct(uphill, uphill));
    }
    return this.shortened(x, along);
  }

  /** The end of a step that is halved until it ends in the domain, or where it began. */
  shortened(x, step) {
    for (let count = 1; count <= MOST_HALVINGS; count++) {
      const end = this.moved(x, step, 0.5 ** count);
      if (this.regression.inDomain(end)) return end;
    }
    return x;
  }
}

function nearestInBox({ low, high }, x) {
  return x.map((place, d) => Math.min(Math.max(place, low[d]), high[d]));
}

function dotProduct(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k] * b[k];
  return sum;
}

/** Solve A x = b for a small positive definite A; zeros where it is singular. */
function solvePositive(A, b) {
  const rows = A.map((row, a) => [...row, b[a]]);
  const size = b.length;
  for (let a = 0; a < size; a++) {
    if (!(rows[a][a] > 0)) return new Array(size).fill(0);
    for (let c = a + 1; c < size; c++) {
      const factor = rows[c][a] / rows[a][a];
      for (let k = a; k <= size; k++) rows[c][k] -= factor * rows[a][k];
    }
  }
  const x = new Array(size).fill(0);
  for (let a = size - 1; a >= 0; a--) {
    let rest = rows[a][size];
    for (let k = a + 1; k < size; k++) rest -= rows[a][k] * x[k];
    x[a] = rest / rows[a][a];
  }
  return x;
}

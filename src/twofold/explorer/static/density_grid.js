// The latent density on a grid of nodes, for contours.
//
// Each reference adds its kernel to the nodes in its reach. A kernel that is wide compared with the
// distance of nodes is added to a grid of every second, fourth, … node, which is interpolated in the
// end: the work for a reference stays the same however wide its kernel. The error of that is below
// 1/1000 of a kernel's height for the smooth ones, 3/1000 for the quartic and 4/100 for the
// Epanechnikov kernel, at the edge of its support.

// Nodes of a coarser grid may be so far apart, in kernel widths.
const COARSEST_GAUSSIAN = 0.35;
const COARSEST_COMPACT = 0.1;
const MOST_LEVELS = 6;
// Nodes beyond the border that six-point interpolation asks for.
const NODES_BEFORE = 2;
const NODES_AFTER = 3;
const REFERENCES_AT_A_TIME = 64;

export class DensityGridSum {
  /**
   * @param {object} references `{points (n, q), n, q, own: weights|null, shrink|null, kernel, reach,
   *   totalWeight}` as the regression keeps them
   * @param {number[]} low, high corners of the grid in the units of `points`, dimensions 0 and 1
   * @param {number} size nodes along each side, the corners included
   * @param {ArrayLike<number>} rest place of the further dimensions in those units
   */
  constructor(references, low, high, size, rest) {
    this.references = references;
    this.size = size;
    this.rest = rest;
    this.low = low;
    this.step = [0, 1].map((axis) => (high[axis] - low[axis]) / (size - 1));
    this.levels = [];
    this.next = 0;
    this.along = new Float64Array(size + NODES_BEFORE + NODES_AFTER);
    this.power = { gaussian: 0, epanechnikov: 1, quartic: 2, triweight: 3 }[references.kernel];
    this.coarsest = this.power === 0 ? COARSEST_GAUSSIAN : COARSEST_COMPACT;
  }

  /** Add references until all are in or the deadline has passed; say whether all are. */
  run(deadline) {
    const { n } = this.references;
    while (this.next < n) {
      const stop = Math.min(this.next + REFERENCES_AT_A_TIME, n);
      for (; this.next < stop; this.next++) this.addReference(this.next);
      if (performance.now() > deadline) break;
    }
    return this.next >= n;
  }

  addReference(i) {
    const { points, q, own, shrink, reach } = this.references;
    const narrow = shrink === null ? 1 : shrink[i];
    let off = 0;
    for (let d = 2; d < q; d++) off += (points[i * q + d] - this.rest[d - 2]) ** 2;
    off *= narrow;
    if (!(off < reach)) return;
    const level = this.levelFor(narrow);
    const weight = own === null ? 1 : own[i];
    const x = points[i * q];
    const y = q > 1 ? points[i * q + 1] : 0;
    if (this.power === 0) {
      addGaussian(level, x, y, narrow, reach, weight * Math.exp(-0.5 * off), this.along);
    } else {
      addCompact(level, x, y, narrow, 1 - off, weight, this.power, this.along);
    }
  }

  levelFor(narrow) {
    const spacing = Math.max(this.step[0], this.step[1]) * Math.sqrt(narrow);
    let number = 0;
    while (number + 1 < MOST_LEVELS && spacing * 2 ** (number + 1) <= this.coarsest) number++;
    this.levels[number] ??= this.makeLevel(number);
    return this.levels[number];
  }

  makeLevel(number) {
    const stride = 2 ** number;
    const before = number === 0 ? 0 : NODES_BEFORE;
    const nodes = Math.ceil((this.size - 1) / stride) + 1 + (number === 0 ? 0 : 5);
    const step = this.step.map((s) => s * stride);
    const low = this.low.map((l, axis) => l - before * step[axis]);
    return { stride, nodes, step, low, sums: new Float64Array(nodes * nodes) };
  }

  /** @returns {Float64Array} (size, size) row-major, row 0 at the lower end of dimension 1 */
  finish() {
    const grid = new Float64Array(this.size * this.size);
    for (const level of this.levels) if (level) addInterpolated(level, this.size, grid);
    for (let at = 0; at < grid.length; at++) {
      grid[at] = Math.max(grid[at], 0) / this.references.totalWeight;
    }
    return grid;
  }
}

/** First and last node within `radius` of `x` along an axis. */
function nodeRange(level, axis, x, radius) {
  const first = Math.ceil((x - radius - level.low[axis]) / level.step[axis]);
  const last = Math.floor((x + radius - level.low[axis]) / level.step[axis]);
  return [Math.max(first, 0), Math.min(last, level.nodes - 1)];
}

function addGaussian(level, x, y, narrow, reach, weight, along) {
  const { nodes, sums, low, step } = level;
  const radius = Math.sqrt(reach / narrow);
  const [left, right] = nodeRange(level, 0, x, radius);
  const [bottom, top] = nodeRange(level, 1, y, radius);
  // The kernel is a product, so one exponential for each row and column of nodes will do.
  for (let i = left; i <= right; i++) {
    along[i] = Math.exp(-0.5 * narrow * (low[0] + i * step[0] - x) ** 2);
  }
  for (let j = bottom; j <= top; j++) {
    const w = weight * Math.exp(-0.5 * narrow * (low[1] + j * step[1] - y) ** 2);
    const row = j * nodes;
    for (let i = left; i <= right; i++) sums[row + i] += w * along[i];
  }
}

function addCompact(level, x, y, narrow, height, weight, power, along) {
  const { nodes, sums, low, step } = level;
  const [bottom, top] = nodeRange(level, 1, y, Math.sqrt(height / narrow));
  const [left, right] = nodeRange(level, 0, x, Math.sqrt(height / narrow));
  for (let i = left; i <= right; i++) along[i] = narrow * (low[0] + i * step[0] - x) ** 2;
  for (let j = bottom; j <= top; j++) {
    const inner = height - narrow * (low[1] + j * step[1] - y) ** 2;
    const row = j * nodes;
    for (let i = left; i <= right; i++) {
      const rest = inner - along[i];
      if (rest <= 0) continue;
      const factor = power === 1 ? rest : power === 2 ? rest * rest : rest * rest * rest;
      sums[row + i] += weight * factor;
    }
  }
}

/** Weights of six nodes at -2 … 3 for a place t between nodes 0 and 1 (Lagrange). */
function sixPointWeights(t) {
  const weights = new Float64Array(6);
  for (let k = -2; k <= 3; k++) {
    let weight = 1;
    for (let other = -2; other <= 3; other++) {
      if (other !== k) weight *= (t - other) / (k - other);
    }
    weights[k + 2] = weight;
  }
  return weights;
}

function addInterpolated(level, size, grid) {
  const { stride, nodes, sums } = level;
  if (stride === 1) {
    for (let at = 0; at < grid.length; at++) grid[at] += sums[at];
    return;
  }
  const phases = Array.from({ length: stride }, (_, k) => sixPointWeights(k / stride));
  const wide = new Float64Array(nodes * size);
  for (let row = 0; row < nodes; row++) {
    for (let i = 0; i < size; i++) {
      const w = phases[i % stride];
      const from = row * nodes + Math.floor(i / stride);
      let total = 0;
      for (let k = 0; k < 6; k++) total += w[k] * (sums[from + k] ?? 0);
      wide[row * size + i] = total;
    }
  }
  for (let j = 0; j < size; j++) {
    const w = phases[j % stride];
    for (let k = 0; k < 6; k++) {
      const from = (Math.floor(j / stride) + k) * size;
      for (let i = 0; i < size; i++) grid[j * size + i] += w[k] * wide[from + i];
    }
  }
}

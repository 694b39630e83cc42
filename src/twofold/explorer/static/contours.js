// Lines of equal density on a grid, by marching squares (Maple 2003), and paths to draw them.

/**
 * Lines along which a grid takes a value, as polylines in grid coordinates.
 *
 * Cells are squares of four neighbouring nodes. An ambiguous cell (two opposite corners above) is
 * settled by the mean of its corners. Nodes that equal the level count as above it.
 *
 * @param {ArrayLike<number>} grid row-major, node (column, row) at row * width + column; finite
 * @param {number} width nodes in a row
 * @param {number} height rows
 * @param {number} level
 * @returns {Array<{points: Float64Array, isClosed: boolean}>} points x0, y0, x1, y1, ...; the end of a
 *   closed line is not repeated
 */
export function contourLines(grid, width, height, level) {
  const { ends, starts } = crossings(grid, width, height, level);
  const lines = [];
  // Open lines first, from the edges where they begin; what is left over is closed.
  for (const edge of ends.keys()) if (!starts.has(edge)) lines.push(followLine(ends, edge));
  while (ends.size) lines.push(followLine(ends, ends.keys().next().value));
  return lines.map(({ edges, isClosed }) => ({ points: edgePoints(edges, grid, width, level), isClosed }));
}

/**
 * Outlines of the region at or above a level, all closed: where it reaches the edge of the grid, the
 * outline follows that edge.
 * @returns {Float64Array[]} rings in grid coordinates, to be filled with the even-odd rule
 */
export function contourRings(grid, width, height, level) {
  const wide = width + 2;
  const padded = new Float64Array(wide * (height + 2));
  // Just outside the edge and just below the level in effect: the crossing falls onto the edge itself.
  padded.fill(level - 1e12 * (Math.abs(level) + 1));
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) padded[(row + 1) * wide + column + 1] = grid[row * width + column];
  }
  return contourLines(padded, wide, height + 2, level).map(({ points }) => points.map((value) => value - 1));
}

/** Levels of a map without relief would follow its noise: each must be so many times the one before. */
const LEAST_RATIO = 1.12;

/**
 * Levels that enclose the given shares of all mass: a line is around the densest places that together
 * hold so much.
 * @param {Float64Array} grid density at nodes
 * @param {number[]} shares ascending, between 0 and 1
 * @returns {number[]} descending; those that hardly differ from the one before are left out
 */
export function enclosingLevels(grid, shares) {
  const sorted = Float64Array.from(grid).sort().reverse();
  const total = sorted.reduce((sum, value) => sum + value, 0);
  const levels = [];
  let mass = 0;
  let at = 0;
  for (const share of shares) {
    while (at < sorted.length && mass < share * total) mass += sorted[at++];
    const level = sorted[Math.max(0, at - 1)];
    if (level > 0 && level * LEAST_RATIO <= (levels.at(-1) ?? sorted[0])) levels.push(level);
  }
  return levels;
}

/**
 * A square grid smoothed by a Gaussian.
 * @param {Float64Array} grid @param {number} size nodes along a side
 * @param {number[]} sigma its width in nodes, along rows and columns
 */
export function blurredGrid(grid, size, sigma) {
  const across = blurredLines(grid, size, gaussianWeights(sigma[0], size), 1, size);
  return blurredLines(across, size, gaussianWeights(sigma[1], size), size, 1);
}

/** Half of the weights, the middle first; they sum to 1 with the other half. */
function gaussianWeights(sigma, size) {
  const count = Math.min(size, Math.ceil(3 * sigma) + 1);
  const weights = Float64Array.from({ length: count }, (_, k) => Math.exp(-0.5 * (k / (sigma || 1)) ** 2));
  const total = weights.reduce((sum, weight) => sum + 2 * weight, -weights[0]);
  return weights.map((weight) => weight / total);
}

/** Smooth along lines whose nodes are `step` apart; the lines are `gap` apart. Beyond the edge is nothing. */
function blurredLines(grid, size, weights, step, gap) {
  const smooth = new Float64Array(grid.length);
  const reach = weights.length - 1;
  const line = new Float64Array(size + 2 * reach);
  for (let number = 0; number < size; number++) {
    for (let k = 0; k < size; k++) line[reach + k] = grid[number * gap + k * step];
    for (let k = 0; k < size; k++) {
      let sum = weights[0] * line[reach + k];
      for (let off = 1; off <= reach; off++) sum += weights[off] * (line[reach + k - off] + line[reach + k + off]);
      smooth[number * gap + k * step] = sum;
    }
  }
  return smooth;
}

/** Logarithms of a density grid; zero becomes a low finite value, so that lines stay smooth near it. */
export function logGrid(grid, least) {
  return Float64Array.from(grid, (value) => Math.log(Math.max(value, least)));
}

/**
 * From edge to edge through every cell the line crosses, walking with the higher side on the right.
 *
 * An edge is numbered by its lower node: 2 * node is the edge to the next column, 2 * node + 1 to the
 * next row. Each edge is left at most once and reached at most once, so two maps hold the lines.
 */
function crossings(grid, width, height, level) {
  const ends = new Map();
  const starts = new Set();
  const link = (from, to) => {
    ends.set(from, to);
    starts.add(to);
  };
  for (let row = 0; row + 1 < height; row++) {
    for (let column = 0; column + 1 < width; column++) {
      const node = row * width + column;
      const a = grid[node];
      const b = grid[node + 1];
      const c = grid[node + width + 1];
      const d = grid[node + width];
      const kind = (a >= level) + 2 * (b >= level) + 4 * (c >= level) + 8 * (d >= level);
      if (kind === 0 || kind === 15) continue;
      const isHigh = (a + b + c + d) / 4 >= level;
      linkCell(kind, isHigh, { south: 2 * node, north: 2 * (node + width), west: 2 * node + 1, east: 2 * (node + 1) + 1 }, link);
    }
  }
  return { ends, starts };
}

/** Corners are a (west, south), b (east, south), c (east, north), d (west, north). */
function linkCell(kind, isHigh, { south, north, west, east }, link) {
  switch (kind) {
    case 1: return link(west, south);
    case 2: return link(south, east);
    case 3: return link(west, east);
    case 4: return link(east, north);
    case 6: return link(south, north);
    case 7: return link(west, north);
    case 8: return link(north, west);
    case 9: return link(north, south);
    case 11: return link(north, east);
    case 12: return link(east, west);
    case 13: return link(east, south);
    case 14: return link(south, west);
    case 5: return isHigh ? (link(west, north), link(east, south)) : (link(west, south), link(east, north));
    default: return isHigh ? (link(south, west), link(north, east)) : (link(south, east), link(north, west));
  }
}

/** Take one line out of the map of links. */
function followLine(ends, first) {
  const edges = [first];
  let edge = first;
  while (ends.has(edge)) {
    const next = ends.get(edge);
    ends.delete(edge);
    if (next === first) return { edges, isClosed: true };
    edges.push(next);
    edge = next;
  }
  return { edges, isClosed: false };
}

function edgePoints(edges, grid, width, level) {
  const points = new Float64Array(2 * edges.length);
  edges.forEach((edge, k) => {
    const node = Math.floor(edge / 2);
    const isUpward = edge % 2 === 1;
    const from = grid[node];
    const to = grid[isUpward ? node + width : node + 1];
    const share = (level - from) / (to - from);
    points[2 * k] = (node % width) + (isUpward ? 0 : share);
    points[2 * k + 1] = Math.floor(node / width) + (isUpward ? share : 0);
  });
  return points;
}

/**
 * Add a smooth line to a path: a quadratic B-spline, whose control points are those of the line.
 * It stays within the line's corners, so neighbouring levels still do not cross.
 * @param {Path2D} path
 * @param {Float64Array} points
 * @param {boolean} isClosed
 * @param {(x: number, y: number) => number[]} place from grid coordinates to those of the path
 */
export function addSmoothLine(path, points, isClosed, place) {
  const n = points.length / 2;
  const at = (k) => place(points[2 * (k % n)], points[2 * (k % n) + 1]);
  const middle = (p, q) => [(p[0] + q[0]) / 2, (p[1] + q[1]) / 2];
  if (n < 2) return;
  const first = isClosed ? middle(at(0), at(1)) : at(0);
  path.moveTo(first[0], first[1]);
  const last = isClosed ? n : n - 2;
  for (let k = 1; k <= last; k++) {
    const corner = at(k);
    const next = middle(corner, at(k + 1));
    path.quadraticCurveTo(corner[0], corner[1], next[0], next[1]);
  }
  if (isClosed) path.closePath();
  else path.lineTo(...at(n - 1));
}

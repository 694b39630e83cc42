/**
 * Where on the map the name of each class is written: where most of its rows are.
 */

/** Cells along a side in which the rows of a class are counted. */
const NAME_CELLS = 28;

/** A name belongs where this share of the rows have it: classes that are mixed everywhere have no place. */
const LEAST_NAMED_SHARE = 0.4;

/** More classes than this have no names on the map. */
const MOST_NAMED_CLASSES = 60;

/**
 * @param {Float32Array} positions (n, 2)
 * @param {{kind: string, codes: ArrayLike<number>, values: string[]}} coloring by classes; others have no names
 * @param {Uint8Array|null} mask 0 for hidden rows
 * @returns {{text: string, code: number, x: number, y: number, count: number}[]} those with most rows first
 */
export function classPlaces(positions, coloring, mask) {
  if (coloring.kind !== "category" || coloring.values.length > MOST_NAMED_CLASSES) return [];
  const n = positions.length / 2;
  const cellOf = cellFinder(positions);
  const counts = coloring.values.map(() => new Uint32Array(NAME_CELLS * NAME_CELLS));
  const totals = coloring.values.map(() => 0);
  for (let i = 0; i < n; i++) {
    if ((mask && !mask[i]) || !counts[coloring.codes[i]]) continue;
    counts[coloring.codes[i]][cellOf(i)]++;
    totals[coloring.codes[i]]++;
  }
  const peaks = counts.map(fullestCell);
  const sums = coloring.values.map(() => [0, 0, 0]);
  for (let i = 0; i < n; i++) {
    const code = coloring.codes[i];
    if ((mask && !mask[i]) || !counts[code] || !areNeighbors(cellOf(i), peaks[code])) continue;
    sums[code][0] += positions[2 * i];
    sums[code][1] += positions[2 * i + 1];
    sums[code][2]++;
  }
  const here = (code) => counts.reduce((sum, own) => sum + around(own, peaks[code]), 0);
  return coloring.values
    .map((text, code) => ({ text, code, x: sums[code][0] / sums[code][2], y: sums[code][1] / sums[code][2], count: totals[code] }))
    .filter(({ code, count }) => count > 0 && sums[code][2] >= LEAST_NAMED_SHARE * here(code))
    .sort((a, b) => b.count - a.count);
}

/** A function from the number of a row to that of its cell. */
function cellFinder(positions) {
  const low = [Infinity, Infinity];
  const high = [-Infinity, -Infinity];
  for (let k = 0; k < positions.length; k++) {
    low[k % 2] = Math.min(low[k % 2], positions[k]);
    high[k % 2] = Math.max(high[k % 2], positions[k]);
  }
  const step = (value, d) => Math.min(NAME_CELLS - 1, Math.floor((NAME_CELLS * (value - low[d])) / (high[d] - low[d] || 1)));
  return (i) => NAME_CELLS * step(positions[2 * i + 1], 1) + step(positions[2 * i], 0);
}

/** The cell with most rows in it and around it. */
function fullestCell(counts) {
  let best = 0;
  let most = -1;
  for (let cell = 0; cell < counts.length; cell++) {
    if (!counts[cell]) continue;
    const sum = around(counts, cell);
    if (sum > most) [best, most] = [cell, sum];
  }
  return best;
}

/** How many there are in a cell and those around it. */
function around(counts, cell) {
  let sum = 0;
  for (const up of [-NAME_CELLS, 0, NAME_CELLS]) {
    for (const side of [-1, 0, 1]) if (areNeighbors(cell, cell + up + side)) sum += counts[cell + up + side] ?? 0;
  }
  return sum;
}

function areNeighbors(a, b) {
  const across = (a % NAME_CELLS) - (b % NAME_CELLS);
  const down = Math.floor(a / NAME_CELLS) - Math.floor(b / NAME_CELLS);
  return Math.abs(across) <= 1 && Math.abs(down) <= 1;
}

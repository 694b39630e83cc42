/**
 * What stands out at a place or in some rows: the largest standardised differences,
 *
 *   z_j = (here_j - there_j) / σ_j
 *
 * with σ_j the standard deviation of feature j over all rows, as in twofold.standing_out.
 */

/** Standardised differences, 0 for features that never change. @returns {Float64Array} (D,) */
export function differences(here, there, deviation) {
  return Float64Array.from(here, (value, j) => {
    const off = deviation[j] > 0 ? (value - there[j]) / deviation[j] : 0;
    return Number.isNaN(off) ? 0 : off;
  });
}

/**
 * Mean and standard deviation of each feature over some rows, and the mean over all others. Codes are
 * summed, not values, from the usual one on: there may be many.
 * @param {object} atlas
 * @param {ArrayLike<number>} rows
 * @returns {{mean: Float64Array, deviation: Float64Array, rest: Float64Array, count: number, restCount: number}|null}
 *   null if the page holds the data of none of them; NaN where nothing is known
 */
export function groupMoments(atlas, rows) {
  const { D, n, rowCodes, missing, header } = atlas;
  if (!header.rows.has_data) return null;
  const { low, step } = header.quantised;
  const isChosen = new Uint8Array(n);
  for (const row of rows) isChosen[row] = 1;
  const usual = Float64Array.from(low, (from, j) => (step[j] > 0 ? (header.usual.mean[j] - from) / step[j] : 0));
  // Of the others and of the chosen: how many are known, their sum and their squares.
  const [known, sums, squares] = [0, 1, 2].map(() => [new Float64Array(D), new Float64Array(D)]);
  const counts = [0, 0];
  for (let i = 0; i < n; i++) {
    const place = atlas.codesOfRow(i);
    if (place < 0) continue;
    const side = isChosen[i];
    const [k, s, t] = [known[side], sums[side], squares[side]];
    counts[side]++;
    for (let j = 0, at = place * D; j < D; j++, at++) {
      if (rowCodes[at] === missing) continue;
      const off = rowCodes[at] - usual[j];
      k[j]++;
      s[j] += off;
      t[j] += off * off;
    }
  }
  if (!counts[1]) return null;
  const mean = (side) => sums[side].map((sum, j) => low[j] + step[j] * (usual[j] + sum / known[side][j]));
  const deviation = squares[1].map((square, j) => {
    const count = known[1][j];
    return step[j] * Math.sqrt(Math.max(0, square / count - (sums[1][j] / count) ** 2));
  });
  return { mean: mean(1), deviation, rest: mean(0), count: counts[1], restCount: counts[0] };
}

/** Two levels are as far from usual as each other, up to rounding: the one above it is named. */
const ABOVE_FIRST = 1.001;

/** Ways to sort what stands out: from the difference to the key, largest first. */
export const STANDING_ORDERS = {
  size: { title: "Most different", key: Math.abs },
  higher: { title: "Higher here", key: (off) => off },
  lower: { title: "Lower here", key: (off) => -off },
};

/**
 * Features in order of how they stand out. Of the features of one column of a mixed table, the first counts.
 * @param {Float64Array} off differences
 * @param {keyof STANDING_ORDERS} order
 * @param {Int32Array|null} columnOf the column of each feature, -1 for features that mean nothing alone
 * @returns {number[]}
 */
export function inOrderOfStanding(off, order, columnOf = null) {
  const { key } = STANDING_ORDERS[order];
  const keys = off.map((value) => key(value) * (columnOf && value > 0 ? ABOVE_FIRST : 1));
  const sorted = [...off.keys()].sort((a, b) => keys[b] - keys[a] || a - b);
  if (!columnOf) return sorted;
  const seen = new Set([-1]);
  return sorted.filter((j) => !seen.has(columnOf[j]) && seen.add(columnOf[j]));
}

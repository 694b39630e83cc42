// Weighted sums of rows of codes: the loops that take the time when the regression is evaluated.
//
// Codes stay the small integers they are stored as; what a code means is applied to the sums. A
// missing entry adds nothing to a sum, and its weight is taken from the feature's mass.

import { SimdTable } from "./simd_sums.js";

// Smaller tables are summed quickly enough without a copy.
const LEAST_FOR_SIMD = 1e6;
// Less than this left of a mass of 1 has lost too many digits.
const LEAST_DIFFERENCE = 1e-6;

export class RowSums {
  /**
   * @param {Uint16Array|Uint8Array} codes (m, D)
   * @param {number|null} missing the code of missing entries
   * @param {boolean} [trySimd] false to do without
   */
  constructor(codes, m, D, missing, trySimd = true) {
    this.D = D;
    this.original = codes;
    this.codes = codes;
    this.missing = missing;
    this.firstGap = null;
    if (missing !== null) this.listGaps(codes, m, missing);
    this.simd = trySimd && m * D >= LEAST_FOR_SIMD ? simdTableOrNull(this.codes, m, D) : null;
    this.hasGaps = this.firstGap !== null;
  }

  /** List the missing entries row by row, and set their codes to 0 in a copy. */
  listGaps(codes, m, missing) {
    const { D } = this;
    let total = 0;
    for (let at = 0; at < codes.length; at++) if (codes[at] === missing) total++;
    if (total === 0) return;
    this.codes = codes.slice();
    this.firstGap = new Int32Array(m + 1);
    this.gaps = new (D <= 65536 ? Uint16Array : Int32Array)(total);
    let count = 0;
    for (let i = 0, at = 0; i < m; i++) {
      for (let j = 0; j < D; j++, at++) {
        if (codes[at] !== missing) continue;
        this.codes[at] = 0;
        this.gaps[count++] = j;
      }
      this.firstGap[i + 1] = count;
    }
  }

  /** Add Σ w_k row_k to `sums` (D,); the weights must not be much larger than 1. */
  addRows(rows, weights, count, sums) {
    if (this.simd !== null) this.simd.addRows(rows, weights, count, sums);
    else addRowsOfCodes(this.codes, this.D, rows, weights, count, sums);
  }

  /** The same in double precision, for sums of which little may be left in the end. */
  addRowsInDouble(rows, weights, count, sums) {
    addRowsOfCodes(this.codes, this.D, rows, weights, count, sums);
  }

  /**
   * Take the weights of rows, which sum to 1, off the masses (D,) of features that they miss.
   * `sums` are made anew where a difference would be inexact.
   */
  takeGaps(rows, weights, count, sums, masses) {
    const { firstGap, gaps } = this;
    for (let k = 0; k < count; k++) {
      const stop = firstGap[rows[k] + 1];
      for (let at = firstGap[rows[k]]; at < stop; at++) masses[gaps[at]] -= weights[k];
    }
    for (let j = 0; j < masses.length; j++) {
      if (masses[j] < LEAST_DIFFERENCE) this.addColumnAnew(j, rows, weights, count, sums, masses);
    }
  }

  addColumnAnew(j, rows, weights, count, sums, masses) {
    sums[j] = masses[j] = 0;
    for (let k = 0; k < count; k++) {
      const code = this.original[rows[k] * this.D + j];
      if (code === this.missing) continue;
      sums[j] += weights[k] * code;
      masses[j] += weights[k];
    }
  }
}

function simdTableOrNull(codes, m, D) {
  try {
    return new SimdTable(codes, m, D);
  } catch {
    // Not every page may compile code, and not every browser has vectors.
    return null;
  }
}

function addRowsOfCodes(codes, D, rows, weights, count, sums) {
  let k = 0;
  // Eight rows at a time: the sums are loaded and stored an eighth as often.
  for (; k + 8 <= count; k += 8) {
    const w0 = weights[k], w1 = weights[k + 1], w2 = weights[k + 2], w3 = weights[k + 3];
    const w4 = weights[k + 4], w5 = weights[k + 5], w6 = weights[k + 6], w7 = weights[k + 7];
    const a0 = rows[k] * D, a1 = rows[k + 1] * D, a2 = rows[k + 2] * D, a3 = rows[k + 3] * D;
    const a4 = rows[k + 4] * D, a5 = rows[k + 5] * D, a6 = rows[k + 6] * D, a7 = rows[k + 7] * D;
    for (let j = 0; j < D; j++) {
      sums[j] +=
        w0 * codes[a0 + j] + w1 * codes[a1 + j] + (w2 * codes[a2 + j] + w3 * codes[a3 + j]) +
        (w4 * codes[a4 + j] + w5 * codes[a5 + j] + (w6 * codes[a6 + j] + w7 * codes[a7 + j]));
    }
  }
  for (; k < count; k++) {
    const w = weights[k];
    const a = rows[k] * D;
    for (let j = 0; j < D; j++) sums[j] += w * codes[a + j];
  }
}

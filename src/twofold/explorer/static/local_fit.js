// Local polynomial regression as weights: what a degree above 0 makes of the kernel's weights.
//
// Around a place x a polynomial is fitted to the references by weighted least squares, and its value
// at x is a weighted sum of their rows, with weights b_i = ŵ_i g·ξ_i that sum to 1:
//
//   ξ_i = (1, δ_i, δ_i², δ_ia δ_ib …),  δ_i = x_i - x,  C = Σ ŵ_i ξ_i ξ_iᵀ + ridge,  g = C⁻¹ e_0
//
// The ridge is ρ (1 + Σ ŵ_i ||δ_i||²)^degree of the term, and none for the constant.

// The same number as in the model's own fit.
const FIT_RIDGE = 1e-7;

/**
 * The terms of a polynomial in q variables: pairs of variables, -1 for a 1.
 * @param {0|1|2|"2-axes"} degree
 * @returns {number[][]}
 */
export function polynomialTerms(degree, q) {
  const terms = [[-1, -1]];
  if (degree !== 0) for (let a = 0; a < q; a++) terms.push([a, -1]);
  if (degree === 2 || degree === "2-axes") for (let a = 0; a < q; a++) terms.push([a, a]);
  if (degree === 2) {
    for (let a = 0; a < q; a++) for (let b = a + 1; b < q; b++) terms.push([a, b]);
  }
  return terms;
}

export class LocalFit {
  constructor(degree, q) {
    const terms = polynomialTerms(degree, q);
    this.q = q;
    this.p = terms.length;
    this.first = Int32Array.from(terms, (term) => term[0]);
    this.second = Int32Array.from(terms, (term) => term[1]);
    this.matrix = new Float64Array(this.p * this.p);
    this.g = new Float64Array(this.p);
    this.count = 0;
    this.makeRoom(64);
  }

  /** Make room for so many references; what belongs to one term lies side by side. */
  makeRoom(count) {
    this.room = count;
    this.xi = new Float64Array(count * this.p);
    this.products = new Float64Array((count * this.p * (this.p + 1)) / 2);
  }

  /**
   * Write ξ_i and ω_i F_i ξ_i ξ_iᵀ of the references that the next fits are to.
   * @param {ArrayLike<number>} x the place
   * @param {Float64Array} points (n, q)
   * @param {Int32Array} index which points
   * @param {Float64Array} mass their kernel weights times their own
   * @param {number} count how many
   */
  around(x, points, index, mass, count) {
    if (count > this.room) this.makeRoom(2 * count);
    const { q, p, first, second, room, xi, products } = this;
    this.count = count;
    this.mass = mass;
    for (let k = 0; k < count; k++) {
      xi[k] = 1;
      for (let d = 0; d < q; d++) xi[(d + 1) * room + k] = points[index[k] * q + d] - x[d];
    }
    for (let a = q + 1; a < p; a++) {
      const one = (first[a] + 1) * room;
      const other = (second[a] + 1) * room;
      for (let k = 0; k < count; k++) xi[a * room + k] = xi[one + k] * xi[other + k];
    }
    for (let a = 0, to = 0; a < p; a++) {
      for (let c = 0; c <= a; c++, to += room) {
        for (let k = 0; k < count; k++) {
          products[to + k] = mass[k] * xi[a * room + k] * xi[c * room + k];
        }
      }
    }
  }

  /**
   * Write g of a fit.
   * @param {Float64Array|null} present 1 for references that take part, 0 for others; null for all
   * @returns {number} the total weight of those that do
   */
  solve(present) {
    const { p, matrix, room } = this;
    const total = this.sumOfProducts(0, present);
    if (!(total > 0)) return 0;
    for (let a = 0, from = 0; a < p; a++) {
      for (let c = 0; c <= a; c++, from += room) {
        matrix[a * p + c] = this.sumOfProducts(from, present) / total;
      }
    }
    let far = 1;
    for (let a = 1; a <= this.q; a++) far += matrix[a * p + a];
    for (let a = 1; a < p; a++) {
      matrix[a * p + a] += FIT_RIDGE * (this.second[a] < 0 ? far : far * far);
    }
    this.solveForConstant();
    return total;
  }

  /** Write the weights b of the references; false where none has weight. */
  weights(present, b) {
    const { p, xi, g, count, room, mass } = this;
    const total = this.solve(present);
    if (total === 0) return false;
    for (let k = 0; k < count; k++) b[k] = g[0];
    for (let a = 1; a < p; a++) {
      for (let k = 0; k < count; k++) b[k] += g[a] * xi[a * room + k];
    }
    for (let k = 0; k < count; k++) b[k] *= (mass[k] / total) * (present === null ? 1 : present[k]);
    return true;
  }

  /** Write ω_i F_i times one entry of ξ_i: the weights of a moment of the rows. */
  momentWeights(a, out) {
    const { xi, room, mass, count } = this;
    for (let k = 0; k < count; k++) out[k] = mass[k] * xi[a * room + k];
  }

  sumOfProducts(from, present) {
    const { products, count } = this;
    let even = 0;
    let odd = 0;
    let k = 0;
    if (present === null) {
      for (; k < count; k++) even += products[from + k];
      return even;
    }
    // Two sums at once: an addition need not wait for the one before.
    for (; k + 1 < count; k += 2) {
      even += products[from + k] * present[k];
      odd += products[from + k + 1] * present[k + 1];
    }
    return k < count ? even + odd + products[from + k] * present[k] : even + odd;
  }

  /** Write g = C⁻¹ e_0 by Cholesky; only the lower half of C is read, and overwritten. */
  solveForConstant() {
    const { p, matrix: L, g } = this;
    for (let a = 0; a < p; a++) {
      for (let c = 0; c <= a; c++) {
        let rest = L[a * p + c];
        for (let k = 0; k < c; k++) rest -= L[a * p + k] * L[c * p + k];
        // Rounding must not make the last of nearly dependent terms negative.
        L[a * p + c] = a === c ? Math.sqrt(Math.max(rest, 0.5 * FIT_RIDGE)) : rest / L[c * p + c];
      }
    }
    for (let a = 0; a < p; a++) {
      let rest = a === 0 ? 1 : 0;
      for (let k = 0; k < a; k++) rest -= L[a * p + k] * g[k];
      g[a] = rest / L[a * p + a];
    }
    for (let a = p - 1; a >= 0; a--) {
      let rest = g[a];
      for (let k = a + 1; k < p; k++) rest -= L[k * p + a] * g[k];
      g[a] = rest / L[a * p + a];
    }
  }
}

/**
 * Columns of a table of codes that are missing in the same rows, as lists of columns.
 * @returns {Int32Array[]}
 */
export function columnPatterns(codes, m, D, missing) {
  if (missing === null) return [Int32Array.from({ length: D }, (_, j) => j)];
  // Two sums of random numbers over the missing rows tell patterns apart: 64 bits in all.
  const left = new Int32Array(D);
  const right = new Int32Array(D);
  let state = 1;
  for (let i = 0; i < m; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    const one = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d);
    const other = Math.imul(state ^ (state >>> 13), 0x297a2d39) ^ (i << 7);
    for (let j = 0, at = i * D; j < D; j++, at++) {
      if (codes[at] === missing) {
        left[j] = (left[j] + one) | 0;
        right[j] = (right[j] + other) | 0;
      }
    }
  }
  const groups = new Map();
  for (let j = 0; j < D; j++) {
    const key = `${left[j]},${right[j]}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(j);
  }
  return Array.from(groups.values(), (columns) => Int32Array.from(columns));
}

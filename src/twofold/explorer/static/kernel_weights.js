// The radial kernels F(s) of the squared distance s, with F(0) = 1, and which references count.
//
// For the Gaussian a reference counts if its weight is at least `cutoff` of the nearest one's;
// the other kernels end at s = 1.

// Places whose nearest reference weighs at least exp(-2) are not shifted: see `Gathering`.
const NEAR_SQUARE = 4;

/** The squared distance beyond which a reference may be left out. */
export function kernelReach(kernel, cutoff) {
  return kernel === "gaussian" ? -2 * Math.log(cutoff) : 1;
}

/** The distance at which half of a kernel's weight is gone. */
export function kernelHalfWidth(kernel) {
  if (kernel === "gaussian") return Math.sqrt(2 * Math.LN2);
  const power = { epanechnikov: 1, quartic: 2, triweight: 3 }[kernel];
  return Math.sqrt(1 - 0.5 ** (1 / power));
}

/** Overwrite the first `count` squared distances with weights. */
export function weighSquares(kernel, s, count) {
  if (kernel === "gaussian") {
    for (let i = 0; i < count; i++) s[i] = Math.exp(-0.5 * s[i]);
  } else if (kernel === "epanechnikov") {
    for (let i = 0; i < count; i++) s[i] = Math.max(1 - s[i], 0);
  } else if (kernel === "quartic") {
    for (let i = 0; i < count; i++) s[i] = Math.max(1 - s[i], 0) ** 2;
  } else if (kernel === "triweight") {
    for (let i = 0; i < count; i++) {
      const rest = Math.max(1 - s[i], 0);
      s[i] = rest * rest * rest;
    }
  } else {
    throw new Error(`The kernel must be one of four; the file names "${kernel}".`);
  }
}

/** The references in reach of a place, and their weights; the arrays are used again and again. */
export class Gathering {
  /**
   * @param {LatentIndex} index of the references, in units of the widest kernel
   * @param {string} kernel
   * @param {number} cutoff
   * @param {Float64Array|null} shrink (widest / own width)², in the index's order
   */
  constructor(index, kernel, cutoff, shrink) {
    this.references = index;
    this.kernel = kernel;
    this.shrink = shrink;
    this.reach = kernelReach(kernel, cutoff);
    this.index = new Int32Array(index.n);
    this.weight = new Float64Array(index.n);
    this.count = 0;
    /** The true weights are `weight * F(shift)`: far from all references they would underflow. */
    this.shift = 0;
  }

  /** Gather around a scaled place. */
  around(x) {
    this.shift = 0;
    if (this.kernel === "gaussian") {
      this.lookFarEnough(x);
    } else {
      this.count = this.references.collect(x, this.reach, this.index, this.weight, this.shrink);
    }
    weighSquares(this.kernel, this.weight, this.count);
  }

  /** Collect all that weigh at least `cutoff` of the nearest, however far that is. */
  lookFarEnough(x) {
    const s = this.weight;
    let limit = this.reach + NEAR_SQUARE;
    for (;;) {
      this.count = this.references.collect(x, limit, this.index, s, this.shrink);
      let nearest = Infinity;
      for (let p = 0; p < this.count; p++) if (s[p] < nearest) nearest = s[p];
      if (limit >= nearest + this.reach || this.count === this.references.n || limit === Infinity) {
        if (nearest > NEAR_SQUARE && nearest < Infinity) this.shift = nearest;
        break;
      }
      limit = nearest < Infinity ? nearest + this.reach : 4 * limit;
    }
    if (this.shift > 0) for (let p = 0; p < this.count; p++) s[p] -= this.shift;
  }
}

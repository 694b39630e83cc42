/**
 * How often values occur: bars of the rows that pass the other filters, before pale ones of all rows.
 */

const HISTOGRAM_BARS = 30;

/** Bars are drawn in a box of this height. */
const HISTOGRAM_HEIGHT = 40;

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {ArrayLike<number>} values @param {[number, number]} ends @param {boolean} isLog
 * @param {Uint8Array|null} mask
 * @returns {Uint32Array} how many values there are in each of equal parts
 */
export function binCounts(values, [low, high], isLog, mask, bars = HISTOGRAM_BARS) {
  const counts = new Uint32Array(bars);
  const from = isLog ? Math.log(low) : low;
  const width = (isLog ? Math.log(high) : high) - from || 1;
  for (let i = 0; i < values.length; i++) {
    if (mask && !mask[i]) continue;
    const share = ((isLog ? Math.log(values[i]) : values[i]) - from) / width;
    if (share >= 0 && share <= 1) counts[Math.min(bars - 1, Math.floor(share * bars))]++;
  }
  return counts;
}

/** Bars as a path of an SVG image. */
function barsPath(counts, most) {
  let path = "";
  counts.forEach((count, k) => {
    // A single row must be seen beside a thousand.
    const height = count ? Math.max(1.5, (HISTOGRAM_HEIGHT * count) / most) : 0;
    if (height) path += `M${k + 0.08} ${HISTOGRAM_HEIGHT}v${-height}h0.84v${height}z`;
  });
  return path;
}

export class Histogram {
  /** @param {ArrayLike<number>} values @param {[number, number]} ends @param {boolean} isLog */
  constructor(values, ends, isLog) {
    this.binned = (mask) => binCounts(values, ends, isLog, mask);
    this.all = this.binned(null);
    this.most = Math.max(1, ...this.all);
    this.element = document.createElementNS(SVG, "svg");
    this.element.setAttribute("class", "tf-histogram");
    this.element.setAttribute("viewBox", `0 0 ${HISTOGRAM_BARS} ${HISTOGRAM_HEIGHT}`);
    this.element.setAttribute("preserveAspectRatio", "none");
    this.element.setAttribute("aria-hidden", "true");
    this.paths = ["tf-histogram-all", "tf-histogram-passing"].map((name) => {
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("class", name);
      this.element.append(path);
      return path;
    });
    this.paths[0].setAttribute("d", barsPath(this.all, this.most));
    this.show(null);
  }

  /** @param {Uint8Array|null} mask rows that pass the other filters */
  show(mask) {
    this.passing = mask ? this.binned(mask) : this.all;
    this.paths[1].setAttribute("d", barsPath(this.passing, this.most));
  }
}

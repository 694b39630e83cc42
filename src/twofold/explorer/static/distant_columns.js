// Columns that no reference near a place observes: the regression over the references that do.
//
// What weighs less than `cutoff` of the nearest reference is left out of sums. Where rows have gaps, the
// nearest reference that observes a column may lie so far behind the nearest of all that little of the
// column is left, or nothing. Such columns come from a regression of their own, as in the model. Kernels
// that end do without: what is out of their reach weighs nothing.

// The same number as in the model.
const THIN = 1e-2;

export class DistantColumns {
  /** @param {object} whole the regression over all references, at least one of which has a gap */
  constructor(whole) {
    this.whole = whole;
  }

  /** Find the columns that are observed together, and the share of all weight that observes them. */
  prepare() {
    const { atlas, missing } = this.whole;
    const { refCodes, refWeights, m, D } = atlas;
    const weightOf = (i) => (refWeights === null ? 1 : refWeights[i]);
    let total = 0;
    for (let i = 0; i < m; i++) total += weightOf(i);
    this.groupOf = new Int32Array(D);
    this.groups = this.whole.patterns().map((columns, group) => {
      const rows = [];
      let seen = 0;
      for (let i = 0; i < m; i++) {
        if (refCodes[i * D + columns[0]] === missing) continue;
        rows.push(i);
        seen += weightOf(i);
      }
      for (const j of columns) this.groupOf[j] = group;
      return { columns, rows, thin: rows.length < m ? THIN * (seen / total) : 0 };
    });
  }

  /** Whether too little of the weight at a place, the share `seen`, observes a column. */
  isThin(j, seen) {
    if (this.groups === undefined) this.prepare();
    const { rows, thin } = this.groups[this.groupOf[j]];
    return seen < thin && rows.length > 0;
  }

  /**
   * Write the columns that are thin at a place.
   * @param {ArrayLike<number>} x (q,)
   * @param {(j: number) => number} seenOf the share of the weight there that observes a column
   * @param {Float64Array} out (D,)
   */
  mend(x, seenOf, out) {
    if (this.groups === undefined) this.prepare();
    for (const group of this.groups) {
      if (!this.isThin(group.columns[0], seenOf(group.columns[0]))) continue;
      const found = this.regressionOf(group).at(x);
      group.columns.forEach((j, place) => { out[j] = found[place]; });
    }
  }

  /** One thin column at a place. */
  featureAt(x, j) {
    const group = this.groups[this.groupOf[j]];
    return this.regressionOf(group).featureAt(x, group.columns.indexOf(j));
  }

  /** The regression of a group of columns over the references that observe them. */
  regressionOf(group) {
    group.regression ??= new this.whole.constructor(this.atlasOf(group));
    return group.regression;
  }

  atlasOf({ columns, rows }) {
    const { header, refX, refCodes, refWeights, refWidths, q, D } = this.whole.atlas;
    const ofColumns = (values) => Array.from(columns, (j) => values[j]);
    const ofRows = (values) => (values === null ? null : values.constructor.from(rows, (i) => values[i]));
    const codes = new refCodes.constructor(rows.length * columns.length);
    const points = new refX.constructor(rows.length * q);
    rows.forEach((i, row) => {
      columns.forEach((j, column) => { codes[row * columns.length + column] = refCodes[i * D + j]; });
      points.set(refX.subarray(i * q, (i + 1) * q), row * q);
    });
    const { low, step } = header.quantised;
    const mean = ofColumns(header.regression.mean);
    return {
      header: {
        domain_threshold: 0,
        regression: { ...header.regression, mean, n: rows.length },
        quantised: { low: ofColumns(low), step: ofColumns(step), missing: null },
      },
      refX: points, refCodes: codes, refWeights: ofRows(refWeights), refWidths: ofRows(refWidths),
      m: rows.length, D: columns.length, q,
    };
  }
}

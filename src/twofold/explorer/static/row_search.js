/**
 * Finding rows by name or label, also among a million.
 *
 * All names are one text, each on a line of its own, so that the browser's own search runs through them.
 */

import { rowName } from "./row_names.js";

export class RowSearch {
  /** @param {object} atlas */
  constructor(atlas) {
    this.atlas = atlas;
  }

  /** Join the names, when the first search comes. */
  prepare() {
    if (this.text !== undefined) return;
    const { n } = this.atlas;
    let lines = this.atlas.names ?? Array.from({ length: n }, (_, i) => rowName(this.atlas, i));
    const text = lines.join("\n");
    let lower = text.toLowerCase();
    if (lower.length !== text.length) {
      // A few letters become two.
      lines = lines.map((line) => line.toLowerCase());
      lower = lines.join("\n");
    }
    this.starts = new Uint32Array(n + 1);
    for (let i = 0; i < n; i++) this.starts[i + 1] = this.starts[i] + lines[i].length + 1;
    this.text = `\n${lower}\n`;
  }

  /**
   * Rows whose name or category label fits the text: equal first, then names that begin with it, then the rest.
   * @param {string} text
   * @param {number} [most]
   * @returns {number[]} at most `most` rows
   */
  find(text, most = 12) {
    const wanted = text.toLowerCase();
    if (!wanted) return [];
    this.prepare();
    // "12" is also the whole name of "row 12".
    const whole = this.atlas.names ? [wanted] : [wanted, `row ${wanted}`];
    const labels = this.labelFits(wanted);
    // A label is shared by many rows, so it ranks behind a name of the same fit.
    const tiers = [
      () => whole.flatMap((name) => this.rowsWith(`\n${name}\n`, most)),
      () => [...this.rowsWith(`\n${wanted}`, most), ...this.rowsLabelled(labels, 0, most)],
      () => [...this.rowsWith(wanted, most), ...this.rowsLabelled(labels, 1, most)],
      () => this.rowsLabelled(labels, 2, most),
    ];
    const found = new Set();
    for (const tier of tiers) {
      if (found.size >= most) break;
      for (const row of tier().sort((a, b) => a - b)) found.add(row);
    }
    return [...found].slice(0, most);
  }

  /** The first rows whose line holds some text; a line break stands for the beginning or end of a name. */
  rowsWith(part, most) {
    const rows = [];
    let at = this.text.indexOf(part);
    while (at >= 0 && rows.length < most) {
      const row = this.rowAt(part.startsWith("\n") ? at : at - 1);
      rows.push(row);
      at = this.text.indexOf(part, this.starts[row + 1]);
    }
    return rows;
  }

  /** Whose name holds this place of the text. */
  rowAt(place) {
    let low = 0;
    let high = this.atlas.n - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= place) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** For each column of categories, how each value fits: 0 equal, 1 begins with, 2 contains, 3 does not. */
  labelFits(wanted) {
    return Object.values(this.atlas.labels)
      .filter((label) => label.kind === "category")
      .map((label) => ({
        codes: label.codes,
        fits: label.values.map((value) => labelFit(value.toLowerCase(), wanted)),
      }));
  }

  /** The first rows with a label of this fit. */
  rowsLabelled(labels, fit, most) {
    const rows = [];
    for (const { codes, fits } of labels) {
      if (!fits.includes(fit)) continue;
      let count = 0;
      for (let i = 0; i < codes.length && count < most; i++) {
        if (fits[codes[i]] !== fit) continue;
        rows.push(i);
        count++;
      }
    }
    return rows;
  }
}

function labelFit(value, wanted) {
  if (value === wanted) return 0;
  const at = value.indexOf(wanted);
  if (at === 0) return 1;
  return at > 0 ? 2 : 3;
}

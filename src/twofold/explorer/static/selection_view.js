/**
 * The rows chosen by lasso: how many, which labels, their mean, and their download.
 */

import { countOf, element, textButton } from "./elements.js";
import { commonLabels } from "./row_filters.js";

/**
 * Mean of some rows, missing values left out. Codes are summed: there may be many.
 * @returns {Float64Array|null} null when the page holds no data of these rows
 */
export function meanRow(atlas, rows) {
  const { D, rowCodes, missing } = atlas;
  const sums = new Float64Array(D);
  const counts = new Float64Array(D);
  if (!atlas.header.rows.has_data) return null;
  for (const row of rows) {
    const place = atlas.codesOfRow(row);
    if (place < 0) continue;
    for (let j = 0, at = place * D; j < D; j++, at++) {
      if (rowCodes[at] === missing) continue;
      sums[j] += rowCodes[at];
      counts[j] += 1;
    }
  }
  if (!counts.some((count) => count > 0)) return null;
  return sums.map((sum, j) => (counts[j] > 0 ? atlas.valueOfCode(0, j) + atlas.header.quantised.step[j] * (sum / counts[j]) : NaN));
}

export class SelectionView extends EventTarget {
  /** @param {object} atlas Fires "clear" and "download". */
  constructor(atlas) {
    super();
    this.atlas = atlas;
    this.rows = new Uint32Array(0);
    this.count = element("p", { class: "tf-selection-count", role: "status" });
    this.labels = element("div", { class: "tf-note" });
    this.element = element(
      "div",
      { class: "tf-selection" },
      this.count,
      this.labels,
      element(
        "div",
        { class: "tf-buttons" },
        textButton("Download CSV", () => this.dispatchEvent(new CustomEvent("download"))),
        textButton("Clear", () => this.dispatchEvent(new CustomEvent("clear")), {
          title: "Clear the selection (Escape)",
        }),
      ),
    );
  }

  /** @param {Uint32Array} rows */
  show(rows) {
    this.rows = rows;
    this.count.textContent = rows.length ? `${countOf(rows.length, "row")} selected` : "";
    this.labels.replaceChildren(...commonLabels(this.atlas, rows).map((line) => element("p", {}, line)));
  }
}

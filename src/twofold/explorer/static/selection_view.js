/**
 * The rows chosen by lasso: how many, which labels, their mean, and their download.
 */

import { countOf, element, textButton } from "./elements.js";
import { commonLabels } from "./row_filters.js";

/**
 * Mean of some rows, missing values left out. Codes are summed, not values: there may be many.
 * @returns {{values: Float64Array, count: number}|null} `count`: rows whose data the page holds; null if there are none
 */
export function meanRow(atlas, rows) {
  const { D, rowCodes, missing, header } = atlas;
  const { low, step } = header.quantised;
  const sums = new Float64Array(D);
  const counts = new Float64Array(D);
  let count = 0;
  for (let k = 0; k < rows.length && header.rows.has_data; k++) {
    const place = atlas.codesOfRow(rows[k]);
    if (place < 0) continue;
    count++;
    for (let j = 0, at = place * D; j < D; j++, at++) {
      if (rowCodes[at] === missing) continue;
      sums[j] += rowCodes[at];
      counts[j]++;
    }
  }
  return count ? { values: sums.map((sum, j) => low[j] + step[j] * (sum / counts[j])), count } : null;
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

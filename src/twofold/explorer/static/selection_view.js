/**
 * The selected rows: how many, which labels, what tells them from the others, and how they leave the page.
 */

import { countOf, element, textButton } from "./elements.js";
import { amountOf, hasBentScale, scaledAmount } from "./feature_text.js";
import { KeptSelections } from "./kept_selections.js";
import { commonLabels } from "./row_filters.js";
import { fitsLink } from "./share.js";
import { SpecialList } from "./special_list.js";
import { groupMoments } from "./standing_out.js";

/**
 * Mean of some rows, missing values left out; of amounts where a feature is one on a scale of its own. Otherwise codes
 * are summed, not values: there may be many.
 * @returns {{values: Float64Array, count: number}|null} `count`: rows whose data the page holds; null if there are none
 */
export function meanRow(atlas, rows) {
  const { D, rowCodes, missing, header } = atlas;
  const { low, step } = header.quantised;
  const forms = Array.from({ length: D }, (_, j) => (hasBentScale(header, j) ? header.forms[j] : null));
  const sums = new Float64Array(D);
  const counts = new Float64Array(D);
  let count = 0;
  for (let k = 0; k < rows.length && header.rows.has_data; k++) {
    const place = atlas.codesOfRow(rows[k]);
    if (place < 0) continue;
    count++;
    for (let j = 0, at = place * D; j < D; j++, at++) {
      if (rowCodes[at] === missing) continue;
      sums[j] += forms[j] ? amountOf(forms[j], low[j] + step[j] * rowCodes[at]) : rowCodes[at];
      counts[j]++;
    }
  }
  const mean = (sum, j) => (forms[j] ? scaledAmount(forms[j], sum / counts[j]) : low[j] + step[j] * (sum / counts[j]));
  return count ? { values: sums.map(mean), count } : null;
}

export class SelectionView extends EventTarget {
  /** @param {object} atlas Fires "clear", "download", "names", "link", "color", "recall" {rows}, "kept" and "leave". */
  constructor(atlas) {
    super();
    this.atlas = atlas;
    this.rows = new Uint32Array(0);
    this.count = element("p", { class: "tf-selection-count", role: "status" });
    this.labels = element("div", { class: "tf-note" });
    this.linkNote = element("p", { class: "tf-note", hidden: true }, "Too many rows for a link: it leaves them out.");
    this.special = new SpecialList(atlas.header, "What tells the selected rows from the others");
    this.special.addEventListener("color", (event) => this.fire("color", event.detail));
    this.against = element("select", {
      class: "tf-input",
      "aria-label": "Compare the selection with",
      onchange: () => this.compare(),
    });
    this.specialBox = element(
      "div",
      { class: "tf-special-view" },
      element("label", { class: "tf-special-against" }, element("span", {}, "What tells them from"), this.against),
      this.special.element,
    );
    this.kept = new KeptSelections();
    this.kept.addEventListener("recall", (event) => this.fire("recall", event.detail));
    this.kept.addEventListener("leave", () => this.fire("leave"));
    this.kept.addEventListener("change", () => {
      this.listOthers();
      this.fire("kept");
      // Whoever listens makes a label of them.
      this.summarise();
    });
    this.current = this.build();
    // Kept ones are seen where they are kept: above the long list.
    this.element = element("div", { class: "tf-selection" }, this.current, this.kept.element, this.specialBox);
  }

  build() {
    const button = (title, what, hint) => textButton(title, () => this.fire(what), { title: hint });
    this.linkButton = button("Copy link", "link", "A link that opens this page with these rows, filters and colours");
    return element(
      "div",
      { class: "tf-selection" },
      this.count,
      this.labels,
      element(
        "div",
        { class: "tf-buttons" },
        textButton("Keep", () => this.kept.add(this.rows), { title: "Keep this selection beside others" }),
        button("Clear", "clear", "Clear the selection (Escape)"),
        button("Download CSV", "download", "The selected rows with their data and places"),
        button("Row names", "names", "The names of the selected rows as CSV"),
        this.linkButton,
      ),
      this.linkNote,
    );
  }

  fire(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  get isEmpty() {
    return !this.rows.length && !this.kept.all.length;
  }

  /** @param {Uint32Array} rows */
  show(rows) {
    this.rows = rows;
    this.current.hidden = !rows.length;
    this.count.textContent = rows.length ? `${countOf(rows.length, "row")} selected` : "";
    this.summarise();
    this.linkNote.hidden = this.linkButton.hidden || !rows.length || fitsLink(rows);
    this.moments = rows.length && this.atlas.header.usual ? groupMoments(this.atlas, rows) : null;
    this.listOthers();
  }

  /** Which labels the selected rows have. */
  summarise() {
    this.labels.replaceChildren(...commonLabels(this.atlas, this.rows).map((line) => element("p", {}, line)));
  }

  /** What the selection can be compared with: all other rows, or a kept selection. */
  listOthers() {
    const before = this.against.value;
    const names = this.kept.all.map(({ name }, k) => [String(k), name]);
    this.against.replaceChildren(
      ...[["", "all other rows"], ...names].map(([value, text]) => element("option", { value }, text)),
    );
    this.against.value = this.kept.all[before] ? before : "";
    this.compare();
  }

  compare() {
    const { moments } = this;
    const other = this.kept.all[this.against.value];
    const others = moments && other ? groupMoments(this.atlas, other.rows)?.mean : null;
    const there = others ?? (moments?.restCount ? moments.rest : this.atlas.header.usual?.mean);
    this.specialBox.hidden = !moments;
    if (!moments) return;
    const thereTitle = others ? `in ${other.name}` : moments.restCount ? "others" : "all rows";
    this.special.show({ here: moments.mean, there, spread: moments.deviation, thereTitle, areMeans: [true, true] });
  }
}

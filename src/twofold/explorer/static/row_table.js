/**
 * A row as a table: name with the range in the rows, value, the companion's value, and how strongly it changes here.
 */

import { withDates } from "./date_circles.js";
import { element, formatNumber, uniqueId } from "./elements.js";
import { cellText, columnOfFeature, generatedText, spreadText, standingName } from "./feature_text.js";

/** A page of the table; the rest is found by typing part of a name. */
export const MOST_TABLE_ROWS = 150;

/** So few need no search. */
const FEW_TABLE_ROWS = 12;

const TABLE_COLUMNS = [
  ["feature", "Feature"],
  ["value", "Value"],
  ["companion", "Beside"],
  ["change", "Change"],
];

/** A name that may be broken after the marks that stand for blanks in it. */
function breakable(name) {
  return name.split(/(?<=[_/.:])/).flatMap((part) => [part, element("wbr")]);
}

/** A value with the time below its date: two such columns beside each other leave no room for names. */
function narrow(text) {
  return text.replace(" ", "\n");
}

export class RowTable {
  constructor(header) {
    this.header = header;
    this.values = null;
    this.companion = null;
    this.change = null;
    this.columnOf = header.columns ? columnOfFeature(header) : null;
    this.sort = { column: "feature", descending: false };
    const id = uniqueId("table-filter");
    this.filter = element("input", {
      id,
      type: "search",
      class: "tf-input",
      placeholder: "Part of a name",
      autocomplete: "off",
      oninput: () => this.arrange(),
    });
    this.body = element("tbody");
    this.beside = element("p", { class: "tf-note" });
    this.note = element("p", { class: "tf-note" });
    this.element = element(
      "div",
      { class: "tf-table-box" },
      header.features.length > FEW_TABLE_ROWS
        ? element("label", { class: "tf-field", for: id }, element("span", {}, "Find a feature"), this.filter)
        : null,
      this.beside,
      element(
        "div",
        {
          class: "tf-table-scroll",
          tabindex: 0,
          role: "region",
          "aria-label": "Values of the generated row",
        },
        element("table", {}, element("thead", {}, this.makeHead()), this.body),
      ),
      this.note,
    );
    this.arrange();
  }

  makeHead() {
    this.heads = TABLE_COLUMNS.map(([key, title]) => {
      const button = element("button", { type: "button", onclick: () => this.sortBy(key) }, title);
      if (key === "value") button.title = "The generated value, and how far rows usually lie from it";
      if (key === "change") {
        button.title = "How far the feature moves across a twentieth of the map, as a share of its range";
      }
      return element("th", { scope: "col", "data-column": key }, button);
    });
    return element("tr", {}, ...this.heads);
  }

  sortBy(column) {
    const again = this.sort.column === column;
    this.sort = { column, descending: again ? !this.sort.descending : column !== "feature" };
    this.arrange();
  }

  /** The number that a column is sorted by. */
  sortKey(j) {
    if (this.sort.column === "value") return this.values?.[j] ?? 0;
    if (this.sort.column === "companion") return this.companion?.[j] ?? NaN;
    if (this.sort.column === "change") return this.change?.[j] ?? 0;
    return j;
  }

  /** Choose and order the rows of the table; `draw` only writes numbers into them. */
  arrange() {
    const wanted = this.filter.value.trim().toLowerCase();
    const found = [];
    this.header.features.forEach((_, j) => {
      if (this.columnOf?.[j] === -1) return;
      if (!wanted || standingName(this.header, j).toLowerCase().includes(wanted)) found.push(j);
    });
    const sign = this.sort.descending ? -1 : 1;
    const keys = new Map(found.map((j) => [j, this.sortKey(j)]));
    found.sort((a, b) => sign * (keys.get(a) - keys.get(b)) || a - b);
    const shown = found.slice(0, MOST_TABLE_ROWS);
    this.lines = shown.map((j) => this.makeLine(j));
    this.body.replaceChildren(...this.lines.map((line) => line.item));
    for (const head of this.heads) {
      const active = head.dataset.column === this.sort.column;
      head.setAttribute("aria-sort", active ? (this.sort.descending ? "descending" : "ascending") : "none");
    }
    this.note.textContent =
      shown.length < found.length
        ? `${shown.length} of ${found.length} features shown. Type a name to find others.`
        : found.length === 0
          ? "No feature has that name."
          : "";
    if (this.values) this.draw(this.values, this.companion);
  }

  makeLine(j) {
    const { feature_low: low, feature_high: high } = this.header;
    const cells = {
      value: element("td", { class: "tf-value-cell" }, element("span", {}), element("span", { class: "tf-cell-range" })),
      companion: element("td", { class: "tf-companion-cell" }),
      change: element("td", {}),
    };
    const name = standingName(this.header, j);
    const [from, to] = [low[j], high[j]].map((end) => element("span", {}, cellText(this.header, j, end, 3)));
    const item = element(
      "tr",
      {},
      element("th", { scope: "row" }, ...breakable(name), element("span", { class: "tf-cell-range" }, from, " to ", to)),
      ...Object.values(cells),
    );
    return { j, item, ...cells };
  }

  draw(values, companion) {
    this.values = values;
    this.companion = companion;
    const row = withDates(this.header, values);
    const spread = this.header.left_open?.features;
    for (const line of this.lines) {
      line.value.firstChild.textContent = narrow(generatedText(this.header, line.j, row[line.j], spread?.[line.j]));
      line.value.lastChild.textContent = spreadText(this.header, line.j, values[line.j], spread?.[line.j]);
      line.companion.textContent = companion ? narrow(cellText(this.header, line.j, companion[line.j], 3)) : "";
      line.change.textContent = this.change ? `${formatNumber(Number((100 * this.change[line.j]).toFixed(2)), 2)}\u202f%` : "";
    }
  }

  /** Which row the column beside the generated values holds. */
  setCompanionTitle(title) {
    this.beside.textContent = title ? `Beside: ${title}` : "";
  }

  setChange(change) {
    this.change = change;
    if (this.sort.column === "feature") {
      if (this.values) this.draw(this.values, this.companion);
    } else {
      this.arrange();
    }
  }
}

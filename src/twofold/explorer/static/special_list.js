/**
 * A list of what stands out: each feature with a bar for its standardised difference, and both values.
 * It can be searched and sorted; a click on a feature colours the map by it.
 */

import { element, formatNumber, uniqueId } from "./elements.js";
import { columnOfFeature, featureKey, hasBentScale, spreadText, standingName, standingText } from "./feature_text.js";
import { STANDING_ORDERS, differences, inOrderOfStanding } from "./standing_out.js";

/** Lines of the list; the rest is found by typing part of a name. */
const MOST_LINES = 25;

/** Differences of so many deviations, or more, fill half of the bar. */
const FULL_BAR = 3;

/** So few features need no search. */
const FEW_FEATURES = 8;

export class SpecialList extends EventTarget {
  /**
   * Fires "color" with the key of the feature that was clicked.
   * @param {object} header
   * @param {string} label what a screen reader calls the list
   */
  constructor(header, label) {
    super();
    this.header = header;
    this.columnOf = header.columns ? columnOfFeature(header) : null;
    this.order = "size";
    this.lines = [];
    this.search = element("input", {
      id: uniqueId("special"),
      type: "search",
      class: "tf-input",
      placeholder: "Find a feature",
      "aria-label": "Find a feature",
      autocomplete: "off",
      oninput: () => this.write(),
      onkeydown: (event) => event.key === "Escape" && this.leaveSearch(event),
    });
    this.sorting = element(
      "select",
      { class: "tf-input", "aria-label": "Sort by", onchange: () => this.setOrder(this.sorting.value) },
      ...Object.entries(STANDING_ORDERS).map(([value, { title }]) => element("option", { value }, title)),
    );
    this.list = element("ul", { class: "tf-special", tabindex: 0, "aria-label": label });
    this.note = element("p", { class: "tf-note" });
    const isLong = (header.columns ?? header.features).length > FEW_FEATURES;
    this.element = element(
      "div",
      { class: "tf-special-box" },
      element("div", { class: "tf-special-tools" }, isLong ? this.search : null, this.sorting),
      this.list,
      this.note,
    );
  }

  /** Leave the field, and leave nothing in it. */
  leaveSearch(event) {
    this.search.value = "";
    this.search.blur();
    this.write();
    event.stopPropagation();
  }

  setOrder(order) {
    this.order = order;
    this.write();
  }

  /**
   * @param {{here: ArrayLike<number>, there: ArrayLike<number>, spread: ArrayLike<number>|null, thereTitle: string,
   *   areMeans: boolean[]}} found `areMeans`: whether they are means, here and there
   */
  show(found) {
    this.found = found;
    this.off = differences(found.here, found.there, this.header.usual.deviation);
    this.write();
  }

  /** The features to list, and how many there are in all. */
  chosen() {
    const wanted = this.search.value.trim().toLowerCase();
    const all = inOrderOfStanding(this.off, this.order, this.columnOf);
    const fits = wanted ? all.filter((j) => standingName(this.header, j).toLowerCase().includes(wanted)) : all;
    return { shown: fits.slice(0, MOST_LINES), total: fits.length };
  }

  write() {
    if (!this.off) return;
    const { shown, total } = this.chosen();
    while (this.lines.length < shown.length) this.lines.push(this.makeLine());
    shown.forEach((j, k) => this.lines[k].write(j));
    if (this.list.children.length !== shown.length)
      this.list.replaceChildren(...this.lines.slice(0, shown.length).map((line) => line.item));
    if (!total) this.note.textContent = "No feature has that name.";
    else if (total > shown.length)
      this.note.textContent = `The first ${shown.length} of ${total.toLocaleString("en-US")}. Type a name to find others.`;
    else this.note.textContent = "";
  }

  /** Lines are made once and written again and again: the probe moves sixty times a second. */
  makeLine() {
    const name = element("span", { class: "tf-special-name" });
    const size = element("span", { class: "tf-special-size" });
    const fill = element("span", { class: "tf-special-fill" });
    const values = element("span", { class: "tf-special-values" });
    const line = { j: -1 };
    const button = element(
      "button",
      {
        type: "button",
        onclick: () => this.dispatchEvent(new CustomEvent("color", { detail: featureKey(this.header, line.j) })),
      },
      name,
      size,
      element("span", { class: "tf-special-bar", "aria-hidden": "true" }, fill),
      values,
    );
    line.item = element("li", {}, button);
    line.write = (j) => {
      line.j = j;
      const { here, there, spread, thereTitle, areMeans } = this.found;
      name.textContent = standingName(this.header, j);
      button.title = `Colour the map by ${name.textContent}`;
      const sign = this.off[j] > 0 ? "+" : "";
      size.textContent = `${sign}${formatNumber(Number(this.off[j].toFixed(2)), 3)}\u202fσ`;
      const share = Math.min(1, Math.abs(this.off[j]) / FULL_BAR) / 2;
      fill.style.width = `${100 * share}%`;
      fill.style.left = this.off[j] < 0 ? `${100 * (0.5 - share)}%` : "50%";
      fill.classList.toggle("tf-below", this.off[j] < 0);
      const around = spread ? ` ${spreadText(this.header, j, here[j], spread[j])}` : "";
      const [own, others] = [[here[j], there[j]], [there[j], here[j]]].map(([value, other]) =>
        standingText(this.header, j, value, { other, spread: spread?.[j] }),
      );
      // A mean on a scale of its own, taken back, is not the mean of the amounts.
      const [typicalOwn, typicalOthers] = areMeans.map((isMean) => (isMean && hasBentScale(this.header, j) ? "typically " : ""));
      values.textContent = `${typicalOwn}${own}${around}, ${thereTitle} ${typicalOthers}${others}`;
    };
    return line;
  }
}

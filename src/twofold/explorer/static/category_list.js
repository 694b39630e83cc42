/**
 * The classes of a label as buttons: what their colours mean, how many rows they have, and which are shown.
 */

import { CATEGORY_COLORS, SEQUENTIAL, colorOf } from "./colors.js";
import { countOf, element, formatCount, textButton } from "./elements.js";
import { categoryCounts, categoryName } from "./row_filters.js";

/** More classes than this are folded, with a button that says how many there are. */
const FOLDED_CLASSES = { long: 8, short: 16 };

/** Names longer than this take a line of their own. */
const SHORT_NAME = 5;

/** Below it the scale of numbers is too dark to be a class on a dark ground. */
const DARKEST_CLASS = 0.3;

/** Any colour form of the palette as text for the style sheet. */
export function cssColor(color) {
  return typeof color === "string" ? color : `rgb(${color[0]}, ${color[1]}, ${color[2]})`;
}

/**
 * One colour for each class; classes with an order take theirs from the scale of numbers.
 * @param {string[]} values @param {string[]|null} ordered the classes in their order
 */
export function categoryPalette(values, ordered = null) {
  if (!ordered) return values.map((_, code) => CATEGORY_COLORS[code % CATEGORY_COLORS.length]);
  const share = (value) => ordered.indexOf(value) / Math.max(1, ordered.length - 1);
  return values.map((value) => colorOf(SEQUENTIAL, DARKEST_CLASS + (1 - DARKEST_CLASS) * share(value)));
}

/**
 * Codes of the classes of a label in the order of the levels of its column, else in that of the file; last that of
 * rows without a class, if there are any.
 */
export function classOrder(label, levels) {
  const order = [...label.values.keys()];
  if (levels) order.sort((a, b) => levels.indexOf(label.values[a]) - levels.indexOf(label.values[b]));
  return label.codes.some((code) => code >= order.length) ? [...order, order.length] : order;
}

export class CategoryList extends EventTarget {
  /**
   * Fires "toggle" with the code of the class that was clicked.
   * @param {{key: string, title: string}} quantity
   * @param {{values: string[], codes: ArrayLike<number>}} label
   * @param {string[]|undefined} levels of the column, as they are listed
   * @param {Array<string|number[]>|null} palette the colours of the classes on the map; null if they have none
   */
  constructor(quantity, label, levels, palette) {
    super();
    this.label = label;
    const isLong = label.values.some((value) => value.length > SHORT_NAME);
    this.lines = classOrder(label, levels).map((code) => this.makeLine(code, palette));
    this.list = element(
      "div",
      {
        class: isLong ? "tf-categories tf-long" : "tf-categories",
        role: "group",
        "aria-label": `Show rows by ${quantity.title}`,
        "data-key": quantity.key,
      },
      ...this.lines.map(({ button }) => button),
    );
    const most = FOLDED_CLASSES[isLong ? "long" : "short"];
    this.more = label.values.length > most + 1 ? this.makeMore(most) : null;
    this.element = element("div", {}, this.list, this.more);
  }

  makeLine(code, palette) {
    const name = categoryName(this.label, code);
    const count = element("span", { class: "tf-count" });
    const bar = element("span", { class: "tf-category-bar", "aria-hidden": "true" });
    const button = element(
      "button",
      {
        type: "button",
        class: code < this.label.values.length ? "tf-category" : "tf-category tf-no-class",
        "data-code": code,
        title: `Show only ${name}, or add it`,
        onclick: () => this.dispatchEvent(new CustomEvent("toggle", { detail: code })),
      },
      palette ? element("span", { class: "tf-swatch", style: palette[code] && `background: ${cssColor(palette[code])}` }) : null,
      element("span", { class: "tf-category-name" }, name),
      count,
      bar,
    );
    return { code, button, count, bar };
  }

  makeMore(most) {
    const count = this.label.values.length;
    const hide = (isFolded) => {
      this.lines.forEach(({ button, code }, k) => {
        button.hidden = isFolded && k >= most && code < count;
      });
      more.textContent = isFolded ? `Show all ${formatCount(count)} classes` : "Show fewer";
      more.setAttribute("aria-expanded", String(!isFolded));
      this.list.classList.toggle("tf-unfolded", !isFolded);
    };
    const more = textButton("", () => hide(more.getAttribute("aria-expanded") === "true"), {
      class: "tf-button tf-more-classes",
    });
    hide(true);
    return more;
  }

  /** @param {Set<number>|undefined} chosen @param {Uint8Array|null} mask rows that pass the other filters */
  show(chosen, mask) {
    const counts = categoryCounts(this.label, mask);
    const most = Math.max(1, ...counts);
    for (const { code, button, count, bar } of this.lines) {
      button.setAttribute("aria-pressed", String(!chosen || chosen.has(code)));
      button.setAttribute("aria-label", `${categoryName(this.label, code)}, ${countOf(counts[code], "row")}`);
      count.textContent = formatCount(counts[code]);
      bar.style.transform = `scaleX(${(counts[code] / most).toFixed(4)})`;
    }
  }
}

/**
 * Colour and filter: what the points are coloured by, what the colours mean, which rows are shown.
 */

import { CATEGORY_COLORS, SEQUENTIAL, colorOf } from "./colors.js";
import { Combobox } from "./combobox.js";
import { countOf, element, formatCount, icon, textButton } from "./elements.js";
import { featureText } from "./feature_text.js";
import { RangeSlider } from "./range_slider.js";
import { RowFilters, categoryCounts, extent, listQuantities, quantityValues } from "./row_filters.js";

const MOST_SUGGESTIONS = 60;

/** "class 2" before "class 10". */
const inReadingOrder = new Intl.Collator("en", { numeric: true });

/** Any colour form of the palette as text for the style sheet. */
function cssColor(color) {
  return typeof color === "string" ? color : `rgb(${color[0]}, ${color[1]}, ${color[2]})`;
}

/** The sequential scale as a gradient from left to right. */
export function scaleGradient(scale) {
  const stops = Array.from({ length: 9 }, (_, k) => cssColor(colorOf(scale, k / 8)));
  return `linear-gradient(to right, ${stops.join(", ")})`;
}

export class Legend extends EventTarget {
  /** @param {object} atlas Fires "color" with the key, "filter" with the mask. */
  constructor(atlas) {
    super();
    this.atlas = atlas;
    this.quantities = listQuantities(atlas);
    this.filters = new RowFilters(atlas);
    this.filters.addEventListener("change", () => this.onFilter());
    this.colorBox = new Combobox({
      label: "Colour by",
      isSelect: true,
      suggest: (text) => this.suggest(text, true),
    });
    this.colorBox.addEventListener("choose", (event) => this.setColor(event.detail));
    this.filterBox = new Combobox({
      label: "Filter by",
      placeholder: "A label or feature",
      suggest: (text) => this.suggest(text, false),
    });
    this.filterBox.addEventListener("choose", (event) => this.addFilter(event.detail));
    this.scale = element("div", { class: "tf-legend-scale" });
    this.others = element("div", { class: "tf-legend-filters" });
    this.status = element("p", { class: "tf-note", role: "status" });
    this.clearButton = textButton("Show all rows", () => this.clearFilters(), { hidden: true });
    this.extra = new Set();
    this.element = element(
      "div",
      { class: "tf-legend" },
      this.colorBox.element,
      this.scale,
      element(
        "details",
        { class: "tf-more" },
        element("summary", {}, "More filters"),
        this.filterBox.element,
        this.others,
      ),
      element("div", { class: "tf-legend-foot" }, this.status, this.clearButton),
    );
    this.status.hidden = true;
  }

  suggest(text, withNone) {
    const wanted = text.toLowerCase();
    const fits = this.quantities.filter((quantity) => quantity.title.toLowerCase().includes(wanted));
    const options = fits.slice(0, MOST_SUGGESTIONS).map((quantity) => ({
      label: quantity.title,
      group: quantity.group,
      value: quantity.key,
    }));
    if (withNone && "one colour".includes(wanted))
      options.push({ label: "One colour", group: "None", value: "none" });
    return options;
  }

  quantity(key) {
    return this.quantities.find((quantity) => quantity.key === key) ?? null;
  }

  /** The first label, or else the density, or else one colour. */
  get defaultColor() {
    return (
      (this.quantities.find((q) => q.group === "Labels") ?? this.quantities.find((q) => q.key === "density"))
        ?.key ?? "none"
    );
  }

  /** Colour the map by the quantity of this key. */
  setColor(key) {
    const quantity = this.quantity(key);
    this.color = quantity ? key : "none";
    this.colorBox.setText(quantity?.title ?? "One colour");
    this.extra.delete(key);
    this.drawScale();
    this.drawOthers();
    this.dispatchEvent(new CustomEvent("color", { detail: { key: this.color } }));
  }

  /** What the map needs to know for `setColors`. */
  get coloring() {
    const quantity = this.quantity(this.color);
    if (!quantity) return { kind: "plain" };
    if (quantity.kind === "category") {
      const { codes, values } = this.atlas.labels[quantity.key.slice(6)];
      return { kind: "category", codes, colors: categoryPalette(values.length) };
    }
    let values = quantityValues(this.atlas, quantity);
    if (quantity.log) values = values.map(Math.log);
    const [low, high] = extent(values);
    return { kind: "number", values, low, high, scale: SEQUENTIAL };
  }

  drawScale() {
    const quantity = this.quantity(this.color);
    if (!quantity) this.scale.replaceChildren();
    else this.scale.replaceChildren(this.makeEditor(quantity, true));
  }

  makeEditor(quantity, isScale) {
    return quantity.kind === "category"
      ? this.makeCategories(quantity, isScale)
      : this.makeRange(quantity, isScale);
  }

  makeCategories(quantity, isScale) {
    const label = this.atlas.labels[quantity.key.slice(6)];
    const counts = categoryCounts(label);
    const palette = categoryPalette(label.values.length);
    const chosen = this.filters.get(quantity.key)?.chosen;
    // Levels of a column of the table have the order of the table, others that of a dictionary.
    const levels = this.atlas.header.columns?.find((column) => column.name === quantity.title)?.levels;
    const order = [...label.values.keys()].sort(
      (a, b) =>
        (levels ? levels.indexOf(label.values[a]) - levels.indexOf(label.values[b]) : 0) ||
        inReadingOrder.compare(label.values[a], label.values[b]),
    );
    const buttons = order.map((code) => {
      const value = label.values[code];
      const swatch = isScale
        ? element("span", { class: "tf-swatch", style: `background: ${cssColor(palette[code])}` })
        : null;
      return element(
        "button",
        {
          type: "button",
          class: "tf-category",
          "data-code": code,
          "aria-pressed": String(!chosen || chosen.has(code)),
          "aria-label": `${value}, ${countOf(counts[code], "row")}`,
          title: `Show only ${value}, or add it`,
          onclick: () => this.filters.toggleCategory(quantity, code),
        },
        swatch,
        element("span", { class: "tf-category-name" }, value),
        element("span", { class: "tf-count" }, formatCount(counts[code])),
      );
    });
    const isLong = label.values.some((value) => value.length > 5);
    return element(
      "div",
      {
        class: isLong ? "tf-categories tf-long" : "tf-categories",
        role: "group",
        "aria-label": `Show rows by ${quantity.title}`,
        "data-key": quantity.key,
      },
      ...buttons,
    );
  }

  makeRange(quantity, isScale) {
    const [low, high] = extent(quantityValues(this.atlas, quantity));
    const slider = new RangeSlider({
      title: quantity.title,
      low,
      high,
      log: quantity.log,
      range: this.filters.get(quantity.key)?.range,
      background: isScale ? scaleGradient(SEQUENTIAL) : null,
      format: quantity.j === undefined ? undefined : (value) => featureText(this.atlas.header, quantity.j, value, 3),
    });
    slider.addEventListener("range", (event) => this.filters.setRange(quantity, event.detail));
    return slider.element;
  }

  addFilter(key) {
    this.filterBox.input.value = "";
    if (key !== this.color) this.extra.add(key);
    this.drawOthers();
  }

  /** Editors of filters on quantities other than the one that gives the colour. */
  drawOthers() {
    const keys = new Set([...this.filters.active.keys(), ...this.extra]);
    keys.delete(this.color);
    this.others.replaceChildren(
      ...[...keys].map((key) => {
        const quantity = this.quantity(key);
        return element(
          "div",
          { class: "tf-filter" },
          element(
            "div",
            { class: "tf-filter-head" },
            element("span", {}, quantity.title),
            element(
              "button",
              {
                type: "button",
                class: "tf-icon-button",
                "aria-label": `Remove the filter on ${quantity.title}`,
                onclick: () => this.removeFilter(key),
              },
              icon("close"),
            ),
          ),
          this.makeEditor(quantity, false),
        );
      }),
    );
    if (keys.size) this.others.parentElement?.setAttribute("open", "");
  }

  removeFilter(key) {
    this.extra.delete(key);
    this.filters.remove(key);
    this.drawOthers();
  }

  clearFilters() {
    this.extra.clear();
    this.filters.clear();
    this.drawScale();
    this.drawOthers();
  }

  onFilter() {
    this.mask = this.filters.mask();
    for (const button of this.element.querySelectorAll(".tf-category")) {
      const chosen = this.filters.get(button.parentElement.dataset.key)?.chosen;
      button.setAttribute("aria-pressed", String(!chosen || chosen.has(Number(button.dataset.code))));
    }
    const shown = this.mask?.reduce((sum, pass) => sum + pass, 0);
    this.status.textContent = this.mask
      ? `${formatCount(shown)} of ${countOf(this.atlas.n, "row")} shown`
      : "";
    this.status.hidden = !this.mask;
    this.clearButton.hidden = !this.mask;
    this.dispatchEvent(new CustomEvent("filter", { detail: { mask: this.mask } }));
  }
}

/** One colour for each of `count` categories. */
export function categoryPalette(count) {
  return Array.from({ length: count }, (_, code) => CATEGORY_COLORS[code % CATEGORY_COLORS.length]);
}

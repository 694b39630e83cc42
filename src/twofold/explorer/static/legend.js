/**
 * Colour and filter: what the points are coloured by, what the colours mean, which rows are shown.
 */

import { CategoryList, categoryPalette, classOrder, cssColor } from "./category_list.js";
import { SEQUENTIAL, colorOf } from "./colors.js";
import { Combobox } from "./combobox.js";
import { countOf, element, formatCount, iconButton, textButton } from "./elements.js";
import { extent } from "./extent.js";
import { Histogram } from "./histogram.js";
import { PointControls } from "./point_controls.js";
import { RangeSlider } from "./range_slider.js";
import {
  RowFilters,
  categoryCounts,
  categoryName,
  labelQuantity,
  listQuantities,
  quantityFormat,
  quantityValues,
} from "./row_filters.js";

const MOST_SUGGESTIONS = 60;

/** Colours of the sequential scale from low to high. */
function scaleStops(scale) {
  return Array.from({ length: 9 }, (_, k) => cssColor(colorOf(scale, k / 8)));
}

/** The sequential scale as a gradient from left to right. */
export function scaleGradient(scale) {
  return `linear-gradient(to right, ${scaleStops(scale).join(", ")})`;
}

/** What grey points are where numbers have colours; null where there are none. */
function missingNote(values) {
  const count = values.reduce((sum, value) => sum + Number.isNaN(value), 0);
  return count
    ? element("p", { class: "tf-note tf-missing" }, element("span", { class: "tf-swatch" }), `missing ${formatCount(count)}`)
    : null;
}

export class Legend extends EventTarget {
  /** @param {object} atlas Fires "color" with the key, "filter" with the mask, "pick" with the mask of shown rows. */
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
    this.points = new PointControls();
    this.extra = new Set();
    /** What shows the rows that pass, by the key of its quantity. */
    this.editors = new Map();
    this.element = this.build();
    this.status.hidden = true;
  }

  build() {
    this.scale = element("div", { class: "tf-legend-scale" });
    this.others = element("div", { class: "tf-legend-filters" });
    this.more = element(
      "details",
      { class: "tf-more" },
      element("summary", {}, "More filters"),
      this.filterBox.element,
      this.others,
    );
    this.status = element("p", { class: "tf-note", role: "status" });
    this.footButtons = element(
      "div",
      { class: "tf-buttons", hidden: true },
      textButton("Show all rows", () => this.clearFilters()),
      textButton("Select these", () => this.dispatchEvent(new CustomEvent("pick", { detail: this.mask }))),
    );
    return element(
      "div",
      { class: "tf-legend" },
      this.colorBox.element,
      element(
        "div",
        { class: "tf-legend-scroll", onscroll: () => this.filterBox.place() },
        this.scale,
        this.more,
        this.points.element,
      ),
      element("div", { class: "tf-legend-foot" }, this.status, this.footButtons),
    );
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
    const left = fits.length - MOST_SUGGESTIONS;
    if (left > 0) options.push({ note: `${formatCount(left)} more: type part of a name` });
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

  /** Add, change or (null) take away a column of labels that people make. */
  setLabel(name, label) {
    const key = `label:${name}`;
    // A column of the table that happens to have this name stays.
    if (this.atlas.labels[name] && !this.atlas.labels[name].isMade) return;
    this.quantities = this.quantities.filter((quantity) => quantity.key !== key);
    this.extra.delete(key);
    if (this.filters.get(key)) this.filters.remove(key);
    if (label) {
      this.atlas.labels[name] = label;
      this.quantities.unshift(labelQuantity(name, label));
    } else {
      delete this.atlas.labels[name];
    }
    if (this.color === key) this.setColor(label ? key : this.defaultColor);
  }

  /** Colour the map by the quantity of this key. */
  setColor(key) {
    const quantity = this.quantity(key);
    this.color = quantity ? key : "none";
    this.colorBox.setText(quantity?.title ?? "One colour");
    this.extra.delete(key);
    this.drawEditors();
    this.dispatchEvent(new CustomEvent("color", { detail: { key: this.color } }));
  }

  /** The column of levels that a label is, in a page of a mixed table. */
  column(quantity) {
    return this.atlas.header.columns?.find(({ name, levels }) => levels && name === quantity.title) ?? null;
  }

  /** The levels of that column, as they are listed. */
  levels(quantity) {
    const column = this.column(quantity);
    return column?.order.map((k) => column.levels[k]);
  }

  palette(quantity) {
    const column = this.column(quantity);
    return categoryPalette(this.atlas.labels[quantity.key.slice(6)].values, column?.kind === "ordered" ? column.levels : null);
  }

  /** What the map needs to know for `setColors`. */
  get coloring() {
    const quantity = this.quantity(this.color);
    if (!quantity) return { kind: "plain" };
    if (quantity.kind === "category") {
      const { codes, values } = this.atlas.labels[quantity.key.slice(6)];
      return { kind: "category", codes, values, colors: this.palette(quantity) };
    }
    let values = quantityValues(this.atlas, quantity);
    if (quantity.log) values = values.map(Math.log);
    const [low, high] = extent(values);
    return { kind: "number", values, low, high, scale: SEQUENTIAL };
  }

  /**
   * What the colours mean, for a picture of the map: the classes of shown rows, or a scale; null for one colour.
   * Rows without a class have no colour here but that of the theme.
   */
  get key() {
    const quantity = this.quantity(this.color);
    if (!quantity) return null;
    const { title } = quantity;
    if (quantity.kind === "number") {
      const values = quantityValues(this.atlas, quantity);
      const ends = extent(values).map(quantityFormat(this.atlas, quantity));
      const classes = values.some((value, i) => Number.isNaN(value) && this.mask?.[i] !== 0) ? [{ text: "missing" }] : [];
      return { title, ends, stops: scaleStops(SEQUENTIAL), classes };
    }
    const label = this.atlas.labels[quantity.key.slice(6)];
    const counts = categoryCounts(label, this.mask);
    const palette = this.palette(quantity);
    const codes = classOrder(label, this.levels(quantity)).filter((code) => counts[code]);
    const classes = codes.map((code) => ({ text: categoryName(label, code), color: palette[code] && cssColor(palette[code]) }));
    return { title, classes };
  }

  /** The scale of the colour, and below it filters on other quantities. */
  drawEditors() {
    this.editors.clear();
    const quantity = this.quantity(this.color);
    this.scale.replaceChildren(...(quantity ? [this.makeEditor(quantity, true)] : []));
    const keys = new Set([...this.filters.active.keys(), ...this.extra]);
    keys.delete(this.color);
    this.others.replaceChildren(...[...keys].map((key) => this.makeFilter(this.quantity(key))));
    if (keys.size) this.more.open = true;
    this.showPassing();
  }

  makeFilter(quantity) {
    return element(
      "div",
      { class: "tf-filter" },
      element(
        "div",
        { class: "tf-filter-head" },
        element("span", {}, quantity.title),
        iconButton("close", `Remove the filter on ${quantity.title}`, () => this.removeFilter(quantity.key)),
      ),
      this.makeEditor(quantity, false),
    );
  }

  makeEditor(quantity, isScale) {
    return quantity.kind === "category" ? this.makeCategories(quantity, isScale) : this.makeRange(quantity, isScale);
  }

  makeCategories(quantity, isScale) {
    const palette = isScale ? this.palette(quantity) : null;
    const label = this.atlas.labels[quantity.key.slice(6)];
    const list = new CategoryList(quantity, label, this.levels(quantity), palette);
    list.addEventListener("toggle", (event) => this.filters.toggleCategory(quantity, event.detail));
    this.editors.set(quantity.key, (mask) => list.show(this.filters.get(quantity.key)?.chosen, mask));
    return list.element;
  }

  makeRange(quantity, isScale) {
    const values = quantityValues(this.atlas, quantity);
    const ends = extent(values);
    const slider = new RangeSlider({
      title: quantity.title,
      low: ends[0],
      high: ends[1],
      log: quantity.log,
      range: this.filters.get(quantity.key)?.range,
      background: isScale ? scaleGradient(SEQUENTIAL) : null,
      format: quantityFormat(this.atlas, quantity),
    });
    slider.addEventListener("range", (event) => this.filters.setRange(quantity, event.detail));
    const histogram = new Histogram(values, ends, slider.log);
    this.editors.set(quantity.key, (mask) => histogram.show(mask));
    return element("div", {}, histogram.element, slider.element, isScale ? missingNote(values) : null);
  }

  addFilter(key) {
    this.filterBox.input.value = "";
    if (key !== this.color) this.extra.add(key);
    this.drawEditors();
  }

  removeFilter(key) {
    this.extra.delete(key);
    this.filters.remove(key);
    this.drawEditors();
  }

  clearFilters() {
    this.extra.clear();
    this.filters.clear();
    this.drawEditors();
  }

  restoreFilters(state) {
    this.filters.restore(state, this.quantities);
    this.drawEditors();
  }

  /** Each editor shows the rows that pass all filters but its own. */
  showPassing() {
    for (const [key, show] of this.editors) show(this.filters.mask(key));
  }

  onFilter() {
    this.mask = this.filters.mask();
    this.showPassing();
    const shown = this.mask?.reduce((sum, pass) => sum + pass, 0);
    this.status.textContent = this.mask
      ? `${formatCount(shown)} of ${countOf(this.atlas.n, "row")} shown`
      : "";
    this.status.hidden = !this.mask;
    this.footButtons.hidden = !this.mask;
    this.dispatchEvent(new CustomEvent("filter", { detail: { mask: this.mask } }));
  }
}

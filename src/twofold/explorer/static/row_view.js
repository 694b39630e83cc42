/**
 * The generated row, and a real row beside it, in the view that suits the data.
 */

import { element, uniqueId } from "./elements.js";
import { RowBars } from "./row_bars.js";
import { RowColumns } from "./row_columns.js";
import { RowCurve } from "./row_curve.js";
import { RowImage } from "./row_image.js";
import { RowSpecial } from "./row_special.js";
import { RowTable } from "./row_table.js";

const VIEW_TITLES = {
  image: "Image",
  special: "Special",
  curve: "Curve",
  bars: "Bars",
  table: "Table",
  columns: "Columns",
};

/** With this many features it helps to see which of them stand out. */
const ENOUGH_FEATURES = 6;

/** The views that make sense for these data, the one the header asks for among them. */
export function sensibleViews(header) {
  const D = header.features.length;
  const isSpecial = header.usual && D >= ENOUGH_FEATURES && !header.image_shape;
  if (header.columns) return ["columns", ...(isSpecial ? ["special"] : []), "table"];
  const views = [];
  if (header.image_shape) views.push("image");
  if (isSpecial) views.push("special");
  if (D >= 3) views.push("curve");
  if (!header.image_shape || D <= 64) views.push("bars");
  views.push("table");
  if (!views.includes(header.view) && (header.view !== "image" || header.image_shape)) {
    views.unshift(header.view);
  }
  return views;
}

/** What a companion is called in a line. */
function headOf(companion) {
  return companion && [companion.title, companion.detail].filter(Boolean).join(", ");
}

export class RowView extends EventTarget {
  /** @param {object} header */
  constructor(header) {
    super();
    this.header = header;
    this.views = sensibleViews(header);
    this.values = null;
    this.companion = null;
    this.makeImagePair();
    this.parts = { image: this.imagePair };
    this.stage = element("div", { class: "tf-stage" });
    this.key = this.makeKey();
    this.element = element("div", { class: "tf-row-view" }, this.stage, this.key);
    this.switcher = this.makeSwitcher();
    this.setView(this.views.includes(header.view) ? header.view : this.views[0]);
  }

  makeImagePair() {
    if (!this.header.image_shape) return;
    this.generatedImage = new RowImage(this.header, "Generated row as an image");
    this.companionImage = new RowImage(this.header, "Real row as an image");
    this.companionCaption = element("figcaption", {});
    this.companionFigure = element(
      "figure",
      { class: "tf-figure tf-empty" },
      this.companionImage.canvas,
      this.companionCaption,
    );
    this.imagePair = {
      element: element(
        "div",
        { class: "tf-image-pair" },
        element(
          "figure",
          { class: "tf-figure" },
          this.generatedImage.canvas,
          element("figcaption", {}, element("strong", {}, "Generated")),
        ),
        this.companionFigure,
      ),
      draw: (values, companion) => {
        this.generatedImage.draw(values);
        if (companion) this.companionImage.draw(companion);
      },
    };
  }

  /** Says which line or mark is which row, in the views that draw them together. */
  makeKey() {
    this.keyCompanion = element("span", { class: "tf-key-companion", hidden: true });
    return element(
      "p",
      { class: "tf-key" },
      element("span", { class: "tf-key-generated" }, "Generated"),
      this.keyCompanion,
    );
  }

  makeSwitcher() {
    const name = uniqueId("view");
    this.radios = new Map();
    const options = this.views.map((view) => {
      const input = element("input", {
        type: "radio",
        name,
        value: view,
        onchange: () => this.setView(view),
      });
      this.radios.set(view, input);
      return element("label", {}, input, element("span", {}, VIEW_TITLES[view]));
    });
    return element(
      "fieldset",
      { class: "tf-switch" },
      element("legend", { class: "tf-hidden" }, "Show the row as"),
      ...options,
    );
  }

  /** Views are made when first asked for: a table of thousands of features is not free. */
  part(view) {
    if (!this.parts[view]) {
      const Kind = { special: RowSpecial, curve: RowCurve, bars: RowBars, table: RowTable, columns: RowColumns }[view];
      this.parts[view] = new Kind(this.header);
      if (view === "special") this.prepareSpecial();
      if (this.change) this.parts[view].setChange?.(this.change);
    }
    return this.parts[view];
  }

  prepareSpecial() {
    const { special } = this.parts;
    if (this.places) special.setPlaces(this.places);
    special.list.addEventListener("color", (event) =>
      this.dispatchEvent(new CustomEvent("color", { detail: event.detail })),
    );
  }

  /** Places that the row here can be compared with, by letter; null for none. */
  setPlaces(places) {
    this.places = places;
    this.parts.special?.setPlaces(places);
  }

  setView(view) {
    if (!this.views.includes(view)) return;
    const changed = this.view !== view;
    this.view = view;
    this.radios.get(view).checked = true;
    this.stage.replaceChildren(this.part(view).element);
    this.key.hidden = view === "image" || view === "table" || view === "special";
    this.key.dataset.view = view;
    this.parts.table?.setCompanionTitle(headOf(this.companion));
    this.draw();
    if (changed) this.dispatchEvent(new CustomEvent("view", { detail: { view } }));
  }

  nextView() {
    this.setView(this.views[(this.views.indexOf(this.view) + 1) % this.views.length]);
  }

  /** Whether this view orders features by how strongly they change. */
  get wantsChange() {
    return this.view === "table" || this.view === "bars";
  }

  setRow(values) {
    this.values = values;
    this.draw();
  }

  /** @param {Companion|null} companion */
  setCompanion(companion) {
    this.companion = companion;
    this.keyCompanion.hidden = !companion;
    this.keyCompanion.textContent = companion?.title ?? "";
    this.parts.table?.setCompanionTitle(headOf(companion));
    if (this.companionFigure) {
      this.companionFigure.classList.toggle("tf-empty", !companion);
      this.companionCaption.replaceChildren(
        element("strong", {}, companion?.title ?? ""),
        companion?.detail ? element("span", {}, companion.detail) : "",
      );
      this.companionImage.canvas.setAttribute(
        "aria-label",
        companion ? `${companion.title} as an image` : "",
      );
    }
    this.draw();
  }

  setChange(change) {
    this.change = change;
    this.parts[this.view].setChange?.(change);
  }

  draw() {
    if (this.values) this.parts[this.view].draw(this.values, this.companion?.values ?? null);
  }

  refreshTheme() {
    this.parts.curve?.refreshTheme();
  }

  destroy() {
    this.parts.curve?.destroy();
  }
}

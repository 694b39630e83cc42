/**
 * The panel: the generated row on top, and what can be done with it below. At phone width it is a
 * sheet at the bottom that is pulled up and down.
 */

import { element, icon, textButton } from "./elements.js";

/** Heights of the sheet as shares of the whole. */
const SHEET_SHARES = [0.27, 0.46, 0.82];

/** A part of the panel that can be folded. */
function foldable(title, content, isOpen) {
  return element("details", { class: "tf-section", open: isOpen }, element("summary", {}, title), content);
}

export class Panel {
  /**
   * @param {{rowView, where, neighbors, path, slices, selection, about: HTMLElement, warning: ?string, hasImage: boolean, q: number,
   *   actions: {paste: () => void, csv: () => void, png: () => void}}} parts
   */
  constructor(parts) {
    this.parts = parts;
    this.level = 1;
    this.legendSlot = element("div", {});
    this.legendSection = foldable("Colour and filter", this.legendSlot, true);
    this.legendSection.hidden = true;
    this.selectionSection = foldable("Selection", parts.selection.element, true);
    this.selectionSection.hidden = true;
    this.slicesSection = foldable("Other dimensions", parts.slices.element, true);
    this.slicesSection.hidden = parts.q <= 2;
    this.handle = this.makeHandle();
    this.scroll = element(
      "div",
      { class: "tf-panel-scroll" },
      ...(parts.warning ? [element("p", { class: "tf-warning", role: "note" }, `Note: ${parts.warning}.`)] : []),
      this.makeRowSection(),
      this.selectionSection,
      this.slicesSection,
      foldable("Path from A to B", parts.path.element, true),
      foldable("Nearest rows", parts.neighbors.element, true),
      this.legendSection,
      foldable("What is shown", parts.about, false),
    );
    this.element = element(
      "aside",
      { class: "tf-panel", "aria-label": "The row at the probe" },
      this.handle,
      this.scroll,
    );
  }

  makeRowSection() {
    const { rowView, where, hasImage, actions } = this.parts;
    const buttons = element(
      "div",
      { class: "tf-buttons" },
      element(
        "button",
        { type: "button", class: "tf-button", onclick: actions.paste },
        icon("clipboard"),
        "Paste a row",
      ),
      element(
        "button",
        {
          type: "button",
          class: "tf-button",
          onclick: actions.csv,
          "aria-label": "Download the generated row as CSV",
        },
        icon("down"),
        "CSV",
      ),
      hasImage
        ? element(
            "button",
            {
              type: "button",
              class: "tf-button",
              onclick: actions.png,
              "aria-label": "Download the generated row as PNG",
            },
            icon("down"),
            "PNG",
          )
        : null,
    );
    return element(
      "section",
      { class: "tf-row-section" },
      element("div", { class: "tf-row-head" }, element("h2", {}, "The row here"), rowView.switcher),
      element("div", { class: "tf-row-body" }, rowView.element, where.element),
      buttons,
    );
  }

  /** The legend lies on the map where there is room, and in the panel on a phone. */
  holdLegend(legend, isHeld) {
    this.legendSection.hidden = !isHeld;
    if (isHeld) this.legendSlot.append(legend);
  }

  showSelection(isShown) {
    this.selectionSection.hidden = !isShown;
  }

  makeHandle() {
    const handle = textButton("", () => this.step(), {
      class: "tf-handle",
      "aria-label": "Resize the panel",
    });
    handle.append(element("span", { class: "tf-grip" }));
    let start = null;
    handle.addEventListener("pointerdown", (event) => {
      start = { y: event.clientY, height: this.element.offsetHeight, moved: false };
      handle.setPointerCapture(event.pointerId);
    });
    handle.addEventListener("pointermove", (event) => {
      if (!start) return;
      const up = start.y - event.clientY;
      start.moved ||= Math.abs(up) > 6;
      if (start.moved) this.setHeight(`${start.height + up}px`);
    });
    handle.addEventListener("pointerup", () => {
      // A drag ends at the nearest height; a tap is left to the click.
      this.ignoreClick = Boolean(start?.moved);
      if (start?.moved) this.snap();
      start = null;
    });
    handle.addEventListener("keydown", (event) => {
      const move = { ArrowUp: 1, ArrowDown: -1 }[event.key];
      if (!move) return;
      this.setLevel(Math.max(0, Math.min(SHEET_SHARES.length - 1, this.level + move)));
      event.preventDefault();
    });
    return handle;
  }

  step() {
    if (this.ignoreClick) this.ignoreClick = false;
    else this.setLevel((this.level + 1) % SHEET_SHARES.length);
  }

  snap() {
    const share = this.element.offsetHeight / this.element.closest(".twofold-explorer").offsetHeight;
    const off = SHEET_SHARES.map((candidate) => Math.abs(candidate - share));
    this.setLevel(off.indexOf(Math.min(...off)));
  }

  setLevel(level) {
    this.level = level;
    this.setHeight(`${100 * SHEET_SHARES[level]}%`);
  }

  /** Set where the map can see it, too: it makes room for the sheet, up to half the height. */
  setHeight(height) {
    this.element.parentElement.style.setProperty("--tf-sheet", height);
  }
}

/**
 * The help: what the page shows, and the keys.
 */

import { element, textButton, uniqueId } from "./elements.js";

const HELP_KEYS = [
  ["Move or drag over the map", "the row at that place is generated; a click pins the place"],
  ["Wheel, pinch, + \u2212", "zoom; in a notebook the wheel zooms with Ctrl, or after a click on the map"],
  ["Right button, two fingers, M, Alt + arrows", "move the map"],
  ["Shift + drag, L", "select rows with a lasso"],
  ["Arrows, Shift + arrows", "move the probe by a small or large step (map focused)"],
  ["0", "show the whole map (map focused)"],
  ["A, B", "make the probe the start or end of a path, and a place to compare others with"],
  ["P", "play or pause the path"],
  ["/", "search for a row"],
  ["C", "choose what the colours mean"],
  ["V", "next view of the row"],
  ["T", "light or dark"],
  ["Escape", "leave the field, lasso or move, clear the selection, free the pinned probe"],
  ["?", "this help"],
];

export class HelpDialog {
  /** @param {object} header */
  constructor(header) {
    const id = uniqueId("help");
    const rows = HELP_KEYS.map(([keys, what]) =>
      element("div", {}, element("dt", {}, keys), element("dd", {}, what)),
    );
    this.dialog = element(
      "dialog",
      { class: "tf-dialog tf-help", "aria-labelledby": id },
      element("h2", { id }, "How this map works"),
      element(
        "p",
        {},
        "Each point is a row of the data. The model is a regression from the map back to the data, and it runs in this page: at every place, also between the points, it says what a row there would look like. Where the map is shaded, no data support that answer.",
      ),
      element("dl", { class: "tf-keys" }, ...rows),
      element(
        "div",
        { class: "tf-dialog-foot" },
        textButton("Close", () => this.dialog.close(), { class: "tf-button tf-primary", autofocus: true }),
      ),
    );
    this.element = this.dialog;
    // A press on the backdrop, outside the box, closes as well.
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
  }

  toggle() {
    if (this.dialog.open) this.dialog.close();
    else {
      this.dialog.showModal();
      // The button at its end has the focus, which scrolls there where the window is low.
      this.dialog.scrollTop = 0;
    }
  }
}

/** What the page shows and how exact it is, in the sentences of the header. */
export function aboutSection(header) {
  const { model } = header;
  return element(
    "div",
    { class: "tf-about" },
    element(
      "p",
      {},
      `${model.family}: ${model.n_components} latent dimension${model.n_components === 1 ? "" : "s"}, fitted to ${model.n_rows.toLocaleString("en-US")} rows of ${model.n_features.toLocaleString("en-US")} features.`,
    ),
    element("ul", {}, ...header.shows.map((sentence) => element("li", {}, sentence))),
  );
}

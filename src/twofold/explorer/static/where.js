/**
 * Where the probe is: coordinates, density, inside or outside the data, pinned or following the pointer.
 */

import { element, formatNumber, icon } from "./elements.js";

/** What is smaller than this share of the map is 0. */
const NOTHING_ON_MAP = 1e-6;

/** "(0.12, −0.3)" @param {ArrayLike<number>} x @param {{low: Float64Array, high: Float64Array}} atlas */
export function placeText(x, { low, high }) {
  const texts = Array.from(x, (value, d) => {
    const isNothing = Math.abs(value) < NOTHING_ON_MAP * (high[d] - low[d]);
    return formatNumber(isNothing ? 0 : value, 3);
  });
  return `(${texts.join(", ")})`;
}

export class Where extends EventTarget {
  /** Fires "unpin" and "dismiss". */
  constructor() {
    super();
    this.place = element("dd", {});
    this.density = element("dd", {});
    this.densityLine = element("div", {}, element("dt", {}, "Density"), this.density);
    this.domainWords = element("span", {});
    this.domainHint = element("span", { class: "tf-domain-hint", hidden: true }, "a guess");
    this.domain = element(
      "p",
      { class: "tf-domain" },
      element("span", { class: "tf-dot" }),
      this.domainWords,
      this.domainHint,
    );
    this.pin = element(
      "button",
      {
        type: "button",
        class: "tf-chip",
        hidden: true,
        title: "Let the probe follow the pointer again (Escape)",
        onclick: () => this.dispatchEvent(new CustomEvent("unpin")),
      },
      icon("pin"),
      "Pinned",
      icon("close"),
    );
    this.hiddenRow = element("p", { class: "tf-note", role: "status", hidden: true });
    this.noticeText = element("span", {});
    this.notice = element(
      "p",
      { class: "tf-notice", role: "status", hidden: true },
      this.noticeText,
      element(
        "button",
        {
          type: "button",
          class: "tf-icon-button",
          "aria-label": "Remove this row",
          onclick: () => this.dispatchEvent(new CustomEvent("dismiss")),
        },
        icon("close"),
      ),
    );
    this.element = element(
      "div",
      { class: "tf-where" },
      element("div", { class: "tf-where-line" }, this.domain, this.pin),
      element(
        "dl",
        { class: "tf-facts" },
        element("div", {}, element("dt", {}, "Latent place"), this.place),
        this.densityLine,
      ),
      this.hiddenRow,
      this.notice,
    );
  }

  /** @param {string} place @param {number|null} density null: it says nothing @param {boolean} isInside */
  show(place, density, isInside) {
    this.place.textContent = place;
    this.densityLine.hidden = density === null;
    this.density.textContent = density === null ? "" : formatNumber(density, 3);
    if (this.isInside === isInside) return;
    this.isInside = isInside;
    this.domainWords.textContent = isInside ? "Inside the data" : "Outside the data";
    this.domainHint.hidden = isInside;
    this.domain.classList.toggle("tf-outside", !isInside);
  }

  /** All of it in a sentence, with the words for the nearest row. */
  words(nearest) {
    const side = this.isInside ? "inside the data" : "outside the data";
    const density = this.densityLine.hidden ? "" : `, density ${this.density.textContent}`;
    const place = `Probe at ${this.place.textContent}, ${side}${density}.`;
    return nearest ? `${place} Nearest: ${nearest}.` : place;
  }

  setPinned(isPinned) {
    this.pin.hidden = !isPinned;
  }

  /** @param {string|null} name of a row that was gone to though the map does not show it */
  setHiddenRow(name) {
    this.hiddenRow.hidden = name === null;
    this.hiddenRow.textContent = name === null ? "" : `${name} is hidden by the filter.`;
  }

  /** A line about a pasted row; null takes it away. */
  setNotice(text) {
    this.notice.hidden = !text;
    this.noticeText.textContent = text ?? "";
  }
}

/** Says things to screen readers, not more often than they can be listened to. */
export class Announcer {
  constructor(wait = 900) {
    this.wait = wait;
    this.element = element("div", { class: "tf-hidden", "aria-live": "polite", "aria-atomic": "true" });
  }

  say(text) {
    this.text = text;
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.element.textContent = this.text;
    }, this.wait);
  }

  destroy() {
    clearTimeout(this.timer);
  }
}

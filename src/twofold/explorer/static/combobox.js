/**
 * A text field with a list of suggestions (the combobox pattern of the ARIA practices guide).
 *
 * Arrows choose, Enter takes, Escape leaves. It serves the search and every choice of a feature,
 * where a plain select would be too long.
 */

import { element, icon, uniqueId } from "./elements.js";

/** Between the field and its list, in pixels. */
const LIST_GAP = 4;

/** A lower list would show too few suggestions: what holds the field scrolls instead. */
const LEAST_HEIGHT = 160;

export class Combobox extends EventTarget {
  /**
   * @param {{label: string, placeholder?: string, withIcon?: boolean, hideLabel?: boolean, isSelect?: boolean,
   *   suggest: (text: string) => {label: string, detail?: string, group?: string, value: any}[]}} options
   * Fires "choose" with the value taken, and "leave" when the reader is done with it.
   */
  constructor({ label, placeholder = "", withIcon = false, hideLabel = false, isSelect = false, suggest }) {
    super();
    this.suggest = suggest;
    this.options = [];
    this.active = -1;
    this.text = "";
    const id = uniqueId("combobox");
    this.list = element("ul", {
      class: "tf-suggestions",
      role: "listbox",
      id: `${id}-list`,
      "aria-label": label,
      hidden: true,
    });
    this.input = element("input", {
      id,
      type: "text",
      class: "tf-input",
      role: "combobox",
      autocomplete: "off",
      spellcheck: "false",
      placeholder,
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": this.list.id,
      oninput: () => this.open(this.input.value),
      onfocus: () => this.input.select(),
      onclick: () => this.list.hidden && this.open(this.keepsText ? "" : this.input.value),
      onkeydown: (event) => this.onKey(event),
      onblur: () => this.close(),
    });
    // The press must not take the focus from the field, or the list closes before the click.
    this.list.addEventListener("pointerdown", (event) => event.preventDefault());
    this.list.addEventListener("click", (event) => {
      const item = event.target.closest("[data-index]");
      if (item) this.take(Number(item.dataset.index));
    });
    this.element = element(
      "div",
      { class: `tf-combobox${withIcon ? " tf-with-icon" : ""}${isSelect ? " tf-select" : ""}` },
      element("label", { for: id, class: hideLabel ? "tf-hidden" : "tf-label" }, label),
      element("div", { class: "tf-combobox-field" }, withIcon ? icon("search") : null, this.input, this.list),
    );
  }

  /** Show a chosen text in the field; it comes back when the list closes without a choice. */
  setText(text) {
    this.keepsText = true;
    this.text = text;
    this.input.value = text;
    this.input.title = text; // the field may be too short for it
  }

  open(text) {
    const found = this.suggest(text.trim());
    // A note cannot be chosen: it says what the list leaves out.
    this.options = found.filter((option) => !option.note);
    this.active = text.trim() && this.options.length ? 0 : -1;
    let group = null;
    const items = [];
    this.options.forEach((option, index) => {
      if (option.group && option.group !== group) {
        group = option.group;
        items.push(element("li", { class: "tf-suggestion-group", role: "presentation" }, group));
      }
      items.push(this.makeItem(option, index));
    });
    for (const { note } of found)
      if (note) items.push(element("li", { class: "tf-suggestion-none", role: "presentation" }, note));
    if (!items.length)
      items.push(element("li", { class: "tf-suggestion-none", role: "presentation" }, "Nothing found"));
    this.list.replaceChildren(...items);
    this.list.hidden = false;
    this.place();
    this.input.setAttribute("aria-expanded", "true");
    this.highlight();
  }

  /** Put the list below the field, or above it where there is more room, and no further than is seen. */
  place() {
    if (this.list.hidden) return;
    const field = this.input.getBoundingClientRect();
    const origin = this.list.offsetParent.getBoundingClientRect();
    const seen = this.element
      .closest(".tf-panel-scroll, .tf-map-area, .twofold-explorer")
      .getBoundingClientRect();
    const [above, below] = [field.top - seen.top - 2 * LIST_GAP, seen.bottom - field.bottom - 2 * LIST_GAP];
    const { style } = this.list;
    style.maxHeight = "";
    const isUp = this.list.offsetHeight > below && above > Math.max(below, LEAST_HEIGHT);
    const room = Math.max(isUp ? above : below, LEAST_HEIGHT);
    if (this.list.offsetHeight > room) style.maxHeight = `${room}px`;
    const top = isUp ? field.top - LIST_GAP - this.list.offsetHeight : field.bottom + LIST_GAP;
    style.top = `${top - origin.top}px`;
    style.left = `${field.left - origin.left}px`;
    style.width = `${field.width}px`;
  }

  makeItem(option, index) {
    return element(
      "li",
      { role: "option", id: `${this.list.id}-${index}`, "data-index": index, "aria-selected": "false" },
      element("span", {}, option.label),
      option.detail ? element("span", { class: "tf-suggestion-detail" }, option.detail) : null,
    );
  }

  highlight() {
    for (const item of this.list.querySelectorAll("[role=option]")) {
      const isActive = Number(item.dataset.index) === this.active;
      item.setAttribute("aria-selected", String(isActive));
      if (isActive) item.scrollIntoView({ block: "nearest" });
    }
    if (this.active >= 0) this.input.setAttribute("aria-activedescendant", `${this.list.id}-${this.active}`);
    else this.input.removeAttribute("aria-activedescendant");
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
    if (this.keepsText) this.input.value = this.text;
  }

  take(index) {
    const option = this.options[index];
    if (!option) return;
    if (this.keepsText) this.setText(option.label);
    else this.input.value = option.label;
    this.close();
    this.dispatchEvent(new CustomEvent("choose", { detail: option.value }));
    this.leave();
  }

  onKey(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (this.list.hidden) this.open(this.keepsText ? "" : this.input.value);
      const count = this.options.length;
      const step = event.key === "ArrowDown" ? 1 : -1;
      if (count) this.active = this.active < 0 && step < 0 ? count - 1 : (this.active + step + count) % count;
      this.highlight();
      event.preventDefault();
    } else if (event.key === "Enter") {
      if (!this.list.hidden) this.take(Math.max(0, this.active));
      event.preventDefault();
    } else if (event.key === "Escape") {
      this.leave();
      event.stopPropagation();
    }
  }

  /** Give the focus back to the page, so that its keys work again. */
  leave() {
    this.input.blur();
    this.dispatchEvent(new CustomEvent("leave"));
  }

  focus() {
    this.input.focus();
  }
}

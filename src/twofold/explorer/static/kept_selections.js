/**
 * Selections that were kept: each with a name, to go back to and to compare with.
 */

import { countOf, element, iconButton, textButton } from "./elements.js";

/** The label under which kept selections colour and filter the map. */
export const KEPT_LABEL = "Kept selections";

export class KeptSelections extends EventTarget {
  /** Fires "change", "recall" with the rows of one, and "leave" when a name was typed. */
  constructor() {
    super();
    /** @type {{name: string, rows: Uint32Array}[]} */
    this.all = [];
    this.list = element("ul", { class: "tf-kept", "aria-label": "Kept selections" });
    this.element = element("div", { hidden: true }, element("h3", {}, "Kept selections"), this.list);
  }

  add(rows) {
    let number = this.all.length + 1;
    while (this.all.some(({ name }) => name === `Group ${number}`)) number++;
    this.set([...this.all, { name: `Group ${number}`, rows }]);
    this.list.lastElementChild.scrollIntoView({ block: "nearest" });
  }

  /** @param {{name: string, rows: Uint32Array}[]} all */
  set(all) {
    this.all = all.filter(({ rows }) => rows.length);
    this.element.hidden = !this.all.length;
    this.list.replaceChildren(...this.all.map((kept) => this.makeItem(kept)));
    this.changed();
  }

  changed() {
    this.dispatchEvent(new CustomEvent("change"));
  }

  makeItem(kept) {
    const name = element("input", {
      class: "tf-input",
      value: kept.name,
      maxlength: 60,
      "aria-label": `Name of ${kept.name}`,
      onchange: () => {
        kept.name = name.value.trim() || kept.name;
        name.value = kept.name;
        this.changed();
      },
      onkeydown: (event) => {
        if (event.key === "Escape") name.value = kept.name;
        else if (event.key !== "Enter") return;
        event.stopPropagation();
        this.dispatchEvent(new CustomEvent("leave"));
      },
    });
    return element(
      "li",
      {},
      name,
      textButton(countOf(kept.rows.length, "row"), () => this.recall(kept), { title: `Select ${kept.name} again` }),
      iconButton("close", `Forget ${kept.name}`, () => this.set(this.all.filter((other) => other !== kept))),
    );
  }

  recall(kept) {
    this.dispatchEvent(new CustomEvent("recall", { detail: kept.rows }));
  }

  /** As a column of labels; a row in several selections belongs to the last. */
  label(n) {
    if (!this.all.length) return null;
    const codes = new Uint16Array(n).fill(65535);
    this.all.forEach(({ rows }, code) => rows.forEach((row) => (codes[row] = code)));
    return { kind: "category", values: this.all.map(({ name }) => name), codes, isMade: true };
  }
}

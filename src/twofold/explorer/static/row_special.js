/**
 * What is special about the place under the probe, against all rows or against a second place.
 */

import { element } from "./elements.js";
import { SpecialList } from "./special_list.js";

export class RowSpecial {
  /** @param {object} header */
  constructor(header) {
    this.header = header;
    this.places = {};
    this.list = new SpecialList(header, "What stands out in the generated row");
    this.against = element("select", {
      class: "tf-input",
      "aria-label": "Compare with",
      onchange: () => this.values && this.draw(this.values),
    });
    this.hint = element("p", { class: "tf-note" }, "Press A at a place to compare others with it.");
    this.element = element(
      "div",
      { class: "tf-special-view" },
      element("label", { class: "tf-special-against" }, element("span", {}, "Against"), this.against),
      this.list.element,
      this.hint,
    );
    this.setPlaces({});
  }

  /** @param {Object<string, {name: string, values: Float64Array}|null>} places to compare with, by letter */
  setPlaces(places) {
    const before = this.against.value;
    this.places = Object.fromEntries(Object.entries(places).filter(([, place]) => place));
    const all = this.header.usual.of === "rows" ? "the mean of all rows" : "the mean of the map";
    const options = [
      ["", all],
      ...Object.entries(this.places).map(([letter, { name }]) => [letter, `place ${letter}: ${name}`]),
    ];
    this.against.replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
    this.against.value = before in this.places ? before : "";
    this.against.parentElement.hidden = options.length === 1;
    this.hint.hidden = options.length > 1;
    if (this.values) this.draw(this.values);
  }

  draw(values) {
    this.values = values;
    const place = this.places[this.against.value];
    this.list.show({
      here: values,
      there: place ? place.values : this.header.usual.mean,
      spread: this.header.left_open?.features ?? null,
      thereTitle: place ? `at ${this.against.value}` : this.header.usual.of === "rows" ? "all rows" : "whole map",
      areMeans: [false, !place],
    });
  }
}

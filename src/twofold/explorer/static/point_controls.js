/**
 * How points look: their size, their opacity, and whether names of classes are written on the map.
 */

import { element, uniqueId } from "./elements.js";

/** Steps of a slider for one doubling; 0 is what the map chooses by itself. */
const STEPS_PER_DOUBLING = 10;

export class PointControls extends EventTarget {
  /** Fires "look" with {size, opacity, hasNames}. */
  constructor() {
    super();
    this.size = this.makeSlider("Size");
    this.opacity = this.makeSlider("Opacity");
    this.names = element("input", { type: "checkbox", checked: true, onchange: () => this.tell() });
    this.element = element(
      "details",
      { class: "tf-more" },
      element("summary", {}, "Points and names"),
      this.size.element,
      this.opacity.element,
      element("label", { class: "tf-check" }, this.names, element("span", {}, "Names of classes on the map")),
    );
  }

  makeSlider(title) {
    const id = uniqueId("look");
    const input = element("input", {
      id,
      type: "range",
      min: -2 * STEPS_PER_DOUBLING,
      max: 2 * STEPS_PER_DOUBLING,
      value: 0,
      oninput: () => this.tell(),
    });
    return { input, element: element("div", { class: "tf-look" }, element("label", { for: id }, title), input) };
  }

  /** What the sliders say, as factors. */
  get look() {
    const factor = ({ input }) => 2 ** (Number(input.value) / STEPS_PER_DOUBLING);
    return { size: factor(this.size), opacity: factor(this.opacity), hasNames: this.names.checked };
  }

  tell() {
    this.dispatchEvent(new CustomEvent("look", { detail: this.look }));
  }
}

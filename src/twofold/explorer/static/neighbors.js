/**
 * The real rows nearest to the probe, as buttons that jump to them.
 */

import { element, formatNumber, textButton } from "./elements.js";
import { labelValues, labelsText, rowName } from "./row_names.js";
import { sparkline } from "./row_curve.js";
import { thumbnail } from "./row_image.js";

/** Rows in the list. */
export const NEIGHBORS = 6;

export class Neighbors extends EventTarget {
  /** @param {object} atlas Fires "jump" {row} and "pick" {row, end}. */
  constructor(atlas) {
    super();
    this.atlas = atlas;
    this.list = element("ul", { class: "tf-neighbors" });
    this.element = this.list;
    this.shown = "";
  }

  /** @param {{row: number, distance: number}[]} neighbors */
  show(neighbors) {
    // The list is often the same after a small move; rebuilding it would take the focus away.
    const rows = neighbors.map(({ row }) => row).join(",");
    if (rows === this.shown) {
      neighbors.forEach(({ distance }, k) => {
        this.distances[k].textContent = distanceText(this.atlas, distance);
      });
      return;
    }
    const root = this.list.getRootNode();
    const focused = this.list.contains(root.activeElement)
      ? [...this.list.querySelectorAll("button")].indexOf(root.activeElement)
      : -1;
    this.shown = rows;
    this.distances = [];
    this.list.replaceChildren(...neighbors.map((neighbor) => this.makeItem(neighbor)));
    if (focused >= 0) this.list.querySelectorAll("button")[focused]?.focus();
  }

  makeItem({ row, distance }) {
    const name = rowName(this.atlas, row);
    const distanceNote = element("span", { class: "tf-distance" }, distanceText(this.atlas, distance));
    this.distances.push(distanceNote);
    const jump = element(
      "button",
      {
        type: "button",
        class: "tf-neighbor",
        "data-row": row,
        onclick: () => this.fire("jump", { row }),
        title: `Go to ${name}: ${labelsText(this.atlas, row)}`,
      },
      this.picture(row),
      element(
        "span",
        { class: "tf-neighbor-text" },
        // The blanks are for those who hear it.
        element("span", { class: "tf-neighbor-name" }, name),
        " ",
        element("span", { class: "tf-neighbor-labels" }, labelValues(this.atlas, row)),
        " ",
        distanceNote,
      ),
    );
    const picks = ["A", "B"].map((end) =>
      textButton(end, () => this.fire("pick", { row, end }), {
        class: "tf-pick",
        "aria-label": `Pick ${name} as ${end}`,
        title: `Pick ${name} as ${end}`,
      }),
    );
    return element("li", {}, jump, element("span", { class: "tf-picks" }, ...picks));
  }

  picture(row) {
    const { header } = this.atlas;
    if (header.view !== "image" && header.view !== "curve") return null;
    const values = this.atlas.rowData(row);
    if (!values) return null;
    return header.image_shape && header.view === "image"
      ? thumbnail(header, values)
      : sparkline(header, values);
  }

  fire(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/** What is nearer than this share of the map is at the same place. */
const SAME_PLACE = 1e-6;

function distanceText(atlas, distance) {
  const isSame = distance < SAME_PLACE * (atlas.high[0] - atlas.low[0]);
  return `${formatNumber(isSame ? 0 : distance, 3)} away`;
}

/**
 * A second picture of the same rows beside the map: colours, filters, selections and the row under the pointer
 * are shared. It has no way back, so there is no probe on it: a click goes to the row.
 */

import { element } from "./elements.js";
import { MapView } from "./map_view.js";
import { rowTags } from "./row_tags.js";

/** @param {import("./explorer.js").Explorer} explorer @returns {MapView|null} null if the page has one map only */
export function makeSecondMap(explorer) {
  const { atlas, layout, hooks } = explorer;
  if (!atlas.beside) return null;
  const { positions, title } = atlas.beside;
  const host = element("div", { class: "tf-map tf-second-map", "aria-label": `The same rows: ${title}` });
  const heading = element("p", { class: "tf-second-title" }, title);
  layout.mapHost.after(host, heading);
  layout.mapArea.classList.add("tf-two-maps");
  const map = new MapView(host, {
    positions,
    ...boxOf(positions),
    theme: layout.theme,
    isEmbedded: !hooks.wholePage,
    covers: () => layout.coversOf(host, [heading, layout.tools, ...layout.sheet]),
    ...rowTags(atlas),
  });
  host.addEventListener("pointermove", (event) => {
    explorer.pointer = event;
    explorer.moveTip();
  });
  host.addEventListener("pointerleave", () => explorer.onHover(-1));
  map.addEventListener("rowhover", ({ detail }) => explorer.onHover(detail.row));
  map.addEventListener("select", ({ detail }) => {
    explorer.setMode("probe");
    explorer.select(detail.rows);
  });
  map.addEventListener("probe", ({ detail }) => {
    if (detail.phase === "click" && explorer.hovered >= 0) explorer.jumpTo(explorer.hovered, false);
  });
  return map;
}

/** Lowest and highest coordinates. */
function boxOf(positions) {
  const low = [Infinity, Infinity];
  const high = [-Infinity, -Infinity];
  for (let k = 0; k < positions.length; k++) {
    low[k % 2] = Math.min(low[k % 2], positions[k]);
    high[k % 2] = Math.max(high[k % 2], positions[k]);
  }
  return { low, high };
}

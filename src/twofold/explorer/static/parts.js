/**
 * The parts of the interface, made and put into their places.
 */

import { Combobox } from "./combobox.js";
import { aboutSection } from "./help.js";
import { Legend } from "./legend.js";
import { Neighbors } from "./neighbors.js";
import { Panel } from "./panel.js";
import { PasteDialog } from "./paste.js";
import { PathPlayer } from "./path_player.js";
import { labelsText, rowName } from "./row_names.js";
import { RowSearch } from "./row_search.js";
import { RowView } from "./row_view.js";
import { SelectionView } from "./selection_view.js";
import { Slices } from "./slices.js";
import { Where } from "./where.js";

function makeSearch(atlas) {
  const search = new RowSearch(atlas);
  const box = new Combobox({
    label: "Search rows",
    placeholder: "Search rows by name or label",
    withIcon: true,
    hideLabel: true,
    suggest: (text) =>
      search.find(text).map((row) => ({
        label: rowName(atlas, row),
        detail: labelsText(atlas, row),
        value: row,
      })),
  });
  // Before the first letter comes, so that it need not wait.
  box.input.addEventListener("focus", () => setTimeout(() => search.prepare(), 0), { once: true });
  return box;
}

/**
 * @param {object} atlas
 * @param {Layout} layout
 * @param {{paste: () => void, csv: () => void, png: () => void}} actions of the buttons below the row
 */
export function makeParts(atlas, layout, actions) {
  const { header } = atlas;
  const parts = {
    rowView: new RowView(header),
    where: new Where(),
    neighbors: new Neighbors(atlas),
    path: new PathPlayer(),
    slices: new Slices(atlas),
    selectionView: new SelectionView(atlas),
    legend: new Legend(atlas),
    paste: new PasteDialog(header),
    search: makeSearch(atlas),
  };
  const panel = new Panel({
    ...parts,
    selection: parts.selectionView,
    about: aboutSection(header),
    warning: header.warning,
    hasImage: Boolean(header.image_shape),
    q: atlas.q,
    actions,
  });
  layout.searchSlot.append(parts.search.element);
  layout.panelSlot.append(panel.element);
  layout.app.append(parts.paste.element);
  return { ...parts, panel };
}

/**
 * What is shown goes into the address, and comes back from it.
 */

import { element } from "./elements.js";
import { readState, writeState } from "./share.js";
import { densestRow } from "./spread.js";
import { placeText } from "./where.js";

/** The address of what is shown now. */
function currentHash(explorer) {
  const { path, legend, rowView, map, selectionView } = explorer;
  const { camera } = map;
  return writeState({
    probe: explorer.isPinned ? explorer.probe : null,
    color: legend.color,
    view: rowView.view,
    a: path.ends.A?.x,
    b: path.ends.B?.x,
    map: camera.isHome ? null : [...camera.center, camera.zoom],
    filters: legend.filters.state,
    rows: explorer.selection,
    kept: selectionView.kept.all,
  });
}

/** Write what is shown into the address. */
export function keepState(explorer) {
  // Replaced, not pushed: the back button should leave the page. Some embedders forbid it.
  try {
    history.replaceState(null, "", `#${currentHash(explorer)}`);
  } catch {
    explorer.hooks = { ...explorer.hooks, wholePage: false };
  }
}

/**
 * Show what the address says. A page that opens begins at the densest place. Links hold all of it; of an address
 * written by hand, which names no colour, what it does not mention stays as it is.
 * @param {import("./explorer.js").Explorer} explorer @param {boolean} isStart
 */
export function restoreState(explorer, isStart) {
  const { atlas, legend, path, scene, selectionView, map } = explorer;
  const state = explorer.hooks.wholePage ? readState(location.hash, atlas.q, atlas.n) : { filters: {}, kept: [] };
  const isWhole = isStart || state.color !== null;
  explorer.isRestoring = true;
  if (isWhole || state.kept.length) selectionView.kept.set(state.kept);
  if (isStart || state.color) legend.setColor(state.color ?? legend.defaultColor);
  if (state.view) explorer.rowView.setView(state.view);
  if (isWhole || Object.keys(state.filters).length) legend.restoreFilters(state.filters);
  if (state.rows || (isWhole && explorer.selection.length)) explorer.select(state.rows ?? []);
  if (isWhole && !isStart && !(state.a && state.b)) path.clear();
  for (const end of ["a", "b"])
    if (state[end]) path.setEnd(end.toUpperCase(), state[end], placeText(state[end], atlas));
  if (state.map) map.showPlace([state.map[0], state.map[1]], state.map[2]);
  else if (isWhole && !isStart) map.resetView();
  if (state.probe || isStart) {
    explorer.chosen = -1;
    explorer.setPinned(Boolean(state.probe));
    const place = state.probe ?? scene.rowPlace(densestRow(atlas));
    explorer.goTo(place);
    if (!state.map && !map.camera.shows(scene.toMap(place))) map.showPlace(scene.toMap(place), map.camera.zoom);
  }
  explorer.isRestoring = false;
}

/** Copy the address, or show it where the browser does not allow that. */
export async function copyLink(explorer) {
  keepState(explorer);
  const { layout } = explorer;
  try {
    await navigator.clipboard.writeText(location.href);
    layout.say("The link is copied.");
  } catch {
    const field = element("input", { class: "tf-input", readonly: true, value: location.href, "aria-label": "Link" });
    layout.say("Copy this link:", field);
    field.select();
  }
}

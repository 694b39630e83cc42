/**
 * Who listens to whom: what people do in one part, and what the others make of it.
 */

import { saveNamesCsv, saveSelectionCsv } from "./downloads.js";
import { copyLink, restoreState } from "./explorer_state.js";
import { KEPT_LABEL } from "./kept_selections.js";
import { rowName } from "./row_names.js";
import { listenForKeys } from "./shortcuts.js";

function on(target, type, act) {
  target.addEventListener(type, (event) => act(event.detail));
}

/** @param {import("./explorer.js").Explorer} explorer */
export function listenToParts(explorer) {
  const { map, legend, search, neighbors, path, slices, paste, where, rowView } = explorer;
  listenToMap(explorer, map);
  listenToSelection(explorer);
  on(legend, "color", () => {
    explorer.showColors();
    explorer.keepState();
  });
  on(legend, "filter", ({ mask }) => {
    explorer.setFilter(mask);
    explorer.lookAround();
  });
  on(legend.points, "look", (look) => explorer.setLook(look));
  on(legend, "pick", (mask) => explorer.select(shownRows(mask)));
  on(search, "choose", (row) => explorer.jumpTo(row, true));
  for (const box of [search, legend.colorBox, legend.filterBox]) on(box, "leave", () => explorer.focusMap());
  on(neighbors, "jump", ({ row }) => explorer.jumpTo(row, false));
  on(neighbors, "pick", ({ row, end }) =>
    path.setEnd(end, explorer.scene.rowPlace(row), rowName(explorer.atlas, row)),
  );
  on(path, "pick", ({ end }) => explorer.pick(end));
  on(path, "path", ({ points }) => explorer.onPath(points));
  on(path, "state", () => explorer.layout.setPlay(Boolean(path.points), path.isPlaying));
  on(path, "walk", ({ x, k }) => explorer.onWalk(x, k));
  on(slices, "slice", () => explorer.onSlice());
  on(paste, "row", (row) => explorer.showPasted(row));
  on(where, "unpin", () => explorer.setPinned(false));
  on(where, "dismiss", () => explorer.dismissPasted());
  on(rowView, "view", () => explorer.lookAround());
  on(rowView, "color", (key) => explorer.colorBy(key));
}

function listenToMap(explorer, map) {
  on(map, "probe", ({ x, phase }) => explorer.onMapProbe(x, phase));
  on(map, "rowhover", ({ row }) => explorer.onHover(row));
  on(map, "view", () => explorer.keepStateSoon());
  on(map, "select", ({ rows }) => {
    explorer.setMode("probe");
    explorer.select(rows);
  });
}

function listenToSelection(explorer) {
  const { selectionView: view, atlas, legend } = explorer;
  on(view, "clear", () => explorer.select(new Uint32Array(0)));
  on(view, "download", () => saveSelectionCsv(atlas, explorer.selection));
  on(view, "names", () => saveNamesCsv(atlas, explorer.selection));
  on(view, "link", () => copyLink(explorer));
  on(view, "color", (key) => explorer.colorBy(key));
  on(view, "recall", (rows) => explorer.select(rows));
  on(view, "leave", () => explorer.focusMap());
  on(view, "kept", () => {
    legend.setLabel(KEPT_LABEL, view.kept.label(atlas.n));
    explorer.panel.showSelection(!view.isEmpty);
    explorer.keepState();
  });
}

/** Rows that a mask lets through. */
function shownRows(mask) {
  const rows = [];
  mask?.forEach((isShown, row) => isShown && rows.push(row));
  return Uint32Array.from(rows);
}

/**
 * Pointer, keys, sizes, the theme of the system and the address.
 * @param {import("./explorer.js").Explorer} explorer
 * @returns {() => void} stops listening
 */
export function listenOutside(explorer) {
  const { layout, hooks } = explorer;
  layout.mapHost.addEventListener("pointermove", (event) => {
    explorer.pointer = event;
    explorer.moveTip();
  });
  layout.mapHost.addEventListener("pointerleave", () => explorer.onHover(-1));
  const observer = new ResizeObserver(() => {
    explorer.placeLegend();
    explorer.map.resize();
  });
  observer.observe(layout.app);
  observer.observe(layout.mapHost);
  const dark = globalThis.matchMedia("(prefers-color-scheme: dark)");
  const onSystem = () => explorer.setTheme(layout.systemTheme);
  dark.addEventListener("change", onSystem);
  // Fires for links and for what is typed, not for what the page writes itself.
  const onAddress = () => restoreState(explorer, false);
  if (hooks.wholePage) globalThis.addEventListener("hashchange", onAddress);
  const keyed = hooks.wholePage ? document : layout.app;
  const stopKeys = listenForKeys(keyed, keyActions(explorer), () => explorer.focusMap());
  return () => {
    observer.disconnect();
    dark.removeEventListener("change", onSystem);
    globalThis.removeEventListener("hashchange", onAddress);
    stopKeys();
  };
}

function keyActions(explorer) {
  return {
    a: () => explorer.pick("A"),
    b: () => explorer.pick("B"),
    p: () => explorer.path.toggle(),
    l: () => explorer.toggleMode("lasso"),
    m: () => explorer.toggleMode("pan"),
    v: () => explorer.rowView.nextView(),
    t: () => explorer.toggleTheme(),
    c: () => explorer.focusColor(),
    "/": () => explorer.search.focus(),
    "?": () => explorer.help.toggle(),
    Escape: () => explorer.escape(),
  };
}

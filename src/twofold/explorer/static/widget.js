// The explorer in a notebook: what people do in the page goes to Python, and back.

import { startExplorer } from "./main.js";

// While a finger moves, Python hears of it this often at most.
const MILLISECONDS_BETWEEN_MESSAGES = 80;

/**
 * Return a function that calls `send` soon, but not more often than every so many milliseconds.
 * @param {() => void} send
 * @returns {() => void}
 */
function seldom(send) {
  let waiting = null;
  return () => {
    waiting ??= setTimeout(() => {
      waiting = null;
      send();
    }, MILLISECONDS_BETWEEN_MESSAGES);
  };
}

/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
function haveSameNumbers(a, b) {
  return a.length === b.length && Array.from(a).every((value, i) => value === b[i]);
}

/**
 * Draw the explorer into a cell of a notebook; called by anywidget.
 * @param {{model: any, el: HTMLElement}} view
 * @returns {() => void} what is called when the cell goes away
 */
function render({ model, el }) {
  const bytes = model.get("data");
  const data = new Uint8Array(bytes.buffer ?? bytes, bytes.byteOffset ?? 0, bytes.byteLength);
  const save = seldom(() => model.save_changes());
  // What both sides know already: only what differs from it is news.
  const known = { probe: [], selection: [] };
  const tell = (changes) => {
    Object.assign(known, changes);
    for (const [name, value] of Object.entries(changes)) model.set(name, value);
    save();
  };
  const controller = startExplorer(el, model.get("header"), data, {
    onProbe: (x, y) => tell({ probe: Array.from(x), generated: Array.from(y) }),
    onSelect: (rows) => tell({ selection: Array.from(rows) }),
    onPick: (row) => tell({ picked: row }),
  });
  const follow = (name, act) => () => {
    const value = model.get(name);
    if (haveSameNumbers(value, known[name])) return;
    known[name] = value;
    controller.ready.then(() => act(value));
  };
  const followProbe = follow("probe", (x) => x.length && controller.setProbe(x));
  const followSelection = follow("selection", (rows) => controller.setSelection(rows));
  followProbe();
  followSelection();
  model.on("change:probe", followProbe);
  model.on("change:selection", followSelection);
  return () => {
    model.off("change:probe", followProbe);
    model.off("change:selection", followSelection);
    controller.destroy();
  };
}

export default { render };

/**
 * What is shown, as a text for the address bar: a link opens the same place in the same colours, with the
 * same filters and selections.
 */

import { readRows, writeRows } from "./row_codes.js";

/** A selection whose text would be longer than this is left out: some programs cut long links off. */
const MOST_LINK_LETTERS = 30000;

const FILTER_PREFIX = "filter.";

function placeField(place) {
  return Array.from(place, (value) => Number(value.toPrecision(6))).join(",");
}

/**
 * @typedef {{probe?: ArrayLike<number>, color?: string, view?: string, a?: ArrayLike<number>, b?: ArrayLike<number>,
 *   map?: number[], filters?: Object<string, string[]|[number, number]>, rows?: Uint32Array,
 *   kept?: {name: string, rows: Uint32Array}[]}} ViewState
 *   `map` middle and zoom; `filters` by the key of a quantity: names of categories, or a range
 *
 * @param {ViewState} state
 */
export function writeState(state) {
  const fields = new URLSearchParams();
  for (const name of ["probe", "a", "b", "map"]) if (state[name]) fields.set(name, placeField(state[name]));
  for (const name of ["color", "view"]) if (state[name]) fields.set(name, state[name]);
  for (const [key, passing] of Object.entries(state.filters ?? {})) {
    const isRange = typeof passing[0] === "number";
    fields.set(
      `${FILTER_PREFIX}${key}`,
      isRange ? passing.join("..") : passing.map(encodeURIComponent).join(","),
    );
  }
  const rows = state.rows?.length ? writeRows(state.rows) : "";
  if (rows && rows.length <= MOST_LINK_LETTERS) fields.set("rows", rows);
  for (const { name, rows: own } of state.kept ?? []) {
    const text = writeRows(own);
    if (text.length <= MOST_LINK_LETTERS) fields.append("kept", `${encodeURIComponent(name)}~${text}`);
  }
  return fields.toString().replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%7E", "~");
}

/** Whether a link holds all of a selection. */
export function fitsLink(rows) {
  return writeRows(rows).length <= MOST_LINK_LETTERS;
}

/**
 * Read it again; places that do not have q numbers are left out.
 * @param {string} hash @param {number} q @param {number} n
 * @returns {ViewState}
 */
export function readState(hash, q, n) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { color: fields.get("color"), view: fields.get("view"), filters: {} };
  for (const [name, length] of [["probe", q], ["a", q], ["b", q], ["map", 3]]) {
    const place = (fields.get(name) ?? "").split(",").map(Number);
    if (fields.get(name) && place.length === length && place.every(Number.isFinite))
      state[name] = Float64Array.from(place);
  }
  for (const [name, text] of fields) {
    if (!name.startsWith(FILTER_PREFIX)) continue;
    const ends = text.split("..").map(Number);
    state.filters[name.slice(FILTER_PREFIX.length)] =
      ends.length === 2 && ends.every(Number.isFinite) ? ends : text.split(",").map(decodeOrEmpty);
  }
  if (fields.get("rows")) state.rows = readRows(fields.get("rows"), n);
  state.kept = fields.getAll("kept").map((text) => {
    const end = text.lastIndexOf("~"); // a name may hold this sign, too
    return { name: decodeOrEmpty(text.slice(0, end)), rows: readRows(text.slice(end + 1), n) };
  });
  return state;
}

/** Text that someone may have changed by hand. */
function decodeOrEmpty(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

/**
 * What is shown, as a text for the address bar: a link opens the same place in the same colours.
 */

/** @param {{probe?: ArrayLike<number>, color?: string, view?: string, a?: ArrayLike<number>, b?: ArrayLike<number>}} state */
export function writeState(state) {
  const fields = new URLSearchParams();
  for (const name of ["probe", "a", "b"]) {
    if (state[name])
      fields.set(name, Array.from(state[name], (value) => Number(value.toPrecision(6))).join(","));
  }
  for (const name of ["color", "view"]) if (state[name]) fields.set(name, state[name]);
  return fields.toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
}

/** Read it again; places that do not have q numbers are left out. */
export function readState(hash, q) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { color: fields.get("color"), view: fields.get("view") };
  for (const name of ["probe", "a", "b"]) {
    const place = (fields.get(name) ?? "").split(",").map(Number);
    if (fields.get(name) && place.length === q && place.every(Number.isFinite))
      state[name] = Float64Array.from(place);
  }
  return state;
}

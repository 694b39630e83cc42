// How large and how opaque points are drawn.

/** Cells along a side of the map in which points are counted to see how crowded it is. */
const CROWD_CELLS = 96;

/** Points per square of latent units around a typical point. */
export function crowdingOf(positions, low, high) {
  const width = [0, 1].map((d) => (high[d] - low[d]) / CROWD_CELLS || 1e-9);
  const counts = new Uint32Array(CROWD_CELLS * CROWD_CELLS);
  const step = (value, d) => Math.min(CROWD_CELLS - 1, Math.max(0, Math.floor((value - low[d]) / width[d])));
  for (let k = 0; k < positions.length; k += 2) counts[CROWD_CELLS * step(positions[k + 1], 1) + step(positions[k], 0)]++;
  let squares = 0;
  // A lone point in its cell does not crowd.
  for (const count of counts) squares += count * (count - 1);
  return (2 * squares) / (positions.length || 1) / (width[0] * width[1]);
}

/**
 * Many points are drawn small and pale, so that dense places can be told from very dense ones.
 * @param {import("./camera.js").Camera} camera @param {number} n points @param {number} crowding as above
 * @returns {{diameter: number, opacity: number}} in pixels of the page
 */
export function pointLook(camera, n, crowding) {
  const room = Math.sqrt((camera.width * camera.height) / 6e5);
  const atRest = 6.8 * room * (Math.max(n, 700) / 1500) ** -0.23;
  const diameter = Math.min(11, Math.max(1.25, atRest * camera.zoom ** 0.3));
  // Discs that lie above each other at a typical point; together they should just about cover it.
  const layers = (crowding * Math.PI * diameter ** 2) / (4 * camera.scale ** 2);
  return { diameter, opacity: Math.min(0.92, Math.max(0.08, 2.4 / layers)) };
}

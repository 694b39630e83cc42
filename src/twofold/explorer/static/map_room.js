// Where the data is shown so that nothing that lies on the map covers it.

/** Share of the view that the data fills where nothing is in the way. */
export const ROOM_FILL = 0.9;

/** Between the data and what lies on the map, in pixels. */
const ROOM_GAP = 12;

/** The data is made smaller in steps until it fits, but not smaller than this share. */
const ROOM_STEP = 0.97;
const LEAST_ROOM_SCALE = 0.35;

/** Places that are tried along each side. */
const ROOM_PLACES = 9;

/** Cells along a side of the data's box: those with rows must stay clear. */
const ROOM_CELLS = 40;

/**
 * Which parts of their box rows take.
 * @param {Float32Array} positions (n, 2)
 * @param {number[]} low @param {number[]} extent of the box
 * @returns {number[][]} corners [left, top] of cells with rows, as shares of the box
 */
export function takenCells(positions, low, extent) {
  const isTaken = new Uint8Array(ROOM_CELLS * ROOM_CELLS);
  const step = (value, d) => Math.min(ROOM_CELLS - 1, Math.floor((ROOM_CELLS * (value - low[d])) / extent[d]));
  for (let k = 0; k < positions.length; k += 2) {
    isTaken[ROOM_CELLS * (ROOM_CELLS - 1 - step(positions[k + 1], 1)) + step(positions[k], 0)] = 1;
  }
  const cells = [];
  isTaken.forEach((taken, at) => taken && cells.push([(at % ROOM_CELLS) / ROOM_CELLS, Math.floor(at / ROOM_CELLS) / ROOM_CELLS]));
  return cells;
}

/**
 * The largest place for the data in a view that keeps its rows clear of what lies on the map, as near to the
 * middle as can be.
 * @param {number} width @param {number} height of the view in pixels
 * @param {number[]} extent of the data
 * @param {number[][]} cells as above
 * @param {{left: number, top: number, right: number, bottom: number}[]} covers pixels from the left and the top
 * @returns {{left: number, top: number, scale: number}} of the data's box
 */
export function roomBeside(width, height, extent, cells, covers) {
  const largest = ROOM_FILL * Math.min(width / extent[0], height / extent[1]);
  const shares = Array.from({ length: ROOM_PLACES }, (_, k) => k / (ROOM_PLACES - 1)).sort((a, b) => Math.abs(a - 0.5) - Math.abs(b - 0.5));
  const placeOf = (scale, across, down) => {
    // In the middle there is as much on both sides; at the ends a little is left, for the border of the domain.
    const [free, deep] = [width - extent[0] * scale, height - extent[1] * scale];
    const [gap, rise] = [Math.min(2 * ROOM_GAP, free / 2), Math.min(2 * ROOM_GAP, deep / 2)];
    return { left: gap + across * (free - 2 * gap), top: rise + down * (deep - 2 * rise), scale };
  };
  for (let share = 1; share >= LEAST_ROOM_SCALE; share *= ROOM_STEP) {
    for (const down of shares) {
      for (const across of shares) {
        const place = placeOf(share * largest, across, down);
        if (isClear(place, extent, cells, covers)) return place;
      }
    }
  }
  return placeOf(LEAST_ROOM_SCALE * largest, 0.5, 0.5);
}

function isClear({ left, top, scale }, extent, cells, covers) {
  const [wide, high] = [extent[0] * scale, extent[1] * scale];
  return covers.every((cover) =>
    cells.every(([x, y]) =>
      left + x * wide > cover.right + ROOM_GAP ||
      left + x * wide + wide / ROOM_CELLS < cover.left - ROOM_GAP ||
      top + y * high > cover.bottom + ROOM_GAP ||
      top + y * high + high / ROOM_CELLS < cover.top - ROOM_GAP,
    ),
  );
}

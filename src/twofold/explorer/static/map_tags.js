// Words and small pictures on the map: names of classes, and what single rows are, where few are in view.

import { beginLayer } from "./map_layer.js";

/** Rows have pictures or names of their own where at most so many are in view. */
const MOST_PICTURES = 160;
const MOST_ROW_NAMES = 40;

/** The larger side of a picture in pixels of the page. */
const PICTURE_SIDE = 40;

/** Between one tag and the next, in pixels of the page. */
const TAG_GAP = 3;

/** Names of classes are smaller on a small map. */
export const classFont = (camera) => `600 ${camera.width < 500 ? 11 : 13}px system-ui, sans-serif`;
const ROW_FONT = "12px system-ui, sans-serif";

/**
 * @param {CanvasRenderingContext2D} context
 * @param {import("./camera.js").Camera} camera
 * @param {{names: {text: string, x: number, y: number}[], rows: number[], positions: Float32Array,
 *   pictureOf: ((row: number) => HTMLCanvasElement|null)|null, nameOf: ((row: number) => string)|null}} what
 *   `rows` those in view, few enough to be shown one by one
 * @param {object} theme
 * @returns {number} how many were drawn
 */
export function drawTags(context, camera, what, theme) {
  beginLayer(context, camera);
  const taken = [];
  // Names of classes claim their places first; they are drawn last, above the pictures.
  const names = namesWithRoom(context, camera, what.names, taken);
  let drawn = names.length;
  const put = (left, top, width, height, draw) => {
    if (!claim(taken, left, top, width, height)) return;
    draw();
    drawn++;
  };
  for (const row of what.rows) drawRow(context, camera, what, row, theme, put);
  for (const { text, left, y } of names) drawText(context, classFont(camera), text, left, y, theme);
  return drawn;
}

/** Take a place that is not taken yet. @returns {boolean} whether it was free */
function claim(taken, left, top, width, height) {
  const box = { left, top, right: left + width, bottom: top + height };
  if (taken.some((other) => overlap(box, other))) return false;
  taken.push(box);
  return true;
}

/**
 * Names of classes that have room in the view, the first ones first, and where they begin.
 * @returns {{text: string, left: number, y: number}[]}
 */
export function namesWithRoom(context, camera, names, taken = []) {
  context.font = classFont(camera);
  return names.flatMap((name) => {
    const [x, y] = camera.toScreen([name.x, name.y]);
    const width = context.measureText(name.text).width;
    const left = Math.max(4, Math.min(camera.width - width - 4, x - width / 2));
    if (!(x > 0 && x < camera.width && y > 0 && y < camera.height)) return [];
    return claim(taken, left, y - 8, width, 16) ? [{ text: name.text, left, y }] : [];
  });
}

function drawRow(context, camera, what, row, theme, put) {
  const [x, y] = camera.toScreen([what.positions[2 * row], what.positions[2 * row + 1]]);
  const picture = what.pictureOf?.(row);
  if (picture) {
    const share = PICTURE_SIDE / Math.max(picture.width, picture.height);
    const [width, height] = [picture.width * share, picture.height * share];
    put(x - width / 2, y - height / 2, width, height, () => {
      context.imageSmoothingEnabled = false;
      context.drawImage(picture, x - width / 2, y - height / 2, width, height);
      context.strokeStyle = theme.softInk;
      context.lineWidth = 1;
      context.strokeRect(x - width / 2, y - height / 2, width, height);
    });
  } else if (what.nameOf) {
    context.font = ROW_FONT;
    const text = what.nameOf(row);
    put(x + 8, y - 7, context.measureText(text).width, 14, () => drawText(context, ROW_FONT, text, x + 8, y, theme));
  }
}

function drawText(context, font, text, left, y, theme) {
  context.font = font;
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = 4;
  context.strokeStyle = theme.halo;
  context.strokeText(text, left, y);
  context.fillStyle = theme.ink;
  context.fillText(text, left, y);
}

function overlap(a, b) {
  return (
    a.left < b.right + TAG_GAP && b.left < a.right + TAG_GAP && a.top < b.bottom + TAG_GAP && b.top < a.bottom + TAG_GAP
  );
}

/**
 * The rows that are shown in the view, if they are few; none if the whole map is.
 * @param {import("./camera.js").Camera} camera @param {Float32Array} positions
 * @param {(row: number) => boolean} isShown @param {boolean} havePictures
 * @returns {number[]}
 */
export function fewRowsInView(camera, positions, isShown, havePictures) {
  const most = havePictures ? MOST_PICTURES : MOST_ROW_NAMES;
  if (!(camera.zoom > 1.2)) return [];
  const { low, high } = camera.view;
  const rows = [];
  for (let i = 0; 2 * i < positions.length; i++) {
    const [x, y] = [positions[2 * i], positions[2 * i + 1]];
    if (x < low[0] || x > high[0] || y < low[1] || y > high[1] || !isShown(i)) continue;
    rows.push(i);
    if (rows.length > most) return [];
  }
  return rows;
}

// Above the points: the probe, the path, marks, the lasso and the row under the pointer.

import { beginLayer } from "./map_layer.js";

const NEIGHBOR_RADIUS = 6;
const PICK_RADIUS = 9;
const PROBE_GAP = 5;
const PROBE_REACH = 14;

/**
 * @typedef {object} MapMarks
 * @property {number[]|null} probe
 * @property {number[][]|null} path
 * @property {number|null} pathIndex
 * @property {Array<{x: number, y: number, kind: string, label?: string}>} marks
 * @property {number[][]|null} lasso
 * @property {number[]|null} hovered
 * @property {number} hoverRadius
 *
 * @param {CanvasRenderingContext2D} context
 * @param {import("./camera.js").Camera} camera
 * @param {MapMarks} what places in latent units
 * @param {object} theme
 */
export function drawMarks(context, camera, what, theme) {
  beginLayer(context, camera);
  context.lineJoin = "round";
  context.lineCap = "round";
  const pen = { context, theme, at: (point) => camera.toScreen(point) };
  if (what.lasso?.length > 1) drawLasso(pen, what.lasso);
  if (what.path?.length > 1) drawPath(pen, what.path, what.pathIndex);
  if (what.hovered) drawHovered(pen, what.hovered, what.hoverRadius);
  for (const mark of what.marks) drawMark(pen, mark);
  if (what.probe) drawProbe(pen, what.probe);
}

/** Stroke what has been traced, with a halo that sets it off from points of any colour. */
function strokeTwice({ context, theme }, color, width, halo = 2) {
  context.strokeStyle = theme.halo;
  context.lineWidth = width + 2 * halo;
  context.stroke();
  context.strokeStyle = color;
  context.lineWidth = width;
  context.stroke();
}

function trace({ context, at }, points) {
  context.beginPath();
  points.forEach((point, k) => {
    const [x, y] = at(point);
    if (k) context.lineTo(x, y);
    else context.moveTo(x, y);
  });
}

function circle({ context }, x, y, radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
}

function drawLasso(pen, points) {
  const { context, theme } = pen;
  trace(pen, points);
  context.closePath();
  context.fillStyle = theme.accentWash;
  context.fill();
  context.setLineDash([5, 4]);
  context.strokeStyle = theme.accent;
  context.lineWidth = 1.5;
  context.stroke();
  context.setLineDash([]);
}

function drawPath(pen, points, index) {
  const { context, theme, at } = pen;
  trace(pen, points);
  strokeTwice(pen, theme.accent, 2, 1.5);
  if (index === null || index === undefined) return;
  const [x, y] = at(points[Math.min(points.length - 1, Math.max(0, Math.round(index)))]);
  circle(pen, x, y, 5);
  strokeTwice(pen, theme.accent, 2, 1.5);
  context.fillStyle = theme.accent;
  context.fill();
}

function drawHovered(pen, point, radius) {
  const [x, y] = pen.at(point);
  circle(pen, x, y, radius + 2);
  strokeTwice(pen, pen.theme.ink, 1.5, 1);
}

function drawMark(pen, mark) {
  const [x, y] = pen.at([mark.x, mark.y]);
  if (mark.kind === "neighbor") {
    circle(pen, x, y, NEIGHBOR_RADIUS);
    strokeTwice(pen, pen.theme.softInk, 1.2, 1);
  } else if (mark.kind === "pick") {
    drawPick(pen, x, y, mark.label);
  } else if (mark.kind === "pasted") {
    drawDiamond(pen, x, y);
    drawLabel(pen, x, y, mark.label);
  } else {
    circle(pen, x, y, 8);
    strokeTwice(pen, pen.theme.accent, 2.2, 1.5);
    drawLabel(pen, x, y, mark.label);
  }
}

/** An end of the path: a disc with its letter, above its place so that the place stays visible. */
function drawPick(pen, x, y, label) {
  const { context, theme } = pen;
  const up = y - PICK_RADIUS - 8;
  context.beginPath();
  context.moveTo(x, y);
  context.arc(x, up, PICK_RADIUS, 0.75 * Math.PI, 0.25 * Math.PI);
  context.closePath();
  strokeTwice(pen, theme.accent, 1, 1.5);
  context.fillStyle = theme.accent;
  context.fill();
  context.fillStyle = theme.land;
  context.font = "600 12px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(label ?? "", x, up + 0.5);
}

function drawDiamond(pen, x, y) {
  const { context, theme } = pen;
  context.beginPath();
  for (const [dx, dy] of [[0, -8], [8, 0], [0, 8], [-8, 0]]) context.lineTo(x + dx, y + dy);
  context.closePath();
  strokeTwice(pen, theme.ink, 2, 1.5);
}

function drawLabel({ context, theme }, x, y, label) {
  if (!label) return;
  context.font = "13px system-ui, sans-serif";
  context.textBaseline = "middle";
  // To the left of its mark where it would not fit on the right.
  const isLeft = x + 14 + context.measureText(label).width > context.canvas.clientWidth && x > context.canvas.clientWidth / 2;
  context.textAlign = isLeft ? "right" : "left";
  const from = x + (isLeft ? -13 : 13);
  context.lineWidth = 4;
  context.strokeStyle = theme.halo;
  context.strokeText(label, from, y);
  context.fillStyle = theme.ink;
  context.fillText(label, from, y);
}

/** Four ticks around an open middle: what lies under the probe stays visible. */
function drawProbe(pen, point) {
  const [x, y] = pen.at(point);
  const { context } = pen;
  context.beginPath();
  for (const [dx, dy] of [[1, 0], [0, 1], [-1, 0], [0, -1]]) {
    context.moveTo(x + PROBE_GAP * dx, y + PROBE_GAP * dy);
    context.lineTo(x + PROBE_REACH * dx, y + PROBE_REACH * dy);
  }
  strokeTwice(pen, pen.theme.ink, 1.8, 1.6);
  circle(pen, x, y, 1.3);
  strokeTwice(pen, pen.theme.ink, 1, 1);
}

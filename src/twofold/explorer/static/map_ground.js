// Where the data is, and lines of equal density.
//
// The lines are found once and kept as paths in latent coordinates. To follow the camera they are
// only drawn again under another transform.
//
// The border of the domain is that of the model. Other lines are of the density smoothed further: with
// kernels as narrow as the gaps between rows they would be a ring around each row.

import { addSmoothLine, blurredGrid, contourLines, contourRings, enclosingLevels, logGrid } from "./contours.js";

/** Shares of all mass within each line. */
const CONTOUR_SHARES = [0.08, 0.22, 0.36, 0.5, 0.64, 0.78, 0.91];

/** Densities below this share of the threshold are as good as none. */
const LEAST_SHARE = 1e-4;

/** In pixels of the page. */
const CONTOUR_WIDTH = 0.9;
const SHORE_WIDTH = 1.2;

/**
 * @param {{grid: Float64Array, size: number, low: number[], high: number[], threshold: number, blur: number[]|null}} density
 *   `blur`: how much to smooth for contours, in latent units; null for no contours. Or `{rectangle}`
 * @returns {{land: Path2D, shore: Path2D, contours: Path2D}} in latent coordinates
 */
export function groundPaths(density) {
  const paths = { land: new Path2D(), shore: new Path2D(), contours: new Path2D() };
  addGroundPaths(density, paths);
  return paths;
}

/** The same into paths of any kind. */
export function addGroundPaths({ grid, size, low, high, threshold, blur, rectangle }, { land, shore, contours }) {
  if (rectangle !== undefined) {
    // Null where the slice does not go through a domain that is a box.
    for (const path of rectangle ? [land, shore] : [])
      path.rect(rectangle.low[0], rectangle.low[1], rectangle.high[0] - rectangle.low[0], rectangle.high[1] - rectangle.low[1]);
    return;
  }
  const step = [0, 1].map((d) => (high[d] - low[d]) / (size - 1));
  const place = (column, row) => [low[0] + column * step[0], low[1] + row * step[1]];
  // In the logarithm, where a bell of density is a paraboloid, straight interpolation is nearly exact.
  const border = threshold > 0 ? threshold : Number.MIN_VALUE;
  const logs = logGrid(grid, Math.max(border * LEAST_SHARE, Number.MIN_VALUE));
  for (const ring of contourRings(logs, size, size, Math.log(border))) addSmoothLine(land, ring, true, place);
  const addLines = (path, values, level) => {
    for (const { points, isClosed } of contourLines(values, size, size, level)) addSmoothLine(path, points, isClosed, place);
  };
  addLines(shore, logs, Math.log(border));
  if (!blur) return;
  const smooth = blurredGrid(grid, size, blur.map((width, d) => width / step[d]));
  for (const level of enclosingLevels(smooth, CONTOUR_SHARES)) addLines(contours, smooth, level);
}

/**
 * Sea and land.
 * @param {CanvasRenderingContext2D} context
 * @param {import("./camera.js").Camera} camera
 * @param {{land: Path2D}|null} paths null: nothing is known yet
 * @param {object} theme
 */
export function drawGround(context, camera, paths, theme) {
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = paths ? theme.sea : theme.land;
  context.fillRect(0, 0, context.canvas.width, context.canvas.height);
  if (!paths) return;
  setLatentTransform(context, camera);
  context.fillStyle = theme.land;
  context.fill(paths.land, "evenodd");
}

/** The shore and the contours; arguments as above. */
export function drawLines(context, camera, paths, theme) {
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  if (!paths) return;
  setLatentTransform(context, camera);
  context.lineJoin = "round";
  context.strokeStyle = theme.contour;
  context.lineWidth = CONTOUR_WIDTH / camera.scale;
  context.stroke(paths.contours);
  // What was smoothed reaches beyond the shore. Keeping what lies on land is much faster than to clip.
  context.globalCompositeOperation = "destination-in";
  context.fill(paths.land, "evenodd");
  context.globalCompositeOperation = "source-over";
  context.strokeStyle = theme.shore;
  context.lineWidth = SHORE_WIDTH / camera.scale;
  context.stroke(paths.shore);
}

/** Let a canvas take latent coordinates. Sides are rounded to whole pixels, so each has its own ratio. */
function setLatentTransform(context, camera) {
  const across = context.canvas.width / camera.width;
  const down = context.canvas.height / camera.height;
  const [x, y] = camera.toScreen([0, 0]);
  context.setTransform(camera.scale * across, 0, 0, -camera.scale * down, x * across, y * down);
}

/** Too faint to be seen. */
const UNSEEN = "rgba(0, 0, 0, 0.004)";

/**
 * Empty a layer of the map, to be drawn in pixels of the page.
 * @param {CanvasRenderingContext2D} context @param {import("./camera.js").Camera} camera
 */
export function beginLayer(context, camera) {
  context.setTransform(context.canvas.width / camera.width, 0, 0, context.canvas.height / camera.height, 0, 0);
  context.clearRect(0, 0, camera.width, camera.height);
  // Chromium goes on showing what was on a canvas if nothing is drawn after it was cleared.
  context.fillStyle = UNSEEN;
  context.fillRect(0, 0, 1, 1);
}

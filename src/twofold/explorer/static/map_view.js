// The map: points in WebGL between other canvases, all following one camera.
//
// At the bottom lies the domain, on top the probe, the path and marks. Lines of equal density are below
// few points, which stay in front, and above many, which would bury them. Only what changed is drawn
// again: moving the probe touches the top canvas alone.

import { Camera } from "./camera.js";
import { CameraFlight } from "./camera_flight.js";
import { classPlaces } from "./class_places.js";
import { pointColors } from "./colors.js";
import { MapGestures } from "./map_gestures.js";
import { drawGround, drawLines, groundPaths } from "./map_ground.js";
import { drawMarks } from "./map_marks.js";
import { roomBeside, takenCells } from "./map_room.js";
import { drawTags, fewRowsInView } from "./map_tags.js";
import { MAP_THEMES } from "./map_theme.js";
import { makePointLayer } from "./plain_points.js";
import { crowdingOf, pointLook } from "./point_style.js";
import { RowPicker } from "./row_picker.js";

/** How near the pointer must come to a row, in pixels. */
const HOVER_REACH = 9;

/** Rows fainter than this (of 255) are neither hovered nor selected. */
const LEAST_SHOWN = 60;

/** Opacity of the other points while some are selected. */
const UNSELECTED_FADE = 0.28;

/** A row that is looked up is shown at least this close. */
const FRAME_ZOOM = 3;

const MOST_PIXEL_RATIO = 3;

/** A picture to keep has at least so many pixels per pixel of the page, each way. */
const PICTURE_RATIO = 2;

/** From this many points on, lines of equal density are drawn above them. */
const MANY_POINTS = 30000;

export class MapView extends EventTarget {
  /**
   * Events, with their details: "probe" {x, phase}, "rowhover" {row}, "select" {rows}, "view" {low, high}.
   * @param {HTMLElement} host
   * @param {{positions: Float32Array, low: number[], high: number[], theme?: "light"|"dark",
   *   covers?: () => {left: number, top: number, right: number, bottom: number}[], isEmbedded?: boolean,
   *   pictureOf?: (row: number) => HTMLCanvasElement|null, nameOf?: (row: number) => string}} options
   *   positions (n, 2) in latent units; `covers` what lies on the map, in its pixels; `isEmbedded` in a page that scrolls;
   *   `pictureOf` and `nameOf` what single rows are shown by where few are in view
   */
  constructor(host, options) {
    const { positions, low, high, theme = "light", covers = () => [], isEmbedded = false } = options;
    super();
    this.host = host;
    this.covers = covers;
    this.positions = positions;
    this.n = positions.length / 2;
    this.theme = theme;
    this.camera = new Camera(low, high);
    this.flight = new CameraFlight(this.camera, () => this.onCamera());
    this.picker = new RowPicker(positions);
    this.options = options;
    this.look = { size: 1, opacity: 1, hasNames: true };
    this.names = [];
    this.coloring = { kind: "plain" };
    this.mask = null;
    this.emphasis = null;
    this.alphas = new Uint8Array(this.n).fill(255);
    this.density = null;
    this.paths = null;
    this.shown = { probe: null, path: null, pathIndex: null, marks: [], lasso: null, hovered: null, hoverRadius: 0 };
    this.hoveredRow = -1;
    this.ratio = 1;
    this.stale = { ground: true, points: true, tags: true, marks: true };
    this.build(low, high, isEmbedded);
    this.resize();
  }

  build(low, high, isEmbedded) {
    const { host } = this;
    host.tabIndex = 0;
    host.setAttribute("role", "application");
    if (!host.hasAttribute("aria-label")) {
      host.setAttribute("aria-label", "Map of the rows. Arrow keys move the probe, plus and minus zoom, 0 shows all, Alt with arrows pans.");
    }
    // Fingers belong to the map, not to the scrolling of the page.
    Object.assign(host.style, { touchAction: "none", userSelect: "none", webkitUserSelect: "none", overflow: "hidden" });
    if (getComputedStyle(host).position === "static") host.style.position = "relative";
    const names = this.n < MANY_POINTS ? ["ground", "lines", "points", "tags", "marks"] : ["ground", "points", "lines", "tags", "marks"];
    this.canvases = Object.fromEntries(names.map((name) => {
      const canvas = document.createElement("canvas");
      canvas.dataset.layer = name;
      canvas.setAttribute("aria-hidden", "true");
      Object.assign(canvas.style, { position: "absolute", inset: "0", width: "100%", height: "100%", display: "block", pointerEvents: "none" });
      host.append(canvas);
      return [name, canvas];
    }));
    const { ground, lines, points, tags, marks } = this.canvases;
    this.points = makePointLayer(points, this.positions, this.camera.middle);
    // Without a graphics card, long lines are drawn ten times as fast by the processor itself.
    const options = { willReadFrequently: this.points.isSoftware };
    this.pens = { ground: ground.getContext("2d", options), lines: lines.getContext("2d", options), tags: tags.getContext("2d"), marks: marks.getContext("2d") };
    this.crowding = crowdingOf(this.positions, low, high);
    this.taken = takenCells(this.positions, this.camera.middle.map((middle, d) => middle - this.camera.extent[d] / 2), this.camera.extent);
    this.gestures = new MapGestures(host, this.gestureActions(), isEmbedded);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(host);
    points.addEventListener("webglcontextlost", (event) => event.preventDefault());
    points.addEventListener("webglcontextrestored", () => {
      this.points.build();
      this.redraw("points");
    });
    this.paintPoints();
  }

  gestureActions() {
    return {
      probe: (pixel, phase) => this.onProbe(pixel, phase),
      leave: () => this.hoverRow(-1),
      panBy: (dx, dy) => this.panBy(dx, dy),
      zoomBy: (factor, pixel) => (pixel ? this.zoomAt(factor, pixel) : this.zoomBy(factor)),
      lasso: (pixels, isDone) => this.onLasso(pixels, isDone),
      cancelLasso: () => this.show({ lasso: null }),
      stepProbe: (dx, dy) => this.stepProbe(dx, dy),
      reset: () => this.resetView(),
    };
  }

  /** Resolves when the map has been drawn, or at once where it is hidden. */
  async ready() {
    if (this.camera.width === 0) return;
    await new Promise((resolve) => { this.onDrawn = resolve; this.redraw("points"); });
  }

  setColors(description) {
    this.coloring = description;
    this.paintPoints();
    this.placeNames();
  }

  /** @param {{size?: number, opacity?: number, hasNames?: boolean}} look size and opacity as factors of the usual ones */
  setLook(look) {
    Object.assign(this.look, look);
    this.placeNames();
    this.redraw("points");
  }

  /** Names of classes belong where their rows are shown. */
  placeNames() {
    this.names = this.look.hasNames ? classPlaces(this.positions, this.coloring, this.mask) : [];
    this.redraw("tags");
  }

  paintPoints() {
    this.points.setColors(pointColors(this.coloring, this.n, MAP_THEMES[this.theme]));
    this.redraw("points");
  }

  /** @param {Uint8Array|null} mask 0 hides a row */
  setFilter(mask) {
    this.mask = mask;
    this.fadePoints();
    this.placeNames();
  }

  /** @param {Float32Array|null} alpha 0 to 1 for each row */
  setEmphasis(alpha) {
    this.emphasis = alpha;
    this.fadePoints();
  }

  fadePoints() {
    const { alphas, emphasis, mask } = this;
    for (let i = 0; i < this.n; i++) {
      alphas[i] = mask && !mask[i] ? 0 : emphasis ? Math.max(1, Math.round(255 * emphasis[i])) : 255;
    }
    this.points.setAlphas(alphas);
    if (this.hoveredRow >= 0 && !this.isShown(this.hoveredRow)) this.hoverRow(-1);
    this.redraw("points", "tags");
  }

  isShown(row) {
    return this.alphas[row] >= LEAST_SHOWN;
  }

  setProbe(point) {
    this.show({ probe: point });
  }

  setPath(points, positionIndex = null) {
    this.show({ path: points, pathIndex: positionIndex });
  }

  setMarks(marks) {
    this.show({ marks });
  }

  show(changes) {
    Object.assign(this.shown, changes);
    this.redraw("marks");
  }

  /** @param {{grid: Float64Array, size: number, low: number[], high: number[], threshold: number}|null} density */
  setDensity(density) {
    this.density = density;
    this.paths = density && groundPaths(density);
    this.redraw("ground");
  }

  /** @param {Uint32Array} rows */
  setSelection(rows) {
    const isSelected = new Uint8Array(this.n);
    for (const row of rows) isSelected[row] = 1;
    this.points.setSelected(isSelected);
    this.redraw("points");
  }

  /** @param {"probe"|"lasso"|"pan"} mode what pressing and dragging does */
  setMode(mode) {
    this.gestures.setMode(mode);
  }

  setTheme(theme) {
    this.theme = theme;
    this.paintPoints();
    this.redraw("ground", "tags", "marks");
  }

  resetView() {
    this.findRoom();
    this.flight.fly(this.camera.home, 1, () => this.camera.goHome());
  }

  /** Let a view of all leave room for what lies on the map. */
  findRoom() {
    const { clientWidth, clientHeight } = this.host;
    this.camera.setSize(clientWidth, clientHeight, this.roomFor(this.covers()));
    this.onCamera();
  }

  /** Where all of the data can be shown beside some covers; null where nothing can. */
  roomFor(covers) {
    const { clientWidth, clientHeight } = this.host;
    if (!(clientWidth > 0 && clientHeight > 0)) return null;
    return roomBeside(clientWidth, clientHeight, this.camera.extent, this.taken, covers);
  }

  panBy(dx, dy) {
    this.flight.stop();
    this.camera.panBy(dx, dy);
    this.onCamera();
  }

  /** @param {number} factor @param {number[]|null} center latent point that stays in place; default the middle */
  zoomBy(factor, center = null) {
    if (center) this.zoomAt(factor, this.camera.toScreen(center));
    else this.flight.fly(this.flight.goal.center, this.flight.goal.zoom * factor);
  }

  zoomAt(factor, pixel) {
    this.flight.stop();
    this.camera.zoomBy(factor, pixel);
    this.onCamera();
  }

  /** Show this place in the middle, at this zoom, at once. */
  showPlace(center, zoom) {
    this.flight.stop();
    this.camera.moveTo(center, zoom);
    this.onCamera();
  }

  /** Bring a place into the middle, and near. */
  frameRow(point) {
    this.flight.fly(point, Math.max(this.camera.zoom, FRAME_ZOOM));
  }

  onCamera() {
    this.isViewNews = true;
    // Another row lies under the pointer now; its next move will tell which.
    this.hoverRow(-1);
    this.redraw("ground", "points", "tags", "marks");
  }

  onProbe(pixel, phase) {
    const x = this.camera.toLatent(pixel);
    this.hoverRow(this.picker.nearest(x, HOVER_REACH / this.camera.scale, (row) => this.isShown(row)));
    this.tell("probe", { x, phase });
  }

  stepProbe(dx, dy) {
    const [x, y] = this.camera.toScreen(this.shown.probe ?? this.camera.center);
    const { width, height } = this.camera;
    const place = this.camera.toLatent([x + dx, y + dy]);
    this.setProbe(place);
    // A probe that leaves the view takes the view along.
    if (x + dx < 0 || x + dx > width || y + dy < 0 || y + dy > height) this.panBy(-dx, -dy);
    this.tell("probe", { x: place, phase: "drag" });
  }

  hoverRow(row) {
    if (row === this.hoveredRow) return;
    this.hoveredRow = row;
    this.show({ hovered: row < 0 ? null : [this.positions[2 * row], this.positions[2 * row + 1]] });
    this.tell("rowhover", { row });
  }

  onLasso(pixels, isDone) {
    const polygon = pixels.map((pixel) => this.camera.toLatent(pixel));
    this.show({ lasso: isDone ? null : polygon });
    if (isDone) this.tell("select", { rows: this.picker.inside(polygon, (row) => this.isShown(row)) });
  }

  tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  /** Fit the canvases to the host; called by itself when the host's size changes. */
  resize() {
    const { clientWidth, clientHeight } = this.host;
    const ratio = this.wantedRatio;
    if (clientWidth === this.camera.width && clientHeight === this.camera.height && ratio === this.ratio) return;
    this.findRoom();
    this.sizeCanvases(ratio);
    if (clientWidth === 0 || clientHeight === 0) return;
    // A canvas is blank after a change of size: drawn before the next picture, or it would flash.
    this.drawFrame();
  }

  sizeCanvases(ratio) {
    this.ratio = ratio;
    const { clientWidth, clientHeight } = this.host;
    if (clientWidth === 0 || clientHeight === 0) return;
    for (const canvas of Object.values(this.canvases)) {
      canvas.width = Math.round(clientWidth * ratio);
      canvas.height = Math.round(clientHeight * ratio);
    }
  }

  redraw(...layers) {
    for (const layer of layers) this.stale[layer] = true;
    this.frame ??= requestAnimationFrame(() => this.drawFrame());
  }

  drawFrame() {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    const { camera, ratio, stale, points } = this;
    if (this.isDestroyed || !(camera.width > 0 && camera.height > 0)) return;
    if (ratio !== this.wantedRatio) this.resize();
    const theme = MAP_THEMES[this.theme];
    const style = this.pointStyle();
    this.shown.hoverRadius = style.diameter / 2;
    if (stale.ground) {
      drawGround(this.pens.ground, camera, this.paths, theme);
      drawLines(this.pens.lines, camera, this.paths, theme);
    }
    if (stale.points || !points.isComplete) points.draw(camera, style, stale.points);
    if (stale.tags) this.drawTags(theme);
    if (stale.marks) drawMarks(this.pens.marks, camera, this.shown, theme);
    this.stale = { ground: false, points: false, tags: false, marks: false };
    if (!points.isComplete && !points.isLost) this.redraw();
    this.afterFrame();
  }

  drawTags(theme) {
    const { pictureOf = null, nameOf = null } = this.options;
    const rows =
      pictureOf || nameOf
        ? fewRowsInView(this.camera, this.positions, (row) => this.isShown(row), Boolean(pictureOf))
        : [];
    const what = { names: this.names, rows, positions: this.positions, pictureOf, nameOf };
    this.tagCount = drawTags(this.pens.tags, this.camera, what, theme);
  }

  afterFrame() {
    if (this.isViewNews) {
      this.isViewNews = false;
      this.tell("view", this.camera.view);
    }
    this.onDrawn?.();
    this.onDrawn = null;
  }

  pointStyle() {
    const ground = MAP_THEMES[this.theme].pointGround;
    const { diameter, opacity } = pointLook(this.camera, this.n, this.crowding);
    const { look } = this;
    const own = { diameter: diameter * look.size, opacity: Math.min(1, opacity * look.opacity) };
    return { ...own, ratio: this.ratio, ground, fade: UNSELECTED_FADE };
  }

  /** Pixels of the canvases per pixel of the page. */
  get wantedRatio() {
    return this.pictureRatio ?? Math.min(MOST_PIXEL_RATIO, globalThis.devicePixelRatio || 1);
  }

  /** Draw all of the map finely, let `take` have the canvases, and go back to what the screen needs. */
  drawPicture(take) {
    const { ratio } = this;
    this.pictureRatio = Math.max(ratio, PICTURE_RATIO);
    this.sizeCanvases(this.pictureRatio);
    this.drawWhole();
    take();
    this.pictureRatio = null;
    this.sizeCanvases(ratio);
    this.redraw("ground", "points", "tags", "marks");
    this.drawFrame();
  }

  /** Draw all of the map at once, however long it takes. */
  drawWhole() {
    this.stale = { ground: true, points: false, tags: true, marks: true };
    this.points.draw(this.camera, this.pointStyle(), true, true);
    this.drawFrame();
  }

  destroy() {
    this.isDestroyed = true;
    this.flight.stop();
    cancelAnimationFrame(this.frame);
    this.observer.disconnect();
    this.gestures.destroy();
    this.points.destroy();
    for (const canvas of Object.values(this.canvases)) canvas.remove();
  }
}

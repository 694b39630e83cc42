// Mouse, touch, pen and keys on the map, turned into what they mean.

/** A press that moves less than this many pixels is a click. */
const CLICK_SLACK = 4;

/** Corners of a lasso are at least this many pixels apart. */
const LASSO_STEP = 3;

/** Keys move the probe and pan by these shares of the shorter side of the map. */
const KEY_STEP = 0.01;
const KEY_BIG_STEP = 0.06;
const KEY_PAN = 0.12;
const KEY_ZOOM = 1.25;

/** Notches of a wheel are at least this many pixels. */
const LEAST_NOTCH = 50;

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * @typedef {object} MapActions pixels are relative to the host
 * @property {(pixel: number[], phase: "hover"|"drag"|"click") => void} probe
 * @property {() => void} leave the pointer is no longer above the map
 * @property {(dx: number, dy: number) => void} panBy
 * @property {(factor: number, pixel: number[]|null) => void} zoomBy
 * @property {(pixels: number[][], isDone: boolean) => void} lasso
 * @property {() => void} cancelLasso
 * @property {(dx: number, dy: number) => void} stepProbe
 * @property {() => void} reset
 */
export class MapGestures {
  /** @param {HTMLElement} host @param {MapActions} actions @param {boolean} isEmbedded in a page that scrolls */
  constructor(host, actions, isEmbedded) {
    this.host = host;
    this.isEmbedded = isEmbedded;
    this.actions = actions;
    this.mode = "probe";
    this.pointers = new Map();
    this.gesture = null;
    this.isSpaceHeld = false;
    this.stops = [];
    const listen = (type, act, options) => {
      host.addEventListener(type, act, options);
      this.stops.push(() => host.removeEventListener(type, act, options));
    };
    listen("pointerdown", (event) => this.onDown(event));
    listen("pointermove", (event) => this.onMove(event));
    listen("pointerup", (event) => this.onUp(event));
    listen("pointercancel", (event) => this.onCancel(event));
    listen("pointerleave", () => { if (!this.gesture) actions.leave(); });
    listen("contextmenu", (event) => event.preventDefault());
    // The middle button would start the browser's own scrolling.
    listen("mousedown", (event) => { if (event.button === 1) event.preventDefault(); });
    listen("wheel", (event) => this.onWheel(event), { passive: false });
    listen("keydown", (event) => this.onKey(event));
    listen("keyup", (event) => { if (event.key === " ") this.setSpace(false); });
    listen("blur", () => this.setSpace(false));
    this.showCursor();
  }

  setMode(mode) {
    this.mode = mode;
    if (this.gesture?.kind === "lasso") this.dropGesture();
    this.showCursor();
  }

  pixelOf(event) {
    const box = this.host.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  onDown(event) {
    const pixel = this.pixelOf(event);
    // Not where it would scroll a page that holds the map.
    this.host.focus({ preventScroll: true });
    try { this.host.setPointerCapture(event.pointerId); } catch { /* the pointer is gone already */ }
    this.pointers.set(event.pointerId, pixel);
    if (this.pointers.size === 2) {
      this.dropGesture();
      this.gesture = { kind: "pinch", ...this.pinchState() };
    } else if (this.pointers.size === 1) {
      this.gesture = { kind: this.kindOf(event), start: pixel, last: pixel, hasMoved: false, pixels: [pixel] };
    }
    this.showCursor();
  }

  kindOf(event) {
    if (event.button === 1 || event.button === 2 || this.isSpaceHeld || this.mode === "pan") return "pan";
    return event.shiftKey || this.mode === "lasso" ? "lasso" : "probe";
  }

  onMove(event) {
    const pixel = this.pixelOf(event);
    const { gesture, actions } = this;
    if (!gesture) {
      if (event.pointerType !== "touch" && this.mode !== "pan") actions.probe(pixel, "hover");
      return;
    }
    if (!this.pointers.has(event.pointerId)) return;
    this.pointers.set(event.pointerId, pixel);
    if (gesture.kind === "pinch") {
      this.pinch();
      return;
    }
    gesture.hasMoved ||= Math.hypot(pixel[0] - gesture.start[0], pixel[1] - gesture.start[1]) >= CLICK_SLACK;
    if (gesture.kind === "pan") actions.panBy(pixel[0] - gesture.last[0], pixel[1] - gesture.last[1]);
    else if (gesture.kind === "lasso") this.growLasso(event);
    else if (gesture.hasMoved) actions.probe(pixel, "drag");
    gesture.last = pixel;
  }

  /** Fast strokes come as one event with many places. */
  growLasso(event) {
    const events = event.getCoalescedEvents?.() ?? [];
    const { pixels } = this.gesture;
    for (const one of events.length ? events : [event]) {
      const pixel = this.pixelOf(one);
      const [x, y] = pixels.at(-1);
      // Closer places change no selection but slow it down.
      if (Math.hypot(pixel[0] - x, pixel[1] - y) >= LASSO_STEP) pixels.push(pixel);
    }
    this.actions.lasso(this.gesture.pixels, false);
  }

  onUp(event) {
    const pixel = this.pixelOf(event);
    const { gesture, actions } = this;
    if (!this.pointers.delete(event.pointerId) || !gesture) return;
    if (gesture.kind === "pinch") {
      // The finger that stays would otherwise make the probe jump.
      if (this.pointers.size === 0) this.gesture = null;
    } else {
      this.gesture = null;
      if (gesture.kind === "lasso") actions.lasso(gesture.pixels, true);
      else if (gesture.kind === "probe" && !gesture.hasMoved) actions.probe(pixel, "click");
    }
    this.showCursor();
  }

  onCancel(event) {
    this.pointers.delete(event.pointerId);
    this.dropGesture();
  }

  dropGesture() {
    if (this.gesture?.kind === "lasso") this.actions.cancelLasso();
    this.gesture = null;
    this.showCursor();
  }

  pinchState() {
    const [a, b] = [...this.pointers.values()];
    return { middle: [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2], spread: Math.max(10, Math.hypot(a[0] - b[0], a[1] - b[1])) };
  }

  pinch() {
    if (this.pointers.size < 2) return;
    const { gesture, actions } = this;
    const now = this.pinchState();
    actions.panBy(now.middle[0] - gesture.middle[0], now.middle[1] - gesture.middle[1]);
    actions.zoomBy(now.spread / gesture.spread, now.middle);
    Object.assign(gesture, now);
  }

  onWheel(event) {
    // A page that scrolls past the map must not be caught by it.
    const hasFocus = this.host.getRootNode().activeElement === this.host;
    if (this.isEmbedded && !event.ctrlKey && !hasFocus) return;
    event.preventDefault();
    const pixels = event.deltaY * [1, 16, 400][event.deltaMode];
    // Pinching a touch pad arrives as a wheel with the control key, in smaller steps.
    const speed = event.ctrlKey && Math.abs(pixels) < LEAST_NOTCH ? 0.01 : 0.0018;
    this.actions.zoomBy(Math.exp(-speed * Math.max(-300, Math.min(300, pixels))), this.pixelOf(event));
  }

  onKey(event) {
    if (event.target !== this.host || event.ctrlKey || event.metaKey) return;
    const { actions, host } = this;
    const side = Math.min(host.clientWidth, host.clientHeight);
    const arrow = ARROWS[event.key];
    if (arrow && event.altKey) actions.panBy(-KEY_PAN * side * arrow[0], -KEY_PAN * side * arrow[1]);
    else if (arrow) {
      const step = side * (event.shiftKey ? KEY_BIG_STEP : KEY_STEP);
      actions.stepProbe(step * arrow[0], step * arrow[1]);
    } else if (event.key === "+" || event.key === "=") actions.zoomBy(KEY_ZOOM, null);
    else if (event.key === "-" || event.key === "_") actions.zoomBy(1 / KEY_ZOOM, null);
    else if (event.key === "0") actions.reset();
    else if (event.key === " ") this.setSpace(true);
    else {
      if (event.key === "Escape") this.dropGesture();
      return;
    }
    event.preventDefault();
  }

  setSpace(isHeld) {
    this.isSpaceHeld = isHeld;
    this.showCursor();
  }

  showCursor() {
    const isPan = this.isSpaceHeld || this.mode === "pan";
    const isMoving = this.gesture?.kind === "pan" || this.gesture?.kind === "pinch";
    this.host.style.cursor = isMoving ? "grabbing" : isPan ? "grab" : "crosshair";
  }

  destroy() {
    for (const stop of this.stops) stop();
  }
}

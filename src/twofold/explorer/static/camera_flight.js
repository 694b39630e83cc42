// Smooth moves of the camera, or none for those who prefer no motion.

const FLIGHT_MS = 260;

export class CameraFlight {
  /** @param {import("./camera.js").Camera} camera @param {() => void} onMove */
  constructor(camera, onMove) {
    this.camera = camera;
    this.onMove = onMove;
    this.frame = null;
    this.target = null;
  }

  /** Where the camera is, or will be when it has landed. */
  get goal() {
    return this.target ?? this.camera;
  }

  fly(center, zoom, land = () => {}) {
    this.stop();
    const { camera } = this;
    const from = { center: [...camera.center], zoom: camera.zoom };
    const prefersStill = globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches;
    this.target = { center: [...center], zoom };
    const since = performance.now();
    const step = (now) => {
      const share = prefersStill ? 1 : Math.min(1, Math.max(0, (now - since) / FLIGHT_MS));
      const eased = 1 - (1 - share) ** 3;
      // Zoom is felt in ratios, so it moves evenly in the logarithm.
      const between = [0, 1].map((d) => from.center[d] + eased * (center[d] - from.center[d]));
      camera.moveTo(between, from.zoom * (zoom / from.zoom) ** eased);
      if (share === 1) land();
      this.onMove();
      this.frame = share < 1 ? requestAnimationFrame(step) : null;
      if (share === 1) this.target = null;
    };
    if (prefersStill || camera.width === 0) step(since + FLIGHT_MS);
    else this.frame = requestAnimationFrame(step);
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.frame = this.target = null;
  }
}

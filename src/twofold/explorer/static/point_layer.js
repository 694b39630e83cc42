// The points, drawn with WebGL 2.
//
// Programs, buffers and vertex arrays are made by twgl, which is there as `TwofoldPoints` before this
// script runs (vendor/twgl.js): a global of the page, a name of the module in a notebook.
//
// Points are drawn in a random order that never changes: no class hides another because of its place
// in the table, and any first part of the points is a fair sample. So a frame draws as many as the
// graphics card manages in time, and the following frames add the others on top of them. A fast card
// draws all at once; without one, moving the map shows a sample and the rest arrives when it rests.

import { POINT_FRAGMENT_SHADER, POINT_VERTEX_SHADER } from "./point_shaders.js";

/** How long the points of a frame may take, and with how many the search for their number starts. */
const FRAME_MS = 24;
const FIRST_CHUNK = 40000;
const LEAST_CHUNK = 8000;

/** Frames that only add points to a picture at rest may take this many times as long. */
const REST_FACTOR = 3;

/** From this diameter in pixels of the page on, discs have a rim. */
const RIM_FROM = 4.5;

/** What is asked of the browser. */
export const POINT_CONTEXT = { antialias: false, alpha: true, premultipliedAlpha: true, preserveDrawingBuffer: true };

/** Names of what stands in for a graphics card. */
const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;

export class PointLayer {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {Float32Array} positions (n, 2) latent
   * @param {number[]} middle what positions are taken relative to
   * @param {WebGL2RenderingContext} gl of the canvas
   */
  constructor(canvas, positions, middle, gl) {
    this.canvas = canvas;
    this.n = positions.length / 2;
    this.middle = middle;
    this.order = shuffledOrder(this.n);
    this.positions = new Float32Array(2 * this.n);
    for (let slot = 0; slot < this.n; slot++) {
      this.positions[2 * slot] = positions[2 * this.order[slot]] - middle[0];
      this.positions[2 * slot + 1] = positions[2 * this.order[slot] + 1] - middle[1];
    }
    /** Red, green, blue and opacity of each slot; opacity 0 hides. */
    this.paint = new Uint8Array(4 * this.n).fill(255);
    this.selected = new Uint32Array(0);
    this.chunk = FIRST_CHUNK;
    this.drawn = 0;
    this.gl = gl;
    this.isSoftware = SOFTWARE.test(rendererName(this.gl));
    this.build();
  }

  /** Everything that lives on the card; again after the card was lost. */
  build() {
    const { gl } = this;
    clearTimeout(this.timer);
    this.timer = null;
    this.program = pointProgram(gl);
    // Lost already: the map builds again when the card is back.
    if (!this.program) return;
    this.buffers = TwofoldPoints.createBufferInfoFromArrays(gl, {
      position: { numComponents: 2, data: this.positions },
      color: { numComponents: 4, data: this.paint, normalize: true },
    });
    // The same points, picked by their slots.
    const picked = TwofoldPoints.createBufferInfoFromArrays(gl, { indices: this.selected }, this.buffers);
    this.allPoints = TwofoldPoints.createVertexArrayInfo(gl, this.program, this.buffers);
    this.selectedPoints = TwofoldPoints.createVertexArrayInfo(gl, this.program, picked);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.clearColor(0, 0, 0, 0);
  }

  /** @param {Uint8Array} rgb (n, 3) by row */
  setColors(rgb) {
    const { order, paint } = this;
    for (let slot = 0; slot < this.n; slot++) {
      const from = 3 * order[slot];
      paint[4 * slot] = rgb[from];
      paint[4 * slot + 1] = rgb[from + 1];
      paint[4 * slot + 2] = rgb[from + 2];
    }
    this.upload();
  }

  /** @param {Uint8Array} alpha (n,) by row, 0 hides */
  setAlphas(alpha) {
    const { order, paint } = this;
    for (let slot = 0; slot < this.n; slot++) paint[4 * slot + 3] = alpha[order[slot]];
    this.upload();
  }

  /** @param {Uint8Array} isSelected (n,) by row; those are drawn once more, above all others */
  setSelected(isSelected) {
    const { gl, order } = this;
    const slots = [];
    for (let slot = 0; slot < this.n; slot++) if (isSelected[order[slot]]) slots.push(slot);
    this.selected = Uint32Array.from(slots);
    if (gl.isContextLost()) return;
    // The buffer of slots belongs to the vertex array; twgl itself only changes buffers of attributes.
    TwofoldPoints.setBuffersAndAttributes(gl, this.program, this.selectedPoints);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, this.selected, gl.STATIC_DRAW);
  }

  upload() {
    const { gl } = this;
    if (gl.isContextLost()) return;
    TwofoldPoints.setAttribInfoBufferFromArray(gl, this.buffers.attribs.color, this.paint, 0);
  }

  /** Whether the card is gone, for a while or for good. */
  get isLost() {
    return this.gl.isContextLost();
  }

  get isComplete() {
    return this.drawn >= this.n;
  }

  /**
   * Begin a new picture, or go on with the last.
   * @param {import("./camera.js").Camera} camera
   * @param {{ratio: number, diameter: number, opacity: number, ground: number[], fade: number}} style
   *   `ratio` pixels of the screen per pixel of the page; `fade` what the opacity of unselected points
   *   is multiplied by
   * @param {boolean} isNew
   * @param {boolean} isWhole draw all that is left, however long it takes
   */
  draw(camera, style, isNew, isWhole = false) {
    const { gl, selected } = this;
    if (gl.isContextLost()) return;
    if (isNew) this.drawn = 0;
    const left = this.n - this.drawn;
    const count = isWhole ? left : Math.min(isNew ? this.chunk : REST_FACTOR * this.chunk, left);
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    if (isNew) gl.clear(gl.COLOR_BUFFER_BIT);
    gl.useProgram(this.program.program);
    this.setUniforms(camera, style, style.opacity * (selected.length ? style.fade : 1), style.diameter);
    this.drawPart(this.allPoints, count, this.drawn);
    this.drawn += count;
    if (selected.length && (isNew || this.isComplete)) {
      this.setUniforms(camera, style, Math.min(0.95, 3 * style.opacity), style.diameter * 1.15 + 0.4);
      this.drawPart(this.selectedPoints, this.isComplete ? selected.length : Math.min(selected.length, this.chunk), 0);
    }
    if (count >= Math.min(this.chunk, this.n) && !isWhole) this.startTiming(count);
  }

  drawPart(points, count, from) {
    TwofoldPoints.setBuffersAndAttributes(this.gl, this.program, points);
    TwofoldPoints.drawBufferInfo(this.gl, points, this.gl.POINTS, count, from);
  }

  setUniforms(camera, { ratio, ground }, opacity, diameter) {
    const { middle } = this;
    const sx = (2 * camera.scale) / camera.width;
    const sy = (2 * camera.scale) / camera.height;
    // Discs thinner than a pixel would flicker; they get paler instead.
    const wide = diameter * ratio;
    TwofoldPoints.setUniforms(this.program, {
      view: [sx, sy, (middle[0] - camera.center[0]) * sx, (middle[1] - camera.center[1]) * sy],
      diameter: Math.max(wide, 1),
      opacity: opacity * Math.min(1, wide * wide),
      rim: diameter > RIM_FROM ? 0.6 * ratio : 0,
      ground: ground.map((channel) => channel / 255),
    });
  }

  /** Drawing is asynchronous: a fence tells when the card has come to this place. */
  startTiming(count) {
    const { gl } = this;
    if (this.timer) return;
    const fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    const since = performance.now();
    gl.flush();
    const look = () => {
      const took = performance.now() - since;
      const state = gl.isContextLost() ? gl.ALREADY_SIGNALED : gl.clientWaitSync(fence, 0, 0);
      if (state === gl.TIMEOUT_EXPIRED && took < 2000) {
        this.timer = setTimeout(look, 2);
        return;
      }
      gl.deleteSync(fence);
      this.timer = null;
      this.adaptChunk(count, took);
    };
    this.timer = setTimeout(look, 2);
  }

  /** Fewer points if the last were not done in time, more if they were. */
  adaptChunk(count, took) {
    this.chunk = Math.min(2 * this.chunk, Math.max(0.3 * this.chunk, LEAST_CHUNK, (count * FRAME_MS) / took));
    this.chunk = Math.round(this.chunk);
  }

  destroy() {
    clearTimeout(this.timer);
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }
}

/** What draws: the browser's own name for it, or that of the card where it tells. */
function rendererName(gl) {
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  return String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
}

/** A permutation of 0 .. n-1 that is the same in every session. */
export function shuffledOrder(n) {
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  let state = 2463534242;
  for (let i = n - 1; i > 0; i--) {
    // Xorshift (Marsaglia 2003).
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    const j = (state >>> 0) % (i + 1);
    const kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
  return order;
}

/** The program with its uniforms and attributes, or null where the card was lost meanwhile. */
function pointProgram(gl) {
  const complaints = [];
  let found = null;
  try {
    found = TwofoldPoints.createProgramInfo(gl, [POINT_VERTEX_SHADER, POINT_FRAGMENT_SHADER], (text) => complaints.push(text));
  } catch (error) {
    // A lost card answers nothing, which twgl does not expect.
    complaints.push(error.message);
  }
  if (!found && !gl.isContextLost()) throw new Error(`the graphics card refuses the program for points: ${complaints[0]}`);
  return found;
}

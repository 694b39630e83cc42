/**
 * The straight path between two latent points A and B, walked by play, slider or step.
 */

import { element, icon, iconButton, prefersLessMotion, textButton, uniqueId } from "./elements.js";

/** Positions on the path. */
export const PATH_STEPS = 120;

/** Seconds from A to B at normal speed. */
const PATH_SECONDS = 4;

/** At most this many rows a second: more cannot be told apart. */
const FRAMES_PER_SECOND = 30;

/** With less motion asked for, play shows this many stills. */
const CALM_STILLS = 8;
const CALM_SECONDS = 0.9;

/** Every so many positions are asked whether they are inside the data. */
const LOOK_STRIDE = 4;

/** Points on the straight line from a to b, both included. @returns {Float64Array[]} */
export function straightPath(a, b, steps = PATH_STEPS) {
  return Array.from({ length: steps + 1 }, (_, k) =>
    Float64Array.from(a, (value, d) => value + (k / steps) * (b[d] - value)),
  );
}

/** Where on the path the next frame is: a step by time, or one still further. */
export function nextPosition(position, seconds, speed, calm) {
  const step = calm ? PATH_STEPS / CALM_STILLS : (PATH_STEPS * seconds * speed) / PATH_SECONDS;
  return Math.min(PATH_STEPS, position + step);
}

/** Says how much of a path lies outside the data. */
export function domainNote(regression, points) {
  const looks = points.filter((_, k) => k % LOOK_STRIDE === 0);
  const outside = looks.filter((x) => !regression.inDomain(x)).length;
  const share = Math.round((100 * outside) / looks.length);
  return outside ? `${share} % of the path lies outside the data.` : "The whole path lies inside the data.";
}

export class PathPlayer extends EventTarget {
  /** Fires "pick" {end}, "path" {points}, "walk" {x, k} and "state". */
  constructor() {
    super();
    this.ends = { A: null, B: null };
    this.points = null;
    this.position = 0;
    this.isPlaying = false;
    this.element = this.build();
    this.update();
  }

  build() {
    this.endTexts = {
      A: element("span", { class: "tf-end-text" }),
      B: element("span", { class: "tf-end-text" }),
    };
    this.playButton = element("button", {
      type: "button",
      class: "tf-button tf-play",
      onclick: () => this.toggle(),
    });
    const sliderId = uniqueId("path");
    this.slider = element("input", {
      id: sliderId,
      type: "range",
      min: 0,
      max: PATH_STEPS,
      step: 1,
      value: 0,
      oninput: () => {
        // Read first: pausing writes the position into the slider.
        const position = Number(this.slider.value);
        this.pause();
        this.walkTo(position);
      },
    });
    const speedId = uniqueId("speed");
    this.speed = element(
      "select",
      { id: speedId, class: "tf-input" },
      ...[0.25, 0.5, 1, 2].map((s) => element("option", { value: s, selected: s === 1 }, `${s}\u00d7`)),
    );
    this.clearButton = iconButton("close", "Clear the path", () => this.clear());
    this.note = element("p", { class: "tf-note", role: "status" });
    this.controls = element(
      "div",
      { class: "tf-path-controls" },
      this.playButton,
      element(
        "div",
        { class: "tf-path-slider" },
        element("label", { for: sliderId, class: "tf-hidden" }, "Position on the path from A to B"),
        element("span", { "aria-hidden": "true" }, "A"),
        this.slider,
        element("span", { "aria-hidden": "true" }, "B"),
      ),
      element("label", { for: speedId, class: "tf-hidden" }, "Speed"),
      this.speed,
      this.clearButton,
    );
    return element(
      "div",
      { class: "tf-path" },
      element("div", { class: "tf-ends" }, this.makeEnd("A"), this.makeEnd("B")),
      this.controls,
      this.note,
    );
  }

  makeEnd(end) {
    const button = textButton(
      `Set ${end}`,
      () => this.dispatchEvent(new CustomEvent("pick", { detail: { end } })),
      {
        title: `Make the probe point ${end} (key ${end.toLowerCase()})`,
      },
    );
    return element("div", { class: "tf-end" }, button, this.endTexts[end]);
  }

  /** @param {"A"|"B"} end @param {Float64Array} x @param {string} text what the point is called */
  setEnd(end, x, text) {
    this.ends[end] = { x: Float64Array.from(x), text };
    this.pause();
    const { A, B } = this.ends;
    this.points = A && B ? straightPath(A.x, B.x) : null;
    this.position = end === "B" ? PATH_STEPS : 0;
    this.update();
    this.dispatchEvent(new CustomEvent("path", { detail: { points: this.points } }));
  }

  clear() {
    this.pause();
    this.ends = { A: null, B: null };
    this.points = null;
    this.position = 0;
    this.update();
    this.dispatchEvent(new CustomEvent("path", { detail: { points: null } }));
  }

  toggle() {
    if (this.isPlaying) this.pause();
    else this.play();
  }

  play() {
    if (!this.points) return;
    if (this.position >= PATH_STEPS) this.position = 0;
    this.isPlaying = true;
    this.last = performance.now();
    this.update();
    this.schedule();
  }

  pause() {
    this.isPlaying = false;
    clearTimeout(this.timer);
    this.update();
  }

  schedule() {
    const calm = prefersLessMotion();
    const wait = calm ? (1000 * CALM_SECONDS) / Number(this.speed.value) : 1000 / FRAMES_PER_SECOND;
    this.timer = setTimeout(() => {
      const now = performance.now();
      this.walkTo(nextPosition(this.position, (now - this.last) / 1000, Number(this.speed.value), calm));
      this.last = now;
      if (this.position >= PATH_STEPS) this.pause();
      else if (this.isPlaying) this.schedule();
    }, wait);
  }

  /** Go to a position on the path; the generated row follows. */
  walkTo(position) {
    if (!this.points) return;
    this.position = position;
    const k = Math.round(position);
    this.slider.value = String(k);
    this.slider.setAttribute(
      "aria-valuetext",
      `${Math.round((100 * k) / PATH_STEPS)} percent of the way from A to B`,
    );
    this.dispatchEvent(new CustomEvent("walk", { detail: { x: this.points[k], k } }));
  }

  /** @param {string} text something to say about the path */
  setNote(text) {
    this.note.textContent = text;
  }

  update() {
    const isReady = Boolean(this.points);
    this.dispatchEvent(new CustomEvent("state"));
    for (const end of ["A", "B"]) this.endTexts[end].textContent = this.ends[end]?.text ?? "not set";
    this.controls.hidden = !this.ends.A && !this.ends.B;
    this.playButton.disabled = !isReady;
    this.slider.disabled = !isReady;
    this.slider.value = String(Math.round(this.position));
    const word = this.isPlaying ? "Pause" : "Play";
    this.playButton.replaceChildren(icon(this.isPlaying ? "pause" : "play"), word);
    if (!isReady) {
      const missing = this.ends.A ? "Now set B." : this.ends.B ? "Now set A." : "";
      this.note.textContent =
        missing ||
        "Click a place on the map, set it as A, click another, set it as B. Then walk from one to the other.";
    }
  }
}

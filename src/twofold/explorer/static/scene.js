/**
 * What is drawn on the map for a latent place: probe, marks, path, slice and domain.
 *
 * The map has two dimensions, the latent space one or more: this is where they meet.
 */

import { rowName } from "./row_names.js";
import { sliceEmphasis } from "./slices.js";
import { mapDensity, mapPositions } from "./spread.js";

export class Scene {
  /** @param {object} atlas @param {object} regression @param {{rest: Float64Array}} slices */
  constructor(atlas, regression, slices) {
    this.atlas = atlas;
    this.regression = regression;
    this.slices = slices;
    this.box = mapPositions(atlas);
    this.round = 0;
  }

  /** A latent place from one on the map: further dimensions come from the slice. */
  fromMap(point) {
    if (this.atlas.q === 1) return Float64Array.of(point[0]);
    return Float64Array.of(point[0], point[1], ...this.slices.rest);
  }

  toMap(x) {
    return [x[0], this.atlas.q === 1 ? 0 : x[1]];
  }

  /** The latent place of a row. */
  rowPlace(row) {
    const { q, rowX } = this.atlas;
    return Float64Array.from(rowX.subarray(row * q, (row + 1) * q));
  }

  /** Where a row is drawn. */
  rowPoint(row) {
    const { positions } = this.box;
    return [positions[2 * row], positions[2 * row + 1]];
  }

  setProbe(x) {
    this.map.setProbe(this.toMap(x));
  }

  setPath(points, k) {
    this.map.setPath(points?.map((x) => this.toMap(x)) ?? null, points ? k : null);
  }

  /**
   * @param {{neighbors: number[], ends: Object<string, {x: Float64Array}|null>, pasted: {x: Float64Array}|null, chosen: number}} marked
   */
  setMarks({ neighbors, ends, pasted, chosen }) {
    const mark = (point, kind, label) => ({ x: point[0], y: point[1], kind, label });
    const marks = neighbors.map((row) => mark(this.rowPoint(row), "neighbor"));
    for (const [end, found] of Object.entries(ends))
      if (found) marks.push(mark(this.toMap(found.x), "pick", end));
    if (pasted) marks.push(mark(this.toMap(pasted.x), "pasted", "pasted"));
    if (chosen >= 0) marks.push(mark(this.rowPoint(chosen), "found", rowName(this.atlas, chosen)));
    this.map.setMarks(marks);
  }

  /** Fade rows off the slice, once a frame at most. */
  showSlice() {
    if (this.atlas.q <= 2) return;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      if (this.isOver) return;
      this.map.setEmphasis(sliceEmphasis(this.atlas, this.slices.rest));
      this.showDensity();
    });
  }

  /** The shading of the domain; what is asked for meanwhile makes an older answer stale. */
  async showDensity() {
    const round = (this.round += 1);
    const isStale = () => this.isOver || round !== this.round;
    const density = await mapDensity(this.regression, this.box, this.atlas.q, this.slices.rest, isStale);
    if (density && !isStale())
      this.map.setDensity({ ...density, threshold: this.atlas.header.domain_threshold });
  }

  destroy() {
    this.isOver = true;
    this.map?.destroy();
  }
}

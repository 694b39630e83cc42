/**
 * Where rows are drawn: models with one latent dimension are spread out to a second one.
 */

import { isInBox } from "./regression.js";

/** The golden ratio's fraction: its multiples fill the unit interval evenly and always the same way. */
const GOLDEN = 0.6180339887498949;

/** Height of the spread as a share of the width of the map. */
const SPREAD_SHARE = 0.12;

/**
 * Nodes along a side of the density grid, fewer where that would take long; how far it goes beyond the rows, as a
 * share and in kernel widths.
 */
const DENSITY_SIZE = 256;
const QUICK_DENSITY_SIZE = 128;
const MOST_DENSITY_SUMS = 1.2e8;
const DENSITY_MARGIN = 0.06;
const DENSITY_REACH = 5.3;

/**
 * Contours are of the density smoothed by this share of the width that suits as many rows of a normal
 * distribution (Scott 1992): maps have more than one hill.
 */
const BLUR_SHARE = 0.5;

/** For one latent dimension: nodes, where the density is cut off, and half the height by the width. */
const BAND_SIZE = 240;
const BAND_CUT = 1.02;
const BAND_HEIGHT = 5;

/**
 * Positions on the map in latent units. With one latent dimension, dense places are drawn tall, so that
 * the outline of the points shows how many there are.
 * @param {{n: number, q: number, rowX: Float32Array, low: Float64Array, high: Float64Array, density: Float32Array|null}} atlas
 * @returns {{positions: Float32Array, low: number[], high: number[]}}
 */
export function mapPositions(atlas) {
  const { n, q, rowX } = atlas;
  const positions = new Float32Array(2 * n);
  if (q >= 2) {
    for (let i = 0; i < n; i++) {
      positions[2 * i] = rowX[q * i];
      positions[2 * i + 1] = rowX[q * i + 1];
    }
    return { positions, low: [atlas.low[0], atlas.low[1]], high: [atlas.high[0], atlas.high[1]] };
  }
  const tall = SPREAD_SHARE * (atlas.high[0] - atlas.low[0] || 1);
  let densest = 0;
  if (atlas.density) for (const value of atlas.density) densest = Math.max(densest, value);
  for (let i = 0; i < n; i++) {
    const share = densest > 0 ? atlas.density[i] / densest : 1;
    positions[2 * i] = rowX[i];
    positions[2 * i + 1] = tall * share * (2 * ((i * GOLDEN) % 1) - 1);
  }
  return { positions, low: [atlas.low[0], -tall], high: [atlas.high[0], tall] };
}

/** The row in the densest place, to begin with. */
export function densestRow({ density }) {
  return density ? density.reduce((best, value, i) => (value > density[best] ? i : best), 0) : 0;
}

/**
 * Density on a square grid around the rows, for the shading of the domain.
 * @param {object} regression @param {{positions: Float32Array, low: number[], high: number[]}} box of the map
 * @param {number} q @param {Float64Array} rest the slice in dimensions 2, 3, ...
 * @param {() => boolean} isStale whether the answer is no longer wanted
 * @returns {Promise<{grid: Float64Array, size: number, low: number[], high: number[], blur: number[]|null}|{rectangle: object|null}|null>}
 *   null if it went stale; a rectangle where the domain is a box
 */
export async function mapDensity(regression, box, q, rest, isStale) {
  if (regression.box !== null) return { rectangle: boxOnMap(regression.box, q, rest) };
  // The domain of an elongated map reaches further beyond its rows than a share of its short side.
  const margin = [0, 1].map((d) =>
    Math.max(
      DENSITY_MARGIN * (box.high[d] - box.low[d] || 1),
      DENSITY_REACH * (regression.kernelWidth[d] ?? 0),
    ),
  );
  const low = [box.low[0] - margin[0], box.low[1] - margin[1]];
  const high = [box.high[0] + margin[0], box.high[1] + margin[1]];
  if (q === 1) return bandDensity(regression, low, high);
  const isQuick = q === 2 && densitySums(regression, low, high) < MOST_DENSITY_SUMS;
  const size = isQuick ? DENSITY_SIZE : QUICK_DENSITY_SIZE;
  const grid = await regression.densityGridSlowly(low, high, size, rest, isStale);
  return grid && { grid, size, low, high, blur: contourBlur(regression, box.positions) };
}

/** Where a box meets the map; null where the slice does not go through it. */
function boxOnMap(box, q, rest) {
  const { low, high } = box;
  if (q > 2 && !isInBox(box, rest, 2)) return null;
  const tall = BAND_HEIGHT * (high[0] - low[0]);
  return q === 1 ? { low: [low[0], -tall], high: [high[0], tall] } : { low, high };
}

/** About how many nodes are added to for a fine grid: wide kernels are summed on a coarser one. */
function densitySums(regression, low, high) {
  const radius = (d) => DENSITY_REACH * regression.kernelWidth[d] * ((DENSITY_SIZE - 1) / (high[d] - low[d]));
  return regression.atlas.m * Math.min(3600, 4 * radius(0) * radius(1));
}

/** How much to smooth the density for contours, in latent units. */
function contourBlur({ kernelWidth }, positions) {
  const spread = [0, 1].map((d) => deviation(positions, d) / kernelWidth[d]);
  const widths = BLUR_SHARE * (positions.length / 2) ** (-1 / 6) * Math.sqrt(spread[0] * spread[1]);
  return [0, 1].map((d) => widths * kernelWidth[d]);
}

/** Standard deviation of one coordinate of pairs. */
function deviation(pairs, d) {
  let sum = 0;
  let squares = 0;
  for (let k = d; k < pairs.length; k += 2) sum += pairs[k];
  const mean = sum / (pairs.length / 2);
  for (let k = d; k < pairs.length; k += 2) squares += (pairs[k] - mean) ** 2;
  return Math.sqrt(squares / (pairs.length / 2));
}

/**
 * With one latent dimension the domain is made of upright bands: height means nothing there. The density
 * is cut off just above the threshold, and there are no lines of equal density.
 */
function bandDensity(regression, low, high) {
  const size = BAND_SIZE;
  const most = BAND_CUT * regression.threshold;
  const step = (high[0] - low[0]) / (size - 1);
  const line = Float64Array.from({ length: size }, (_, k) =>
    Math.min(most, regression.density([low[0] + k * step])),
  );
  const grid = new Float64Array(size * size);
  for (let row = 0; row < size; row++) grid.set(line, row * size);
  const tall = BAND_HEIGHT * (high[0] - low[0]);
  return { grid, size, low: [low[0], -tall], high: [high[0], tall], blur: null };
}

/**
 * How strongly each feature changes at a place of the map.
 */

/** The place is moved by this share of the map to both sides: a twentieth in all. */
const CHANGE_SHARE = 0.025;

/**
 * Change of each feature across a twentieth of the map, as a share of its range in the rows; the
 * length over the latent dimensions.
 * @param {{at: (x: Float64Array) => Float64Array}} regression
 * @param {{q: number, D: number, low: ArrayLike<number>, high: ArrayLike<number>, header: object}} atlas
 * @param {ArrayLike<number>} x
 * @returns {Float64Array} (D,)
 */
export function localChange(regression, atlas, x) {
  const { feature_low: low, feature_high: high } = atlas.header;
  const squares = new Float64Array(atlas.D);
  for (let d = 0; d < atlas.q; d++) {
    const step = CHANGE_SHARE * (atlas.high[d] - atlas.low[d]);
    const [up, down] = [Float64Array.from(x), Float64Array.from(x)];
    up[d] += step;
    down[d] -= step;
    const [above, below] = [regression.at(up), regression.at(down)];
    for (let j = 0; j < squares.length; j++) squares[j] += (above[j] - below[j]) ** 2;
  }
  return squares.map((square, j) => Math.sqrt(square) / (high[j] - low[j] || 1));
}

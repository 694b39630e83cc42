// Colours of the points: categories, a sequential scale, and what a description of colours means.
//
// Both palettes are of our own making, in OKLab (Ottosson 2020), where equal distances look about
// equally different. The categories were spread out in it as seen with normal, protan, deutan and
// tritan eyes, at lightnesses that stand out from white paper as well as from a dark ground.

const BASE_COLORS = [
  [68, 112, 197], [229, 114, 112], [62, 118, 18], [201, 187, 28], [174, 58, 142], [66, 206, 214],
  [177, 129, 177], [106, 172, 247], [233, 166, 150], [128, 151, 28], [168, 93, 103], [119, 128, 253],
];

/** Colours for so many classes; more of them begin again. */
const MOST_COLORS = 96;

/** Light that classes send out, so that they stand out from both grounds, and the least colour, so that none is grey. */
const LUMINANCE = [0.145, 0.6];
const LEAST_CHROMA = 0.05;

const SCALE_STEPS = 256;

/** Ends of the sequential scale: lightness leaves room to both grounds, hue runs from indigo to yellow. */
const SCALE_LIGHTNESS = [0.37, 0.88];
const SCALE_HUE = [292, 98];
const SCALE_CHROMA = [0.12, 0.135];

function toLinear(channel) {
  const c = channel / 255;
  return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
}

function fromLinear(value) {
  return value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055;
}

/** @param {number[]} rgb 0..255 @returns {number[]} lightness and the two opponent axes */
export function oklabOf(rgb) {
  const [r, g, b] = rgb.map(toLinear);
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function linearOfOklab([lightness, a, b]) {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

/** The colour as rgb 0..255; one that screens cannot show is made greyer until they can. */
function rgbOfOklab([lightness, a, b]) {
  let share = 1;
  let linear = linearOfOklab([lightness, a, b]);
  while (share > 0.02 && linear.some((value) => value < 0 || value > 1)) {
    share -= 0.02;
    linear = linearOfOklab([lightness, share * a, share * b]);
  }
  return linear.map((value) => Math.round(255 * fromLinear(Math.min(1, Math.max(0, value)))));
}

/** Colours that a class may have, all over the range. */
function makeCandidates() {
  const found = [];
  for (let lightness = 0.5; lightness < 0.86; lightness += 0.04) {
    for (let chroma = LEAST_CHROMA; chroma < 0.2; chroma += 0.03) {
      for (let hue = 0; hue < 2 * Math.PI; hue += Math.PI / 18) {
        const rgb = rgbOfOklab([lightness, chroma * Math.cos(hue), chroma * Math.sin(hue)]);
        const luminance = luminanceOf(rgb);
        if (luminance > LUMINANCE[0] && luminance < LUMINANCE[1]) found.push(rgb);
      }
    }
  }
  return found;
}

/** The light that a colour sends out, 0 to 1, of which contrasts are made (WCAG 2). */
export function luminanceOf(rgb) {
  const [r, g, b] = rgb.map(toLinear);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** The first twelve, and then always the candidate that is farthest from all before. */
function makeCategoryColors() {
  const found = [...BASE_COLORS];
  const candidates = makeCandidates().map((rgb) => ({ rgb, lab: oklabOf(rgb), off: Infinity }));
  const compare = (rgb) => {
    const [lightness, a, b] = oklabOf(rgb);
    for (const one of candidates) {
      one.off = Math.min(one.off, (one.lab[0] - lightness) ** 2 + (one.lab[1] - a) ** 2 + (one.lab[2] - b) ** 2);
    }
  };
  BASE_COLORS.forEach(compare);
  while (found.length < MOST_COLORS) {
    const farthest = candidates.reduce((best, one) => (one.off > best.off ? one : best));
    found.push(farthest.rgb);
    compare(farthest.rgb);
  }
  return found;
}

function makeSequential() {
  const at = (t) => {
    const lightness = SCALE_LIGHTNESS[0] + t * (SCALE_LIGHTNESS[1] - SCALE_LIGHTNESS[0]);
    const hue = ((SCALE_HUE[0] + t * (SCALE_HUE[1] - SCALE_HUE[0])) * Math.PI) / 180;
    const chroma = SCALE_CHROMA[0] + t * (SCALE_CHROMA[1] - SCALE_CHROMA[0]);
    return rgbOfOklab([lightness, chroma * Math.cos(hue), chroma * Math.sin(hue)]);
  };
  return Array.from({ length: SCALE_STEPS }, (_, k) => at(k / (SCALE_STEPS - 1)));
}

/** Triples 0..255 for categories. The first twelve differ most, also to eyes that see fewer colours. */
export const CATEGORY_COLORS = makeCategoryColors();

/** 256 triples from low (dark indigo) to high (yellow), even to the eye. */
export const SEQUENTIAL = makeSequential();

/**
 * The colour at a share of a scale.
 * @param {number[][]} scale triples
 * @param {number} t 0 to 1; what lies outside takes the nearer end
 * @returns {number[]}
 */
export function colorOf(scale, t) {
  const share = Math.min(1, Math.max(0, Number.isNaN(t) ? 0 : t));
  return scale[Math.round(share * (scale.length - 1))];
}

/** @param {string|number[]} color "#rrggbb", "#rgb" or a triple @returns {number[]} a triple */
export function rgbOf(color) {
  if (typeof color !== "string") return color;
  const digits = color.slice(1);
  const long = digits.length === 3 ? [...digits].map((digit) => digit + digit).join("") : digits;
  return [0, 2, 4].map((start) => parseInt(long.slice(start, start + 2), 16));
}

/**
 * Colours of all points.
 * @param {{kind: "category", codes: ArrayLike<number>, colors: Array<string|number[]>}
 *   | {kind: "number", values: ArrayLike<number>, low: number, high: number, scale: number[][]}
 *   | {kind: "plain"}} description
 * @param {number} n
 * @param {{plain: number[], none: number[]}} ground colours of points that have none
 * @returns {Uint8Array} (n, 3)
 */
export function pointColors(description, n, ground) {
  const rgb = new Uint8Array(3 * n);
  const put = (i, color) => {
    rgb[3 * i] = color[0];
    rgb[3 * i + 1] = color[1];
    rgb[3 * i + 2] = color[2];
  };
  if (description.kind === "category") {
    const colors = description.colors.map(rgbOf);
    for (let i = 0; i < n; i++) put(i, colors[description.codes[i]] ?? ground.none);
  } else if (description.kind === "number") {
    const { values, low, high, scale } = description;
    const factor = high > low ? 1 / (high - low) : 0;
    for (let i = 0; i < n; i++) put(i, Number.isNaN(values[i]) ? ground.none : colorOf(scale, (values[i] - low) * factor));
  } else {
    for (let i = 0; i < n; i++) put(i, ground.plain);
  }
  return rgb;
}

/**
 * What the colours of a saved map mean: a strip beside it, as shapes that a picture and an SVG file can draw.
 */

export const KEY_FONT = "13px system-ui, sans-serif";

const MARGIN = 16;
const LINE = 21;
const DOT = 5;
const BAR = { width: 14, height: 160 };
const MOST_TEXT = 200;

/** A text, or as much of its beginning as has room. */
function fitted(text, measure) {
  if (measure(text) <= MOST_TEXT) return text;
  const letters = [...text];
  while (letters.length && measure(`${letters.join("")}\u2026`) > MOST_TEXT) letters.pop();
  return `${letters.join("")}\u2026`;
}

/**
 * Shapes of a strip, from its left and top, and how wide it is.
 * @param {{title: string, classes: {text: string, color?: string}[], ends?: string[], stops?: string[]}} key classes,
 *   above them the lowest and highest number and colours from low to high
 * @param {string} none the colour of a class without one
 * @param {number} height of the map
 * @param {(text: string) => number} measure the width of a text
 * @returns {{width: number, texts: {text: string, x: number, y: number, isTitle?: boolean}[],
 *   dots: {x: number, y: number, radius: number, color: string}[],
 *   bars: {x: number, y: number, width: number, height: number, stops: string[]}[]}} texts by the middle of their line
 */
export function keyStrip(key, none, height, measure) {
  const texts = [];
  const dots = [];
  const bars = [];
  const write = (text, x, y, more) => texts.push({ text: fitted(text, measure), x, y, ...more });
  const top = MARGIN + LINE / 2;
  write(key.title, MARGIN, top, { isTitle: true });
  let above = top;
  if (key.stops) {
    const bar = { ...BAR, x: MARGIN, y: top + LINE };
    bars.push({ ...bar, stops: key.stops });
    key.ends.forEach((text, k) => write(text, MARGIN + bar.width + 8, bar.y + (k ? 0 : bar.height)));
    above = bar.y + bar.height + LINE / 2;
  }
  const room = Math.max(1, Math.floor((height - MARGIN - LINE / 2 - above) / LINE));
  const count = key.classes.length > room ? room - 1 : key.classes.length;
  key.classes.slice(0, count).forEach(({ text, color = none }, k) => {
    const y = above + (k + 1) * LINE;
    dots.push({ x: MARGIN + DOT, y, radius: DOT, color });
    write(text, MARGIN + 2 * DOT + 8, y);
  });
  const left = key.classes.length - count;
  if (left) write(`and ${left.toLocaleString("en-US")} more`, MARGIN, above + (count + 1) * LINE);
  const width = Math.max(...texts.map(({ text, x }) => x + measure(text))) + MARGIN;
  return { width: Math.ceil(width), texts, dots, bars };
}

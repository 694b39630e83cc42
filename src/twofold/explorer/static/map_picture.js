/**
 * The map as a picture to keep: what is seen as PNG, or as SVG, whose parts can be changed in a drawing program.
 */

import { cssColor } from "./category_list.js";
import { pointColors } from "./colors.js";
import { fileStem, saveFile } from "./downloads.js";
import { addGroundPaths } from "./map_ground.js";
import { KEY_FONT, keyStrip } from "./map_key.js";
import { classFont, namesWithRoom } from "./map_tags.js";
import { MAP_THEMES } from "./map_theme.js";

/** More points than this become an image within the SVG: no program would open so many discs. */
const MOST_DISCS = 30000;

/**
 * Save what is seen of the map, finer than on the screen.
 * @param {import("./map_view.js").MapView} map
 * @param {string} title of the page
 * @param {object|null} key what the colours mean, as `keyStrip` takes it
 */
export function saveMapPng(map, title, key) {
  let picture = null;
  map.drawPicture(() => {
    picture = joinedCanvas(map, Object.keys(map.canvases), stripBeside(map, key));
  });
  picture.toBlob((blob) => saveFile(`${fileStem(title)}-map.png`, blob, "image/png"));
}

/** The same as a file whose parts can be changed. */
export function saveMapSvg(map, title, key) {
  saveFile(`${fileStem(title)}-map.svg`, mapSvg(map, stripBeside(map, key)), "image/svg+xml");
}

/** What tells how wide a text is. */
function measuringPen() {
  return document.createElement("canvas").getContext("2d");
}

/** The key as a strip at the right of the map, null without one. */
function stripBeside(map, key) {
  const pen = measuringPen();
  pen.font = `600 ${KEY_FONT}`;
  const none = cssColor(MAP_THEMES[map.theme].none);
  return key && keyStrip(key, none, map.camera.height, (text) => pen.measureText(text).width);
}

function joinedCanvas(map, layers, strip = null) {
  const canvas = document.createElement("canvas");
  const { width, height } = map.canvases.ground;
  const ratio = width / map.camera.width;
  canvas.width = width + Math.round(ratio * (strip?.width ?? 0));
  canvas.height = height;
  const pen = canvas.getContext("2d");
  for (const layer of layers) pen.drawImage(map.canvases[layer], 0, 0);
  if (strip) {
    pen.setTransform(ratio, 0, 0, ratio, width, 0);
    drawStrip(pen, strip, map);
  }
  return canvas;
}

function drawStrip(pen, { width, texts, dots, bars }, map) {
  const theme = MAP_THEMES[map.theme];
  pen.fillStyle = theme.land;
  pen.fillRect(0, 0, width, map.camera.height);
  for (const { x, y, radius, color } of dots) {
    pen.fillStyle = color;
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.fill();
  }
  for (const { x, y, width: across, height, stops } of bars) {
    pen.fillStyle = pen.createLinearGradient(0, y + height, 0, y);
    stops.forEach((color, k) => pen.fillStyle.addColorStop(k / (stops.length - 1), color));
    pen.fillRect(x, y, across, height);
  }
  pen.textBaseline = "middle";
  pen.fillStyle = theme.ink;
  for (const { text, x, y, isTitle } of texts) {
    pen.font = isTitle ? `600 ${KEY_FONT}` : KEY_FONT;
    pen.fillText(text, x, y);
  }
}

/** The strip as a part of an SVG file, `left` pixels from its left. */
function svgStrip({ width, texts, dots, bars }, { camera, theme }, left) {
  const { land, ink } = MAP_THEMES[theme];
  const stop = (color, k, { length }) => `<stop offset="${k / (length - 1)}" stop-color="${color}"/>`;
  const parts = [
    `<rect width="${width}" height="${camera.height}" fill="${land}"/>`,
    ...dots.map(({ x, y, radius, color }) => `<circle cx="${x}" cy="${y}" r="${radius}" fill="${color}"/>`),
    ...bars.flatMap(({ x, y, width: across, height, stops }) => [
      `<linearGradient id="scale" x1="0" y1="1" x2="0" y2="0">${stops.map(stop).join("")}</linearGradient>`,
      `<rect x="${x}" y="${y}" width="${across}" height="${height}" fill="url(#scale)"/>`,
    ]),
    ...texts.map(
      ({ text, x, y, isTitle }) =>
        `<text x="${x}" y="${y}" dominant-baseline="central" fill="${ink}" style="font: ${isTitle ? "600 " : ""}${KEY_FONT}">${escapeXml(text)}</text>`,
    ),
  ];
  return `<g class="key" transform="translate(${left} 0)">\n${parts.join("\n")}\n</g>`;
}

/** A path that is written down, with the methods of a canvas path. */
class WrittenPath {
  constructor(camera) {
    this.camera = camera;
    this.text = "";
  }

  put(letter, ...numbers) {
    const { camera } = this;
    const places = [];
    for (let k = 0; k < numbers.length; k += 2)
      places.push(...camera.toScreen([numbers[k], numbers[k + 1]]).map((value) => value.toFixed(1)));
    this.text += letter + places.join(" ");
  }

  moveTo(x, y) {
    this.put("M", x, y);
  }

  lineTo(x, y) {
    this.put("L", x, y);
  }

  quadraticCurveTo(cx, cy, x, y) {
    this.put("Q", cx, cy, x, y);
  }

  rect(x, y, width, height) {
    this.put("M", x, y);
    this.put("L", x + width, y, x + width, y + height, x, y + height);
    this.closePath();
  }

  closePath() {
    this.text += "Z";
  }
}

function escapeXml(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}

/** What is seen of the map as an SVG file: ground, lines, points, names, and a key beside them. @returns {string} */
function mapSvg(map, strip) {
  const { camera, density, names } = map;
  const theme = MAP_THEMES[map.theme];
  const size = `width="${camera.width}" height="${camera.height}"`;
  const parts = [`<rect ${size} fill="${density ? theme.sea : theme.land}"/>`];
  if (density) {
    const [land, shore, contours] = [0, 1, 2].map(() => new WrittenPath(camera));
    addGroundPaths(density, { land, shore, contours });
    parts.push(
      `<path d="${land.text}" fill="${theme.land}" fill-rule="evenodd"/>`,
      // What was smoothed reaches beyond the shore.
      `<clipPath id="land"><path d="${land.text}" clip-rule="evenodd"/></clipPath>`,
      `<path d="${contours.text}" clip-path="url(#land)" fill="none" stroke="${theme.contour}" stroke-width="0.9"/>`,
      `<path d="${shore.text}" fill="none" stroke="${theme.shore}" stroke-width="1.2"/>`,
    );
  }
  parts.push(map.n <= MOST_DISCS ? svgDiscs(map, theme) : svgImage(map, size));
  const style = `font: ${classFont(camera)}; paint-order: stroke; stroke: ${theme.halo}; stroke-width: 4px`;
  for (const { text, left, y } of namesWithRoom(measuringPen(), camera, names)) {
    parts.push(
      `<text x="${left.toFixed(1)}" y="${y.toFixed(1)}" dominant-baseline="central" fill="${theme.ink}" style="${style}">${escapeXml(text)}</text>`,
    );
  }
  // Points at the border of the map end below the strip.
  if (strip) parts.push(svgStrip(strip, map, camera.width));
  const whole = camera.width + (strip?.width ?? 0);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${whole}" height="${camera.height}" viewBox="0 0 ${whole} ${camera.height}">\n${parts.join("\n")}\n</svg>\n`;
}

function svgDiscs(map, theme) {
  const { camera, positions, alphas } = map;
  const { diameter, opacity } = map.pointStyle();
  const rgb = pointColors(map.coloring, map.n, theme);
  const hex = (i) => [0, 1, 2].map((k) => rgb[3 * i + k].toString(16).padStart(2, "0")).join("");
  const discs = [];
  for (let i = 0; i < map.n; i++) {
    if (!alphas[i]) continue;
    const [x, y] = camera.toScreen([positions[2 * i], positions[2 * i + 1]]);
    if (x < -diameter || y < -diameter || x > camera.width + diameter || y > camera.height + diameter) continue;
    const faint = alphas[i] < 255 ? ` opacity="${(alphas[i] / 255).toFixed(2)}"` : "";
    discs.push(`<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${(diameter / 2).toFixed(2)}" fill="#${hex(i)}"${faint}/>`);
  }
  return `<g fill-opacity="${opacity.toFixed(2)}">\n${discs.join("\n")}\n</g>`;
}

function svgImage(map, size) {
  map.drawWhole();
  return `<image ${size} href="${joinedCanvas(map, ["points"]).toDataURL("image/png")}"/>`;
}

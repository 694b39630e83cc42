/**
 * The map as a picture to keep: what is seen as PNG, or as SVG, whose parts can be changed in a drawing program.
 */

import { pointColors } from "./colors.js";
import { fileStem, saveFile } from "./downloads.js";
import { addGroundPaths } from "./map_ground.js";
import { MAP_THEMES } from "./map_theme.js";

/** More points than this become an image within the SVG: no program would open so many discs. */
const MOST_DISCS = 30000;

/** Save what is seen of the map, finer than on the screen. @param {import("./map_view.js").MapView} map */
export function saveMapPng(map, title) {
  let picture = null;
  map.drawPicture(() => {
    picture = joinedCanvas(map, Object.keys(map.canvases));
  });
  picture.toBlob((blob) => saveFile(`${fileStem(title)}-map.png`, blob, "image/png"));
}

export function saveMapSvg(map, title) {
  saveFile(`${fileStem(title)}-map.svg`, mapSvg(map), "image/svg+xml");
}

function joinedCanvas(map, layers) {
  const canvas = document.createElement("canvas");
  canvas.width = map.canvases.ground.width;
  canvas.height = map.canvases.ground.height;
  const pen = canvas.getContext("2d");
  for (const layer of layers) pen.drawImage(map.canvases[layer], 0, 0);
  return canvas;
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

/** What is seen of the map as an SVG file: ground, lines, points and names. @returns {string} */
export function mapSvg(map) {
  const { camera, density, names } = map;
  const theme = MAP_THEMES[map.theme];
  const size = `width="${camera.width}" height="${camera.height}"`;
  const parts = [`<rect ${size} fill="${density ? theme.sea : theme.land}"/>`];
  if (density) {
    const [land, shore, contours] = [0, 1, 2].map(() => new WrittenPath(camera));
    addGroundPaths(density, { land, shore, contours });
    parts.push(
      `<path d="${land.text}" fill="${theme.land}" fill-rule="evenodd"/>`,
      `<path d="${contours.text}" fill="none" stroke="${theme.contour}" stroke-width="0.9"/>`,
      `<path d="${shore.text}" fill="none" stroke="${theme.shore}" stroke-width="1.2"/>`,
    );
  }
  parts.push(map.n <= MOST_DISCS ? svgDiscs(map, theme) : svgImage(map, size));
  const style = `font: 600 13px system-ui, sans-serif; paint-order: stroke; stroke: ${theme.halo}; stroke-width: 4px`;
  for (const { text, x, y } of names) {
    const [left, top] = camera.toScreen([x, y]);
    parts.push(
      `<text x="${left.toFixed(1)}" y="${top.toFixed(1)}" text-anchor="middle" dominant-baseline="central" fill="${theme.ink}" style="${style}">${escapeXml(text)}</text>`,
    );
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} viewBox="0 0 ${camera.width} ${camera.height}">\n${parts.join("\n")}\n</svg>\n`;
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

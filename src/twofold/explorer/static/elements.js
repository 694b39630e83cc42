/**
 * Building blocks of the interface: elements in one call, icons, and how numbers are written.
 */

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

/** Strokes of the icons, on a 20 x 20 grid. */
const ICON_PATHS = {
  search: "M8.5 3a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11Z M12.6 12.6 17 17",
  plus: "M10 4v12 M4 10h12",
  minus: "M4 10h12",
  home: "M4 8V4h4 M12 4h4v4 M16 12v4h-4 M8 16H4v-4",
  lasso:
    "M10 3.5c4 0 7 2 7 4.8S14 13 10 13s-7-1.9-7-4.7 3-4.8 7-4.8Z M6.5 12.5c-1.6.5-2 2.5-.3 2.8 1.5.2 1.6 1.7.3 2.2",
  move: "M10 2.5v15 M2.5 10h15 M7.5 5 10 2.5 12.5 5 M7.5 15l2.5 2.5 2.5-2.5 M5 7.5 2.5 10 5 12.5 M15 7.5l2.5 2.5-2.5 2.5",
  sun: "M10 6.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7Z M10 2v1.5 M10 16.5V18 M2 10h1.5 M16.5 10H18 M4.3 4.3l1.1 1.1 M14.6 14.6l1.1 1.1 M4.3 15.7l1.1-1.1 M14.6 5.4l1.1-1.1",
  moon: "M16.5 11.8A7 7 0 0 1 8.2 3.5 7 7 0 1 0 16.5 11.8Z",
  help: "M7.3 7.5a2.7 2.7 0 1 1 3.9 2.4c-.8.4-1.2 1-1.2 2 M10 14.8v.2 M10 2.5a7.5 7.5 0 1 0 0 15 7.5 7.5 0 0 0 0-15Z",
  play: "M6.5 4.5v11l9-5.5Z",
  pause: "M7 4.5v11 M13 4.5v11",
  close: "M5 5l10 10 M15 5 5 15",
  down: "M10 3.5v9 M6 9l4 4 4-4 M4 16.5h12",
  pin: "M10 18v-6 M6 12h8l-1.5-3V4h1V2.5h-7V4h1v5Z",
  clipboard: "M7 4H5v13h10V4h-2 M7.5 2.5h5v3h-5Z",
};

/**
 * Make an element.
 * @param {string} tag
 * @param {Object<string, any>} attributes "onclick" and the like are listeners; null and false are left out
 * @param {...(Node|string|null)} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** An icon of the table above; it says nothing to screen readers, its button does. */
export function icon(name) {
  const svg = document.createElementNS(SVG_NAMESPACE, "svg");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("class", "tf-icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG_NAMESPACE, "path");
  path.setAttribute("d", ICON_PATHS[name]);
  svg.append(path);
  return svg;
}

/** A square button that shows an icon and says `label`. */
export function iconButton(name, label, onclick, attributes = {}) {
  return element(
    "button",
    { type: "button", class: "tf-icon-button", "aria-label": label, title: label, onclick, ...attributes },
    icon(name),
  );
}

/** A button with words. */
export function textButton(label, onclick, attributes = {}) {
  return element("button", { type: "button", class: "tf-button", onclick, ...attributes }, label);
}

let lastElementId = 0;

/** An id that no other element of this document has, even with several explorers in a notebook. */
export function uniqueId(stem) {
  lastElementId += 1;
  return `tf-${stem}-${lastElementId}`;
}

/** A number for people: four significant digits or as many as asked for, a true minus sign, "missing" for NaN. */
export function formatNumber(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "missing";
  if (value === 0) return "0";
  const rounded = Number(value.toPrecision(digits));
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-4 ? rounded.toExponential() : String(rounded);
  return text.replace("e+", "e").replaceAll("-", "\u2212");
}

/** A count with thousands separators. */
export function formatCount(count) {
  return Number(count).toLocaleString("en-US");
}

/** "1 row", "2 rows". */
export function countOf(count, noun) {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** Whether the reader asked for less motion. */
export function prefersLessMotion() {
  return globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches ?? false;
}

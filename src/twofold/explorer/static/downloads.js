/**
 * Files that the page hands out: the generated row and the selected rows.
 */

import { withDates } from "./date_circles.js";
import { element } from "./elements.js";
import { columnCells, labelCell, numberCell, ownCell } from "./feature_text.js";
import { rowName } from "./row_names.js";

/** Pixels of the longer side of a downloaded image; small images are enlarged by a whole factor. */
const PNG_SIDE = 512;

/** Text as a field of a CSV file. */
export function csvField(text) {
  const plain = String(text);
  return /[",\n\r]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

/** The row as two lines: names, values. */
export function rowCsv(features, values) {
  return `${features.map(csvField).join(",")}\n${valueCells(values).join(",")}\n`;
}

/** Names and cells of the data of a row: those of its table where columns are no numbers. */
function dataNames(header) {
  return header.columns ? header.columns.map((column) => column.name) : header.features;
}

/** Cells of row i of the table: its own values where they are kept, else what comes out of the codes. */
function rowCells(atlas, i) {
  const { header } = atlas;
  const values = atlas.rowData(i) ?? header.features.map(() => NaN);
  const steps = header.quantised.step;
  const own = (j) => atlas.ownValue(i, j);
  return header.columns ? columnCells(header, values, steps, own).map(csvField) : valueCells(values, steps, own);
}

/** Numbers as fields of a CSV file, empty where missing. */
function valueCells(values, steps = null, own = () => undefined) {
  return Array.from(values, (value, j) => {
    const kept = own(j);
    return kept === undefined ? numberCell(null, value, steps?.[j]) : ownCell(null, kept);
  });
}

/** Number from 1, name, labels, latent coordinates, and values of some rows, as far as the page holds them. */
export function selectionCsv(atlas, rows) {
  const own = new Set(atlas.header.columns?.map((column) => column.name));
  const columns = Object.keys(atlas.labels).filter((name) => !own.has(name));
  const { rows: about } = atlas.header;
  const latent = Array.from({ length: atlas.q }, (_, d) => `latent ${d + 1}`);
  const head = ["row", "name", ...columns, ...latent, ...(about.has_data ? dataNames(atlas.header) : [])];
  const lines = [head.map(csvField).join(",")];
  for (const i of rows) {
    const place = Array.from(atlas.rowX.subarray(i * atlas.q, (i + 1) * atlas.q), (value) =>
      value.toPrecision(7),
    );
    const labels = columns.map((column) => csvField(labelCell(atlas.labels[column], i)));
    const values = about.has_data ? rowCells(atlas, i) : [];
    lines.push([i + 1, csvField(rowName(atlas, i)), ...labels, ...place, ...values].join(","));
  }
  return `${lines.join("\n")}\n`;
}

/** The names of some rows, one a line below a head, with their numbers from 1. */
export function namesCsv(atlas, rows) {
  const lines = Array.from(rows, (i) => `${i + 1},${csvField(rowName(atlas, i))}`);
  return `row,name\n${lines.join("\n")}\n`;
}

/** Hand a file to the reader. */
export function saveFile(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = element("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** The canvas of a row enlarged without smoothing, as a PNG file. */
export function saveImage(name, canvas) {
  const factor = Math.max(1, Math.floor(PNG_SIDE / Math.max(canvas.width, canvas.height)));
  const large = element("canvas", { width: canvas.width * factor, height: canvas.height * factor });
  const context = large.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(canvas, 0, 0, large.width, large.height);
  large.toBlob((blob) => saveFile(name, blob, "image/png"));
}

/** A file name without what file systems dislike. */
export function fileStem(title) {
  return title.replace(/\.twofold$/, "").replace(/[^\p{L}\p{N}._-]+/gu, "-") || "twofold";
}

/** Save the generated row. */
export function saveRowCsv(header, values) {
  const cells = header.columns && columnCells(header, withDates(header, values)).map(csvField);
  const text = cells ? `${dataNames(header).map(csvField).join(",")}\n${cells.join(",")}\n` : rowCsv(header.features, values);
  saveFile(`${fileStem(header.title)}-row.csv`, text, "text/csv");
}

/** Save the generated row as it is drawn. */
export function saveRowPng(header, values, image) {
  image.draw(values);
  saveImage(`${fileStem(header.title)}-row.png`, image.canvas);
}

export function saveNamesCsv(atlas, rows) {
  saveFile(`${fileStem(atlas.header.title)}-names.csv`, namesCsv(atlas, rows), "text/csv");
}

export function saveSelectionCsv(atlas, rows) {
  saveFile(`${fileStem(atlas.header.title)}-selection.csv`, selectionCsv(atlas, rows), "text/csv");
}

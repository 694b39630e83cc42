/**
 * A row typed or pasted by the reader: reading its text, and the window that asks for it.
 */

import { element, formatCount, textButton, uniqueId } from "./elements.js";
import { columnsHint, parseColumns } from "./pasted_columns.js";
import { numberIn, plainName, splitCells } from "./pasted_text.js";

/** A number, or NaN for a missing one; throws where the text is neither. */
function readValue(cell, hasDecimalCommas) {
  const value = numberIn(cell, hasDecimalCommas);
  const advice = "Write NaN or leave it empty where a value is missing.";
  if (value === null) throw new Error(`"${cell.trim()}" is not a number. ${advice}`);
  if (Math.abs(value) === Infinity) throw new Error(`"${cell.trim()}" is not finite. ${advice}`);
  return value;
}

/**
 * Read a row from text: numbers apart by comma, tab, semicolon, line or space, as in a line of a CSV file, with
 * or without its header; or lines "name=value".
 * @param {string} text
 * @param {string[]} features names, in order
 * @returns {{values: Float64Array, skipped: string[]}} NaN where a value is missing; words for cells not used
 * @throws {Error} that says what was expected, what came and what to do
 */
export function parseRow(text, features) {
  if (!text.trim())
    throw new Error(
      `Nothing was pasted. Paste ${formatCount(features.length)} numbers, or lines "name=value".`,
    );
  const row = text.includes("=") ? readNamed(text, features) : readCells(text, features);
  if (row.values.every(Number.isNaN))
    throw new Error("All values are missing. At least one number is needed to find a place on the map.");
  return row;
}

/** Where each name stands, in lower case. */
function placesOfNames(features) {
  return new Map(features.map((name, j) => [plainName(name), j]));
}

/** Values under their names, each at most once. */
class NamedValues {
  constructor(features) {
    this.values = new Float64Array(features.length).fill(NaN);
    this.given = new Set();
  }

  set(j, name, value) {
    if (this.given.has(j)) throw new Error(`"${name.trim()}" comes more than once. Keep one of its values.`);
    this.given.add(j);
    this.values[j] = value;
  }
}

function readNamed(text, features) {
  const places = placesOfNames(features);
  const named = new NamedValues(features);
  const parts = text.split(/[\n;]+/).filter((part) => part.trim());
  for (const part of parts) {
    const at = part.lastIndexOf("=");
    const name = part.slice(0, at).trim();
    const j = places.get(plainName(name));
    if (at < 0) throw new Error(`"${part.trim()}" has no "=". Write one "name=value" a line.`);
    if (j === undefined)
      throw new Error(
        `There is no feature called "${name}". The first ones are ${features.slice(0, 3).join(", ")}.`,
      );
    named.set(j, name, readValue(part.slice(at + 1)));
  }
  return { values: named.values, skipped: [] };
}

function readCells(text, features) {
  const body = text.trim().replace(/^\[|\]$/g, "");
  const unquoted = body.replace(/"[^"\n]*"/g, "");
  // Tabs, semicolons and commas can have nothing between them: a missing value. Spaces and lines cannot.
  const mark = ["\t", ";", ","].find((separator) => unquoted.includes(separator));
  const lines = body.split(/\r?\n/).filter((line) => line.trim());
  const table = lines.map((line) => splitCells(line, mark));
  const hasDecimalCommas = mark === ";";
  if (lines.length === 2 && table[0].length === table[1].length) {
    const places = placesOfNames(features);
    const known = table[0].filter((cell) => places.has(plainName(cell)));
    const isText = table[0].every((cell) => !cell.trim() || numberIn(cell, hasDecimalCommas) === null);
    // Names may be numbers: then all of them must be there.
    if (known.length >= features.length || (isText && known.length > 0))
      return readBelowNames(table, places, features, hasDecimalCommas);
    if (isText && table[0].some((cell) => cell.trim())) {
      const row = readNumbers(table[1], features, hasDecimalCommas);
      return { ...row, skipped: ["the line of names", ...row.skipped] };
    }
  }
  return readNumbers(table.flat(), features, hasDecimalCommas);
}

/** A row below a line of names, in any order; what has another name is skipped. */
function readBelowNames([names, cells], places, features, hasDecimalCommas) {
  const named = new NamedValues(features);
  const skipped = [];
  names.forEach((name, k) => {
    const j = places.get(plainName(name));
    if (j !== undefined) named.set(j, name, readValue(cells[k], hasDecimalCommas));
    else if (name.trim() || cells[k].trim()) skipped.push(`"${name.trim() || cells[k].trim()}"`);
  });
  return { values: named.values, skipped };
}

/** Numbers in the order of the features; text before and after them is skipped where the rest fits. */
function readNumbers(cells, features, hasDecimalCommas) {
  const D = features.length;
  const parts = cells.length === D + 1 && !cells.at(-1).trim() ? cells.slice(0, -1) : cells;
  const isText = parts.map((cell) => numberIn(cell, hasDecimalCommas) === null);
  const first = parts.length > D ? Math.max(isText.indexOf(false), 0) : 0;
  const last = parts.length > D ? isText.lastIndexOf(false) + 1 : parts.length;
  const inside = parts.slice(first, last);
  if (inside.length !== D) {
    throw new Error(
      `${formatCount(D)} values were expected, ${formatCount(inside.length)} came. ` +
        'Leave a place empty between separators, or write NaN, where a value is missing; or write lines "name=value".',
    );
  }
  const skipped = [...parts.slice(0, first), ...parts.slice(last)].map((cell) => `"${cell.trim()}"`);
  return { values: Float64Array.from(inside, (cell) => readValue(cell, hasDecimalCommas)), skipped };
}

/** What the window says about what can be pasted. */
function featuresHint(count) {
  return `${formatCount(count)} numbers in the order of the features, apart by comma, tab, semicolon or space, such as a line of a CSV file, with or without its header; or lines "name=value". Empty or NaN means missing: the rest is used.`;
}

export class PasteDialog extends EventTarget {
  /** @param {object} header Fires "row" with what `parseRow` or, of a mixed table, `parseColumns` returns. */
  constructor(header) {
    super();
    const { features, columns } = header;
    this.read = (text) => (columns ? parseColumns(text, header) : parseRow(text, features));
    const id = uniqueId("paste");
    this.text = element("textarea", {
      id,
      class: "tf-input",
      rows: 7,
      spellcheck: "false",
      autocapitalize: "off",
      "aria-describedby": `${id}-hint ${id}-problem`,
      placeholder: (columns?.map(({ name }) => name) ?? features)
        .slice(0, 3)
        .map((name) => `${name}=\u2026`)
        .join("\n"),
    });
    this.problem = element("p", { id: `${id}-problem`, class: "tf-problem", role: "alert" });
    const form = element(
      "form",
      { method: "dialog", onsubmit: (event) => this.submit(event) },
      element("h2", { id: `${id}-title` }, "Paste a row"),
      element(
        "p",
        { class: "tf-note", id: `${id}-hint` },
        columns ? columnsHint(header) : featuresHint(features.length),
      ),
      element("label", { for: id, class: "tf-label" }, "Row"),
      this.text,
      this.problem,
      element(
        "div",
        { class: "tf-dialog-foot" },
        textButton("Cancel", () => this.dialog.close()),
        element("button", { type: "submit", class: "tf-button tf-primary" }, "Find its place"),
      ),
    );
    this.dialog = element("dialog", { class: "tf-dialog", "aria-labelledby": `${id}-title` }, form);
    this.element = this.dialog;
    this.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    });
  }

  open() {
    this.problem.textContent = "";
    this.dialog.showModal();
    this.text.focus();
    this.text.select();
  }

  submit(event) {
    event.preventDefault();
    try {
      const row = this.read(this.text.value);
      this.dialog.close();
      this.dispatchEvent(new CustomEvent("row", { detail: row }));
    } catch (error) {
      this.problem.textContent = error.message;
      this.text.focus();
    }
  }
}

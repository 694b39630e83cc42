/**
 * A row typed or pasted by the reader: reading its text, and the window that asks for it.
 */

import { element, formatCount, textButton, uniqueId } from "./elements.js";

/** What stands for a missing value. */
const MISSING_WORDS = new Set(["", "na", "n/a", "nan", "null", "none", "missing", "?", "-"]);

/** A number, or NaN for a missing one; throws where the text is neither. */
function readValue(text) {
  const trimmed = text
    .trim()
    .replace(/^["']|["']$/g, "")
    .replace("\u2212", "-");
  if (MISSING_WORDS.has(trimmed.toLowerCase())) return NaN;
  const value = Number(trimmed);
  if (Number.isNaN(value))
    throw new Error(
      `"${text.trim()}" is not a number. Write NaN or leave it empty where a value is missing.`,
    );
  return value;
}

/**
 * Read a row from text: numbers apart by comma, tab, semicolon, line or space, or lines "name=value".
 * @param {string} text
 * @param {string[]} features names, in order
 * @returns {Float64Array} NaN where a value is missing
 * @throws {Error} that says what was expected, what came and what to do
 */
export function parseRow(text, features) {
  if (!text.trim())
    throw new Error(
      `Nothing was pasted. Paste ${formatCount(features.length)} numbers, or lines "name=value".`,
    );
  const values = text.includes("=") ? readNamed(text, features) : readNumbers(text, features);
  if (values.every(Number.isNaN))
    throw new Error("All values are missing. At least one number is needed to find a place on the map.");
  return values;
}

function readNamed(text, features) {
  const places = new Map(features.map((name, j) => [name.trim().toLowerCase(), j]));
  const values = new Float64Array(features.length).fill(NaN);
  const parts = text.split(/[\n;]+/).filter((part) => part.trim());
  for (const part of parts) {
    const at = part.lastIndexOf("=");
    const name = part.slice(0, at).trim();
    const j = places.get(name.toLowerCase());
    if (at < 0) throw new Error(`"${part.trim()}" has no "=". Write one "name=value" a line.`);
    if (j === undefined)
      throw new Error(
        `There is no feature called "${name}". The first ones are ${features.slice(0, 3).join(", ")}.`,
      );
    values[j] = readValue(part.slice(at + 1));
  }
  return values;
}

function readNumbers(text, features) {
  const body = text.trim().replace(/^\[|\]$/g, "");
  // Tabs, semicolons and commas can have nothing between them: a missing value. Spaces and lines cannot.
  const mark = ["\t", ";", ","].find((separator) => body.includes(separator));
  const parts = mark ? body.split(mark === "," ? /,|\n/ : new RegExp(`[${mark}\n]`)) : body.split(/\s+/);
  if (parts.length === features.length + 1 && !parts.at(-1).trim()) parts.pop();
  if (parts.length !== features.length) {
    throw new Error(
      `${formatCount(features.length)} values were expected, ${formatCount(parts.length)} came. ` +
        'Leave a place empty between separators, or write NaN, where a value is missing; or write lines "name=value".',
    );
  }
  return Float64Array.from(parts, readValue);
}

export class PasteDialog extends EventTarget {
  /** @param {string[]} features Fires "row" with the values. */
  constructor(features) {
    super();
    this.features = features;
    const id = uniqueId("paste");
    const D = formatCount(features.length);
    this.text = element("textarea", {
      id,
      class: "tf-input",
      rows: 7,
      spellcheck: "false",
      autocapitalize: "off",
      "aria-describedby": `${id}-hint ${id}-problem`,
      placeholder: features
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
        `${D} numbers in the order of the features, apart by comma, tab, semicolon or space; or lines "name=value". Empty or NaN means missing: the rest is used.`,
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
      const values = parseRow(this.text.value, this.features);
      this.dialog.close();
      this.dispatchEvent(new CustomEvent("row", { detail: { values } }));
    } catch (error) {
      this.problem.textContent = error.message;
      this.text.focus();
    }
  }
}

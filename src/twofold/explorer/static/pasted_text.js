/**
 * Text that people paste, cell by cell.
 */

/** What stands for a missing value. */
const MISSING_WORDS = new Set(["", "na", "n/a", "nan", "null", "none", "missing", "?", "-"]);

/** Digits with one comma: a decimal comma, where commas do not set values apart. */
const DECIMAL_COMMA = /^([+-]?\d*),(\d+(?:e[+-]?\d+)?)$/i;

const INFINITE = /^[+-]?inf(inity)?$/i;

/** Whether a cell says that its value is missing. */
export function isMissingWord(cell) {
  return MISSING_WORDS.has(cell.trim().toLowerCase());
}

/** A cell's number, NaN for a missing one, infinite for one too large, or null for other text. */
export function numberIn(cell, hasDecimalCommas = false) {
  const plain = cell
    .trim()
    .replace(/^["']|["']$/g, "")
    .trim()
    .replace("\u2212", "-");
  if (isMissingWord(plain)) return NaN;
  if (INFINITE.test(plain)) return Infinity;
  const value = Number(hasDecimalCommas ? plain.replace(DECIMAL_COMMA, "$1.$2") : plain);
  return Number.isNaN(value) ? null : value;
}

/**
 * Cells of a line; a separator between double quotes is part of a cell, and two of these quotes there stand for one.
 */
export function splitCells(line, mark) {
  if (!mark) return line.trim().split(/\s+/);
  const cells = [""];
  let isQuoted = false;
  for (let k = 0; k < line.length; k++) {
    const letter = line[k];
    const cell = cells.at(-1);
    if (letter === '"' && isQuoted && line[k + 1] === '"') cells[cells.length - 1] += line[++k];
    // A quote within a cell is one of its letters: 5" is five inches.
    else if (letter === '"' && (isQuoted || !cell.trim())) {
      cells[cells.length - 1] = isQuoted ? cell : "";
      isQuoted = !isQuoted;
    } else if (letter === mark && !isQuoted) cells.push("");
    else cells[cells.length - 1] += letter;
  }
  return cells;
}

/** A name without what people write differently. */
export function plainName(name) {
  return name.trim().toLowerCase();
}

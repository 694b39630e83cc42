/**
 * A row of a mixed table typed or pasted by the reader, as the features that the model works with: amounts on
 * their scales, levels as indicators, dates as days and places on circles.
 */

import { formatCount } from "./elements.js";
import { scaledAmount } from "./feature_text.js";
import { isMissingWord, numberIn, plainName, splitCells } from "./pasted_text.js";

const SECONDS_OF_DAY = 86400;

/** So many names of columns are said in the window, and in what is said about unknown ones. */
const NAMES_IN_HINT = 12;
const NAMES_IN_PROBLEM = 3;

/** A date, its time of day and how far its clock is ahead of that of Greenwich. */
const DATE =
  /^(\d{4})[-/.](\d\d?)(?:[-/.](\d\d?)(?:[T ]\s*(\d\d?):(\d\d)(?::(\d\d(?:\.\d+)?))?\s*(Z|UTC|[+-]\d\d(?::?\d\d)?)?)?)?$/i;
const DATE_IN_ONE = /^(\d{4})(\d\d)(\d\d)(?!\d)/;

/** "2 days 03:04:05", as tables write durations. */
const DURATION = /^(?:([+-]?\d+)\s*days?\b,?\s*)?(?:\+?(\d+):(\d\d):(\d\d(?:\.\d+)?))?$/i;

/** The columns that a line in the order of the table has: those with features, and those with one value. */
function tableColumns(header) {
  const byName = new Map(header.columns.map((column) => [column.name, column]));
  return (header.table ?? [...byName.keys()]).map((name) => byName.get(name) ?? { name, size: 0 });
}

/** What the window says about what can be pasted. */
export function columnsHint(header) {
  const names = tableColumns(header).map(({ name }) => name);
  const listed = names.slice(0, NAMES_IN_HINT).join(", ") + (names.length > NAMES_IN_HINT ? ", \u2026" : "");
  const dates = header.columns.some(({ kind }) => kind === "date")
    ? " Dates are 2020-01-31 or 2020-01-31 14:30."
    : "";
  return `Cells in the order of the columns (${listed}), apart by tab, semicolon or comma; or a line of a CSV file below its header; or lines "name=value".${dates} Empty or NA means missing: the rest is used.`;
}

/**
 * Read a row of a mixed table from text.
 * @param {string} text
 * @param {object} header of the page
 * @returns {{values: Float64Array, skipped: string[], unknown: string[]}} features, NaN where missing; words for
 *   cells not used, and for cells that hold what the fit has not seen or has no value for, which are missing
 * @throws {Error} that says which cell, what was expected and what to do
 */
export function parseColumns(text, header) {
  if (!text.trim()) throw new Error('Nothing was pasted. Paste a row, or lines "name=value".');
  const row = new RowOfColumns(header);
  if (!row.readNamedLines(text)) row.readTable(text);
  const { values, skipped, unknown } = row;
  if (values.every(Number.isNaN)) {
    const none = unknown.length ? ` None of these can be used: ${unknown.join("; ")}.` : "";
    throw new Error(`All values are missing. At least one is needed to find a place on the map.${none}`);
  }
  return { values, skipped, unknown };
}

class RowOfColumns {
  constructor(header) {
    this.header = header;
    this.columns = tableColumns(header);
    const places = (nameOf) => this.columns.map((column, k) => [nameOf(column.name), k]);
    this.exact = new Map(places((name) => name.trim()));
    this.alike = new Map(places(plainName));
    this.values = new Float64Array(header.features.length).fill(NaN);
    this.given = new Set();
    this.skipped = [];
    this.unknown = [];
  }

  /** The number of the column with a name, -1 for none. */
  place(name) {
    return this.exact.get(name.trim()) ?? this.alike.get(plainName(name)) ?? -1;
  }

  /** Read lines "name=value"; false if the text is none of them. */
  readNamedLines(text) {
    const lines = text.split(/\r?\n/).filter((line) => line.trim());
    const parts = lines.length > 1 ? lines : text.split(";").filter((part) => part.trim());
    const ends = parts.map((part) => this.endOfName(part));
    // Levels have equals signs, too: ">=50".
    if (ends.every((end) => end < 0) && !(text.includes("=") && !/[\t;,]/.test(text))) return false;
    parts.forEach((part, k) => {
      if (ends[k] < 0) throw new Error(this.unknownName(part));
      this.set(this.place(part.slice(0, ends[k])), part.slice(ends[k] + 1).trim(), false);
    });
    return true;
  }

  /** Where the last equals sign after a known name is, -1 for nowhere. */
  endOfName(part) {
    let end = -1;
    for (let at = part.indexOf("="); at >= 0; at = part.indexOf("=", at + 1))
      if (this.place(part.slice(0, at)) >= 0) end = at;
    return end;
  }

  unknownName(part) {
    if (!part.includes("=")) return `"${part.trim()}" has no "=". Write one "name=value" a line.`;
    const first = this.columns.slice(0, NAMES_IN_PROBLEM).map(({ name }) => name);
    return `There is no column called "${part.split("=")[0].trim()}". The first ones are ${first.join(", ")}.`;
  }

  /** Read cells in the order of the table, or below a line of names. */
  readTable(text) {
    const lines = text.split(/\r?\n/).filter((line) => line.trim());
    const unquoted = text.replace(/"[^"\n]*"/g, "");
    const marks = ["\t", ";", ","].filter((mark) => unquoted.includes(mark));
    if (!marks.length) return this.readCells([lines.map((line) => line.trim())], false);
    const tables = marks.map((mark) => lines.map((line) => splitCells(line, mark)));
    // Cells may hold a mark that does not set cells apart.
    const fitting = tables.findIndex((table) => this.hasNames(table) || (table.length === 1 && this.order(table[0])));
    const chosen = Math.max(0, fitting);
    return this.readCells(tables[chosen], marks[chosen] === ";");
  }

  hasNames([names, cells]) {
    return cells?.length === names.length && names.some((name) => this.place(name) >= 0);
  }

  /** The columns that cells in the order of the table belong to, null if there are more or fewer of them. */
  order(cells) {
    const count = cells.at(-1).trim() ? cells.length : cells.length - 1;
    const withFeatures = this.columns.filter(({ size }) => size > 0);
    return [this.columns, withFeatures].find(({ length }) => length === cells.length || length === count) ?? null;
  }

  readCells(table, hasDecimalCommas) {
    if (table.length === 2 && this.hasNames(table)) {
      const [names, cells] = table;
      names.forEach((name, k) => {
        const place = this.place(name);
        if (place >= 0) this.set(place, cells[k], hasDecimalCommas);
        else if (name.trim() || cells[k].trim()) this.skipped.push(`"${name.trim() || cells[k].trim()}"`);
      });
      return;
    }
    if (table.length > 1) {
      throw new Error(
        `${formatCount(table.length)} lines came. Paste one row; a line above it has to be the names of its columns, as many as cells.`,
      );
    }
    const order = this.order(table[0]);
    if (!order) {
      const wanted = formatCount(this.columns.length);
      throw new Error(
        `${wanted} cells were expected, one for each column, ${formatCount(table[0].length)} came. ` +
          'Leave a place empty between separators where a value is missing; or paste the line of names, too; or write lines "name=value".',
      );
    }
    order.forEach((column, k) => this.set(this.columns.indexOf(column), table[0][k], hasDecimalCommas));
  }

  /** Take a cell of a column, at most one. */
  set(place, cell, hasDecimalCommas) {
    const column = this.columns[place];
    if (this.given.has(place)) throw new Error(`"${column.name}" comes more than once. Keep one of its values.`);
    this.given.add(place);
    if (!column.size) return;
    const form = this.header.forms[column.at];
    const { features, problem } = cellFeatures(column, form, cell, hasDecimalCommas);
    if (problem) this.unknown.push(problem);
    this.values.set(features ?? [], column.at);
  }
}

/** The features of a cell, none if it is missing; `problem` says what makes a cell missing that is not empty. */
function cellFeatures(column, form, cell, hasDecimalCommas) {
  const text = cell.trim();
  if (column.levels) {
    const level = levelIn(column, cell);
    if (level >= 0) return { features: indicators(column, level) };
    return isMissingWord(text) ? {} : { problem: `${column.name} "${text}", which is none of its levels` };
  }
  if (isMissingWord(text)) return {};
  const complain = (expected) => {
    throw new Error(`${column.name}: "${text}" is not ${expected}. Leave it empty where a value is missing.`);
  };
  if (column.kind === "date") {
    const days = (timeIn(text, column.zone) ?? complain("a date such as 2020-01-31 or 2020-01-31 14:30")) / SECONDS_OF_DAY;
    const angles = column.periods.map((period) => (2 * Math.PI * days) / period);
    return { features: [days, ...angles.flatMap((angle) => [Math.cos(angle), Math.sin(angle)])] };
  }
  const amount = column.duration ? secondsIn(text) : numberIn(text, hasDecimalCommas);
  if (amount === null)
    complain(column.duration ? 'a number of seconds or a duration such as "2 days 03:30:00"' : "a number");
  if (Math.abs(amount) === Infinity) complain("finite");
  const value = scaledAmount(form, amount);
  if (!Number.isNaN(value)) return { features: [value] };
  return { problem: `${column.name} "${text}", which is not ${form.form === "log" ? "above 0" : "at least 0"}` };
}

/** The number of the level that a cell is, -1 for none. */
function levelIn(column, cell) {
  const exact = column.levels.indexOf(cell);
  if (exact >= 0) return exact;
  const text = cell.trim();
  const trimmed = column.levels.findIndex((level) => level.trim() === text);
  if (trimmed >= 0 || !column.numbers) return trimmed;
  // Levels that are numbers or truth values may be written in other ways: 2 as 2.0, true as 1.
  const value = levelNumber(text);
  return column.levels.findIndex((level) => levelNumber(level) === value);
}

function levelNumber(text) {
  const truth = ["false", "true"].indexOf(text.toLowerCase());
  return truth < 0 ? numberIn(text) : truth;
}

function indicators(column, level) {
  const own = (j) => (column.kind === "ordered" ? level > j : column.groups[level] === j);
  return Array.from({ length: column.size }, (_, j) => Number(own(j)));
}

/** A date as seconds since 1970 on the clock of its column, null for other text. */
function timeIn(text, zone) {
  const found = DATE.exec(text.replace(DATE_IN_ONE, "$1-$2-$3"));
  if (!found) return null;
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map((part, k) => Number(part ?? (k === 2 ? 1 : 0)));
  const midnight = new Date(Date.UTC(year, month - 1, day));
  const isDay = midnight.getUTCMonth() === month - 1 && midnight.getUTCFullYear() === year;
  if (!isDay || hour > 23 || minute > 59 || second >= 60) return null;
  const seconds = midnight / 1000 + 3600 * hour + 60 * minute + second;
  return found[7] ? onClock(seconds, found[7], zone) : seconds;
}

/** Seconds on a clock with an offset from Greenwich, such as "+02:00", on the clock of a time zone. */
function onClock(seconds, offset, zone) {
  const [, sign, hours, minutes = "0"] = /^([+-])(\d\d):?(\d\d)?$/.exec(offset) ?? [0, "+", "0"];
  const there = seconds - (sign === "-" ? -1 : 1) * (3600 * Number(hours) + 60 * Number(minutes));
  if (!zone) return there;
  // The Swedish way to write a time is the one that can be read here.
  const style = { timeZone: zone.replace(/^UTC(?=[+-])/, ""), dateStyle: "short", timeStyle: "medium" };
  const whole = Math.floor(there);
  return timeIn(new Intl.DateTimeFormat("sv-SE", style).format(1000 * whole)) + there - whole;
}

/** A duration in seconds, null for other text. */
function secondsIn(text) {
  const found = DURATION.exec(text);
  if (!found) return numberIn(text);
  const [days, hours, minutes, seconds] = found.slice(1).map((part) => Number(part ?? 0));
  return SECONDS_OF_DAY * days + 3600 * hours + 60 * minutes + seconds;
}

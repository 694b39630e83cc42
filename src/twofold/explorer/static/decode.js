// What the file holds, as typed arrays: base64 of gzip of sections that the header lists.

import { extent } from "./extent.js";
import { scaledAmount } from "./feature_text.js";
import { Regression } from "./regression.js";

const SECTION_TYPES = {
  float32: Float32Array,
  float64: Float64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  int32: Int32Array,
};
const KNOWN_FORMAT = 1;
// Precomputed values of rows are stored as 0 … 254; 255 is none.
const MOST_SCALED = 254;

/**
 * Read a payload.
 * @param {object} header
 * @param {string|ArrayBuffer|ArrayBufferView} bytesOrBase64 gzipped or plain sections
 * @returns {Promise<Atlas>}
 */
export async function decodePayload(header, bytesOrBase64) {
  if (header.format !== KNOWN_FORMAT) {
    throw new Error(
      `This page reads files of format ${KNOWN_FORMAT}; this one is of format ${header.format}. ` +
        "Write it again with the version of twofold that it is opened with.",
    );
  }
  const packed =
    typeof bytesOrBase64 === "string" ? bytesOfBase64(bytesOrBase64) : bytesOf(bytesOrBase64);
  const isGzip = packed[0] === 0x1f && packed[1] === 0x8b;
  return new Atlas(header, isGzip ? await unzipped(packed) : alignedBuffer(packed));
}

function bytesOf(data) {
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return new Uint8Array(data);
}

function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

function unzipped(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** Typed arrays must begin at multiples of their size, which a view into other data may not. */
function alignedBuffer(bytes) {
  return bytes.slice().buffer;
}

/** The decoded file: references of the regression, rows with their labels, and what they are. */
export class Atlas {
  constructor(header, buffer) {
    this.header = header;
    this.buffer = buffer;
    this.n = header.rows.n;
    this.m = header.regression.n;
    this.D = header.model.n_features;
    this.q = header.model.n_components;
    this.refX = this.section("reg.x");
    this.refCodes = this.section("reg.y");
    this.refWeights = this.section("reg.w");
    this.refWidths = this.section("reg.h");
    this.refGroups = this.section("reg.group");
    this.rowX = this.latentOfRows();
    // Rows that are no references have a table of their own.
    this.rowCodes = this.section("rows.y") ?? this.refCodes;
    this.placeOfRow = this.section("rows.ref");
    this.own = this.section("rows.own");
    this.ownAt = new Map((header.rows.own ?? []).map((j, k) => [j, k * this.tableRows()]));
    this.beside = header.rows.beside ? { title: header.rows.beside, positions: this.section("rows.beside") } : null;
    this.names = this.readNames();
    this.labels = this.readLabels();
    this.density = this.scaledValues("rows.density");
    this.magnification = this.scaledValues("rows.magnification");
    this.missing = header.quantised.missing ?? -1;
    this.low = new Float64Array(this.q).fill(Infinity);
    this.high = new Float64Array(this.q).fill(-Infinity);
    this.findBox();
  }

  /** A section of the file, or null if it is not there. */
  section(name) {
    const entry = this.header.sections[name];
    if (!entry) return null;
    const Type = SECTION_TYPES[entry.dtype];
    const length = entry.shape.reduce((product, side) => product * side, 1);
    if (entry.offset + length * Type.BYTES_PER_ELEMENT > this.buffer.byteLength) {
      throw new Error(`The file is cut short: its section "${name}" is not all there.`);
    }
    return new Type(this.buffer, entry.offset, length);
  }

  latentOfRows() {
    const stored = this.section("rows.x");
    if (stored === null) return this.refX;
    if (stored instanceof Float32Array) return stored;
    const { low, step } = this.header.sections["rows.x"];
    return Float32Array.from(stored, (code, at) => low[at % this.q] + code * step[at % this.q]);
  }

  /** @returns {string[]|null} null where rows have no names */
  readNames() {
    const stored = this.section("rows.names");
    return stored && JSON.parse(new TextDecoder().decode(stored));
  }

  readLabels() {
    const labels = {};
    for (const [name, { kind, values, unit }] of Object.entries(this.header.rows.labels ?? {})) {
      const stored = this.section(`rows.label.${name}`);
      labels[name] =
        kind === "category" ? { kind, values, codes: stored } : { kind, numbers: stored, unit };
    }
    return labels;
  }

  /** Values that were stored as bytes between the bounds of their section. */
  scaledValues(name) {
    const codes = this.section(name);
    if (codes === null) return null;
    const { low, high, log } = this.header.sections[name];
    const value = (share) => (log ? low * (high / low) ** share : low + (high - low) * share);
    const table = Float32Array.from({ length: 256 }, (_, code) =>
      code > MOST_SCALED ? NaN : value(code / MOST_SCALED),
    );
    return Float32Array.from(codes, (code) => table[code]);
  }

  findBox() {
    const { rowX, q, low, high } = this;
    // A domain that is a box is shown whole.
    const box = this.header.domain_box;
    if (box) low.set(box.low), high.set(box.high);
    for (let at = 0; at < rowX.length; at += q) {
      for (let d = 0; d < q; d++) {
        if (rowX[at + d] < low[d]) low[d] = rowX[at + d];
        if (rowX[at + d] > high[d]) high[d] = rowX[at + d];
      }
    }
  }

  /** Where in the table of codes row i is, -1 for nowhere. */
  codesOfRow(i) {
    if (this.placeOfRow !== null) return this.placeOfRow[i];
    return i * this.D < this.rowCodes.length ? i : -1;
  }

  /** The reference that holds the data of row i, -1 for none. */
  rowRef(i) {
    return this.rowCodes === this.refCodes ? this.codesOfRow(i) : -1;
  }

  valueOfCode(code, j) {
    const { low, step } = this.header.quantised;
    return code === this.missing ? NaN : low[j] + code * step[j];
  }

  /** The data of row i, NaN where missing, or null if the file does not hold it. */
  rowData(i) {
    const place = this.header.rows.has_data ? this.codesOfRow(i) : -1;
    if (place < 0) return null;
    const from = place * this.D;
    const values = Float64Array.from({ length: this.D }, (_, j) => this.valueOfCode(this.rowCodes[from + j], j));
    for (const [j, start] of this.ownAt) values[j] = this.ownFeature(start + place, j);
    return values;
  }

  /** Feature j of a value that is kept beside the codes, by its place among these. */
  ownFeature(at, j) {
    return scaledAmount(this.header.forms?.[j], this.own[at]);
  }

  /** How many rows the table of codes has. */
  tableRows() {
    return this.rowCodes.length / this.D;
  }

  /** The value of the table that feature j of row i stands for; undefined where only its code is kept. */
  ownValue(i, j) {
    const from = this.ownAt.get(j);
    const place = from === undefined ? -1 : this.codesOfRow(i);
    return place < 0 ? undefined : this.own[from + place];
  }

  /** Feature j of all rows: their data, or the regression where they lie if there is none. */
  feature(j) {
    if (!this.header.rows.has_data) {
      this.regression ??= new Regression(this);
      return this.regression.featureAlong(this.rowX, this.n, j);
    }
    const own = this.ownAt.get(j);
    // Doubles: single precision knows times of these years by minutes.
    const values = new Float64Array(this.n);
    for (let i = 0; i < this.n; i++) {
      const place = this.codesOfRow(i);
      if (place < 0) values[i] = NaN;
      else if (own !== undefined) values[i] = this.ownFeature(own + place, j);
      else values[i] = this.valueOfCode(this.rowCodes[place * this.D + j], j);
    }
    return own === undefined ? this.withKnownEnds(values, j) : values;
  }

  /** Codes of feature j round all values, but the lowest and the highest of the table are known. */
  withKnownEnds(values, j) {
    const { feature_low: lows, feature_high: highs, quantised } = this.header;
    const [low, high] = extent(values);
    const ends = [[low, lows[j]], [high, highs[j]]].filter(([rough, end]) => Math.abs(rough - end) <= quantised.step[j]);
    const known = new Map(ends);
    return values.map((value) => known.get(value) ?? value);
  }
}

// Weighted sums of rows of codes, eight codes at a time.
//
// Where thousands of rows are in reach of a place, sums in plain JavaScript take longer than a frame
// of the screen. The loop below does the same four times as fast. It is WebAssembly, written out
// instruction by instruction so that what runs can be read here. It adds four rows of codes at a
// time, in single precision:
//
//   for (; count > 0; count -= 4, rows += 16, weights += 16)
//     for (j = 0; j < 8 * groups; j++)
//       sums[j] += weights[0] * rows[0][j] + … + weights[3] * rows[3][j]

// So many rows are summed in single precision before the sum goes on in double.
const ROWS_IN_SINGLE = 256;
const PAGE_BYTES = 65536;
const MOST_BYTES = 2 ** 30;

const WASM = {
  i32: 0x7f, v128: 0x7b, empty: 0x40,
  loop: 0x03, end: 0x0b, branchIf: 0x0d, get: 0x20, set: 0x21, tee: 0x22,
  i32Const: 0x41, i32Add: 0x6a, i32Sub: 0x6b, i32Load: 0x28,
};
const VECTOR = {
  load: [0xfd, 0x00], load8x8u: [0xfd, 0x02], splat32: [0xfd, 0x09], store: [0xfd, 0x0b],
  lowToInt: [0xfd, 0xa9, 0x01], highToInt: [0xfd, 0xaa, 0x01], intToFloat: [0xfd, 0xfa, 0x01],
  add: [0xfd, 0xe4, 0x01], multiply: [0xfd, 0xe6, 0x01],
};
// The variables of the function: its parameters come first.
const LOCAL = {
  rows: 0, weights: 1, count: 2, sums: 3, groups: 4,
  row: 5, at: 9, left: 10, weight: 11, codes: 15, low: 16, high: 17, // four rows and weights
};

function pushed(local) {
  return [WASM.get, local];
}

function increased(local, by) {
  return [...pushed(local), WASM.i32Const, by, WASM.i32Add, WASM.set, local];
}

/** Add weight times eight codes of row r to the two halves of the sums. */
function addedRow(r, load, bytes) {
  const half = (sum, widen) => [
    ...pushed(sum), ...pushed(LOCAL.weight + r), ...pushed(LOCAL.codes), ...widen,
    ...VECTOR.intToFloat, ...VECTOR.multiply, ...VECTOR.add, WASM.set, sum,
  ];
  return [
    ...pushed(LOCAL.row + r), ...load, 0, 0, WASM.set, LOCAL.codes,
    ...half(LOCAL.low, VECTOR.lowToInt), ...half(LOCAL.high, VECTOR.highToInt),
    ...increased(LOCAL.row + r, 8 * bytes),
  ];
}

function functionBody(bytes) {
  const four = [0, 1, 2, 3];
  const load = bytes === 1 ? VECTOR.load8x8u : VECTOR.load;
  return [
    2, 6, WASM.i32, 7, WASM.v128,
    WASM.loop, WASM.empty,
    ...four.flatMap((r) => [
      ...pushed(LOCAL.rows), WASM.i32Load, 2, 4 * r, WASM.set, LOCAL.row + r,
      ...pushed(LOCAL.weights), ...VECTOR.splat32, 2, 4 * r, WASM.set, LOCAL.weight + r,
    ]),
    ...pushed(LOCAL.sums), WASM.set, LOCAL.at, ...pushed(LOCAL.groups), WASM.set, LOCAL.left,
    WASM.loop, WASM.empty,
    ...pushed(LOCAL.at), ...VECTOR.load, 4, 0, WASM.set, LOCAL.low,
    ...pushed(LOCAL.at), ...VECTOR.load, 4, 16, WASM.set, LOCAL.high,
    ...four.flatMap((r) => addedRow(r, load, bytes)),
    ...pushed(LOCAL.at), ...pushed(LOCAL.low), ...VECTOR.store, 4, 0,
    ...pushed(LOCAL.at), ...pushed(LOCAL.high), ...VECTOR.store, 4, 16,
    ...increased(LOCAL.at, 32),
    ...pushed(LOCAL.left), WASM.i32Const, 1, WASM.i32Sub, WASM.tee, LOCAL.left, WASM.branchIf, 0,
    WASM.end,
    ...increased(LOCAL.rows, 16), ...increased(LOCAL.weights, 16),
    ...pushed(LOCAL.count), WASM.i32Const, 4, WASM.i32Sub, WASM.tee, LOCAL.count, WASM.branchIf, 0,
    WASM.end,
    WASM.end,
  ];
}

function moduleBytes(bytes) {
  const size = (n) => (n < 128 ? [n] : [(n & 127) | 128, n >> 7]);
  const part = (id, content) => [id, ...size(content.length), ...content];
  const body = functionBody(bytes);
  return Uint8Array.from([
    0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0, // "\0asm", version 1
    ...part(1, [1, 0x60, 5, ...new Array(5).fill(WASM.i32), 0]), // the type of the function
    ...part(2, [1, 1, 0x65, 1, 0x6d, 2, 0, 1]), // memory: imported as "e" "m", at least a page
    ...part(3, [1, 0]),
    ...part(7, [1, 1, 0x66, 0, 0]), // the function is exported as "f"
    ...part(10, [1, ...size(body.length), ...body]),
  ]);
}

/** A copy of a table of codes, and sums over its rows. */
export class SimdTable {
  constructor(codes, m, D) {
    const bytes = codes.BYTES_PER_ELEMENT;
    this.D = D;
    this.groups = Math.ceil(D / 8);
    this.rowBytes = 8 * this.groups * bytes;
    const scratch = 32 * this.groups + 8 * ROWS_IN_SINGLE;
    this.first = Math.ceil(scratch / 16) * 16;
    const total = this.first + m * this.rowBytes;
    if (total > MOST_BYTES) throw new RangeError("The table is too large to be copied.");
    const memory = new WebAssembly.Memory({ initial: Math.ceil(total / PAGE_BYTES) });
    const module = new WebAssembly.Module(moduleBytes(bytes));
    this.run = new WebAssembly.Instance(module, { e: { m: memory } }).exports.f;
    this.single = new Float32Array(memory.buffer, 0, 8 * this.groups);
    this.weights = new Float32Array(memory.buffer, this.single.byteLength, ROWS_IN_SINGLE);
    const afterWeights = this.weights.byteOffset + this.weights.byteLength;
    this.addresses = new Uint32Array(memory.buffer, afterWeights, ROWS_IN_SINGLE);
    const table = new codes.constructor(memory.buffer, this.first);
    for (let i = 0; i < m; i++) {
      table.set(codes.subarray(i * D, (i + 1) * D), (i * this.rowBytes) / bytes);
    }
  }

  /** Add Σ w_k row_k to `sums` (D,). */
  addRows(rows, weights, count, sums) {
    const { single, addresses, rowBytes, first, D } = this;
    for (let start = 0; start < count; start += ROWS_IN_SINGLE) {
      const some = Math.min(ROWS_IN_SINGLE, count - start);
      const whole = Math.ceil(some / 4) * 4;
      for (let k = 0; k < whole; k++) {
        // Rows come in fours; those that are none weigh nothing.
        this.weights[k] = k < some ? weights[start + k] : 0;
        addresses[k] = first + (k < some ? rows[start + k] : 0) * rowBytes;
      }
      single.fill(0);
      this.run(addresses.byteOffset, this.weights.byteOffset, whole, 0, this.groups);
      for (let j = 0; j < D; j++) sums[j] += single[j];
    }
  }
}

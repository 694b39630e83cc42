/**
 * Numbers of rows as a short text for the address: how many rows are left out, how many follow, and so on
 * in turn, each number in groups of five bits. A digit of base 64 holds one group, and says by its sixth
 * bit whether more follow.
 */

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Texts of selections that were written before: the address is written often. */
const writtenRows = new WeakMap();

/** @param {ArrayLike<number>} rows rising, and not changed later @returns {string} */
export function writeRows(rows) {
  if (!writtenRows.has(rows)) writtenRows.set(rows, rowsText(rows));
  return writtenRows.get(rows);
}

function rowsText(rows) {
  let text = "";
  const put = (number) => {
    let rest = number;
    for (; rest >= 32; rest = Math.floor(rest / 32)) text += DIGITS[32 + (rest % 32)];
    text += DIGITS[rest];
  };
  let next = 0;
  for (let k = 0; k < rows.length; ) {
    const first = rows[k];
    let length = 1;
    while (k + length < rows.length && rows[k + length] === first + length) length++;
    put(first - next);
    put(length - 1);
    next = first + length;
    k += length;
  }
  return text;
}

/** @param {string} text @param {number} n rows that there are @returns {Uint32Array} those of the text that exist */
export function readRows(text, n) {
  const numbers = [];
  let number = 0;
  let unit = 1;
  for (const letter of text) {
    const digit = DIGITS.indexOf(letter);
    if (digit < 0) return new Uint32Array(0);
    number += unit * (digit % 32);
    unit *= 32;
    if (digit < 32) {
      numbers.push(number);
      number = 0;
      unit = 1;
    }
  }
  const rows = [];
  for (let k = 0, next = 0; k + 1 < numbers.length; k += 2) {
    const first = next + numbers[k];
    next = first + numbers[k + 1] + 1;
    for (let row = first; row < Math.min(next, n); row++) rows.push(row);
  }
  return Uint32Array.from(rows);
}

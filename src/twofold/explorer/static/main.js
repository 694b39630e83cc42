/**
 * The entry for page and widget.
 */

import { Explorer } from "./explorer.js";

/**
 * Show a model.
 * @param {ParentNode} root an element or shadow root that has the style sheet
 * @param {object} header
 * @param {string|ArrayBuffer|Uint8Array} data
 * @param {{onProbe?: (x: Float64Array, y: Float64Array) => void, onSelect?: (rows: Uint32Array) => void,
 *   onPick?: (row: number) => void, wholePage?: boolean}} hooks `wholePage`: keys and address are ours
 */
export function startExplorer(root, header, data, hooks = {}) {
  const explorer = new Explorer(root, header, hooks);
  const ready = explorer.start(data).catch((error) => {
    explorer.layout.fail(error);
    throw error;
  });
  return {
    ready,
    setProbe: (x) => {
      explorer.setPinned(true);
      explorer.goTo(Float64Array.from(x));
    },
    setSelection: (rows) => explorer.select(Uint32Array.from(rows)),
    destroy: () => explorer.destroy(),
    get atlas() {
      return explorer.atlas;
    },
    get regression() {
      return explorer.regression;
    },
    get map() {
      return explorer.map;
    },
    get pasted() {
      return explorer.pasted;
    },
  };
}

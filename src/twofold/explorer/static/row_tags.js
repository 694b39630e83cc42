/**
 * What single rows are shown by on a map that few of them are in view of: their picture, or their name.
 */

import { RowImage } from "./row_image.js";

/** Pictures that are kept. */
const MOST_KEPT_PICTURES = 1000;

/** @returns {{pictureOf?: (row: number) => HTMLCanvasElement|null, nameOf?: (row: number) => string}} options of the map */
export function rowTags(atlas) {
  const { header, names } = atlas;
  if (!header.image_shape || !header.rows.has_data) return names ? { nameOf: (row) => names[row] } : {};
  const kept = new Map();
  const pictureOf = (row) => {
    if (!kept.has(row)) {
      if (kept.size >= MOST_KEPT_PICTURES) kept.clear();
      const values = atlas.rowData(row);
      const image = values && new RowImage(header, "");
      image?.draw(values);
      kept.set(row, image?.canvas ?? null);
    }
    return kept.get(row);
  };
  return { pictureOf };
}

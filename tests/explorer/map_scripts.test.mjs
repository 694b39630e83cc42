// Assertions on the scripts of the map that need no browser; run by test_map_scripts.py.

import assert from "node:assert/strict";
import test from "node:test";

const folder = process.env.TWOFOLD_STATIC;
const load = (name) => import(new URL(name, `file://${folder}/`).href);
const { CATEGORY_COLORS, SEQUENTIAL, colorOf, luminanceOf, oklabOf, pointColors, rgbOf } = await load("colors.js");
const { addSmoothLine, blurredGrid, contourLines, contourRings, enclosingLevels, logGrid } = await load("contours.js");
const { Camera } = await load("camera.js");
const { RowPicker, isInPolygon } = await load("row_picker.js");
const { shuffledOrder } = await load("point_layer.js");
const { roomBeside, takenCells } = await load("map_room.js");
const { RowSearch } = await load("row_search.js");
const { LatentIndex } = await load("latent_index.js");
const { categoryPalette } = await load("category_list.js");
const { MAP_THEMES } = await load("map_theme.js");
const { pastedNotice } = await load("companions.js");
const { featureText, generatedText, rangeText, spreadText, standingText } = await load("feature_text.js");
const { meanRow } = await load("selection_view.js");
const { parseRow } = await load("paste.js");
const { parseColumns } = await load("pasted_columns.js");
const { selectionCsv } = await load("downloads.js");
const { readRows, writeRows } = await load("row_codes.js");
const { readState, writeState } = await load("share.js");
const { classPlaces } = await load("class_places.js");
const { binCounts } = await load("histogram.js");

const apart = (a, b) => Math.hypot(...a.map((value, k) => value - b[k]));

function gridOf(width, height, value) {
  return Float64Array.from({ length: width * height }, (_, k) => value(k % width, Math.floor(k / width)));
}

function ringArea(points) {
  let twice = 0;
  for (let k = 0; k < points.length; k += 2) {
    const next = (k + 2) % points.length;
    twice += points[k] * points[next + 1] - points[next] * points[k + 1];
  }
  return twice / 2;
}

test("a slope has one straight contour at the right place", () => {
  const lines = contourLines(gridOf(5, 4, (x) => x), 5, 4, 2.25);
  assert.equal(lines.length, 1);
  assert.equal(lines[0].isClosed, false);
  assert.equal(lines[0].points.length, 8);
  for (let k = 0; k < 8; k += 2) assert.ok(Math.abs(lines[0].points[k] - 2.25) < 1e-12);
});

test("the contour of a cone is a circle", () => {
  const grid = gridOf(61, 61, (x, y) => -Math.hypot(x - 30, y - 30));
  const lines = contourLines(grid, 61, 61, -20);
  assert.equal(lines.length, 1);
  assert.equal(lines[0].isClosed, true);
  const { points } = lines[0];
  for (let k = 0; k < points.length; k += 2) {
    assert.ok(Math.abs(Math.hypot(points[k] - 30, points[k + 1] - 30) - 20) < 0.02);
  }
  assert.ok(Math.abs(Math.abs(ringArea(points)) - Math.PI * 400) < 3);
});

test("all contours of a surface have the higher side on their right", () => {
  const height = (x, y) => Math.sin(0.5 * x) + Math.cos(0.4 * y) + 0.1 * Math.sin(0.3 * (x + y));
  const grid = gridOf(40, 33, height);
  const lines = contourLines(grid, 40, 33, 0.2);
  assert.ok(lines.length > 5);
  let good = 0;
  let all = 0;
  for (const { points } of lines) {
    for (let k = 0; k + 3 < points.length; k += 2) {
      const [dx, dy] = [points[k + 2] - points[k], points[k + 3] - points[k + 1]];
      const norm = Math.hypot(dx, dy);
      if (norm < 0.2) continue;
      const [x, y] = [(points[k] + points[k + 2]) / 2, (points[k + 1] + points[k + 3]) / 2];
      const off = 0.15 / norm;
      good += height(x + off * dy, y - off * dx) > height(x - off * dy, y + off * dx);
      all++;
    }
  }
  assert.ok(all > 100 && good > 0.97 * all, `${good} of ${all}`);
});

test("every crossing of an edge is on exactly one line, also in saddles", () => {
  let seed = 5;
  const random = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const grid = gridOf(30, 30, random);
  let crossed = 0;
  for (let y = 0; y < 30; y++) {
    for (let x = 0; x < 30; x++) {
      const isHigh = grid[30 * y + x] >= 0.5;
      if (x < 29) crossed += isHigh !== grid[30 * y + x + 1] >= 0.5;
      if (y < 29) crossed += isHigh !== grid[30 * y + 30 + x] >= 0.5;
    }
  }
  const lines = contourLines(grid, 30, 30, 0.5);
  assert.equal(lines.reduce((sum, { points }) => sum + points.length / 2, 0), crossed);
  for (const { points, isClosed } of lines) {
    if (isClosed) continue;
    for (const at of [0, points.length - 2]) {
      const [x, y] = [points[at], points[at + 1]];
      assert.ok(x === 0 || x === 29 || y === 0 || y === 29, "an open line ends at the edge");
    }
  }
});

test("a saddle is settled by the middle of its cell", () => {
  assert.equal(contourLines([1, 0, 0, 1], 2, 2, 0.4).length, 2);
  const joined = contourLines([1, 0, 0, 1], 2, 2, 0.4).map(({ points }) => [...points]);
  // The mean 0.5 is above 0.4: the low corners, not the high ones, are cut off.
  assert.ok(joined.some((points) => points.every((value, k) => (k % 2 ? value <= 0.6 : value >= 0.4))));
});

test("flat grids have no contours", () => {
  assert.deepEqual(contourLines(new Float64Array(16).fill(1), 4, 4, 0.5), []);
  assert.deepEqual(contourLines(new Float64Array(16), 4, 4, 0.5), []);
});

test("rings close along the edge of the grid", () => {
  const rings = contourRings(gridOf(6, 6, (x) => x), 6, 6, 2.5);
  assert.equal(rings.length, 1);
  assert.ok(Math.abs(Math.abs(ringArea(rings[0])) - 2.5 * 5) < 1e-6);
  const hole = contourRings(gridOf(41, 41, (x, y) => Math.abs(Math.hypot(x - 20, y - 20) - 12)).map((v) => -v), 41, 41, -3);
  assert.equal(hole.length, 2);
});

test("levels enclose their shares of the mass", () => {
  const bell = gridOf(101, 101, (x, y) => Math.exp(-((x - 50) ** 2 + (y - 50) ** 2) / (2 * 12 ** 2)));
  const total = bell.reduce((sum, value) => sum + value, 0);
  const levels = enclosingLevels(bell, [0.25, 0.5, 0.75]);
  assert.equal(levels.length, 3);
  levels.forEach((level, k) => {
    const mass = bell.reduce((sum, value) => sum + (value >= level ? value : 0), 0);
    assert.ok(Math.abs(mass / total - [0.25, 0.5, 0.75][k]) < 0.02);
  });
});

test("a map without relief has no lines that follow its noise", () => {
  const rough = gridOf(50, 50, (x, y) => 1 + 0.02 * Math.sin(7 * x + 3 * y));
  assert.deepEqual(enclosingLevels(rough, [0.2, 0.4, 0.6, 0.8]), []);
  assert.deepEqual(enclosingLevels(new Float64Array(9), [0.5]), []);
  assert.ok(logGrid([0, 1], 1e-6).every(Number.isFinite));
});

test("blurring keeps the mass and widens a bell by the width asked for", () => {
  const width = (grid, size, d) => {
    let [mass, square] = [0, 0];
    grid.forEach((value, at) => {
      const off = (d === 0 ? at % size : Math.floor(at / size)) - 60;
      mass += value;
      square += value * off * off;
    });
    return [mass, Math.sqrt(square / mass)];
  };
  const bell = gridOf(121, 121, (x, y) => Math.exp(-((x - 60) ** 2 + (y - 60) ** 2) / (2 * 3 ** 2)));
  const smooth = blurredGrid(bell, 121, [4, 8]);
  [Math.hypot(3, 4), Math.hypot(3, 8)].forEach((expected, d) => {
    const [mass, found] = width(smooth, 121, d);
    assert.ok(Math.abs(mass / width(bell, 121, d)[0] - 1) < 1e-6);
    assert.ok(Math.abs(found / expected - 1) < 0.02, `${found} is not ${expected}`);
  });
  assert.deepEqual([...blurredGrid(bell, 121, [0, 0])], [...bell]);
});

test("the data keeps clear of what lies on the map", () => {
  const positions = Float32Array.from({ length: 2 * 51 * 51 }, (_, k) => (k % 2 ? Math.floor(k / 102) : (k / 2) % 51) / 50);
  const covers = [{ left: 14, top: 500, right: 246, bottom: 790 }, { left: 940, top: 14, right: 986, bottom: 230 }];
  const cells = takenCells(positions, [0, 0], [1, 1]);
  const { left, top, scale } = roomBeside(1000, 800, [1, 1], cells, covers);
  for (let k = 0; k < positions.length; k += 2) {
    const [x, y] = [left + scale * positions[k], top + scale * (1 - positions[k + 1])];
    assert.ok(x > 0 && x < 1000 && y > 0 && y < 800);
    for (const c of covers) assert.ok(!(x > c.left && x < c.right && y > c.top && y < c.bottom), `${x}, ${y}`);
  }
  assert.ok(scale > 500);
  // A corner without rows may lie below the card: no need to be smaller.
  const triangle = Float32Array.from(positions);
  for (let k = 0; k < triangle.length; k += 2) if (triangle[k] + triangle[k + 1] < 1) triangle[k] = triangle[k + 1] = 1;
  const roomy = roomBeside(1000, 800, [1, 1], takenCells(triangle, [0, 0], [1, 1]), covers);
  assert.ok(roomy.scale > scale);
  assert.equal(roomBeside(1000, 800, [1, 1], cells, []).scale, 720);
});

test("a view of all stays one when the host changes, another keeps its place", () => {
  const camera = new Camera([0, 0], [2, 1]);
  camera.setSize(400, 300, { left: 100, top: 20, scale: 100 });
  assert.ok(apart(camera.toScreen([0, 1]), [100, 20]) < 1e-9);
  camera.setSize(600, 300, { left: 50, top: 40, scale: 120 });
  assert.ok(apart(camera.toScreen([2, 0]), [290, 160]) < 1e-9);
  camera.panBy(10, 0);
  const { center } = camera;
  camera.setSize(400, 300, { left: 100, top: 20, scale: 100 });
  assert.deepEqual(camera.center, center);
});

test("rows are found by name and label in the order of their fit", () => {
  const names = ["Anna", "Hanna", "Joanna B", "anna", "Bert", "Annabel", "İanna"];
  const labels = {
    town: { kind: "category", values: ["Ulm", "Annaberg", "anna"], codes: [0, 0, 0, 0, 1, 0, 255] },
    age: { kind: "number", numbers: [1, 2, 3, 4, 5, 6, 7] },
  };
  const search = new RowSearch({ n: 7, names, labels, header: { rows: {} } });
  assert.deepEqual(search.find("ANNA"), [0, 3, 5, 1, 2, 4, 6]);
  assert.deepEqual(search.find("anna", 3), [0, 3, 5]);
  assert.deepEqual(search.find("ulm"), [0, 1, 2, 3, 5]);
  assert.deepEqual(search.find("nobody"), []);
  assert.deepEqual(search.find(""), []);
  const nameless = new RowSearch({ n: 30, names: null, labels: {}, header: { rows: {} } });
  assert.deepEqual(nameless.find("12"), [11]);
  assert.deepEqual(nameless.find("row 3"), [2, 29]);
});

test("rows that are not wanted are not among the nearest", () => {
  const points = Float32Array.from({ length: 400 }, (_, k) => (k * 0.7548776662) % 1);
  const index = new LatentIndex(points, 200, 2, [1, 1], 0);
  const mask = Uint8Array.from({ length: 200 }, (_, i) => Number(i % 50 === 0));
  const { rows, squares } = index.nearest([0.3, 0.4], 3, mask);
  const expected = [0, 50, 100, 150]
    .map((row) => [(points[2 * row] - 0.3) ** 2 + (points[2 * row + 1] - 0.4) ** 2, row])
    .sort((a, b) => a[0] - b[0])
    .slice(0, 3);
  assert.deepEqual([...rows], expected.map(([, row]) => row));
  expected.forEach(([square], k) => assert.ok(Math.abs(square - squares[k]) < 1e-6));
  assert.equal(index.nearest([0.3, 0.4], 6, mask).rows.length, 4);
  assert.equal(index.nearest([0.3, 0.4], 6, new Uint8Array(200)).rows.length, 0);
});

test("the mean of a selection is one of amounts, on whatever scale they are", () => {
  const atlas = {
    D: 1, missing: 255, rowCodes: Uint8Array.of(0, 1, 2), codesOfRow: (row) => row,
    header: { rows: { has_data: true }, quantised: { low: [0], step: [Math.log(10)] }, forms: [{ form: "log" }] },
  };
  assert.ok(Math.abs(Math.exp(meanRow(atlas, Uint32Array.of(0, 1, 2)).values[0]) - 37) < 1e-9);
});

test("numbers beside each other have the digits that tell them apart", () => {
  const year = { form: "number", whole: true };
  const header = { features: ["year", "sent", "x", "price"], columns: [], forms: [year, { form: "date" }, null, { form: "log" }] };
  Object.assign(header, { feature_low: [2015, 0, 0, 0], feature_high: [2022, 9, 9e5, 9], usual: { deviation: [2.3, 1, 1e5, 2] } });
  const sides = (j, here, other, spread) => [[here, other], [other, here]].map((pair) =>
    standingText(header, j, pair[0], { other: pair[1], spread }));
  assert.deepEqual(sides(0, 2017.9612, 2018.3512, 0.45), ["2017.96", "2018.35"]);
  assert.deepEqual(sides(0, 2018.3112, 2018.3512, 2.3), ["2018.31", "2018.35"]);
  assert.deepEqual(sides(3, Math.log(24.56), Math.log(7000), 9), ["24.6", "7000"]);
  assert.equal(standingText(header, 0, 2018.3512), "2018.35");
  assert.equal(featureText(header, 0, 2018.35), "2018");
  assert.equal(generatedText(header, 2, 201834.567, 21), "201835");
  assert.equal(spreadText(header, 1, 5, 0.027), "\u00b1 39 minutes");
  assert.equal(spreadText(header, 1, 5, 0.2), "\u00b1 4.8 hours");
  assert.equal(spreadText(header, 1, 5, 1), "\u00b1 1 day");
});

test("ends of ranges and values between them have the digits that tell them apart", () => {
  const form = { form: "log" };
  const header = {
    features: ["year", "price", "sent", "always"], forms: [null, form, null, null], columns: [],
    feature_low: [1990, Math.log(6.41), 1.7e9, 12.345], feature_high: [2020, Math.log(995), 1.7001e9, 12.345],
  };
  const texts = (j, ...values) => values.map((value) => featureText(header, j, value, 3));
  assert.deepEqual(texts(0, 1990, 2017.9312, 2020), ["1990", "2017.93", "2020"]);
  assert.deepEqual(texts(1, Math.log(6.41), Math.log(724.91), Math.log(995)), ["6.41", "724.9", "995"]);
  assert.deepEqual(texts(2, 1.7e9, 1.7000734e9, 1.7001e9), ["1.7e9", "1.7000734e9", "1.7001e9"]);
  assert.deepEqual(texts(3, 12.345), ["12.345"]);
  assert.deepEqual([0, NaN].map((value) => rangeText(value, -1, 1)), ["0", "missing"]);
});

test("the error of a row that the map holds is 0, not what arithmetic leaves of it", () => {
  const header = { features: ["a", "b"], feature_low: [0, 0], feature_high: [1, 5], feature_spread: null };
  assert.match(pastedNotice(header, [1, 2], 7.34e-10), /error 0, that is 0 a feature/);
  assert.match(pastedNotice(header, [1, 2], 0.02), /error 0.02, that is 0.0141 a feature/);
});

test("the mean of a selection is that of all of its rows that have data", () => {
  const n = 12000;
  const atlas = {
    D: 2, missing: 255, rowCodes: Uint8Array.from({ length: 2 * n }, (_, k) => (k === 1 ? 255 : k % 7)),
    header: { rows: { has_data: true }, quantised: { low: [10, -1], step: [0.5, 2] } },
    codesOfRow: (row) => (row === 5 ? -1 : row),
  };
  const { values, count } = meanRow(atlas, Uint32Array.from({ length: n }, (_, i) => i));
  assert.equal(count, n - 1);
  [10, -1].forEach((low, j) => {
    let [sum, present] = [0, 0];
    for (let i = 0; i < n; i++) {
      if (i === 5 || atlas.rowCodes[2 * i + j] === 255) continue;
      sum += low + [0.5, 2][j] * atlas.rowCodes[2 * i + j];
      present++;
    }
    assert.ok(Math.abs(values[j] - sum / present) < 1e-9);
  });
  assert.equal(meanRow(atlas, Uint32Array.of(5)), null);
  assert.equal(meanRow(atlas, new Uint32Array(0)), null);
});

test("smooth lines begin and end where the line does", () => {
  const calls = [];
  const note = (name) => (...numbers) => calls.push([name, ...numbers]);
  const path = { moveTo: note("M"), lineTo: note("L"), quadraticCurveTo: note("Q"), closePath: note("Z") };
  addSmoothLine(path, Float64Array.of(0, 0, 1, 0, 2, 1), false, (x, y) => [10 * x, 10 * y]);
  assert.deepEqual(calls[0], ["M", 0, 0]);
  assert.deepEqual(calls.at(-1), ["L", 20, 10]);
  calls.length = 0;
  addSmoothLine(path, Float64Array.of(0, 0, 1, 0, 1, 1), true, (x, y) => [x, y]);
  assert.equal(calls.filter(([name]) => name === "Q").length, 3);
  assert.deepEqual(calls.at(-2).slice(3), calls[0].slice(1));
  assert.deepEqual(calls.at(-1), ["Z"]);
});

test("the sequential scale rises evenly in lightness", () => {
  assert.equal(SEQUENTIAL.length, 256);
  const labs = SEQUENTIAL.map(oklabOf);
  const eights = labs.filter((_, k) => k % 15 === 0);
  const steps = eights.slice(1).map((lab, k) => apart(lab, eights[k]));
  assert.ok(Math.max(...steps) < 1.6 * Math.min(...steps), `${steps}`);
  for (let k = 1; k < eights.length; k++) assert.ok(eights[k][0] > eights[k - 1][0] + 0.01);
});

/** How red-blind and green-blind eyes see a colour (Machado, Oliveira and Fernandes 2009). */
const EYES = [
  [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
];

function seenBy(eye, rgb) {
  const linear = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  const seen = eye.map((row) => Math.min(1, Math.max(0, row.reduce((sum, weight, k) => sum + weight * linear[k], 0))));
  return oklabOf(seen.map((v) => 255 * (v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055)));
}

test("the first twelve categories differ for all eyes", () => {
  for (const eye of EYES) {
    for (let i = 0; i < 12; i++) {
      for (let j = 0; j < i; j++) {
        const distance = apart(seenBy(eye, CATEGORY_COLORS[i]), seenBy(eye, CATEGORY_COLORS[j]));
        assert.ok(distance > 0.065, `colours ${j} and ${i} are ${distance.toFixed(3)} apart`);
      }
    }
  }
});

test("classes stand out from both grounds and from each other", () => {
  const contrast = (rgb, ground) => {
    const [low, high] = [luminanceOf(rgb), luminanceOf(ground)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const levels = ["poor", "fair", "good"];
  for (const rgb of [...CATEGORY_COLORS, ...categoryPalette(levels, levels)]) {
    assert.ok(contrast(rgb, MAP_THEMES.dark.pointGround) >= 3, `${rgb}`);
    assert.ok(contrast(rgb, MAP_THEMES.light.pointGround) >= 1.4, `${rgb}`);
  }
  const labs = CATEGORY_COLORS.map(oklabOf);
  labs.forEach((lab, k) => labs.slice(0, k).forEach((other) => assert.ok(apart(lab, other) > 0.05)));
  assert.ok(CATEGORY_COLORS.length >= 90);
});

test("colours of points", () => {
  const ground = { plain: [1, 2, 3], none: [9, 9, 9] };
  const classes = pointColors({ kind: "category", codes: [1, 0, 255], colors: ["#ff0000", [0, 128, 0]] }, 3, ground);
  assert.deepEqual([...classes], [0, 128, 0, 255, 0, 0, 9, 9, 9]);
  const scale = [[0, 0, 0], [100, 100, 100], [200, 200, 200]];
  const numbers = pointColors({ kind: "number", values: [5, 10, NaN, 7.5, 99], low: 5, high: 10, scale }, 5, ground);
  assert.deepEqual([...numbers].filter((_, k) => k % 3 === 0), [0, 200, 9, 100, 200]);
  const flat = pointColors({ kind: "number", values: [5], low: 5, high: 5, scale }, 1, ground);
  assert.deepEqual([...flat], [0, 0, 0]);
  assert.deepEqual([...pointColors({ kind: "plain" }, 1, ground)], [1, 2, 3]);
  assert.deepEqual(colorOf(scale, -1), scale[0]);
  assert.deepEqual(colorOf(scale, 2), scale[2]);
  assert.deepEqual(rgbOf("#0af"), [0, 170, 255]);
});

test("the camera goes there and back, and zooms about a fixed place", () => {
  const camera = new Camera([-1, 0], [3, 2]);
  camera.setSize(800, 500);
  assert.deepEqual(camera.toScreen([1, 1]), [400, 250]);
  camera.zoomBy(3.7, [100, 80]);
  const fixed = camera.toLatent([100, 80]);
  camera.zoomBy(1 / 1.9, [100, 80]);
  assert.ok(apart(camera.toLatent([100, 80]), fixed) < 1e-9);
  assert.ok(apart(camera.toScreen(camera.toLatent([12, 345])), [12, 345]) < 1e-9);
  assert.ok(camera.toLatent([0, 0])[1] > camera.toLatent([0, 10])[1], "up is up");
  for (let k = 0; k < 100; k++) camera.panBy(500, 500);
  const [x, y] = camera.toScreen([-1, 2]);
  assert.ok(x <= 800 && y <= 500, "data cannot be lost from view");
});

test("a camera on data without extent", () => {
  const camera = new Camera([2, 2], [2, 2]);
  camera.setSize(100, 100);
  assert.ok(Number.isFinite(camera.scale) && camera.scale > 0);
});

test("rows are picked by place and by lasso, hidden ones are not", () => {
  const positions = Float32Array.of(0, 0, 1, 0, 0, 1, 1, 1, 0.5, 0.5);
  const picker = new RowPicker(positions);
  const all = () => true;
  assert.equal(picker.nearest([0.45, 0.52], 0.2, all), 4);
  assert.equal(picker.nearest([0.45, 0.52], 0.2, (row) => row !== 4), -1);
  assert.equal(picker.nearest([3, 3], 0.2, all), -1);
  const triangle = [[-0.1, -0.1], [1.2, -0.1], [-0.1, 1.2]];
  assert.deepEqual([...picker.inside(triangle, all)], [0, 1, 2, 4]);
  assert.deepEqual([...picker.inside(triangle, (row) => row !== 1)], [0, 2, 4]);
  assert.equal(picker.inside([[0, 0], [1, 1]], all).length, 0);
  assert.equal(isInPolygon([[0, 0], [4, 0], [4, 4], [2, 1], [0, 4]], 2, 2), false);
});

test("the order of drawing is a permutation, always the same, and well mixed", () => {
  const order = shuffledOrder(1000);
  assert.deepEqual([...order].sort((a, b) => a - b), Array.from({ length: 1000 }, (_, k) => k));
  assert.deepEqual([...order], [...shuffledOrder(1000)]);
  const early = order.slice(0, 200).filter((row) => row < 500).length;
  assert.ok(early > 70 && early < 130);
});

test("a pasted row may be a line of a file", () => {
  const features = ["a", "b", "c"];
  const read = (text) => {
    const { values, skipped } = parseRow(text, features);
    return [Array.from(values), skipped.join()];
  };
  assert.deepEqual(read("1, 2.5 ,-3"), [[1, 2.5, -3], ""]);
  assert.deepEqual(read("1 2\n3"), [[1, 2, 3], ""]);
  assert.deepEqual(read("1,5;-,25;3e2"), [[1.5, -0.25, 300], ""]);
  assert.deepEqual(read("Anna;1,5;;3;Ulm"), [[1.5, NaN, 3], '"Anna","Ulm"']);
  assert.deepEqual(read('"Doe, Anna",1,2,3'), [[1, 2, 3], '"Doe, Anna"']);
  assert.deepEqual(read("name,c,a,B\r\nAnna,3,1,2"), [[1, 2, 3], '"name"']);
  assert.deepEqual(read("a\tb\tc\n1\t\t3"), [[1, NaN, 3], ""]);
  assert.deepEqual(read("x,y,z\n1,2,3"), [[1, 2, 3], "the line of names"]);
  assert.deepEqual(read("a=1\nC=3"), [[1, NaN, 3], ""]);
  assert.deepEqual(read('"5"" pipe",1,2,3'), [[1, 2, 3], '"5" pipe"']);
});

const MIXED = {
  features: ["log(price)", "income = <=50K", "income = >50K", "size > S", "size > M", "when", "on = False", "on = True"],
  table: ["price", "income", "country", "size", "when", "on"],
  columns: [
    { name: "price", at: 0, size: 1, kind: "number" },
    { name: "income", at: 1, size: 2, kind: "category", levels: [" <=50K", " >50K", ">90K"], groups: [0, 1, 1] },
    { name: "size", at: 3, size: 2, kind: "ordered", levels: ["S", "M", "None"] },
    { name: "when", at: 5, size: 1, kind: "date", periods: [], zone: "Europe/Berlin" },
    { name: "on", at: 6, size: 2, kind: "category", levels: ["False", "True"], groups: [0, 1], numbers: true },
  ],
  forms: [{ form: "log" }, ...Array(7).fill({ form: "hidden" })],
};

test("a pasted row of a mixed table becomes features", () => {
  const read = (text) => {
    const { values, skipped, unknown } = parseColumns(text, MIXED);
    return [Array.from(values), [...skipped, ...unknown].join()];
  };
  const whole = [0, 0, 1, 1, 0, 18262, 0, 1];
  assert.deepEqual(read("1,>50K,DE,M,2020-01-01,True"), [whole, ""]);
  assert.deepEqual(read("1, >50K, DE, M, 2020-01-01, true,"), [whole, ""]);
  assert.deepEqual(read("1,0;>90K;M;20200101;1"), [whole, ""]);
  assert.deepEqual(read("id\ton\tSize\tprice\tincome\twhen\n7\t1.0\tM\t1\t>50K\t2020/1/1 00:00"), [whole, '"id"']);
  assert.deepEqual(read("income=<=50K\nsize=None"), [[NaN, 1, 0, 1, 1, NaN, NaN, NaN], ""]);
  assert.deepEqual(read("price=1;on=NA"), [[0, ...Array(7).fill(NaN)], ""]);
  assert.deepEqual(read("-1,,,S,,"), [
    [NaN, NaN, NaN, 0, 0, NaN, NaN, NaN],
    'price "-1", which is not above 0',
  ]);
  // On the clock of the column: summer is two hours ahead.
  for (const text of ["2020-07-01 02:00", "2020-07-01T00:00Z", "2020-06-30 20:00:00-04:00"])
    assert.equal(read(`when=${text}`)[0][5], 18444 + 2 / 24);
});

test("a pasted row of a mixed table that could be misread is refused", () => {
  const refused = (text, words) => assert.throws(() => parseColumns(text, MIXED), words);
  refused("1,>50K,M,2020-01-01", /6 cells were expected, one for each column, 4 came/);
  refused("1,>50K,M,2020-01-01,1\n2,>50K,M,2020-01-01,1", /2 lines came/);
  for (const text of ["3.4.2020", "2020-02-30", "2020-01-01 24:30", "tomorrow"])
    refused(`when=${text}`, /^Error: when: ".*" is not a date such as 2020-01-31/);
  refused("price=abc", /price: "abc" is not a number/);
  refused("price=1e999", /price: "1e999" is not finite/);
  refused("prize=1", /no column called "prize". The first ones are price, income, country/);
  refused("price=1\nPRICE=2", /"price" comes more than once/);
  refused("size=XL", /All values are missing.*size "XL", which is none of its levels/);
  refused(" ", /Nothing was pasted/);
});

test("a pasted row that could be misread is refused", () => {
  const refused = (text, words) => assert.throws(() => parseRow(text, ["a", "b", "c"]), words);
  for (const text of ["1,Infinity,3", "1,-inf,3", "1,1e400,3", "a=-1e400"]) refused(text, /is not finite/);
  refused("a=1\nb=2\nA=3", /"A" comes more than once/);
  refused("a,b,c,a\n1,2,3,4", /"a" comes more than once/);
  refused("0,1,2,3", /3 values were expected, 4 came/);
  refused("1,oops,2,3", /3 values were expected, 4 came/);
  refused("1,oops,3", /"oops" is not a number/);
  refused("1.234,5;2;3", /"1.234,5" is not a number/);
});

test("the file of a selection counts rows from 1 and has their values", () => {
  const atlas = {
    n: 2,
    q: 1,
    rowX: Float32Array.of(0.5, 1.5),
    names: ["p", "q"],
    labels: {},
    rowData: (i) => (i === 0 ? null : Float64Array.of(7, NaN)),
    ownValue: () => undefined,
    header: { features: ["a", "b,c"], rows: { has_data: true }, quantised: { step: [1, 1] } },
  };
  const lines = ["row,name,latent 1,a,\"b,c\"", "1,p,0.5000000,,", "2,q,1.500000,7,", ""];
  assert.equal(selectionCsv(atlas, Uint32Array.of(0, 1)), lines.join("\n"));
});

test("a file has the values that are kept beside the codes, and no rounding of zero", () => {
  const date = { form: "date", unit: 1 };
  const columns = ["price", "when", "zero"].map((name, at) => ({ name, at, size: 1 }));
  const own = [787.98, 18262, undefined];
  const atlas = {
    q: 1,
    rowX: Float32Array.of(0.5),
    names: null,
    labels: {
      weight: { kind: "number", numbers: Float32Array.of(9.38) },
      sum: { kind: "number", numbers: Float64Array.of(-12345678.25) },
    },
    rowData: () => Float64Array.of(6.67, 18262.01, 7e-15),
    ownValue: (i, j) => own[j],
    header: {
      columns,
      forms: [{ form: "log" }, date, { form: "number" }],
      features: ["log(price)", "when", "zero"],
      rows: { has_data: true },
      quantised: { step: [1e-4, 0.1, 0.01] },
    },
  };
  const lines = [
    "row,name,weight,sum,latent 1,price,when,zero",
    "1,row 1,9.38,-12345678.25,0.5000000,787.98,2020-01-01 00:00:00,0",
    "",
  ];
  assert.equal(selectionCsv(atlas, Uint32Array.of(0)), lines.join("\n"));
});

test("rows come back from the text of a link", () => {
  const many = Array.from({ length: 5000 }, (_, k) => 3 * k + (k % 2));
  for (const rows of [[], [0], [7], [0, 1, 2], [3, 4, 5, 40, 41, 999999], many]) {
    assert.deepEqual(Array.from(readRows(writeRows(rows), 1e6)), rows);
  }
  assert.match(writeRows([3, 4, 5, 40]), /^[\w-]+$/);
  assert.deepEqual(Array.from(readRows(writeRows([2, 9]), 5)), [2]);
  assert.equal(readRows("~nonsense~", 10).length, 0);
});

test("what is shown comes back from its address", () => {
  const state = {
    probe: [0.5, -2],
    color: "label:a & b",
    view: "special",
    map: [1, 2, 3.5],
    filters: { "label:kind": ["a,b", "c=d", "50 %"], "feature:3": [-1.5, 0.1 + 0.2] },
    rows: Uint32Array.of(1, 5, 6),
    kept: [{ name: "left ~ right", rows: Uint32Array.of(2, 3) }],
  };
  const found = readState(`#${writeState(state)}`, 2, 10);
  assert.deepEqual(Array.from(found.probe), state.probe);
  assert.deepEqual(Array.from(found.map), state.map);
  for (const name of ["color", "view", "filters"]) assert.deepEqual(found[name], state[name]);
  assert.deepEqual(Array.from(found.rows), [1, 5, 6]);
  assert.deepEqual(found.kept.map(({ name, rows }) => [name, Array.from(rows)]), [["left ~ right", [2, 3]]]);
  assert.deepEqual(readState("#probe=1,x", 2, 10).probe, undefined);
});

test("names of classes are where most of their rows are, unless they are mixed with others", () => {
  const positions = new Float32Array(2 * 300);
  const codes = new Uint8Array(300);
  for (let i = 0; i < 300; i++) {
    codes[i] = i % 3;
    // The third class is spread over the places of the first two.
    const side = codes[i] === 2 ? Math.floor(i / 3) % 2 : codes[i];
    positions[2 * i] = 10 * side + 0.1 * Math.sin(i);
    positions[2 * i + 1] = 0.1 * Math.cos(i);
  }
  const found = classPlaces(positions, { kind: "category", codes, values: ["a", "b", "c"] }, null);
  assert.deepEqual(found.map(({ text }) => text), ["a", "b"]);
  assert.ok(Math.abs(found[0].x) < 1 && Math.abs(found[1].x - 10) < 1);
  assert.equal(classPlaces(positions, { kind: "plain" }, null).length, 0);
});

test("histograms count what passes", () => {
  const values = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, NaN];
  assert.deepEqual(Array.from(binCounts(values, [0, 10], false, null, 5)), [2, 2, 2, 2, 2]);
  const mask = Uint8Array.from(values, (_, i) => i % 2);
  assert.deepEqual(Array.from(binCounts(values, [0, 10], false, mask, 5)), [1, 1, 1, 1, 1]);
  assert.deepEqual(Array.from(binCounts([1, 10, 100, 1000], [1, 1000], true, null, 3)), [1, 1, 2]);
});

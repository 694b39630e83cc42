// Answers, as JSON, what the page's scripts make of payloads: `node numbers_driver.mjs SCRIPTS JOBS`,
// where SCRIPTS is a folder and JOBS a JSON file: a list of {header, data (base64), questions}.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, jobs] = process.argv.slice(2);
const script = (name) => import(pathToFileURL(join(folder, name)).href);
const { decodePayload } = await script("decode.js");
const { Regression } = await script("regression.js");
const { project } = await script("projection.js");

// JSON has no NaN: null stands for it, both ways.
const row = (values) => values.map((value) => (value === null ? NaN : value));
const list = (values) => (values === null ? null : Array.from(values));

const answersFrom = (atlas, regression) => ({
  at: (x) => list(regression.at(row(x))),
  featureAt: (x) => list(regression.mean.map((_, j) => regression.featureAt(x, j))),
  density: (x) => regression.density(row(x)),
  inDomain: (x) => regression.inDomain(x),
  densityGrid: ([low, high, size, rest]) => list(regression.densityGrid(low, high, size, rest)),
  densityGridSlowly: async ([low, high, size, rest]) =>
    list(await regression.densityGridSlowly(low, high, size, rest)),
  nearestRefs: ([y, k]) => regression.nearestRefs(row(y), k),
  nearestRows: ([x, k]) => regression.nearestRows(x, k),
  project: (y) => {
    const { x, error } = project(regression, row(y));
    return { x: list(x), error };
  },
  rowData: (i) => list(atlas.rowData(i)),
  feature: (j) => list(atlas.feature(j)),
  atlas: () => ({
    rowX: list(atlas.rowX),
    density: list(atlas.density),
    magnification: list(atlas.magnification),
    low: list(atlas.low),
    high: list(atlas.high),
    labels: Object.fromEntries(
      Object.entries(atlas.labels).map(([name, { kind, values, codes, numbers }]) => [
        name,
        { kind, values, codes: list(codes ?? null), numbers: list(numbers ?? null) },
      ]),
    ),
  }),
});

async function answer({ header, data, questions }) {
  const atlas = await decodePayload(header, data);
  const known = answersFrom(atlas, new Regression(atlas));
  const answers = {};
  for (const [name, asked] of Object.entries(questions)) {
    answers[name] = [];
    for (const question of asked) answers[name].push(await known[name](question));
  }
  return answers;
}

const answered = [];
for (const job of JSON.parse(readFileSync(jobs, "utf8"))) answered.push(await answer(job));
process.stdout.write(JSON.stringify(answered));

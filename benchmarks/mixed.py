"""Mixed tables: hidden categories filled, and the way back from the map, beside what people use.

    python -m benchmarks.mixed [table ...]       nine tables
    python -m benchmarks.mixed --draws 1 8       means over these draws of gaps
    python -m benchmarks.mixed --large           200,000 rows of 30 columns, and the same as numbers

A fifth of all cells is hidden, in eight draws. Right categories are counted among the hidden ones;
numbers have the squared error as a share of the variance. KNN sees indicators and standardised
numbers, the iterated regressions see codes of levels, the trees (as missForest, Stekhoven &
Bühlmann 2012) are forests of classes or numbers, column by column, three rounds. FAMD is that of
the package `prince`, with the best linear way back from its two coordinates, against a map of two
dimensions: both fitted to two thirds of the rows, which come back from their places; the rest is
what is looked at. An interpreter that has `prince` is named by TWOFOLD_PRINCE. Times are those of
the processor.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 - makes the next line work
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.linear_model import LinearRegression

from benchmarks.mixed_tables import TABLES, categories_of, table, with_gaps
from twofold import UKR, ManifoldImputer, Mixed, Scaled, explorer

ROWS_TO_COMPLETE = 5_000
FAMD = """
import sys, pandas as pd, prince
train, rest = (pd.read_pickle(path) for path in sys.argv[1:3])
kind = prince.FAMD if (train.dtypes != object).any() else prince.MCA  # of words alone
famd = kind(n_components=2, random_state=0).fit(train)
for rows, path in ((train, sys.argv[3]), (rest, sys.argv[4])):
    famd.row_coordinates(rows).to_pickle(path)
"""


def codes_of(rows: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, list]]:
    """Return a table as numbers, levels by their places in a list."""
    levels = {name: sorted(rows[name].dropna().unique(), key=str) for name in categories_of(rows)}
    found = {}
    for name in rows:
        if name in levels:
            found[name] = rows[name].map({level: k for k, level in enumerate(levels[name])})
        elif rows[name].dtype.kind == "M":
            found[name] = (rows[name] - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
        else:
            found[name] = rows[name]
    return pd.DataFrame(found).astype(float), levels


def knn(gappy: pd.DataFrame) -> pd.DataFrame:
    """Fill by the mean of five rows nearby; the likeliest level has the largest mean."""
    codes, levels = codes_of(gappy)
    wide = pd.get_dummies(codes, columns=list(levels), dtype=float)
    for name in levels:
        own = [column for column in wide if column.startswith(f"{name}_")]
        wide.loc[codes[name].isna(), own] = np.nan
    unit = wide.std().replace(0, 1)
    filled = KNNImputer(n_neighbors=5, weights="distance").fit_transform(
        (wide - wide.mean()) / unit
    )
    wide = pd.DataFrame(filled, columns=wide.columns) * unit + wide.mean()
    for name in levels:
        own = [column for column in wide if column.startswith(f"{name}_")]
        best = wide[own].to_numpy().argmax(axis=1)
        codes[name] = [float(own[k].removeprefix(f"{name}_")) for k in best]
    for name in codes:
        if name not in levels:
            codes[name] = wide[name]
    return codes


def iterated(gappy: pd.DataFrame) -> pd.DataFrame:
    """Fill by regressions on the others, column by column; codes are rounded."""
    codes, levels = codes_of(gappy)
    filled = IterativeImputer(max_iter=10, random_state=0).fit_transform(codes)
    found = pd.DataFrame(filled, columns=codes.columns)
    for name, known in levels.items():
        found[name] = found[name].round().clip(0, len(known) - 1)
    return found


def forests(gappy: pd.DataFrame, rounds: int = 3) -> pd.DataFrame:
    """Fill by random forests, column by column."""
    codes, levels = codes_of(gappy)
    gaps = codes.isna()
    found = codes.copy()
    for name in codes:
        usual = codes[name].mode()[0] if name in levels else codes[name].mean()
        found[name] = codes[name].fillna(usual)
    for _ in range(rounds):
        for name in gaps.columns[gaps.any()]:
            make = RandomForestClassifier if name in levels else RandomForestRegressor
            there, X = ~gaps[name], found.drop(columns=name)
            trees = make(100, random_state=0).fit(X[there], found[name][there])
            found.loc[~there, name] = trees.predict(X[~there])
    return found


def mixed(gappy: pd.DataFrame) -> pd.DataFrame:
    """Fill along the map."""
    model = Mixed(UKR(random_state=0, verbose=False)).fit(gappy)
    return model.complete(gappy)


def imputer(gappy: pd.DataFrame) -> pd.DataFrame:
    """Fill the features along the manifold and by trees, without a map."""
    model = Mixed(UKR(init="pca", max_iter=0, verbose=False)).fit(gappy)
    found = ManifoldImputer(random_state=0, n_jobs=1).fit_transform(model.features(gappy))
    return model.from_features(found, like=gappy)


METHODS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "KNN": knn,
    "iterated": iterated,
    "forests": forests,
    "Mixed": mixed,
    "ManifoldImputer": imputer,
}
OURS = ("Mixed", "ManifoldImputer")


def filled_well(name: str, method: str, draw: int) -> dict[str, float]:
    """Return how well a method fills a table, and its processor seconds."""
    rows = table(name)
    gappy, hidden = with_gaps(rows, draw)
    truth, levels = codes_of(rows)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = METHODS[method](gappy)
    seconds = time.process_time() - began
    if method in OURS:
        same = {k: {level: i for i, level in enumerate(v)} for k, v in levels.items()}
        found = pd.DataFrame(
            {k: found[k].map(same[k]) if k in levels else codes_of(found[[k]])[0][k] for k in found}
        )
    right = [(found[k] == truth[k])[hidden[k]] for k in levels]
    numbers = [k for k in rows if k not in levels]
    left = [((found[k] - truth[k])[hidden[k]] ** 2).mean() / truth[k].var() for k in numbers]
    return {
        "right": float(np.concatenate(right).mean()),
        "left open": float(np.mean(left)) if left else float("nan"),
        "seconds": seconds,
    }


def round_trip(name: str) -> dict[str, float]:
    """Return what FAMD and a map leave open of new rows, and how many of their levels are right."""
    rows = table(name).sample(frac=1, random_state=1).reset_index(drop=True)
    cut = 2 * len(rows) // 3
    train, rest = rows[:cut], rows[cut:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Mixed(UKR(random_state=0, verbose=False)).fit(train)
        numbers = model.as_numbers()
        Z = numbers._scale(model.features(rest))
        ours = numbers._scale(numbers.inverse_transform(model.transform(rest)))
    found = {"Mixed": ours}
    if python := os.environ.get("TWOFOLD_PRINCE"):
        X, X_rest = famd_places(python, train, rest)
        way_back = LinearRegression().fit(X, numbers._scale(model.features(train)))
        found["FAMD"] = way_back.predict(X_rest)
    known = ~np.isnan(Z)
    total = (Z[known] ** 2).sum()
    return {key: float(((F - Z)[known] ** 2).sum() / total) for key, F in found.items()}


def famd_places(python: str, train: pd.DataFrame, rest: pd.DataFrame) -> list[np.ndarray]:
    """Return coordinates of rows by FAMD, from an interpreter that has it."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / f"{k}.pkl") for k in range(4)]
        for rows, path in zip((train, rest), paths, strict=False):
            plain, levels = codes_of(rows)
            for name in levels:
                plain[name] = rows[name].astype(str).astype(object)
            plain.to_pickle(path)
        subprocess.run([python, "-c", FAMD, *paths], check=True)
        return [pd.read_pickle(path).to_numpy() for path in paths[2:]]


def large_tables(n: int = 200_000) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a table of 30 columns of all kinds over a sheet, and the same as numbers.

    Levels are codes and dates are days there. One cell in fifty is missing in both.
    """
    random = np.random.default_rng(0)
    t = random.random((n, 2))
    waves = np.sin(t @ random.normal(size=(2, 30)) * 3 + random.uniform(0, 6, 30))
    values = waves + 0.2 * random.normal(size=(n, 30))
    rows = pd.DataFrame(values, columns=[f"number {k}" for k in range(30)])
    numbers = rows.copy()
    steps = ["low", "middle", "high", "highest"]
    for k, name in enumerate(rows.columns):
        y = values[:, k]
        if k < 4:
            rows[name] = numbers[name] = np.exp(2 * y)  # amounts
        elif k < 7:
            rows[name] = numbers[name] = random.poisson(np.exp(1 + y))
        elif k < 12:
            numbers[name] = np.digitize(y, [-0.8, -0.4, 0, 0.6])
            rows[name] = np.array(["oak", "ash", "elm", "fir", "yew"])[numbers[name]]
        elif k < 15:
            numbers[name] = np.digitize(y, [-0.6, 0, 0.6])
            rows[name] = pd.Categorical(np.array(steps)[numbers[name]], steps, ordered=True)
        elif k < 18:
            rows[name], numbers[name] = y > 0, (y > 0).astype(float)
        elif k < 20:
            numbers[name] = np.round(600 * y)
            days = pd.to_timedelta(numbers[name], unit="D")
            rows[name] = pd.Timestamp("2020-01-01") + days
    hidden = random.random(rows.shape) < 0.02
    for k, name in enumerate(rows.columns):
        if rows[name].dtype == bool:
            rows[name] = rows[name].astype("boolean")
        rows[name] = rows[name].mask(hidden[:, k])
        numbers[name] = numbers[name].astype(float).mask(hidden[:, k])
    return rows, numbers


def large() -> dict[str, dict[str, float]]:
    """Return processor seconds of each step on a mixed table, and on the same table as numbers."""
    rows, numbers = large_tables()
    inside = UKR(random_state=0, verbose=False)
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        for name, made, model in (
            ("warm", rows[:3000], Mixed(inside)),
            ("numbers", numbers, Scaled(inside)),
            ("mixed", rows, Mixed(inside)),
        ):
            steps: dict[str, Callable[[], object]] = {
                "fit": lambda m=model, t=made: m.fit(t),
                "explore": lambda m=model: explorer.write(m, page),
                "complete": lambda m=model, t=made: m.complete(t[:ROWS_TO_COMPLETE]),
            }
            found[name] = {step: _seconds(do) for step, do in steps.items()}
    return found


def _seconds(do: Callable[[], object]) -> float:
    began = time.process_time()
    do()
    return time.process_time() - began


def run_large() -> None:
    """Print the seconds of each step, and their ratios."""
    found = large()
    shown = Table("", "numbers", "mixed", "ratio")
    steps = [*found["numbers"], "all"]
    for step in steps:
        a, b = (
            sum(found[name].values()) if step == "all" else found[name][step]
            for name in ("numbers", "mixed")
        )
        shown.add_row(step, f"{a:.1f}", f"{b:.1f}", f"{b / a:.2f}")
    Console().print(shown)


def run(names: list[str], draws: range) -> None:
    """Print both tables of results as they come."""
    console = Console()
    shown = Table("table", *METHODS, "FAMD leaves open", "Mixed leaves open")
    for name in names:
        cells = []
        for method in METHODS:
            found = pd.DataFrame([filled_well(name, method, draw) for draw in draws]).mean()
            cells.append(
                f"{found['right']:.3f} / {found['left open']:.3f} ({found['seconds']:.1f} s)"
            )
            console.print(name, method, cells[-1])
        trip = round_trip(name)
        console.print(name, trip)
        shown.add_row(name, *cells, *(f"{trip.get(key, np.nan):.3f}" for key in ("FAMD", "Mixed")))
    console.print("right categories / share of variance of numbers left open (processor seconds)")
    console.print(shown)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", help=f"of {', '.join(TABLES)}")
    parser.add_argument("--draws", nargs=2, type=int, default=(11, 18), metavar=("FIRST", "LAST"))
    parser.add_argument("--large", action="store_true")
    asked = parser.parse_args()
    if asked.large:
        run_large()
    else:
        first, last = asked.draws
        run(asked.tables or list(TABLES), range(first, last + 1))


if __name__ == "__main__":
    main()

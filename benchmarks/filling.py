"""Missing entries filled: `ManifoldImputer` beside what people use.

    python -m benchmarks.filling [table ...] [--rows 200] [--columns 16] [--jobs 1]

Squared error of hidden entries as a share of their variance, processor seconds, and for
`ManifoldImputer` how many hidden entries its 90 % intervals hold, and how wide they are beside
those of a quantile regression forest that hold as many (`benchmarks/forest_intervals.py`; it sees
the table as extra trees filled it). Of one case, 100 to 3,000 hidden entries are not enough to tell
88 from 92 %: what holds is said of a table, all patterns together. KNNImputer and soft-impute
(Mazumder, Hastie & Tibshirani 2010) choose their number of neighbours and their penalty by hiding
another tenth of the entries. With ``--jobs`` cases go side by side, each on one thread. HyperImpute
is not among the peers: it asks for TensorFlow and older packages. `docs/filling.md` says how it was
measured. Results are appended to `benchmarks/results/filling.jsonl` (not kept in git) as they come.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 - makes the next line work
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import BayesianRidge

from benchmarks.filling_tables import HELD_BACK, PATTERNS, TABLES, gaps_of, table
from benchmarks.forest_intervals import width_that_covers
from twofold import ManifoldImputer
from twofold.noise import fit_factors

RESULTS = Path(__file__).parent / "results" / "filling.jsonl"
OURS = "ManifoldImputer"


def gaussian(partial: np.ndarray) -> np.ndarray:
    """Fill by one Gaussian, fitted by EM."""
    found = fit_factors(partial).condition(partial)
    return np.where(np.isnan(partial), found.means, partial)


def soft_impute(partial: np.ndarray, share: float) -> np.ndarray:
    """Fill by a matrix of small nuclear norm; the penalty is a share of the largest value."""
    gaps = np.isnan(partial)
    filled = np.where(gaps, np.nanmean(partial, axis=0), partial)
    penalty = share * np.linalg.svd(filled, compute_uv=False)[0]
    for _ in range(100):
        U, s, V = np.linalg.svd(filled, full_matrices=False)
        filled = np.where(gaps, (U * np.maximum(s - penalty, 0)) @ V, partial)
    return filled


def tuned(fill: Callable, choices: tuple, partial: np.ndarray) -> np.ndarray:
    """Fill with what does best on another tenth of the entries."""
    hidden = ~np.isnan(partial) & (np.random.default_rng(1).random(partial.shape) < 0.1)
    hidden[np.isnan(np.where(hidden, np.nan, partial)).all(axis=1)] = False
    trial = np.where(hidden, np.nan, partial)
    best = min(choices, key=lambda c: ((fill(trial, c) - partial)[hidden] ** 2).sum())
    return fill(partial, best)


def iterated(model: object) -> Callable[[np.ndarray], np.ndarray]:
    """Return column by column regressions, round after round."""
    rounds = 5 if isinstance(model, ExtraTreesRegressor) else 10
    return lambda partial: IterativeImputer(model, max_iter=rounds, random_state=0).fit_transform(
        partial
    )


METHODS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "mean": lambda partial: SimpleImputer().fit_transform(partial),
    "KNNImputer": lambda partial: tuned(
        lambda P, k: KNNImputer(n_neighbors=k, weights="distance").fit_transform(P),
        (3, 5, 10, 20),
        partial,
    ),
    "soft-impute": lambda partial: tuned(soft_impute, (0.003, 0.01, 0.03, 0.1, 0.3), partial),
    "BayesianRidge": iterated(BayesianRidge()),
    "extra trees": iterated(ExtraTreesRegressor(50, random_state=0)),
    "Gaussian": gaussian,
}


def measure(case: tuple[str, str], rows: int, columns: int) -> dict[str, object]:
    """Return errors, seconds and coverage on one table with one pattern of gaps."""
    warnings.simplefilter("ignore")
    name, pattern = case
    Y = table(name, rows, columns)
    gaps = gaps_of(Y, pattern)
    partial = np.where(gaps, np.nan, Y)
    found: dict[str, object] = {"table": name, "pattern": pattern, "shape": Y.shape}
    imputer = ManifoldImputer(n_jobs=None, random_state=0)
    tables = {}
    for method, fill in {**METHODS, OURS: imputer.fit_transform}.items():
        start = time.process_time()
        tables[method] = filled = fill(partial)
        seconds = time.process_time() - start
        error = ((filled - Y)[gaps] ** 2).mean() / Y[gaps].var()
        found[method] = (round(float(error), 4), round(seconds, 2))
    low, high = imputer.intervals(partial)
    covered, width = ((low <= Y) & (high >= Y))[gaps].mean(), (high - low)[gaps].mean()
    held, of_forest = width_that_covers(tables["extra trees"], Y, gaps, covered)
    found["hidden"] = int(gaps.sum())
    found["coverage"], found["width"] = round(float(covered), 3), round(float(width), 3)
    found["forest"] = (round(held, 3), round(of_forest, 3))
    return found


def summarise(results: list[dict]) -> None:
    """Print errors case by case, and how often ours is best or near it."""
    names = [*METHODS, OURS]
    shown = Table(title="Squared error of hidden entries, share of their variance")
    for title in ("table", "gaps", *names, "seconds", "of trees", "coverage"):
        shown.add_column(title, justify="left" if title in ("table", "gaps") else "right")
    ratios = []
    for case in results:
        errors = {name: case[name][0] for name in names}
        ratios.append(errors[OURS] / min(value for name, value in errors.items() if name != OURS))
        mark = "*" if case["table"] in HELD_BACK else ""
        cells = [f"{errors[name]:.3f}" for name in names]
        seconds = [f"{case[OURS][1]:.1f}", f"{case['extra trees'][1]:.1f}"]
        shown.add_row(
            case["table"] + mark, case["pattern"], *cells, *seconds, str(case["coverage"])
        )
    console = Console(width=180)
    console.print(shown)
    r = np.array(ratios)
    slower = np.mean([case[OURS][1] > case["extra trees"][1] for case in results])
    console.print(
        f"{len(r)} cases: lowest or within 2 % of it {np.mean(r <= 1.02):.0%}, within 10 % "
        f"{np.mean(r <= 1.1):.0%}, worst ratio {r.max():.2f}, geometric mean "
        f"{np.exp(np.log(r).mean()):.3f}; slower than extra trees {slower:.0%}"
    )
    console.print(interval_table(results))
    console.print("HyperImpute was measured by itself, see docs/filling.md.")


def interval_table(results: list[dict]) -> Table:
    """Return what 90 % intervals hold, table by table, and their width beside that of a forest."""
    shown = Table(title="90 % intervals: share of hidden entries within, all patterns together")
    for title in ("table", "hidden", "hold", "least", "most", "forest's hold", "width / forest's"):
        shown.add_column(title, justify="left" if title == "table" else "right")
    for name in dict.fromkeys(case["table"] for case in results):
        cases = [case for case in results if case["table"] == name]
        held = np.array([case["coverage"] for case in cases])
        forest = np.array([case["forest"][0] for case in cases])
        hidden = np.array([case["hidden"] for case in cases])
        ratios = [case["width"] / case["forest"][1] for case in cases]
        shown.add_row(
            name,
            str(hidden.sum()),
            f"{held @ hidden / hidden.sum():.3f}",
            f"{held.min():.3f}",
            f"{held.max():.3f}",
            f"{forest @ hidden / hidden.sum():.3f}",
            f"{np.exp(np.mean(np.log(ratios))):.2f}",
        )
    return shown


def main() -> None:
    """Measure the tables asked for, all by default, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="table", default=TABLES)
    parser.add_argument("--rows", type=int, default=200, help="rows of a table, at most")
    parser.add_argument("--columns", type=int, default=16, help="columns of a table, at most")
    parser.add_argument("--jobs", type=int, default=1, help="cases measured side by side")
    asked = parser.parse_args()
    RESULTS.parent.mkdir(exist_ok=True)
    cases = product(asked.tables, PATTERNS)
    of_size = functools.partial(measure, rows=asked.rows, columns=asked.columns)
    results = []
    with ProcessPoolExecutor(asked.jobs) as pool, RESULTS.open("a") as file:
        for case in pool.map(of_size, cases):
            results.append(case)
            file.write(json.dumps(case) + "\n")
            file.flush()
    summarise(results)


if __name__ == "__main__":
    main()

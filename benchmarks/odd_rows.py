"""Odd rows found: `ManifoldOutlierDetector` beside isolation forest, LOF, distances and PCA.

    python -m benchmarks.odd_rows

Area under the curve on tables with a rare class, with rows of another manifold, and with entries
changed. Every detector sees the whole table, odd rows included, and no label. ECOD (PyOD) is not
among them: it is not installed here.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import rankdata
from sklearn import datasets as sklearn_datasets
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

from benchmarks.filling_tables import linear, waves
from twofold import ManifoldOutlierDetector
from twofold.datasets import load_npz

OURS = "ManifoldOutlierDetector"
Task = tuple[str, np.ndarray, np.ndarray]


def rare(
    Y: np.ndarray, y: np.ndarray, usual: list[int], odd: list[int], share: float = 0.05
) -> tuple[np.ndarray, np.ndarray]:
    """Return up to 500 rows of usual classes and a few of others, and which these are."""
    random = np.random.default_rng(0)
    a = random.permutation(np.flatnonzero(np.isin(y, usual)))[:500]
    b = random.permutation(np.flatnonzero(np.isin(y, odd)))[: max(5, int(share * len(a)))]
    rows = np.vstack([Y[a], Y[b]]).astype(np.float64)
    rows = rows[:, rows.std(axis=0) > 0]
    return (rows - rows.mean(axis=0)) / rows.std(axis=0), np.arange(len(rows)) >= len(a)


def corrupted(Y: np.ndarray, n_entries: int, size: float) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of which the last 25 have entries moved."""
    random, Y = np.random.default_rng(1), Y.copy()
    for row in Y[-25:]:
        row[random.permutation(Y.shape[1])[:n_entries]] += size * random.normal(size=n_entries)
    return Y, np.arange(len(Y)) >= len(Y) - 25


def tasks() -> Iterator[Task]:
    """Yield names, tables and which rows are odd."""
    wine = sklearn_datasets.load_wine(return_X_y=True)
    cancer = sklearn_datasets.load_breast_cancer(return_X_y=True)
    digits = sklearn_datasets.load_digits(return_X_y=True)
    iris = sklearn_datasets.load_iris(return_X_y=True)
    oil, usps, boston = (load_npz(name) for name in ("oil_flow", "usps", "boston"))
    yield "wine, class 0", *rare(*wine, [1, 2], [0])
    yield "wine, class 2", *rare(*wine, [0, 1], [2])
    yield "breast cancer, malignant", *rare(*cancer, [1], [0])
    yield "breast cancer, benign", *rare(*cancer, [0], [1], 0.1)
    yield "digits, 0", *rare(*digits, list(range(1, 10)), [0], 0.03)
    yield "digits, 8 among 1 2 3", *rare(*digits, [1, 2, 3], [8])
    yield "iris, class 0", *rare(*iris, [1, 2], [0], 0.1)
    yield "oil flow, class 2", *rare(oil["X"], oil["y"], [0, 1], [2])
    yield "oil flow, class 0", *rare(oil["X"], oil["y"], [1, 2], [0])
    yield "usps, 7 among 1 9", *rare(usps["X"], usps["y"], [1, 9], [7])
    yield "usps, 0 among 2 3 6", *rare(usps["X"], usps["y"], [2, 3, 6], [0])
    other = np.vstack([waves(500), waves(25, seed=3)])
    yield "another manifold", other, np.arange(525) >= 500
    yield "many bends, 4 entries moved", *corrupted(waves(525), 4, 1.5)
    yield "linear, 3 entries moved", *corrupted(linear(525), 3, 4.0)
    Y = boston["X"].astype(np.float64)
    yield "boston, 3 entries moved", *corrupted((Y - Y.mean(axis=0)) / Y.std(axis=0), 3, 1.5)


def scores(Y: np.ndarray) -> dict[str, np.ndarray]:
    """Return how odd each detector finds rows (n,), high is odd."""
    axes = PCA(0.9).fit(Y)
    return {
        "isolation forest": -IsolationForest(random_state=0).fit(Y).score_samples(Y),
        "LOF": -LocalOutlierFactor(20).fit(Y).negative_outlier_factor_,
        "5th neighbour": NearestNeighbors(n_neighbors=6).fit(Y).kneighbors(Y)[0][:, 5],
        "PCA error": ((Y - axes.inverse_transform(axes.transform(Y))) ** 2).sum(axis=1),
        OURS: -ManifoldOutlierDetector().fit(Y).score_samples(Y),
    }


def main() -> None:
    """Print areas under the curve, mean ranks, and how often ours is near the best."""
    warnings.simplefilter("ignore")
    found = {}
    for name, Y, is_odd in tasks():
        found[name] = {who: roc_auc_score(is_odd, s) for who, s in scores(Y).items()}
    names = list(next(iter(found.values())))
    shown = Table(title="Area under the curve")
    for title in ("task", *names):
        shown.add_column(title, justify="left" if title == "task" else "right")
    for task, areas in found.items():
        shown.add_row(task, *(f"{areas[name]:.3f}" for name in names))
    A = np.array([[areas[name] for name in names] for areas in found.values()])
    ranks = np.mean([rankdata(-row) for row in A], axis=0)
    shown.add_row("mean", *(f"{value:.3f}" for value in A.mean(axis=0)))
    shown.add_row("mean rank", *(f"{value:.2f}" for value in ranks))
    shown.add_row(
        "within 0.03 of the best", *(f"{v:.0%}" for v in (A.max(1) - 0.03 <= A.T).mean(1))
    )
    Console(width=140).print(shown)


if __name__ == "__main__":
    main()

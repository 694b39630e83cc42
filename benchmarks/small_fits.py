"""A small fit of every family, and of what chooses between them: what a first user runs.

    python -m benchmarks.small_fits UNN 0.5

runs one of them in this process, once to warm up and then for so many seconds, and prints the CPU
seconds that one takes, those of all threads added up. Without seconds it runs once.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.manifold import LocallyLinearEmbedding

import twofold
from twofold.datasets import make_random_manifold


def rows(n: int = 250, D: int = 16) -> np.ndarray:
    """Return rows near a random surface."""
    return make_random_manifold(n, 2, D, noise=0.05, random_state=0).Y


def fit_grid() -> object:
    """Fit a map to data at the nodes of a grid, two of them unknown, and find places on it."""
    a, b = np.meshgrid(np.linspace(0, 1, 6), np.linspace(0, 1, 6), indexing="ij")
    nodes = np.stack([a, b, np.sin(3 * a * b)], axis=2)
    nodes[2, 3] = nodes[4, 1] = np.nan
    known = nodes[np.isfinite(nodes[..., 0])]
    model = twofold.PSOM(2, grid=(6, 6), bounds=[(0, 1), (0, 1)]).fit_grid(nodes)
    return model.transform((known[1:] + known[:-1]) / 2)


def classify() -> object:
    """Fit and ask a manifold for each of two classes."""
    Y = rows(200, 5)
    classes = (Y[:, 0] > np.median(Y[:, 0])).astype(int)
    return twofold.ManifoldClassifier(twofold.UKR(random_state=0)).fit(Y, classes).predict(Y[::3])


def choose_dimension() -> object:
    """Ask for the number of dimensions."""
    return twofold.selection.choose_dimension(rows(250, 8))


def propagate() -> object:
    """Give labels to rows without one."""
    Y = rows()
    labels = np.where(np.arange(len(Y)) % 20, -1, (Y[:, 0] > 0).astype(int))
    return twofold.neighbors.PropagatingNearestNeighbor().fit(Y, labels).predict(Y)


def measure_stability() -> object:
    """Fit locally linear embeddings to bootstrap samples."""
    return twofold.selection.stability(LocallyLinearEmbedding(n_neighbors=10), rows(), repeats=2)


def refine() -> object:
    """Improve an embedding by its evidence."""
    Y = rows(150, 8)
    return twofold.selection.refine(Y, Y[:, :2], by="evidence", max_iter=5)


FITS: dict[str, Callable[[], object]] = {
    "UKR": lambda: twofold.UKR(random_state=0).fit(rows()),
    "UKR, landmarks": lambda: twofold.UKR(landmarks=60, random_state=0).fit(rows(600)),
    "UNN": lambda: twofold.UNN(1, random_state=0).fit(rows()),
    "UNN, 2 dimensions": lambda: twofold.UNN(2, random_state=0).fit(rows()),
    "SubmanifoldUNN": lambda: twofold.SubmanifoldUNN(random_state=0).fit(rows()),
    "PSOM": lambda: twofold.PSOM(random_state=0).fit(rows()),
    "PSOM, fit_grid": fit_grid,
    "KernelPCA": lambda: twofold.KernelPCA(2).fit(rows()),
    "DiffusionMap": lambda: twofold.DiffusionMap(2).fit(rows()),
    "KernelExtension": lambda: twofold.KernelExtension().fit(rows()),
    "NadarayaWatson": lambda: twofold.NadarayaWatson().fit(rows()[:, :2], rows()[:, 2:]),
    "ManifoldClassifier": classify,
    "KHarmonicMeans": lambda: twofold.KHarmonicMeans(8, random_state=0).fit(rows()),
    "ConstructiveKMeans": lambda: twofold.ConstructiveKMeans().fit(rows()),
    "upgrade": lambda: twofold.upgrade(rows()[:, :2], rows()),
    "PropagatingNearestNeighbor": propagate,
    "compare": lambda: twofold.compare(rows(250, 8), ["lle", "isomap", "tsne", "mds"]),
    "choose_dimension": choose_dimension,
    "stability": measure_stability,
    "refine": refine,
    "trustworthiness": lambda: twofold.metrics.trustworthiness(rows(), rows()[:, :2]),
}


def cpu_seconds(fit: Callable[[], object], at_least: float) -> float:
    """Return the CPU seconds of one fit, repeated for at least so many seconds."""
    fit()
    count, begin, wall = 0, time.process_time(), time.perf_counter()
    while time.perf_counter() - wall < at_least:
        fit()
        count += 1
    return (time.process_time() - begin) / count


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    fit = FITS[sys.argv[1]]
    if len(sys.argv) > 2:
        print(cpu_seconds(fit, float(sys.argv[2])))
    else:
        fit()

"""Pre-images of 1,000 points against 2,000 rows of 256 columns, by every method.

Wall time depends on who else uses the machine, so core seconds (all threads added up) stand beside
it, also as ratios to those of one computation of the 1,000 x 2,000 squared distances. A learned map
is solved in the first of the repeats, and the shortest is told: what it costs from then on.

    python -m benchmarks.preimages
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from benchmarks.report import Row, show
from twofold.features import RBF, Linear, Polynomial
from twofold.features.data_kernels import Laplacian
from twofold.preimages import (
    Constrained,
    Direct,
    Exact,
    FeaturePoints,
    FixedPoint,
    Gradient,
    Learned,
    LinearCombination,
    Localise,
    Medians,
    PolynomialClosedForm,
    PreImageMethod,
)
from twofold.preimages.coordinates import GaussianCoordinates
from twofold.preimages.points import kernel_values

POINTS, ROWS, COLUMNS = 1_000, 2_000, 256
COMPONENTS, RANK = 2, 20
MOST_SECONDS = 2.0
REPEATS = 3


def make_rows() -> tuple[np.ndarray, np.ndarray]:
    """Return training rows and new rows around a curved body in 256 columns, with noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, size=(ROWS + POINTS, 3))
    Y = np.sin(X @ rng.normal(size=(3, COLUMNS)))
    Y += 0.1 * rng.normal(size=Y.shape)
    return Y[:ROWS], Y[ROWS:]


def make_points(kernel: object) -> FeaturePoints:
    """Return the projections of new rows on the first components of kernel PCA."""
    rows, new = make_rows()
    K = kernel_values(kernel, rows, rows)
    values, U = np.linalg.eigh(K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean())
    values, U = values[::-1][:RANK], U[:, ::-1][:, :RANK]
    axes = U / np.sqrt(values)
    axes -= axes.mean(axis=0)
    X = (kernel_values(kernel, new, rows) - K.mean(axis=0)) @ axes
    return FeaturePoints.on_axes(
        kernel,
        rows,
        axes[:, :COMPONENTS],
        X[:, :COMPONENTS],
        start=new,
        map=GaussianCoordinates.of_kernel(rows, axes, K.mean(axis=0), kernel.gamma)
        if isinstance(kernel, RBF)
        else None,
        row_coordinates=U * np.sqrt(values),
    )


def timed(work: Callable[[], object]) -> tuple[object, float, float]:
    """Return the result of some work, and its shortest wall time and core seconds."""
    walls, cores = [], []
    for _ in range(REPEATS):
        wall, core = time.perf_counter(), time.process_time()
        result = work()
        walls.append(time.perf_counter() - wall)
        cores.append(time.process_time() - core)
    return result, min(walls), min(cores)


def cases() -> list[tuple[str, FeaturePoints, PreImageMethod, float | None]]:
    """Return what to measure, with the seconds it may take."""
    gaussian = make_points(RBF().fitted(make_rows()[0]))
    polynomial = make_points(Polynomial(3, 1 / COLUMNS, 1.0))
    laplacian = make_points(Laplacian(2 / COLUMNS))
    learned = Learned().fitted(gaussian.rows, gaussian.row_coordinates[:, :COMPONENTS])
    return [
        ("rbf", gaussian, FixedPoint(), MOST_SECONDS),
        ("rbf", gaussian, Gradient(), MOST_SECONDS),
        ("rbf, projection", gaussian, Gradient("projection"), MOST_SECONDS),
        ("rbf", gaussian, Constrained(), MOST_SECONDS),
        ("rbf", gaussian, Localise(), None),
        ("rbf", gaussian, Direct(), None),
        ("rbf", gaussian, LinearCombination(), None),
        ("rbf", gaussian, learned, None),
        ("poly", polynomial, FixedPoint(), MOST_SECONDS),
        ("poly", polynomial, Gradient(), MOST_SECONDS),
        ("poly", polynomial, PolynomialClosedForm(), None),
        ("linear", make_points(Linear()), Exact(), None),
        ("laplacian", laplacian, Medians(), MOST_SECONDS),
    ]


def run() -> list[Row]:
    """Measure."""
    rows, new = make_rows()
    _, wall, unit = timed(lambda: euclidean_distances(new, rows, squared=True))
    measured = [Row("distances, seconds", wall), Row("distances, core seconds", unit)]
    for kernel, points, method, target in cases():
        found, wall, core = timed(lambda m=method, p=points: m.find(p))
        name = f"{method.name} ({kernel})"
        measured += [
            Row(f"{name}, seconds", wall, target),
            Row(f"{name}, core seconds", core),
            Row(f"{name}, core seconds / distances", core / unit),
            Row(f"{name}, evaluations a point", found.n_iter.mean()),
            Row(f"{name}, share converged", found.converged.mean(), 0.99, at_most=False),
            Row(f"{name}, mean squared feature distance", found.distance.mean()),
        ]
    return measured


if __name__ == "__main__":
    show("Pre-images", run())

"""Objective and gradient by the cell back end: how cost grows with n, and how exact it is.

Latent points at constant density, D = 16, from n = 10,000 to 160,000; the exponent is the slope of
log time over log n. The gradient is compared with a float64 version over all pairs.
"""

from __future__ import annotations

import numpy as np

from benchmarks.engine_dense import objective, plain_numpy
from benchmarks.report import Row, best_time, show

SIZES = (10_000, 40_000, 160_000)


def make_data(n: int, dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    """Return latent points of one to a unit square, and data (n, 16)."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, np.sqrt(n), size=(n, 2))
    Y = np.sin(0.3 * X @ rng.normal(size=(2, 16))) + 0.1 * rng.normal(size=(n, 16))
    return X.astype(dtype), Y.astype(dtype)


def gradient_error(dtype: type) -> float:
    """Return the relative error of the gradient at the default tolerance."""
    X, Y = make_data(3_000, dtype)
    exact = plain_numpy(X.astype(float), Y.astype(float))[1]
    found = objective(Y, "cpu_cells").value_and_grad(X)[1]
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def run() -> list[Row]:
    """Measure."""
    times = []
    for n in SIZES:
        X, Y = make_data(n)
        error = objective(Y, "cpu_cells")
        times.append(best_time(lambda X=X, error=error: error.value_and_grad(X), 3))
    exponent = np.polyfit(np.log(SIZES), np.log(times), 1)[0]
    X, Y = make_data(SIZES[0])
    dense = best_time(lambda: objective(Y, "cpu_dense").value_and_grad(X), 1)
    return [
        Row("exponent of n in the time, 10,000 to 160,000", float(exponent), 1.15),
        Row("relative gradient error, float64", gradient_error(np.float64), 1e-5),
        Row("relative gradient error, float32", gradient_error(np.float32), 1e-5),
        Row("dense time / cells time at n = 10,000", dense / times[0]),
    ]


if __name__ == "__main__":
    show("Engine, cells", run())

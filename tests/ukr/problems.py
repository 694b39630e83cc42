"""Small problems that the tests of this folder share."""

from __future__ import annotations

import numpy as np

from twofold.engine import KernelSums
from twofold.kernels import GAUSSIAN
from twofold.losses import Squared
from twofold.regularization import LeaveOneOut
from twofold.ukr.objective import Problem, Reconstruction
from twofold.ukr.surface import CarriedRows, Surface


def make_table(kernel=GAUSSIAN, q=2, n=40, D=3, *, weighted=False, missing=False, seed=0):
    """Return latent points (n, q), data (n, D), weights (n,) or None and observed or None."""
    rng = np.random.default_rng([seed, q])
    X = 1.3 * kernel.half_width() * rng.normal(size=(n, q))
    Y = rng.normal(size=(n, D)) + 5
    weights = rng.uniform(0.3, 2, size=n) if weighted else None
    observed = rng.random((n, D)) < 0.8 if missing else None
    return X, Y, weights, observed


def make_objective(
    kernel,
    Y,
    weights=None,
    observed=None,
    *,
    leave_one_out=True,
    cutoff=1e-15,
    backend="auto",
    dtype=np.float64,
):
    weights = np.ones(len(Y)) if weights is None else weights
    rows = CarriedRows(Y.astype(dtype), weights, observed)
    engine = KernelSums(kernel, cutoff, n_jobs=1, backend=backend)
    return Reconstruction(
        rows,
        Squared(),
        engine,
        hidden=np.arange(len(Y))[:, None] if leave_one_out else None,
    )


def make_surface(kernel, X, Y, weights=None, observed=None, *, widths=None, cutoff=1e-15):
    """Return a surface with the domain that a fitted model would have."""
    weights = np.ones(len(Y)) if weights is None else weights
    engine = KernelSums(kernel, cutoff, n_jobs=1)
    return Surface(X, CarriedRows(Y, weights, observed), engine, widths)


def make_problem(Y, regularization=None, kernel=GAUSSIAN, weights=None, dtype=np.float64):
    weights = np.ones(len(Y)) if weights is None else weights
    engine = KernelSums(kernel, n_jobs=1)
    rows = CarriedRows(Y.astype(dtype), weights, None)
    return Problem(rows, Squared(), regularization or LeaveOneOut(), engine)


def sheet(n_side=12, scale=4.0):
    """Return latent points on a regular grid and a bent sheet in three dimensions over them."""
    u, v = np.meshgrid(np.linspace(-1, 1, n_side), np.linspace(-1, 1, n_side), indexing="ij")
    X = scale * np.column_stack([u.ravel(), v.ravel()])
    Y = np.column_stack([u.ravel(), v.ravel(), (u**2 - 0.5 * v**2).ravel()])
    return X, Y

"""A whole table is fitted: feature space, what cross-validation hides, landmarks, latent points.

What is decided here from the parameters is which rows a model carries: the distinct rows, their
coordinates in feature space, or landmarks in either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine import Degree, KernelSums
from twofold.engine.threads import single_threaded_blas
from twofold.features import DataKernel, FeatureMap
from twofold.kernels import Kernel
from twofold.landmarks import Landmarks
from twofold.losses import EpsilonInsensitive, Loss, is_rotation_invariant, rows_of
from twofold.regularization import Regularization, n_left_out
from twofold.ukr.feature_space import check_complete, check_square
from twofold.ukr.filling import fill_for_start
from twofold.ukr.fitting import Fit, Wishes, fit_points
from twofold.ukr.problem import Problem, nearest_rows
from twofold.ukr.rows import CarriedRows, data_unit
from twofold.ukr.starts import own_start


@dataclass(frozen=True)
class Settings:
    """The parameters that shape a model, as objects."""

    kernel: Kernel
    degree: Degree
    regularization: Regularization
    loss: Loss
    data_kernel: DataKernel | None
    landmarks: Landmarks | None
    tolerance: float
    n_jobs: int | None

    def problem(self, Y: FloatArray, weights: FloatArray) -> Problem:
        """Return the training problem of rows, NaN where missing, reconstructed from each other."""
        observed = ~np.isnan(Y)
        mask = None if observed.all() else observed
        rows = CarriedRows(Y, weights, mask, data_unit(Y), self.degree)
        engine = KernelSums(self.kernel, self.tolerance, self.n_jobs)
        return Problem(rows, weights, self.loss, self.regularization, engine)

    def cross_validated_problem(self, Y: FloatArray, weights: FloatArray) -> Problem:
        """Return the problem with what leave-K-out hides from each row."""
        problem, k = self.problem(Y, weights), n_left_out(self.regularization)
        return problem if k == 1 else replace(problem, hidden=nearest_rows(fill_for_start(Y), k))


@dataclass(frozen=True)
class FittedTable:
    """What a fitted model is made of.

    Attributes
    ----------
    fit : Fit, its ``X`` the latent points of what the model carries
    data : (n, D) the rows, or the landmarks
    features : FeatureMap or None
    carried : (n, r) adapted coordinates of landmarks in feature space, or None
    columns : (n,) columns of a precomputed matrix that belong to the rows, or None
    gamma : smoothness of adapted landmarks, or None
    """

    fit: Fit
    data: FloatArray
    features: FeatureMap | None = None
    carried: FloatArray | None = None
    columns: IntArray | None = None
    gamma: float | None = None


def fit_table(
    settings: Settings,
    Y: FloatArray,
    weights: FloatArray,
    source: IntArray,
    n_rows: int,
    wishes: Wishes,
) -> FittedTable:
    """Fit distinct rows Y (n, D), which stand at ``source`` among the user's ``n_rows`` rows."""
    if settings.data_kernel is not None:
        check_complete(Y, is_precomputed=settings.data_kernel.is_precomputed)
    if settings.landmarks is not None:
        return _fit_with_landmarks(settings, settings.landmarks, Y, weights, source, wishes)
    features, columns, carried = None, None, Y
    if settings.data_kernel is not None:
        rows = Y
        if settings.data_kernel.is_precomputed:
            check_square(Y, n_rows)
            columns, rows = source, np.ascontiguousarray(Y[:, source])
        with single_threaded_blas():
            features = FeatureMap.fit(settings.data_kernel, rows)
        carried = features.coordinates
    problem = settings.cross_validated_problem(_turned(carried, settings.loss), weights)
    fit = fit_points(problem, carried, source, wishes)
    return FittedTable(fit, Y, features, None, columns)


def _fit_with_landmarks(
    settings: Settings,
    landmarks: Landmarks,
    Y: FloatArray,
    weights: FloatArray,
    source: IntArray,
    wishes: Wishes,
) -> FittedTable:
    # Imported at first use: a model without landmarks, or one that is only opened, needs neither.
    from twofold.landmark_choice import choose_landmarks
    from twofold.ukr.landmark_fitting import fit_landmarks, start_of_landmarks

    wishes.tell("choosing landmarks", 0, 1)
    filled = fill_for_start(Y).astype(Y.dtype)
    chosen = choose_landmarks(filled, weights, landmarks, wishes.seed)
    if not isinstance(wishes.init, str) and not hasattr(wishes.init, "fit_transform"):
        own = own_start(wishes.init, Y, wishes.q, source)
        wishes = replace(wishes, init=start_of_landmarks(own, filled, chosen))
    if settings.data_kernel is None:
        found = fit_landmarks(settings.problem(Y, weights), Y, chosen, landmarks, wishes)
        return FittedTable(found.fit, found.values.astype(Y.dtype), gamma=found.gamma)
    with single_threaded_blas():
        features = FeatureMap.fit(settings.data_kernel, chosen)
    rows = features.transform(Y)
    problem = settings.problem(rows, weights)
    found = fit_landmarks(problem, rows, features.coordinates, landmarks, wishes)
    carried = None if found.gamma is None else found.values
    return FittedTable(found.fit, chosen, features, carried, gamma=found.gamma)


def loss_of_distinct(loss: Loss, member: IntArray, source: IntArray) -> Loss:
    """Return the loss of distinct rows from that of all; merged rows get their smallest ε.

    Of a user's loss with numbers for each row they get those of the first of them.
    """
    if not isinstance(loss, EpsilonInsensitive) or np.ndim(loss.eps) == 0:
        return rows_of(loss, source)
    eps: FloatArray = np.asarray(loss.eps)
    merged = np.full((len(source), *eps.shape[1:]), np.inf)
    counted = member >= 0
    np.minimum.at(merged, member[counted], eps[counted])
    return EpsilonInsensitive(merged, loss.per)


def _turned(Y: FloatArray, loss: Loss) -> FloatArray:
    """Return rows in fewer coordinates if they have more columns than there are rows.

    n rows span at most n - 1 directions; turned into those, all distances stay as they are and
    training with a loss of lengths alone does not notice.
    """
    n, D = Y.shape
    if n >= D or np.isnan(Y).any() or not is_rotation_invariant(loss):
        return Y
    unit = data_unit(Y)
    centred = (Y / unit - (Y / unit).mean(axis=0)).astype(np.float64)
    with single_threaded_blas():
        values, vectors = np.linalg.eigh(centred @ centred.T)
    kept = values > 1e-12 * values[-1]
    return (unit * vectors[:, kept] * np.sqrt(values[kept])).astype(Y.dtype)


def principal_axes(X: FloatArray) -> FloatArray:
    """Turn latent points so that their axes fall in variance; the model does not change by it."""
    X = X - X.mean(axis=0)
    _, axes = np.linalg.eigh(X.T.astype(np.float64) @ X.astype(np.float64))
    axes = axes[:, ::-1]
    largest = np.abs(axes).argmax(axis=0)
    signs = np.sign(axes[largest, np.arange(len(largest))])
    return (X @ (axes * signs)).astype(X.dtype)

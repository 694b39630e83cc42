"""What UKR minimises over the latent points (Klanke 2007, eqs. 4.26, 4.34, 5.19, 5.23 and B.12).

    R(X, Z) = 1/Σω Σ_j ω_j L(f(x_j; Z) - y_j)

with ``f`` the regression on the references: all rows themselves (Z = X), or landmarks that stand
for them. Under cross-validation some references are hidden from each row: itself (leave-one-out),
itself and its nearest rows (leave-K-out), or its nearest landmarks.

UKR's bandwidth is one, so scaling the latent points is choosing it (4.51, 4.52):

    s* = argmin_s R_cv(X diag(s)),   dR/dlog s_m = Σ_n x_nm dR/dx_nm

First one common factor from a grid around the typical distance of neighbours, then one factor a
dimension by gradient. On large data the error of a fixed subset of rows decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import optimize, spatial

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.compiled import compiled_in_order
from twofold.engine import Degree, KernelSums, Respond
from twofold.latent.starts import fill_for_start
from twofold.losses import Loss, in_unit, rows_of
from twofold.regularization import Regularization, n_left_out
from twofold.rowwise import data_unit, fix_signs
from twofold.tables.dask_workers import sharing_workers
from twofold.ukr.surface import CarriedRows, Surface

# Kernel widths, in distances to the nearest neighbour, that the grid of factors runs through.
WIDEST, NARROWEST, GRID = 30.0, 0.35, 10
MOST_SCALED_ROWS = 500
MOST_STEPS = 8
# How far a single dimension may be stretched or shrunk, as a logarithm.
MOST_STRETCH = np.log(5.0)

# What an objective answers to sums: the loss of each row, and its derivative by them if wanted.
Response = tuple[FloatArray, FloatArray | None]


class Reconstruction:
    """The reconstruction error of data rows from their latent points, with its gradient.

    Latent points are those of the rows and, with ``landmarks`` that rows are reconstructed from
    instead of from each other, those of the landmarks below them. ``hidden`` (n, K) are references
    hidden from each row.
    """

    def __init__(
        self,
        rows: CarriedRows,
        loss: Loss,
        engine: KernelSums,
        hidden: IntArray | None = None,
        landmarks: CarriedRows | None = None,
    ) -> None:
        self.rows, self.loss, self.engine, self.hidden = rows, loss, engine, hidden
        self.landmarks = landmarks
        self.references = rows if landmarks is None else landmarks
        self.share = (rows.weights / rows.weights.sum()).astype(rows.Y.dtype)

    def value_and_grad(self, X: FloatArray) -> tuple[float, FloatArray]:
        """Return R(X) and dR/dX, for all latent points."""
        X = X.astype(self.rows.Y.dtype, copy=False)
        n = len(self.share)
        found = self.engine.evaluate(
            X[:n],
            self.references.V,
            self._respond,
            references=None if self.landmarks is None else X[n:],
            hidden=self.hidden,
            local=self.references.local(X.shape[1]),
        )
        return self._summed(*found)

    def _summed(
        self, losses: FloatArray, by_query: FloatArray, by_reference: FloatArray
    ) -> tuple[float, FloatArray]:
        """Return the value and the gradient by all latent points."""
        value = float(losses.sum(dtype=np.float64))
        if self.landmarks is None:
            return value, by_query + by_reference
        return value, np.concatenate([by_query, by_reference])

    def value_on(self, X: FloatArray, numbers: IntArray) -> float:
        """Return R(X) over some of the rows only, with all references."""

        def respond(rows: IntArray, A: FloatArray, shift: FloatArray) -> Response:
            return self._losses(rows, A)[0], None

        return self._evaluate_on(X, numbers, respond)[0]

    def value_of_sums(self, A: FloatArray, numbers: IntArray) -> float:
        """Return R over some rows whose sums are already there, (rows, C)."""
        losses = self._losses(numbers, A)[0]
        return float(losses.sum(dtype=np.float64) / self.share[numbers].sum(dtype=np.float64))

    def residuals(self, X: FloatArray) -> FloatArray:
        """Return the residuals f - y (n, D), 0 where y is missing."""
        R = np.empty_like(self.rows.Y)

        def respond(numbers: IntArray, A: FloatArray, shift: FloatArray) -> Response:
            R[numbers] = self._residuals(numbers, A)[0]
            return np.zeros(len(numbers), dtype=A.dtype), None

        self._evaluate_on(X, np.arange(len(R)), respond)
        return R

    def value_and_scale_slope(self, X: FloatArray, numbers: IntArray) -> tuple[float, FloatArray]:
        """Return R(X) over some rows and its derivative by the log scale of each dimension."""
        return self._evaluate_on(X, numbers, self._respond)

    def _evaluate_on(
        self, X: FloatArray, numbers: IntArray, respond: Respond
    ) -> tuple[float, FloatArray]:
        X = X.astype(self.rows.Y.dtype, copy=False)
        references = X if self.landmarks is None else X[len(self.share) :]
        losses, by_query, by_reference = self.engine.evaluate(
            X[numbers],
            self.references.V,
            lambda places, A, shift: respond(numbers[places], A, shift),
            references=references,
            hidden=None if self.hidden is None else self.hidden[numbers],
            local=self.references.local(X.shape[1]),
        )
        counted = self.share[numbers].sum(dtype=np.float64)
        # With X diag(s) the chain rule gives dR/dlog s_m = Σ x_m dR/dx_m, over queries and
        # references alike.
        slope = (by_query * X[numbers]).sum(axis=0) + (by_reference * references).sum(axis=0)
        return float(losses.sum(dtype=np.float64) / counted), slope.astype(np.float64) / counted

    def _respond(self, numbers: IntArray, A: FloatArray, shift: FloatArray) -> Response:
        losses, slope, f, denominator = self._losses(numbers, A)
        return losses, self.references.answer(f, denominator, slope)

    def _losses(
        self, numbers: IntArray, A: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        residual, f, denominator = self._residuals(numbers, A)
        share = self.share[numbers]
        losses, slope = rows_of(self.loss, numbers).value_and_slope(residual)
        return losses * share, slope * share[:, None], f, denominator

    def _residuals(
        self, numbers: IntArray, A: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        f, denominator = self.references.regress(A)
        if self.hidden is not None:
            # Out of reach of every reference that counts: the mean of those stands in.
            alone = np.flatnonzero(~(denominator > 0).all(axis=1))
            if len(alone):
                others = self.references.mean_without(self.hidden[numbers[alone]])
                f[alone] = np.where(denominator[alone] > 0, f[alone], others)
        Y, observed = self.rows.Y, self.rows.observed
        if observed is None:
            return f - np.take(Y, numbers, axis=0), f, denominator
        residual = np.empty_like(f)
        _miss(f, Y, observed, numbers, residual)
        return residual, f, denominator


@compiled_in_order
def _miss(
    f: FloatArray, Y: FloatArray, observed: BoolArray, numbers: IntArray, residual: FloatArray
) -> None:
    """Write f - y (m, D) for rows ``numbers`` (m,) of Y (n, D), 0 where y is missing."""
    for i in range(f.shape[0]):
        row = numbers[i]
        for d in range(f.shape[1]):
            residual[i, d] = f[i, d] - Y[row, d] if observed[row, d] else 0


@dataclass(frozen=True)
class Problem:
    """A training problem: what is minimised, with what keeps latent points together.

    With ``landmarks`` rows are reconstructed from these instead of from each other; latent points
    are then those of the rows and below them those of the landmarks.
    """

    rows: CarriedRows
    loss: Loss  # for residuals in the unit of the data
    regularization: Regularization
    engine: KernelSums
    hidden: IntArray | None = None  # (n, K) from each row in cross-validation, None for itself
    landmarks: CarriedRows | None = None

    @classmethod
    def of_rows(
        cls,
        Y: FloatArray,
        weights: FloatArray,
        loss: Loss,
        regularization: Regularization,
        engine: KernelSums,
        degree: Degree = 0,
    ) -> Problem:
        """Return the problem of rows Y (n, D), NaN where missing, reconstructed from each other."""
        observed = ~np.isnan(Y)
        mask = None if observed.all() else observed
        rows = CarriedRows(Y, weights, mask, data_unit(Y), degree)
        return cls(rows, loss, regularization, engine)

    def cross_validated(self, Y: FloatArray) -> Problem:
        """Return the problem with what leave-K-out hides from each of its rows Y (n, D)."""
        k = n_left_out(self.regularization)
        return self if k == 1 else replace(self, hidden=nearest_rows(fill_for_start(Y), k))

    def reconstruction(self, *, cross_validated: bool) -> Reconstruction:
        """Return the reconstruction error of the rows."""
        hidden = self.hidden
        if hidden is None and self.landmarks is None:
            hidden = np.arange(len(self.rows.Y))[:, None]
        made_of = (
            self.rows,
            self._loss_and_unit[0],
            self.engine,
            hidden if cross_validated else None,
            self.landmarks,
        )
        workers = sharing_workers()
        if workers is None or self.engine.device != "cpu":
            return Reconstruction(*made_of)
        # Imported at first use: few fits have workers elsewhere.
        from twofold.ukr.spread_objective import SpreadReconstruction

        return SpreadReconstruction(workers, *made_of)

    def surface(self, X: FloatArray) -> Surface:
        """Return the manifold through the references at X; rows can be projected onto it."""
        references = self.rows if self.landmarks is None else self.landmarks
        return Surface(X, references, self.engine)

    @cached_property
    def _loss_and_unit(self) -> tuple[Loss, float]:
        return in_unit(self.loss, self.rows.unit)

    @property
    def error_unit(self) -> float:
        """What an error of 1 inside means in units of the loss."""
        return self._loss_and_unit[1]

    @property
    def weights(self) -> FloatArray:
        """Weights of the rows (n,)."""
        return self.rows.weights

    @property
    def point_weights(self) -> FloatArray:
        """Weights of all latent points: of the rows, and the mean of those for each landmark."""
        if self.landmarks is None:
            return self.weights
        mean = self.weights.mean()
        return np.concatenate([self.weights, np.full(len(self.landmarks.Y), mean)])

    def pace(self) -> FloatArray | None:
        """Return how far latent points move in the same time: many rows pull on one landmark."""
        if self.landmarks is None:
            return None
        n, n_landmarks = len(self.weights), len(self.landmarks.Y)
        pace = np.ones((n + n_landmarks, 1))
        pace[n:] = n_landmarks / n
        return pace

    def spread(self) -> float:
        """Return the mean loss of the rows around their mean: what there is to explain."""
        Y = self.rows.Y if self.rows.observed is None else self.rows.Y * self.rows.observed
        # Rows are centred: their mean predicts 0, and f - y is -Y.
        losses = self._loss_and_unit[0].value_and_slope(-Y)[0]
        return float((self.weights @ losses) / self.weights.sum())

    def restricted_to(self, numbers: IntArray) -> Problem:
        """Return the same problem on some of the rows."""
        Y = self.rows.unscaled(self.rows.Y[numbers])
        observed = None if self.rows.observed is None else self.rows.observed[numbers]
        weights = self.weights[numbers]
        hidden = self.hidden
        if hidden is not None and self.landmarks is None:
            # Found again among the rows that are left: those hidden before may be gone.
            hidden = nearest_rows(self.rows.Y[numbers], hidden.shape[1])
        elif hidden is not None:
            hidden = hidden[numbers]
        mean = None if self.landmarks is None else self.rows.mean
        rows = CarriedRows(Y, weights, observed, self.rows.unit, self.rows.degree, mean)
        return replace(self, rows=rows, hidden=hidden, loss=rows_of(self.loss, numbers))


def nearest_rows(Y: FloatArray, k: int) -> IntArray:
    """Return each row's number and those of its k - 1 nearest others, (n, k) (Klanke 2007, 5.2).

    Y (n, D) is complete. At least two rows must be left to reconstruct from.
    """
    n = len(Y)
    if not k <= n - 2:
        raise ValueError(
            f"Leaving {k} of {n} distinct rows out leaves fewer than two to reconstruct a row "
            f"from; `k` must be at most {n - 2}."
        )
    own = np.arange(n)[:, None]
    if k == 1:
        return own
    # Imported at first use: only leave-K-out searches neighbours in training.
    from twofold.neighborhoods.graphs import find_neighbors

    return np.concatenate([own, find_neighbors(Y, k - 1).indices], axis=1)


def spread_rows(n: int, most: int) -> IntArray:
    """Return the numbers of at most this many of n rows, evenly chosen, always the same ones."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def common_scale(X: FloatArray, objective: Reconstruction) -> tuple[FloatArray, float]:
    """Return latent points with the best common factor, centred, and their error."""
    rows = spread_rows(len(objective.share), MOST_SCALED_ROWS)
    X = X - X.mean(axis=0)
    factors = np.geomspace(1 / WIDEST, 1 / NARROWEST, GRID) / typical_spacing(X)
    errors = [objective.value_on(X * factor, rows) for factor in factors]
    best = int(np.argmin(errors))
    return X * factors[best], errors[best]


def scale_each_dimension(
    X: FloatArray, error: float, objective: Reconstruction
) -> tuple[FloatArray, float]:
    """Return latent points of that error with better factors, one per dimension, and theirs."""
    rows = spread_rows(len(objective.share), MOST_SCALED_ROWS)

    def error_and_slope(logs: FloatArray) -> tuple[float, FloatArray]:
        return objective.value_and_scale_slope(X * np.exp(logs), rows)

    found, lowest = better_factors(error_and_slope, X.shape[1], error)
    return (X, error) if found is None else (X * np.exp(found), lowest)


def better_factors(
    error_and_slope: Callable[[FloatArray], tuple[float, FloatArray]], q: int, error: float
) -> tuple[FloatArray | None, float]:
    """Return logarithms (q,) of factors that lower the error, None if none do, and what it is then.

    The function returns the error and its derivative for such logarithms, ``error`` for zeros.
    """
    # The optimiser's tolerances are absolute, so errors are measured in that of the start.
    unit = error if error > 0 else 1.0

    def in_units(logs: FloatArray) -> tuple[float, FloatArray]:
        value, slope = error_and_slope(logs)
        return value / unit, slope / unit

    found = optimize.minimize(
        in_units,
        np.zeros(q),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-MOST_STRETCH, MOST_STRETCH)] * q,
        options={"maxiter": MOST_STEPS},
    )
    lowest = float(found.fun * unit)
    return (found.x, lowest) if lowest < error else (None, error)


def typical_spacing(X: FloatArray) -> float:
    """Return the median distance to the nearest other latent point, away from zero."""
    rows = spread_rows(len(X), MOST_SCALED_ROWS)
    # Several neighbours, for the nearest may lie in the very same place.
    k = min(len(X), 4)
    distance = spatial.cKDTree(X).query(X[rows], k=k)[0]
    nearest = np.where(distance[:, 1:] > 0, distance[:, 1:], np.inf).min(axis=1)
    nearest = nearest[np.isfinite(nearest)]
    return float(np.median(nearest)) if len(nearest) else max(float(X.std()), 1e-12)


def stretch(own: FloatArray, scaled: FloatArray) -> FloatArray:
    """Return the factors (q,) between a user's latent points and scaled ones, never 0."""
    spread = own.std(axis=0)
    factors = scaled.std(axis=0) / np.where(spread > 0, spread, 1)
    return np.where(factors > 0, factors, 1)


def principal_axes(X: FloatArray) -> FloatArray:
    """Turn latent points so that their axes fall in variance; the model does not change by it."""
    X = X - X.mean(axis=0)
    _, axes = np.linalg.eigh(X.T.astype(np.float64) @ X.astype(np.float64))
    return (X @ fix_signs(axes[:, ::-1])).astype(X.dtype)

"""The evidence for an embedding: how likely the data is as a smooth image of it.

A Gaussian process maps latent points to data rows, and its largest likelihood over the three
numbers it has, the width, the signal variance and the noise variance, is the score (Harmeling 2007,
section 6). Embedding and data are whitened first, so these numbers can be compared between data
sets.

The cost of an evaluation grows with n³. Beyond ``max_points`` rows the score is that of random
subsets, disjoint where there are rows enough, with the standard error of their mean. Which rows
are drawn depends on ``n`` and ``random_state`` only, so embeddings of the same data are compared on
the same rows.

Each of D data columns is a draw from a process of zero mean with the covariance

    k(x, x') = s (exp(-||x - x'||² / (2 w²)) + ρ δ),     K = s C,  C = R + ρ I

with width w, signal variance s and noise variance ρ s. Its negative log likelihood

    nlml = (n D / 2) log 2π + (D / 2) log |K| + ½ tr(K⁻¹ Y Yᵀ)

is smallest over s at ``s = tr(C⁻¹ Y Yᵀ) / (n D)``, which leaves log w and log ρ to search. There,

    ∂ nlml / ∂θ = ½ tr(W ∂C/∂θ),     W = D C⁻¹ - C⁻¹ Y Yᵀ C⁻¹ / s

(Harmeling 2007, section 6; s held, as the derivative by it vanishes). One Cholesky factor of C
gives the determinant, C⁻¹Y and the inverse, whose entries the derivative by w needs one by one.

With whitened latent points X, this process and a standard normal prior on every point, which keeps
the points where they are a picture,

    E(X, w, ρ) = nlml(X, w, ρ) + ½ Σ_i ||x_i||²

is minimised over latent points, width and noise share together (Lawrence, "Probabilistic
non-linear principal component analysis with Gaussian process latent variable models", 2005):

    ∂nlml/∂x_i = -Σ_j W_ij R_ij (x_i - x_j) / w².
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import blas, cho_factor, cho_solve, lapack
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import check_count
from twofold.compiled import compiled
from twofold.engine.threads import single_threaded_blas
from twofold.metrics.checks import check_same_rows, checked_table
from twofold.selection.procrustes import whitened

# Widths and noise shares to start from: a smooth map, a rough but exact one, and mostly noise.
STARTS = ((1.0, 0.1), (0.3, 0.01), (3.0, 1.0))
# Further starts are drawn between these.
START_WIDTHS, START_SHARES = (0.05, 5.0), (1e-4, 1.0)
# All starts descend on this many rows; all rows see only the optima that are found there.
PILOT_POINTS = 500
# Two optima are one if they agree to this, in likelihood per entry and in logarithms of numbers.
SAME_VALUE, SAME_PLACE = 1e-4, 0.05
# Whitened points lie a few units wide. Beyond these widths the process is a straight line or a set
# of unrelated points; a noise below the least share of the signal is lost in the rounding of C.
WIDTHS = (1e-3, 1e3)
NOISE_SHARES = (1e-11, 1e6)
BOUNDS = np.log([WIDTHS, NOISE_SHARES])
# In nlml per entry. At noise shares of 1e-9 its rounding is about 5e-7, so less is not to be had;
# a slope of 1e-4 leaves it about 1e-8 above its minimum, whose curvature is about 1.
STOPPING = {"ftol": 1e-9, "gtol": 1e-4, "maxiter": 100}
FLAT = 5e-3
# Rows of the triangle that are filled at once: a block of 2,000 columns stays in the cache.
BLOCK = 64


@dataclass(frozen=True)
class Evidence:
    """How well an embedding explains the data; lower nlml and lower noise are better.

    ``nlml`` is the negative log likelihood of ``n_points`` rows (all, or those of a subset);
    ``nlml_per_entry`` is divided by ``n_points * n_kept``. An embedding that says nothing about the
    data has 1.42, as white noise. It falls with the number of rows: compare at equal ``n_points``.
    Its ``standard_error`` is over subsets, None where all rows were used; subsets that overlap
    (fewer rows than all of them together) make it too small.

    ``n_kept`` directions of the data were whitened, its numerical rank. Each counts the same, so
    the score of data with many directions of next to no variance is mostly about those; pass
    leading principal components instead of such data. ``width`` is in units of the whitened
    embedding; ``signal_variance`` is that of the process, ``noise_variance`` that of what the
    embedding leaves unexplained, where the whitened data has 1.

    ``starts`` has nlml per entry of the optimum each start led to (in a pilot of 500 rows of the
    first subset if that has more). Far apart, they say that the likelihood has several optima.

    Examples
    --------
    >>> from twofold.datasets import make_s_triangle
    >>> from twofold.selection import gp_evidence
    >>> bent = make_s_triangle(100, noise=0.02, random_state=0)
    >>> gp_evidence(bent.Y, bent.latent).nlml < gp_evidence(bent.Y, bent.latent[::-1]).nlml
    True
    """

    nlml: float
    nlml_per_entry: float
    width: float
    signal_variance: float
    noise_variance: float
    n_points: int
    standard_error: float | None
    n_kept: int
    converged: bool  # whether the search ended by itself, in every subset
    starts: tuple[float, ...]


def gp_evidence(
    Y: Any,
    X: Any,
    *,
    n_starts: int = 3,
    max_points: int = 2_000,
    repeats: int = 3,
    random_state: int | np.random.Generator | None = 0,
) -> Evidence:
    """Score an embedding by the likelihood of the data as a smooth image of it.

    Scores of embeddings of the same rows can be compared, without knowing the true one. What it
    rewards is a smooth way back from the embedding to the data. So a smooth distortion of the true
    embedding costs nothing, and surplus directions of the embedding are ignored.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_features)
        Data without missing entries.
    X : array-like of shape (n_samples, n_components)
        The embedding; row i belongs to row i of the data.
    n_starts : int
        How often the search starts again, from other widths and noise variances.
    max_points : int
        With more rows, random subsets of this size are scored.
    repeats : int
        How many subsets; their mean is reported.
    random_state : int, Generator or None
        Draws subsets, and starts beyond the third.

    Examples
    --------
    >>> from twofold.datasets import make_swiss_roll
    >>> from twofold.selection import gp_evidence
    >>> roll = make_swiss_roll(200, noise=0.1, random_state=0)
    >>> good, bad = gp_evidence(roll.Y, roll.latent), gp_evidence(roll.Y, roll.Y[:, :2])
    >>> good.nlml_per_entry < 0.1 < 0.9 < bad.nlml_per_entry
    True
    """
    check_count("n_starts", n_starts)
    check_count("repeats", repeats, 2)
    check_count("max_points", max_points, 3)
    table, embedding = checked_table(Y, "Y"), checked_table(X, "X")
    check_same_rows(table, "Y", embedding, "X")
    rng = np.random.default_rng(random_state)
    subsets = _subsets(len(table), max_points, repeats, rng)
    places = start_places(n_starts, rng)
    # With BLAS on one thread the result does not depend on how many there are.
    with single_threaded_blas():
        # Whitened before rows are drawn: all subsets are then measured in the same units.
        Y_w, X_w = whitened(Y, "Y", "numerical"), whitened(X, "X", "full")
        n, n_kept = Y_w.shape
        # n points in n - 1 directions are a simplex: whitening leaves nothing of such data.
        if n_kept >= n - 1:
            raise ValueError(
                f"`Y` has as many directions as {n} rows can have, {n_kept}, and whitened rows of "
                "any such data look the same. Pass fewer columns, e.g. the leading principal "
                "components."
            )
        results = [_best(Y_w[rows], X_w[rows], places) for rows in subsets]
    return _summary([best for best, _ in results], results[0][1], len(subsets[0]), n_kept)


def start_places(n_starts: int, rng: np.random.Generator) -> list[FloatArray]:
    """Return logarithms of widths and noise shares to start from."""
    places = [np.log(start) for start in STARTS[:n_starts]]
    low, high = np.log(np.transpose([START_WIDTHS, START_SHARES]))
    return places + [rng.uniform(low, high) for _ in range(n_starts - len(places))]


def _subsets(n: int, size: int, repeats: int, rng: np.random.Generator) -> list[IntArray]:
    """Return row numbers of the subsets to score; all rows if they are few enough."""
    if n <= size:
        return [np.arange(n)]
    if n >= size * repeats:
        return np.split(rng.permutation(n)[: size * repeats], repeats)
    return [rng.choice(n, size, replace=False) for _ in range(repeats)]


def _best(
    Y: FloatArray, X: FloatArray, places: list[FloatArray]
) -> tuple[Optimum, tuple[float, ...]]:
    """Return the best optimum of whitened rows, and nlml per entry of what each start led to."""
    # Thinned evenly, not the first rows, which may all be of one kind.
    pilot = np.unique(np.linspace(0, len(Y) - 1, PILOT_POINTS).round().astype(int))
    process = GaussianProcess(Y[pilot], X[pilot])
    found = [process.optimum(place) for place in places]
    size = len(pilot) * Y.shape[1]
    values = tuple(optimum.nlml / size for optimum in found)
    if len(pilot) < len(Y):
        process = GaussianProcess(Y, X)
        found = [process.optimum(optimum.place) for optimum in _distinct(found, size)]
    return min(found, key=lambda optimum: optimum.nlml), values


def _distinct(optima: list[Optimum], size: int) -> list[Optimum]:
    """Return the optima that differ, best first."""
    kept: list[Optimum] = []
    for optimum in sorted(optima, key=lambda optimum: optimum.nlml):
        is_known = any(
            abs(optimum.nlml - other.nlml) < SAME_VALUE * size
            or np.abs(optimum.place - other.place).max() < SAME_PLACE
            for other in kept
        )
        if not is_known:
            kept.append(optimum)
    return kept


def _summary(
    optima: list[Optimum], starts: tuple[float, ...], n_points: int, n_kept: int
) -> Evidence:
    """Return means over subsets; widths and variances are averaged as logarithms."""
    nlml = np.array([optimum.nlml for optimum in optima])
    size = n_points * n_kept
    error = None if len(nlml) == 1 else float(nlml.std(ddof=1) / np.sqrt(len(nlml)) / size)
    log_width, log_share = np.mean([optimum.place for optimum in optima], axis=0)
    signal = np.exp(np.mean([np.log(optimum.signal_variance) for optimum in optima]))
    return Evidence(
        nlml=float(nlml.mean()),
        nlml_per_entry=float(nlml.mean() / size),
        width=float(np.exp(log_width)),
        signal_variance=float(signal),
        noise_variance=float(signal * np.exp(log_share)),
        n_points=n_points,
        standard_error=error,
        n_kept=n_kept,
        converged=all(optimum.converged for optimum in optima),
        starts=starts,
    )


# ---- the process ---------------------------------------------------------------------------------


class Optimum(NamedTuple):
    """Where the likelihood is largest."""

    nlml: float
    place: FloatArray  # (2,) the logarithms of width and noise share
    signal_variance: float
    converged: bool


class GaussianProcess:
    """Negative log likelihood of Y (n, D) over latent points X (n, q), and its derivatives."""

    def __init__(self, Y: FloatArray, X: FloatArray) -> None:
        self.Y = np.asfortranarray(Y)
        self.sq_dists = cdist(X, X, "sqeuclidean")
        # Only the lower triangles are ever filled or read.
        self.correlation = np.empty_like(self.sq_dists)
        self.factor = np.empty_like(self.sq_dists)

    def value(self, place: FloatArray) -> tuple[float, float]:
        """Return nlml at (log w, log ρ) and the signal variance that belongs to it."""
        nlml, signal, _ = self._solve(place)
        return nlml, signal

    def value_and_grad(self, place: FloatArray) -> tuple[float, FloatArray]:
        """Return nlml at (log w, log ρ) and its derivatives by these."""
        nlml, signal, A = self._solve(place)
        width, noise_share = np.exp(place)
        # LAPACK counts columns first, so it sees the lower triangle of a row-major array as upper.
        W, _ = lapack.dpotri(self.factor.T, lower=0, overwrite_c=1)
        D = self.Y.shape[1]
        W = blas.dsyrk(-1.0 / signal, A, beta=float(D), c=W, lower=0, overwrite_c=1)
        trace, moment = _contract(W.T, self.correlation, self.sq_dists)
        # The triangle without its diagonal counts twice, which takes up the half of the formula.
        return nlml, np.array([moment / width**2, 0.5 * noise_share * trace])

    def _solve(self, place: FloatArray) -> tuple[float, float, FloatArray]:
        """Return nlml, the signal variance and C⁻¹Y, and leave the Cholesky factor behind."""
        width, noise_share = np.exp(place)
        _fill_triangle(self.correlation, self.factor, self.sq_dists, -0.5 / width**2)
        diagonal = np.einsum("ii->i", self.factor)  # a view, which sees the Cholesky factor later
        diagonal[:] = 1.0 + noise_share
        factor, info = lapack.dpotrf(self.factor.T, lower=0, overwrite_a=1, clean=0)
        if info:
            raise np.linalg.LinAlgError(
                f"The covariance of {len(self.Y)} points lost its rank to rounding at width "
                f"{width:.3g} and noise share {noise_share:.3g}. Pass fewer points."
            )
        A, _ = lapack.dpotrs(factor, self.Y, lower=0)
        n, D = self.Y.shape
        signal = float(np.vdot(A, self.Y)) / (n * D)
        log_det = 2.0 * float(np.log(diagonal).sum())
        nlml = 0.5 * n * D * (math.log(2 * math.pi * signal) + 1.0) + 0.5 * D * log_det
        return nlml, signal, A

    def optimum(self, start: FloatArray) -> Optimum:
        """Descend from (log w, log ρ); the bounds are wide enough to stop at on degenerate data."""
        n, D = self.Y.shape

        def per_entry(place: FloatArray) -> tuple[float, FloatArray]:
            nlml, grad = self.value_and_grad(place)
            return nlml / (n * D), grad / (n * D)

        limits = {"bounds": BOUNDS, "options": STOPPING}
        found = minimize(per_entry, start, jac=True, method="L-BFGS-B", **limits)
        nlml, signal = self.value(found.x)
        # With next to no noise rounding can end the line search; what counts is the slope there.
        converged = bool(found.success) or float(np.abs(found.jac).max()) < FLAT
        return Optimum(nlml, found.x, signal, converged)


def _fill_triangle(
    correlation: FloatArray, factor: FloatArray, sq_dists: FloatArray, scale: float
) -> None:
    """Write exp(scale · distance²) into the lower triangles of two arrays (n, n)."""
    n = len(sq_dists)
    for first in range(0, n, BLOCK):
        last = min(first + BLOCK, n)
        block = correlation[first:last, :last]
        np.multiply(sq_dists[first:last, :last], scale, out=block)
        np.exp(block, out=block)
        factor[first:last, :last] = block


@compiled
def _contract(W: FloatArray, correlation: FloatArray, sq_dists: FloatArray) -> tuple[float, float]:
    """Return the trace of W and Σ_{j < i} W_ij R_ij ||x_i - x_j||²."""
    trace, moment = 0.0, 0.0
    for i in range(W.shape[0]):
        trace += W[i, i]
        for j in range(i):
            moment += W[i, j] * correlation[i, j] * sq_dists[i, j]
    return trace, moment


# ---- moving the latent points -------------------------------------------------------------------


def descend(Y: FloatArray, X: FloatArray, start: FloatArray, max_iter: int) -> FloatArray:
    """Return latent points (n, q) that explain whitened Y (n, D) better than whitened X (n, q)."""
    n, q = X.shape
    bounds = [(None, None)] * (n * q) + [tuple(bound) for bound in BOUNDS]

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        latent = flat[:-2].reshape(n, q)
        value, by_latent, by_place = latent_value_and_grad(Y, latent, flat[-2:])
        # Per entry, so that the optimiser's tolerances mean the same for all data.
        return value / Y.size, np.concatenate([by_latent.ravel(), by_place]) / Y.size

    first, options = np.concatenate([X.ravel(), start]), {"maxiter": max_iter}
    found = minimize(objective, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(found.x[:-2].reshape(n, q))


def latent_value_and_grad(
    Y: FloatArray, X: FloatArray, place: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Return E at (X, log w, log ρ) and its derivatives by X (n, q) and by the two logarithms."""
    n, D = Y.shape
    width, noise_share = np.exp(place)
    sq_dists = cdist(X, X, "sqeuclidean") / width**2
    R = np.exp(-0.5 * sq_dists)
    factor = cho_factor(R + noise_share * np.eye(n), lower=True)
    A = cho_solve(factor, Y)
    signal = float(np.vdot(A, Y)) / (n * D)
    log_det = 2.0 * float(np.log(np.diag(factor[0])).sum())
    nlml = 0.5 * n * D * (math.log(2 * math.pi * signal) + 1.0) + 0.5 * D * log_det
    W = D * cho_solve(factor, np.eye(n)) - A @ A.T / signal
    M = W * R
    by_latent = (M @ X - M.sum(axis=1)[:, None] * X) / width**2 + X
    by_place = 0.5 * np.array([float((M * sq_dists).sum()), noise_share * float(np.trace(W))])
    return nlml + 0.5 * float((X**2).sum()), by_latent, by_place

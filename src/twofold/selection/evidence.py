"""The evidence for an embedding: how likely the data is as a smooth image of it.

A Gaussian process maps latent points to data rows, and its largest likelihood over the three
numbers it has, the width, the signal variance and the noise variance, is the score (Harmeling 2007,
section 6; :mod:`twofold.selection.gaussian_process` has the formulas). Embedding and data are
whitened first, so these numbers can be compared between data sets.

The cost of an evaluation grows with n³. Beyond ``max_points`` rows the score is that of random
subsets, disjoint where there are rows enough, with the standard error of their mean. Which rows
are drawn depends on ``n`` and ``random_state`` only, so embeddings of the same data are compared on
the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine.threads import single_threaded_blas
from twofold.metrics.checks import check_same_rows, checked_table
from twofold.selection.gaussian_process import GaussianProcess, Optimum
from twofold.selection.procrustes import whitened

# Widths and noise shares to start from: a smooth map, a rough but exact one, and mostly noise.
STARTS = ((1.0, 0.1), (0.3, 0.01), (3.0, 1.0))
# Further starts are drawn between these.
START_WIDTHS, START_SHARES = (0.05, 5.0), (1e-4, 1.0)
# All starts descend on this many rows; all rows see only the optima that are found there.
PILOT_POINTS = 500
# Two optima are one if they agree to this, in likelihood per entry and in logarithms of numbers.
SAME_VALUE, SAME_PLACE = 1e-4, 0.05


@dataclass(frozen=True)
class Evidence:
    """How well an embedding explains the data; lower nlml and lower noise are better.

    Attributes
    ----------
    nlml : float
        Negative log likelihood of ``n_points`` rows, natural logarithm.
    nlml_per_entry : float
        The same divided by ``n_points * n_kept``. An embedding that says nothing of the data has
        1.42, as white noise. It falls with the number of rows: compare at equal ``n_points``.
    width : float
        Width of the process in units of the whitened embedding, whose standard deviation is 1.
    signal_variance : float
        Variance of the process; the whitened data has variance 1.
    noise_variance : float
        Variance of what the embedding leaves unexplained.
    n_points : int
        Rows in an evaluation: all, or those of a subset.
    standard_error : float or None
        Of ``nlml_per_entry``, over subsets; None where all rows were used. Subsets that overlap
        (fewer rows than all of them together) make it too small.
    n_kept : int
        Directions of the data that were whitened, its numerical rank. Each counts the same, so the
        score of data with many directions of next to no variance is mostly about those; pass
        leading principal components instead of such data.
    converged : bool
        Whether the search ended by itself, in every subset.
    starts : tuple of float
        nlml per entry of the optimum each start led to (in a pilot of 500 rows of the first subset
        if that has more). Far apart, they say that the likelihood has several optima.
    """

    nlml: float
    nlml_per_entry: float
    width: float
    signal_variance: float
    noise_variance: float
    n_points: int
    standard_error: float | None
    n_kept: int
    converged: bool
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
    rewards is a smooth way back from the embedding to the data. So it does not mind a smooth
    distortion of the true embedding, and it says nothing of directions the embedding has too many.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_features)
        Data without missing entries.
    X : array-like of shape (n_samples, n_components)
        The embedding; row i belongs to row i of the data.
    n_starts : int
        How often the search begins anew, from other widths and noise variances.
    max_points : int
        With more rows, random subsets of this size are scored.
    repeats : int
        How many subsets; their mean is reported.
    random_state : int, Generator or None
        Draws subsets, and starts beyond the third.

    Raises
    ------
    ValueError
        If the embedding has a direction without variance (its rank is named), rows do not match,
        or there are too few of them for the directions of the data.

    Examples
    --------
    >>> from twofold.datasets import make_swiss_roll
    >>> from twofold.selection import gp_evidence
    >>> roll = make_swiss_roll(200, noise=0.1, random_state=0)
    >>> good, bad = gp_evidence(roll.Y, roll.latent), gp_evidence(roll.Y, roll.Y[:, :2])
    >>> good.nlml_per_entry < 0.1 < 0.9 < bad.nlml_per_entry
    True
    """
    for name, value, least in (("n_starts", n_starts, 1), ("repeats", repeats, 2)):
        if value < least:
            raise ValueError(f"`{name}` must be at least {least}; got {value!r}.")
    if max_points < 3:
        raise ValueError(f"`max_points` must be at least 3; got {max_points!r}.")
    table, embedding = checked_table(Y, "Y"), checked_table(X, "X")
    check_same_rows(table, "Y", embedding, "X")
    rng = np.random.default_rng(random_state)
    subsets = _subsets(len(table), max_points, repeats, rng)
    places = start_places(n_starts, rng)
    # With BLAS on one thread the result does not depend on how many there are.
    with single_threaded_blas():
        # Whitened before rows are drawn: all subsets are then measured in the same units.
        Y_w, X_w = whitened(Y, "Y", "numerical"), whitened(X, "X", "full")
        _check_rank(*Y_w.shape)
        results = [_best(Y_w[rows], X_w[rows], places) for rows in subsets]
    return _summary([best for best, _ in results], results[0][1], len(subsets[0]), Y_w.shape[1])


def _check_rank(n: int, n_kept: int) -> None:
    """Refuse data that whitening leaves nothing of: n points in n - 1 directions are a simplex."""
    if n_kept >= n - 1:
        raise ValueError(
            f"`Y` has as many directions as {n} rows can have, {n_kept}, and whitened rows of any "
            "such data look the same. Pass fewer columns, e.g. the leading principal components."
        )


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
    is_whole = len(pilot) == len(Y)
    process = GaussianProcess(Y[pilot], X[pilot])
    found = [process.optimum(place) for place in places]
    size = len(pilot) * Y.shape[1]
    values = tuple(optimum.nlml / size for optimum in found)
    if not is_whole:
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

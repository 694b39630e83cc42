"""How many latent dimensions the data has: a rule, its confirmation, and an honest "none".

The rule looks at neighbourhoods (:mod:`twofold.selection.local_spectra`), from small to large. At
every scale the dimension is the first q with a clear gap, ``g_q ≥ 2``: the q-th local direction
carries at least twice as much of the variance, compared with the next one, as it would of isotropic
rows. The smallest scale decides that has a clear gap and whose next larger scale finds the same q.
Below it noise hides the manifold, far above it folds do. Scales at which neighbourhoods reach into
other clusters do not count. Rows without any such scale, a Gaussian cloud for example, get no
answer.

The answer is confirmed if rows are reconstructed from q latent dimensions clearly better than from
q - 1: the leave-one-out error of kernel regression on principal components or Isomap, whichever
has less, falls by at least two standard errors of the paired differences. That error alone is no
rule: kernel regression needs ever more rows as dimensions grow, so it stops falling too early for
manifolds of four or five dimensions, and curves that fill a cloud reconstruct it well.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import Isomap

from twofold.array_types import FloatArray
from twofold.metrics.checks import checked_table
from twofold.process_settings import without_warnings
from twofold.selection.local_spectra import LocalScale, local_scales, of_one_piece
from twofold.selection.scores import linear_error, spread_of
from twofold.ukr import UKR, upgrade

if TYPE_CHECKING:
    import pandas as pd

CLEAR_GAP = 2.0
CLEAR_FALL = 2.0
# Beyond this a number of times says no more than "by far".
BY_FAR = 1e3
# Neighbourhoods that more often reach across gaps show how groups lie, not what they are.
MOSTLY_ACROSS_GAPS = 0.5
# Without two scales there is nothing that could agree.
FEWEST_ROWS = 40
# More rows are drawn from: neighbourhoods then, and reconstructions of fewer still.
MOST_ROWS, MOST_RECONSTRUCTED = 3_000, 500
USUAL_MOST = 10
ISOMAP_NEIGHBORS = 10
# What to draw if the data does not say: a map to look at.
MAP_DIMENSION = 2


@dataclass(frozen=True, eq=False)
class DimensionChoice:
    """How many latent dimensions the data has; made by :func:`choose_dimension`.

    Attributes
    ----------
    dimension : int or None
        The dimension, None if neighbourhoods show none that is smaller than the number of columns.
    confident : bool
        Whether two scales in a row agree on it and reconstructions confirm it.
    reason : str
        Why, with the numbers.
    scores : DataFrame
        By dimension q: ``gap`` at the scale that decided (at the one of the largest gap if none
        did), ``reconstruction_error`` and its ``standard_error``, and ``linear_error``, what q
        principal components leave open; the errors as shares of the variance.
    scales : DataFrame
        By size of neighbourhoods, without those that reach into other clusters: the ``dimension``
        with the first clear gap (0 if none), its ``gap``, and the ``neighbor_dimension`` by
        distances alone.
    """

    dimension: int | None
    confident: bool
    reason: str
    scores: pd.DataFrame
    scales: pd.DataFrame

    def plot(self, ax: Any = None) -> Any:
        """Draw gaps and errors; see :func:`twofold.plots.dimension_choice`."""
        # Looked up by name: plots stand above this layer and are only needed here.
        return import_module("twofold.plots").dimension_choice(self, ax=ax)

    def __str__(self) -> str:
        return self.reason


def choose_dimension(
    Y: Any,
    *,
    max_dimension: int | None = None,
    random_state: int | None = 0,
    n_jobs: int | None = None,
) -> DimensionChoice:
    """Find the number of latent dimensions, or say that there is no telling.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_features)
        Data without missing entries. Scale columns first if their units differ.
    max_dimension : int or None, default=None
        The largest answer; None means ten. Always less than the number of columns.
    random_state : int or None, default=0
        Draws the rows that are looked at if there are many.
    n_jobs : int or None, default=None

    Returns
    -------
    DimensionChoice

    Examples
    --------
    >>> from twofold.datasets import make_random_manifold
    >>> from twofold.selection import choose_dimension
    >>> sheet = make_random_manifold(300, 2, 8, noise=0.03, random_state=0)
    >>> choice = choose_dimension(sheet.Y)
    >>> choice.dimension, choice.confident
    (2, True)
    """
    table = checked_table(Y, "Y")
    n_columns = table.shape[1]
    most = USUAL_MOST if max_dimension is None else max_dimension
    if most < 1:
        raise ValueError(f"`max_dimension` must be at least 1; got {max_dimension!r}.")
    rng = np.random.default_rng(random_state)
    # A row that is there several times has itself for neighbours.
    rows = _drawn(np.unique(table, axis=0), MOST_ROWS, rng)
    if len(rows) < FEWEST_ROWS or n_columns < 2:
        why = (
            f"Neighbourhoods need at least {FEWEST_ROWS} different rows; there are {len(rows)}."
            if n_columns > 1
            else "One column has one dimension."
        )
        return _no_answer(why)
    most = min(most, n_columns - 1)
    scales = of_one_piece(local_scales(rows, random_state))
    found = [first_clear_gap(scale, most) for scale in scales]
    q, at = _agreed(found)
    curve = _reconstructions(
        _drawn(rows, MOST_RECONSTRUCTED, rng), min(most, (q or MAP_DIMENSION) + 2), n_jobs
    )
    fall = None if q is None else _fall(curve, q)
    return _choice(scales, found, q, at, curve, fall, rows)


def dimension_of(Y: FloatArray, random_state: int | None = 0, n_jobs: int | None = None) -> int:
    """Return the dimension for a model of Y (n, D), in which NaN marks missing entries.

    Where :func:`choose_dimension` finds none it is 2, a map to look at, and a warning says so.

    Parameters
    ----------
    Y : ndarray of shape (n, D)
    random_state : int or None
    n_jobs : int or None

    Returns
    -------
    int
    """
    Y = np.asarray(Y, dtype=np.float64)
    seen = ~np.isnan(Y)
    complete = Y[seen.all(axis=1)]
    if len(complete) < FEWEST_ROWS:
        counts = np.maximum(seen.sum(axis=0), 1)
        complete = np.where(seen, Y, np.where(seen, Y, 0.0).sum(axis=0) / counts)
    choice = choose_dimension(complete, random_state=random_state, n_jobs=n_jobs)
    if choice.dimension:
        return choice.dimension
    taken = int(min(MAP_DIMENSION, Y.shape[1]))
    if Y.shape[1] > 1:
        warnings.warn(
            f"The data does not say how many dimensions it has; {taken} are taken, a map to look "
            f"at. {choice.reason} Set `n_components` to choose yourself.",
            UserWarning,
            stacklevel=2,
        )
    return taken


def first_clear_gap(scale: LocalScale, most: int) -> int:
    """Return the first dimension with a clear gap, 0 if there is none."""
    clear = np.flatnonzero(scale.gaps(most) >= CLEAR_GAP)
    return int(clear[0]) + 1 if len(clear) else 0


def _agreed(found: list[int]) -> tuple[int | None, int]:
    """Return the dimension two scales in a row agree on, and the place of the first of them."""
    for place, (here, next_one) in enumerate(pairwise(found)):
        if here and here == next_one:
            return here, place
    return None, 0


def _drawn(rows: FloatArray, most: int, rng: np.random.Generator) -> FloatArray:
    return rows if len(rows) <= most else rows[rng.permutation(len(rows))[:most]]


# ---- confirming ---------------------------------------------------------------------------------


def _reconstructions(rows: FloatArray, most: int, n_jobs: int | None) -> dict[int, FloatArray]:
    """Return the leave-one-out errors (n,) of rows for q = 1 … most, shares of the variance."""
    pictures = [PCA(most, random_state=0).fit_transform(rows)]
    # A graph in pieces is joined by Isomap itself, which is good enough to compare by.
    with without_warnings(Warning):
        k = min(ISOMAP_NEIGHBORS, len(rows) - 1)
        pictures.append(Isomap(n_neighbors=k, n_components=most, n_jobs=n_jobs).fit_transform(rows))
    curve = {}
    for q in range(1, most + 1):
        # Isomap has fewer coordinates where its distances are those of a line.
        usable = [X[:, :q] for X in pictures if (X[:, :q].std(axis=0) > 0).all()]
        models = [upgrade(X, rows, n_jobs=n_jobs, verbose=False) for X in usable]
        best = min(models, key=lambda model: float(model.objective_))
        curve[q] = _row_errors(best, rows) / spread_of(rows)
    return curve


def _row_errors(model: UKR, Y: FloatArray) -> FloatArray:
    """Return the squared error (n,) of each row reconstructed from the others."""
    X = model.latent_ * model.latent_scale_
    sq_dists = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    np.fill_diagonal(sq_dists, np.inf)
    # Relative to the nearest row, so that rows far from all others do not underflow.
    W = np.exp(-0.5 * (sq_dists - sq_dists.min(axis=1, keepdims=True)))
    F = (W @ Y) / W.sum(axis=1, keepdims=True)
    return np.asarray(((Y - F) ** 2).sum(axis=1))


def _fall(curve: dict[int, FloatArray], q: int) -> float:
    """Return by how many standard errors q dimensions reconstruct better than q - 1."""
    n = len(curve[q])
    # No dimension at all is the mean of the rows, whose error is the whole variance.
    differences = (curve[q - 1] if q > 1 else 1.0) - curve[q]
    error = float(differences.std(ddof=1) / np.sqrt(n))
    return float(differences.mean()) / max(error, np.finfo(float).tiny)


# ---- saying -------------------------------------------------------------------------------------


def _choice(
    scales: list[LocalScale],
    found: list[int],
    q: int | None,
    at: int,
    curve: dict[int, FloatArray],
    fall: float | None,
    rows: FloatArray,
) -> DimensionChoice:
    import pandas as pd

    most = max(curve)
    everywhere = max(most, *found)
    if q is None:
        at = int(np.argmax([scale.gaps(everywhere).max(initial=0.0) for scale in scales]))
    gaps = scales[at].gaps(most)
    scores = pd.DataFrame(
        {
            "gap": np.concatenate([gaps, np.full(most - len(gaps), np.nan)]),
            "reconstruction_error": [curve[d].mean() for d in curve],
            "standard_error": [curve[d].std(ddof=1) / np.sqrt(len(curve[d])) for d in curve],
            "linear_error": [linear_error(rows, d) for d in curve],
        },
        index=pd.Index(list(curve), name="dimension"),
    )
    by_scale = pd.DataFrame(
        {
            "dimension": found,
            "gap": [
                float(scale.gaps(d)[-1]) if d else float(scale.gaps(everywhere).max(initial=0.0))
                for scale, d in zip(scales, found, strict=True)
            ],
            "neighbor_dimension": [scale.neighbor_dimension for scale in scales],
        },
        index=pd.Index([scale.n_neighbors for scale in scales], name="n_neighbors"),
    )
    reaches_across = scales[at].across_gaps > MOSTLY_ACROSS_GAPS
    confirmed = fall is not None and fall >= CLEAR_FALL and not reaches_across
    return DimensionChoice(
        q, confirmed, _reason(q, scales[at], scores, by_scale, fall), scores, by_scale
    )


def _reason(
    q: int | None, scale: LocalScale, scores: pd.DataFrame, by_scale: pd.DataFrame, fall: Any
) -> str:
    if q is None:
        largest = by_scale["gap"].max()
        if scale.across_gaps > MOSTLY_ACROSS_GAPS:
            return (
                "No confident answer: the rows come in tight groups of fewer than "
                f"{scale.n_neighbors}, too small to tell what they are like inside."
            )
        return (
            "No confident answer: at no two scales in a row is there a dimension whose local "
            f"direction stands out (largest gap {largest:.2g}, {CLEAR_GAP:g} would be clear). The "
            "rows fill all directions, or noise hides what they do not fill."
        )
    gap, error = scores["gap"][q], scores["reconstruction_error"][q]
    found = (
        f"{q} dimension{'s' if q > 1 else ''}: among the {scale.n_neighbors} nearest rows "
        f"direction {q} stands out from the next {_times(gap)} compared with isotropic rows, and "
        f"larger neighbourhoods agree. {q} leave {100 * error:.3g} % of the variance open "
        f"({100 * scores['linear_error'][q]:.3g} % if flat)"
    )
    if scale.across_gaps > MOSTLY_ACROSS_GAPS:
        return (
            f"Not confident. {found}, but the rows come in tight groups of fewer than "
            f"{scale.n_neighbors}: that is how groups lie, and groups are too small to tell more."
        )
    if fall >= CLEAR_FALL:
        much = f"{fall:.3g} standard errors" if fall < BY_FAR else "by far"
        return f"{found}, {much} less than {q - 1}."
    return (
        f"Not confident. {found}, but that is not clearly less than {q - 1} do ({fall:.2g} "
        "standard errors)."
    )


def _times(gap: float) -> str:
    return f"by a factor of {gap:.3g}" if gap < BY_FAR else "by far"


def _no_answer(why: str) -> DimensionChoice:
    import pandas as pd

    columns = ["gap", "reconstruction_error", "standard_error", "linear_error"]
    scores = pd.DataFrame(columns=columns, index=pd.Index([], name="dimension"), dtype=float)
    by_scale = pd.DataFrame(
        columns=["dimension", "gap", "neighbor_dimension"],
        index=pd.Index([], name="n_neighbors"),
        dtype=float,
    )
    return DimensionChoice(None, False, f"No confident answer. {why}", scores, by_scale)

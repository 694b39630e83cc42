"""How many latent dimensions the data has: a rule, its confirmation, and an honest "none".

The rule looks at neighbourhoods (:mod:`twofold.metrics.local_dimension`).

The answer is confirmed if rows are reconstructed from q latent dimensions clearly better than from
q - 1: the leave-one-out error of kernel regression on principal components or Isomap, whichever
has less, falls by at least two standard errors of the paired differences. That error alone is no
rule: kernel regression needs ever more rows as dimensions grow, so it stops falling too early for
manifolds of four or five dimensions, and curves that fill a cloud reconstruct it well.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.manifold import Isomap

from twofold.array_types import FloatArray
from twofold.checks.parameters import check_count
from twofold.checks.rows import check_differences
from twofold.engine.threads import single_threaded
from twofold.metrics import local_dimension as local
from twofold.metrics.checks import checked_table
from twofold.process_settings import without_warnings
from twofold.selection.scores import dominant_column, linear_error, spread_of
from twofold.selection.tables import numbers_of_table
from twofold.ukr import UKR, upgrade

CLEAR_FALL = 2.0
# Beyond this a number of times says no more than "by far".
BY_FAR = 1e3
# Reconstructions are of fewer rows still than neighbourhoods.
MOST_RECONSTRUCTED = 500
ISOMAP_NEIGHBORS = 10
SCORES = ["gap", "reconstruction_error", "standard_error", "linear_error"]
SCALES = ["dimension", "gap", "neighbor_dimension"]


@dataclass(frozen=True, eq=False)
class DimensionChoice:
    """How many latent dimensions the data has; made by :func:`choose_dimension`.

    ``dimension`` is None if neighbourhoods show none that is smaller than the number of columns;
    it is ``confident`` if two scales in a row agree on it and reconstructions confirm it.
    ``reason`` says why, with the numbers.

    ``scores`` has, by dimension q, the ``gap`` at the scale that decided (at the one of the largest
    gap if none did), ``reconstruction_error`` and its ``standard_error``, and ``linear_error``,
    what q principal components leave open; the errors as shares of the variance. ``scales`` has, by
    size of neighbourhoods, without those that reach into other clusters, the ``dimension`` with the
    first clear gap (0 if none), its ``gap``, and the ``neighbor_dimension`` by distances alone.

    Examples
    --------
    >>> from twofold.datasets import make_random_manifold
    >>> from twofold.selection import choose_dimension
    >>> choice = choose_dimension(make_random_manifold(300, 2, 10, noise=0.02, random_state=0).Y)
    >>> choice.dimension, choice.confident
    (2, True)
    """

    dimension: int | None
    confident: bool
    reason: str
    scores: pd.DataFrame
    scales: pd.DataFrame

    def plot(self, ax: Any = None) -> Any:
        """Draw gaps and errors; see :func:`twofold.plots.dimension_choice`."""
        from twofold import plots  # with matplotlib, which is only needed here

        return plots.dimension_choice(self, ax=ax)

    def __str__(self) -> str:
        return self.reason


def choose_dimension(
    Y: Any,
    *,
    max_dimension: int | None = None,
    kinds: Mapping[str, Any] | None = None,
    weights: Mapping[str, float] | None = None,
    random_state: int | None = 0,
    n_jobs: int | None = -1,
) -> DimensionChoice:
    """Find the number of latent dimensions, or say that the data does not determine it.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_features)
        Data without missing entries. Scale columns first if their units differ; in a frame with
        categories or dates all columns count equally, as in :class:`twofold.Mixed`, and missing
        entries are filled by principal components, with a warning.
    max_dimension : int or None, default=None
        The largest answer; None means ten. Always less than the number of columns.
    kinds, weights : dict, default=None
        Of columns of a frame, as in :class:`twofold.Mixed`; all columns are then scaled as there.
    random_state : int or None, default=0
        Draws the rows that are looked at if there are many.
    n_jobs : int or None, default=-1

    Examples
    --------
    >>> from twofold.datasets import make_random_manifold
    >>> from twofold.selection import choose_dimension
    >>> sheet = make_random_manifold(300, 2, 8, noise=0.03, random_state=0)
    >>> choice = choose_dimension(sheet.Y)
    >>> choice.dimension, choice.confident
    (2, True)
    """
    table = checked_table(numbers_of_table(Y, kinds, weights), "Y")
    check_differences(table)
    most = local.USUAL_MOST if max_dimension is None else max_dimension
    check_count("max_dimension", most)
    rng = np.random.default_rng(random_state)
    # A row that is there several times has itself for neighbours.
    rows = local.drawn_rows(np.unique(table, axis=0), local.MOST_ROWS, rng)
    with single_threaded():  # the rows are few
        found = local.local_dimension(rows, most, random_state)
    if isinstance(found, str):
        by_dimension, by_size = pd.Index([], name="dimension"), pd.Index([], name="n_neighbors")
        scores = pd.DataFrame(index=by_dimension, columns=SCORES, dtype=float)
        scales = pd.DataFrame(index=by_size, columns=SCALES, dtype=float)
        return DimensionChoice(None, False, found, scores, scales)
    q = found.dimension
    largest = min(most, table.shape[1] - 1, (q or local.MAP_DIMENSION) + 2)
    with single_threaded():
        curve = _reconstructions(local.drawn_rows(rows, MOST_RECONSTRUCTED, rng), largest, n_jobs)
    scores, scales = _scores(found, curve, rows), _scales(found)
    if q is None:
        return DimensionChoice(None, False, found.why_none(), scores, scales)
    # No dimension at all is the mean of the rows, whose error is the whole variance.
    differences = (curve[q - 1] if q > 1 else 1.0) - curve[q]
    error = float(differences.std(ddof=1) / np.sqrt(len(differences)))
    # By how many standard errors q dimensions reconstruct better than q - 1.
    fall = float(differences.mean()) / max(error, np.finfo(float).tiny)
    confident = fall >= CLEAR_FALL and not found.decided.shows_groups
    reason = _reason(q, found.decided, scores, fall)
    if note := dominant_column(table):
        # What one column decides alone says nothing about the others.
        confident, reason = False, f"{reason} {note}"
        warnings.warn(note, UserWarning, stacklevel=2)
    return DimensionChoice(q, confident, reason, scores, scales)


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


def _scores(
    found: local.LocalDimension, curve: dict[int, FloatArray], rows: FloatArray
) -> pd.DataFrame:
    """Return what is known of each dimension."""
    gaps = found.decided.gaps(max(curve))
    return pd.DataFrame(
        {
            "gap": np.concatenate([gaps, np.full(len(curve) - len(gaps), np.nan)]),
            "reconstruction_error": [errors.mean() for errors in curve.values()],
            "standard_error": [e.std(ddof=1) / np.sqrt(len(e)) for e in curve.values()],
            "linear_error": [linear_error(rows, q) for q in curve],
        },
        index=pd.Index(list(curve), name="dimension"),
    )


def _scales(found: local.LocalDimension) -> pd.DataFrame:
    """Return what neighbourhoods of each size say."""
    return pd.DataFrame(
        {
            "dimension": found.found,
            "gap": found.gaps(),
            "neighbor_dimension": [scale.neighbor_dimension for scale in found.scales],
        },
        index=pd.Index([scale.n_neighbors for scale in found.scales], name="n_neighbors"),
    )


def _reason(q: int, scale: local.LocalScale, scores: pd.DataFrame, fall: float) -> str:
    gap, error = scores["gap"][q], scores["reconstruction_error"][q]
    times = f"by a factor of {gap:.3g}" if gap < BY_FAR else "by far"
    found = (
        f"{q} dimension{'s' if q > 1 else ''}: among the {scale.n_neighbors} nearest rows "
        f"direction {q} stands out from the next {times} compared with isotropic rows, and "
        f"larger neighbourhoods agree. {q} leave {100 * error:.3g} % of the variance open "
        f"({100 * scores['linear_error'][q]:.3g} % if flat)"
    )
    if scale.shows_groups:
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

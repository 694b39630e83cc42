"""How well an embedding keeps neighbours, for every neighbourhood size.

Formulas and sources: :mod:`twofold.metrics.curves`. Ranks are exact. For many points they are seen
from a random sample of *query* points only, among all points; every score is then a mean over
queries with a standard error.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from joblib import cpu_count
from sklearn.utils import check_random_state

from twofold.array_types import FloatArray, IntArray
from twofold.metrics.checks import check_neighbors, check_same_rows, checked_table
from twofold.metrics.curves import RankCurves
from twofold.metrics.ranks import N_SUMS, scaled_columns, tally_ranks

# Up to here every point is a query unless `sample` says otherwise.
MOST_EXACT = 20_000
# Beyond, as many queries as take about this much time of one core. The constants are measured:
# sorting and counting take 75 ns a point and query, distances 0.3 ns an entry.
BUDGET_NS, SORT_NS, ENTRY_NS = 1e10, 75.0, 0.3
FEWEST_QUERIES = 200

# Up to so many points the whole matrix is kept, beyond a block of the nearest ranks.
MOST_WHOLE, DEFAULT_BLOCK = 2_000, 500

# Queries are tallied in groups, each left out in turn for the standard error. Many points get
# fewer groups, as each has sums of its own.
MOST_GROUPS, FEWEST_GROUPS, GROUP_ENTRIES = 20, 8, 4_000_000
MOST_THREADS = 16  # each holds a copy of the matrix

CURVES = (
    "q_nx",
    "r_nx",
    "lcmc",
    "b_nx",
    "e_nx",
    "intrusions",
    "extrusions",
    "trustworthiness",
    "continuity",
)
NUMBERS = ("auc", "q_local", "q_global")


@dataclass(frozen=True, eq=False, repr=False)
class CoRanking:
    """What an embedding does to neighbourhoods of every size; made by :func:`coranking`.

    Each curve is a method: without an argument it returns the value for every size K (entry K - 1
    belongs to K), with a size or several the values for those.

    Attributes
    ----------
    Q : ndarray of shape (K, K)
        ``Q[k - 1, l - 1]`` counts pairs whose rank is k in the data and l in the embedding. Below
        the diagonal points came closer (intrusions), above they went farther away (extrusions).
    queries : ndarray
        The points from which ranks were seen, all of them unless a sample was taken.
    n_samples : int
        Number of points.
    """

    Q: IntArray
    queries: IntArray
    n_samples: int
    _whole: RankCurves = field(repr=False)
    _groups: tuple[RankCurves, ...] = field(repr=False)

    @property
    def is_exact(self) -> bool:
        """Whether every point was a query."""
        return len(self.queries) == self.n_samples

    def q_nx(self, K: Any = None) -> Any:
        """Return Q_NX, the share of the K nearest neighbours that the embedding keeps."""
        return self._at("q_nx", K)

    def r_nx(self, K: Any = None) -> Any:
        """Return R_NX, Q_NX rescaled: 0 is chance and 1 perfect. K is at most n - 2."""
        return self._at("r_nx", K)

    def lcmc(self, K: Any = None) -> Any:
        """Return the local continuity meta-criterion, Q_NX less chance."""
        return self._at("lcmc", K)

    def b_nx(self, K: Any = None) -> Any:
        """Return B_NX: positive where strangers crowd in (flattening), negative where it tears."""
        return self._at("b_nx", K)

    def e_nx(self, K: Any = None) -> Any:
        """Return E_NX of Kramer's book, which counts a point as its own first neighbour."""
        return self._at("e_nx", K)

    def intrusions(self, K: Any = None) -> Any:
        """Return the part of Q_NX whose points came closer (rank in the data is larger)."""
        return self._at("intrusions", K)

    def extrusions(self, K: Any = None) -> Any:
        """Return the part of Q_NX whose points went farther away (rank in the data is smaller)."""
        return self._at("extrusions", K)

    def trustworthiness(self, K: Any = None) -> Any:
        """Return trustworthiness: low where latent neighbours are strangers. K < n / 2."""
        return self._at("trustworthiness", K)

    def continuity(self, K: Any = None) -> Any:
        """Return continuity: low where neighbours were torn apart. K < n / 2."""
        return self._at("continuity", K)

    @property
    def auc(self) -> float:
        """Mean of R_NX over all sizes, weighted by 1 / K: each scale counts alike."""
        return self._whole.auc()

    @property
    def k_max(self) -> int:
        """The size up to which we speak of local: the maximum of LCMC."""
        return self._whole.k_max()

    @property
    def q_local(self) -> float:
        """Mean of Q_NX up to ``k_max``."""
        return self._whole.q_local()

    @property
    def q_global(self) -> float:
        """Mean of Q_NX from ``k_max`` on."""
        return self._whole.q_global()

    def standard_error(self, score: str, K: Any = None) -> Any:
        """Return the standard error of a score that comes from sampling the queries.

        Groups of queries are left out in turn (jackknife). It is 0 if every point was a query, and
        says nothing of how another data set would score. For ``q_local`` and ``q_global``, which
        move with ``k_max``, it can be half as large again as their true spread.

        Parameters
        ----------
        score : str
            Name of a curve or number of this object, e.g. "q_nx" or "auc".
        K : int, array-like of ints or None
            Sizes, for a curve; None means every one.

        Returns
        -------
        float or ndarray
        """
        if score not in (*CURVES, *NUMBERS):
            known = ", ".join((*CURVES, *NUMBERS))
            raise ValueError(f"`score` must be one of {known}; got {score!r}.")
        if self.is_exact:
            errors = np.zeros_like(getattr(self._whole, score)())
        else:
            rests = [_without(self._whole, group) for group in self._groups]
            left_out = [getattr(rest, score)() for rest in rests]
            unseen = 1 - len(self.queries) / self.n_samples  # a sample without replacement
            errors = np.std(left_out, axis=0) * math.sqrt((len(rests) - 1) * unseen)
        return float(errors) if score in NUMBERS else _pick(errors, K)

    def _at(self, curve: str, K: Any) -> Any:
        return _pick(getattr(self._whole, curve)(), K)

    def __repr__(self) -> str:
        seen = "all" if self.is_exact else f"{len(self.queries):,} of them"
        return (
            f"CoRanking of {self.n_samples:,} points seen from {seen}: auc {self.auc:.3f}, "
            f"q_local {self.q_local:.3f}, q_global {self.q_global:.3f}, k_max {self.k_max}"
        )


def coranking(
    Y: Any,
    X: Any,
    *,
    n_neighbors_max: int | None = None,
    sample: int | None = None,
    random_state: Any = None,
) -> CoRanking:
    """Compare the ranks of neighbours in data and embedding.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_features)
        Data; Euclidean distances, so scale columns first if their units differ.
    X : array-like of shape (n_samples, n_components)
        Embedding of the same rows.
    n_neighbors_max : int or None
        How many ranks the matrix ``Q`` shows; None means all of them up to 2,000 points and 500
        beyond. The curves always reach over all sizes.
    sample : int or None
        Number of query points drawn. None means all of them up to 20,000 points, and beyond as many
        as take about 10 seconds of one core. Ranks are among all points either way.
    random_state : int, RandomState instance or None
        Seed of the sample.

    Returns
    -------
    CoRanking

    Raises
    ------
    ValueError
        If the rows do not match, entries are missing, or there are fewer than three points.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.metrics import coranking
    >>> angle = np.linspace(0, 6, 50)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> unrolled = coranking(circle, angle[:, None])
    >>> flattened = coranking(circle, circle[:, :1])
    >>> unrolled.q_nx(3) > flattened.q_nx(3), unrolled.auc > flattened.auc
    (True, True)
    """
    Y, X = checked_table(Y, "Y", any_size=True), checked_table(X, "X", any_size=True)
    check_same_rows(Y, "Y", X, "X")
    n = len(Y)
    if n < 3:
        raise ValueError(f"Neighbours are compared among at least 3 points; got {n}.")
    size = _matrix_size(n, n_neighbors_max)
    queries = _draw_queries(n, Y.shape[1], sample, random_state)
    Q, groups = _tally(Y, X, queries, size)
    sums = np.sum([group.sums for group in groups], axis=0)
    exact = len(queries) == n
    return CoRanking(
        Q, np.sort(queries), n, RankCurves(len(queries), sums), () if exact else tuple(groups)
    )


def _matrix_size(n: int, n_neighbors_max: int | None) -> int:
    if n_neighbors_max is None:
        return n - 1 if n <= MOST_WHOLE else DEFAULT_BLOCK
    return check_neighbors(n_neighbors_max, n - 1, "`n_neighbors_max`, less than n_samples")


def _draw_queries(n: int, D: int, sample: int | None, random_state: Any) -> IntArray:
    """Return the query points: all, as many as asked for, or as many as time allows."""
    if sample is None:
        if n <= MOST_EXACT:
            return np.arange(n)
        affordable = int(BUDGET_NS / (n * (SORT_NS + ENTRY_NS * D)))
        sample = min(n, max(FEWEST_QUERIES, affordable))
    elif not isinstance(sample, (int, np.integer)) or not 2 <= sample <= n:
        raise ValueError(
            f"`sample` must be None or a number of points within [2, n_samples = {n}]; "
            f"got {sample!r}."
        )
    if sample == n:
        return np.arange(n)
    return np.asarray(check_random_state(random_state).permutation(n)[:sample])


def _tally(
    Y: FloatArray, X: FloatArray, queries: IntArray, size: int
) -> tuple[IntArray, list[RankCurves]]:
    """Return the matrix and the sums of each group of queries.

    Counts are whole numbers, so neither depends on the number of threads.
    """
    n = len(Y)
    data, latent = scaled_columns(Y), scaled_columns(X)
    n_groups = min(len(queries), max(FEWEST_GROUPS, min(MOST_GROUPS, GROUP_ENTRIES // n)))
    Q = np.zeros((size, size), dtype=np.int32)
    adding = Lock()

    def work(group: IntArray) -> RankCurves:
        own, sums = np.zeros_like(Q), np.zeros((N_SUMS, n), dtype=np.int64)
        tally_ranks(data, latent, group, own, sums)
        with adding:
            np.add(Q, own, out=Q)
        return RankCurves(len(group), sums)

    with ThreadPoolExecutor(min(MOST_THREADS, cpu_count())) as pool:
        return Q, list(pool.map(work, np.array_split(queries, n_groups)))


def _without(whole: RankCurves, group: RankCurves) -> RankCurves:
    return RankCurves(whole.n_queries - group.n_queries, whole.sums - group.sums)


def _pick(curve: FloatArray, K: Any) -> Any:
    """Return a curve, or its value at one size, or at several."""
    if K is None:
        return curve
    why = "sizes of this curve"
    if np.ndim(K) == 0:
        return float(curve[check_neighbors(K, len(curve), why) - 1])
    return np.array([curve[check_neighbors(size, len(curve), why) - 1] for size in K])

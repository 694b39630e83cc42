"""How well an embedding keeps neighbours, for every neighbourhood size.

Ranks are exact. For many points they are seen from a random sample
of *query* points only, among all points; every score is then a mean over queries with a standard
error.

With m query points among n and ``q_kl`` the number of pairs of data rank k and latent rank l,

    Q_NX(K) = Σ_{k ≤ K, l ≤ K} q_kl / (K m)          share of K neighbours kept
    R_NX(K) = ((n - 1) Q_NX(K) - K) / (n - 1 - K)    0 for a random embedding, 1 for a perfect one
    LCMC(K) = Q_NX(K) - K / (n - 1)
    U_N(K), U_X(K)   the parts of Q_NX(K) with k > l (intrusions) and with k < l (extrusions)
    B_NX(K) = U_X(K) - U_N(K)                        positive where the embedding is intrusive
    AUC     = Σ_K R_NX(K) / K  /  Σ_K 1 / K          K = 1 .. n - 2
    Q_local, Q_global: means of Q_NX over K ≤ K_max and over K ≥ K_max, K_max = argmax LCMC
    T(K)    = 1 - 2 / (m K (2 n - 3 K - 1)) Σ_{l ≤ K < k} (k - K) q_kl
    C(K)    = the same with k and l exchanged

(Lee and Verleysen, "Quality assessment of dimensionality reduction: rank-based criteria", 2009, and
"Scale-independent quality criteria for dimensionality reduction", 2010; Lee, Peluffo-Ordóñez and
Verleysen, "Multi-scale similarities in stochastic neighbour embedding", 2015; Chen and Buja, "Local
multidimensional scaling", 2009, for LCMC; Venna and Kaski, 2001, for T and C.) Kramer's book counts
a point among its own neighbours: E_NX(K) = (1 + (K - 1) Q_NX(K - 1)) / K.

An intrusive embedding puts strangers (k > K ≥ l) among the neighbours of a point. They crowd the
neighbours that stay, which move to higher ranks: extrusions *inside* the K × K block. Hence the
sign of B_NX.

A pair with l < k adds k - K to the sum in T for every K from l to k. As a function of K that is a
step of k - l at K = l and then a slope of -1 until K = k, so two running sums give all K at once.

The rank of point j seen from point i is its place when all others are sorted by distance, 1 to
n - 1, equal distances by index:

    ρ_ij = 1 + |{k ≠ i : d_ik < d_ij or (d_ik = d_ij and k < j)}|

in data space, and r_ij likewise in latent space. Everything co-ranking curves need is a sum over
pairs that one pass over the pairs can take, without the (n - 1) × (n - 1) matrix:

    row SAME      [ρ]  pairs with ρ = r
    row CLOSER    [ρ]  pairs with ρ > r (intrusions)
    row FARTHER   [r]  pairs with ρ < r (extrusions)
    row CLOSER_BY [r]  Σ ρ - r over intrusions
    row FARTHER_BY[ρ]  Σ r - ρ over extrusions

Distances are sums of squared differences in a fixed order, not by a matrix product: equal rows
then have equal distances to the last bit and ties are ties.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import numpy as np
from joblib import cpu_count
from sklearn.utils import check_random_state

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import check_choice
from twofold.compiled import compiled_in_order
from twofold.engine.threads import slices
from twofold.metrics.checks import check_neighbors, check_same_rows, checked_table
from twofold.rowwise import power_of_two

# Up to here every point is a query unless `sample` says otherwise.
MOST_EXACT = 20_000
# Beyond, as many queries as take about this much time of one core. The constants are measured:
# sorting and counting take 75 ns a point and query, distances 0.3 ns an entry.
BUDGET_NS, SORT_NS, ENTRY_NS = 1e10, 75.0, 0.3
FEWEST_QUERIES = 200

# Up to this many points the whole matrix is kept, beyond a block of the nearest ranks.
MOST_WHOLE, DEFAULT_BLOCK = 2_000, 500

# Queries are tallied in groups, each left out in turn for the standard error. Many points get
# fewer groups, as each has sums of its own.
MOST_GROUPS, FEWEST_GROUPS, GROUP_ENTRIES = 20, 8, 4_000_000
MOST_THREADS = 16  # each holds a copy of the matrix

CURVES = ("q_nx", "r_nx", "lcmc", "b_nx", "e_nx", "intrusions", "extrusions", "trustworthiness",
          "continuity")  # fmt: skip
NUMBERS = ("auc", "q_local", "q_global")

# The rows of the sums over pairs.
SAME, CLOSER, FARTHER, CLOSER_BY, FARTHER_BY = range(5)
N_SUMS = 5

# Rows of distances that are computed together, so that a tile of points is read once for all.
ROWS_AT_ONCE = 8
TILE_ENTRIES = 2**15  # 256 KB of points, the second-level cache of most processors


@dataclass(frozen=True, eq=False, repr=False)
class CoRanking:
    """What an embedding does to neighbourhoods of every size; made by :func:`coranking`.

    Each curve is a method: without an argument it returns the value for every size K (entry K - 1
    belongs to K), with a size or several the values for those.

    ``Q[k - 1, l - 1]`` counts pairs whose rank is k in the data and l in the embedding. Below the
    diagonal points came closer (intrusions), above they went farther away (extrusions).
    ``queries`` are the points from which ranks were seen, all unless a sample was taken.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.metrics import coranking
    >>> Y = np.random.default_rng(0).normal(size=(50, 3))
    >>> found = coranking(Y, Y[:, :2])
    >>> found.Q.shape, found.q_nx().shape
    ((49, 49), (49,))
    >>> bool(0 < found.auc < 1)
    True
    """

    Q: IntArray  # (K, K)
    queries: IntArray
    n_samples: int
    _sums: IntArray = field(repr=False)  # (5, n) the sums over pairs by rank
    _groups: tuple[CoRanking, ...] = field(default=(), repr=False)  # of the queries, in a sample

    @property
    def is_exact(self) -> bool:
        """Whether every point was a query."""
        return len(self.queries) == self.n_samples

    def q_nx(self, K: Any = None) -> Any:
        """Return Q_NX, the share of the K nearest neighbours that the embedding keeps."""
        return self._share(self._sums[SAME] + self._sums[CLOSER] + self._sums[FARTHER], K)

    def r_nx(self, K: Any = None) -> Any:
        """Return R_NX, Q_NX rescaled: 0 is chance and 1 perfect. K is at most n - 2."""
        n, sizes = self.n_samples, self._sizes[:-1]
        return _pick(((n - 1) * self.q_nx()[:-1] - sizes) / (n - 1 - sizes), K)

    def lcmc(self, K: Any = None) -> Any:
        """Return the local continuity meta-criterion, Q_NX less chance."""
        return _pick(self.q_nx() - self._sizes / (self.n_samples - 1), K)

    def b_nx(self, K: Any = None) -> Any:
        """Return B_NX: positive where strangers crowd in (flattening), negative where it tears."""
        return self._share(self._sums[FARTHER] - self._sums[CLOSER], K)

    def e_nx(self, K: Any = None) -> Any:
        """Return E_NX of Kramer's book, which counts a point as its own first neighbour."""
        before = np.concatenate([[0.0], self.q_nx()[:-1]])
        return _pick((1 + (self._sizes - 1) * before) / self._sizes, K)

    def intrusions(self, K: Any = None) -> Any:
        """Return the part of Q_NX whose points came closer (rank in the data is larger)."""
        return self._share(self._sums[CLOSER], K)

    def extrusions(self, K: Any = None) -> Any:
        """Return the part of Q_NX whose points went farther away (rank in the data is smaller)."""
        return self._share(self._sums[FARTHER], K)

    def trustworthiness(self, K: Any = None) -> Any:
        """Return trustworthiness: low where latent neighbours are strangers. K < n / 2."""
        starts = len(self.queries) - self._sums[SAME] - self._sums[FARTHER]
        return _pick(self._ranked(starts, self._sums[CLOSER], self._sums[CLOSER_BY]), K)

    def continuity(self, K: Any = None) -> Any:
        """Return continuity: low where neighbours were torn apart. K < n / 2."""
        starts = len(self.queries) - self._sums[SAME] - self._sums[CLOSER]
        return _pick(self._ranked(starts, self._sums[FARTHER], self._sums[FARTHER_BY]), K)

    @property
    def auc(self) -> float:
        """Mean of R_NX over all sizes, weighted by 1 / K: each scale counts equally."""
        return float(np.average(self.r_nx(), weights=1 / self._sizes[:-1]))

    @property
    def k_max(self) -> int:
        """The size up to which neighbourhoods count as local: the maximum of LCMC."""
        return int(np.argmax(self.lcmc())) + 1

    @property
    def q_local(self) -> float:
        """Mean of Q_NX up to ``k_max``."""
        return float(self.q_nx()[: self.k_max].mean())

    @property
    def q_global(self) -> float:
        """Mean of Q_NX from ``k_max`` on."""
        return float(self.q_nx()[self.k_max - 1 :].mean())

    def standard_error(self, score: str, K: Any = None) -> Any:
        """Return the standard error of a score that comes from sampling the queries.

        Groups of queries are left out in turn (jackknife). It is 0 if every point was a query, and
        says nothing about how another data set would score. For ``q_local`` and ``q_global``, which
        move with ``k_max``, it can be 1.5 times their true spread.

        ``score`` is the name of a curve or number of this object, e.g. "q_nx" or "auc"; ``K`` are
        the sizes, for a curve.
        """
        check_choice("score", score, (*CURVES, *NUMBERS))
        if self.is_exact:
            errors = np.zeros_like(self._score(score))
        else:
            # The jackknife variance of g groups is (g - 1) times the variance of the scores without
            # one.
            left_out = [self._without(group)._score(score) for group in self._groups]
            unseen = 1 - len(self.queries) / self.n_samples  # a sample without replacement
            errors = np.std(left_out, axis=0) * math.sqrt((len(left_out) - 1) * unseen)
        return float(errors) if score in NUMBERS else _pick(errors, K)

    def __repr__(self) -> str:
        seen = "all" if self.is_exact else f"{len(self.queries):,} of them"
        return (
            f"CoRanking of {self.n_samples:,} points seen from {seen}: auc {self.auc:.3f}, "
            f"q_local {self.q_local:.3f}, q_global {self.q_global:.3f}, k_max {self.k_max}"
        )

    def _score(self, name: str) -> Any:
        return getattr(self, name) if name in NUMBERS else getattr(self, name)()

    @property
    def _sizes(self) -> IntArray:
        return np.arange(1, self.n_samples)

    def _without(self, group: CoRanking) -> CoRanking:
        others = self.queries[len(group.queries) :]  # only their number counts
        return replace(self, queries=others, _sums=self._sums - group._sums, _groups=())

    def _share(self, pairs: IntArray, K: Any) -> Any:
        """Return pairs up to each K, as a share of K for each query."""
        return _pick(np.cumsum(pairs[1:]) / (self._sizes * len(self.queries)), K)

    def _ranked(self, starts: IntArray, ends: IntArray, steps: IntArray) -> FloatArray:
        """Return 1 - normalised Σ (rank - K) from pairs that start, end and step at each K."""
        # The slope of a pair holds after its start up to and with its end.
        open_pairs = np.cumsum(starts[1:]) - np.cumsum(ends[1:])
        slopes = np.concatenate([[0], -open_pairs[:-1]])
        penalty = np.cumsum(steps[1:] + slopes)
        n, K = self.n_samples, self._sizes[: (self.n_samples - 1) // 2]
        worst = len(self.queries) * K * (2 * n - 3 * K - 1) / 2
        return 1 - penalty[: len(K)] / worst


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
    size = n - 1 if n <= MOST_WHOLE else DEFAULT_BLOCK
    if n_neighbors_max is not None:
        why = "`n_neighbors_max`, less than n_samples"
        size = check_neighbors(n_neighbors_max, n - 1, why)
    queries = _draw_queries(n, Y.shape[1], sample, random_state)
    Q, groups = _tally(Y, X, queries, size)
    sums = np.sum([group._sums for group in groups], axis=0)
    return CoRanking(Q, np.sort(queries), n, sums, () if len(queries) == n else tuple(groups))


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
) -> tuple[IntArray, list[CoRanking]]:
    """Return the matrix and the sums of each group of queries.

    Counts are whole numbers, so neither depends on the number of threads.
    """
    n = len(Y)
    data, latent = scaled_columns(Y), scaled_columns(X)
    n_groups = min(len(queries), max(FEWEST_GROUPS, min(MOST_GROUPS, GROUP_ENTRIES // n)))
    Q = np.zeros((size, size), dtype=np.int32)
    adding = Lock()

    def work(group: IntArray) -> CoRanking:
        own, sums = np.zeros_like(Q), np.zeros((N_SUMS, n), dtype=np.int64)
        rank = np.empty(n, dtype=np.int32)
        for part in slices(len(group), ROWS_AT_ONCE):
            some = group[part]
            _add_pairs(_sort_points(data, some), _sort_points(latent, some), rank, own, sums)
        with adding:
            np.add(Q, own, out=Q)
        return CoRanking(Q, group, n, sums)

    with ThreadPoolExecutor(min(MOST_THREADS, cpu_count())) as pool:
        return Q, list(pool.map(work, np.array_split(queries, n_groups)))


def _pick(curve: FloatArray, K: Any) -> Any:
    """Return a curve, or its value at one size, or at several."""
    if K is None:
        return curve
    why = "sizes of this curve"
    if np.ndim(K) == 0:
        return float(curve[check_neighbors(K, len(curve), why) - 1])
    return np.array([curve[check_neighbors(size, len(curve), why) - 1] for size in K])


def scaled_columns(A: FloatArray) -> FloatArray:
    """Return A (n, d) as (d, n), scaled by a power of two so that no squared distance overflows.

    Such a factor changes no digit, so it changes no rank. Nor does leaving out constant columns.
    """
    A = A[:, A.max(axis=0) > A.min(axis=0)]
    if A.shape[1] == 0:
        return np.zeros((1, len(A)))
    return np.ascontiguousarray((A / power_of_two(np.abs(A).max())).T)


def _sort_points(points: FloatArray, queries: IntArray) -> IntArray:
    """Return for each query all points, nearest first, itself at place 0; ties by index."""
    distances = np.empty((len(queries), points.shape[1]))
    _squared_distances(points, queries, distances)
    # An unstable sort and a repair of ties is several times faster than a stable sort.
    order = np.argsort(distances, axis=1)
    _sort_ties_by_index(distances, order)
    return order


@compiled_in_order
def _sort_ties_by_index(distances: FloatArray, order: IntArray) -> None:
    """Put points of equal distance in each row of ``order`` in the order of their index."""
    for b in range(len(order)):
        row, n = order[b], order.shape[1]
        start = 0
        before = distances[b, row[0]]
        for k in range(1, n + 1):
            now = distances[b, row[k]] if k < n else np.inf
            if now != before:
                if k - start > 1:
                    row[start:k].sort()
                start, before = k, now


@compiled_in_order
def _add_pairs(
    data_order: IntArray, latent_order: IntArray, rank: IntArray, Q: IntArray, sums: IntArray
) -> None:
    """Add pairs to ``Q`` and ``sums`` (5, n); each row lists the points seen from one query.

    The query itself is at place 0; ``Q[k - 1, l - 1]`` counts ρ = k and r = l as far as it goes.
    """
    size, n = len(Q), data_order.shape[1]
    for b in range(len(data_order)):
        for k in range(n):
            rank[data_order[b, k]] = k
        for r in range(1, n):
            rho = rank[latent_order[b, r]]
            if rho > r:
                sums[CLOSER, rho] += 1
                sums[CLOSER_BY, r] += rho - r
            elif rho < r:
                sums[FARTHER, r] += 1
                sums[FARTHER_BY, rho] += r - rho
            else:
                sums[SAME, r] += 1
            if rho <= size and r <= size:
                Q[rho - 1, r - 1] += 1


@compiled_in_order
def _squared_distances(points: FloatArray, queries: IntArray, out: FloatArray) -> None:
    """Write the squared distances of ``points`` (d, n) from some of them to rows of ``out``.

    A query's distance to itself is -1, so that it comes first even where others are equal to it.
    """
    d, n = points.shape
    width = max(128, TILE_ENTRIES // d)
    whole = d - d % 4
    for start in range(0, n, width):
        stop = min(start + width, n)
        for b in range(len(queries)):
            i = queries[b]
            row = out[b, start:stop]
            row[:] = 0.0
            # Four columns at a time, to read and write the sum only once for them.
            for m in range(0, whole, 4):
                y0, y1, y2, y3 = points[m, i], points[m + 1, i], points[m + 2, i], points[m + 3, i]
                p0, p1 = points[m, start:stop], points[m + 1, start:stop]
                p2, p3 = points[m + 2, start:stop], points[m + 3, start:stop]
                for j in range(len(row)):
                    g0, g1, g2, g3 = p0[j] - y0, p1[j] - y1, p2[j] - y2, p3[j] - y3
                    row[j] += (g0 * g0 + g1 * g1) + (g2 * g2 + g3 * g3)
            for m in range(whole, d):
                y0, p0 = points[m, i], points[m, start:stop]
                for j in range(len(row)):
                    g0 = p0[j] - y0
                    row[j] += g0 * g0
    for b in range(len(queries)):
        out[b, queries[b]] = -1.0

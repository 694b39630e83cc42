"""Start embeddings for UKR.

The leave-one-out error of UKR has many local minima, so the search starts from several cheap
embeddings of the data and the model keeps the one with the lowest error (Klanke, "Learning
manifolds with the parametrized self-organizing map and unsupervised kernel regression", 2007,
section 4.4.2): the principal components, LLE and Isomap over a range of neighbourhood sizes K,
and, beyond the thesis, Laplacian eigenmaps and t-SNE. K starts at K_min, the smallest one whose
symmetrised neighbour graph is connected, and grows geometrically; LLE leaves out the smallest.

t-SNE starts from the Isomap of the smallest K: from the principal components it reaches the same
leave-one-out error but tears curves and rolls apart, which the error hardly notices.

Rules for hard cases:

* No K up to ``MAX_CONNECTING_SIZE`` connects the graph (clusters far apart): Isomap and Laplacian
  eigenmaps use a graph of small K with its components joined by their shortest gaps; LLE is left
  out, as it would put each component on one point.
* More than ``MAX_REPRESENTATIVES`` rows: everything but the principal components is computed on a
  random subset, and each other row goes to the mean of its nearest representatives, weighted by
  inverse squared distance in data space; representatives that the embedding has put far from
  the nearest one count little. No array grows faster than n then.
* More than ``MAX_FEATURES`` columns: the rows are first reduced to their leading principal
  components, ``REDUCED_FEATURES`` of them.
* Too few rows for a method, or too few dimensions found by it: that candidate is left out; the
  principal components are returned if nothing else is left.

Each candidate is computed by one thread, however many of them run side by side, so the result
does not depend on the number of threads.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackError
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from twofold.array_types import FloatArray, IntArray
from twofold.engine.threads import single_threaded
from twofold.ukr.neighbor_starts import (
    MAX_TSNE_DIMENSIONS,
    TSNE_NEIGHBORS,
    NeighborTable,
    bridge_components,
    find_neighbors,
    smallest_connecting_size,
    tsne_start,
    unn_start,
)
from twofold.ukr.spectral_starts import isomap, laplacian_eigenmaps, lle

ALL = ("pca", "lle", "isomap", "laplacian", "tsne")
# Unsupervised nearest neighbours only if asked for: on a line training ends about as low from them
# as from t-SNE, in two dimensions higher than from what is tried anyway.
KNOWN = (*ALL, "unn")

MAX_REPRESENTATIVES = 4_000
MAX_FEATURES = 300
REDUCED_FEATURES = 100
# A graph that needs more neighbours than this to hang together crosses its gaps by bundles of
# long edges; a few bridges over a sparse graph distort less.
MAX_CONNECTING_SIZE = 15
_BRIDGED_SIZE = 8
# Neighbourhood sizes as multiples of the smallest one.
_GROWTH = (1.0, 1.7, 3.0)
# Fewer rows than this have no neighbourhood structure to speak of.
_MIN_ROWS = 8
_PLACING_NEIGHBORS = 4
# In typical latent distances between neighbours; for t-SNE 3 to 10 differ by a few per cent.
_PLACING_REACH = 4.0
# Rows handled by one task; fixed, so that the blocks do not depend on the number of threads.
_BLOCK_ROWS = 4_096
# Embeddings that carry distances, so that their aspect ratio means something.
_COMMON_SCALE = ("pca", "isomap", "tsne", "unn")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Candidate:
    """A start embedding.

    Attributes
    ----------
    name : str
        Method, with the neighbourhood size where it has one, e.g. ``"isomap-8"``.
    X : ndarray of shape (n, q)
        Centred latent coordinates. For LLE and Laplacian eigenmaps, whose columns have no scale
        of their own, each column has unit standard deviation. For PCA, Isomap and t-SNE one
        common factor gives the widest column unit standard deviation, which keeps the aspect
        ratio.
    """

    name: str
    X: FloatArray


@dataclass(frozen=True)
class _Neighborhood:
    """The rows that are embedded, their neighbours and the sizes to try."""

    Y: FloatArray
    table: NeighborTable
    sizes: tuple[int, ...]
    is_connected: bool

    def graph(self, size: int) -> csr_array:
        """Return the symmetric and connected graph of a neighbourhood size."""
        graph = self.table.symmetric_graph(size)
        return graph if self.is_connected else bridge_components(graph, self.Y)


def make_candidates(
    Y: FloatArray,
    q: int,
    *,
    methods: Sequence[str] = ALL,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> list[Candidate]:
    """Compute start embeddings of data.

    Parameters
    ----------
    Y : ndarray of shape (n, D)
        Data, finite, rows distinct, at least three of them.
    q : int
        Number of latent dimensions, at most D.
    methods : sequence of str, default=ALL
        Which of "pca", "lle", "isomap", "laplacian", "tsne", "unn" to use.
    random_state : int, default=0
        Seed of everything random.
    n_jobs : int or None, default=None
        Number of threads; None and -1 mean one for each processor. The result is the same for
        any number.

    Returns
    -------
    list of Candidate
        At least one, ordered as in ``KNOWN`` and by growing neighbourhood.

    Raises
    ------
    ValueError
        If a method is unknown or the shape of Y does not allow q dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.ukr.candidates import make_candidates
    >>> angle = np.linspace(0.0, 3.0, 60)
    >>> Y = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> [candidate.name for candidate in make_candidates(Y, 1, methods=["pca", "isomap"])]
    ['pca', 'isomap-2', 'isomap-3', 'isomap-6']
    """
    _check_arguments(Y, q, methods)
    with _single_threaded_pool(n_jobs) as pool:
        chosen = _representatives(len(Y), random_state)
        Y = _normalize(_reduce_features(Y, chosen, q, random_state))
        X_pca = _principal_components(Y, q, random_state)
        tasks = _plan(Y[chosen], X_pca[chosen], methods, random_state)
        futures = {name: pool.submit(_attempt, name, task) for name, task in tasks.items()}
        finished, interrupted = _collect(futures)
        embeddings = {name: X for name, X in finished.items() if X is not None}
        if embeddings and len(chosen) < len(Y):
            embeddings = _place_rest(Y, chosen, embeddings, pool)
    if "pca" in methods or not embeddings:
        embeddings["pca"] = X_pca
    # In the order of KNOWN; the sort is stable, so the sizes of a method stay in order.
    names = sorted(embeddings, key=lambda name: KNOWN.index(_method(name)))
    candidates = [Candidate(name, _standardize(name, embeddings[name])) for name in names]
    if interrupted:
        raise StartsInterrupted(candidates)
    return candidates


class StartsInterrupted(KeyboardInterrupt):
    """Stopped from the keyboard; what was finished by then is in ``finished``, PCA at least."""

    def __init__(self, finished: list[Candidate]) -> None:
        super().__init__()
        self.finished = finished


def _collect(
    futures: dict[str, Future[FloatArray | None]],
) -> tuple[dict[str, FloatArray | None], bool]:
    """Return the results, those that are there if it is interrupted, and whether it was."""
    try:
        return {name: future.result() for name, future in futures.items()}, False
    except KeyboardInterrupt:
        for future in futures.values():
            future.cancel()
        ready = {name: f for name, f in futures.items() if f.done() and not f.cancelled()}
        return {name: future.result() for name, future in ready.items()}, True


def _check_arguments(Y: FloatArray, q: int, methods: Sequence[str]) -> None:
    unknown = sorted(set(methods) - set(KNOWN))
    if unknown:
        raise ValueError(
            f"`methods` must be taken from {', '.join(KNOWN)}; got {', '.join(unknown)}. "
            "Remove it or correct its spelling."
        )
    n, n_features = Y.shape
    if n < 3:
        raise ValueError(f"`Y` must have at least 3 distinct rows; got {n}. Pass more rows.")
    if not 1 <= q <= n_features:
        raise ValueError(
            f"`q` must be in [1, number of features = {n_features}]; got {q}. "
            "Lower it or pass more features."
        )


@contextmanager
def _single_threaded_pool(n_jobs: int | None) -> Iterator[Executor]:
    """Open a thread pool inside which no library call starts threads of its own.

    The limit of BLAS belongs to the process and is set here once: a worker that restored it on
    leaving would unleash the others. The limit of OpenMP belongs to each thread, so each worker
    sets it for itself and takes it along when it ends.
    """
    n_workers = (os.cpu_count() or 1) if n_jobs is None or n_jobs < 0 else max(1, n_jobs)
    with (
        single_threaded(),
        ThreadPoolExecutor(n_workers, initializer=_limit_worker) as pool,
    ):
        try:
            yield pool
        except BaseException:  # an interrupt must not wait for tasks that have not begun
            pool.shutdown(cancel_futures=True)
            raise


def _limit_worker() -> None:
    threadpool_limits(limits=1, user_api="openmp")


def _representatives(n: int, random_state: int) -> IntArray:
    """Return the sorted numbers of the rows that stand for all."""
    if n <= MAX_REPRESENTATIVES:
        return np.arange(n)
    rng = np.random.default_rng(random_state)
    return np.sort(rng.choice(n, size=MAX_REPRESENTATIVES, replace=False))


def _row_blocks(n: int) -> list[slice]:
    return [slice(start, start + _BLOCK_ROWS) for start in range(0, n, _BLOCK_ROWS)]


def _reduce_features(Y: FloatArray, chosen: IntArray, q: int, random_state: int) -> FloatArray:
    """Return the leading principal components of very wide rows, and other rows as they are."""
    if Y.shape[1] <= MAX_FEATURES:
        return Y
    n_reduced = min(max(REDUCED_FEATURES, q), len(chosen))
    # Two power iterations place the axes well enough for a start.
    model = PCA(n_reduced, svd_solver="randomized", iterated_power=2, random_state=random_state)
    model.fit(np.asarray(Y[chosen], dtype=np.float64))
    reduced = np.empty((len(Y), n_reduced))
    for rows in _row_blocks(len(Y)):
        reduced[rows] = (Y[rows] - model.mean_) @ model.components_.T
    return reduced


def _normalize(Y: FloatArray) -> FloatArray:
    """Return the rows centred and of size one, out of reach of overflow and underflow."""
    Y = np.array(Y, dtype=np.float64)
    Y -= Y.mean(axis=0)
    Y /= np.abs(Y).max()
    return Y


def _principal_components(Y: FloatArray, q: int, random_state: int) -> FloatArray:
    """Return (n, q) principal components, with columns of zeros where the data have no more."""
    X = np.zeros((len(Y), q))
    n_available = min(q, *Y.shape)
    X[:, :n_available] = PCA(n_available, random_state=random_state).fit_transform(Y)
    return X


def _explore(Y: FloatArray, q: int) -> _Neighborhood:
    """Search the neighbours of all rows and choose the neighbourhood sizes."""
    n = len(Y)
    largest = round(_GROWTH[-1] * max(MAX_CONNECTING_SIZE, q + 1))
    table = find_neighbors(Y, min(n - 1, max(TSNE_NEIGHBORS, largest)))
    smallest = smallest_connecting_size(table)
    is_connected = smallest is not None and smallest <= MAX_CONNECTING_SIZE
    base = smallest if smallest is not None and is_connected else _BRIDGED_SIZE
    # q + 1 neighbours are the fewest that can span q directions around a row.
    base = max(base, q + 1)
    sizes = sorted({min(n - 1, round(base * growth)) for growth in _GROWTH})
    return _Neighborhood(Y, table, tuple(sizes), is_connected)


def _plan(
    Y: FloatArray, X_pca: FloatArray, methods: Sequence[str], seed: int
) -> dict[str, Callable[[], FloatArray]]:
    """Return what is to be computed from the neighbours, by name, the longest first."""
    n, q = X_pca.shape
    if n < max(_MIN_ROWS, q + 3) or not set(methods) - {"pca"}:
        return {}
    tasks: dict[str, Callable[[], FloatArray]] = {}
    if "unn" in methods:
        tasks["unn"] = partial(unn_start, Y, q, seed)
    place = _explore(Y, q)
    sizes = place.sizes
    if "tsne" in methods and q <= MAX_TSNE_DIMENSIONS:
        tasks["tsne"] = partial(_unrolled_tsne, place, X_pca, seed)
    if "lle" in methods and place.is_connected:
        for size in sizes[1:] or sizes:
            tasks[f"lle-{size}"] = partial(lle, Y, place.table.indices[:, :size], q, seed)
    if "isomap" in methods:
        for size in sizes:
            tasks[f"isomap-{size}"] = partial(isomap, place.graph(size), q, seed)
    if "laplacian" in methods:
        graph = place.graph(sizes[0])
        tasks[f"laplacian-{sizes[0]}"] = partial(laplacian_eigenmaps, graph, q, seed)
    return tasks


def _unrolled_tsne(place: _Neighborhood, X_pca: FloatArray, seed: int) -> FloatArray:
    """Run t-SNE from the Isomap of the smallest neighbourhoods."""
    try:
        X_start = isomap(place.graph(place.sizes[0]), X_pca.shape[1], seed)
    except np.linalg.LinAlgError:
        X_start = X_pca
    return tsne_start(place.table, _standardize("tsne", X_start), seed)


def _attempt(name: str, task: Callable[[], FloatArray]) -> FloatArray | None:
    """Return the embedding, or None if the data do not allow it."""
    try:
        X = task()
    except (np.linalg.LinAlgError, ArpackError) as error:
        _log.debug("start %s left out: %s", name, error)
        return None
    if not np.all(np.ptp(X, axis=0) > 1e-9 * np.abs(X).max()):  # also false if there are NaN
        _log.debug("start %s left out: it does not fill its dimensions", name)
        return None
    return X


def _place_rest(
    Y: FloatArray, chosen: IntArray, embeddings: dict[str, FloatArray], pool: Executor
) -> dict[str, FloatArray]:
    """Extend embeddings of the chosen rows to all rows."""
    searcher = NearestNeighbors(n_neighbors=_PLACING_NEIGHBORS).fit(Y[chosen])
    blocks = _row_blocks(len(Y))
    found: list[tuple[FloatArray, IntArray]]
    found = list(pool.map(lambda rows: searcher.kneighbors(Y[rows]), blocks))
    placed = {}
    for name, X in embeddings.items():
        latent_distances, _ = NearestNeighbors(n_neighbors=1).fit(X).kneighbors()
        reach = _PLACING_REACH * float(np.median(latent_distances))
        placed[name] = np.concatenate([_place(X, *block, reach) for block in found])
        placed[name][chosen] = X
    return placed


def _place(X: FloatArray, distances: FloatArray, nearest: IntArray, reach: float) -> FloatArray:
    """Return (m, q) weighted means of the latent places of (m, k) nearest representatives.

    A plain mean of places that the embedding has torn apart would fall between them, so the
    weight falls off as well with the latent distance to the nearest representative.
    """
    tiny = np.finfo(np.float64).tiny
    # The floors let a row that lies on a representative take over its place.
    sq_dists = np.maximum(distances**2, tiny)
    places = X[nearest]
    sq_gaps = ((places - places[:, :1]) ** 2).sum(axis=2)
    weights = (sq_dists[:, :1] / sq_dists) / (1.0 + sq_gaps / max(reach**2, tiny))
    weights /= weights.sum(axis=1, keepdims=True)
    placed: FloatArray = np.einsum("mk,mkq->mq", weights, places)
    return placed


def _method(name: str) -> str:
    return name.partition("-")[0]


def _standardize(name: str, X: FloatArray) -> FloatArray:
    """Centre and scale as `Candidate` promises."""
    X = X - X.mean(axis=0)
    deviations = X.std(axis=0)
    X /= deviations.max() if _method(name) in _COMMON_SCALE else deviations
    return X

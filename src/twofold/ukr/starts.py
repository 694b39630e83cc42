"""Where training begins: start embeddings, each scaled, of which the leave-one-out error picks one.

"The start decides": UKR's objective has many minima, and fitting begins in the basin of the
candidate whose scaled leave-one-out error is lowest (Klanke, "Learning manifolds with the
parametrized self-organizing map and unsupervised kernel regression", 2007, sections 4.4.2 and
4.4.5): the principal components, LLE and Isomap over a range of neighbourhood sizes K, and, beyond
the thesis, Laplacian eigenmaps and t-SNE. K starts at K_min, the smallest one whose symmetrised
neighbour graph is connected, and grows geometrically; LLE leaves out the smallest.

t-SNE starts from the Isomap of the smallest K: from the principal components it reaches the same
leave-one-out error but tears curves and rolls apart, which the error hardly notices. It has at most
three dimensions; in more, its flat map is made thick by the principal components of what neighbours
on it do not share.

Coarse to fine: of more than ``MAX_REPRESENTATIVES`` rows a random subset stands for all while
starts are compared. Of the one that wins each other row goes to the mean of its nearest
representatives, weighted by inverse squared distance in data space; representatives that the
embedding has put far from the nearest one count little. t-SNE then goes on with the neighbours of
all rows and, more weakly, with the representatives around each. No array grows faster than n.

Rules for hard cases:

* No K up to ``MAX_CONNECTING_SIZE`` connects the graph (clusters far apart): Isomap and Laplacian
  eigenmaps use a graph of small K with its components joined by their shortest gaps; LLE is left
  out, as it would put each component on one point.
* More than ``MAX_FEATURES`` columns: the rows are first reduced to their leading principal
  components, ``REDUCED_FEATURES`` of them.
* Too few rows for a method, or too few dimensions found by it: that candidate is left out; the
  principal components are returned if nothing else is left.

Each candidate is computed by one thread, however many of them run side by side, so the result
does not depend on the number of threads.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackError
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from twofold.array_types import FloatArray, IntArray
from twofold.engine.threads import count_threads, single_threaded, slices
from twofold.latent.starts import fill_for_start
from twofold.neighborhoods.approximate import most_neighbors
from twofold.neighborhoods.embeddings import isomap, laplacian_eigenmaps, lle
from twofold.neighborhoods.graphs import (
    NeighborTable,
    find_neighbors,
    join_parts,
    smallest_connecting_size,
)
from twofold.neighborhoods.tsne import (
    MAX_TSNE_DIMENSIONS,
    TSNE_NEIGHBORS,
    affinities,
    descend,
    tsne,
)
from twofold.ukr.devices import is_summed_on_device
from twofold.ukr.objective import Problem, common_scale, scale_each_dimension
from twofold.ukr.placing import (
    ALL_ROWS_NEIGHBORS,
    PLACING_NEIGHBORS,
    PLACING_REACH,
    Tell,
    Tsne,
    place,
    refine,
)

ALL = ("pca", "lle", "isomap", "laplacian", "tsne")
# Unsupervised nearest neighbours only if asked for: on a line training ends about as low from them
# as from t-SNE, in two dimensions higher than from what is tried anyway.
KNOWN = (*ALL, "unn")

MAX_REPRESENTATIVES = 2_000
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
# Neighbours in a flat map whose mean a row is compared with, and how far what is left goes in the
# other dimensions, in distances to the last of them: 1 to 3 differ little.
_THICK_NEIGHBORS, _THICKNESS = 8, 2.0
# Rows handled by one task; fixed, so that the blocks do not depend on the number of threads.
_BLOCK_ROWS = 4_096
# Rows up to which neighbours are sought before it is known that t-SNE wins; some two seconds.
MOST_AHEAD = 100_000
# Embeddings that carry distances, so that their aspect ratio means something.
_COMMON_SCALE = ("pca", "isomap", "tsne", "unn")

# The best candidates, this many, get a factor per dimension; the others would not win by it. Only
# one is trained: the best of another method ended 4 to 35 % higher on digits, USPS, oil flow and
# COIL-20, and lower on a Swiss roll, where held-out rows gained nothing.
N_FINALISTS = 2
# With so little of the variance left open by a spectral start, t-SNE, the slowest one, was never
# seen to end in a lower error after training.
WELL_UNFOLDED = 0.03

Result = TypeVar("Result")
Init = str | FloatArray | Callable[[FloatArray], FloatArray]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Start:
    """Latent points X (n, q) to begin with, centred, in kernel units, and their error.

    ``own`` (n, q) are those the user brought, before they were scaled; None if it is no such.
    """

    name: str
    X: FloatArray
    error: float
    own: FloatArray | None = None


def choose_start(
    problem: Problem, Y: FloatArray, q: int, init: Init, seed: int, tell: Tell
) -> tuple[Start, dict[str, float], bool]:
    """Return the best start that ``init`` allows, every start's error, and if it was interrupted.

    ``init`` is "auto", the name of a method, latent points (n, q) of the rows Y, or a function that
    finds such points for complete rows.
    """
    search = _Search(problem, q, seed, tell)
    if problem.rows.observed is not None:
        Y = fill_for_start(Y)
    if isinstance(init, str):
        search.try_name(init, Y)
    else:
        own = init(Y) if callable(init) else np.asarray(init, dtype=np.float64)
        search.scale({"own": own}, is_own=True)
    best = search.finish()
    errors = {start.name: start.error for start in search.starts}
    logger.info("start %s, leave-one-out error %.6g; tried %s", best.name, best.error, errors)
    return best, errors, search.interrupted


class _Search:
    """Starts tried so far, scaled; an interrupt ends the search and keeps them."""

    def __init__(self, problem: Problem, q: int, seed: int, tell: Tell) -> None:
        self.problem, self.q, self.seed, self.tell = problem, q, seed, tell
        self.error = problem.reconstruction(cross_validated=True)
        self.candidates: Candidates | None = None
        self.starts: list[Start] = []
        self.interrupted = False

    def try_name(self, init: str, Y: FloatArray) -> None:
        """Try what a name stands for; t-SNE only if the quicker ones leave much open."""
        if init not in ("auto", *KNOWN):
            raise ValueError(
                f"`init` must be 'auto', one of {KNOWN}, an (n_samples, n_components) array "
                f"or an estimator with fit_transform; got {init!r}."
            )
        self.tell("start embeddings", 0, 1)
        n_jobs = self.problem.engine.n_threads
        candidates = self.insist(
            lambda: Candidates(Y, self.q, random_state=self.seed, n_jobs=n_jobs)
        )
        if len(candidates.chosen) < len(Y):
            few = self.problem.restricted_to(candidates.chosen)
            self.candidates, self.error = candidates, few.reconstruction(cross_validated=True)
        if self.interrupted:
            self.try_methods(candidates, ("pca",))
        elif init == "auto":
            self.try_methods(candidates, tuple(method for method in ALL if method != "tsne"))
            lowest = min(start.error for start in self.starts)
            if not self.interrupted and lowest > WELL_UNFOLDED * self.problem.spread():
                self.tell("start embeddings", 0, 1)
                # On a device neighbours are found there, and quickly.
                on_device = is_summed_on_device(self.problem)
                with nullcontext() if on_device else candidates.looking_ahead():
                    self.try_methods(candidates, ("tsne",))
        else:
            self.try_methods(candidates, (init,))
        found = any(init in ("auto", _method(start.name)) for start in self.starts)
        if not found and not self.interrupted:
            raise ValueError(
                f"init={init!r} gives no {self.q}-dimensional start for {len(Y)} distinct rows "
                "(all need enough rows, LLE also data in one piece). Use init='auto', 'pca' or a "
                "start of your own."
            )

    def insist(self, task: Callable[[], Result]) -> Result:
        """Return what there is no start without: an interrupt is noted, a second one ends all."""
        try:
            return task()
        except KeyboardInterrupt:
            self.interrupted = True
            return task()

    def try_methods(self, candidates: Candidates, methods: tuple[str, ...]) -> None:
        """Compute and scale the candidates of some methods."""
        try:
            found = candidates.find(methods)
        except StartsInterrupted as stop:
            found, self.interrupted = stop.finished, True
        except KeyboardInterrupt:  # before any was begun
            found, self.interrupted = candidates.find(("pca",)), True
        asked = {name: X for name, X in found.items() if _method(name) in methods}
        self.scale(asked or ({} if self.starts else found))

    def scale(self, candidates: dict[str, FloatArray], *, is_own: bool = False) -> None:
        """Give each candidate its best common factor, and the first of them in any case."""
        try:
            for place, (name, X) in enumerate(candidates.items()):
                self.tell(f"scaling start {name}", place, len(candidates))
                scaled = common_scale(X, self.error)
                self.starts.append(Start(name, *scaled, X if is_own else None))
        except KeyboardInterrupt:
            self.interrupted = True
            if not self.starts:
                name, X = next(iter(candidates.items()))
                scaled = common_scale(X, self.error)
                self.starts.append(Start(name, *scaled, X if is_own else None))

    def finish(self) -> Start:
        """Give the best ones a factor for each dimension, and return the best of all."""
        self.starts.sort(key=lambda start: start.error)
        try:
            for place, start in enumerate(self.starts[: 0 if self.interrupted else N_FINALISTS]):
                self.tell(f"scaling start {start.name}", place, N_FINALISTS)
                X, error = scale_each_dimension(start.X, start.error, self.error)
                self.starts[place] = replace(start, X=X, error=error)
        except KeyboardInterrupt:
            self.interrupted = True
        best = min(self.starts, key=lambda start: start.error)
        return best if self.candidates is None else self.of_all_rows(self.candidates, best)

    def of_all_rows(self, candidates: Candidates, best: Start) -> Start:
        """Return the start of all rows from that of the representatives."""
        self.tell("placing all rows", 0, 1)
        if is_summed_on_device(self.problem):
            from twofold.ukr.gpu_starts import start_on_device

            going_on = not self.interrupted
            return start_on_device(candidates, self.problem, best.name, self.tell, refines=going_on)
        X = self.insist(lambda: candidates.place(best.name))
        self.error = self.problem.reconstruction(cross_validated=True)
        try:
            if not self.interrupted:
                X = candidates.refine(best.name, X, self.tell)
            X, error = common_scale(X, self.error)
            X, error = scale_each_dimension(X, error, self.error)
        except KeyboardInterrupt:
            self.interrupted = True
            X, error = common_scale(X, self.error)
        return Start(best.name, X, error)


# ---- start embeddings --------------------------------------------------------------------------


class Candidates:
    """Start embeddings (n, q) of complete, distinct rows Y (n, D).

    What several of them need, such as neighbours, is found once. The result is the same for any
    number of threads.

    >>> import numpy as np
    >>> from twofold.ukr.starts import Candidates
    >>> angle = np.linspace(0.0, 3.0, 60)
    >>> Y = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> list(Candidates(Y, 1).find(["pca", "isomap"]))
    ['pca', 'isomap-2', 'isomap-3', 'isomap-6']
    """

    def __init__(
        self, Y: FloatArray, q: int, *, random_state: int = 0, n_jobs: int | None = -1
    ) -> None:
        n, n_features = Y.shape
        if n < 3:
            raise ValueError(f"`Y` must have at least 3 distinct rows; got {n}. Pass more rows.")
        if not 1 <= q <= n_features:
            raise ValueError(
                f"`q` must be in [1, number of features = {n_features}]; got {q}. "
                "Lower it or pass more features."
            )
        self.q, self.seed, self.n_jobs = q, random_state, n_jobs
        self._neighbors: Future[NeighborTable] | None = None
        # The rows that stand for all, in their order.
        self.chosen: IntArray = np.arange(n)
        if n > MAX_REPRESENTATIVES:
            rng = np.random.default_rng(random_state)
            self.chosen = np.sort(rng.choice(n, size=MAX_REPRESENTATIVES, replace=False))
        with single_threaded():
            # Centred and of size one, out of reach of overflow and underflow.
            self.Y = np.array(_reduce_features(Y, self.chosen, q, random_state))
            self.Y -= self.Y.mean(axis=0)
            self.Y /= max(self.Y.max(), -self.Y.min())
            self.rows = self.Y[self.chosen].astype(np.float64)  # those that are embedded
            n_found = min(q, *self.rows.shape)
            self.pca = PCA(n_found, random_state=random_state).fit(self.rows)
        self.embedded = {"pca": self._principal_components(self.rows)}

    def find(self, methods: Sequence[str] = ALL) -> dict[str, FloatArray]:
        """Return the representatives' embeddings by some methods, at least one, that of PCA.

        Their names are methods, with the neighbourhood size where there is one, in the order of
        ``KNOWN`` and by growing neighbourhood. All are centred. Columns of LLE and Laplacian
        eigenmaps, which have no scale of their own, have unit standard deviation; the others keep
        their aspect ratio, the widest column having unit standard deviation.
        """
        unknown = sorted(set(methods) - set(KNOWN))
        if unknown:
            raise ValueError(
                f"`methods` must be taken from {', '.join(KNOWN)}; got {', '.join(unknown)}. "
                "Remove it or correct its spelling."
            )
        with _single_threaded_pool(self.n_jobs) as pool:
            tasks = self._plan(methods)
            futures = {name: pool.submit(_attempt, name, task) for name, task in tasks.items()}
            finished, interrupted = _collect(futures)
            found = {name: X for name, X in finished.items() if X is not None}
        self.embedded |= found
        if "pca" in methods or not found:
            found["pca"] = self.embedded["pca"]
        # In the order of KNOWN; the sort is stable, so the sizes of a method stay in order.
        names = sorted(found, key=lambda name: KNOWN.index(_method(name)))
        candidates = {name: standardize(name, found[name]) for name in names}
        if interrupted:
            raise StartsInterrupted(candidates)
        return candidates

    def _plan(self, methods: Sequence[str]) -> dict[str, Callable[[], FloatArray]]:
        """Return what is to be computed from the neighbours, by name, the longest first."""
        rows, q, seed = self.rows, self.q, self.seed
        if len(rows) < max(_MIN_ROWS, q + 3) or not set(methods) - {"pca"}:
            return {}
        tasks: dict[str, Callable[[], FloatArray]] = {}
        if "unn" in methods:
            tasks["unn"] = partial(_unn_start, rows, q, seed)
        sizes = self._sizes
        if "tsne" in methods:
            tasks["tsne"] = self._unrolled_tsne if q <= MAX_TSNE_DIMENSIONS else self._thick_tsne
        if "lle" in methods and self._connecting_size:
            for size in sizes[1:] or sizes:
                tasks[f"lle-{size}"] = partial(lle, rows, self._table.indices[:, :size], q, seed)
        if "isomap" in methods:
            for size in sizes:
                tasks[f"isomap-{size}"] = partial(isomap, self._graph(size), q, seed)
        if "laplacian" in methods:
            graph = self._graph(sizes[0])
            tasks[f"laplacian-{sizes[0]}"] = partial(laplacian_eigenmaps, graph, q, seed)
        return tasks

    @cached_property
    def _table(self) -> NeighborTable:
        largest = round(_GROWTH[-1] * max(MAX_CONNECTING_SIZE, self.q + 1))
        return find_neighbors(self.rows, min(len(self.rows) - 1, max(TSNE_NEIGHBORS, largest)))

    @cached_property
    def _connecting_size(self) -> int | None:
        smallest = smallest_connecting_size(self._table)
        return None if smallest is None or smallest > MAX_CONNECTING_SIZE else smallest

    @cached_property
    def _sizes(self) -> list[int]:
        """The neighbourhood sizes to try."""
        # q + 1 neighbours are the fewest that can span q directions around a row.
        base = max(self._connecting_size or _BRIDGED_SIZE, self.q + 1)
        return sorted({min(len(self.rows) - 1, round(base * growth)) for growth in _GROWTH})

    def _graph(self, size: int) -> csr_array:
        """Return the symmetric and connected graph of a neighbourhood size."""
        graph = self._table.symmetric_graph(size)
        return graph if self._connecting_size else join_parts(graph, self.rows)[0]

    def _unrolled_tsne(self, q: int | None = None) -> FloatArray:
        """Run t-SNE from the Isomap of the smallest neighbourhoods, by default in q dimensions."""
        q = self.q if q is None else q
        X = self.embedded.get(f"isomap-{self._sizes[0]}")
        try:
            X = isomap(self._graph(self._sizes[0]), q, self.seed) if X is None else X[:, :q]
        except np.linalg.LinAlgError:
            X = self.embedded["pca"][:, :q]
        return tsne(self._table, standardize("tsne", X), self.seed, n_jobs=self.n_jobs)

    def _thick_tsne(self) -> FloatArray:
        """Run t-SNE in two dimensions; the others tell rows apart that it puts side by side."""
        return self._thickened(self._unrolled_tsne(2), self.rows)

    def _thickened(self, flat: FloatArray, Y: FloatArray) -> FloatArray:
        """Return a flat map (m, 2) of rows Y (m, D) with the other dimensions beside it."""
        size = min(_THICK_NEIGHBORS, len(flat) - 1)
        distances, near = NearestNeighbors(n_neighbors=size).fit(flat).kneighbors()
        residuals = Y.astype(np.float64)
        for number in range(size):
            residuals -= Y[near[:, number]] / size
        thick = np.zeros((len(flat), self.q - 2))
        n_found = min(thick.shape[1], *residuals.shape)
        thick[:, :n_found] = PCA(n_found, random_state=self.seed).fit_transform(residuals)
        deviation = thick[:, 0].std()
        thickness = _THICKNESS * float(np.median(distances[:, -1]))
        return np.column_stack([flat, thick * (thickness / deviation if deviation > 0 else 1)])

    def _principal_components(self, Y: FloatArray) -> FloatArray:
        """Return rows on the principal axes (m, q), zeros where the data have no more of them."""
        X = np.zeros((len(Y), self.q))
        X[:, : self.pca.n_components_] = self.pca.transform(Y)
        return X

    def place(self, name: str) -> FloatArray:
        """Return the embedding of that name with all rows beside their representatives, (n, q)."""
        if name == "pca":
            return standardize(name, self._principal_components(self.Y))
        X = self.embedded[name]
        latent_distances, _ = NearestNeighbors(n_neighbors=1).fit(X).kneighbors()
        reach = PLACING_REACH * float(np.median(latent_distances))
        searcher = NearestNeighbors(n_neighbors=PLACING_NEIGHBORS)
        searcher.fit(self.rows.astype(self.Y.dtype))

        with _single_threaded_pool(self.n_jobs) as pool:
            parts = (self.Y[rows] for rows in slices(len(self.Y), _BLOCK_ROWS))
            found = list(pool.map(searcher.kneighbors, parts))
        distances, nearest = (np.concatenate(part) for part in zip(*found, strict=True))
        self.around = NeighborTable(distances, self.chosen[nearest])
        placed = place(X, distances, nearest, reach)
        placed[self.chosen] = X
        return standardize(name, placed)

    @contextmanager
    def looking_ahead(self) -> Iterator[None]:
        """Search the neighbours of all rows inside the block, while representatives are embedded.

        That embedding keeps one core busy. Where another one wins the search was in vain, so it is
        left for later where it takes long.
        """
        n = len(self.Y)
        if not len(self.chosen) < n <= MOST_AHEAD or count_threads(self.n_jobs) == 1:
            yield
            return
        with ThreadPoolExecutor(1) as pool:
            self._neighbors = pool.submit(self._neighbors_of_all, ALL_ROWS_NEIGHBORS)
            yield

    def _neighbors_of_all(self, k: int) -> NeighborTable:
        return most_neighbors(self.Y, k, self.seed, self.n_jobs)

    def _tsne_of_all(self) -> Tsne:
        def mixed(near: csr_array, wide: csr_array, share: float) -> csr_array:
            return csr_array((1 - share) * near + share * wide)

        def go_on(P: csr_array, X: FloatArray, steps: int, tell: Tell) -> FloatArray:
            return descend(P, X, steps, n_jobs=self.n_jobs, tell=tell)

        return Tsne(
            lambda k: self._neighbors.result() if self._neighbors else self._neighbors_of_all(k),
            partial(affinities, n_jobs=self.n_jobs),
            mixed,
            go_on,
        )

    def refine(self, name: str, X: FloatArray, tell: Tell) -> FloatArray:
        """Return latent points X (n, q) of all rows after more steps of what they come from."""
        if name != "tsne":
            return X
        flat_axes = min(self.q, 2) if self.q > MAX_TSNE_DIMENSIONS else self.q
        few, tsne = self.embedded[name][:, :flat_axes], self._tsne_of_all()
        flat = refine(X[:, :flat_axes], few, self.around, tsne, tell)
        return standardize(name, self._thickened(flat, self.Y) if self.q > flat_axes else flat)


class StartsInterrupted(KeyboardInterrupt):
    """Stopped from the keyboard; what was finished by then is in ``finished``, PCA at least."""

    def __init__(self, finished: dict[str, FloatArray]) -> None:
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


@contextmanager
def _single_threaded_pool(n_jobs: int | None) -> Iterator[Executor]:
    """Open a thread pool inside which no library call starts threads of its own.

    The limit of BLAS belongs to the process and is set here once: a worker that restored it on
    leaving would unleash the others. The limit of OpenMP belongs to each thread, so each worker
    sets it for itself and takes it along when it ends.
    """
    limit_worker = partial(threadpool_limits, limits=1, user_api="openmp")
    with (
        single_threaded(),
        ThreadPoolExecutor(count_threads(n_jobs), initializer=limit_worker) as pool,
    ):
        try:
            yield pool
        except BaseException:  # an interrupt must not wait for tasks that have not begun
            pool.shutdown(cancel_futures=True)
            raise


def _reduce_features(Y: FloatArray, chosen: IntArray, q: int, random_state: int) -> FloatArray:
    """Return the leading principal components of very wide rows, and other rows as they are."""
    if Y.shape[1] <= MAX_FEATURES:
        return Y
    n_reduced = min(max(REDUCED_FEATURES, q), len(chosen))
    # Two power iterations place the axes well enough for a start.
    model = PCA(n_reduced, svd_solver="randomized", iterated_power=2, random_state=random_state)
    model.fit(np.asarray(Y[chosen], dtype=np.float64))
    reduced = np.empty((len(Y), n_reduced), dtype=Y.dtype)
    for rows in slices(len(Y), _BLOCK_ROWS):
        reduced[rows] = (Y[rows] - model.mean_) @ model.components_.T
    return reduced


def _unn_start(Y: FloatArray, q: int, random_state: int) -> FloatArray:
    """Embed by unsupervised nearest neighbours: on a line, or a refined Gaussian embedding."""
    from twofold.unn import UNN  # a family of its own, loaded by those who ask for it

    embedding: FloatArray = UNN(q, random_state=random_state, n_jobs=1).fit_transform(Y)
    return embedding


def _attempt(name: str, task: Callable[[], FloatArray]) -> FloatArray | None:
    """Return the embedding, or None if the data do not allow it."""
    try:
        X = task()
    except (np.linalg.LinAlgError, ArpackError) as error:
        logger.debug("start %s left out: %s", name, error)
        return None
    if not np.all(np.ptp(X, axis=0) > 1e-9 * np.abs(X).max()):  # also false if there are NaN
        logger.debug("start %s left out: it does not fill its dimensions", name)
        return None
    return X


def _method(name: str) -> str:
    return name.partition("-")[0]


def standardize(name: str, X: FloatArray) -> FloatArray:
    """Centre and scale as `Candidates.find` promises."""
    X = X - X.mean(axis=0)
    deviations = X.std(axis=0)
    X /= deviations.max() if _method(name) in _COMMON_SCALE else deviations
    return X

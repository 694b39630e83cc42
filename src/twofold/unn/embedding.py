"""Making an embedding: which search does it, in which order rows come, and what is missing.

Constructive searches put one row after the other into an `Embedder`: a `Line`, a `Lattice` or
`ContinuousPoints`. All of these `insert` rows, `load` those that have latent points, `fill` the
gaps of a row from its neighbours, and `refine`. The other searches start from such an embedding,
or from nothing, and change all of it.

Missing entries are filled before the embedding, or on the way (Kramer 2013, sections 5.6-5.9).
Both begin with the complete rows and go on with those of the fewest gaps.

* Repair-and-embed (Algorithm 4): a row gets the mean of its K nearest complete rows, near in the
  columns that it has. From then on it counts as complete.
* Embed-and-repair (Algorithm 5): a row is embedded by what it has, and its gaps get the mean of
  its latent neighbours.

Which of several rows with as few gaps comes first the book leaves open. `repair` goes by their
entries, so that shuffling the table changes nothing; `embed_and_repair` by the order in which they
come, as the embedding itself does. Without a complete row the first one is filled by the means of
the columns.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.compiled import compiled
from twofold.process_settings import warn
from twofold.small_systems import assign
from twofold.unn import searches
from twofold.unn.continuous import ContinuousPoints
from twofold.unn.growing import keep_nearest
from twofold.unn.lattice import Lattice
from twofold.unn.line import Line
from twofold.unn.point_errors import PointError

MISSING = ("repair_and_embed", "embed_and_repair", "distances")
MOST_LATTICE_DIMENSIONS = 3
INTERRUPTED = "interrupted"

Embedder: TypeAlias = Line | Lattice | ContinuousPoints
# Hears what is being done: words, how many steps of how many, and the error if it is known.
Tell: TypeAlias = Callable[[str, int, int, float], None]


@dataclass(frozen=True)
class Task:
    """An embedding to be made."""

    Y: FloatArray  # (n, D) float64, in the order in which rows are to be embedded
    weights: FloatArray  # (n,) how much each row counts in means
    q: int
    n_neighbors: int
    error: PointError
    rng: np.random.Generator
    has_kernel: bool = False  # whether a data kernel was given; `error` has no trace of Linear()
    n_threads: int = 1
    tell: Tell = lambda words, done, most, value: None


@dataclass(frozen=True)
class Embedding:
    """An embedding that was found."""

    X: FloatArray  # (n, q)
    n_iter: int  # rows that were put somewhere, and sweeps or steps after that
    stop_reason: str
    # Values of what a search minimised that changes all latent points, first to last.
    history: FloatArray = field(default_factory=lambda: np.empty(0))
    # Latent points (n, q) before refinement and after each sweep; empty without any.
    stages: list[FloatArray] = field(default_factory=list)
    filled: FloatArray | None = None  # (n, D) rows with their gaps filled, if anything was filled


class KnownRows(NamedTuple):
    """Complete rows (m, D) that have latent points (m, q) already."""

    Y: FloatArray
    X: FloatArray
    weights: FloatArray


def make_embedder(task: Task, search: searches.Constructive, n_rows: int) -> Embedder:
    """Return an embedder without rows, for about n of them."""
    names = ("n_neighbors", "error", "n_threads")
    common: dict[str, Any] = {name: getattr(task, name) for name in names}
    if isinstance(search, searches.Continuous):
        return ContinuousPoints(task.q, search, rng=task.rng, has_kernel=task.has_kernel, **common)
    common["criterion"], common["include_self"] = search.criterion, search.include_self
    common["exhaustive"] = isinstance(search, searches.Exhaustive)
    return Line(**common) if task.q == 1 else Lattice(task.q, n_rows=n_rows, **common)


def embed(
    task: Task,
    search: searches.Search,
    missing: str,
    n_sweeps: int,
    order: IntArray,
    known: KnownRows | None = None,
) -> Embedding:
    """Embed the rows of a task in the order (n,) given; `known` rows come first in the result."""
    if isinstance(search, searches.Discrete) and task.q > MOST_LATTICE_DIMENSIONS:
        raise ValueError(
            f"A lattice has up to {MOST_LATTICE_DIMENSIONS} dimensions; got n_components={task.q} "
            f"with search={search!r}. Use search='gaussian' or 'swarm', which have no lattice."
        )
    filled, n_known = None, 0 if known is None else len(known.X)
    if np.isnan(task.Y).any():
        _check_missing(task, search, missing)
        if missing == "repair_and_embed":
            Y, weights = task.Y, task.weights
            if known is not None:
                Y, weights = np.concatenate([known.Y, Y]), np.concatenate([known.weights, weights])
            filled = repair(Y, task.n_neighbors, weights)[n_known:]
            task = replace(task, Y=filled)
    ordered = replace(
        task,
        Y=np.ascontiguousarray(task.Y[order]),
        weights=np.ascontiguousarray(task.weights[order]),
    )
    if isinstance(search, searches.Constructive):
        found = _construct(ordered, search, missing, n_sweeps, known)
    else:
        found = _evolve(ordered, search)
    if found.stop_reason == INTERRUPTED:
        warn("Interrupted; the best embedding so far is kept.", ConvergenceWarning)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    if found.filled is not None:
        filled = found.filled[back]
    all_back = np.concatenate([np.arange(n_known), n_known + back])
    stages = [X[all_back] for X in found.stages or [found.X]]
    return replace(found, X=stages[-1], filled=filled, stages=stages)


def _check_missing(task: Task, search: searches.Search, missing: str) -> None:
    if missing == "repair_and_embed":
        return
    if not isinstance(search, searches.Constructive):
        raise ValueError(
            f"missing={missing!r} is for searches that place one row after another; "
            f"search={search!r} needs complete rows. Use missing='repair_and_embed'."
        )
    if task.has_kernel:
        raise ValueError(
            f"missing={missing!r} compares incomplete rows, and a `data_kernel` has no value for "
            "them. Use missing='repair_and_embed', or no data kernel."
        )


def _construct(
    task: Task, search: searches.Constructive, missing: str, n_sweeps: int, known: KnownRows | None
) -> Embedding:
    """Put the rows of a task into an embedder, and refine that."""
    n, n_known, filled = len(task.Y), 0 if known is None else len(known.X), None
    embedder = make_embedder(task, search, n_known + n)
    if known is not None:
        embedder.load(*known)
    if missing == "embed_and_repair" and np.isnan(task.Y).any():
        filled, X = embed_and_repair(task.Y, task.weights, embedder, n_known)
        task = replace(task, Y=filled)
    else:

        def watch(done: int) -> None:
            task.tell("embedding rows", done - n_known, n, np.nan)

        embedder.insert(task.Y, task.weights, watch)
        X = embedder.latent
    stages, reason = [X], "all rows embedded"
    if n_sweeps:
        refined, reason = _refine(task, search, n_sweeps, X)
        stages += refined
    return Embedding(stages[-1], n + len(stages) - 1, reason, stages=stages, filled=filled)


def _refine(
    task: Task, search: searches.Constructive, n_sweeps: int, X: FloatArray
) -> tuple[list[FloatArray], str]:
    """Return latent points after each sweep over an embedding X (n, q), and why they ended."""
    # Each row is left out of its own neighbours, whatever the search does: the error that falls is
    # the one that the model reports, and a row that nobody is like has nothing to gain by solitude.
    refiner = make_embedder(task, replace(search, include_self=False), len(X))
    refiner.load(task.Y, X, task.weights)
    stages: list[FloatArray] = []

    def watch(done: int) -> None:
        stages.append(refiner.latent.copy())
        task.tell("refining", done, n_sweeps, np.nan)

    task.tell("refining", 0, n_sweeps, np.nan)
    try:
        refiner.refine(n_sweeps, watch)
    except KeyboardInterrupt:
        return [*stages, refiner.latent], INTERRUPTED
    ending = "all sweeps made" if len(stages) == n_sweeps else "refined until no row moved"
    return stages, f"all rows embedded, {ending}"


def _evolve(
    task: Task, search: searches.Evolution | searches.EvolutionStrategy | searches.CMAES
) -> Embedding:
    """Change all latent points of a task, from a start that the search asks for."""
    from twofold.unn.evolution import evolve, evolve_by_cma, evolve_points

    if isinstance(search, searches.CMAES):
        return evolve_by_cma(task, search)
    if isinstance(search, searches.EvolutionStrategy):
        X = _constructed(task, searches.Gaussian())
        # First steps are in units of the start: the same sigma for data of any size.
        X = X - X.mean(axis=0)
        deviation = X.std(axis=0)
        return evolve_points(task, search, X / np.where(deviation > 0, deviation, 1))
    n, q = len(task.Y), task.q
    if search.start == "sorted":
        start = _constructed(task, searches.Greedy(include_self=search.include_self))
    elif q == 1:
        start = np.arange(1.0, n + 1)[:, None]
    else:
        side = int(np.ceil(n ** (1 / q)))
        start = np.stack(np.unravel_index(np.arange(n), (side,) * q), axis=1).astype(np.float64)
    return evolve(task, search, start)


def _constructed(task: Task, search: searches.Constructive) -> FloatArray:
    embedder = make_embedder(task, search, len(task.Y))
    embedder.insert(task.Y, task.weights)
    return embedder.latent


# ---- missing entries ----------------------------------------------------------------------------


def repair(Y: FloatArray, n_neighbors: int, weights: FloatArray | None = None) -> FloatArray:
    """Return a copy of Y (n, D) whose gaps, NaN, are filled from the K nearest complete rows."""
    # Costs O(n² D) at most and no memory beyond a few copies of Y.
    n_gaps = np.isnan(Y).sum(axis=1)
    order = np.lexsort((*np.nan_to_num(Y, nan=-np.inf).T[::-1], n_gaps))
    filled = np.ascontiguousarray(Y[order], dtype=np.float64)
    own = np.ones(len(Y)) if weights is None else np.asarray(weights, dtype=np.float64)[order]
    n_complete = int((n_gaps == 0).sum())
    if n_complete < len(Y):
        means = _column_means(filled, own)
        if n_complete == 0:
            filled[0] = np.where(np.isnan(filled[0]), means, filled[0])
            n_complete = 1
        observed = ~np.isnan(filled)
        k = min(n_neighbors, len(Y))
        _repair_in_order(filled, observed, own, n_complete, k, means)
    back = np.empty_like(filled)
    back[order] = filled
    return back


def embed_and_repair(
    Y: FloatArray, weights: FloatArray, embedder: Embedder, n_known: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Return rows Y (n, D) filled from latent neighbours, and all latent points, known first."""
    n_gaps = np.isnan(Y).sum(axis=1)
    order = np.argsort(n_gaps, kind="stable")
    filled, own = Y[order], weights[order]
    n_complete = int((n_gaps == 0).sum())
    if n_complete + n_known == 0:
        filled[0] = np.where(np.isnan(filled[0]), _column_means(filled, own), filled[0])
        n_complete = 1
    embedder.insert(filled[:n_complete], own[:n_complete])
    for j in range(n_complete, len(Y)):
        embedder.insert(filled[j : j + 1], own[j : j + 1])
        gaps = np.isnan(filled[j])
        filled[j, gaps] = embedder.fill(n_known + j)[gaps]
    back, X = np.empty_like(filled), embedder.latent.copy()
    back[order], X[n_known + order] = filled, embedder.latent[n_known:]
    return back, X


def _column_means(Y: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the mean of the observed entries of each column, (D,)."""
    mass = weights[:, None] * ~np.isnan(Y)
    means: FloatArray = (mass * np.nan_to_num(Y)).sum(axis=0) / mass.sum(axis=0)
    return means


@compiled
def _repair_in_order(
    Y: FloatArray,
    observed: BoolArray,
    weights: FloatArray,
    n_complete: int,
    n_neighbors: int,
    means: FloatArray,
) -> None:
    """Fill the rows from ``n_complete`` on, one after the other, from those before them."""
    n, D = Y.shape
    found, sq_dists = np.empty(n_neighbors, dtype=np.int64), np.empty(n_neighbors)
    for i in range(n_complete, n):
        seen = np.flatnonzero(observed[i])
        if seen.size == 0:
            assign(Y[i], means)
            continue
        count = 0
        for j in range(i):
            gap = 0.0
            for s in range(seen.size):
                step = Y[i, seen[s]] - Y[j, seen[s]]
                gap += step * step
            if count < n_neighbors or gap < sq_dists[n_neighbors - 1]:
                count = keep_nearest(found, sq_dists, count, n_neighbors, j, gap)
        mass = 0.0
        for place in range(count):
            mass += weights[found[place]]
        for d in range(D):
            if not observed[i, d]:
                total = 0.0
                for place in range(count):
                    total += weights[found[place]] * Y[found[place], d]
                Y[i, d] = total / mass

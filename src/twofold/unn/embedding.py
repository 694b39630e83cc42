"""Making an embedding: which search does it, in which order rows come, and what is missing.

Constructive searches put one row after the other into an `Embedder`: a `Line`, a `Lattice` or
`ContinuousPoints`. All of these `insert` rows, `load` those that have latent points, `fill` the
gaps of a row from its neighbours, and `refine`. The other searches start from such an embedding,
or from nothing, and change all of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from twofold.array_types import FloatArray, IntArray
from twofold.unn.point_errors import PointError
from twofold.unn.searches import (
    CMAES,
    Constructive,
    Evolution,
    EvolutionStrategy,
    Exhaustive,
    Gaussian,
    Greedy,
    Search,
    Swarm,
)

if TYPE_CHECKING:
    from twofold.unn.continuous import ContinuousPoints
    from twofold.unn.lattice import Lattice
    from twofold.unn.line import Line

    Embedder: TypeAlias = Line | Lattice | ContinuousPoints

MISSING = ("repair_and_embed", "embed_and_repair", "distances")
MOST_LATTICE_DIMENSIONS = 3
INTERRUPTED = "interrupted"

# Hears what is being done: words, how many steps of how many, and the error if it is known.
Tell: TypeAlias = Callable[[str, int, int, float], None]
# Hears how many rows were embedded, or sweeps made.
Watch: TypeAlias = Callable[[int], None]


@dataclass(frozen=True)
class Task:
    """An embedding to be made.

    Attributes
    ----------
    Y : (n, D) rows, float64, in the order in which they are to be embedded
    weights : (n,) how much each row counts in means
    q : latent dimensions
    n_neighbors : K
    error : the error of one row
    rng : what is drawn by lot comes from here
    has_kernel : whether a data kernel was given; the linear one leaves no trace in `error`
    n_threads : threads; the result does not depend on them
    tell : hears about the progress
    """

    Y: FloatArray
    weights: FloatArray
    q: int
    n_neighbors: int
    error: PointError
    rng: np.random.Generator
    has_kernel: bool = False
    n_threads: int = 1
    tell: Tell = lambda words, done, most, value: None


@dataclass(frozen=True)
class Embedding:
    """An embedding that was found.

    Attributes
    ----------
    X : (n, q) latent points
    n_iter : rows that were put somewhere, and sweeps or steps after that
    stop_reason : why they ended
    history : values of what a search minimised that changes all of it, first to last
    stages : latent points (n, q) before refinement and after each sweep; empty without any
    filled : (n, D) rows with their missing entries filled, None where nothing is filled
    """

    X: FloatArray
    n_iter: int
    stop_reason: str
    history: FloatArray = field(default_factory=lambda: np.empty(0))
    stages: list[FloatArray] = field(default_factory=list)
    filled: FloatArray | None = None


def is_constructive(search: Search) -> bool:
    """Say whether a search puts one row after the other."""
    return isinstance(search, Exhaustive | Greedy | Gaussian | Swarm)


def is_discrete(search: Search) -> bool:
    """Say whether latent points are ranks on a line or sites of a lattice."""
    return isinstance(search, Exhaustive | Greedy | Evolution)


def check_dimensions(search: Search, q: int) -> None:
    """Raise if there is no lattice of q dimensions."""
    if is_discrete(search) and q > MOST_LATTICE_DIMENSIONS:
        raise ValueError(
            f"A lattice has up to {MOST_LATTICE_DIMENSIONS} dimensions; got n_components={q} with "
            f"search={search!r}. Use search='gaussian' or 'swarm', which have no lattice."
        )


def make_embedder(task: Task, search: Constructive, n_rows: int) -> Embedder:
    """Return an embedder without rows, for about n of them."""
    common: dict[str, Any] = {
        "n_neighbors": task.n_neighbors,
        "error": task.error,
        "n_threads": task.n_threads,
    }
    if isinstance(search, Gaussian | Swarm):
        from twofold.unn.continuous import ContinuousPoints

        return ContinuousPoints(task.q, search, rng=task.rng, has_kernel=task.has_kernel, **common)
    common["criterion"], common["include_self"] = search.criterion, search.include_self
    common["exhaustive"] = isinstance(search, Exhaustive)
    if task.q == 1:
        from twofold.unn.line import Line

        return Line(**common)
    from twofold.unn.lattice import Lattice

    return Lattice(task.q, n_rows=n_rows, **common)


def embed(task: Task, search: Search, missing: str, n_sweeps: int, order: IntArray) -> Embedding:
    """Embed the rows of a task, NaN where entries are missing, in an order (n,) of their own.

    `missing` is one of ``MISSING``; `n_sweeps` refine what a constructive search found.
    """
    filled = None
    if np.isnan(task.Y).any():
        _check_missing(task, search, missing)
        if missing == "repair_and_embed":
            from twofold.unn.filling import repair

            filled = repair(task.Y, task.n_neighbors, task.weights)
            task = replace(task, Y=filled)
    ordered = replace(
        task,
        Y=np.ascontiguousarray(task.Y[order]),
        weights=np.ascontiguousarray(task.weights[order]),
    )
    if is_constructive(search):
        found = _construct(ordered, cast(Constructive, search), missing, n_sweeps)
    else:
        found = _evolve(ordered, search)
    if found.stop_reason == INTERRUPTED:
        warnings.warn(
            "Interrupted; the best embedding so far is kept.", ConvergenceWarning, stacklevel=2
        )
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    if found.filled is not None:
        filled = found.filled[back]
    stages = [X[back] for X in found.stages or [found.X]]
    return replace(found, X=stages[-1], filled=filled, stages=stages)


def _check_missing(task: Task, search: Search, missing: str) -> None:
    if missing == "repair_and_embed":
        return
    if not is_constructive(search):
        raise ValueError(
            f"missing={missing!r} goes with searches that put one row after the other; "
            f"search={search!r} needs complete rows. Use missing='repair_and_embed'."
        )
    if task.has_kernel:
        raise ValueError(
            f"missing={missing!r} compares incomplete rows, and a `data_kernel` has no value for "
            "them. Use missing='repair_and_embed', or no data kernel."
        )


def _construct(task: Task, search: Constructive, missing: str, n_sweeps: int) -> Embedding:
    """Put the rows of a task into an embedder, and refine that."""
    n, filled = len(task.Y), None
    embedder = make_embedder(task, search, n)
    if missing == "embed_and_repair" and np.isnan(task.Y).any():
        from twofold.unn.filling import embed_and_repair

        filled, X = embed_and_repair(task.Y, task.weights, embedder)
        task = replace(task, Y=filled)
    else:
        embedder.insert(
            task.Y, task.weights, lambda done: task.tell("embedding rows", done, n, np.nan)
        )
        X = embedder.latent
    stages, reason = [X], "all rows embedded"
    if n_sweeps:
        refined, reason = _refine(task, search, n_sweeps, X)
        stages += refined
    return Embedding(stages[-1], n + len(stages) - 1, reason, stages=stages, filled=filled)


def _refine(
    task: Task, search: Constructive, n_sweeps: int, X: FloatArray
) -> tuple[list[FloatArray], str]:
    """Return latent points after each sweep over an embedding X (n, q), and why they ended.

    Each row is left out of its own neighbours, whatever the search does: the error that falls is
    the one that the model reports, and a row that nobody is like has nothing to gain by solitude.
    """
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


def _evolve(task: Task, search: Search) -> Embedding:
    """Change all latent points of a task, from a start that the search asks for."""
    if isinstance(search, CMAES):
        from twofold.unn import cma_es

        return cma_es.search(task, search)
    from twofold.unn.evolution import evolve, evolve_points

    if isinstance(search, EvolutionStrategy):
        X = _constructed(task, Gaussian())
        X = X - X.mean(axis=0)
        deviation = X.std(axis=0)
        return evolve_points(task, search, X / np.where(deviation > 0, deviation, 1))
    return evolve(task, cast(Evolution, search), _discrete_start(task, cast(Evolution, search)))


def _discrete_start(task: Task, search: Evolution) -> FloatArray:
    n, q = len(task.Y), task.q
    if search.start == "sorted":
        return _constructed(task, Greedy(include_self=search.include_self))
    if q == 1:
        return np.arange(1.0, n + 1)[:, None]
    side = int(np.ceil(n ** (1 / q)))
    sites = np.stack(np.unravel_index(np.arange(n), (side,) * q), axis=1)
    return sites.astype(np.float64)


def _constructed(task: Task, search: Constructive) -> FloatArray:
    embedder = make_embedder(task, search, len(task.Y))
    embedder.insert(task.Y, task.weights)
    return embedder.latent

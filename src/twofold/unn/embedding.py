"""Making an embedding: which search does it, in which order rows come, and what is missing.

Constructive searches put one row after the other into an `Embedder`: a `Line`, a `Lattice` or
`ContinuousPoints`. All of these `insert` rows, `load` those that have latent points, `fill` the
gaps of a row from its neighbours, and `refine`. The other searches start from such an embedding,
or from nothing, and change all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from twofold.array_types import FloatArray, IntArray
from twofold.process_settings import warn
from twofold.unn.continuous import ContinuousPoints
from twofold.unn.filling import embed_and_repair, repair
from twofold.unn.lattice import Lattice
from twofold.unn.line import Line
from twofold.unn.point_errors import PointError
from twofold.unn.searches import (
    CMAES,
    Constructive,
    Continuous,
    Discrete,
    Evolution,
    EvolutionStrategy,
    Exhaustive,
    Gaussian,
    Greedy,
    Search,
)

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


def make_embedder(task: Task, search: Constructive, n_rows: int) -> Embedder:
    """Return an embedder without rows, for about n of them."""
    common: dict[str, Any] = {
        "n_neighbors": task.n_neighbors,
        "error": task.error,
        "n_threads": task.n_threads,
    }
    if isinstance(search, Continuous):
        return ContinuousPoints(task.q, search, rng=task.rng, has_kernel=task.has_kernel, **common)
    common["criterion"], common["include_self"] = search.criterion, search.include_self
    common["exhaustive"] = isinstance(search, Exhaustive)
    if task.q == 1:
        return Line(**common)
    return Lattice(task.q, n_rows=n_rows, **common)


def embed(
    task: Task,
    search: Search,
    missing: str,
    n_sweeps: int,
    order: IntArray,
    known: KnownRows | None = None,
) -> Embedding:
    """Embed the rows of a task, NaN where entries are missing, in an order (n,) of their own.

    `missing` is one of ``MISSING``; `n_sweeps` refine what a constructive search found. `known`
    rows are there first, and come first in the embedding; they need a constructive search.
    """
    if isinstance(search, Discrete) and task.q > MOST_LATTICE_DIMENSIONS:
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
    if isinstance(search, Constructive):
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


def _check_missing(task: Task, search: Search, missing: str) -> None:
    if missing == "repair_and_embed":
        return
    if not isinstance(search, Constructive):
        raise ValueError(
            f"missing={missing!r} goes with searches that put one row after the other; "
            f"search={search!r} needs complete rows. Use missing='repair_and_embed'."
        )
    if task.has_kernel:
        raise ValueError(
            f"missing={missing!r} compares incomplete rows, and a `data_kernel` has no value for "
            "them. Use missing='repair_and_embed', or no data kernel."
        )


def _construct(
    task: Task, search: Constructive, missing: str, n_sweeps: int, known: KnownRows | None
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


def _evolve(task: Task, search: Evolution | EvolutionStrategy | CMAES) -> Embedding:
    """Change all latent points of a task, from a start that the search asks for."""
    from twofold.unn.evolution import evolve, evolve_by_cma, evolve_points

    if isinstance(search, CMAES):
        return evolve_by_cma(task, search)
    if isinstance(search, EvolutionStrategy):
        X = _constructed(task, Gaussian())
        X = X - X.mean(axis=0)
        deviation = X.std(axis=0)
        return evolve_points(task, search, X / np.where(deviation > 0, deviation, 1))
    n, q = len(task.Y), task.q
    if search.start == "sorted":
        start = _constructed(task, Greedy(include_self=search.include_self))
    elif q == 1:
        start = np.arange(1.0, n + 1)[:, None]
    else:
        side = int(np.ceil(n ** (1 / q)))
        start = np.stack(np.unravel_index(np.arange(n), (side,) * q), axis=1).astype(np.float64)
    return evolve(task, search, start)


def _constructed(task: Task, search: Constructive) -> FloatArray:
    embedder = make_embedder(task, search, len(task.Y))
    embedder.insert(task.Y, task.weights)
    return embedder.latent

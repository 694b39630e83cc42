"""Making an embedding: which search does it, in which order rows come, and what is missing.

Constructive searches put one row after the other into a `Line`, a `Lattice` or `ContinuousPoints`,
which all have the same few methods (`Embedder`). The others start from such an embedding, or from
nothing, and change all of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Protocol, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from twofold.array_types import FloatArray, IntArray
from twofold.unn.continuous import ContinuousPoints
from twofold.unn.line import Line
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
from twofold.unn.task import Outcome, Task

MISSING = ("repair_and_embed", "embed_and_repair", "distances")
MOST_LATTICE_DIMENSIONS = 3
INTERRUPTED = "interrupted"


class Embedder(Protocol):
    """Rows with latent points, to which rows can be added."""

    @property
    def latent(self) -> FloatArray:
        """The latent points (n, q)."""
        ...

    def insert(
        self,
        Y: FloatArray,
        weights: FloatArray | None = None,
        watch: Callable[[int], None] | None = None,
    ) -> None:
        """Embed rows, one after the other."""
        ...

    def load(self, Y: FloatArray, latent: FloatArray, weights: FloatArray | None = None) -> None:
        """Take over rows that have latent points."""
        ...

    def fill(self, number: int) -> FloatArray:
        """Fill the missing entries of a row from its neighbours; return it."""
        ...

    def refine(self, n_sweeps: int = 1, watch: Callable[[int], None] | None = None) -> list[float]:
        """Put rows elsewhere where the whole error falls; `watch` hears after each sweep."""
        ...


@dataclass(frozen=True)
class Embedding:
    """An embedding that was found.

    Attributes
    ----------
    X : (n, q) latent points
    filled : (n, D) rows with their missing entries filled, None where nothing is filled
    stages : latent points (n, q) before refinement and after each sweep; only X without any
    n_iter : rows that were put somewhere, and sweeps or steps after that
    stop_reason : str
    """

    X: FloatArray
    filled: FloatArray | None
    stages: list[FloatArray]
    n_iter: int
    stop_reason: str


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


def make_embedder(task: Task, search: Constructive, has_kernel: bool, n_rows: int) -> Embedder:
    """Return an embedder without rows, for about n of them."""
    if isinstance(search, Gaussian | Swarm):
        return ContinuousPoints(
            task.q,
            search,
            n_neighbors=task.n_neighbors,
            rng=task.rng,
            error=task.error,
            has_kernel=has_kernel,
            n_threads=task.n_threads,
        )
    criterion = cast(Literal["point", "full"], search.criterion)
    is_exhaustive = isinstance(search, Exhaustive)
    if task.q == 1:
        return Line(
            n_neighbors=task.n_neighbors,
            criterion=criterion,
            error=task.error,
            include_self=search.include_self,
            exhaustive=is_exhaustive,
            n_threads=task.n_threads,
        )
    from twofold.unn.lattice import Lattice

    return Lattice(
        task.q,
        n_neighbors=task.n_neighbors,
        n_rows=n_rows,
        criterion=criterion,
        error=task.error,
        include_self=search.include_self,
        exhaustive=is_exhaustive,
        n_threads=task.n_threads,
    )


def embed(
    task: Task, search: Search, missing: str, has_kernel: bool, n_sweeps: int, order: IntArray
) -> Embedding:
    """Embed the rows of a task, which come in the given order; NaN where entries are missing.

    Parameters
    ----------
    task : Task
        Its rows may be incomplete, and are in any order.
    search : Search
    missing : {"repair_and_embed", "embed_and_repair", "distances"}
    has_kernel : bool
    n_sweeps : int
        Refinement after a constructive search.
    order : (n,) numbers of the rows, first to last
    """
    filled = None
    if np.isnan(task.Y).any():
        _check_missing(search, missing, has_kernel)
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
        found = _construct(ordered, cast(Constructive, search), missing, has_kernel, n_sweeps)
    else:
        found = _evolve(ordered, search)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    if found.filled is not None:
        filled = found.filled[back]
    stages = [X[back] for X in found.stages]
    return replace(found, X=stages[-1], filled=filled, stages=stages)


def _check_missing(search: Search, missing: str, has_kernel: bool) -> None:
    if missing == "repair_and_embed":
        return
    if not is_constructive(search):
        raise ValueError(
            f"missing={missing!r} goes with searches that put one row after the other; "
            f"search={search!r} needs complete rows. Use missing='repair_and_embed'."
        )
    if has_kernel:
        raise ValueError(
            f"missing={missing!r} compares incomplete rows, and a `data_kernel` has no value for "
            "them. Use missing='repair_and_embed', or no data kernel."
        )


def _construct(
    task: Task, search: Constructive, missing: str, has_kernel: bool, n_sweeps: int
) -> Embedding:
    """Put the rows of a task into an embedder, and refine that."""
    n = len(task.Y)
    embedder = make_embedder(task, search, has_kernel, n)
    filled = None

    def watch(done: int) -> None:
        task.tell("embedding rows", done, n, np.nan)

    if missing == "embed_and_repair" and np.isnan(task.Y).any():
        from twofold.unn.filling import embed_and_repair

        filled, X = embed_and_repair(task.Y, task.weights, embedder)
        filled = np.where(np.isnan(task.Y), filled, task.Y)  # to the last bit
        task = replace(task, Y=filled)
    else:
        embedder.insert(task.Y, task.weights, watch)
        X = embedder.latent
    stages, reason = [X], "all rows embedded"
    if n_sweeps:
        refined, reason = _refine(task, search, has_kernel, n_sweeps, X)
        stages += refined
    return Embedding(stages[-1], filled, stages, n + len(stages) - 1, reason)


def _refine(
    task: Task, search: Constructive, has_kernel: bool, n_sweeps: int, X: FloatArray
) -> tuple[list[FloatArray], str]:
    """Return latent points after each sweep over an embedding X (n, q), and why they ended.

    Each row is left out of its own neighbours, whatever the search does: the error that falls is
    the one that the model reports, and a row that nobody is like has nothing to gain by solitude.
    """
    refiner = make_embedder(task, replace(search, include_self=False), has_kernel, len(X))
    refiner.load(task.Y, X, task.weights)
    stages: list[FloatArray] = []

    def watch(done: int) -> None:
        stages.append(refiner.latent.copy())
        task.tell("refining", done, n_sweeps, np.nan)

    task.tell("refining", 0, n_sweeps, np.nan)
    try:
        refiner.refine(n_sweeps, watch)
    except KeyboardInterrupt:
        warn_interrupted()
        return [*stages, refiner.latent], INTERRUPTED
    ending = "all sweeps made" if len(stages) == n_sweeps else "refined until no row moved"
    return stages, f"all rows embedded, {ending}"


def _evolve(task: Task, search: Search) -> Embedding:
    """Change all latent points of a task, from a start that the search asks for."""
    if isinstance(search, Evolution):
        from twofold.unn.evolution import evolve

        found = evolve(task, search, _discrete_start(task, search))
    elif isinstance(search, EvolutionStrategy):
        from twofold.unn.evolution import evolve_points

        embedder = make_embedder(task, Gaussian(), False, len(task.Y))
        embedder.insert(task.Y, task.weights)
        X = embedder.latent - embedder.latent.mean(axis=0)
        deviation = X.std(axis=0)
        found = evolve_points(task, search, X / np.where(deviation > 0, deviation, 1))
    else:
        from twofold.unn import cma_es

        found = cma_es.search(task, cast(CMAES, search))
    return _report(found)


def _report(found: Outcome) -> Embedding:
    if found.stop_reason == INTERRUPTED:
        warn_interrupted()
    return Embedding(found.X, None, [found.X], found.n_iter, found.stop_reason)


def _discrete_start(task: Task, search: Evolution) -> FloatArray:
    n, q = len(task.Y), task.q
    if search.start == "sorted":
        embedder = make_embedder(task, Greedy(include_self=search.include_self), False, n)
        embedder.insert(task.Y, task.weights)
        return embedder.latent
    if q == 1:
        return np.arange(1.0, n + 1)[:, None]
    side = int(np.ceil(n ** (1 / q)))
    sites = np.stack(np.unravel_index(np.arange(n), (side,) * q), axis=1)
    return sites.astype(np.float64)


def warn_interrupted() -> None:
    """Say that a search was stopped from the keyboard."""
    warnings.warn(
        "Interrupted; the best embedding so far is kept.", ConvergenceWarning, stacklevel=2
    )

"""All latent points at once by CMA-ES (Kramer 2013, section 6.4), for up to about 50 rows.

Latent neighbours do not depend on the scale of latent space, so its optima are not unique. Two
remedies of the book:

* "penalty" (6.11): minimise ``E(X) + λ ||X||²``.
* "box" (6.9, 6.10): minimise ``E(X) + Σ max(0, -x)² + Σ max(0, x - 1)²``. What is found may lie a
  little outside of [0, 1]^q; it is then shifted and shrunk into it, all axes by one factor, which
  changes no neighbourhood.

The book gives no start: latent points are drawn from N(0, 1), or uniformly from the box. The update
is that of the package `cma` (Hansen), with a population of four a row. Its random numbers come from
our generator, it writes no files and prints nothing.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from twofold.array_types import FloatArray
from twofold.engine.threads import single_threaded_blas
from twofold.unn.embedding import INTERRUPTED, Embedding, Task
from twofold.unn.evolution import ALL_MADE, WholeError
from twofold.unn.searches import CMAES

# A step costs the square of the unknowns and four times as many errors as there are rows.
MOST_UNKNOWNS = 100


def search(task: Task, search: CMAES) -> Embedding:
    """Return the embedding of the lowest error of all that CMA-ES meets.

    The history has the lowest value so far after each generation. An interrupt ends it early.
    Raises ImportError without the package `cma`.
    """
    evolution_strategy = _import_cma()
    n, q = len(task.Y), task.q
    if n < 2:
        return Embedding(np.zeros((n, q)), 0, "nothing to place", np.zeros(1))
    if n * q > MOST_UNKNOWNS:
        warnings.warn(
            f"CMA-ES with {n * q} unknowns ({n} rows, {q} dimensions) may take minutes; it is for "
            f"up to {MOST_UNKNOWNS}. search='gaussian' takes milliseconds.",
            UserWarning,
            stacklevel=2,
        )
    whole_error = WholeError(task, search.include_self)
    is_box = search.space == "box"

    def value_of(candidates: FloatArray) -> FloatArray:
        extra = outside(candidates) if is_box else search.penalty * squared_norm(candidates)
        return whole_error(candidates) + extra

    X: FloatArray = task.rng.random((n, q)) if is_box else task.rng.standard_normal((n, q))
    best = float(value_of(X[None])[0])
    history, done, reason = [best], 0, ALL_MADE
    # Eigenvectors depend on the threads of the linear algebra in their last digits.
    with single_threaded_blas():
        try:
            strategy = evolution_strategy(X.ravel(), search.sigma, _options(task, search))
            while done < search.n_generations and not strategy.stop():
                points = strategy.ask()
                candidates = np.array(points).reshape(len(points), n, q)
                values = value_of(candidates)
                if values.min() < best:
                    best, X = float(values.min()), candidates[values.argmin()]
                strategy.tell(points, values.tolist())
                done += 1
                history.append(best)
                task.tell("CMA-ES", done, search.n_generations, best)
            if done < search.n_generations:
                reason = "CMA-ES stopped: " + ", ".join(sorted(strategy.stop()))
        except KeyboardInterrupt:
            reason = INTERRUPTED
    X = into_box(X) if is_box else X.copy()
    return Embedding(X, done, reason, np.array(history))


def outside(candidates: FloatArray) -> FloatArray:
    """Return the squared distance (m,) of embeddings (m, n, q) to the unit box (6.10)."""
    beyond = candidates - np.clip(candidates, 0, 1)
    return squared_norm(beyond)


def squared_norm(candidates: FloatArray) -> FloatArray:
    """Return ``||X||²`` (m,) of embeddings (m, n, q)."""
    norms: FloatArray = (candidates**2).sum(axis=(1, 2))
    return norms


def into_box(X: FloatArray) -> FloatArray:
    """Shift an embedding (n, q) into the unit box, and shrink it if it is too large for that."""
    low, high = X.min(axis=0), X.max(axis=0)
    extent = float((high - low).max())
    if extent > 1:
        moved: FloatArray = (X - low) / extent
    else:
        moved = X + np.maximum(0.0, -low) - np.maximum(0.0, high - 1)
    return np.clip(moved, 0, 1)  # rounding


def _options(task: Task, search: CMAES) -> dict[str, Any]:
    def draw(*shape: int) -> FloatArray:
        return task.rng.standard_normal(shape)

    return {
        "popsize": 4 * len(task.Y) if search.population is None else int(search.population),
        "maxiter": int(search.n_generations),
        "randn": draw,
        # Not a number: leave numpy's global generator alone.
        "seed": np.nan,
        "verbose": -9,
        "verb_log": 0,
        "signals_filename": "",
    }


def _import_cma() -> Any:
    try:
        from cma import CMAEvolutionStrategy
    except ImportError as error:
        raise ImportError(
            'CMA-ES needs the package cma, which is not installed: pip install "twofold[evolution]"'
            ". search='evolution' or 'strategy' needs no further package."
        ) from error
    return CMAEvolutionStrategy

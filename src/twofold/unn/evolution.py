"""Evolution of whole embeddings (Kramer 2013, Algorithms 6 and 7).

`evolve` is the (1+1)-EA on the line or the lattice: the rows of two random places are swapped, and
stay so if the error of the whole embedding does not rise. The book's text wants it to fall, its
pseudo-code does not; without the walks on plateaus it gets stuck earlier.

`evolve_points` moves latent points anywhere, all of them at once: of μ embeddings ρ are recombined,
coordinate by coordinate by lot (6.1) or by their mean (6.2), and moved by ``σ N(0, I)`` (6.3); of λ
such children, or of these and their parents, the best μ go on. σ follows the 1/5 rule: more than a
fifth of the children no worse than the best of their parents, and it grows by 1/0.85; fewer, and it
shrinks by 0.85. "No worse" and not "better", because the error has plateaus: neighbourhoods change
in steps, and with "better" σ would shrink on a plateau and never leave it.

Both minimise ``E(X) = Σ_i w_i e_i(X)`` with `e_i` the error of row i for the mean of its K nearest
latent points, see `point_errors`.
"""

from __future__ import annotations

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled
from twofold.engine.threads import run_tasks
from twofold.rowwise import blocks
from twofold.unn.continuous import judge_of, list_errors
from twofold.unn.embedding import INTERRUPTED, Embedding, Task
from twofold.unn.growing import PointTree, empty_tree, rebuild
from twofold.unn.point_errors import PointError
from twofold.unn.rows import (
    NOBODY,
    Rows,
    RowStore,
    count_others,
    error_of_mean,
    get_rule,
    rows_of,
    write_mean,
)
from twofold.unn.searches import Evolution, EvolutionStrategy
from twofold.unn.swaps import places_of, try_swaps

# Swaps between two looks at the progress; random numbers are drawn for this many at a time.
BLOCK = 1_000
ALL_MADE = "all steps made"

# Embeddings that a thread takes at a time.
_EMBEDDINGS = 16
_SUCCESS_SHARE = 0.2
_STEP_FACTOR = 0.85


def evolve(task: Task, search: Evolution, start: FloatArray) -> Embedding:
    """Swap rows of an embedding `start` (n, q), ranks or sites, as long as its error does not rise.

    The history has the error at the start and after every thousand swaps. An interrupt ends it.
    """
    n = len(task.Y)
    if n < 2:
        return Embedding(start, 0, "nothing to swap", np.zeros(1))
    order = np.lexsort(start.T[::-1])
    sites = np.ascontiguousarray(start[order], dtype=np.float64)
    store = RowStore(task.error)
    store.append(task.Y, task.weights)
    rule = get_rule(task.n_neighbors, "full", task.error, search.include_self)
    places = places_of(sites, order, store.rows(), rule)

    def value() -> float:
        return float(task.weights[places.row_at] @ places.errors)

    patience = search.n_steps if search.patience is None else search.patience
    history, done, idle, reason = [value()], 0, 0, ALL_MADE
    try:
        while done < search.n_steps:
            pairs = draw_pairs(task.rng, n, min(BLOCK, search.n_steps - done))
            tried, idle = try_swaps(pairs, idle, patience, places, rule)
            done += tried
            history.append(value())
            if idle >= patience and done < search.n_steps:
                reason = f"no change for {patience} steps"
                break
            task.tell("swapping rows", done, search.n_steps, history[-1])
    except KeyboardInterrupt:
        reason = INTERRUPTED
    X = np.empty_like(sites)
    X[places.row_at] = sites
    return Embedding(X, done, reason, np.array(history))


def draw_pairs(rng: np.random.Generator, n: int, m: int) -> IntArray:
    """Return m pairs of different numbers below n, (m, 2)."""
    pairs: IntArray = rng.integers(0, [n, n - 1], size=(m, 2))
    pairs[:, 1] += pairs[:, 1] >= pairs[:, 0]
    return pairs


def evolve_points(task: Task, search: EvolutionStrategy, start: FloatArray) -> Embedding:
    """Move all latent points at once by an evolution strategy; return the best embedding of all.

    One parent is `start` (n, q), the others are the same moved by random steps. The history has the
    lowest error so far after each generation. An interrupt ends it.
    """
    whole_error, rng = WholeError(task, search.include_self), task.rng
    parents: FloatArray = np.repeat(start[None], search.n_parents, axis=0).astype(np.float64)
    parents[1:] += search.sigma * rng.standard_normal(parents[1:].shape)
    values = whole_error(parents)
    X: FloatArray = parents[0]
    best = float(values[0])
    history, done, reason, sigma = [best], 0, ALL_MADE, search.sigma
    try:
        while done < search.n_generations:
            if values.min() < best:
                best, X = float(values.min()), parents[values.argmin()]
            children, at_best = recombine(parents, values, search, rng)
            children += sigma * rng.standard_normal(children.shape)
            grown = whole_error(children)
            share = np.mean(grown <= at_best)
            sigma *= 1 / _STEP_FACTOR if share > _SUCCESS_SHARE else _STEP_FACTOR
            parents, values = select(parents, values, children, grown, search.selection)
            done += 1
            history.append(min(best, float(values[0])))
            task.tell("evolving", done, search.n_generations, history[-1])
    except KeyboardInterrupt:
        reason = INTERRUPTED
    if values.min() < best:
        X = parents[values.argmin()]
    return Embedding(X.copy(), done, reason, np.array(history))


def recombine(
    parents: FloatArray, values: FloatArray, search: EvolutionStrategy, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return λ children (λ, n, q) not yet moved, and the error of the best parent of each."""
    lots = rng.random((search.n_children, search.n_parents))
    mates = np.argsort(lots, axis=1, kind="stable")[:, : search.n_mates]
    at_best = values[mates].min(axis=1)
    if search.recombination == "intermediate":
        return parents[mates].mean(axis=1), at_best
    n, q = parents.shape[1:]
    chosen = rng.integers(0, search.n_mates, size=(search.n_children, n, q))
    giver = np.take_along_axis(mates[:, :, None, None], chosen[:, None], axis=1)[:, 0]
    return parents[giver, np.arange(n)[:, None], np.arange(q)], at_best


def select(
    parents: FloatArray,
    values: FloatArray,
    children: FloatArray,
    grown: FloatArray,
    selection: str,
) -> tuple[FloatArray, FloatArray]:
    """Return the next parents, as many as before, and their errors, the best first."""
    n_parents = len(parents)
    if selection == "plus":
        # Children first: of equals they win, or nothing would move on a plateau.
        children, grown = np.concatenate([children, parents]), np.concatenate([grown, values])
    chosen = np.argsort(grown, kind="stable")[:n_parents]
    return children[chosen], grown[chosen]


class WholeError:
    """E as a function of embeddings; each one is computed by itself, so threads do not matter."""

    def __init__(self, task: Task, include_self: bool) -> None:
        Y = task.Y - task.Y.mean(axis=0) if task.error.is_shift_invariant else task.Y
        self._rows = rows_of(Y, task.weights)
        self._k = min(count_others(task.n_neighbors, include_self), len(Y) - 1)
        self._include_self, self._error = include_self, task.error
        self._n_threads = task.n_threads

    def __call__(self, candidates: FloatArray) -> FloatArray:
        """Return the error (m,) of embeddings (m, n, q)."""
        m, n, q = candidates.shape
        values = np.zeros(m)
        if n == 1:
            return values  # nobody has a neighbour

        def work(part: slice) -> None:
            _write_values(
                empty_tree(n, q),
                candidates[part],
                self._rows,
                self._k,
                self._include_self,
                self._error,
                values[part],
            )

        run_tasks(work, blocks(m, 1, at_a_time=_EMBEDDINGS), self._n_threads)
        return values


@compiled
def _write_values(
    tree: PointTree,
    candidates: FloatArray,
    rows: Rows,
    k: int,
    include_self: bool,
    error: PointError,
    values: FloatArray,
) -> None:
    judge = judge_of(rows, k, include_self, error)
    for c in range(len(candidates)):
        if tree.X.shape[1] == 1:
            values[c] = _error_on_line(candidates[c, :, 0], rows, k, include_self, error)
            continue
        tree.X[:] = candidates[c]
        tree.leaf_of[:] = 0  # all points are in the tree; rebuilding finds out where
        rebuild(tree)
        errors, _ = list_errors(tree, rows, judge)
        total = 0.0
        for i in range(errors.size):
            total += rows.weights[i] * errors[i]
        values[c] = total


@compiled
def _error_on_line(
    x: FloatArray, rows: Rows, k: int, include_self: bool, error: PointError
) -> float:
    """Return the error of an embedding x (n,): sorted points have their neighbours beside them."""
    n = x.size
    order = np.argsort(x)
    near, f = np.empty(k, dtype=np.int64), np.empty(rows.values.shape[1])
    total = 0.0
    for rank in range(n):
        i = order[rank]
        left, right = rank - 1, rank + 1
        for place in range(k):
            if right == n or (left >= 0 and x[i] - x[order[left]] <= x[order[right]] - x[i]):
                near[place] = order[left]
                left -= 1
            else:
                near[place] = order[right]
                right += 1
        write_mean(rows, near, k, i if include_self else NOBODY, f)
        total += rows.weights[i] * error_of_mean(f, rows, i, error)
    return total

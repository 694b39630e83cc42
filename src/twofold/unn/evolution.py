"""Evolution of whole embeddings (Kramer 2013, Algorithms 6 and 7, and section 6.4).

`evolve` is the (1+1)-EA on the line or the lattice: the rows of two random places are swapped, and
stay so if the error of the whole embedding does not rise. The book's text wants it to fall, its
pseudo-code does not; without the walks on plateaus it gets stuck earlier.

`evolve_points` moves latent points anywhere, all of them at once: of μ embeddings ρ are recombined,
coordinate by coordinate by lot (6.1) or by their mean (6.2), and moved by ``σ N(0, I)`` (6.3); of λ
such children, or of these and their parents, the best μ go on. σ follows the 1/5 rule: more than a
fifth of the children no worse than the best of their parents, and it grows by 1/0.85; fewer, and it
shrinks by 0.85. "No worse" and not "better", because the error has plateaus: neighbourhoods change
in steps, and with "better" σ would shrink on a plateau and never leave it.

`evolve_by_cma` is CMA-ES (section 6.4), for up to about 50 rows. Latent neighbours do not depend on
the scale of latent space, so its optima are not unique. Two remedies of the book:

* "penalty" (6.11): minimise ``E(X) + λ ||X||²``.
* "box" (6.9, 6.10): minimise ``E(X) + Σ max(0, -x)² + Σ max(0, x - 1)²``. What is found may lie a
  little outside of [0, 1]^q; it is then shifted and shrunk into it, all axes by one factor, which
  changes no neighbourhood.

The book gives no start: latent points are drawn from N(0, 1), or uniformly from the box. The update
is that of the package `cma` (Hansen), with a population of four a row. Its random numbers come from
our generator, it writes no files and prints nothing.

All minimise ``E(X) = Σ_i w_i e_i(X)`` with `e_i` the error of row i for the mean of its K nearest
latent points, see `point_errors`.
"""

from collections.abc import Callable

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.checks.installing import install_command
from twofold.compiled import compiled
from twofold.engine.threads import run_tasks, slices
from twofold.process_settings import warn
from twofold.small_systems import assign
from twofold.unn.continuous import Judge, judge_of, list_errors
from twofold.unn.embedding import INTERRUPTED, Embedding, Task
from twofold.unn.growing import PointTree, empty_tree, rebuild
from twofold.unn.rows import Rows, RowStore, error_of_mean, get_rule, rows_of, write_mean
from twofold.unn.searches import CMAES, Evolution, EvolutionStrategy
from twofold.unn.swaps import places_of, try_swaps

# Swaps between two looks at the progress; random numbers are drawn for this many at a time.
BLOCK = 1_000
ALL_MADE = "all steps made"

# Embeddings that a thread takes at a time.
_EMBEDDINGS = 16
_SUCCESS_SHARE = 0.2
_STEP_FACTOR = 0.85
# A step of CMA-ES costs the square of the unknowns, and four times as many errors as rows.
MOST_UNKNOWNS = 100


def evolve(task: Task, search: Evolution, start: FloatArray) -> Embedding:
    """Swap rows of an embedding (n, q) of ranks or sites as long as its error does not rise."""
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
    """Move all latent points from `start` (n, q) by an evolution strategy; return the best."""
    whole_error, rng = whole_error_of(task, search.include_self), task.rng
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
            share = np.mean(grown <= at_best)  # each child against the best of its own parents
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
    parents: FloatArray, values: FloatArray, children: FloatArray, grown: FloatArray, selection: str
) -> tuple[FloatArray, FloatArray]:
    """Return the next parents, as many as before, and their errors, the best first."""
    n_parents = len(parents)
    if selection == "plus":
        # Children first: of equals they win, or nothing would move on a plateau.
        children, grown = np.concatenate([children, parents]), np.concatenate([grown, values])
    chosen = np.argsort(grown, kind="stable")[:n_parents]
    return children[chosen], grown[chosen]


def evolve_by_cma(task: Task, search: CMAES) -> Embedding:
    """Return the embedding of the lowest error of all that CMA-ES meets."""
    try:
        from cma import CMAEvolutionStrategy
    except ImportError as error:
        raise ImportError(
            "CMA-ES needs the package cma, which is not installed: "
            f"{install_command('evolution')}. search='evolution' or 'strategy' needs no further "
            "package."
        ) from error
    n, q = len(task.Y), task.q
    if n < 2:
        return Embedding(np.zeros((n, q)), 0, "nothing to place", np.zeros(1))
    if n * q > MOST_UNKNOWNS:
        warn(
            f"CMA-ES with {n * q} unknowns ({n} rows, {q} dimensions) may take minutes; it is for "
            f"up to {MOST_UNKNOWNS}. search='gaussian' takes milliseconds."
        )
    whole_error = whole_error_of(task, search.include_self)
    is_box = search.space == "box"

    def value_of(candidates: FloatArray) -> FloatArray:
        if is_box:
            return whole_error(candidates) + outside(candidates)
        return whole_error(candidates) + search.penalty * (candidates**2).sum(axis=(1, 2))

    X: FloatArray = task.rng.random((n, q)) if is_box else task.rng.standard_normal((n, q))
    best = float(value_of(X[None])[0])
    history, done, reason = [best], 0, ALL_MADE
    options = {
        "popsize": 4 * n if search.population is None else int(search.population),
        "maxiter": int(search.n_generations),
        "randn": lambda *shape: task.rng.standard_normal(shape),
        # Not a number: leave numpy's global generator alone.
        "seed": np.nan,
        "verbose": -9,
        "verb_log": 0,
        "signals_filename": "",
    }
    try:
        strategy = CMAEvolutionStrategy(X.ravel(), search.sigma, options)
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
    return np.square(candidates - np.clip(candidates, 0, 1)).sum(axis=(1, 2))


def into_box(X: FloatArray) -> FloatArray:
    """Shift an embedding (n, q) into the unit box, and shrink it if it is too large for that."""
    low, high = X.min(axis=0), X.max(axis=0)
    extent = float((high - low).max())
    if extent > 1:
        moved: FloatArray = (X - low) / extent
    else:
        moved = X + np.maximum(0.0, -low) - np.maximum(0.0, high - 1)
    return np.clip(moved, 0, 1)  # rounding


def whole_error_of(task: Task, include_self: bool) -> Callable[[FloatArray], FloatArray]:
    """Return E (m,) as a function of embeddings (m, n, q)."""
    Y = task.Y - task.Y.mean(axis=0) if task.error.is_shift_invariant else task.Y
    rows = rows_of(Y, task.weights)
    rule = get_rule(task.n_neighbors, "full", task.error, include_self)
    rule = rule._replace(n_others=min(rule.n_others, len(Y) - 1))

    def whole_error(candidates: FloatArray) -> FloatArray:
        m, n, q = candidates.shape
        values = np.zeros(m)

        def work(part: slice) -> None:  # each embedding by itself, so threads do not matter
            judge = judge_of(rows, rule)
            _write_values(empty_tree(n, q), candidates[part], rows, judge, values[part])

        if n > 1:  # or nobody has a neighbour
            run_tasks(work, slices(m, _EMBEDDINGS), task.n_threads)
        return values

    return whole_error


@compiled
def _write_values(
    tree: PointTree, candidates: FloatArray, rows: Rows, judge: Judge, values: FloatArray
) -> None:
    for c in range(len(candidates)):
        if tree.X.shape[1] == 1:
            values[c] = _error_on_line(candidates[c, :, 0], rows, judge)
            continue
        for i in range(len(tree.X)):
            assign(tree.X[i], candidates[c, i])
        tree.leaf_of[:] = 0  # all points are in the tree; rebuilding finds out where
        rebuild(tree)
        errors, _ = list_errors(tree, rows, judge)
        total = 0.0
        for i in range(errors.size):
            total += rows.weights[i] * errors[i]
        values[c] = total


@compiled
def _error_on_line(x: FloatArray, rows: Rows, judge: Judge) -> float:
    """Return the error of an embedding x (n,): sorted points have their neighbours beside them."""
    n, near, f, rule = x.size, judge.found, judge.f, judge.rule
    order = np.argsort(x)
    total = 0.0
    for rank in range(n):
        i = order[rank]
        left, right = rank - 1, rank + 1
        for place in range(rule.n_others):
            if right == n or (left >= 0 and x[i] - x[order[left]] <= x[order[right]] - x[i]):
                near[place] = order[left]
                left -= 1
            else:
                near[place] = order[right]
                right += 1
        count = rule.n_others
        if rule.include_self:
            near[count] = i
            count += 1
        write_mean(rows, near, count, f)
        total += rows.weights[i] * error_of_mean(f, rows, i, rule.error)
    return total

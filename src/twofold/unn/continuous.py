"""Rows that are put anywhere in latent space, one after the other: Gaussian and swarm embedding.

``y*`` is the nearest row that is embedded already and ``x*`` its place. Gaussian embedding
(Kramer 2013, Algorithm 10) tries random places around it; the row goes where its error is lowest:

    x_l = x* + σ z_l,   z_l ~ N(0, I),   σ = ||y - y*||²,   l = 1..κ              (7.2, 7.3)

Line 6 of the algorithm has ``σ N(x*, 1)``, which would scale ``x*`` as well. Particle swarm
embedding, PSEA (Algorithm 9), lets a particle start from there with a random velocity and keep its
best place x~:

    v ← v + c₁ r₁ (x~ - x) + c₂ r₂ (x* - x),   x ← x + v,   v ~ N(0, I), r ~ U[0, 1]   (6.14, 6.15)

The start is not among the places it may keep: neighbours of x* reconstruct a row near y* better
than most, and everything would end up on one latent point.

Refinement (beyond the book, which never looks at a row twice) takes each row up again, looks around
the nearest of *all* rows, and moves it if that lowers the error of the whole embedding. The error
changes for the row itself and for those that have it among their neighbours before or after; these
are found by their distances to their last neighbours.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled, square, written_into_callers
from twofold.engine.threads import slices
from twofold.small_systems import assign
from twofold.unn.growing import ROUNDING, PointTree, find_nearest, insert, remove, tree_of
from twofold.unn.nearest_rows import nearest_rows
from twofold.unn.point_errors import PointError
from twofold.unn.rows import (
    Rows,
    Rule,
    Watch,
    Weights,
    error_of_mean,
    get_rule,
    is_complete,
    rows_of,
    squared_gap,
    write_mean,
)
from twofold.unn.searches import Continuous, Gaussian

# Rows between two looks at the progress; random numbers are drawn for this many rows at a time.
BLOCK = 256


class ContinuousPoints:
    """Rows with latent points, to which rows can be added."""

    # `has_kernel` says whether a data kernel was given; the linear one leaves no trace in `error`.

    def __init__(
        self,
        q: int,
        search: Continuous,
        *,
        n_neighbors: int,
        rng: np.random.Generator,
        error: PointError | None = None,
        has_kernel: bool = False,
        n_threads: int = 1,
    ) -> None:
        self.search, self.rng, self.n_threads = search, rng, n_threads
        self.rule = get_rule(n_neighbors, "point", error or PointError(), search.include_self)
        self.by_value = has_kernel and search.nearest == "argmax"
        self.Y: FloatArray = np.empty((0, 0))
        self.weights: FloatArray = np.empty(0)
        self.latent: FloatArray = np.empty((0, q))
        self.tree = tree_of(self.latent, BLOCK)

    def load(self, Y: FloatArray, X: FloatArray, weights: Weights = None) -> None:
        """Take over rows that have latent points already."""
        self._append(Y, weights)
        self.latent = np.ascontiguousarray(X, dtype=np.float64)
        self.tree = tree_of(self.latent, len(X) + BLOCK)

    def insert(self, Y: FloatArray, weights: Weights = None, watch: Watch | None = None) -> None:
        """Embed rows Y (m, D), NaN for missing entries, one by one; `watch` hears how many."""
        before = len(self.latent)
        self._append(Y, weights)
        n, first = len(self.Y), max(before, 1)
        if n > len(self.tree.X):
            self.tree = tree_of(self.latent, n + max(n // 2, BLOCK))
        rows, judge = self._rows()
        nearest = np.zeros(n - before, dtype=np.int64)  # the first row of all has none
        new = np.empty(0)
        if n > first:
            some = self._nearest(rows, self.by_value, first=first, earlier=True)
            nearest[first - before :] = some
        for part in slices(n - before, BLOCK):
            # The stream of random numbers is one for all blocks, so their size does not matter.
            tries = self._draw(part.stop - part.start)
            put_rows(self.tree, rows, before + part.start, nearest[part], tries, judge, new, new)
            if watch is not None:
                watch(before + part.stop)
        self.latent = self.tree.X[:n].copy()

    def fill(self, number: int) -> FloatArray:
        """Fill the missing entries of a row by the mean of its neighbours; return it (D,)."""
        gaps = np.isnan(self.Y[number])
        if gaps.any():
            rows, (rule, found, sq_dists, f) = self._rows()
            x = self.latent[number]
            count = find_nearest(self.tree, x, number, rule.n_others, found, sq_dists)
            write_mean(rows, found, count, f)
            self.Y[number, gaps] = f[gaps]
        return self.Y[number]

    def full_error(self) -> float:
        """Return the weighted sum of the errors of all rows, as the search counts them."""
        return float(self.weights @ list_errors(self.tree, *self._rows())[0])

    def refine(self, n_sweeps: int = 1, watch: Watch | None = None) -> list[float]:
        """Put each row where the whole error falls; return the errors on the way."""
        # An interrupt ends it between two blocks of rows, with every row in its place.
        rows, judge = self._rows()
        n, nearest = len(self.latent), self._nearest(rows)
        errors, reach = list_errors(self.tree, rows, judge)
        totals = [float(self.weights @ errors)]
        try:
            for sweep in range(n_sweeps):
                for part in slices(n, BLOCK):
                    near, tries = nearest[part], self._draw(part.stop - part.start)
                    put_rows(self.tree, rows, part.start, near, tries, judge, errors, reach)
                self.latent = self.tree.X[:n].copy()
                totals.append(float(self.weights @ errors))
                if watch is not None:
                    watch(sweep + 1)
        finally:
            self.latent = self.tree.X[:n].copy()
        return totals

    def _append(self, Y: FloatArray, weights: Weights) -> None:
        new = np.array(Y, dtype=np.float64, ndmin=2)
        own = np.ones(len(new)) if weights is None else np.asarray(weights, dtype=np.float64)
        self.Y = new if not len(self.Y) else np.concatenate([self.Y, new])
        self.weights = np.concatenate([self.weights, own])

    def _rows(self) -> tuple[Rows, Judge]:
        rows = rows_of(self.Y, self.weights)
        return rows, judge_of(rows, self.rule)

    def _draw(self, m: int) -> Tries:
        """Return the random numbers for m rows."""
        search, q = self.search, self.latent.shape[1]
        if isinstance(search, Gaussian):
            Z = self.rng.standard_normal((m, search.n_candidates, q))
            return Tries(search.spread == "squared", Z, np.empty((m, 0, 2)), np.zeros(2))
        Z, lots = np.empty((m, 1, q)), np.empty((m, search.n_steps, 2))
        for j in range(m):
            Z[j], lots[j] = self.rng.standard_normal((1, q)), self.rng.random((search.n_steps, 2))
        return Tries(False, Z, lots, np.array(search.pull))

    def _nearest(self, rows: Rows, by_value: bool = False, **which: Any) -> IntArray:
        error, which["n_threads"] = self.rule.error, self.n_threads
        if error.is_shift_invariant and is_complete(rows) and not by_value:
            # About their mean less is lost to rounding.
            rows = rows._replace(values=rows.values - rows.values.mean(axis=0))
        return nearest_rows(rows, error, by_value=by_value, **which)[:, 0]


class Judge(NamedTuple):
    """What a latent place of a row is judged by, and room for what is found there."""

    rule: Rule
    found: IntArray  # (k + 1,) the neighbours of the latest place, and the row itself
    sq_dists: FloatArray  # (k,) their squared distances
    f: FloatArray  # (D,) their mean


@compiled
def judge_of(rows: Rows, rule: Rule) -> Judge:
    """Return a judge of the places of such rows."""
    k = rule.n_others
    return Judge(rule, np.empty(k + 1, dtype=np.int64), np.empty(k), np.empty(rows.values.shape[1]))


@compiled
def place_error(tree: PointTree, rows: Rows, x: FloatArray, i: int, judge: Judge) -> float:
    """Return the error of row i at the latent place x, with k other rows as its neighbours."""
    rule, found, f = judge.rule, judge.found, judge.f
    count = find_nearest(tree, x, i, rule.n_others, found, judge.sq_dists)
    # Places with the same neighbours must tie to the last bit, whatever the order of these.
    _sort_few(found, count)
    if rule.include_self:
        found[count] = i
        count += 1
    write_mean(rows, found, count, f)
    return error_of_mean(f, rows, i, rule.error)


@compiled
def _sort_few(numbers: IntArray, count: int) -> None:
    """Sort the first numbers, of which there are few, by insertion; numba compiles a quicksort."""
    for k in range(1, count):
        number, place = numbers[k], k
        while place > 0 and numbers[place - 1] > number:
            numbers[place] = numbers[place - 1]
            place -= 1
        numbers[place] = number


@compiled
def list_errors(tree: PointTree, rows: Rows, judge: Judge) -> tuple[FloatArray, FloatArray]:
    """Return the error of each row, and the squared distance to its last neighbour."""
    n = rows.values.shape[0]
    errors, reach = np.empty(n), np.empty(n)
    for i in range(n):
        errors[i] = place_error(tree, rows, tree.X[i], i, judge) if n > 1 else 0.0
        reach[i] = judge.sq_dists[max(min(judge.rule.n_others, n - 1) - 1, 0)]
    return errors, reach


class Tries(NamedTuple):
    """Random numbers for the places of some rows."""

    is_squared: bool  # whether places spread by the squared distance to the nearest row
    Z: FloatArray  # (rows, places, q) steps; of a particle the first velocity, (rows, 1, q)
    lots: FloatArray  # (rows, steps, 2) for a particle; no steps if places are drawn
    pull: FloatArray  # (2,) how strongly a particle is drawn


@written_into_callers
def _find_place(
    tree: PointTree,
    rows: Rows,
    i: int,
    near: int,
    tries: Tries,
    place: int,
    judge: Judge,
    best: FloatArray,
) -> float:
    """Write the best place around that of row ``near``; return the error of row i there."""
    origin, Z, lots = tree.X[near], tries.Z[place], tries.lots[place]
    x, v, lowest = origin.copy(), Z[0].copy(), 0.0
    total, common = squared_gap(rows.values[i], rows.mass[i], rows.values[near], rows.mass[near])
    # (7.3), over common entries scaled up to all; rows without any tell no distance.
    sigma = total * rows.values.shape[1] / common if common > 0.0 else 1.0
    if not tries.is_squared:
        sigma = np.sqrt(sigma)
    assign(best, origin)
    for step in range(max(lots.shape[0], Z.shape[0])):
        for m in range(x.size):
            if lots.shape[0] > 0:
                v[m] += tries.pull[0] * lots[step, 0] * (best[m] - x[m])
                v[m] += tries.pull[1] * lots[step, 1] * (origin[m] - x[m])
                x[m] += v[m]
            else:
                x[m] = origin[m] + sigma * Z[step, m]
        e = place_error(tree, rows, x, i, judge)
        if step == 0 or e < lowest:
            lowest = e
            assign(best, x)
    return lowest


@compiled
def put_rows(
    tree: PointTree,
    rows: Rows,
    first: int,
    nearest: IntArray,
    tries: Tries,
    judge: Judge,
    errors: FloatArray,
    reach: FloatArray,
) -> None:
    """Embed rows from ``first`` on, each around the place of its nearest one.

    Rows that are there, with the ``errors`` (n,) and ``reach`` (n,) of all that `list_errors` has
    found, are taken up and put where the whole error is lower. There are none for new rows.
    """
    n, q, is_there = rows.values.shape[0], tree.X.shape[1], errors.size > 0
    last = min(judge.rule.n_others, n - 1) - 1
    best, old = np.zeros(q), np.zeros(q)
    touched, e_new, r_new = np.empty(n + 1, dtype=np.int64), np.empty(n), np.empty(n)
    for place in range(nearest.size):
        i, lowest = first + place, 0.0
        best[:] = 0.0
        if is_there:
            assign(old, tree.X[i])
            remove(tree, i)
        if i > 0 or is_there:
            lowest = _find_place(tree, rows, i, nearest[place], tries, place, judge, best)
        # What is no better for the row itself is not tried on all others.
        is_tried = is_there and lowest < errors[i]
        if is_tried or not is_there:
            assign(tree.X[i], best)
        insert(tree, i)
        if not is_tried:
            continue
        count = 0
        for j in range(n):  # the rows that have row i among their neighbours before or after
            before, after = 0.0, 0.0
            for m in range(q):
                before += square(tree.X[j, m] - old[m])
                after += square(tree.X[j, m] - best[m])
            touched[count] = j
            count += (j != i) & (min(before, after) <= reach[j] * ROUNDING)
        touched[count] = i
        change = 0.0
        for t in range(count + 1):
            j = touched[t]
            e_new[t] = place_error(tree, rows, tree.X[j], j, judge)
            r_new[t] = judge.sq_dists[last]
            change += rows.weights[j] * (e_new[t] - errors[j])
        if change < 0.0:
            for t in range(count + 1):
                errors[touched[t]], reach[touched[t]] = e_new[t], r_new[t]
        else:
            remove(tree, i)
            assign(tree.X[i], old)
            insert(tree, i)

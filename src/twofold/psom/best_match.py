"""Best matches: the place whose image comes nearest to given data components.

    x* = argmin_x Σ_i p_i (f_i(x) - y_i)²                         (Klanke 2007, eqs. 3.6 and 3.7)

Components with p_i = 0, or with NaN in y, take no part in the search and are read off f(x*)
afterwards: one map answers every question about which components follow from which others, such as
forward and inverse kinematics.

The search starts at the best matching node, or at a given place, and goes on by
Levenberg-Marquardt steps within the domain. More starts are the next best nodes that are not grid
neighbours of one chosen before; a later start wins only if it ends visibly better, so that
questions with many answers get the one near their first start.

Each component is measured in a unit near the spread of its node values, and weights relative to the
largest of their row: no square leaves the range of numbers. A row very far from all nodes is moved
towards them before the search: further out only its direction matters, and rounding errors hide it.

A local map (see `interpolation`) is searched within the window around the start, then in the
window around what was found, until the two agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.checks.parameters import check_count
from twofold.checks.rows import LARGEST
from twofold.compiled import compiled
from twofold.engine.threads import count_threads, run_tasks, slices
from twofold.optimize.levenberg_marquardt import LeastSquares, Residuals, levenberg_marquardt
from twofold.psom.grid import Grid
from twofold.psom.interpolation import Windows, checked_values, jets
from twofold.rowwise import power_of_two

ROWS_PER_TASK = 256
# Fewer rows where each is long: the Jacobians of a task have at most this many entries.
ENTRIES_PER_TASK = 2**20
# A residual this small beside the spread of the node values counts as none.
REACHED = 1e-9
# Rows further off than this many spreads of the node values are pulled nearer for the search.
FAR = 1e5
# The windows of a local map may be visited in circles.
MOST_WINDOWS = 8


@dataclass(frozen=True)
class BestMatch:
    """The result of a search for best matches.

    ``places`` (m, q), ``images`` (m, D) there in all components, weighted ``squared_errors`` (m,)
    of the searched ones, whether the search ``converged`` (m,), and steps of all starts ``n_iter``.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold import PSOM
    >>> model = PSOM(1, nodes=[np.arange(5.0)]).fit_grid(np.arange(5.0)[:, None] ** 2)
    >>> found = model.best_match([[4.0]])
    >>> found.places.round(3), found.converged
    (array([[2.]]), array([ True]))
    """

    places: FloatArray
    images: FloatArray
    squared_errors: FloatArray
    converged: BoolArray
    n_iter: IntArray


def best_match(
    grid: Grid,
    W: ArrayLike,
    Y: ArrayLike,
    *,
    component_weights: ArrayLike | None = None,
    start: ArrayLike | None = None,
    n_starts: int = 1,
    local: int | None = None,
    max_iter: int = 60,
    n_jobs: int | None = -1,
) -> BestMatch:
    """Find the places whose images best match rows Y (m, D) of data, for node values W (N, D).

    Components that are NaN are not searched; weights are (D,) or (m, D). The search starts from
    ``start`` (m, q), which counts among ``n_starts``, or else from the best matching nodes, and
    stays in the domain of the grid: far outside it the map means nothing.
    """
    values = checked_values(grid, W)
    data, weights = _checked_data(values, Y, component_weights)
    first = None if start is None else _checked_start(grid, start, len(data))
    check_count("n_starts", n_starts)
    scaled = _Scaled.of(values, data, weights)
    used = np.flatnonzero(scaled.weights.any(axis=0))
    search = _Search(grid, scaled.W[:, used], Windows.of(grid, local), max_iter)

    def work(rows: slice) -> LeastSquares:
        given = None if first is None else first[rows]
        asked, counted = scaled.Y[rows][:, used], scaled.weights[rows][:, used]
        return search.run(asked, counted, given, n_starts)

    size = max(1, min(ROWS_PER_TASK, ENTRIES_PER_TASK // max(1, len(used) * grid.n_axes)))
    n_threads = count_threads(n_jobs)
    tasks = slices(len(data), size) or [slice(0)]
    found = LeastSquares.joined(run_tasks(work, tasks, n_threads))
    around = search.windows.around(found.X)
    shifted = jets(search.windows, scaled.W, found.X, around, 0, n_threads)[:, 0] * scaled.unit
    off = np.where(weights > 0, shifted - (data - scaled.level), 0.0)
    with np.errstate(over="ignore"):
        errors = (weights * off**2).sum(axis=1)
    images = shifted + scaled.level
    return BestMatch(found.X, images, errors, found.converged, found.n_iter)


@dataclass(frozen=True, eq=False)
class _Scaled:
    """A search in units in which node values spread by about 1, around 0."""

    W: FloatArray  # (N, D)
    Y: FloatArray  # (m, D)
    weights: FloatArray  # (m, D), at most about 1, 0 for constant components
    level: FloatArray  # (D,) what W was shifted by
    unit: FloatArray  # (D,) and divided by

    @classmethod
    def of(cls, W: FloatArray, Y: FloatArray, weights: FloatArray) -> _Scaled:
        # Basis functions add up to 1: a shift of W and Y changes nothing but rounding errors.
        level = W.mean(axis=0)
        spread = W.max(axis=0) - W.min(axis=0)
        unit = power_of_two(spread)
        # Components that are the same everywhere say nothing about the place.
        roots = np.sqrt(weights) * np.where(spread > 0, unit, 0.0)
        roots = roots / power_of_two(roots.max(axis=1, initial=0.0))[:, None]
        with np.errstate(over="ignore"):
            asked = np.clip((Y - level) / unit, -LARGEST, LARGEST)
        asked = np.where(roots > 0, asked, 0.0)
        distance = np.linalg.norm(roots * asked, axis=1)
        nearer = FAR / np.maximum(distance, FAR)
        return cls((W - level) / unit, asked * nearer[:, None], roots**2, level, unit)


def _checked_data(
    W: FloatArray, Y: ArrayLike, component_weights: ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Return data with zeros for what is not searched, and the weights (m, D)."""
    data = np.asarray(Y, dtype=np.float64)
    if data.ndim != 2 or data.shape[1] != W.shape[1]:
        raise ValueError(
            f"`Y` must be an array (m, {W.shape[1]}) of data rows; got shape {data.shape}."
        )
    weights = np.asarray(1.0 if component_weights is None else component_weights, dtype=np.float64)
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("`component_weights` must be finite and not negative.")
    if weights.shape not in ((), data.shape[1:], data.shape):
        raise ValueError(
            f"`component_weights` must have the shape {data.shape[1:]} or {data.shape}; got "
            f"{weights.shape}."
        )
    if np.isinf(data).any():
        raise ValueError("`Y` must be finite, or NaN for components that are not searched.")
    weights = np.where(np.isnan(data), 0.0, weights)
    return np.where(weights > 0, data, 0.0), weights


def _checked_start(grid: Grid, start: ArrayLike, m: int) -> FloatArray:
    places = np.asarray(start, dtype=np.float64)
    if places.shape != (m, grid.n_axes):
        raise ValueError(
            f"`start` must be an array ({m}, {grid.n_axes}), one place for each row of data; "
            f"got shape {places.shape}."
        )
    if not np.isfinite(places).all():
        raise ValueError("`start` must be finite; it holds NaN or infinity.")
    return places


def _put(found: LeastSquares, rows: IntArray, other: LeastSquares) -> None:
    """Take over the rows of another, except the count of steps."""
    found.X[rows], found.error[rows], found.converged[rows] = other.X, other.error, other.converged


class _Search:
    """The search of rows that are worked on together; W holds the searched components only."""

    def __init__(self, grid: Grid, W: FloatArray, windows: Windows, max_iter: int) -> None:
        self.grid, self.windows, self.max_iter = grid, windows, max_iter
        self.W = np.ascontiguousarray(W)
        self.W_by_component = np.ascontiguousarray(W.T)
        self.squared_spread = (W.max(axis=0) - W.min(axis=0)) ** 2
        self.node_indices = np.stack(np.unravel_index(np.arange(grid.size), grid.shape), axis=1)

    def run(
        self, Y: FloatArray, weights: FloatArray, given: FloatArray | None, n_starts: int
    ) -> LeastSquares:
        starts = self._starts(Y, weights, given, n_starts)
        found = self._descend(Y, weights, starts[:, 0])
        reached = REACHED**2 * (weights * self.squared_spread).sum(axis=1)
        for number in range(1, starts.shape[1]):
            open_rows = np.flatnonzero(found.error > reached)
            if not len(open_rows):
                break
            other = self._descend(Y[open_rows], weights[open_rows], starts[open_rows, number])
            found.n_iter[open_rows] += other.n_iter
            gain = found.error[open_rows] - other.error
            better = gain > reached[open_rows] + 1e-9 * other.error
            _put(found, open_rows[better], other.of(better))
        return found

    def _starts(
        self, Y: FloatArray, weights: FloatArray, given: FloatArray | None, n_starts: int
    ) -> FloatArray:
        """Return places (m, n_starts, q)."""
        n_nodes = n_starts if given is None else n_starts - 1
        # Zeros: where every distance is infinite no node is the best, and the first one is taken.
        nodes = np.zeros((len(Y), n_nodes), dtype=np.int64)
        _best_nodes_apart(Y, weights, self.W_by_component, self.node_indices, nodes)
        places = np.stack(
            [axis[self.node_indices[nodes, mu]] for mu, axis in enumerate(self.grid.nodes)], axis=-1
        )
        if given is not None:
            return np.concatenate([given[:, None], places], axis=1)
        # A row that asks for nothing gets the middle of the domain rather than its first corner.
        places[~weights.any(axis=1)] = (self.grid.lo + self.grid.hi) / 2
        return places

    def _descend(self, Y: FloatArray, weights: FloatArray, start: FloatArray) -> LeastSquares:
        if self.windows.are_whole:
            window = self.windows.around(start)
            return self._descend_within(Y, weights, start, window, self.grid.lo, self.grid.hi)
        return self._descend_through_windows(Y, weights, start)

    def _descend_within(
        self,
        Y: FloatArray,
        weights: FloatArray,
        start: FloatArray,
        windows: IntArray,
        lo: FloatArray,
        hi: FloatArray,
    ) -> LeastSquares:
        def look(x: FloatArray, rows: IntArray) -> Residuals:
            parts = jets(self.windows, self.W, x, windows[rows], 1, None)
            return Residuals(parts[:, 0] - Y[rows], parts[:, 1:], weights[rows])

        scale = self.grid.hi - self.grid.lo
        # Outside the domain the polynomials soon overflow; such steps are refused.
        with np.errstate(over="ignore", invalid="ignore"):
            return levenberg_marquardt(
                look, start, lo=lo, hi=hi, scale=scale, max_iter=self.max_iter
            )

    def _descend_through_windows(
        self, Y: FloatArray, weights: FloatArray, start: FloatArray
    ) -> LeastSquares:
        """Search window by window; keep the best place by the error in the window around it."""
        start = np.clip(start, self.grid.lo, self.grid.hi)
        n_iter = np.zeros(len(Y), dtype=np.int64)
        best = LeastSquares(start.copy(), self._errors(Y, weights, start), n_iter > 0, n_iter)
        rows, window = np.arange(len(Y)), self.windows.around(start)
        for _ in range(MOST_WINDOWS):
            lo, hi = self._window_box(window)
            end = self._descend_within(Y[rows], weights[rows], start, window, lo, hi)
            best.n_iter[rows] += end.n_iter
            around = self.windows.around(end.X)
            settled = (around == window).all(axis=1)
            # An error counts in the window around a place only; it was found in another one where
            # the place has left that.
            errors = np.where(settled, end.error, np.inf)
            if not settled.all():
                moved = np.flatnonzero(~settled)
                errors[moved] = self._errors(Y[rows[moved]], weights[rows[moved]], end.X[moved])
            better = errors <= best.error[rows]
            found = LeastSquares(end.X, errors, end.converged & settled, end.n_iter)
            _put(best, rows[better], found.of(better))
            rows, window, start = rows[~settled], around[~settled], end.X[~settled]
            if not len(rows):
                break
        return best

    def _errors(self, Y: FloatArray, weights: FloatArray, X: FloatArray) -> FloatArray:
        f = jets(self.windows, self.W, X, self.windows.around(X), 0, None)[:, 0]
        return (weights * (f - Y) ** 2).sum(axis=1)

    def _window_box(self, window: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the borders (m, q) of windows: outer nodes, but the domain's at its ends."""
        lo, hi = np.empty(window.shape), np.empty(window.shape)
        for axis, nodes in enumerate(self.grid.nodes):
            first, last = window[:, axis], window[:, axis] + self.windows.shape[axis] - 1
            lo[:, axis] = np.where(first == 0, self.grid.lo[axis], nodes[first])
            hi[:, axis] = np.where(last == len(nodes) - 1, self.grid.hi[axis], nodes[last])
        return lo, hi


@compiled
def _best_nodes_apart(
    Y: FloatArray,
    weights: FloatArray,
    W_by_component: FloatArray,
    node_indices: IntArray,
    found: IntArray,
) -> None:
    """Find for each row the best nodes (m, k) no two of which are grid neighbours.

    Where there are not enough of them the best node stands in.
    """
    n, q = node_indices.shape
    distance = np.empty(n)
    for j in range(Y.shape[0]):
        distance[:] = 0
        for d in range(Y.shape[1]):
            p, y = weights[j, d], Y[j, d]
            if p > 0:
                for i in range(n):
                    off = W_by_component[d, i] - y
                    distance[i] += p * off * off
        for c in range(found.shape[1]):
            best, least = -1, np.inf
            for i in range(n):
                if distance[i] < least:
                    apart = True
                    for b in range(c):
                        near = True
                        for a in range(q):
                            gap = node_indices[i, a] - node_indices[found[j, b], a]
                            near = near and abs(gap) <= 1
                        apart = apart and not near
                    if apart:
                        best, least = i, distance[i]
            found[j, c] = best if best >= 0 else found[j, 0]

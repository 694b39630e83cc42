"""The map of a grid with node values, and its derivatives.

    f(x) = Σ_g w_g Π_μ l^μ_{g_μ}(x_μ)                                     (Klanke 2007, eq. 3.2)

The sum is taken axis by axis: the first axis is summed out of the (n_1, …, n_q, D) array of node
values, then the next of what is left, and so on. A derivative is the same with the polynomials of
an axis replaced by their derivatives, and partial sums are shared: the value and the q slopes
together cost little more than two passes over the node values.

Rows are worked on one by one within tasks of fixed size. So memory stays bounded, and a row gives
the same result alone or among others, on any number of threads.

Windows say which nodes a point is interpolated from. The full map uses all nodes for every point.
The local one (Walter and Ritter 1995; Klanke 2007, section 3.1) uses only n_l nodes per axis: those
around the node nearest to the point, moved inwards at the borders,

    start = clip(c - ⌊n_l / 2⌋, 0, n - n_l),   c the index of the nearest node.

The polynomials have a low degree then and do not swing, but those of neighbouring windows do not
agree: the map jumps where the window changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import is_integer
from twofold.compiled import compiled
from twofold.engine.threads import count_threads, run_tasks, slices
from twofold.psom.basis import AxisBasis
from twofold.psom.grid import Grid

ROWS_PER_TASK = 256


def interpolate(
    grid: Grid, W: ArrayLike, X: ArrayLike, *, local: int | None = None, n_jobs: int | None = -1
) -> FloatArray:
    """Return f (m, D) at places X (m, q), for node values W (N, D) in C order.

    Of each axis ``local`` nodes around a place take part; None for all.
    """
    return _checked_jets(grid, W, X, 0, local, n_jobs)[:, 0]


def interpolate_with_jacobian(
    grid: Grid, W: ArrayLike, X: ArrayLike, *, local: int | None = None, n_jobs: int | None = -1
) -> tuple[FloatArray, FloatArray]:
    """Return f (m, D) and its Jacobian (m, D, q); arguments as in `interpolate`."""
    parts = _checked_jets(grid, W, X, 1, local, n_jobs)
    return parts[:, 0], np.moveaxis(parts[:, 1:], 1, 2)


def hessian(
    grid: Grid, W: ArrayLike, X: ArrayLike, *, local: int | None = None, n_jobs: int | None = -1
) -> FloatArray:
    """Return the second derivatives (m, D, q, q) of f; arguments as in `interpolate`."""
    parts = _checked_jets(grid, W, X, 2, local, n_jobs)
    q = grid.n_axes
    slot = np.empty((q, q), dtype=np.int64)
    first, second = np.tril_indices(q)
    # Behind f and its q slopes; both orders of a mixed derivative read the same slot.
    slot[first, second] = slot[second, first] = np.arange(len(first)) + 1 + q
    return np.moveaxis(parts[:, slot], 3, 1)


def _checked_jets(
    grid: Grid, W: ArrayLike, X: ArrayLike, order: int, local: int | None, n_jobs: int | None
) -> FloatArray:
    values = checked_values(grid, W)
    places = np.asarray(X, dtype=np.float64)
    if places.ndim != 2 or places.shape[1] != grid.n_axes:
        raise ValueError(
            f"`X` must be an array (m, {grid.n_axes}) of places; got shape {places.shape}."
        )
    windows = Windows.of(grid, local)
    return jets(windows, values, places, windows.around(places), order, count_threads(n_jobs))


def checked_values(grid: Grid, W: ArrayLike) -> FloatArray:
    """Return node values as a contiguous float64 array (N, D), or say what is wrong with them."""
    values = np.ascontiguousarray(W, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] != grid.size:
        raise ValueError(
            f"`W` must hold one row for each of the {grid.size} nodes; got shape {values.shape}."
        )
    return values


def jets(
    windows: Windows,
    W: FloatArray,
    X: FloatArray,
    starts: IntArray,
    order: int,
    n_threads: int | None,
) -> FloatArray:
    """Return f and its derivatives up to an order (0, 1 or 2) at places X (m, q).

    The array is (m, s, D): f, the q slopes, the q (q + 1) / 2 second derivatives (1, 1), (2, 1),
    (2, 2), … ``starts`` (m, q) are the first nodes of the windows of the places; ``n_threads`` is
    None within a task that runs on a thread of its own.
    """
    plan, n_slots = _plan(windows.grid.n_axes, order)
    out = np.empty((len(X), n_slots, W.shape[1]))
    grid_shape, shape = np.array(windows.grid.shape), np.array(windows.shape)

    def work(rows: slice) -> None:
        polynomials = windows.polynomials(X[rows], starts[rows], order)
        # The widest partial sums: those left after the first axis, of all slots.
        buffers = np.empty((2, n_slots * (windows.size // windows.shape[0]) * W.shape[1]))
        block = W if windows.are_whole else np.empty((windows.size, W.shape[1]))
        some = starts[rows]
        _contract_rows(W, grid_shape, shape, some, polynomials, plan, block, buffers, out[rows])

    tasks = slices(len(X), ROWS_PER_TASK)
    if n_threads is None:
        for rows in tasks:
            work(rows)
    elif tasks:
        run_tasks(work, tasks, n_threads)
    return out


@cache
def _plan(n_axes: int, order: int) -> tuple[IntArray, int]:
    """Return which partial sums each axis makes of those before it.

    Rows of the plan are (axis, from, derivative, to): take partial sum "from", sum the axis out
    with the polynomials' derivative, call the result "to".
    """
    slots: dict[tuple[int, ...], int] = {(): 0}
    for axis in range(n_axes if order >= 1 else 0):
        slots[(axis,)] = len(slots)
    for axis in range(n_axes if order >= 2 else 0):
        for other in range(axis + 1):
            slots[(other, axis)] = len(slots)
    steps = []
    for axis in range(n_axes):
        for slot, to in slots.items():
            if all(part <= axis for part in slot):
                before = tuple(part for part in slot if part < axis)
                steps.append((axis, slots[before], len(slot) - len(before), to))
    return np.array(steps), len(slots)


@compiled
def _contract_rows(
    W: FloatArray,
    grid_shape: IntArray,
    shape: IntArray,
    starts: IntArray,
    polynomials: FloatArray,
    plan: IntArray,
    block: FloatArray,
    buffers: FloatArray,
    out: FloatArray,
) -> None:
    q, D, n_slots = shape.size, W.shape[1], out.shape[1]
    whole = block.shape[0] == W.shape[0]
    for k in range(out.shape[0]):
        if not whole:
            _copy_window(W, grid_shape, shape, starts[k], block)
        flat = block.ravel()
        left = flat.size
        axis = -1
        for step in range(plan.shape[0]):
            if plan[step, 0] != axis:
                axis = plan[step, 0]
                left //= shape[axis]
            source, derivative, to = plan[step, 1], plan[step, 2], plan[step, 3]
            width = left * shape[axis]
            if axis == 0:
                before = flat
            else:
                before = buffers[(axis - 1) % 2, source * width : (source + 1) * width]
            # Two buffers take turns from axis to axis: one is read while the other is written.
            after = buffers[axis % 2, to * left : (to + 1) * left]
            _sum_out(before, polynomials[axis, derivative, k, : shape[axis]], after)
        for slot in range(n_slots):
            for d in range(D):
                out[k, slot, d] = buffers[(q - 1) % 2, slot * D + d]


@compiled
def _sum_out(T: FloatArray, c: FloatArray, out: FloatArray) -> None:
    """Set out (r,) to ``Σ_i c_i T_i`` of T (n, r), given flat; four rows at a time."""
    n, r = c.size, out.size
    i = n % 4
    for j in range(r):
        out[j] = 0.0
    for row in range(i):
        for j in range(r):
            out[j] += c[row] * T[row * r + j]
    while i < n:
        c0, c1, c2, c3 = c[i], c[i + 1], c[i + 2], c[i + 3]
        t0, t1, t2, t3 = i * r, (i + 1) * r, (i + 2) * r, (i + 3) * r
        for j in range(r):
            out[j] += (c0 * T[t0 + j] + c1 * T[t1 + j]) + (c2 * T[t2 + j] + c3 * T[t3 + j])
        i += 4


@compiled
def _copy_window(
    W: FloatArray, grid_shape: IntArray, shape: IntArray, start: IntArray, block: FloatArray
) -> None:
    q = shape.size
    index = np.zeros(q, dtype=np.int64)
    for row in range(block.shape[0]):
        node = 0
        for axis in range(q):
            node = node * grid_shape[axis] + start[axis] + index[axis]
        for d in range(W.shape[1]):
            block[row, d] = W[node, d]
        axis = q - 1
        index[axis] += 1
        while axis > 0 and index[axis] == shape[axis]:
            index[axis] = 0
            axis -= 1
            index[axis] += 1


@dataclass(frozen=True, eq=False)
class Windows:
    """The polynomials of every window of a grid."""

    grid: Grid  # the whole
    shape: tuple[int, ...]  # of a window
    bases: tuple[tuple[AxisBasis, ...], ...]  # of each axis, from the lowest window on

    @classmethod
    def of(cls, grid: Grid, local: int | None) -> Windows:
        """Return windows of ``local`` nodes per axis; of all nodes if None."""
        if local is not None and (not is_integer(local) or local < 2):
            raise ValueError(
                "`local` must be None (all nodes) or the number of nodes per axis of a window, "
                f">= 2; got {local!r}."
            )
        if local is not None and local > max(grid.shape):
            raise ValueError(
                f"`local` = {local} is more nodes than any axis has ({max(grid.shape)} at most); "
                "take fewer, or None for the full map."
            )
        shape = tuple(n if local is None else min(int(local), n) for n in grid.shape)
        bases = tuple(
            tuple(AxisBasis(nodes[start : start + n]) for start in range(len(nodes) - n + 1))
            for nodes, n in zip(grid.nodes, shape, strict=True)
        )
        return cls(grid, shape, bases)

    @property
    def are_whole(self) -> bool:
        """Whether there is one window only, the whole grid."""
        return self.shape == self.grid.shape

    @property
    def size(self) -> int:
        """Number of nodes of one window."""
        return int(np.prod(self.shape))

    def around(self, X: FloatArray) -> IntArray:
        """Return the first node (m, q) of the window around each place X (m, q)."""
        nearest = [
            np.searchsorted((nodes[1:] + nodes[:-1]) / 2, X[:, axis])
            for axis, nodes in enumerate(self.grid.nodes)
        ]
        shape = np.array(self.shape)
        highest = np.array(self.grid.shape) - shape
        return np.clip(np.stack(nearest, axis=1) - shape // 2, 0, highest)

    def polynomials(self, X: FloatArray, starts: IntArray, order: int) -> FloatArray:
        """Return derivatives 0…order of the polynomials in each row's window.

        The array is (q, order + 1, m, n_l); axes with fewer nodes leave the rest of it empty.
        """
        out = np.zeros((len(self.shape), order + 1, len(X), max(self.shape)))
        for axis, bases in enumerate(self.bases):
            x, first, n = X[:, axis], starts[:, axis], self.shape[axis]
            if len(bases) == 1:
                out[axis, :, :, :n] = bases[0].derivatives(x, order)
                continue
            for start in np.unique(first):
                rows = np.flatnonzero(first == start)
                out[axis][:, rows, :n] = bases[start].derivatives(x[rows], order)
        return out

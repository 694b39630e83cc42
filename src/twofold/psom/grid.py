"""The grid of nodes that carries a parameterized self-organizing map.

A grid is the Cartesian product of one increasing list of node coordinates per axis (Klanke 2007,
eq. 3.1). On an axis from lo to hi, with i = 1…n,

    regular     a_i = lo + (i - 1)/(n - 1) · (hi - lo)                     (3.9)
    chebyshev   a_i = lo + (1 - cos(π (i - 1/2)/n))/2 · (hi - lo)          (3.10)

The domain, the box from lo to hi, is kept apart from the nodes: Chebyshev nodes lie strictly
inside it. Polynomials through equidistant nodes swing wildly near the borders from about ten nodes
on; those through Chebyshev nodes do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from twofold.array_types import FloatArray
from twofold.checks.parameters import check_choice, is_number

SPACINGS = ("chebyshev", "regular")


@dataclass(frozen=True, eq=False)
class Grid:
    """Nodes on the axes of a latent box; rows of node values follow them in C order.

    ``nodes`` are an increasing array an axis, at least two nodes each; ``lo`` and ``hi`` (q,) are
    the borders of the domain, which holds all of them.

    Examples
    --------
    >>> from twofold.psom import Grid
    >>> grid = Grid.make((3, 4), bounds=[[0, 1], [0, 2]])
    >>> grid.size, grid.places().shape
    (12, (12, 2))
    """

    nodes: tuple[FloatArray, ...]
    lo: FloatArray
    hi: FloatArray

    def __post_init__(self) -> None:
        """Keep float64 copies of the arguments that satisfy what is promised above."""
        nodes = tuple(np.array(axis, dtype=np.float64) for axis in self.nodes)
        lo, hi = (np.array(border, dtype=np.float64) for border in (self.lo, self.hi))
        _check(nodes, lo, hi)
        for name, value in (("nodes", nodes), ("lo", lo), ("hi", hi)):
            object.__setattr__(self, name, value)

    @classmethod
    def make(
        cls,
        counts: int | Sequence[int],
        spacing: str = "chebyshev",
        bounds: ArrayLike | None = None,
    ) -> Grid:
        """Return a grid with ``counts`` nodes on its axes; a single number makes one axis.

        ``spacing`` is "chebyshev" or "regular"; ``bounds`` (q, 2) are the lowest and highest
        coordinate of each axis, [-1, 1] if None.
        """
        check_choice("spacing", spacing, SPACINGS)
        counts = [_checked_count(count) for count in np.atleast_1d(np.asarray(counts, object))]
        lo, hi = _borders(bounds, len(counts))
        steps = [_chebyshev(n) if spacing == "chebyshev" else np.linspace(0, 1, n) for n in counts]
        nodes = [
            # The last regular node is the border itself, not a rounding error away from it.
            np.minimum(low + step * (high - low), high)
            for step, low, high in zip(steps, lo, hi, strict=True)
        ]
        return cls(tuple(nodes), lo, hi)

    @classmethod
    def through(cls, nodes: Sequence[ArrayLike], bounds: ArrayLike | None = None) -> Grid:
        """Return a grid through given nodes; the domain ends at the outermost ones if not given."""
        axes = tuple(np.asarray(axis, dtype=np.float64) for axis in nodes)
        if bounds is None:
            if not all(axis.ndim == 1 and axis.size for axis in axes):
                raise ValueError("`nodes` must be one list of coordinates for each axis.")
            ends = np.array([(axis[0], axis[-1]) for axis in axes])
            return cls(axes, ends[:, 0], ends[:, 1])
        return cls(axes, *_borders(bounds, len(axes)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of nodes of each axis."""
        return tuple(len(axis) for axis in self.nodes)

    @property
    def size(self) -> int:
        """Number of nodes."""
        return int(np.prod(self.shape))

    @property
    def n_axes(self) -> int:
        """Number of axes, the latent dimension q."""
        return len(self.nodes)

    def places(self) -> FloatArray:
        """Return the coordinates (N, q) of all nodes in C order."""
        return np.stack(np.meshgrid(*self.nodes, indexing="ij"), axis=-1).reshape(-1, self.n_axes)


def _chebyshev(n: int) -> FloatArray:
    return (1 - np.cos(np.pi * (np.arange(n) + 0.5) / n)) / 2


def _checked_count(count: Any) -> int:
    if not is_number(count) or not float(count).is_integer() or float(count) < 2:
        raise ValueError(f"every axis of a grid needs a whole number of nodes >= 2; got {count!r}.")
    return int(float(count))


def _borders(bounds: ArrayLike | None, n_axes: int) -> tuple[FloatArray, FloatArray]:
    if bounds is None:
        return np.full(n_axes, -1.0), np.ones(n_axes)
    box = np.asarray(bounds, dtype=np.float64)
    if box.shape != (n_axes, 2):
        raise ValueError(
            f"`bounds` must be one (lowest, highest) pair for each of the {n_axes} axes, shape "
            f"({n_axes}, 2); got shape {box.shape}."
        )
    if not np.isfinite(box).all() or not (box[:, 0] < box[:, 1]).all():
        raise ValueError(
            "`bounds` must be finite (lowest, highest) pairs, the lowest below the highest; got "
            f"{box.tolist()}."
        )
    return box[:, 0].copy(), box[:, 1].copy()


def _check(nodes: tuple[FloatArray, ...], lo: FloatArray, hi: FloatArray) -> None:
    if not nodes:
        raise ValueError("a grid needs at least one axis.")
    if lo.shape != (len(nodes),) or hi.shape != (len(nodes),):
        raise ValueError(f"`lo` and `hi` must have one entry for each of the {len(nodes)} axes.")
    for number, (axis, low, high) in enumerate(zip(nodes, lo, hi, strict=True)):
        if axis.ndim != 1 or len(axis) < 2:
            raise ValueError(
                f"every axis of a grid needs at least 2 nodes in a list; axis {number} has the "
                f"shape {axis.shape}."
            )
        if not np.isfinite(axis).all() or not (np.diff(axis) > 0).all():
            raise ValueError(f"the nodes of axis {number} must be finite and strictly increasing.")
        if not (np.isfinite(low) and np.isfinite(high) and low <= axis[0] and axis[-1] <= high):
            raise ValueError(
                f"the domain of axis {number}, from {low} to {high}, must be finite and hold its "
                f"nodes, which run from {axis[0]} to {axis[-1]}."
            )

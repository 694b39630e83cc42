"""What of a latent space a picture shows: two of its coordinates, and a lattice over them.

A space of one dimension has one axis. Of a space of more than two dimensions two coordinates are
shown; the others are those of the row that is seen nearest. So whatever is painted (domain,
magnification, features) belongs to the rows that are seen there, and each row stands on its ground;
a plane cut through the middle would leave most of them aside.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.ndimage import binary_dilation, generate_binary_structure
from scipy.spatial import cKDTree

from twofold.array_types import BoolArray, FloatArray
from twofold.checks.rows import check_places_in_memory
from twofold.contract import TwoWayModel
from twofold.engine.threads import slices

# Places along the longer side: three or more for each bandwidth of a usual map.
FINE = 128
COARSE = 40
# A line costs little.
ALONG_LINE = 1000
# Room around the rows, as a part of the longer side, before the domain is looked for.
MARGIN = 0.12
MOST_WIDENINGS = 4
# Places at a time; bounds the memory of regressions with many features.
BLOCK = 1024
# Differences of the log density beyond this are cut: a density of 0 has no logarithm.
MOST_LOG = 4.0
# From this share of covered rows on, they are drawn along a slant; so far along both axes, as a
# share of the gap between places.
COVERED = 0.1
SLANT = np.array([0.75, 0.6])


@dataclass(frozen=True)
class Lattice:
    """A regular lattice of latent places."""

    axes: list[FloatArray]  # coordinates along each axis that is shown
    places: FloatArray  # (m, q), those of the first axis next to each other

    def shaped(self, values: Any) -> Any:
        """Return one value for each place as an array (second axis, first axis)."""
        return values.reshape([len(axis) for axis in self.axes[::-1]])

    def nearly(self, inside: BoolArray) -> BoolArray:
        """Return the places (m,) inside and next to them: the edge lies between places."""
        with_corners = generate_binary_structure(len(self.axes), 2)
        return binary_dilation(self.shaped(inside), with_corners, 2).ravel()

    def evaluate(
        self, function: Callable[[FloatArray], FloatArray], wanted: BoolArray, n_values: int = 1
    ) -> FloatArray:
        """Return what a function says of the wanted places (m, n_values); NaN for the others."""
        found = np.full((len(self.places), n_values), np.nan)
        chosen = np.flatnonzero(wanted)
        for part in slices(len(chosen), BLOCK):
            block = chosen[part]
            found[block] = function(self.places[block]).reshape(len(block), n_values)
        return found


class LatentView:
    """Two coordinates of a fitted model's latent space, or its only one."""

    def __init__(self, model: TwoWayModel, dims: tuple[int, int] = (0, 1)) -> None:
        check_places_in_memory(model)
        self.model = model
        self.q = int(model.embedding_.shape[1])
        self.dims = (0,) if self.q == 1 else _checked_dims(dims, self.q)

    @property
    def is_line(self) -> bool:
        """Whether the latent space has one dimension."""
        return self.q == 1

    @cached_property
    def rows(self) -> FloatArray:
        """What is seen of the embedding (n, 1 or 2)."""
        return np.asarray(self.model.embedding_[:, list(self.dims)], dtype=np.float64)

    @cached_property
    def slanted_rows(self) -> FloatArray:
        """The same with the rows of a lattice beside each other that would cover each other."""
        # Each is moved along a slant, less than half of the gap between places, by the rank of what
        # is not shown of it: as if the lattice were seen from a little aside.
        hidden = [m for m in range(self.q) if m not in self.dims]
        places, first = np.unique(self.rows, axis=0, return_inverse=True)
        layers, rank = np.unique(self.model.embedding_[:, hidden], axis=0, return_inverse=True)
        pairs = np.unique(np.column_stack([first.ravel(), rank.ravel()]), axis=0)
        n_covered = len(pairs) - len(places)
        if len(layers) < 2 or len(places) < 2 or n_covered < COVERED * len(pairs):
            return self.rows
        gap = float(np.median(cKDTree(places).query(places, k=2)[0][:, 1]))
        share = rank.ravel() / (len(layers) - 1) - 0.5
        return self.rows + gap * share[:, None] * SLANT

    @property
    def names(self) -> list[str]:
        """The names of the axes; a feature without a name is called x1 as well."""
        return [latent_name(m) for m in self.dims]

    def places(self, seen: FloatArray) -> FloatArray:
        """Return latent places (m, q) for what is seen of them (m, 1 or 2)."""
        found = np.empty((len(seen), self.q))
        if self.q > len(self.dims):
            found = self.model.embedding_[self._tree.query(seen)[1]].astype(np.float64)
        found[:, list(self.dims)] = seen
        return found

    @cached_property
    def _tree(self) -> cKDTree:
        """Finds the row that is seen nearest."""
        return cKDTree(self.rows)

    def lattice(self, size: int = FINE) -> Lattice:
        """Return a lattice over the picture with `size` places along its longer side."""
        return self._lattice(self.limits, ALONG_LINE if self.is_line else size)

    def support(self, lattice: Lattice) -> FloatArray:
        """Return the log of density / border density (m,): positive inside the domain."""
        with np.errstate(divide="ignore"):
            found = np.log(self.model.density(lattice.places) / self.model.domain_threshold_)
        return np.clip(np.nan_to_num(found, nan=-MOST_LOG), -MOST_LOG, MOST_LOG).astype(np.float64)

    @cached_property
    def limits(self) -> FloatArray:
        """The box that holds all rows and the domain (1 or 2, 2)."""
        rows_box = np.stack([self.rows.min(axis=0), self.rows.max(axis=0)], axis=1)
        side = float(np.ptp(rows_box, axis=1).max()) or 1.0
        box = rows_box
        for _ in range(MOST_WIDENINGS):  # until the domain, which may reach far, ends inside
            box = box + MARGIN * side * np.array([-1, 1])
            lattice = self._lattice(box, COARSE)
            inside = lattice.shaped(self.support(lattice)) > 0
            ends = [np.take(inside, (0, -1), axis=axis) for axis in range(inside.ndim)]
            if not any(end.any() for end in ends):
                break
        return _cropped(box, rows_box, lattice.axes, inside)

    def _lattice(self, box: FloatArray, size: int) -> Lattice:
        step = float(np.ptp(box, axis=1).max()) / (size - 1)
        counts = [max(int(np.ceil(np.ptp(side) / step)) + 1, 2) for side in box]
        axes = [np.linspace(low, high, k) for (low, high), k in zip(box, counts, strict=True)]
        seen = np.stack([along.ravel() for along in np.meshgrid(*axes)], axis=1)
        return Lattice(axes, self.places(seen))


def latent_name(m: int) -> str:
    """Return what a latent coordinate, counted from 0, is called."""
    return f"latent x{m + 1}"


def _checked_dims(dims: tuple[int, int], q: int) -> tuple[int, int]:
    try:
        first, second = (int(m) for m in dims)
    except (TypeError, ValueError):
        raise ValueError(f"`dims` must be two latent coordinates; got {dims!r}.") from None
    if first == second or not all(0 <= m < q for m in (first, second)):
        raise ValueError(
            f"`dims` must be two different latent coordinates between 0 and {q - 1}; got {dims!r}."
        )
    return first, second


def _cropped(
    box: FloatArray, rows_box: FloatArray, axes: list[FloatArray], inside: BoolArray
) -> FloatArray:
    """Return the box cut to the rows and the domain, with a little room."""
    sides = []
    for number, (axis, rows) in enumerate(zip(axes, rows_box, strict=True)):
        # Lattices are shaped (second axis, first axis).
        others = tuple(m for m in range(inside.ndim) if m != inside.ndim - 1 - number)
        held = axis[inside.any(axis=others)] if others else axis[inside]
        low, high = np.concatenate([held, rows]).min(), np.concatenate([held, rows]).max()
        step = axis[1] - axis[0]
        sides.append([max(low - step, box[number, 0]), min(high + step, box[number, 1])])
    return np.asarray(sides)

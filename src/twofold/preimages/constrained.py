"""Pre-images with the coordinates asked for (Arias 2007, chapter 4.3).

In all r coordinates of a map, the distance to a point ψ that has coordinates ``x_ψ`` on the first q
axes and none on the others is

    D(y) = Σ_{j≤q} (x_j(y) - x_ψ,j)² + Σ_{j>q} x_j(y)².

Where the first axes hold little of the variance, as those of diffusion maps do, its minimisers
lose the coordinates asked for and gather at a few places. So these are made a constraint:

    min_y Σ_{j>q} x_j(y)²    such that    x_j(y) = x_ψ,j for j ≤ q.

Each step goes down the gradient g of D within the level set, and back onto it by Newton's method:
with the derivatives J (q, D) of the constrained coordinates and their gap c from those asked for,

    y ← y - a (I - J⁺ J) g - J⁺ c.

The step size a is that of Barzilai and Borwein, cut until ``Σ_{j>q} x_j² + ν ||c||`` falls, an
exact penalty as ν is kept above the multipliers; a step that does not make it fall is first brought
back to its bent level set by one more of Newton's steps. The thesis takes ψ = P_q φ(y0) and starts
at y0, which is on the level set; for any other ψ the search starts at the row with the nearest
coordinates.

With more columns than coordinates the rest can be made zero nearly everywhere on a level set, and
the last of it is a flat valley that leads away from the data. So the way along ends where the
rest is small beside that of training rows, or falls no more; from there Newton's steps alone lead
back onto the level set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.neighborhoods.nearest import nearest_rows
from twofold.preimages.coordinates import CoordinateMap, CoordinateSizes, some_rows
from twofold.preimages.descent import mark_strayed
from twofold.preimages.points import FeaturePoints, Iterative, PreImages, Status
from twofold.rowwise import in_tiles

# Gaps below this share of the coordinates' size are none.
_LEVEL = 1e-9
# Directions of the constraints below this share of the strongest (squared) are skipped.
_KEPT = 1e-10
# Coordinates that change by less than this share of their size over one length are constant.
_FLAT = 1e-12
# A rest below this share of the training rows' own is none.
_SMALL_REST = 0.03
# A rest that falls by less than this many times `tol`, as a share of itself, over this many
# evaluations falls no more, unless the gap still halves.
_SLOW, _EVALUATIONS = 100, 20
# Rounds between two looks at whether rows strayed from the data.
_ROUNDS = 40
_FALL = 1e-4
_MAX_SHORTENINGS = 25
_ROUNDING = 8 * np.finfo(np.float64).eps
# Longest part of a step, along the level set or back to it, in lengths over which coordinates
# change: farther on, derivatives tell nothing.
_LONGEST = 0.5


@dataclass(frozen=True)
class Constrained(Iterative):
    """The row nearest to the span of the training rows that has the requested coordinates.

    The search makes the coordinates of the map beyond the requested ones small. If the map has no
    others, a start with the requested coordinates stays where it is.

    Parameters
    ----------
    tol : float
        A row has converged once its coordinates are those asked for, and the step proposed along
        the level set is below this share of the length over which coordinates change. It has, too,
        if the squares of the coordinates beyond sum up to 3 % of what training rows have, or if
        that sum falls by less than a share of 100 `tol` over 20 evaluations.
    max_iter : int
        Maximum number of evaluations for each row.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold import KernelPCA
    >>> from twofold.preimages import Constrained
    >>> model = KernelPCA(2, kernel="rbf", preimage=Constrained(max_iter=50)).fit(load_iris().data)
    >>> model.inverse_transform(model.embedding_[:2]).shape
    (2, 4)
    """

    tol: float = 1e-4
    max_iter: int = 500

    name = "constrained"
    needs = "coordinates of the points and a map that gives those of any row"
    suits: ClassVar = {object: "coordinates of new rows are known, whatever the kernel"}

    @property
    def needs_rest(self) -> bool:
        """The rest is what is made small."""
        return True

    def find(self, target: FeaturePoints) -> PreImages:
        """Return the pre-images of the points."""
        coordinates, coordinate_map = target.need_map("A constrained pre-image")
        rows, q = target.rows, coordinates.shape[1]
        usual_rest = (coordinate_map.values(some_rows(rows))[:, q:] ** 2).sum(axis=1).mean()
        sizes, targets = CoordinateSizes.of(coordinate_map, rows), target.targets_on_map()
        small_rest = _SMALL_REST * float(usual_rest)
        level = _Level(coordinate_map, sizes, targets, q, small_rest, target.n_threads)
        known = target.row_coordinates
        row_coordinates = coordinate_map.values(rows) if known is None else known
        nearest = rows[nearest_rows(coordinates, row_coordinates[:, :q], 1)[:, 0]]
        start = nearest if target.start is None else target.start
        everyone = np.arange(len(coordinates))
        walk = _Walk(level, everyone, start, nearest, self.tol, self.max_iter).run(target)
        lost = np.flatnonzero(walk.status >= Status.OFF_LEVEL)
        if target.start is not None and len(lost):  # again from a row that is near the level set
            there = nearest[lost]
            again = _Walk(level, lost, there, there, self.tol, self.max_iter).run(target)
            better = again.status < walk.status[lost]
            place = lost[better]
            walk.Z[place], walk.status[place] = again.Z[better], again.status[better]
            walk.n_iter[lost] += again.n_iter
        mark_strayed(target, start, walk.Z, walk.status)
        return PreImages(walk.Z, walk.status, walk.n_iter, target.distances_to(walk.Z))


class _Look(NamedTuple):
    """What a step needs to know at n rows."""

    rest: FloatArray  # sum of squares of the free coordinates (n,)
    gap: FloatArray  # constrained coordinates less those asked for (n, q)
    along: FloatArray  # gradient within the level set (n, D)
    back: FloatArray  # Newton's step to the level set (n, D)
    multiplier: FloatArray  # length of the multipliers (n,)
    rate: FloatArray  # guess at the curvature (n,), 0 where the rest does not change
    is_felt: BoolArray  # whether coordinates change at all around the rows (n,)


@dataclass(frozen=True, eq=False)
class _Level:
    """Level sets of the first q coordinates, one for each point."""

    map: CoordinateMap
    sizes: CoordinateSizes
    targets: FloatArray
    q: int
    small_rest: float
    n_threads: int

    @property
    def smallest_gap(self) -> float:
        return _LEVEL * self.sizes.size

    def look(self, Z: FloatArray, which: IntArray) -> _Look:
        return _Look._make(in_tiles(lambda t: self._look(Z[t], which[t]), len(Z), self.n_threads))

    def _look(self, Z: FloatArray, which: IntArray) -> _Look:
        targets = self.targets[which]
        X, gradient, J = self.map.parts(Z, targets, self.q)
        gap = X[:, : self.q] - targets[:, : self.q]
        rest = (X[:, self.q :] ** 2).sum(axis=1)
        P = np.linalg.pinv(J @ J.swapaxes(1, 2), rcond=_KEPT, hermitian=True)
        shares = _times(P, _times(J, gradient))
        along = gradient - _times(J.swapaxes(1, 2), shares)
        back = -_times(J.swapaxes(1, 2), _times(P, gap))
        # The gradient holds 2 Jᵀ c, too, which is no part of the multipliers of the rest.
        multiplier = np.linalg.norm(shares - 2 * gap, axis=1)
        slopes = np.linalg.norm(J, axis=(1, 2)) * self.sizes.length
        is_felt = slopes > _FLAT * self.sizes.size
        return _Look(rest, gap, along, back, multiplier, self.sizes.rate(rest, along), is_felt)


class _Walk:
    """Rows on their way along level sets, each with its own step and its own end."""

    def __init__(
        self,
        level: _Level,
        points: IntArray,
        start: FloatArray,
        fallback: FloatArray,
        tol: float,
        max_iter: int,
    ) -> None:
        n = len(start)
        self.level, self.points, self.start = level, points, start
        self.slow, self.max_iter = _SLOW * tol, max_iter
        self.longest = _LONGEST * level.sizes.length
        self.smallest_move = tol * level.sizes.length
        self.Z, self.at = start.copy(), level.look(start, points)
        lost = np.flatnonzero(~self.at.is_felt)
        if len(lost):  # too far from all rows: their own starts tell no direction
            self.Z[lost] = fallback[lost]
            _put(self.at, lost, level.look(self.Z[lost], points[lost]))
        self.n_iter = np.ones(n, dtype=np.int64)
        self.status = np.full(n, Status.ITERATION_LIMIT, dtype=np.int64)
        self.share, self.shortenings = np.ones(n), np.zeros(n, dtype=np.int64)
        self.penalty = np.zeros(n)
        self.is_homing, self.gave_up = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        self.checked_at, self.checked_rest = self.n_iter.copy(), self.at.rest.copy()
        self.checked_gap = self._gaps()
        self.size = _inverse(self.at.rate)
        self._settle(np.arange(n))

    def run(self, target: FeaturePoints) -> _Walk:
        """Move all rows to their ends; rows of the target are those not to stray from."""
        active, rounds = self._going(), 0
        while len(active):
            trial = self.Z[active] + self.share[active, None] * self._step(active)
            look = self.level.look(trial, self.points[active])
            self.n_iter[active] += 1
            accepted = self._merit(look, active) <= self._bound(active)
            self._mend(active, trial, look, accepted)
            self._accept(active[accepted], trial[accepted], _part(look, accepted))
            self._shorten(active[~accepted])
            self._give_up_slow(active)
            rounds += 1
            active = self._going()
            if rounds % _ROUNDS == 0:  # out there, away from the data, the rest may fall forever
                status = self.status[active]
                mark_strayed(target, self.start[active], self.Z[active], status)
                self.status[active] = status
                active = self._going()
        self.status[(self._gaps() > self.level.smallest_gap) & (self.status < 3)] = Status.OFF_LEVEL
        return self

    def _mend(self, active: IntArray, trial: FloatArray, look: _Look, accepted: BoolArray) -> None:
        """Give steps that were refused a second chance, one more step of Newton's back."""
        # Level sets are bent, and a good step along one leaves it a little; judged as it is, only
        # tiny steps would pass (Maratos 1978).
        failed = np.flatnonzero(~accepted)
        if not len(failed):
            return
        rows = active[failed]
        mended = trial[failed] + _cut(look.back[failed], self.longest)
        again = self.level.look(mended, self.points[rows])
        self.n_iter[rows] += 1
        good = self._merit(again, rows) <= self._bound(rows)
        place = failed[good]
        trial[place], accepted[place] = mended[good], True
        _put(look, place, _part(again, good))

    def _going(self) -> IntArray:
        going = (self.status == Status.ITERATION_LIMIT) & (self.n_iter < self.max_iter)
        return np.flatnonzero(going)

    def _gaps(self) -> FloatArray:
        return np.asarray(np.linalg.norm(self.at.gap, axis=1))

    def _step(self, rows: IntArray) -> FloatArray:
        along = _cut(-self.size[rows, None] * self.at.along[rows], self.longest)
        return np.asarray(along + _cut(self.at.back[rows], self.longest))

    def _merit(self, look: _Look, rows: IntArray) -> FloatArray:
        rest = np.where(self.is_homing[rows], 0, look.rest)
        return np.asarray(rest + self.penalty[rows] * np.linalg.norm(look.gap, axis=1))

    def _bound(self, rows: IntArray) -> FloatArray:
        at = _part(self.at, rows)
        merit = self._merit(at, rows)
        along = _cut(-self.size[rows, None] * at.along, self.longest)
        promised = -np.einsum("nd,nd->n", along, at.along)
        promised += 0.5 * self.penalty[rows] * np.linalg.norm(at.gap, axis=1)
        # Gaps at the level of rounding weigh nothing, however hard the penalty.
        slack = _ROUNDING * merit + self.penalty[rows] * 0.1 * self.level.smallest_gap
        return np.asarray(merit - _FALL * self.share[rows] * promised + slack)

    def _accept(self, rows: IntArray, trial: FloatArray, look: _Look) -> None:
        # Barzilai and Borwein: s·s / s·c of the step s and the change c of the gradient; where the
        # function bends down there is no such minimum, and the step grows.
        moved, turned = trial - self.Z[rows], look.along - self.at.along[rows]
        products = np.einsum("nd,nd->n", moved, turned)
        squares = np.einsum("nd,nd->n", moved, moved)
        bends_up = products * self.size[rows] > 1e-10 * squares
        size = np.where(bends_up, squares / np.where(bends_up, products, 1), 4 * self.size[rows])
        self.size[rows] = np.clip(size, 0.1 * self.size[rows], 10 * self.size[rows])
        self.Z[rows] = trial
        _put(self.at, rows, look)
        self._settle(rows)

    def _settle(self, rows: IntArray) -> None:
        """End the rows that are there, and prepare the next step of the others."""
        self.share[rows], self.shortenings[rows] = 1.0, 0
        self.penalty[rows] = np.maximum(self.penalty[rows], 2 * self.at.multiplier[rows])
        rate = self.at.rate[rows]
        moves = np.linalg.norm(self.at.along[rows], axis=1) / np.where(rate > 0, rate, np.inf)
        on_level = np.linalg.norm(self.at.gap[rows], axis=1) <= self.level.smallest_gap
        is_small = self.at.rest[rows] <= self.level.small_rest
        is_lowest = is_small | (moves <= self.smallest_move) | self.gave_up[rows]
        self.status[rows[on_level & is_lowest]] = Status.CONVERGED
        self.status[rows[~self.at.is_felt[rows]]] = Status.OUT_OF_REACH
        # Rows that came home with a rest that is not small go along again.
        again = rows[on_level & self.is_homing[rows] & ~is_small]
        self.is_homing[again], self.size[again] = False, _inverse(self.at.rate[again])
        # The way back changes the rest a little, hence half.
        self._go_home(rows[self.at.rest[rows] <= 0.5 * self.level.small_rest])

    def _go_home(self, rows: IntArray) -> None:
        """Let rows go no farther along their level sets, only back onto them."""
        self.is_homing[rows], self.size[rows] = True, 0
        self.penalty[rows] = np.where(self.penalty[rows] > 0, self.penalty[rows], 1)

    def _give_up_slow(self, rows: IntArray) -> None:
        """Send rows home whose rest falls no more, and end those that do not get there."""
        rows = rows[self.n_iter[rows] - self.checked_at[rows] >= _EVALUATIONS]
        if not len(rows):
            return
        rest, gap = self.at.rest[rows], np.linalg.norm(self.at.gap[rows], axis=1)
        falls = (rest < (1 - self.slow) * self.checked_rest[rows]) & ~self.is_homing[rows]
        nears = (gap > self.level.smallest_gap) & (gap < 0.5 * self.checked_gap[rows])
        slow = rows[~(falls | nears)]
        lost = slow[self.is_homing[slow] & (self.status[slow] == Status.ITERATION_LIMIT)]
        self.status[lost] = Status.STALLED
        self.gave_up[slow] = True
        self._go_home(slow)
        self.checked_at[rows], self.checked_rest[rows] = self.n_iter[rows], rest
        self.checked_gap[rows] = gap

    def _shorten(self, rows: IntArray) -> None:
        self.share[rows] *= 0.5
        self.shortenings[rows] += 1
        # A way along that keeps failing is too bold; the way back is Newton's own.
        self.size[rows] *= 0.5
        self.status[rows[self.shortenings[rows] > _MAX_SHORTENINGS]] = Status.STALLED


def _times(M: FloatArray, v: FloatArray) -> FloatArray:
    """Return the products (n, i) of matrices M (n, i, j) and vectors v (n, j)."""
    return np.asarray((M @ v[:, :, None])[:, :, 0])


def _cut(steps: FloatArray, longest: float) -> FloatArray:
    lengths = np.linalg.norm(steps, axis=1, keepdims=True)
    return np.asarray(steps * np.minimum(1, longest / np.maximum(lengths, 1e-300)))


def _inverse(rates: FloatArray) -> FloatArray:
    return np.where(rates > 0, 1 / np.where(rates > 0, rates, 1), 0.0)


def _part(look: _Look, chosen: BoolArray | IntArray) -> _Look:
    return _Look._make(array[chosen] for array in look)


def _put(at: _Look, rows: IntArray, look: _Look) -> None:
    for kept, new in zip(at, look, strict=True):
        kept[rows] = new

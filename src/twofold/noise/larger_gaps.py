"""Rows that miss more than usual: how much farther off what is filled in them is.

The errors of hidden entries are those of rows with as many gaps as rows of the table have. Of a row
that lacks half of its entries, or most of them, less is known than these tell. So in some rows half
of the entries are hidden, in others four fifths; in every second one at random, and else side by
side, as the columns of one instrument stand. Each of both sizes has a scale of its own, and ratios
(:mod:`twofold.noise.conformal`). For a row that misses a share between two sizes, logs of
deviations and of what intervals reach are interpolated; the first size is that of usual gaps.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.noise.conformal import Ratios, Scale, conformal_reach, scale_of

HIDDEN_SHARES = (0.5, 0.8)
# Rows that miss more than this share miss most of their entries, others about half of them.
MOST_MISSING = 0.65
# Rows that tell, at most, and entries that tell of one size, at least.
MOST_ROWS, LEAST_ENTRIES = 200, 30
# Up to this quantile of what rows miss where usual entries are hidden, gaps are usual.
USUAL_QUANTILE = 0.9
TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class SizeOfGaps:
    """Entries (h,) hidden in rows that miss about ``share``: which they are, and their scale."""

    share: float
    some: BoolArray
    scale: Scale


@dataclass(frozen=True)
class LargerGaps:
    """Errors of entries (h,) hidden in rows that miss much, in units of columns.

    ``spread`` are the variances that local Gaussians expect, ``columns`` (of ``n_columns``) where
    entries stand, ``shares`` what their rows miss. Rows that miss up to the share ``usual`` miss no
    more than usual.
    """

    errors: FloatArray
    spread: FloatArray
    columns: IntArray
    shares: FloatArray
    usual: float
    n_columns: int

    @cached_property
    def sizes(self) -> list[SizeOfGaps]:
        """The sizes of gaps that are told of, rising."""
        found, most = [], self.shares > MOST_MISSING
        for of_size in (~most, most):
            some = of_size & (self.shares > self.usual)
            n = int(some.sum())
            if n >= LEAST_ENTRIES:
                errors, spread = self.errors[some], self.spread[some]
                scale = scale_of(errors, spread, self.columns[some], self.n_columns, np.ones(n))
                found.append(SizeOfGaps(float(self.shares[some].mean()), some, scale))
        return found

    def own_deviations(self, size: SizeOfGaps) -> FloatArray:
        """Return the deviations expected of the hidden entries of one size."""
        scale = size.scale
        own = Scale(scale.stretch, scale.usual[self.columns[size.some]], scale.locality)
        return np.sqrt(own.variances(self.spread[size.some]))

    def ratios(self) -> list[FloatArray]:
        """Return how far errors of each size are off, in deviations expected of them."""
        return [np.abs(self.errors[size.some]) / self.own_deviations(size) for size in self.sizes]

    def deviations(self, usual: FloatArray, spread: FloatArray, missing: FloatArray) -> FloatArray:
        """Return deviations (m, D) of rows that miss the shares ``missing`` (m,).

        ``usual`` are those of usual gaps, ``spread`` the variances that local Gaussians expect.
        """
        larger = [np.sqrt(size.scale.variances(spread)) for size in self.sizes]
        return self._between([usual, *larger], missing)

    def reach(
        self, usual: FloatArray, ratios: list[FloatArray], level: float, missing: FloatArray
    ) -> FloatArray:
        """Return how many deviations (m, D) hold the share ``level``.

        ``usual`` (D,) are those of usual gaps, ``ratios`` those of the entries of each size.
        """
        told = [
            Ratios(off, self.columns[size.some], np.ones(len(off)))
            for size, off in zip(self.sizes, ratios, strict=True)
        ]
        larger = [conformal_reach(hidden, self.n_columns, level) for hidden in told]
        return self._between([usual, *larger], missing)

    def _between(self, values: list[FloatArray], missing: FloatArray) -> FloatArray:
        """Return values (m, D) of rows that miss shares (m,), from those of each size."""
        knots = np.maximum.accumulate([self.usual, *(size.share for size in self.sizes)])
        place = np.interp(missing, knots, np.arange(len(knots)))
        found = np.zeros((len(missing), self.n_columns))
        for k, of_size in enumerate(values):
            weight = np.maximum(1 - np.abs(place - k), 0)[:, None]
            found += weight * np.log(np.maximum(of_size, TINY))
        is_usual = (place == 0)[:, None]
        return np.where(is_usual, values[0], np.exp(found))


def missing_shares(Y: FloatArray) -> FloatArray:
    """Return what share of its entries each row of Y (m, D) misses."""
    return np.asarray(np.isnan(Y).mean(axis=1))


def usual_share(missing: FloatArray) -> float:
    """Return up to which share gaps are usual, where usual entries miss ``missing`` (h,)."""
    return float(np.quantile(missing, USUAL_QUANTILE)) if len(missing) else 1.0


def much_to_hide(
    observed: BoolArray, random: np.random.RandomState, groups: IntArray | None = None
) -> BoolArray:
    """Return which observed entries (m, D) to hide, see the module; each row keeps one.

    Entries of one group (D,) are hidden together.
    """
    if groups is not None:
        _, first, of_column = np.unique(groups, return_index=True, return_inverse=True)
        return much_to_hide(observed[:, first], random)[:, of_column] & observed
    m, D = observed.shape
    number = np.arange(m)
    scattered = random.rand(m, D)
    beside = (np.arange(D) + random.randint(D, size=(m, 1))) % D / D
    order = np.where((number // 2 % 2 == 0)[:, None], scattered, beside)
    rank = np.where(observed, order, np.inf).argsort(axis=1).argsort(axis=1)
    known = observed.sum(axis=1)
    share = np.where(number % 2 == 0, *HIDDEN_SHARES)
    many = np.minimum(np.maximum(np.rint(share * known), 1), known - 1)
    return np.asarray(observed & (rank < many[:, None]))

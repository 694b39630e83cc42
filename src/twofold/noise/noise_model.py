"""The noise model of a map: what rows do around the image of a latent place.

A row y at the latent place x is seen as one of the rows around x: by the image f(x), by one
Gaussian of the whole table, and by Gaussians of the rows whose latent points are nearest to x, for
several numbers of neighbours (:mod:`twofold.noise.local_gaussians`). Each says what the missing
entries of y are, given the observed ones; f(x) says it without looking at these. Their mean with
weights of each column is what `complete` fills in. f alone and the Gaussian alone are the two ends
of that; hidden entries say where in between a map stands
(:mod:`twofold.noise.hidden_entries`).

A map follows the rows it was made from: their places, and those of their neighbours, were found
with all entries in sight. So entries are hidden in rows that are left out: a map made without them
places them as it places new rows. From these come the weights, how far off the
variances of the local Gaussians are, the size of residuals, and how likely a row usually is.

How likely a row is: ``log p(y_o | x) + log p(x)``, both from the same rows around x: the first from
their Gaussian, the second from how far one has to go to find so many. (The density that bounds the
domain is narrower. Points of a map keep apart, so that a row left out leaves a hole in it, and
would seem less likely than new rows.)
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Self

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.noise.conditioning import Gaussians
from twofold.noise.conformal import Ratios, conformal_reach, warn_of_level
from twofold.noise.denoising import MOST_LOOKED_AT, noise_variance
from twofold.noise.factor_model import FactorModel, draw_missing, fit_factors
from twofold.noise.hidden_entries import (
    entries_to_hide,
    errors_apart,
    mean_squares,
    stacking_weights,
)
from twofold.noise.larger_gaps import (
    MOST_ROWS,
    LargerGaps,
    missing_shares,
    much_to_hide,
    usual_share,
)
from twofold.noise.local_gaussians import LocalGaussians

# Numbers of neighbours on the map; at most this share of all rows.
SIZES, LARGEST_SHARE = (15, 60, 240), 0.6
# Rows that units of columns and the Gaussian of the whole table are fitted to, where no column is
# nearly empty or constant in them: their few thousand numbers hardly change with more.
MOST_FOR_GAUSSIAN = 10_000
# Residuals around a place count with those of the whole map as if there were so many of these.
RESIDUALS_OF_ALL = 5.0
# Neighbours whose residuals a generated row may have.
DRAWN_FROM = 15


@dataclass(frozen=True, eq=False, repr=False)
class NoiseModel:
    """What is kept of the noise of a fitted map, in units of the columns.

    Attributes
    ----------
    center, unit : (D,) what is subtracted from a column, and what it is divided by
    mean, loadings, variances : the Gaussian of all rows, covariance ``W Wᵀ + diag(ψ)``
    sizes : (s,) numbers of neighbours on the map
    weights : (D, 2 + s) of the image, the Gaussian and the neighbourhoods
    stretch, usual : how many times the local variances hidden entries have; their variance (D,)
    ratios, columns : (h,) errors of hidden entries in expected deviations, and their columns
    residuals : (D,) mean squared residual of each column, of rows left out
    log_likelihoods : (t,) of rows left out, rising; in the units of the fit
    larger_errors, larger_spread, larger_columns, larger_shares : (g,) of entries hidden in rows
        that miss much (:mod:`twofold.noise.larger_gaps`), none in files of earlier versions
    usual_share : up to which share of missing entries gaps are usual
    """

    center: FloatArray
    unit: FloatArray
    mean: FloatArray
    loadings: FloatArray
    variances: FloatArray
    sizes: IntArray
    weights: FloatArray
    stretch: float
    usual: FloatArray
    ratios: FloatArray
    columns: IntArray
    residuals: FloatArray
    log_likelihoods: FloatArray
    larger_errors: FloatArray = field(default_factory=lambda: np.empty(0))
    larger_spread: FloatArray = field(default_factory=lambda: np.empty(0))
    larger_columns: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    larger_shares: FloatArray = field(default_factory=lambda: np.empty(0))
    usual_share: float = 1.0

    def __str__(self) -> str:
        sizes = ", ".join(map(str, self.sizes)) or "no"
        return (
            f"NoiseModel({len(self.unit)} features; neighbourhoods of {sizes} rows; learnt from "
            f"{len(self.ratios)} hidden entries and {len(self.log_likelihoods)} rows left out)"
        )

    __repr__ = __str__

    @property
    def gaussian(self) -> FactorModel:
        """The Gaussian of all rows, in units of the columns."""
        return FactorModel(self.mean, self.loadings, self.variances)

    @cached_property
    def larger(self) -> LargerGaps:
        """What rows tell that miss more than usual."""
        told = (self.larger_errors, self.larger_spread, self.larger_columns, self.larger_shares)
        return LargerGaps(*told, self.usual_share, len(self.unit))

    def reach(self, level: float, missing: FloatArray) -> FloatArray:
        """Return how many expected deviations (m, D) hold the share ``level`` of hidden entries.

        That is of rows which miss the shares ``missing`` (m,) of their entries.
        """
        hidden = Ratios(self.ratios, self.columns, np.ones(len(self.ratios)))
        warn_of_level(hidden, len(self.unit), level)
        usual = conformal_reach(hidden, len(self.unit), level)
        return self.larger.reach(usual, self.larger.ratios(), level, missing)


@dataclass(frozen=True)
class TrainedMap:
    """What the noise of a map is made from.

    ``rows`` (n, D) of ``weights`` (n,) stand at ``places`` (n, q), in units in which a distance of
    1 is near. Features of one of the ``groups`` (D,) are known together or not at all.
    """

    rows: FloatArray
    weights: FloatArray
    places: FloatArray
    groups: IntArray | None = None

    def part(self, kept: IntArray) -> Self:
        """Return the map of some of the rows."""
        names = ("rows", "weights", "places")
        return replace(self, **{name: getattr(self, name)[kept] for name in names})


# From rows with gaps to latent places in such units, and images there.
Place = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
# From numbers of rows to the map made without them, and how it places them.
LeaveOut = Callable[[IntArray], tuple[TrainedMap, Place]]


class MapNoise:
    """The noise of a map at work."""

    def __init__(self, trained: TrainedMap, noise: NoiseModel) -> None:
        self.noise, self.trained = noise, trained
        Z = (trained.rows - noise.center) / noise.unit
        gaps = np.isnan(Z)
        doubt = np.zeros_like(Z)
        if gaps.any():
            some = gaps.any(axis=1)
            found = noise.gaussian.condition(Z[some])
            Z[some] = np.where(gaps[some], found.means, Z[some])
            doubt[some] = np.where(gaps[some], found.variances, 0)
        self.around = LocalGaussians(Z, doubt, trained.places, noise.gaussian)

    def with_noise(self, noise: NoiseModel) -> Self:
        """Return the same with other numbers about the noise, but for the Gaussian of all rows."""
        other = copy(self)
        other.noise = noise
        return other

    def scaled(self, Y: FloatArray) -> FloatArray:
        """Return rows in units of the columns."""
        return np.asarray((Y.astype(np.float64) - self.noise.center) / self.noise.unit)

    def fill(
        self, Y: FloatArray, places: FloatArray, images: FloatArray, own: IntArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return what missing entries of rows Y (m, D) are, and their standard deviations.

        ``own`` (m,) are the numbers of those that are training rows, -1 for others.
        """
        noise = self.noise
        guesses, spread = self.guesses(self.scaled(Y), places, self.scaled(images), own)
        means = np.einsum("emd,de->md", guesses, noise.weights)
        variances = (noise.stretch * spread + noise.usual) / 2
        deviations = noise.larger.deviations(np.sqrt(variances), spread, missing_shares(Y))
        return means * noise.unit + noise.center, deviations * noise.unit

    def guesses(
        self, Z: FloatArray, places: FloatArray, images: FloatArray, own: IntArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return what each way says of scaled rows, (E, m, D), and the variances (m, D)."""
        gauss = self.noise.gaussian.condition(Z)
        local = self.around.conditionals(Z, places, own, self.noise.sizes.tolist())
        means = [images, gauss.means, *(found.means for found in local)]
        spread = np.mean([found.variances for found in local or [gauss]], axis=0)
        return np.stack(means), spread

    def gaussians(self, places: FloatArray, own: IntArray | None, k: int) -> Gaussians:
        """Return the Gaussians of the k rows around places (m, q), without their own (m,)."""
        neighbors = self.around.neighbors(places, k, own)
        return self.around.around(neighbors, self.around.weights(places, neighbors))

    def noise_variance(self) -> float:
        """Return the variance of the noise of an entry, in the units of the rows."""
        stretch = self.noise.unit
        chosen = np.arange(min(len(self.trained.rows), MOST_LOOKED_AT))  # rows are in no order
        Z = self.scaled(self.trained.rows[chosen]) * stretch

        def around(rows: IntArray, k: int) -> Gaussians:
            if k == 0:
                return self.noise.gaussian.repeated(len(rows)).stretched(stretch)
            return self.gaussians(self.trained.places[rows], rows, k).stretched(stretch)

        return noise_variance(Z, self.noise.sizes if len(self.noise.sizes) else [0], around)

    def log_likelihood(self, Y: FloatArray, places: FloatArray, own: IntArray | None) -> FloatArray:
        """Return how likely rows Y (m, D) at places are, in the units of the fit."""
        noise, sizes = self.noise, self.noise.sizes
        Z, k = self.scaled(Y), int(sizes[len(sizes) // 2]) if len(sizes) else len(self.trained.rows)
        if len(sizes):
            seen = self.around.conditionals(Z, places, own, [k])[0]
        else:
            seen = noise.gaussian.condition(Z)
        in_units = (~np.isnan(Y) * np.log(noise.unit)).sum(axis=1)
        return seen.log_density - in_units + self.around.log_density(places, own, k)

    def draw(
        self, Y: FloatArray, deviations: FloatArray, random: np.random.RandomState
    ) -> FloatArray:
        """Return errors (m, D) of what is missing in rows Y, drawn as they go together."""
        return draw_missing(self.scaled(Y), self.noise.gaussian, random) * deviations


class MapResiduals:
    """The residuals of a map's rows around places.

    ``images`` (n, D) are the leave-one-out reconstructions of the rows the noise was made from.
    """

    def __init__(self, known: MapNoise, images: FloatArray) -> None:
        noise, trained = known.noise, known.trained
        self._noise, self._around = noise, known.around
        residuals, gaps = (trained.rows - images) / noise.unit, np.isnan(trained.rows)
        # Those of the rows it was made from are too small by a factor.
        own = mean_residuals(residuals, trained.weights)
        factor = noise.residuals / np.maximum(own, np.finfo(np.float64).tiny)
        self._squares = np.where(gaps, noise.residuals, residuals**2 * factor)
        self._residuals = np.where(gaps, 0, residuals)

    def deviations(self, places: FloatArray) -> FloatArray:
        """Return the standard deviation (m, D) of rows around the images of places."""
        noise, n = self._noise, len(self._squares)
        k = min(int(noise.sizes[0]) if len(noise.sizes) else n - 1, n - 1)
        neighbors = self._around.neighbors(places, k)
        w = self._around.weights(places, neighbors)
        worth = 1 / (w**2).sum(axis=1, keepdims=True)
        near = np.matmul(w[:, None], self._squares[neighbors])[:, 0]
        mixed = (worth * near + RESIDUALS_OF_ALL * noise.residuals) / (worth + RESIDUALS_OF_ALL)
        return np.asarray(np.sqrt(mixed) * noise.unit)

    def nearest(self, places: FloatArray) -> IntArray:
        """Return the numbers (m,) of the rows nearest to places."""
        return np.asarray(self._around.neighbors(places, 1)[:, 0])

    def residuals(self, places: FloatArray, random: np.random.RandomState) -> FloatArray:
        """Return residuals (m, D) of rows near places, each the whole of one row, drawn by weight.

        So columns go together as they do in rows, whatever their distribution.
        """
        neighbors = self._around.neighbors(places, min(DRAWN_FROM, len(self._residuals) - 1))
        rising = np.cumsum(self._around.weights(places, neighbors), axis=1)
        chosen = (rising < random.rand(len(places), 1)).sum(axis=1)
        rows = neighbors[np.arange(len(places)), np.minimum(chosen, neighbors.shape[1] - 1)]
        return np.asarray(self._residuals[rows] * self._noise.unit)


def make_noise(
    trained: TrainedMap, parts: Sequence[IntArray], leave_out: LeaveOut, seed: int
) -> MapNoise:
    """Return the noise of a map, as rows tell it of which one part after the other is left out."""
    start = MapNoise(trained, _without_choice(trained))
    asked = np.concatenate(parts)
    random, observed = np.random.RandomState(seed), ~np.isnan(trained.rows[asked])
    hidden = entries_to_hide(observed, random, trained.groups)
    much = much_to_hide(observed, random, trained.groups)
    some_rows = max(MOST_ROWS // len(parts), 1)
    ends = np.cumsum([len(part) for part in parts])[:-1]
    told = []
    for part, few, many in zip(parts, np.split(hidden, ends), np.split(much, ends), strict=True):
        rows = trained.rows[part].astype(np.float64)
        told.append(_told(start, rows, (few, many[:some_rows]), *leave_out(part)))
    return start.with_noise(_choose(start.noise, told))


@dataclass(frozen=True)
class _Hidden:
    """Hidden entries (h,), in units of the columns.

    ``errors`` (h, E) of each way to fill them, their ``columns``, expected variances ``spread``,
    and which ``shares`` of the entries of their rows are missing.
    """

    errors: FloatArray
    columns: IntArray
    spread: FloatArray
    shares: FloatArray

    @classmethod
    def joined(cls, parts: "list[_Hidden]") -> "_Hidden":
        """Return the parts one after the other."""
        return cls(
            *(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls))
        )


@dataclass(frozen=True)
class _Told:
    """What rows left out tell, in units of the columns.

    ``few`` and ``many`` entries hidden in rows, ``residuals`` (m, D) of whole rows, and their
    log-likelihoods (m,).
    """

    few: _Hidden
    many: _Hidden
    residuals: FloatArray
    log_likelihoods: FloatArray


def _told(
    start: MapNoise,
    Y: FloatArray,
    hidden: tuple[BoolArray, BoolArray],
    other: TrainedMap,
    place: Place,
) -> _Told:
    """Return what rows Y (m, D) tell that a map was made without.

    Entries ``hidden`` are few in all of the rows, many in the first ones.
    """
    unit = start.noise.unit
    own = replace(_without_choice(other), sizes=start.noise.sizes)
    around = MapNoise(other, own)
    places, images = place(Y)
    likely = around.log_likelihood(Y, places, None)

    def told(asked: BoolArray) -> _Hidden:
        rows = Y[: len(asked)]
        partial = np.where(asked, np.nan, rows)
        near, guessed = place(partial)
        guesses, spread = around.guesses(around.scaled(partial), near, around.scaled(guessed), None)
        i, columns = np.nonzero(asked)
        factor = (own.unit / unit)[columns]
        errors = (guesses[:, asked] - around.scaled(rows)[asked]).T * factor[:, None]
        return _Hidden(errors, columns, spread[asked] * factor**2, missing_shares(partial)[i])

    return _Told(told(hidden[0]), told(hidden[1]), (Y - images) / unit, likely)


def _without_choice(trained: TrainedMap) -> NoiseModel:
    """Return a noise model in which all ways to fill count alike."""
    n = len(trained.rows)
    some = _rows_that_tell(trained.rows)
    Y, weights = trained.rows[:some].astype(np.float64), trained.weights[:some]
    observed = ~np.isnan(Y)
    total = weights @ observed
    center = weights @ np.where(observed, Y, 0) / total
    squares = np.where(observed, Y - center, 0) ** 2
    deviation = np.sqrt(weights @ squares / total)
    unit = np.where(deviation > 1e-12 * np.abs(center) + 1e-150, deviation, 1.0)
    gaussian = fit_factors((Y - center) / unit, weights)
    sizes = np.array([k for k in SIZES if k <= LARGEST_SHARE * n], dtype=np.int64)
    D, E = len(unit), 2 + len(sizes)
    return NoiseModel(
        center,
        unit,
        gaussian.mean,
        gaussian.loadings,
        gaussian.variances,
        sizes,
        np.full((D, E), 1 / E),
        1.0,
        np.ones(D),
        np.empty(0),
        np.empty(0, dtype=np.int64),
        np.empty(0),
        np.empty(0),
    )


def _rows_that_tell(Y: FloatArray) -> int:
    """Return how many of the rows Y (n, D), which are in no order, tell of all of them."""
    some = Y[:MOST_FOR_GAUSSIAN]
    is_told = ((~np.isnan(some)).sum(axis=0) >= MOST_FOR_GAUSSIAN / 100).all()
    # A level may be so rare that none of them has it.
    is_told = is_told and (np.nanmin(some, axis=0) < np.nanmax(some, axis=0)).all()
    return MOST_FOR_GAUSSIAN if is_told else len(Y)


def _choose(start: NoiseModel, told: list[_Told]) -> NoiseModel:
    """Return the noise model with what rows left out choose."""
    few, many = (_Hidden.joined([getattr(some, name) for some in told]) for name in ("few", "many"))
    residuals = np.concatenate([some.residuals for some in told])
    likely = np.concatenate([some.log_likelihoods for some in told])
    residuals_of = mean_residuals(residuals, np.ones(len(residuals)))
    whole = replace(start, residuals=residuals_of, log_likelihoods=np.sort(likely))
    D, counts, columns = len(start.unit), np.ones(len(few.columns)), few.columns
    if len(columns) == 0:
        return whole
    left = errors_apart(few.errors, columns, D, counts)
    expected = max(float(few.spread.sum()), np.finfo(np.float64).tiny)
    stretch = float((left**2).sum()) / expected
    usual = mean_squares(left, columns, D, counts)
    weights = stacking_weights(few.errors, columns, D, counts)

    deviations = np.sqrt((stretch * few.spread + usual[columns]) / 2)
    return replace(
        whole,
        weights=weights,
        stretch=stretch,
        usual=usual,
        ratios=np.abs(left) / deviations,
        columns=columns,
        larger_errors=(many.errors * weights[many.columns]).sum(axis=1),
        larger_spread=many.spread,
        larger_columns=many.columns,
        larger_shares=many.shares,
        usual_share=usual_share(few.shares),
    )


def mean_residuals(residuals: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the mean squares (D,) of residuals (n, D), NaN where rows have gaps."""
    seen = weights[:, None] * ~np.isnan(residuals)
    total = np.maximum(seen.sum(axis=0), np.finfo(np.float64).tiny)
    return np.asarray(np.nansum(seen * residuals**2, axis=0) / total)

"""How sure a fitted model is: spreads, intervals, how likely a row is, and what makes it odd.

All of it rests on ``noise_`` (:mod:`twofold.noise.noise_model`), which is made from the training
rows when it is first asked for, and kept with the model from then on.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from twofold.array_types import FloatArray, IntArray
from twofold.contract.chunked_model import ChunkedModel
from twofold.contract.distinct_rows import DistinctRows, RowIndex
from twofold.contract.fitted_state import check_there
from twofold.contract.lazy_answers import answers_lazily
from twofold.contract.left_open import (
    MOST_GLANCED_AT,
    MOST_LOOKED_AT,
    LeftOpen,
    LeftOpenWarning,
    left_open,
)
from twofold.contract.tensors import takes_tensors
from twofold.engine.threads import single_threaded_blas
from twofold.model_files import register_value_type
from twofold.noise.denoising import without_noise
from twofold.noise.judging import told_by_others, turns_of
from twofold.noise.larger_gaps import missing_shares
from twofold.noise.noise_model import (
    MapNoise,
    MapResiduals,
    NoiseModel,
    Place,
    TrainedMap,
    make_noise,
)
from twofold.noise.slopes import MOST_REFERENCES, MOST_TRIED, LocalSlopes, Trial, half_hidden
from twofold.process_settings import warn, without_warnings

register_value_type(NoiseModel)

# What is made from the noise model, or with it.
FROM_NOISE = (
    "noise_",
    "_map_noise",
    "_map_residuals",
    "_known_index",
    "_sampled_places",
    "_noise_variances",
    "_local_slopes",
    "_other_columns",
)
# Rows that a model with landmarks keeps, at least and at most; between, as many as landmarks.
LEAST_SAMPLED, MOST_SAMPLED = 500, 2_000
# Rows that are left out to learn about noise: a tenth at a time, until these are enough.
MOST_LEFT_OUT, MOST_PARTS = 1_000, 10
# How often a model is fitted again for that if it has to be, and to how many rows at most.
MOST_FITS, MOST_FITTED_AGAIN = 5, 4_000
# Entries so many deviations from what the others let expect say nothing about these; so many a row.
GROSS, MOST_GROSS = 5.0, 4
# Ways to fill the gaps of a row whose p-value is asked for.
DRAWS_OF_GAPS = 8
# Rows that are farther apart, and entries that are smaller, have squares with all their digits.
SQUARABLE = 1e-100, 1e100


@dataclass(frozen=True, repr=False)
class Explanation:
    """What each entry of rows should have been, given the other ones.

    Attributes
    ----------
    expected, std : ndarrays of shape (n_samples, n_features)
        Mean and standard deviation of each entry given the other observed entries of its row.
    deviations : ndarray of shape (n_samples, n_features)
        How many standard deviations an entry is above that; NaN where it is missing.
    """

    expected: FloatArray
    std: FloatArray
    deviations: FloatArray

    def __str__(self) -> str:
        m, D = self.deviations.shape
        size = np.nan_to_num(np.abs(self.deviations), nan=-1.0)
        row, d = np.unravel_index(size.argmax(), size.shape)
        return (
            f"Explanation({m} row(s) of {D} features; the oddest entry is feature {d} of row "
            f"{row}, {self.deviations[row, d]:+.3g} standard deviations from what is expected)"
        )

    __repr__ = __str__

    def features(self, row: int, most: int = 5) -> IntArray:
        """Return the numbers of the features of a row that deviate most, the oddest first."""
        size = np.nan_to_num(np.abs(self.deviations[row]), nan=-1.0)
        order = np.argsort(-size, kind="stable")
        return order[: min(most, int((size >= 0).sum()))]


def checked_noise(noise_std: Any, D: int) -> FloatArray:
    """Return the deviation (D,) of the noise of each feature, as users give it."""
    try:
        found = np.broadcast_to(np.asarray(noise_std, dtype=np.float64), (D,))
    except (TypeError, ValueError):
        found = np.full(D, np.nan)
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise ValueError(
            "`noise_std` must be a number of at least 0, or one for each of the "
            f"{D} features; got {noise_std!r}."
        )
    return found


class UncertainModel(ChunkedModel):
    """A model that knows how far rows lie from what it says."""

    weights_: FloatArray
    sample_rows_: FloatArray
    sample_weights_: FloatArray
    _index: Any
    _feature_groups: IntArray | None = None
    # Whether images of a few hundred rows take next to no time beside a fit.
    _regresses_quickly: ClassVar[bool] = True

    # ---- what is made at first use --------------------------------------------------------------

    @cached_property
    def noise_(self) -> NoiseModel:
        """What the manifold leaves open, from training rows that were left out of it."""
        check_is_fitted(self)
        if not self._has_noise():
            raise ValueError(f"How far rows lie from the model is unknown: {self._no_noise()}")
        with single_threaded_blas():
            trained = self._trained_map()
            # At work it is wanted next, and to make it of all rows once more would take as long.
            parts = self._parts_to_leave_out(MOST_LEFT_OUT)
            if len(parts) > MOST_FITS and self._unaware_of(parts[0]) is None:
                parts = parts[:MOST_FITS]
            # Rows of which most is hidden have places that no search finds exactly.
            with without_warnings(ConvergenceWarning):
                self._map_noise = make_noise(trained, parts, partial(self._left_out, trained), 0)
        return self._map_noise.noise

    @cached_property
    def _map_noise(self) -> MapNoise:
        noise = self.noise_
        made: MapNoise | None = self.__dict__.get("_map_noise")
        return made or MapNoise(self._trained_map(), noise)  # None where a file told the noise

    @cached_property
    def _map_residuals(self) -> MapResiduals:
        noise, places = self._map_noise, self._known_places()
        return MapResiduals(noise, self._regress_without(places, np.arange(len(places))))

    @cached_property
    def _known_index(self) -> Any:
        """Finds rows among those that tell of the noise."""
        return self._index if self._keeps_rows() else RowIndex(self._known_rows()[0])

    @cached_property
    def _noise_variances(self) -> FloatArray:
        """The variance (D,) of the noise of each feature, see :mod:`twofold.noise.denoising`."""
        with single_threaded_blas():
            return np.full(len(self.noise_.unit), self._map_noise.noise_variance())

    @cached_property
    def _local_slopes(self) -> LocalSlopes:
        with single_threaded_blas():
            places = self._known_places()[:MOST_REFERENCES]  # rows are in no order
            images = self._regress_without(places, np.arange(len(places)))
            known = self._known_rows()[0][: len(places)]
            rows = np.where(np.isnan(known), images, known).astype(np.float64)
            parts = self._parts_to_leave_out(MOST_TRIED)
            own = np.concatenate(parts)
            hidden = half_hidden(len(own), rows.shape[1])
            partial_rows = np.where(hidden, np.nan, rows[own])
            trial = Trial(own, self._placed_without(partial_rows, parts)[0], hidden)
            return LocalSlopes(rows, self._in_units(places), trial)

    def has_noise(self) -> bool:
        """Say whether the model knows what it leaves open: rows it was trained on tell that."""
        check_is_fitted(self)
        return self._has_noise()

    def _has_noise(self) -> bool:
        """Say whether there are rows that a noise model can be made of."""
        if not self._knows_rows():
            return False
        rows = self._known_rows()[0]
        least, most = float(np.nanmin(rows)), float(np.nanmax(rows))
        low, high = SQUARABLE
        return most - least > low and max(-least, most) < high

    def _no_noise(self) -> str:
        """Return why there is no noise model, and what to do about it."""
        if not self._takes_rows():
            return (
                "its distances are those of a kernel or a matrix, and say nothing about single "
                "features. Fit a model to the rows themselves."
            )
        if not self._knows_rows():
            return (
                "it keeps landmarks and none of the rows it was trained on, as earlier versions "
                "did. Fit it again."
            )
        return "its rows are too large, too small or too close to be squared. Change their unit."

    def _keeps_rows(self) -> bool:
        """Say whether ``data_`` are the rows that the model was trained on."""
        return getattr(self, "landmarks", None) is None and self._takes_rows()

    def _takes_rows(self) -> bool:
        """Say whether distances are those of rows, not of what a kernel makes of them."""
        return not self.__sklearn_tags__().input_tags.pairwise

    def _knows_rows(self) -> bool:
        """Say whether the model keeps the rows it was trained on, or a sample of them."""
        return self._keeps_rows() or (self._takes_rows() and hasattr(self, "sample_rows_"))

    def _known_rows(self) -> tuple[FloatArray, FloatArray]:
        """Return rows (t, D) the model was trained on, in no order, and their weights (t,)."""
        if self._keeps_rows():
            return self.data_, self.weights_
        return self.sample_rows_, self.sample_weights_

    def _known_places(self, most: int | None = None) -> FloatArray:
        """Return the latent points (t, q) of the known rows, or of the first ones."""
        if self._keeps_rows():
            return self.latent_[:most]
        return self._sampled_places if most is None else self._place(self.sample_rows_[:most])

    @cached_property
    def _sampled_places(self) -> FloatArray:
        return self._place(self.sample_rows_)

    def _keep_sample(self, sample: DistinctRows) -> None:
        """Keep some of the rows behind landmarks, those of the lowest hash: they tell the noise."""
        kept = sample.lowest(min(max(LEAST_SAMPLED, len(self.data_)), MOST_SAMPLED))
        self.sample_rows_, self.sample_weights_ = kept.Y, kept.weights

    def _check_restored(self) -> None:
        super()._check_restored()
        check_there(self, {"sample_weights_": hasattr(self, "sample_rows_")})

    def _trained_map(self) -> TrainedMap:
        (rows, weights), places = self._known_rows(), self._known_places()
        return TrainedMap(rows, weights, self._in_units(places), self._feature_groups)

    def _join_features(self, groups: IntArray) -> None:
        """Take features of one of the groups (D,) to be known together or not at all."""
        self._feature_groups = groups

    def _copy_without(self, rows: IntArray, names: Sequence[str]) -> Self:
        """Return the model without some rows, whose attributes ``names`` have one entry a row."""
        other = object.__new__(type(self))
        other.__dict__ = {k: v for k, v in self.__dict__.items() if k not in FROM_NOISE}
        for name in names:
            if hasattr(self, name):
                setattr(other, name, np.delete(getattr(self, name), rows, axis=0))
        other._restore()
        return other

    def _in_units(self, X: FloatArray) -> FloatArray:
        """Return latent points in units of what is near."""
        return np.asarray(X.astype(np.float64) / self._latent_unit())

    def _parts_to_leave_out(self, most: int) -> list[IntArray]:
        """Return the numbers of known rows, which are in no order, that are left out together.

        A tenth at a time; of many rows about ``most``, of few all, one part after the other.
        """
        n = len(self._known_rows()[0])
        size = min(max(n // MOST_PARTS, 1), most)
        n_parts = min(MOST_PARTS, -(-most // size), n)
        return [np.arange(size * part, size * (part + 1)) for part in range(n_parts)]

    def _left_out(self, trained: TrainedMap, out: IntArray) -> tuple[TrainedMap, Place]:
        """Return the map without some of the known rows, and how it places rows."""
        kept, other = np.delete(np.arange(len(trained.rows)), out), self._unaware_of(out)
        is_too_small = len(kept) < self._n_features_out + 2  # for a fit
        if other is self or (other is None and is_too_small):
            return trained.part(kept), self._placed
        other = other or self._fitted_again(kept[:MOST_FITTED_AGAIN])
        return other._trained_map(), other._placed

    def _unaware_of(self, rows: IntArray) -> Self | None:
        """Return a model that has not seen known rows, or None if one has to be fitted for that."""
        # Each of the rows behind landmarks moves them little.
        return self._without(rows) if self._keeps_rows() else self

    def _placed_without(
        self, Y: FloatArray, parts: Sequence[IntArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Return places and images of rows Y, made of the known rows ``parts``, as of new ones.

        A model that would have to be fitted again for that looks at rows it has seen.
        """
        ends, found = np.cumsum([len(part) for part in parts])[:-1], []
        for some, out in zip(np.split(Y, ends), parts, strict=True):
            found.append((self._unaware_of(out) or self)._placed(some))
        places, images = zip(*found, strict=True)
        return np.concatenate(places), np.concatenate(images)

    def _placed(self, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return places, in units of what is near, and images of rows as of new ones."""
        Y, observed = Y.astype(self.latent_.dtype), ~np.isnan(Y)
        X = self._project(Y, None if observed.all() else observed)
        return self._in_units(X), self._regress(X)

    def _fitted_again(self, rows: IntArray) -> Self:
        """Return a model of the same parameters, fitted to some of the rows."""
        asked = self.get_params(deep=False)
        changed = {"verbose": False, "callbacks": (), "random_state": 0}
        if np.ndim(asked.get("init")) == 2:  # one place for each row
            changed["init"] = self.latent_[rows]
        other = clone(self).set_params(**{k: v for k, v in changed.items() if k in asked})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit of all rows has warned
            return other.fit(self.data_[rows], sample_weight=self.weights_[rows])

    # ---- what users ask -------------------------------------------------------------------------

    def left_open(self) -> LeftOpen:
        """Say how far rows like the training rows lie from what the model makes of them.

        Training rows, some 500 of many, are placed on the map without them, as new rows are, if
        the family can leave rows out, as UKR can. Others look at the rows as the map has seen them.
        """
        if not self.has_noise():
            raise ValueError(
                f"What the model leaves open is unknown: {self._no_noise()} Or look at "
                "`score` of rows."
            )
        parts = self._parts_to_leave_out(MOST_LOOKED_AT)
        rows, weights = (known[np.concatenate(parts)] for known in self._known_rows())
        with single_threaded_blas():
            return left_open(rows, self._placed_without(rows, parts)[1], weights)

    def _warn_if_open(self) -> None:
        """Warn of a fitted map that leaves much open, as far as a quick look tells."""
        if not self._regresses_quickly or not self.has_noise():
            return
        rows, weights = self._known_rows()
        chosen = np.arange(min(len(rows), MOST_GLANCED_AT))
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
            images = self._regress_without(self._known_places(len(chosen)), chosen)
            found = left_open(rows[chosen], images, weights[chosen])
        if words := found.warning():
            warn(f"{words[0].upper()}{words[1:]}.", LeftOpenWarning)

    def noise_std(self) -> FloatArray:
        """Return the standard deviation (n_features,) of the noise of each feature.

        It is assumed to be the same for all features, in the units in which the model measures
        distances, and estimated from the directions in which rows vary least
        (:mod:`twofold.noise.denoising`). That is an upper bound, which is close if some directions
        carry no signal.
        """
        check_is_fitted(self)
        return np.sqrt(self._noise_variances)

    @answers_lazily("D", "D", is_pair=True)
    @takes_tensors
    def intervals(self, X: Any, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Return the interval in which each entry is expected, given the others of its row.

        Of hidden entries of rows that the map was made without, the share ``level`` lay within such
        intervals (conformal prediction).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN marks missing entries.
        level : float, default=0.9

        Returns
        -------
        low, high : ndarrays of shape (n_samples, n_features)
            For observed entries, too: where they would be expected if they were missing. That takes
            up to 16 times as long.
        """
        Y = self._rows_to_fill(X)
        reach = self.noise_.reach(level, missing_shares(Y)).astype(Y.dtype)
        with single_threaded_blas():
            means, deviations = self._expected_apart(Y)
        return means - reach * deviations, means + reach * deviations

    def _gap_intervals(self, X: Any, level: float) -> FloatArray:
        """Return both ends (m, 2, D) of missing entries alone, NaN for others: that is quick."""
        Y = self._rows_to_fill(X)
        reach = self.noise_.reach(level, missing_shares(Y)).astype(Y.dtype)
        with single_threaded_blas():
            means, deviations = self._expected(Y)
        ends = np.stack([means - reach * deviations, means + reach * deviations], axis=1)
        return np.where(np.isnan(Y)[:, None], ends, np.nan)

    @takes_tensors
    def slopes(self, X: Any, *, return_std: bool = False) -> Any:
        """Return how features change around latent points, averaged over a neighbourhood.

        :meth:`jacobian` is the derivative of the map at a point; on maps of many rows it follows
        single rows. These are slopes over a neighbourhood, as wide as is needed to tell rows there
        from rows elsewhere (:mod:`twofold.noise.slopes`).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
        return_std : bool, default=False

        Returns
        -------
        slopes : ndarray of shape (n_samples, n_features, n_components)
        std : ndarray of the same shape, with ``return_std``
            Their standard errors.
        """
        if not self.has_noise():
            raise ValueError(
                f"Slopes need the rows that the model was trained on: {self._no_noise()} Or look "
                "at `jacobian`."
            )
        places = self._validate_latent(X)
        with single_threaded_blas():
            slopes, std = (part.astype(places.dtype) for part in self._slopes(places))
        return (slopes, std) if return_std else slopes

    @answers_lazily("D", "")
    @takes_tensors
    def log_likelihood(self, X: Any) -> FloatArray:
        """Return the log-likelihood (n_samples,) of rows ``X`` (n_samples, n_features).

        That is ``log p(y | x) + log p(x)`` at the latent point x of a row y: how well it fits its
        neighbours on the map, and how many rows are there. Only observed entries count, so compare
        rows with gaps only with rows that have the same gaps.
        """
        Y = self._rows_to_fill(X)
        with single_threaded_blas():
            return self._log_likelihood(Y)

    @answers_lazily("D", "")
    @takes_tensors
    def p_values(self, X: Any) -> FloatArray:
        """Return the share (n_samples,) of training rows that are at most as likely as a row.

        The likelihood of a training row is that on a map made without it. A row with p = 0.01 is as
        odd as the oddest hundredth of them. Rows ``X`` are (n_samples, n_features); a row with gaps
        gets the mean p of several random ways to fill them, so that a gap makes a row neither odd
        nor usual.
        """
        Y = self._rows_to_fill(X)
        with single_threaded_blas():
            return self._p_values(Y)

    @takes_tensors
    def explain(self, X: Any) -> Explanation:
        """Say which entries of rows ``X`` (n_samples, n_features) are odd, and what they should be.

        Each entry is compared with what the other observed entries of its row suggest; it has no
        say in that, nor in the place of its row. An entry more than five deviations off says
        nothing about the others either: the oddest is left out first, up to four of a row.
        """
        Y = self._rows_to_fill(X)
        with single_threaded_blas():
            means, deviations = self._expected_apart(Y, without_gross=True)
        return Explanation(means, deviations, (Y - means) / deviations)

    # ---- inside -------------------------------------------------------------------------------

    def _p_values(self, Y: FloatArray) -> FloatArray:
        gaps = np.isnan(Y).any(axis=1)
        p = np.empty(len(Y))
        p[~gaps] = self._shares_below(Y[~gaps])
        if gaps.any():
            drawn = self._filled_by_lot(Y[gaps])
            shares = self._shares_below(drawn.reshape(-1, Y.shape[1]))
            # Numpy adds up along rows in an order that does not depend on how many there are.
            p[gaps] = np.ascontiguousarray(shares.reshape(DRAWS_OF_GAPS, -1).T).mean(axis=1)
        return p

    def _shares_below(self, Y: FloatArray) -> FloatArray:
        """Return the share (m,) of training rows that are at most as likely as complete rows."""
        known = self.noise_.log_likelihoods
        if len(Y) == 0:
            return np.empty(0)
        below = np.searchsorted(known, self._log_likelihood(Y), side="right")
        return np.asarray((below + 1) / (len(known) + 1))

    def _filled_by_lot(self, Y: FloatArray) -> FloatArray:
        """Return rows with gaps filled in several ways, (ways, m, D), each row by itself."""
        filled, std = self._filled(Y)
        found = np.empty((DRAWS_OF_GAPS, *Y.shape), dtype=Y.dtype)
        for i in range(len(Y)):
            random = np.random.RandomState(0)  # what a row gets does not depend on the others
            for way in found:
                noise = self._drawn_errors(Y[i : i + 1], std[i : i + 1], random)
                way[i] = filled[i] + noise[0]
        return found

    def _drawn_errors(
        self, Y: FloatArray, std: FloatArray, random: np.random.RandomState
    ) -> FloatArray:
        """Return errors (m, D) of what is missing in rows Y, of deviations (m, D), at random."""
        return self._map_noise.draw(Y, std, random)

    def _without_noise(self, Y: FloatArray, noise_std: Any) -> FloatArray:
        """Return rows (m, D) less their noise, of deviation ``noise_std`` or what is estimated."""
        noise = (
            self._noise_variances
            if noise_std is None
            else checked_noise(noise_std, Y.shape[1]) ** 2
        )
        means, deviations = (part.astype(np.float64) for part in self._expected(Y))
        return without_noise(Y, means, deviations**2, noise).astype(Y.dtype)

    def _log_likelihood(self, Y: FloatArray) -> FloatArray:
        places = self._in_units(self._place(Y))
        return self._map_noise.log_likelihood(Y, places, self._own(Y))

    def _expected(self, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations of entries given the others of their rows.

        Of observed ones to first order: rows are placed once, with all entries in sight.
        """
        noise = self._map_noise  # of a model without noise, this says why
        X, own = self._place(Y), self._own(Y)
        places = self._in_units(X)
        images = self._regress_without(X, own)
        told = told_by_others(Y.astype(np.float64), images, self._jacobian(X).astype(np.float64))
        means, deviations = noise.fill(Y, places, told, own)
        return means.astype(Y.dtype), deviations.astype(Y.dtype)

    def _expected_apart(
        self, Y: FloatArray, *, without_gross: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Return the same, of an observed entry as of a missing one: it has no say in the place.

        ``without_gross`` leaves entries that are far off out when the others are judged.
        """
        _ = self.noise_  # of a model without noise, this says why
        own = self._own(Y)
        means, deviations = self._judged(Y, own)
        if not without_gross:
            return means, deviations
        seen, groups, rows = Y.copy(), self._feature_groups, np.arange(len(Y))
        for _ in range(MOST_GROSS):
            off = np.abs((seen[rows] - means[rows]) / deviations[rows])
            off = np.where(np.isnan(off), 0, off)
            # Two entries have to be left that judge each other.
            is_gross = (off.max(axis=1) > GROSS) & ((off > 0).sum(axis=1) > 2)
            oddest, rows = off.argmax(axis=1)[is_gross], rows[is_gross]
            if len(rows) == 0:
                break
            for row, d in zip(rows, oddest, strict=True):
                seen[row, d if groups is None else groups == groups[d]] = np.nan
            means[rows], deviations[rows] = self._judged(seen[rows], own[rows])
        return means, deviations

    def _judged(self, Y: FloatArray, own: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return what each entry of rows is expected to be, placed without it, and deviations.

        Entries of a row take turns in which they are hidden from its place.
        """
        means, deviations = self._expected(Y)
        turns = turns_of(~np.isnan(Y), self._feature_groups)
        center = self.noise_.center.astype(Y.dtype)
        for turn in range(int(turns.max(initial=-1)) + 1):
            judged = turns == turn
            some = judged.any(axis=1)
            judged, rows = judged[some], Y[some]
            hidden = np.where(judged, np.nan, rows)
            # One of a group would tell the others. One by itself tells nothing, but rounds them.
            apart = judged.sum(axis=1, keepdims=True) == 1
            apart |= self._feature_groups is not None
            seen = np.where(apart, hidden, rows)
            alone = np.isnan(hidden).all(axis=1, keepdims=True)
            X = self._place(np.where(alone, center, hidden))  # alone, a row is as all are
            images = self._regress_without(X, own[some]).astype(np.float64)
            found = self._map_noise.fill(seen, self._in_units(X), images, own[some])
            for whole, part in zip((means, deviations), found, strict=True):
                whole[some] = np.where(judged, part, whole[some])
        return means, deviations

    def _own(self, Y: FloatArray) -> IntArray:
        """Return the numbers (m,) of rows among the known ones, -1 for others."""
        return np.asarray(self._known_index.find(Y))

    def _filled(self, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rows with gaps filled, and the deviations of what was filled, 0 elsewhere."""
        filled, deviations = Y.copy(), np.zeros_like(Y)
        some = np.isnan(Y).any(axis=1)
        if some.any():
            means, spread = self._expected(Y[some])
            gaps = np.isnan(Y[some])
            filled[some] = np.where(gaps, means, Y[some])
            deviations[some] = np.where(gaps, spread, 0)
        return filled, deviations

    def _deviations(self, X: FloatArray) -> FloatArray:
        """Return the standard deviation (m, D) of rows around the images of latent points."""
        return self._map_residuals.deviations(self._in_units(X)).astype(X.dtype)

    def _drawn_rows(self, X: FloatArray, random: np.random.RandomState) -> FloatArray:
        """Return rows (m, D) at latent points: their images, and the residuals of rows near them.

        Residuals are those of rows left out. So are images, here without the nearest row: the map
        bends towards each row it was trained on, and that would count as spread, too.
        """
        places, known = self._in_units(X), self._map_residuals
        images = self._regress_without(X, known.nearest(places))
        return (images + known.residuals(places, random)).astype(X.dtype)

    def _slopes(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes (m, D, q) around latent points, and their standard errors."""
        found, unit = self._local_slopes.at(self._in_units(X)), self._latent_unit()
        return found.slopes / unit, found.errors / unit

    def _forget_noise(self) -> None:
        """Drop what was made of rows that have changed."""
        for name in FROM_NOISE:
            self.__dict__.pop(name, None)

    def _rows_to_fill(self, X: Any) -> FloatArray:
        raise NotImplementedError

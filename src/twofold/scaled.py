"""A model of scaled columns: each column counts alike, and the way back undoes it.

    z = (y - c) / s,   f(x) = c + s ∘ f_z(x),   df/dx = s ∘ df_z/dx

"standard" takes mean and standard deviation, "robust" the median and 0.7413 times the distance of
the quartiles, which for normal data is the standard deviation, too, but which outliers do not move.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.checks.parameters import check_choice
from twofold.checks.rows import RowError, check_finite_entries, check_missing, checked_weights
from twofold.contract import TwoWayModel
from twofold.contract.distinct_rows import merge_duplicates
from twofold.contract.fitted_state import (
    SMALLEST,
    Array,
    FittedState,
    Noise,
    Notes,
    Size,
    Sizes,
    Value,
    check_state,
)
from twofold.contract.growing import GrowingModel
from twofold.contract.kernel_description import KernelDescription
from twofold.contract.left_open import LeftOpen
from twofold.contract.nested_models import (
    Families,
    fitted_part,
    from_fitted_part,
    from_template,
    template_of,
)
from twofold.model_files import ModelFile
from twofold.noise.noise_model import NoiseModel
from twofold.rowwise import center_and_spread
from twofold.tables.chunks import ChunkedTable
from twofold.tables.dask_tables import DaskTable
from twofold.ukr import UKR


class ScaledModel(GrowingModel):
    """A model inside another one, which sees rows as ``(y - center_) / spread_``."""

    model: TwoWayModel | None
    model_: TwoWayModel
    center_: FloatArray
    spread_: FloatArray

    # What the model inside sees as columns, in the sizes of `fitted_state`.
    _columns_inside: ClassVar[str] = "D"

    def __getattr__(self, name: str) -> Any:
        """Return a fitted attribute of the model inside."""
        if name.endswith("_") and not name.startswith("_") and "model_" in self.__dict__:
            return getattr(self.__dict__["model_"], name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _check_parameters(self) -> None:
        if self.model is None:
            return
        if not isinstance(self.model, TwoWayModel):
            raise TypeError(f"`model` must be a two-way model such as UKR(); got {self.model!r}.")
        if self.model.__sklearn_tags__().input_tags.pairwise:
            raise ValueError(
                "A model of precomputed kernels or distances has no columns to scale. Scale the "
                "data before its kernel is computed, and fit the model by itself."
            )

    def _most_rows(self, D: int) -> int | None:
        return None if self.model is None else self.model._most_rows(D)

    def _is_growing(self) -> bool:
        return hasattr(self.__dict__.get("model_", self.model or UKR()), "partial_fit")

    def _take_in(self, Y: FloatArray, weights: FloatArray) -> None:
        self.model_.partial_fit(self._scale(Y), sample_weight=weights)  # whole or not at all

    def _fit_inside(self, rows: Any, sample_weight: Any) -> None:
        """Fit the model inside to rows as it takes them."""
        inside = UKR() if self.model is None else clone(self.model)
        self.model_ = inside.fit(rows, sample_weight=sample_weight)

    def _scale(self, Y: FloatArray) -> FloatArray:
        """Return rows in the units of the model inside, which must be able to hold them."""
        with np.errstate(over="ignore"):
            scaled: FloatArray = ((Y - self.center_) / self.spread_).astype(Y.dtype)
        check_finite_entries(scaled)  # the largest may have become infinite
        return scaled

    def _new(self, Y: FloatArray) -> FloatArray:
        """Return new rows as the model inside takes them."""
        scaled = self._scale(Y)
        self.model_._check_range(scaled, reset=False)
        return scaled

    def _unscale(self, F: FloatArray) -> FloatArray:
        return (F * self.spread_ + self.center_).astype(F.dtype)

    def _stretch(self, differences: FloatArray) -> FloatArray:
        """Return differences of rows (m, D) in the units of the data."""
        return (differences * self.spread_).astype(differences.dtype)

    @property
    def data_(self) -> FloatArray:  # type: ignore[override]
        """The rows of the model inside, in the units of the data."""
        return self._unscale(self.model_.data_)

    # ---- what the contract asks for -------------------------------------------------------------

    def _fit_distinct(self, Y: FloatArray, weights: FloatArray, source: IntArray) -> FloatArray:
        raise NotImplementedError("rows are made distinct by the model inside")

    def _restore(self) -> None:
        """Nothing is derived here: the model inside restores itself."""

    def _wake(self) -> None:
        """Nothing is derived here: the model inside wakes by itself."""

    def _bound_domain(self) -> None:
        """Nothing to set: the domain is that of the model inside."""

    def _check_gaps(self, Y: FloatArray) -> None:
        self.model_._check_gaps(Y)

    def _place(self, Y: FloatArray) -> FloatArray:
        return self.model_._place(self._new(Y))

    def _project(self, Y: FloatArray, observed: BoolArray | None) -> FloatArray:
        return self.model_._project(self._new(Y), observed)

    def _regress(self, X: FloatArray) -> FloatArray:
        return self._unscale(self.model_._regress(X))

    def _return_trip(self, Y: FloatArray) -> FloatArray:
        return self._unscale(self.model_._return_trip(self._new(Y)))

    def _density(self, X: FloatArray) -> FloatArray:
        return self.model_._density(X)

    def _jacobian(self, X: FloatArray) -> FloatArray:
        return (self.model_._jacobian(X) * self.spread_[:, None]).astype(X.dtype)

    def _squared_errors(self, Y: FloatArray) -> FloatArray:
        return self.model_._squared_errors(self._new(Y))

    def _latent_unit(self) -> FloatArray:
        return self.model_._latent_unit()

    def _wanted_dimensions(self, Y: FloatArray | None = None) -> int:
        return (self.model or UKR())._wanted_dimensions(Y)

    # ---- what the model inside leaves open, in the units of the data ----------------------------

    @property
    def noise_(self) -> NoiseModel:
        """What the manifold leaves open, made of rows in the units of the model inside."""
        check_is_fitted(self)
        inside = self.model_.noise_
        center, unit = self._unscale(inside.center), inside.unit * self.spread_
        return replace(inside, center=center, unit=unit)

    @property
    def _noise_variances(self) -> FloatArray:
        return self.model_._noise_variances * self.spread_**2

    def _join_features(self, groups: IntArray) -> None:
        self.model_._join_features(groups)

    def _has_noise(self) -> bool:
        return self.model_._has_noise()

    def _fills_by_noise(self) -> bool:
        return self.model_._fills_by_noise()

    def _warn_if_open(self) -> None:
        """Nothing to say: the model inside has said it."""

    def _expected(self, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        means, deviations = self.model_._expected(self._new(Y))
        return self._unscale(means), self._stretch(deviations)

    def _expected_apart(
        self, Y: FloatArray, *, without_gross: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        found = self.model_._expected_apart(self._new(Y), without_gross=without_gross)
        return self._unscale(found[0]), self._stretch(found[1])

    def _deviations(self, X: FloatArray) -> FloatArray:
        return self._stretch(self.model_._deviations(X))

    def _drawn_rows(self, X: FloatArray, random: np.random.RandomState) -> FloatArray:
        return self._unscale(self.model_._drawn_rows(X, random))

    def _drawn_errors(
        self, Y: FloatArray, std: FloatArray, random: np.random.RandomState
    ) -> FloatArray:
        return self._stretch(self.model_._drawn_errors(self._new(Y), std / self.spread_, random))

    def _log_likelihood(self, Y: FloatArray) -> FloatArray:
        # Where a unit is wide, a density is low; entries that are missing have none.
        log_units = (~np.isnan(Y) * np.log(self.spread_)).sum(axis=1)
        return self.model_._log_likelihood(self._new(Y)) - log_units

    def _p_values(self, Y: FloatArray) -> FloatArray:
        return self.model_._p_values(self._new(Y))

    def _slopes(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        slopes, errors = self.model_._slopes(X)
        return slopes * self.spread_[:, None], errors * self.spread_[:, None]

    def left_open(self) -> LeftOpen:
        """Say how far rows like the training rows lie from what the model makes of them.

        Rows are placed in the units in which the model inside was fitted; ``features`` of the
        answer are in those of the data.
        """
        check_is_fitted(self)
        inside = self.model_.left_open()
        return replace(inside, features=inside.features * self.spread_)

    def kernel_regression(self) -> KernelDescription | None:
        """Return the way back in plain arrays, in the units of the data, or None."""
        check_is_fitted(self)
        inside = self.model_.kernel_regression()
        return None if inside is None else replace(inside, data=self._unscale(inside.data))

    # ---- files ----------------------------------------------------------------------------------

    def to_file(self) -> ModelFile:
        """Return what a file of the fitted model holds."""
        stored = super().to_file()
        stored.params["model"] = template_of(self.model)
        stored.attributes["model_"] = fitted_part(self.model_)
        return stored

    @classmethod
    def _stored_state(cls, stored: ModelFile, inside: TwoWayModel) -> tuple[dict[str, Any], Sizes]:
        """Return the fitted attributes of a file, checked, and their sizes."""
        state = {**stored.attributes, **stored.arrays, "model_": inside}
        sizes = check_state(state, cls.fitted_state, {"N": len(inside.embedding_)})
        state.pop("noise_", None)  # of an earlier version; the model inside has it, or makes it
        return state, sizes

    @classmethod
    def from_file(cls, stored: ModelFile, families: Families) -> Self:
        """Return the fitted model of a file that was read; see :func:`twofold.load`."""
        model = cls(**{**stored.params, "model": from_template(stored.params["model"], families)})
        inside = from_fitted_part(stored.attributes["model_"], families)
        state, sizes = cls._stored_state(stored, inside)
        wanted = sizes[cls._columns_inside]
        if inside.n_features_in_ != wanted:
            raise ValueError(f"`model_` has {inside.n_features_in_} features, not {wanted}")
        model._check_parameters()
        model.__dict__.update(state)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inside = self.model if isinstance(self.model, TwoWayModel) else UKR()
        tags.input_tags.allow_nan = inside.__sklearn_tags__().input_tags.allow_nan
        return tags


class Scaled(ScaledModel):
    """Scale every column, fit a model to that, and undo the scaling on the way back.

    Everything a two-way model does works in the units of the data: rows go in, and come out of
    ``inverse_transform``, ``reconstruct``, ``complete``, ``sample`` and ``jacobian``, as they were
    measured. Only errors and scores are in units of the scaled columns, so that each counts
    equally.

    Parameters
    ----------
    model : TwoWayModel, default=None
        The model of the scaled rows; fitted as a clone. None means ``UKR()``.
    how : {"standard", "robust"}, default="standard"
        By mean and standard deviation, or by median and quartiles. A column whose quartiles are
        equal takes its standard deviation; a constant column is only centred.

    Attributes
    ----------
    model_ : TwoWayModel
        The fitted model of the scaled rows; its fitted attributes can be read from here, too.
    center_, spread_ : ndarrays of shape (n_features,)
        What is subtracted from a column, and what it is divided by.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from twofold import UKR, Scaled
    >>> wine = load_wine().data
    >>> model = Scaled(UKR(init="pca", max_iter=20)).fit(wine)
    >>> model.inverse_transform([[0.0, 0.0]]).shape
    (1, 13)
    """

    fitted_state: ClassVar[FittedState] = {
        "n_features_in_": Size("D"),
        "feature_names_in_": Array(("D",), "U", is_optional=True),
        "center_": Array(("D",)),
        "spread_": Array(("D",), low=SMALLEST),
        "model_": Value((TwoWayModel,)),
        "notes_": Notes(),
        "noise_": Noise(),
    }

    def __init__(self, model: TwoWayModel | None = None, how: str = "standard") -> None:
        self.model = model
        self.how = how

    def _check_parameters(self) -> None:
        check_choice("how", self.how, ("standard", "robust"))
        super()._check_parameters()

    def _fit_table(self, X: Any, sample_weight: Any) -> None:
        Y = self._validate(X, reset=True)
        weights = checked_weights(sample_weight, Y)
        counted = weights > 0
        check_missing(Y[counted], self.__dict__.get("feature_names_in_"))
        # Of distinct rows in their own order, so that neither order nor copies change a bit of it.
        distinct = merge_duplicates(Y[counted], weights[counted])
        distinct = distinct.lowest(self._most_rows(Y.shape[1]) or len(Y))
        self.center_, self.spread_ = center_and_spread(self.how, distinct.Y, distinct.weights)
        self._fit_inside(self._scale(Y), weights)

    def _fit_chunks(self, table: ChunkedTable, sample_weight: Any) -> None:
        if self._most_rows(1) is None:
            super()._fit_chunks(table, sample_weight)
            return
        sample = self._look_through(table, sample_weight).sample
        self.center_, self.spread_ = center_and_spread(self.how, sample.Y, sample.weights)
        rows: Any = _ScaledChunks(self, table)
        if isinstance(table, DaskTable):
            from twofold.contract.spread_fitting import rows_through

            rows = rows_through(self, table, "_scale")
        self._fit_inside(rows, sample_weight)


class _ScaledChunks:
    """A table in the units of the model inside, scaled each time it is walked through."""

    def __init__(self, model: Scaled, table: ChunkedTable) -> None:
        self._model, self._table = model, table

    def __iter__(self) -> Iterator[FloatArray]:
        for start, Y in self._model._walk(self._table, reset=False):
            try:
                yield self._model._scale(Y)
            except RowError as error:
                raise error.at(start + error.row) from None

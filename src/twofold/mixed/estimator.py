"""A model of tables as people have them, and back to the same table.

Columns become features (:mod:`.columns`), of a kind that is chosen by rule (:mod:`.kinds`) or asked
for; the model inside sees features of zero mean whose variances add up to the column's weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from twofold.array_types import FloatArray
from twofold.checks.parameters import check_positive
from twofold.checks.rows import check_missing, checked_weights
from twofold.contract import TwoWayModel
from twofold.contract.distinct_rows import merge_duplicates
from twofold.contract.fitted_state import (
    TINY,
    Array,
    FittedState,
    Noise,
    Notes,
    Size,
    Value,
)
from twofold.contract.nested_models import Families, from_fitted_part, from_template
from twofold.contract.row_notes import RowNotes
from twofold.contract.uncertain_model import Explanation
from twofold.engine.threads import single_threaded_blas
from twofold.mixed.columns import Column, LevelColumn
from twofold.mixed.dask_frames import answers_frames, sample_of, scaled_features_of
from twofold.mixed.frames import TableKind, as_frame
from twofold.mixed.kinds import check_kinds
from twofold.mixed.table_columns import TableColumns, choose_columns
from twofold.model_files import ModelFile
from twofold.noise.larger_gaps import missing_shares
from twofold.scaled import Scaled, ScaledModel
from twofold.tables.chunks import ChunkedTable
from twofold.tables.dask_tables import DaskTable
from twofold.ukr import UKR

if TYPE_CHECKING:
    from twofold.mixed.other_columns import OtherColumns


class Mixed(ScaledModel):
    """Fit a model to a table of numbers, categories, dates and counts; get the same table back.

    Each column counts alike, whatever its kind, and entries may be missing anywhere. The way back
    (``inverse_transform``, ``reconstruct``, ``complete``, ``sample``) gives a table of the same
    library with the same columns, types, categories and time zones. What differs in every row
    (names, identifiers, free text) is left out. Errors and scores are in units in which every
    column has the variance 1, or its weight.

    Parameters
    ----------
    model : TwoWayModel, default=None
        The model of the features; fitted as a clone. None means ``UKR()``.
    kinds : dict, default=None
        Kinds of columns that are not to be chosen by rule, such as ``{"year": "category"}``:
        "number", "log" (amounts above 0 on a logarithmic scale), "count", "robust" (heavy tails),
        "category", "ordered", "date", or "out" to leave a column out. A list of levels, from the
        lowest to the highest, is an ordered category.
    weights : dict, default=None
        How many columns a column counts for, 1 by default: ``{"price": 3}``.

    Attributes
    ----------
    columns_ : tuple of Column
        What each column became; ``column.described()`` says its kind and why.
    left_out_ : dict
        Columns that take no part, and why.
    model_ : TwoWayModel
        The fitted model of the features; its fitted attributes can be read from here, too.
    center_, spread_ : ndarrays of shape (n_of_all_features,)
        What is subtracted from a feature, and what it is divided by.
    n_features_in_, feature_names_in_ : int, ndarray
        Of the columns that take part.

    Examples
    --------
    >>> import pandas as pd
    >>> from twofold import UKR, Mixed
    >>> sizes = [1.0, 1.1, 1.3, 2.1, 2.2, 2.5, 3.0, 3.2]
    >>> table = pd.DataFrame({"size": sizes, "kind": list("aaabbbbb"), "sold": [True, False] * 4})
    >>> model = Mixed(UKR(1, init="pca", max_iter=5)).fit(table)
    >>> model.inverse_transform(model.embedding_[:2]).dtypes.astype(str).to_dict()["sold"]
    'bool'
    """

    fitted_state: ClassVar[FittedState] = {
        "n_features_in_": Size("C"),
        "feature_names_in_": Array(("C",), "U"),
        "center_": Array(("D",)),
        "spread_": Array(("D",), low=TINY),
        "columns_": Value((tuple,)),
        "left_out_": Value((dict,)),
        "table_kind_": Value((TableKind,)),
        "model_": Value((TwoWayModel,)),
        "notes_": Notes(),
        "noise_": Noise(),
    }

    columns_: tuple[Column, ...]
    left_out_: dict[str, str]
    table_kind_: TableKind

    def __init__(
        self,
        model: TwoWayModel | None = None,
        kinds: Mapping[str, Any] | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        self.model = model
        self.kinds = kinds
        self.weights = weights

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_kinds(self.kinds)
        if self.weights is not None and not isinstance(self.weights, Mapping):
            raise TypeError(f"`weights` must be a dict by names of columns; got {self.weights!r}.")
        for name, weight in (self.weights or {}).items():
            check_positive(f"weights[{name!r}]", weight)

    # ---- fitting --------------------------------------------------------------------------------

    def _fit_table(self, X: Any, sample_weight: Any) -> None:
        frame, self.table_kind_ = as_frame(X)
        if len(frame) < 2 or not len(frame.columns):
            raise ValueError(
                "Expected a table of at least two rows and a column; got one of "
                f"{len(frame)} row(s) and {len(frame.columns)} column(s)."
            )
        weights = checked_weights(sample_weight, frame)
        Y = self._fit_columns(frame, weights)
        inner = UKR() if self.model is None else clone(self.model)
        self.model_ = inner.fit(self._scale(Y), sample_weight=weights)
        self._join_columns()

    def _fit_columns(self, frame: pd.DataFrame, weights: FloatArray) -> FloatArray:
        """Choose columns and their scales; return the features (n, D)."""
        chosen, self.left_out_ = choose_columns(
            frame, weights, self.kinds or {}, self.weights or {}
        )
        self.columns_ = chosen.columns
        self.feature_names_in_ = np.array([column.name for column in self.columns_], dtype=object)
        self.n_features_in_ = len(self.columns_)
        Y = chosen.encode(frame)
        counted = weights > 0
        check_missing(Y[counted], np.array(chosen.labels, dtype=object))
        # Of distinct rows in their own order, so that neither order nor copies change a bit of it.
        distinct = merge_duplicates(Y[counted], weights[counted])
        self.center_, self.spread_ = chosen.scales(distinct)
        return Y

    def _fit_chunks(self, table: ChunkedTable, sample_weight: Any) -> None:
        if not isinstance(table, DaskTable):
            raise TypeError(
                "Mixed is fitted to a table in memory or a data frame of dask; pass a frame, such "
                "as pandas.read_parquet(path)."
            )
        most = self._most_rows(table.width)
        if most is None:
            super()._fit_chunks(table, sample_weight)
            return
        sample, weights = sample_of(table, sample_weight, most)
        frame, self.table_kind_ = as_frame(sample)
        self._fit_columns(frame, weights)
        inner = UKR() if self.model is None else clone(self.model)
        rows = scaled_features_of(self, table)
        self.model_ = inner.fit(rows, sample_weight=sample_weight)
        self._join_columns()

    @property
    def _table(self) -> TableColumns:
        """The columns together."""
        return TableColumns(self.columns_)

    def feature_labels(self) -> list[str]:
        """Return the names of the features, such as "colour = red"."""
        return self._table.labels

    def _validate(self, X: Any, *, reset: bool) -> FloatArray:
        """Return the features (n, D) of rows of a table, whose columns are found by name."""
        frame, _ = as_frame(X)
        return self._table.encode(frame).astype(self.latent_.dtype)

    # ---- there and back -------------------------------------------------------------------------

    @answers_frames
    def inverse_transform(
        self, X: Any, *, return_std: bool = False, return_probabilities: bool = False
    ) -> Any:
        """Return the table that belongs to latent points ``X`` (n_samples, n_components).

        Categories are the most likely levels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
        return_std : bool, default=False
            Whether to return the standard deviation of rows around it, too, as a frame: in units of
            the column, NaN for categories, whose uncertainty is that of their probabilities.
        return_probabilities : bool, default=False
            Whether to return how likely each level is, too: a frame for each column of categories,
            in a dict by their names.
        """
        if return_std:
            F, std = super().inverse_transform(X, return_std=True)
            return self._answer(F, None, return_probabilities, std)
        return self._answer(super().inverse_transform(X), None, return_probabilities)

    @answers_frames
    def reconstruct(
        self,
        X: Any,
        *,
        use_residuals: bool = False,
        noise_std: Any = None,
        return_std: bool = False,
        return_probabilities: bool = False,
    ) -> Any:
        """Return ``inverse_transform(transform(X))``: the rows as the manifold sees them.

        Columns that the model does not know stay as they are. Parameters are those of
        :meth:`TwoWayModel.reconstruct` and :meth:`inverse_transform`.
        """
        given = as_frame(X)
        found = super().reconstruct(
            X, use_residuals=use_residuals, noise_std=noise_std, return_std=return_std
        )
        F, std = found if return_std else (found, None)
        return self._answer(F, given, return_probabilities, std)

    @answers_frames
    def complete(
        self,
        X: Any,
        *,
        use_residuals: bool | None = None,
        return_std: bool = False,
        n_draws: int | None = None,
        random_state: Any = None,
        return_probabilities: bool = False,
    ) -> Any:
        """Fill the missing entries of a table; all others stay as they are.

        Parameters are those of :meth:`TwoWayModel.complete` and of :meth:`inverse_transform`; with
        ``n_draws`` a list of tables is returned.
        """
        frame, kind = as_frame(X)
        found = super().complete(
            X,
            use_residuals=use_residuals,
            return_std=return_std,
            n_draws=n_draws,
            random_state=random_state,
        )
        F, std = found if return_std else (found, None)
        if n_draws is not None:
            return [kind.restored(self._table.filled(each, frame)) for each in F]
        filled = kind.restored(self._table.filled(F, frame))
        return self._with_more(filled, F, frame.index, std, return_probabilities)

    def sample(
        self,
        n_samples: int = 1,
        random_state: Any = None,
        *,
        spread: str = "density",
        noise: bool = False,
        return_probabilities: bool = False,
    ) -> Any:
        """Generate a table of ``n_samples`` rows from latent points inside the domain.

        Parameters are those of :meth:`TwoWayModel.sample` and of :meth:`inverse_transform`.
        """
        F = super().sample(n_samples, random_state, spread=spread, noise=noise)
        return self._answer(F, None, return_probabilities)

    def jacobian(self, X: Any) -> FloatArray:
        """Return how each column moves as each latent coordinate moves.

        The result is (n_samples, n_features_in_, n_components): numbers, counts and days in their
        units; of an ordered category, levels upwards; of a category without an order how much
        probability moves from some levels to others, which has no sign. For single levels see
        :meth:`as_numbers`.
        """
        places = self._validate_latent(X)
        J, F = super().jacobian(places), super().inverse_transform(places)
        found = [column.slopes(F[:, part], J[:, part]) for column, part in self._table]
        return np.stack(found, axis=1).astype(places.dtype)

    def slopes(self, X: Any, *, return_std: bool = False) -> Any:
        """Return how columns change around latent points, averaged over a neighbourhood.

        Units and shape are those of :meth:`jacobian`, parameters those of
        :meth:`TwoWayModel.slopes`. Standard errors of categories are NaN: those of single levels
        are not independent.
        """
        places = self._validate_latent(X)
        S, errors = super().slopes(places, return_std=True)
        F = super().inverse_transform(places)
        found = [column.slopes(F[:, part], S[:, part]) for column, part in self._table]
        slopes = np.stack(found, axis=1).astype(places.dtype)
        if not return_std:
            return slopes
        std = [
            np.full_like(slopes[:, k], np.nan)
            if isinstance(column, LevelColumn)
            else column.slopes(F[:, part], errors[:, part])
            for k, (column, part) in enumerate(self._table)
        ]
        return slopes, np.stack(std, axis=1).astype(places.dtype)

    def score_columns(self, X: Any) -> pd.DataFrame:
        """Return the negative squared reconstruction error of each column, (n_samples, columns).

        In the units of :meth:`score_samples`: 0 is perfect, and a column that the map says nothing
        about has -1, or minus its weight, in the mean. NaN where an entry is missing.
        """
        Y = self._rows_to_place(X)
        squares = ((self._return_trip(Y) - Y) / self.spread_) ** 2
        found = {column.name: -squares[:, part].sum(axis=1) for column, part in self._table}
        return pd.DataFrame(found, index=as_frame(X)[0].index)

    @answers_frames
    def intervals(self, X: Any, level: float = 0.9) -> Any:
        """Return two tables between whose values entries are expected, given the others of a row.

        Categories are missing in both; their uncertainty is in their probabilities. Parameters are
        those of :meth:`TwoWayModel.intervals`.
        """
        index = as_frame(X)[0].index
        Y = self._rows_to_fill(X)
        with single_threaded_blas():
            means, spread = self._expected_apart(Y)
        reach = self.noise_.reach(level, missing_shares(Y)).astype(Y.dtype) * spread
        return self._table.ends(means - reach, index), self._table.ends(means + reach, index)

    def explain(self, X: Any) -> Explanation:
        """Say which entries of a table are odd; ``expected`` is a table, others have its columns.

        The deviation of a category is that of the indicator of its level.
        """
        means, std, deviations = self._explained(self._rows_to_fill(X))
        return Explanation(self._table.decode(means, as_frame(X)[0].index), std, deviations)

    def _explained(self, Y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return expected features, and spreads and deviations of columns, of rows of features."""
        with single_threaded_blas():
            means, spread = self._expected_apart(Y, without_gross=True)
        picked, rows = self._table.telling_features(Y), np.arange(len(Y))[:, None]
        std = spread[rows, picked]
        deviations = ((Y - means) / spread)[rows, picked]
        has_none = [k for k, column in enumerate(self.columns_) if not column.features]
        std[:, has_none], deviations[:, has_none] = 0.0, np.nan
        return means, std, deviations

    def features(self, X: Any) -> FloatArray:
        """Return the features of a table, NaN where they are missing, as `as_numbers` has them."""
        check_is_fitted(self)
        return self._validate(X, reset=False)

    def from_features(self, F: Any, like: Any = None) -> Any:
        """Return features (n_samples, n_of_all_features) as a table: undo :meth:`features`.

        With a table ``like`` of as many rows only its gaps are filled, as :meth:`complete` does.
        """
        check_is_fitted(self)
        F = np.asarray(F, dtype=np.float64)
        if F.ndim != 2 or F.shape[1] != len(self.center_):
            raise ValueError(
                f"Expected features with {len(self.center_)} columns, as `features` returns them; "
                f"got an array of shape {F.shape}."
            )
        if like is None:
            return self._answer(F, None, False)
        frame, kind = as_frame(like)
        return kind.restored(self._table.filled(F, frame))

    def _mixed_columns(self) -> Sequence[Column]:
        return self.columns_

    def as_numbers(self) -> Scaled:
        """Return the same fitted model over features: numbers, and a column for each level.

        It takes and gives arrays, with names such as "colour = red"; numbers on a logarithmic
        scale are logarithms, dates are days since 1970.
        """
        check_is_fitted(self)
        numbers = Scaled(self.model).set_output(transform="default")
        for name in ("center_", "spread_", "model_", "notes_"):
            if name in self.__dict__:
                setattr(numbers, name, self.__dict__[name])
        numbers.feature_names_in_ = np.array(self.feature_labels(), dtype=object)
        numbers.n_features_in_ = len(self.center_)
        if (self.member_ >= 0).any():
            notes = getattr(numbers, "notes_", RowNotes())
            labels = {**notes.labels, **self._level_labels()}
            numbers.notes_ = replace(
                notes, labels=labels, orders={**notes.orders, **self._orders()}
            )
        return numbers

    def _level_labels(self) -> dict[str, Any]:
        """Return the levels of the training rows as text, "" where one is missing."""
        member = self.member_
        levels = self._table.levels_as_text(self.data_)
        return {name: np.where(member < 0, "", own[member]) for name, own in levels.items()}

    def _orders(self) -> dict[str, list[str]]:
        """Return the levels of columns whose levels have an order."""
        return {
            column.name: column.shown_levels()
            for column in self.columns_
            if isinstance(column, LevelColumn) and column.kind == "ordered"
        }

    # ---- inside ---------------------------------------------------------------------------------

    def _expected(self, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        means, deviations = super()._expected(Y)
        return self._told_by_others(Y, means), deviations

    def _expected_apart(
        self, Y: FloatArray, *, without_gross: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        means, deviations = super()._expected_apart(Y, without_gross=without_gross)
        return self._told_by_others(Y, means), deviations

    def _told_by_others(self, Y: FloatArray, means: FloatArray) -> FloatArray:
        """Return expected rows (m, D), what is missing in rows Y by other columns, too."""
        gaps = np.isnan(Y)
        some = gaps.any(axis=1)
        if not some.any():
            return means
        told = means.copy()
        mapped = np.where(gaps[some], means[some], Y[some])
        told[some] = np.where(gaps[some], self._other_columns.told(Y[some], mapped), means[some])
        return told

    @cached_property
    def _other_columns(self) -> OtherColumns:
        """What the other columns of a row tell of its gaps."""
        # Imported at first use: it takes a while.
        from twofold.mixed.other_columns import OtherColumns, most_rows

        rows = self.data_[: most_rows(len(self.spread_))]  # which are in no order
        gaps = np.isnan(rows)
        some = gaps.any(axis=1)
        mapped = rows.copy()
        if some.any():
            mapped[some] = np.where(gaps[some], super()._expected(rows[some])[0], rows[some])
        weights = self.weights_[: len(rows)]
        return OtherColumns(list(self._table), self.spread_, rows, mapped, weights)

    def _join_columns(self) -> None:
        """Tell the model inside that the features of a column are known together or not at all."""
        self.model_._join_features(self._table.groups())

    def _answer(
        self,
        F: FloatArray,
        given: tuple[pd.DataFrame, TableKind] | None,
        with_probabilities: bool,
        std: FloatArray | None = None,
    ) -> Any:
        """Return features as a table like the one that was given, else like that of the fit."""
        index, kind = None, self.table_kind_
        frame = self._table.decode(F)
        if given is not None:
            rows, kind = given
            index, made = rows.index, frame
            frame = pd.DataFrame(
                {name: made[name].set_axis(index) if name in made else rows[name] for name in rows},
                index=index,
            )
        return self._with_more(kind.restored(frame), F, index, std, with_probabilities)

    def _with_more(
        self, table: Any, F: FloatArray, index: Any, std: FloatArray | None, with_chances: bool
    ) -> Any:
        """Return a table of features F, with deviations and probabilities where asked for."""
        answer = [table]
        answer += [] if std is None else [self._table.deviations(F, std, index)]
        answer += [self._table.probabilities(F, index)] if with_chances else []
        return answer[0] if len(answer) == 1 else tuple(answer)

    # ---- files ----------------------------------------------------------------------------------

    def to_file(self) -> ModelFile:
        """Return what a file of the fitted model holds."""
        stored = super().to_file()
        for name in ("kinds", "weights"):
            given = stored.params[name]
            stored.params[name] = None if given is None else dict(given)
        return stored

    @classmethod
    def from_file(cls, stored: ModelFile, families: Families) -> Self:
        """Return the fitted model of a file that was read; see :func:`twofold.load`."""
        params = stored.params
        mixed = cls(from_template(params["model"], families), params["kinds"], params["weights"])
        inside = from_fitted_part(stored.attributes["model_"], families)
        state, sizes = cls._stored_state(stored, inside)
        columns = state["columns_"]
        if not all(isinstance(column, Column) for column in columns):
            raise ValueError("`columns_` holds something else")
        n_features = sum(len(column.features) for column in columns)
        if not inside.n_features_in_ == sizes["D"] == n_features or len(columns) != sizes["C"]:
            raise ValueError(
                f"`model_` has {inside.n_features_in_} features, `columns_` {n_features} and "
                f"`center_` {sizes['D']}"
            )
        mixed._check_parameters()
        mixed.__dict__.update(state)
        mixed._join_columns()
        return mixed

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def scaled_features(
    X: Any, kinds: Mapping[str, Any] | None = None, weights: Mapping[str, float] | None = None
) -> FloatArray:
    """Return a table as numbers (n, D) in which every column counts alike, as `Mixed` sees it.

    Examples
    --------
    >>> import pandas as pd
    >>> from twofold.mixed import scaled_features
    >>> sizes = [1.0, 2.1, 3.0, 4.2, 5.0, 6.1] * 3
    >>> table = pd.DataFrame({"size": sizes, "colour": ["red", "blue"] * 9})
    >>> scaled_features(table).shape[0]
    18
    """
    mixed = Mixed(kinds=kinds, weights=weights)
    mixed._check_parameters()
    frame, _ = as_frame(X)
    return mixed._scale(mixed._fit_columns(frame, np.ones(len(frame))))

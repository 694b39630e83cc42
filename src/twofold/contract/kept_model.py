"""What is kept of a fitted model: in a file, in a pickle, and notes about its rows.

A file holds parameters and fitted attributes and runs no code when opened. What can be derived
from them is built again by ``_wake``.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from twofold.contract.family import Family
from twofold.contract.fitted_state import COMMON, FittedState, check_state, check_totals
from twofold.contract.row_notes import RowNotes, names_in
from twofold.model_files import ModelFile, register_value_type, state_of, write_model_file

register_value_type(RowNotes)

DERIVED = (
    "_index",
    "_surface",
    "_space",
    "_map_noise",
    "_map_residuals",
    "_known_index",
    "_sampled_places",
    "_noise_variances",
    "_local_slopes",
    "_other_columns",
    "_sample_places",
)
# Parameters that are about a fit and mean nothing to a fitted model: a file keeps these values.
RUN_ONLY: dict[str, Any] = {"callbacks": (), "checkpoint": None}
# Training points whose density tells whether the domain of a file is one.
POINTS_LOOKED_AT = 64


class KeptModel(Family, BaseEstimator):
    """A model that can be written to a file and annotated."""

    n_features_in_: int

    # What a fit leaves, and so what a file may hold.
    fitted_state: ClassVar[FittedState] = COMMON

    def _wake(self) -> None:
        """Rebuild what is derived from the fitted attributes."""
        raise NotImplementedError

    def annotate(self, *, names: Any = None, labels: Any = None, image_shape: Any = None) -> Self:
        """Note what is known about the training rows; pictures show it, files keep it.

        Parameters
        ----------
        names : array-like of shape (n_samples,), default=None
            A name for each row passed to ``fit``, in place of those of a data frame's index.
        labels : array-like of shape (n_samples,), mapping of such or data frame, default=None
            Classes or numbers to colour rows by, in one column or several.
        image_shape : (height, width) or (height, width, 3), default=None
            How to draw a row as an image. What is None stays as it was.
        """
        check_is_fitted(self)
        notes, n = getattr(self, "notes_", RowNotes()), len(self.embedding_)
        self.notes_ = notes.updated(names, labels, image_shape, n, self.n_features_in_)
        return self

    def _keep_names(self, X: Any) -> None:
        """Note the names that a data frame has for the rows that were fitted, if it has any."""
        names = names_in(X)
        if names is not None:
            self.notes_ = RowNotes(names=names)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that :func:`twofold.load` opens without running code.

        It holds the names and labels of rows, too.
        """
        write_model_file(path, self.to_file())

    def to_file(self) -> ModelFile:
        """Return what a file of the fitted model holds."""
        check_is_fitted(self)
        kept = object.__new__(type(self))
        kept.__dict__ = with_own_places(self.__dict__)
        return state_of(kept, RUN_ONLY)

    @classmethod
    def from_file(cls, stored: ModelFile, families: Mapping[str, type[Any]]) -> Self:
        """Return the fitted model of a file; ``families`` are those that parts of it may have."""
        state = {**stored.attributes, **stored.arrays}
        # Before any of it reaches compiled loops, which trust their input.
        check_state(state, cls.fitted_state)
        check_totals(state)
        # A path out of a file is not one to write to.
        model = cls(**{name: RUN_ONLY.get(name, value) for name, value in stored.params.items()})
        for name, value in state.items():
            setattr(model, name, value)
        model._check_restored()
        model._wake()
        model._check_domain()
        return model

    def _check_restored(self) -> None:
        """Raise unless the parameters out of a file can be used and fit the fitted attributes."""
        self._check_parameters()
        wanted, found = self._wanted_dimensions(), self.latent_.shape[1]
        if wanted != found:
            raise ValueError(f"`latent_` has {found} column(s) for {wanted} latent dimension(s)")

    def _check_domain(self) -> None:
        """Raise unless the domain out of a file holds the training points."""
        some = self.latent_[:: max(1, len(self.latent_) // POINTS_LOOKED_AT)]
        # A point on the border may lie a rounding error outside of it.
        if not (self._density(some) >= self.domain_threshold_ * (1 - 1e-3)).all():
            raise ValueError("`domain_threshold_` leaves training points outside of the domain")

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = with_own_places(super().__getstate__())
        return {name: value for name, value in state.items() if name not in DERIVED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "latent_"):
            self._wake()


def with_own_places(state: dict[str, Any]) -> dict[str, Any]:
    """Return attributes of which none lies elsewhere.

    After a fit to a table of dask the places of the sample stand for those of all rows, and names
    and labels of rows are gone.
    """
    if "_sample_places" not in state:
        return state
    kept = {**state, "embedding_": state["_sample_places"]}
    if "notes_" in kept:
        kept["notes_"] = replace(kept["notes_"], names=None, labels={}, orders={})
    return kept

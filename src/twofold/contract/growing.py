"""Models that take new rows in without starting over, by `partial_fit`."""

from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from twofold.array_types import FloatArray, IntArray
from twofold.checks.rows import check_entries, check_missing, checked_weights, is_lazy
from twofold.contract.distinct_rows import DistinctRows, merge_duplicates
from twofold.contract.kept_model import with_own_places
from twofold.contract.model import TwoWayModel
from twofold.contract.row_notes import RowNotes, names_in
from twofold.contract.tensors import takes_tensors
from twofold.tables.dask_tables import DaskTable


class GrowingModel(TwoWayModel):
    """A two-way model to which rows can be added.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold import UNN
    >>> Y = load_iris().data
    >>> UNN(2, random_state=0).fit(Y[:100]).partial_fit(Y[100:]).embedding_.shape
    (150, 2)
    """

    def _is_growing(self) -> bool:
        """Say whether a model of these parameters takes rows in; an AttributeError says why not."""
        return True

    @available_if(lambda model: model._is_growing())  # type: ignore[untyped-decorator]
    @takes_tensors
    def partial_fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Take new rows in without starting over.

        Rows that are known add to the weight of those they equal. UKR puts new rows where they
        project to and improves all latent points for a tenth of ``max_iter``; UNN embeds them as
        its search does, and others make room where they lie on a line or a lattice; the columns of
        a `Scaled` model keep their scales. UKR with landmarks, which no longer has the earlier
        rows, places new rows, fits the landmark vectors to these and to what the earlier ones made
        of them (recursive least squares), and moves no latent point: it learns better where the
        manifold lies, but no new parts of it. ``embedding_`` grows by the new rows. On an unfitted
        model it is ``fit``, which needs a few rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            As in ``fit``.
        """
        self._check_parameters()
        if not hasattr(self, "latent_"):
            return self._begin(X, sample_weight)
        if is_lazy(X):
            X = DaskTable(X).whole()
        with self._changing():
            self.__dict__ = with_own_places(self.__dict__)
            self.__dict__.pop("_sample_places", None)
            Y = self._validate(X, reset=False)
            check_entries(Y)  # as large as `fit` allows, no larger
            self._take_in(Y, checked_weights(sample_weight, Y))
            self._forget_noise()
            names = names_in(X)
            if names is not None or "notes_" in self.__dict__:
                notes = self.__dict__.get("notes_", RowNotes())
                self.notes_ = notes.with_more_names(names, len(self.embedding_))
        return self

    def _begin(self, X: Any, sample_weight: Any) -> Self:
        """Fit to the first rows; say how to begin if they are too few."""
        try:
            return self.fit(X, sample_weight=sample_weight)
        except ValueError as error:
            least = self._wanted_dimensions() + 2
            if np.ndim(X) != 2 or len(X) >= least:
                raise
            raise ValueError(
                f"{error} The model has no rows yet, so partial_fit does a first fit: begin with "
                f"{least} rows or more, then pass others, one by one if you like."
            ) from error

    def _take_in(self, Y: FloatArray, weights: FloatArray) -> None:
        """Take in rows Y (m, D), which may equal each other and those that are there."""
        check_missing(Y, columns=False)
        known = self._index.find(Y)
        fresh = (known < 0) & (weights > 0)
        self.weights_ = self.weights_.copy()
        np.add.at(self.weights_, known[known >= 0], weights[known >= 0])
        old, outside = self.latent_, self.member_ < 0
        if fresh.any():
            added = merge_duplicates(Y[fresh], weights[fresh])
            # They are appended behind the rows that are there, in hash order.
            known[fresh] = len(self.data_) + added.member
            self._insert(added, np.flatnonzero(fresh)[added.first])
        self.member_ = np.concatenate([self.member_, known])
        self._settle()
        self._wake()
        self._bound_domain()
        placed = self.embedding_.copy()
        placed[outside] = self._moved_along(placed[outside], old)
        self.embedding_ = np.concatenate([placed, self._place(Y)])
        there = self.member_ >= 0
        self.embedding_[there] = self.latent_[self.member_[there]]

    def _insert(self, added: DistinctRows, arrival: IntArray) -> None:
        """Append new rows to ``data_`` and ``weights_``, and their latent points to ``latent_``.

        ``arrival`` (m,) says where they stand among all rows that were passed.
        """
        raise NotImplementedError

    def _settle(self) -> None:
        """Improve the latent points, or measure what they have become."""
        raise NotImplementedError

    def _moved_along(self, X: FloatArray, old: FloatArray) -> FloatArray:
        """Return where rows of weight 0 go that lie at X (m, q) while ``old`` (n, q) changes."""
        return X

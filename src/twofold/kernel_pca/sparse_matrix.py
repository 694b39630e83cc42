"""Models of a kernel matrix that is sparse: it is never filled up.

A sparse matrix is centred in words only (:mod:`~twofold.kernel_pca.spectrum`), and rows of kernel
values are placed by a sparse product. Equal rows are not merged, which changes nothing but the
order of ``latent_``: that of the matrix. What goes back is dense, as projected features have values
with all rows.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from twofold.array_types import FloatArray, IntArray
from twofold.checks.rows import check_numeric, checked_weights
from twofold.contract import TwoWayModel
from twofold.contract.fitted_state import Array, FittedState, Sizes
from twofold.features.data_kernels import rounding_of
from twofold.features.feature_map import check_symmetry
from twofold.kernel_pca.spectral_model import SpectralModel
from twofold.model_files import ModelFile

# Parts of a sparse matrix in a model file.
PARTS = {"data": "sparse_values_", "indices": "sparse_columns_", "indptr": "sparse_starts_"}


@dataclass(frozen=True)
class DenseOrSparse:
    """Rows of the model in a file, dense or sparse, none of their numbers missing."""

    is_optional: bool = False

    def check(self, value: Any, sizes: Sizes) -> None:
        """Raise unless the value is a table of finite numbers."""
        table = Array(("n", "D"))
        if sparse.issparse(value):
            value.check_format(full_check=True)  # products trust its indices
            Array(("stored",)).check(value.data, {})
            # A view without memory of its own stands for the shape.
            value = np.broadcast_to(value.dtype.type(0), value.shape)
        table.check(value, sizes)


class SparseMatrixModel(SpectralModel):
    """A spectral model that also takes a sparse kernel matrix where a dense one would do."""

    fitted_state: ClassVar[FittedState] = {**SpectralModel.fitted_state, "data_": DenseOrSparse()}

    def _fit_table(self, X: Any, sample_weight: Any) -> None:
        if not self._is_pairwise() or not sparse.issparse(X):
            super()._fit_table(X, sample_weight)
            return
        K = self._kernel_rows(X, reset=True)
        check_square(K.shape)
        weights = checked_weights(sample_weight, K)
        self.columns_: IntArray = np.flatnonzero(weights > 0)
        self.data_, self.weights_ = K[self.columns_], weights[self.columns_]
        self.member_ = np.full(len(weights), -1)
        self.member_[self.columns_] = np.arange(len(self.columns_))
        S = sparse.csr_matrix(self.data_[:, self.columns_], dtype=np.float64)
        advice = "A graph of neighbours becomes symmetric by 0.5 * (K + K.T), or by K.maximum(K.T)."
        gap, tolerance = float(abs(S - S.T).max()), rounding_of(K.data)
        check_symmetry(gap, float(abs(S).max()), tolerance, advice)
        S = sparse.csr_matrix(0.5 * (S + S.T))  # without rounding errors in its symmetry
        self.latent_ = self._fit_sparse(S, self.weights_).astype(K.dtype)
        self._wake()
        self._bound_domain()
        self._embed(K)

    @abstractmethod
    def _fit_sparse(self, K: Any, weights: FloatArray) -> FloatArray:
        """Return latent points (m, q) of a sparse kernel matrix (m, m)."""

    @abstractmethod
    def _is_pairwise(self) -> bool:
        """Say whether the rows that the model takes are kernel values."""

    def _holds_sparse(self) -> bool:
        return sparse.issparse(getattr(self, "data_", None))

    def _kernel_rows(self, X: Any, *, reset: bool) -> Any:
        """Return rows of kernel values, sparse or dense as they came; none may be missing."""
        return validate_complete(
            self,
            X,
            f"{type(self).__name__} needs all kernel values; {{}} of them are missing (NaN). "
            f"{self._advice_for_missing()}",
            reset=reset,
            accept_sparse="csr",
            ensure_min_samples=2 if reset else 1,
        )

    def _rows_to_place(self, X: Any) -> Any:
        check_is_fitted(self)
        if not self._is_pairwise():
            return super()._rows_to_place(X)
        rows = self._kernel_rows(X, reset=False).astype(self.latent_.dtype)
        if self._holds_sparse():
            return sparse.csr_matrix(rows)
        return np.ascontiguousarray(rows.toarray() if sparse.issparse(rows) else rows)

    def _place(self, Y: Any) -> FloatArray:
        if not self._holds_sparse():
            return super()._place(Y)
        return self._space.place(Y[:, self.columns_].astype(np.float64)).astype(Y.dtype)

    def _squared_errors(self, Y: Any) -> FloatArray:
        if not self._holds_sparse():
            return super()._squared_errors(Y)
        back = self._return_trip(Y)
        crossed = np.asarray(Y.multiply(back).sum(axis=1)).ravel()
        own = np.asarray(Y.multiply(Y).sum(axis=1)).ravel()
        return np.asarray(np.maximum((back * back).sum(axis=1) - 2 * crossed + own, 0))

    def complete(self, X: Any, **options: Any) -> Any:
        """Fill the missing entries (NaN) of rows; observed ones stay as they are.

        Options are those of :meth:`twofold.contract.TwoWayModel.complete`. An incomplete row has no
        kernel values. Its latent point is the one whose image is nearest
        to its observed entries, searched for from those of the nearest training rows.
        """
        if self._holds_sparse():
            raise ValueError(
                "Entries that a sparse row does not hold are 0, none is missing; `complete` is for "
                "dense rows with NaN."
            )
        return super().complete(X, **options)

    def _wake(self) -> None:
        if self._holds_sparse():
            self._restore()  # there is no index of rows: a training row is placed like any other
        else:
            super()._wake()

    def to_file(self) -> ModelFile:
        """Return what a file of the fitted model holds."""
        stored = super().to_file()
        if not self._holds_sparse():
            return stored
        attributes = {name: value for name, value in stored.attributes.items() if name != "data_"}
        parts = {name: getattr(self.data_, part) for part, name in PARTS.items()}
        return replace(stored, attributes=attributes, arrays={**stored.arrays, **parts})

    @classmethod
    def from_file(cls, stored: ModelFile, families: Mapping[str, type[TwoWayModel]]) -> Self:
        """Return the fitted model of a file; ``families`` are those that parts of it may have."""
        arrays: dict[str, Any] = dict(stored.arrays)
        if PARTS["data"] in arrays:
            values, columns, starts = (arrays.pop(name) for name in PARTS.values())
            shape = (len(starts) - 1, stored.attributes["n_features_in_"])
            arrays["data_"] = sparse.csr_matrix((values, columns, starts), shape=shape)
        return super().from_file(replace(stored, arrays=arrays), families)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_pairwise()
        return tags


def validate_complete(model: Any, X: Any, message: str, **options: Any) -> Any:
    """Return a table as floats; raise with a message about their number if entries are NaN."""
    # That comes before scikit-learn looks: what it advises is for other models.
    check_numeric(X)
    missing = 0
    try:
        values = np.asarray(X.tocoo().data if sparse.issparse(X) else X)
        values = values.astype(np.float64) if values.dtype.kind == "O" else values
        missing = int(np.isnan(values).sum()) if values.dtype.kind == "f" else 0
    except (TypeError, ValueError):  # no table of numbers, which scikit-learn tells
        pass
    if missing:
        raise ValueError(message.format(missing))
    return validate_data(model, X, dtype=[np.float64, np.float32], **options)


def check_square(shape: tuple[int, ...]) -> None:
    """Raise unless a kernel matrix has as many rows as columns."""
    if shape[0] != shape[1]:
        raise ValueError(
            "A precomputed kernel matrix must be square, rows and columns standing for the same "
            f"samples; got shape {tuple(shape)}."
        )

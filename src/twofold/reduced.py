"""A model of wide or sparse tables: few components of the rows are fitted, and rows come back.

With the mean c of the rows and their first r principal axes P (r, D), which are orthonormal,

    z = P (y - c),   f(x) = c + Pᵀ f_z(x),   df/dx = Pᵀ df_z/dx

Distances between rows are those between their z, except for what the axes leave out. A row of
weight w counts like w rows in mean and axes. Axes of a large sparse table are found by Lanczos'
method (ARPACK) with products of the sparse matrix, which is never centred itself, so that neither
the table nor a matrix of D x D is ever filled up.
"""

from typing import Any, ClassVar

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, svds
from sklearn.utils.validation import check_is_fitted, validate_data

from twofold.array_types import FloatArray
from twofold.checks.parameters import check_count
from twofold.checks.rows import MOST_DENSE, check_numeric, checked_weights
from twofold.contract import TwoWayModel
from twofold.contract.fitted_state import (
    Array,
    FittedState,
    Notes,
    Number,
    Size,
    Value,
)
from twofold.contract.left_open import LeftOpen
from twofold.noise.noise_model import NoiseModel
from twofold.rowwise import fix_signs, weighted_sums
from twofold.scaled import ScaledModel


class Reduced(ScaledModel):
    """Fit a model to the first principal components of a wide or sparse table.

    Rows, dense or ``scipy.sparse``, go in, and come out of ``inverse_transform``, ``reconstruct``,
    ``sample`` and ``jacobian`` with all their columns, as dense arrays. A sparse table is never
    filled up in a fit. Entries that a sparse table does not hold are 0; none may be missing.
    Errors, scores and p-values are those of the components.

    Parameters
    ----------
    model : TwoWayModel, default=None
        The model of the components; fitted as a clone. None means ``UKR()``.
    rank : int, default=50
        How many components; tables of fewer rows or columns have fewer.

    Attributes
    ----------
    model_ : TwoWayModel
        The fitted model of the components; its fitted attributes can be read from here, too. Its
        noise is known there.
    center_ : ndarray of shape (n_features,)
        The mean of the rows.
    components_ : ndarray of shape (rank, n_features)
        The principal axes.
    explained_ : float
        The share of the variance of the rows that the components hold.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    Examples
    --------
    >>> from scipy import sparse
    >>> from twofold import UKR, Reduced
    >>> counts = sparse.random(60, 400, density=0.02, format="csr", random_state=0)
    >>> model = Reduced(UKR(init="pca", max_iter=5), rank=10).fit(counts)
    >>> model.transform(counts[:2]).shape, model.inverse_transform([[0.0, 0.0]]).shape
    ((2, 2), (1, 400))
    """

    fitted_state: ClassVar[FittedState] = {
        "n_features_in_": Size("D"),
        "feature_names_in_": Array(("D",), "U", is_optional=True),
        "center_": Array(("D",)),
        "components_": Array(("r", "D")),
        "explained_": Number(low=0, high=1 + 1e-6),
        "model_": Value((TwoWayModel,)),
        "notes_": Notes(),
    }

    _columns_inside = "r"

    def __init__(self, model: TwoWayModel | None = None, rank: int = 50) -> None:
        self.model = model
        self.rank = rank

    def _check_parameters(self) -> None:
        check_count("rank", self.rank, 1)
        super()._check_parameters()

    def _fit_table(self, X: Any, sample_weight: Any) -> None:
        Y = self._all_columns(X, reset=True)
        weights = checked_weights(sample_weight, Y)
        counted = np.flatnonzero(weights > 0)
        found = principal_axes(Y[counted], weights[counted], self.rank)
        self.center_, self.components_, self.explained_ = found
        self._fit_inside(self._reduced(Y), weights)

    def _most_rows(self, D: int) -> int | None:
        return None  # axes are those of all rows

    def _all_columns(self, X: Any, *, reset: bool) -> Any:
        """Return a table as a sparse matrix of rows: products then round each row by itself."""
        check_numeric(X)
        Y = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
        )
        rows = sparse.csr_matrix(Y)
        if not np.isfinite(rows.data).all():
            raise ValueError(
                "Reduced needs all entries, as finite numbers, and some are NaN or infinite. Fill "
                "them first, or fit the model by itself: most take rows with gaps."
            )
        return rows

    def _reduced(self, Y: Any) -> FloatArray:
        """Return the components (n, r) of sparse rows Y (n, D)."""
        axes = np.ascontiguousarray(self.components_.T)
        return np.asarray(Y @ axes - self.center_ @ axes).astype(Y.dtype)

    def _validate(self, X: Any, *, reset: bool) -> FloatArray:
        return self._reduced(self._all_columns(X, reset=reset)).astype(self.latent_.dtype)

    def _rows_to_complete(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return self._all_columns(X, reset=False).toarray()

    def _complete_with_noise(self, *_: Any) -> Any:
        raise ValueError(f"There are no deviations and draws: {self._no_noise()}")

    def _scale(self, Y: FloatArray) -> FloatArray:
        """Return rows as they are: what was validated are components."""
        return Y

    def _unscale(self, F: FloatArray) -> FloatArray:
        return (weighted_sums(F, self.components_) + self.center_).astype(F.dtype)

    def _jacobian(self, X: FloatArray) -> FloatArray:
        J = np.moveaxis(self.model_._jacobian(X), 1, 2)
        slopes = weighted_sums(J.reshape(-1, J.shape[2]), self.components_)
        return np.moveaxis(slopes.reshape(*J.shape[:2], -1), 2, 1).astype(X.dtype)

    # ---- what is known of the components alone --------------------------------------------------

    @property
    def noise_(self) -> NoiseModel:
        """Raise: the noise is known of components."""
        raise ValueError(f"How far rows lie from the model is unknown: {self._no_noise()}")

    def _has_noise(self) -> bool:
        return False

    def _no_noise(self) -> str:
        return (
            "Reduced knows the noise of components, not of single columns: ask `model_`, such as "
            "`model.model_.noise_`, or fit the model by itself, without Reduced."
        )

    @property
    def _noise_variances(self) -> FloatArray:
        return self._stretch(self.center_)

    def _stretch(self, differences: FloatArray) -> FloatArray:
        """Raise: spreads are known of components."""
        raise ValueError(f"How far rows lie from the model is unknown: {self._no_noise()}")

    def _log_likelihood(self, Y: FloatArray) -> FloatArray:
        return self.model_._log_likelihood(Y)

    def left_open(self) -> LeftOpen:
        """Say how far rows like the training rows lie from what the model makes of them.

        ``features`` of the answer are the components.
        """
        check_is_fitted(self)
        return self.model_.left_open()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags


def principal_axes(Y: Any, weights: FloatArray, rank: int) -> tuple[FloatArray, FloatArray, float]:
    """Return the mean (D,) of sparse rows Y (n, D), their axes (r, D), and what these explain."""
    root = np.sqrt(weights / weights.sum())
    mean = np.asarray((root**2) @ Y)
    n, D = Y.shape
    rank = min(rank, n, D)
    if n * D <= MOST_DENSE:
        _, sizes, axes = linalg.svd((Y.toarray() - mean) * root[:, None], full_matrices=False)
    else:
        centred = LinearOperator(
            Y.shape,
            matvec=lambda v: root * (Y @ v.ravel() - mean @ v.ravel()),
            rmatvec=lambda u: Y.T @ (root * u.ravel()) - mean * (root @ u.ravel()),
            dtype=np.float64,
        )
        # All axes but one can be found; the start makes the result the same each time.
        start = np.ones(min(n, D))
        _, sizes, axes = svds(centred, k=min(rank, min(n, D) - 1), v0=start, solver="arpack")
        sizes, axes = sizes[::-1], axes[::-1]
    # Along further axes rows differ by rounding alone.
    n_told = int((sizes > sizes[0] * max(n, D) * np.finfo(np.float64).eps).sum())
    rank = max(1, min(rank, n_told))
    sizes, axes = sizes[:rank], axes[:rank]
    axes = fix_signs(axes.T).T
    variance = float((root**2) @ np.asarray(Y.multiply(Y).sum(axis=1)).ravel() - mean @ mean)
    explained = min(float((sizes**2).sum()) / variance, 1.0) if variance > 0 else 1.0
    return mean, np.ascontiguousarray(axes), explained

"""Coordinates of rows in feature space, in which feature-space UKR is UKR as it is.

With K (n, n) the kernel values of reference rows, ``H = I - 11ᵀ/n`` and ``HKH = U Λ Uᵀ``, the
coordinates of the references are ``Z = U Λ^½`` (n, r): ``Z Zᵀ = HKH``, so that inner products and
distances of centred features are Euclidean ones of rows of Z. Klanke 2007 puts K in the place of
``Y Yᵀ`` (eqs. 4.57-4.59); taking Z for Y gives the same values and gradients, and the start by
kernel principal components is the first columns of Z. A new row has the coordinates

    z(y) = Λ^-½ Uᵀ (k_y - mean_i K[:, i]),   k_y = (k(y, y_i))_i,

its feature lies off their span by

    outside(y) = k(y, y) - 2 mean_i k(y, y_i) + mean(K) - ||z(y)||²,

and its squared distance to the point ``Σ b_i Φ(y_i)``, ``Σ b_i = 1``, of eq. 4.64 is
``||z(y) - Σ b_i z_i||² + outside(y)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import eigh

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled
from twofold.features.data_kernels import DataKernel, Linear, rounding_of
from twofold.rowwise import blocks, fix_signs, float_rows, multiply_rows

MAX_REFERENCES = 10_000
# Shares of the largest eigenvalue: below the first a direction is noise, and a negative one
# beyond the second is no rounding error.
_KEPT = 1e-10
_NEGATIVE = 1e-6


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Coordinates in the span of the features of reference rows.

    Made by `fit`, or from the arrays of a fitted one. A row gets the same numbers, to the last
    bit, alone or among others.

    Parameters
    ----------
    kernel : DataKernel, with its parameters set
    references : (n, D) rows that span the space. For a precomputed kernel only n counts, and `fit`
        keeps no columns: shape (n, 0)
    projector : (n, r) ``U Λ^-½``, float64
    mean_row : (n,) mean kernel value of each reference with all, float64
    mean : mean of all kernel values

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.features import L1, FeatureMap
    >>> Y = np.array([[0.0, 0.0], [1.0, 2.0], [3.0, 1.0]])
    >>> Z = FeatureMap.fit(L1(), Y).coordinates
    >>> round(float(((Z[0] - Z[1]) ** 2).sum()), 6)
    3.0
    """

    kernel: DataKernel
    references: FloatArray
    projector: FloatArray
    mean_row: FloatArray
    mean: float

    @classmethod
    def fit(cls, kernel: DataKernel, references: FloatArray) -> FeatureMap:
        """Return the map of reference rows (n, D), at most 10,000; costs n³ operations.

        The kernel must be conditionally positive definite on them.
        """
        references = np.asarray(references)
        n = len(references) if references.ndim else 0
        if n > MAX_REFERENCES:
            raise ValueError(
                f"A data kernel compares all pairs: {n:,} rows need an {n:,} × {n:,} matrix of "
                f"{8e-9 * n * n:.1f} GB, several times over, and n³ operations; at most "
                f"{MAX_REFERENCES:,} rows are taken. Let fewer rows span the space by "
                "`landmarks=`, e.g. `landmarks=1000`."
            )
        kernel = kernel.fitted(references)
        K = _kernel_values(kernel, references, references)
        gap = float(np.abs(K - K.T).max())
        check_symmetry(gap, float(np.abs(K).max()), rounding_of(references))
        K = 0.5 * (K + K.T)  # without rounding errors in its symmetry
        mean_row, mean, largest = K.mean(axis=1), float(K.mean()), float(np.abs(K).max())
        # HKH entry by entry, in place: n² numbers are held once.
        K -= mean_row
        K -= mean_row[:, None] - mean
        values, U = eigh(K, overwrite_a=True, check_finite=False, driver="evd")
        kept = _choose_directions(values, np.finfo(np.float64).eps * len(K) * largest)
        if (values[kept] < np.finfo(np.float64).tiny).any():
            raise ValueError(
                f"Kernel values of the data are at most {largest:.3g}, so near 0 that dividing by "
                "them overflows; multiply the data by a number that brings them near 1."
            )
        U = U[:, kept]
        U -= U.mean(axis=0)  # small eigenvalues let the constant vector leak in
        U = fix_signs(U)
        if kernel.is_precomputed:
            references = references[:, :0]
        projector = np.ascontiguousarray(U / np.sqrt(values[kept]))
        return cls(kernel, references.copy(), projector, mean_row, mean)

    @cached_property
    def coordinates(self) -> FloatArray:
        """Coordinates of the references (n, r), the widest first; what `transform` gives them."""
        # The columns of the projector have squared lengths 1/λ.
        projector = float_rows(self.projector)
        Z = projector / (projector**2).sum(axis=0)
        return np.asarray(Z, dtype=_result_type(self.references))

    def transform(self, Y: FloatArray) -> FloatArray:
        """Return the coordinates (m, r) of rows Y (m, D), float32 for float32 rows."""
        return self._place(Y)[0].astype(_result_type(Y), copy=False)

    def outside(self, Y: FloatArray) -> FloatArray:
        """Return the squared distance (m,) of each row's feature from the references' span.

        It is NaN for a precomputed kernel, whose new rows do not say ``k(y, y)``; for precomputed
        distances it is known.
        """
        Z, means = self._place(Y)
        own = self.kernel.diagonal(Y) - 2 * means + self.mean
        return np.maximum(own - Linear().diagonal(Z), 0).astype(_result_type(Y), copy=False)

    def _place(self, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return coordinates (m, r) and mean kernel values with the references (m,), float64."""
        Y = np.asarray(Y)
        n, r = self.projector.shape
        shares, mean_row = np.full(n, 1 / n), float_rows(self.mean_row)
        Z, means = np.empty((len(Y), r)), np.empty(len(Y))
        for rows in blocks(len(Y), n):
            K = _kernel_values(self.kernel, Y[rows], self.references)
            centred, means[rows] = centre_rows(K, shares, mean_row, self.mean)
            Z[rows] = multiply_rows(centred, self.projector)
        return Z, means


def _result_type(Y: FloatArray) -> type[np.floating]:
    return np.float32 if np.asarray(Y).dtype == np.float32 else np.float64


def _kernel_values(kernel: DataKernel, Y: FloatArray, references: FloatArray) -> FloatArray:
    K = kernel.gram(Y, references)
    if not np.isfinite(K).all():
        raise ValueError(
            f"Values of the kernel {kernel} overflow for these rows. Scale the data, e.g. by "
            "StandardScaler, or lower the kernel's numbers."
        )
    return K


def check_symmetry(
    gap: float,
    largest: float,
    tolerance: float,
    advice: str = "If both are estimates of one value, pass their mean, (K + K.T) / 2.",
) -> None:
    """Raise if kernel values (i, j) and (j, i) differ by more than a share of the largest."""
    if gap > tolerance * largest:
        raise ValueError(
            "A kernel matrix must be symmetric; entries (i, j) and (j, i) differ by up to "
            f"{gap:.4g}, with values up to {largest:.4g}. {advice}"
        )


def _choose_directions(values: FloatArray, noise: float) -> IntArray:
    """Return which of the ascending eigenvalues count, the largest first."""
    lowest, largest = float(values[0]), float(values[-1])
    if lowest < -max(_NEGATIVE * largest, noise):
        hint = ""
        if largest <= max(noise, 1e-9 * -lowest):
            hint = (
                " All are negative, as those of distances are: if the matrix holds these, use "
                "data_kernel='precomputed_distance' (with the roots of city-block distances)."
            )
        raise ValueError(
            "The data kernel is not conditionally positive definite on these rows: the centred "
            f"kernel matrix has eigenvalues from {lowest:.4g} to {largest:.4g}, so no features "
            "have these inner products. Choose another kernel, or "
            f"add {-lowest:.4g} to the diagonal of a precomputed kernel matrix, or "
            f"{-2 * lowest:.4g} to the squares of all distances between different rows.{hint}"
        )
    if largest <= noise:
        raise ValueError(
            "All references have the same feature, up to rounding, so they span nothing. Pass at "
            "least two rows that differ; if they do, move the data's mean to the origin."
        )
    return np.flatnonzero(values > max(_KEPT * largest, noise))[::-1]


@compiled
def centre_rows(
    K: FloatArray, shares: FloatArray, mean_row: FloatArray, mean: float
) -> tuple[FloatArray, FloatArray]:
    """Return kernel values (m, n) of features centred at their mean, and with that mean (m,).

    The mean has the shares (n,) of the n features; ``mean_row`` (n,) and ``mean`` are their own
    kernel values with it, and its own with itself.
    """
    centred, means = np.empty(K.shape), np.empty(K.shape[0])
    for j in range(K.shape[0]):
        level = -mean
        for i in range(K.shape[1]):
            level += K[j, i] * shares[i]
        means[j] = level + mean
        for i in range(K.shape[1]):
            centred[j, i] = K[j, i] - mean_row[i] - level
    return centred, means

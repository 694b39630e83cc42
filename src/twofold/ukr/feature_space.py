"""The feature space of a data kernel, as the estimator uses it (Klanke 2007, section 4.5).

Rows become coordinates in which distances are those of feature space
(:class:`twofold.features.FeatureMap`), and UKR is trained on these as it is. The way back needs the
weights b(x) of the regression: a point of the manifold is ``f(x) = Σ_i b_i Φ(y_i)``, and its
pre-image the row whose feature is nearest. For a precomputed matrix there are no rows to go back
to; what belongs to a latent point is then its own row of that matrix, kernel values or distances.

With D columns and n rows training costs O(D n²) or, through the kernel matrix, O(n³) once and
O(r n²) then, r <= n - 1 coordinates: the linear kernel is not worth a matrix unless D > n, and then
UKR takes it by itself.
"""

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine.threads import count_threads
from twofold.features import L1, Custom, FeatureMap, Linear, Precomputed, PrecomputedDistance
from twofold.preimages import weighted_preimages
from twofold.rowwise import data_unit, weighted_sums
from twofold.ukr.surface import CarriedRows, Surface


def check_complete(Y: FloatArray, *, is_precomputed: bool) -> None:
    """Raise if rows for a data kernel have missing entries."""
    if np.isnan(Y).any() and is_precomputed:
        raise ValueError(
            f"A precomputed matrix must be complete; got NaN in {int(np.isnan(Y).sum())} places."
        )
    if np.isnan(Y).any():
        raise ValueError(
            f"A `data_kernel` compares whole rows, and {int(np.isnan(Y).any(axis=1).sum())} of "
            f"{len(Y)} have missing entries (NaN). Leave `data_kernel` out, which is the model "
            "that can use such rows, or fill them first, e.g. by `complete` of that model."
        )


def check_square(Y: FloatArray, n: int) -> None:
    """Raise unless a precomputed matrix has a column for each of the n rows passed to fit."""
    if Y.shape[1] != n:
        raise ValueError(
            "With a precomputed `data_kernel` fit takes the square matrix of all pairs of rows; "
            f"got {n} rows and {Y.shape[1]} columns."
        )


class FeatureSpace:
    """Rows in feature space: there and back.

    ``data`` (n, D) are the references, or for a precomputed kernel their rows of the matrix, of
    which ``columns`` (n,) belong to them; ``coordinates`` (n, r) is what the model carries for
    each: its own ones, or adapted ones.
    """

    def __init__(
        self,
        features: FeatureMap,
        data: FloatArray,
        coordinates: FloatArray,
        columns: IntArray | None,
        n_jobs: int | None = -1,
    ) -> None:
        self.features, self.data, self.columns = features, data, columns
        self.coordinates, self.n_jobs = coordinates, n_jobs
        # Coordinates are affine combinations of the references' own ones: weights of sum 1.
        self.mix = None
        if coordinates is not features.coordinates:
            self.mix = coordinates @ features.projector.T + 1 / len(data)

    def place(self, Y: FloatArray) -> FloatArray:
        """Return the coordinates (m, r) of rows."""
        return self.features.transform(self._own(Y))

    def outside(self, Y: FloatArray) -> FloatArray:
        """Return the squared distance (m,) of rows from the span; 0 where that is not known."""
        return np.nan_to_num(self.features.outside(self._own(Y)), nan=0.0)

    def _own(self, Y: FloatArray) -> FloatArray:
        return Y if self.columns is None else np.ascontiguousarray(Y[:, self.columns])

    def images(self, B: FloatArray) -> FloatArray:
        """Return the data (m, D) that belongs to weights B (m, n) of the references."""
        n_threads = count_threads(self.n_jobs)
        if self.mix is not None:
            B = weighted_sums(B, self.mix, n_threads)
        if self.columns is None:
            return weighted_preimages(self.features.kernel, self.data, B, self.n_jobs)
        if not isinstance(self.features.kernel, PrecomputedDistance):
            return weighted_sums(B, self.data, n_threads).astype(self.data.dtype)
        # ||Σ_i b_i Φ_i - Φ_j||² = Σ_i b_i d_ij² - ½ Σ_ik b_i b_k d_ik² for weights of sum 1.
        squares = self.data.astype(np.float64) ** 2
        own = weighted_sums(B, squares[:, self.columns], n_threads)
        to_rows = weighted_sums(B, squares, n_threads)
        to_rows -= 0.5 * np.einsum("mn,mn->m", own, B)[:, None]
        return np.sqrt(np.maximum(to_rows, 0)).astype(self.data.dtype)

    @property
    def is_averaging(self) -> bool:
        """Whether what comes back is a mean of rows, or nearly one (a median).

        A median does not move with small steps of a latent point; its derivative is taken to be
        that of the mean with the same weights.
        """
        return isinstance(self.features.kernel, Linear | L1 | Custom | Precomputed)

    def averages(self, surface: Surface) -> Surface:
        """Return the surface of weighted means of the data over the same latent points."""
        rows = surface.rows
        data = self.data if self.mix is None else (self.mix @ self.data).astype(self.data.dtype)
        carried = CarriedRows(data, rows.weights, None, data_unit(data), rows.degree)
        return Surface(surface.X, carried, surface.engine)

"""What a search for pre-images starts from, and what it hands back.

A point of feature space is ``ψ = Σ_i α_i φ(y_i)`` over m training rows with ``Σ_i α_i = 1``. Three
numbers about it come back in every method:

    <ψ, φ(y_i)> = (K α)_i,    ||ψ||² = αᵀ K α,
    ||φ(y) - ψ||² = k(y, y) - 2 Σ_i α_i k(y, y_i) + ||ψ||².

For kernel PCA with axes A (m, q) and the mean feature ``Σ_i w_i φ(y_i)``, the point with
coordinates x has ``α = a + (1 - Σ a) w`` with ``a = A x`` (Arias 2007, section 2.2; the mean is
added back). Then ``K α`` needs no product of an (m, m) and an (m, n) matrix, only ``K A``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.checks.parameters import check_count, check_positive
from twofold.engine.threads import count_threads
from twofold.features import RBF, DataKernel, Linear, Polynomial
from twofold.preimages.coordinates import CoordinateMap
from twofold.rowwise import blocks, gaussian_values, multiply_rows, row_products, weighted_sums

# Share of nonzero weights up to which loops over them take less time than matrix products.
_FEW = 0.1
_ARRAYS = ("rows", "alpha", "start", "coordinates", "row_coordinates", "gram", "products")


class Status(IntEnum):
    """How the search for one pre-image ended.

    Examples
    --------
    >>> from twofold.preimages import Status
    >>> Status(0).name
    'CONVERGED'
    """

    CONVERGED = 0
    ITERATION_LIMIT = 1  # still moving after all iterations allowed
    STALLED = 2  # no step along the gradient led down: the criterion is flat or rough to rounding
    OFF_LEVEL = 3  # the coordinates asked for were not reached
    # Too far from all rows: the kernel tells no direction, or the search strayed from the data.
    OUT_OF_REACH = 4


@dataclass(frozen=True, eq=False)
class FeaturePoints:
    """Points ``ψ = Σ_i α_i φ(y_i)`` of feature space, with what is known about them.

    Arrays of other number types become float64.

    Parameters
    ----------
    kernel : DataKernel or object
        Kernel of the rows, with its parameters set. A data-dependent kernel, which is not a
        `DataKernel`, may be any object and comes with `gram`.
    rows : ndarray of shape (m, D)
        Training rows.
    alpha : ndarray of shape (n, m)
        Coefficients; each row sums to one, and single coefficients may be negative.
    start : ndarray of shape (n, D), optional
        Where to start, e.g. the rows to be denoised.
    coordinates : ndarray of shape (n, r), optional
        Coordinates of the points on the first r principal axes.
    map : CoordinateMap, optional
        Coordinates of any row, at least r of them.
    row_coordinates : ndarray of shape (m, r), optional
        Coordinates of the training rows; those of `map` if not given.
    gram : ndarray of shape (m, m), optional
        Kernel values between the rows; computed from the kernel if not given.
    products : ndarray of shape (n, m), optional
        ``<ψ, φ(y_i)>``; ``alpha @ gram`` if not given, which costs n m² operations.
    n_jobs : int or None
        Number of threads, -1 for every core.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.features import RBF
    >>> from twofold.preimages import FeaturePoints, Gradient
    >>> rows = np.random.default_rng(0).normal(size=(20, 2))
    >>> points = FeaturePoints(RBF(1.0), rows, np.eye(20)[:3])
    >>> bool(np.allclose(Gradient().find(points).Y, rows[:3], atol=1e-3))
    True
    """

    kernel: Any
    rows: FloatArray
    alpha: FloatArray
    start: FloatArray | None = None
    coordinates: FloatArray | None = None
    map: CoordinateMap | None = None
    row_coordinates: FloatArray | None = None
    gram: FloatArray | None = None
    products: FloatArray | None = None
    n_jobs: int | None = -1

    def __post_init__(self) -> None:
        for name in _ARRAYS:  # float32 would end searches early and cut small singular values
            if getattr(self, name) is not None:
                array = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
                object.__setattr__(self, name, array)
        m, D = np.shape(self.rows)
        n = len(self.alpha)
        expected = {"alpha": (n, m), "start": (n, D), "gram": (m, m), "products": (n, m)}
        for name, shape in expected.items():
            array = getattr(self, name)
            if array is not None and np.shape(array) != shape:
                raise ValueError(f"`{name}` must have shape {shape}; got {np.shape(array)}.")
        for name, length in (("coordinates", n), ("row_coordinates", m)):
            array = getattr(self, name)
            if array is not None and (np.ndim(array) != 2 or len(array) != length):
                raise ValueError(
                    f"`{name}` must have {length} rows of coordinates; got {np.shape(array)}."
                )

    @classmethod
    def on_axes(
        cls,
        kernel: Any,
        rows: FloatArray,
        axes: FloatArray,
        coordinates: FloatArray,
        weights: FloatArray | None = None,
        **known: Any,
    ) -> FeaturePoints:
        """Return the points with coordinates x (n, q) on kernel-PCA axes of coefficients A (m, q).

        ``weights`` (m,) of the rows in the mean feature sum to one and are equal if not given;
        ``known`` are further fields: start, map, row_coordinates, gram, n_jobs.
        """
        m = len(rows)
        w = np.full(m, 1 / m) if weights is None else np.asarray(weights)
        spread = coordinates @ axes.T
        left = 1 - spread.sum(axis=1, keepdims=True)
        points = cls(kernel, rows, spread + left * w, coordinates=coordinates, **known)
        *K_axes, K_mean = points._times_gram(np.vstack([axes.T, w]))
        return replace(points, products=coordinates @ np.array(K_axes) + left * K_mean)

    @cached_property
    def inner_products(self) -> FloatArray:
        """``<ψ, φ(y_i)>`` (n, m): `products`, or computed once where these are not given."""
        return self._times_gram(self.alpha) if self.products is None else self.products

    @property
    def n_threads(self) -> int:
        """Number of threads that `n_jobs` means."""
        return count_threads(self.n_jobs)

    @cached_property
    def _gram(self) -> FloatArray | None:
        """Kernel values of the rows, where they are given or only known all at once."""
        if self.gram is None and not isinstance(self.kernel, DataKernel):
            return np.asarray(self.kernel.matrix(self.rows))
        return self.gram

    def _times_gram(self, W: FloatArray) -> FloatArray:
        """Return ``W K`` (k, m) for W (k, m), with never more than a block of K in memory."""
        if self._gram is not None:
            return _sums_of(W, self._gram, self.n_threads)
        product = np.empty(W.shape)
        for block in blocks(len(self.rows), len(self.rows)):
            K = kernel_values(self.kernel, self.rows, self.rows[block], self.n_threads)
            product[:, block] = _sums_of(W, K, self.n_threads)
        return product

    def squared_lengths(self) -> FloatArray:
        """Return ``||ψ||²`` (n,)."""
        squares = np.einsum("nm,nm->n", self.alpha, self.inner_products)
        return np.asarray(np.maximum(squares, 0))

    def distances_to_rows(self) -> FloatArray:
        """Return ``||ψ - φ(y_i)||²`` (n, m)."""
        own = self.kernel.diagonal(self.rows) if self._gram is None else np.diag(self._gram)
        # Rounding may leave a distance of nothing below zero.
        sq_dists = own - 2 * self.inner_products
        return np.maximum(sq_dists + self.squared_lengths()[:, None], 0)

    def distances_to(self, Y: FloatArray) -> FloatArray:
        """Return ``||φ(y) - ψ||²`` (n,) of one row Y (n, D) for each point.

        Where the kernel has no values off the training rows, the distance in the coordinates of
        `map` is used instead, and NaN if there is no map.
        """
        if not isinstance(self.kernel, DataKernel) or self.kernel.is_precomputed:
            if self.map is None or self.coordinates is None:
                return np.full(len(Y), np.nan)
            gaps = self.map.values(Y) - self.targets_on_map()
            return np.asarray(np.einsum("nr,nr->n", gaps, gaps))
        sq_dists = self.kernel.diagonal(Y) + self.squared_lengths()
        for block in blocks(len(Y), len(self.rows)):
            values = kernel_values(self.kernel, Y[block], self.rows, self.n_threads)
            sq_dists[block] -= 2 * np.einsum("nm,nm->n", self.alpha[block], values)
        return np.maximum(sq_dists, 0)

    def targets_on_map(self) -> FloatArray:
        """Return the coordinates of the points on all axes of `map`: zero beyond those known."""
        coordinates, coordinate_map = self.need_map("The distance in coordinates")
        targets = np.zeros((len(coordinates), coordinate_map.n_coordinates))
        targets[:, : coordinates.shape[1]] = coordinates
        return targets

    def need_map(self, who: str) -> tuple[FloatArray, CoordinateMap]:
        """Return `coordinates` and `map`; raise ValueError in the name of who needs them."""
        if self.coordinates is None or self.map is None:
            raise ValueError(
                f"{who} needs the points' coordinates and a map that gives those of any row; pass "
                "`coordinates=` and `map=`."
            )
        if self.coordinates.shape[1] > self.map.n_coordinates:
            raise ValueError(
                f"The points have {self.coordinates.shape[1]} coordinates, the map only "
                f"{self.map.n_coordinates}."
            )
        return self.coordinates, self.map

    def nearest_rows(self, number: int) -> IntArray:
        """Return the rows whose features are nearest to each point, in no order, (n, number)."""
        sq_dists = self.distances_to_rows()
        number = min(number, len(self.rows))
        return np.argpartition(sq_dists, number - 1, axis=1)[:, :number]

    def gram_among(self, chosen: IntArray) -> FloatArray:
        """Return the kernel values (n, k, k) among k chosen rows of each point."""
        if self._gram is not None:
            return self._gram[chosen[:, :, None], chosen[:, None, :]]
        return np.stack([kernel_values(self.kernel, Y, Y) for Y in self.rows[chosen]])


@dataclass(frozen=True, eq=False)
class PreImages:
    """Rows found for n points of feature space, and how the search for each went.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold import KernelPCA
    >>> model = KernelPCA(2, preimage="gradient").fit(load_iris().data)
    >>> found = model.find_preimages(model.embedding_[:3])
    >>> found.Y.shape, found.status.shape
    ((3, 4), (3,))
    """

    Y: FloatArray  # (n, D) the pre-images
    status: IntArray  # (n,) how each search ended, numbers of `Status`
    n_iter: IntArray  # (n,) evaluations spent on each; 0 for closed forms
    distance: FloatArray  # (n,) squared distance ||φ(y) - ψ||²; NaN where it is not known

    @property
    def converged(self) -> BoolArray:
        """Whether each search converged (n,)."""
        return np.asarray(self.status == Status.CONVERGED)

    @classmethod
    def in_closed_form(cls, points: FeaturePoints, Y: FloatArray) -> PreImages:
        """Return rows Y (n, D) that took no search; infinite or NaN ones did not converge."""
        bad = np.asarray(~np.isfinite(Y).all(axis=1))
        status = np.where(bad, Status.STALLED, Status.CONVERGED).astype(np.int64)
        distance = points.distances_to(np.where(bad[:, None], 0, Y))
        distance[bad] = np.nan
        return cls(Y, status, np.zeros(len(Y), dtype=np.int64), distance)


class PreImageMethod(ABC):
    """A way from points of feature space back to rows; a frozen dataclass of its parameters.

    Examples
    --------
    >>> from twofold.preimages import Learned, PreImageMethod
    >>> issubclass(Learned, PreImageMethod)
    True
    """

    name: ClassVar[str]
    needs: ClassVar[str]  # what it needs of a kernel, the end of a sentence
    suits: ClassVar[Mapping[type, str]] = {}  # the kernels it fits, and why; object for any

    @property
    def needs_rest(self) -> bool:
        """Whether the map should have coordinates beyond those of the points."""
        return False

    def fits(self, kernel: Any) -> str | None:
        """Return why the method fits that kernel, None if it does not."""
        return next((why for kind, why in self.suits.items() if isinstance(kernel, kind)), None)

    @abstractmethod
    def find(self, target: FeaturePoints) -> PreImages:
        """Return the pre-images of the points."""

    def fitted(self, rows: FloatArray, row_coordinates: FloatArray) -> PreImageMethod:
        """Return the method with its parameters set from rows (m, D) and coordinates (m, r)."""
        return self

    def check(self, kernel: Any) -> None:
        """Raise ValueError unless the method fits the kernel."""
        if self.fits(kernel) is None:
            raise ValueError(
                f"Pre-images by {self.name!r} need {self.needs}; got {kernel!r}. Methods for any "
                "kernel are 'learned' and 'linear_combination'; 'auto' picks one."
            )


class ClosedForm(PreImageMethod):
    """A method without a search."""

    def find(self, target: FeaturePoints) -> PreImages:
        """Return the pre-images of the points."""
        return PreImages.in_closed_form(target, self.rows_for(target))

    @abstractmethod
    def rows_for(self, target: FeaturePoints) -> FloatArray:
        """Return the rows (n, D) alone; their distances to the points may take longer."""


class Iterative(PreImageMethod):
    """A method that searches, until steps are below `tol` or after `max_iter` evaluations."""

    tol: float
    max_iter: int

    def __post_init__(self) -> None:
        check_positive("tol", self.tol)
        check_count("max_iter", self.max_iter)


def kernel_values(
    kernel: DataKernel, A: FloatArray, B: FloatArray, n_threads: int = 1
) -> FloatArray:
    """Return the kernel values (a, b) of rows, by matrix products where the kernel allows."""
    if isinstance(kernel, RBF):
        return gaussian_values(A, B, kernel.number(), n_threads)
    if isinstance(kernel, Linear):
        return row_products(A, B, n_threads)
    if isinstance(kernel, Polynomial):
        base = kernel.gamma * row_products(A, B, n_threads) + kernel.coef0
        return np.asarray(base ** int(kernel.degree))
    return kernel.gram(A, B)


def _sums_of(W: FloatArray, K: FloatArray, n_threads: int) -> FloatArray:
    """Return ``W K``; rows of W with few weights, as regression gives, skip all others."""
    is_few = np.count_nonzero(W, axis=1) <= _FEW * W.shape[1]
    sums = np.empty((len(W), K.shape[1]))
    sums[is_few] = multiply_rows(W[is_few], K)
    sums[~is_few] = weighted_sums(W[~is_few], K, n_threads)
    return sums

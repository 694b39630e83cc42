"""Kernels of data rows: inner products of features ``Φ(y)`` that are never written down.

====================== ================================== ===================================
name                   k(y, y')                           ||Φ(y) - Φ(y')||²
====================== ================================== ===================================
linear                 y·y'                               ||y - y'||²
poly                   (gamma y·y' + coef0)^degree        k(y,y) - 2 k(y,y') + k(y',y')
rbf                    exp(-gamma ||y - y'||²)            2 - 2 k(y,y')
laplacian              exp(-gamma ||y - y'||₁)            2 - 2 k(y,y')
l1                     ½(||y||₁ + ||y'||₁ - ||y - y'||₁)  ||y - y'||₁
tanh, sigmoid          tanh(alpha y·y' + beta)            k(y,y) - 2 k(y,y') + k(y',y')
precomputed            given                              k(y,y) - 2 k(y,y') + k(y',y')
precomputed_distance   -½ d(y,y')²                        d(y,y')²
====================== ================================== ===================================

Klanke 2007, eqs. 4.65 (l1) and 4.72 (polynomial of degree 3). Regression weights sum to one, so
only differences of features count: a conditionally positive definite kernel is enough, which is
what lets distances take the place of a kernel.

A row of a kernel matrix is the same to the last bit alone or among others (`twofold.rowwise`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self, TypeAlias

import numpy as np
from scipy import spatial

from twofold.array_types import FloatArray
from twofold.checks.parameters import check_at_least, check_count, check_positive, is_number
from twofold.compiled import compiled
from twofold.rowwise import GAP, OVERLAP, PRODUCT, SQUARED_GAP, exponentials, own_sums, pair_sums

_ROWS_FOR_SCALE = 1_000  # their pairs give the median distance to a percent or two
_ROWS_TO_TRY = 5

KernelFunction: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]


class DataKernel(ABC):
    """A kernel of data rows; kernel values are float64 whatever the rows are.

    Examples
    --------
    >>> from twofold.features import RBF, DataKernel
    >>> isinstance(RBF(), DataKernel)
    True
    """

    is_precomputed: ClassVar[bool] = False

    @abstractmethod
    def gram(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Return the kernel values of rows A (m, D) with rows B (n, D), shape (m, n)."""

    @abstractmethod
    def diagonal(self, A: FloatArray) -> FloatArray:
        """Return the kernel value of each row of A (m, D) with itself, shape (m,)."""

    def fitted(self, Y: FloatArray) -> DataKernel:
        """Return the kernel ready for training rows Y (n, D): parameters set, Y checked."""
        check_rows(Y)
        return self


class _OfSums(DataKernel):
    """A curve over a sum along the columns of two rows."""

    _sum: ClassVar[int]

    def gram(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Return the kernel values of rows A (m, D) with rows B (n, D), shape (m, n)."""
        return self._curve(pair_sums(*_check_pair(A, B), self._sum))

    def diagonal(self, A: FloatArray) -> FloatArray:
        """Return the kernel value of each row of A (m, D) with itself, shape (m,)."""
        return self._curve(own_sums(check_rows(A), self._sum)[None])[0]

    def _curve(self, sums: FloatArray) -> FloatArray:
        """Return kernel values from sums (m, n), entry by entry."""
        return sums


@dataclass(frozen=True)
class Linear(_OfSums):
    """``k(y, y') = y·y'``: feature space is data space.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.features import Linear
    >>> Linear().gram(np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]]))
    array([[5.]])
    """

    _sum: ClassVar[int] = PRODUCT


@dataclass(frozen=True)
class Polynomial(_OfSums):
    """``k(y, y') = (gamma y·y' + coef0)^degree``.

    Parameters
    ----------
    degree : int
        At least 1.
    gamma : float
        Scale of the inner products, above 0.
    coef0 : float
        Not below 0; 0 for monomials of exactly that degree, more lets lower degrees in.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.features import Polynomial
    >>> Polynomial(degree=2, coef0=1.0).gram(np.array([[1.0]]), np.array([[2.0]]))
    array([[9.]])
    """

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0

    _sum: ClassVar[int] = PRODUCT

    def __post_init__(self) -> None:
        check_count("degree", self.degree)
        check_positive("gamma", self.gamma)
        check_at_least("coef0", self.coef0)

    def _curve(self, sums: FloatArray) -> FloatArray:
        base = self.gamma * sums + self.coef0
        power = base.copy()
        with np.errstate(over="ignore"):  # who uses the values checks that they are finite
            for _ in range(self.degree - 1):  # pow may round by the place in the array
                power *= base
        return power


@dataclass(frozen=True)
class _Exponential(_OfSums):
    """``exp(-gamma s)`` of a sum s over the columns of two rows."""

    gamma: float | None = None

    _metric: ClassVar[str]

    def __post_init__(self) -> None:
        check_positive("gamma", 1.0 if self.gamma is None else self.gamma)

    def _curve(self, sums: FloatArray) -> FloatArray:
        return exponentials(sums, self.number())

    def diagonal(self, A: FloatArray) -> FloatArray:
        """Return ones."""
        return np.ones(len(check_rows(A)))

    def fitted(self, Y: FloatArray) -> Self:
        """Return the kernel with its ``gamma``, chosen from rows Y (n, D) where it is None."""
        Y = check_rows(Y)
        return self if self.gamma is not None else type(self)(_choose_gamma(Y, self._metric))

    def number(self) -> float:
        """Return ``gamma``, which must have been chosen."""
        if self.gamma is None:
            name = type(self).__name__
            raise ValueError(f"`gamma` of {name} is None; call `fitted(Y)`, which chooses it.")
        return float(self.gamma)


@dataclass(frozen=True)
class RBF(_Exponential):
    """``k(y, y') = exp(-gamma ||y - y'||²)``.

    Parameters
    ----------
    gamma : float or None
        Inverse squared width, above 0; None for one over the median squared distance of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.features import RBF
    >>> RBF(gamma=0.5).gram(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.607]])
    """

    _sum, _metric = SQUARED_GAP, "sqeuclidean"


@dataclass(frozen=True)
class Laplacian(_Exponential):
    """``k(y, y') = exp(-gamma ||y - y'||₁)``: sharper than RBF, and more robust.

    Parameters
    ----------
    gamma : float or None
        Inverse width, above 0; None for one over the median city-block distance of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.features import Laplacian
    >>> Laplacian(gamma=1.0).gram(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.368]])
    """

    _sum, _metric = GAP, "cityblock"


@dataclass(frozen=True)
class Sigmoid(_OfSums):
    """``k(y, y') = tanh(alpha y·y' + beta)`` of neural networks (Kramer 2013, section 7.3).

    It is not positive definite: squared distances in its "feature space" can be negative. With a
    small ``alpha`` it is close to linear, ``k(y,y) - 2 k(y,y') + k(y',y') ≈ alpha ||y - y'||²``.

    Parameters
    ----------
    alpha : float
        Scale of the inner products, above 0.
    beta : float
        Shift; below 0 in most uses.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.features import Sigmoid
    >>> Sigmoid(alpha=0.5, beta=0.0).gram(np.array([[1.0]]), np.array([[2.0]])).round(3)
    array([[0.762]])
    """

    alpha: float = 1e-6
    beta: float = -1e-2

    _sum: ClassVar[int] = PRODUCT

    def __post_init__(self) -> None:
        check_positive("alpha", self.alpha)
        if not is_number(self.beta) or not math.isfinite(self.beta):
            raise ValueError(f"`beta` must be a finite number; got {self.beta!r}.")

    def _curve(self, sums: FloatArray) -> FloatArray:
        return _bend(sums, self.alpha, self.beta)


@compiled
def _bend(products: FloatArray, alpha: float, beta: float) -> FloatArray:
    """Return ``tanh(alpha p + beta)`` of products (m, n), written over them."""
    for j in range(products.shape[0]):  # numpy's tanh may round by the place in the whole array
        for i in range(products.shape[1]):
            products[j, i] = math.tanh(alpha * products[j, i] + beta)
    return products


@dataclass(frozen=True)
class L1(_OfSums):
    """``k(y, y') = ½(||y||₁ + ||y'||₁ - ||y - y'||₁)``: single outlying entries weigh less.

    By columns it is how far the segments from 0 to y and from 0 to y' overlap.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.features import L1
    >>> L1().gram(np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]]))
    array([[2.]])
    """

    _sum: ClassVar[int] = OVERLAP


@dataclass(frozen=True)
class Precomputed(DataKernel):
    """Rows *are* kernel values with the n training rows: (n, n) in training, (m, n) after.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold import UKR
    >>> from twofold.features import Precomputed
    >>> Y = np.random.default_rng(0).normal(size=(30, 3))
    >>> UKR(data_kernel=Precomputed(), init="pca", max_iter=3).fit(Y @ Y.T).embedding_.shape
    (30, 2)
    """

    is_precomputed: ClassVar[bool] = True

    def gram(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Return the values A (m, n); of the n references B only their number is looked at."""
        return _check_values(A, len(B), "kernel values")

    def diagonal(self, A: FloatArray) -> FloatArray:
        """Return NaN: the value of a new row with itself is not among those with old ones."""
        return np.full(len(check_rows(A)), np.nan)

    def fitted(self, Y: FloatArray) -> Precomputed:
        """Return the kernel; Y must be a square matrix."""
        _check_values(Y, len(Y), "kernel values")
        return self


@dataclass(frozen=True)
class PrecomputedDistance(DataKernel):
    """Rows *are* distances d to the n training rows; ``k = -½ d²``.

    They must be distances of points in a Euclidean space; square roots of L1 distances are, too.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.spatial.distance import cdist
    >>> from twofold import UKR
    >>> from twofold.features import PrecomputedDistance
    >>> Y = np.random.default_rng(0).normal(size=(30, 3))
    >>> model = UKR(data_kernel=PrecomputedDistance(), init="pca", max_iter=3)
    >>> model.fit(cdist(Y, Y)).embedding_.shape
    (30, 2)
    """

    is_precomputed: ClassVar[bool] = True

    def gram(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Return ``-½ d²`` of distances A (m, n); of B only the number of rows is looked at."""
        D = _check_values(A, len(B), "distances")
        if D.size and D.min() < 0:
            raise ValueError(f"Distances must not be negative; got {D.min():.4g}.")
        return -0.5 * D * D

    def diagonal(self, A: FloatArray) -> FloatArray:
        """Return zeros: a row has no distance to itself."""
        return np.zeros(len(check_rows(A)))

    def fitted(self, Y: FloatArray) -> PrecomputedDistance:
        """Return the kernel; Y must be square with zeros on its diagonal."""
        D = _check_values(Y, len(Y), "distances")
        largest = np.abs(np.diag(D)).max()
        if largest > rounding_of(Y) * np.abs(D).max():
            raise ValueError(
                f"The diagonal of a distance matrix must be zero; got up to {largest:.4g}. "
                "For a matrix of similarities use 'precomputed'."
            )
        return self


@dataclass(frozen=True)
class Custom(DataKernel):
    """A kernel of your own.

    Parameters
    ----------
    function : callable
        ``function(A, B)`` returns the (a, b) kernel values of rows A (a, D) with rows B (b, D).
        It is called with one row A at a time, so that no row depends on those beside it.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.features import Custom
    >>> Custom(lambda A, B: A @ B.T + 1).gram(np.array([[2.0]]), np.array([[3.0]]))
    array([[7.]])
    """

    function: KernelFunction

    def gram(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Return the function's values of every pair."""
        A, B = _check_pair(A, B)
        K = np.empty((len(A), len(B)))
        for j in range(len(A)):
            K[j] = _call(self.function, A[j : j + 1], B)[0]
        return K

    def diagonal(self, A: FloatArray) -> FloatArray:
        """Return the function's value of each row with itself."""
        rows = check_rows(A)[:, None]
        return np.array([_call(self.function, row, row)[0, 0] for row in rows], dtype=float)

    def fitted(self, Y: FloatArray) -> Custom:
        """Return the kernel, tried out on a few rows of Y (n, D)."""
        rows = check_rows(Y)[:_ROWS_TO_TRY]
        _call(self.function, rows, rows[:2])  # the two counts differ: a transposed result shows
        K = _call(self.function, rows, rows)
        gap = np.abs(K - K.T).max()
        if gap > rounding_of(Y) * np.abs(K).max():
            raise ValueError(
                f"The data kernel must be symmetric; k(a, b) and k(b, a) differ by {gap:.4g}."
            )
        return self


KERNELS: dict[str, type[DataKernel]] = {
    "linear": Linear,
    "poly": Polynomial,
    "rbf": RBF,
    "laplacian": Laplacian,
    "l1": L1,
    "tanh": Sigmoid,
    "sigmoid": Sigmoid,
    "precomputed": Precomputed,
    "precomputed_distance": PrecomputedDistance,
}


def get_data_kernel(spec: str | DataKernel | KernelFunction) -> DataKernel:
    """Return the kernel of that name, the kernel itself, or a callable as a kernel.

    Raises ValueError for an unknown name and TypeError for anything else.

    Examples
    --------
    >>> from twofold.features import get_data_kernel
    >>> get_data_kernel("poly")
    Polynomial(degree=3, gamma=1.0, coef0=0.0)
    """
    expected = (
        f"`data_kernel` must be one of {sorted(KERNELS)}, a kernel such as RBF(gamma=0.5), or a "
        "callable k(A, B) that returns a (len(A), len(B)) array"
    )
    if isinstance(spec, str) and spec not in KERNELS:
        raise ValueError(f"{expected}; got {spec!r}.")
    if isinstance(spec, (str, DataKernel)):
        return KERNELS[spec]() if isinstance(spec, str) else spec
    if isinstance(spec, type) or not callable(spec):
        raise TypeError(f"{expected}; got {spec!r}.")
    return Custom(spec)


def rounding_of(Y: FloatArray) -> float:
    """Return the relative difference that the number type of Y lets pass as rounding."""
    dtype = np.asarray(Y).dtype
    return float(np.sqrt(np.finfo(dtype if dtype == np.float32 else np.float64).eps))


def check_rows(Y: FloatArray) -> FloatArray:
    """Return Y as (n, D) float64 rows in C order; raise for another shape, NaN or infinity."""
    rows = np.ascontiguousarray(Y, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"Expected rows of shape (n, D); got shape {np.shape(Y)}.")
    bad = ~np.isfinite(rows)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"A data kernel needs complete rows; {bad.sum()} entries are NaN or infinite, first "
            f"row {row}, column {column}. Fill them in, or use no data kernel."
        )
    return rows


def _check_pair(A: FloatArray, B: FloatArray) -> tuple[FloatArray, FloatArray]:
    A, B = check_rows(A), check_rows(B)
    if A.shape[1] != B.shape[1]:
        raise ValueError(f"Expected rows with {B.shape[1]} features; got {A.shape[1]}.")
    return A, B


def _check_values(A: FloatArray, n: int, name: str) -> FloatArray:
    A = check_rows(A)
    if A.shape[1] != n:
        raise ValueError(
            f"A precomputed matrix must be square in training, and every row must hold its {name} "
            f"with the {n} training rows; got shape {A.shape}."
        )
    return A


def _call(function: KernelFunction, A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the values of a user's kernel; say what is wrong with them."""
    shape = len(A), len(B)
    expected = (
        f"The data kernel k(A, B) must return shape {shape} for {shape[0]} and {shape[1]} rows"
    )
    try:
        K = np.asarray(function(A, B), dtype=np.float64)
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(f"{expected}; calling it raised: {error}") from error
    if K.shape != shape:
        raise ValueError(f"{expected}; got shape {K.shape}.")
    if not np.isfinite(K).all():
        raise ValueError("The data kernel returned NaN or infinite values; they must be finite.")
    return K


def _choose_gamma(Y: FloatArray, metric: str) -> float:
    """Return one over the median distance between different rows of a fixed draw."""
    if len(Y) > _ROWS_FOR_SCALE:
        Y = Y[np.random.default_rng(0).choice(len(Y), _ROWS_FOR_SCALE, replace=False)]
    dists = spatial.distance.pdist(Y, metric)
    dists = dists[dists > 0]
    # Without two different rows every width is as good, and the feature map says what is wrong.
    return float(1 / np.median(dists)) if len(dists) else 1.0

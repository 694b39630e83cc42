"""How well ridge regression predicts what it did not see, and the scale and ridge that do it best.

The regression of :mod:`~twofold.preimages.coordinates` with a bias has, for targets T (m, p),

    M = H + ridge I,   N = M⁻¹,   D = N - N 1 1ᵀ N / (1ᵀ N 1),   coefficients D T,

and the residual of row i when it is left out needs no second fit: ``R_ij = (D T)_ij / D_ii``. The
weights of the others in that prediction are ``-D_ij / D_ii``. Three criteria follow.

=============  =====================================  =======================================
name           targets                                value
=============  =====================================  =======================================
coordinates    kernel-PCA coordinates X (m, q)        Σ R_ij² / Σ (X_ij - mean_j)²
press          the kernel matrix K (m, m)             Σ_{i≠j} R_ij² / (m (m - 1))
rk_press       K, predicted from the kernel that is   mean over i of the mean over j ≠ i of
               computed anew without row i            (K_ji - Σ_l -D_il / D_ii K⁽ⁱ⁾_lj)²
=============  =====================================  =======================================

The entry (i, i) is left out of ``press`` as it is unknown when row i is. Including it makes the
value large and nearly flat where kernels decay fast, which is what published maps of it show.

Gradients by the adjoint, with ``dD = -D dM D``: if the value changes by ``<G, dD>``, then

    dvalue = <Q, dM>,   Q = -D G D,   dM/ds = (E ∘ H) / s³,   dM/dridge = I,

E the squared distances. For squared residuals ``G = U Tᵀ - diag(Σ_j U_ij R_ij)`` with
``U_ij = dvalue/dR_ij / D_ii``. The cost is that of a few products of m x m matrices.

Arias 2007, eqs. 3.30-3.37 and appendix C; its eq. C.15 is misprinted. "coordinates" is not in
there: the kernel columns of diffusion maps are rough even on smooth manifolds and ask for a scale
hardly wider than the kernel's, while the coordinates that are wanted ask for about twice it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import linalg, optimize

from twofold.array_types import FloatArray
from twofold.preimages.coordinates import factor_ridge

# A data-dependent kernel: rows (m, D) to their kernel matrix (m, m).
MatrixOf: TypeAlias = Callable[[FloatArray], FloatArray]

# Kernel matrices without one row that are kept from one evaluation to the next: 256 MB.
_VALUES_KEPT = 32_000_000
# Starts and bounds of the scale, in mean distances to the tenth neighbour.
_SCALE_STARTS = (0.5, 1.0, 2.0, 4.0)
_SCALE_BOUNDS = (0.1, 100.0)
_RIDGE_STARTS = (1e-4, 1e-1)
# Descents from this many starts of lowest error. The best end came from one of the first three in
# all of 27 cases tried: images, curves and surfaces, every criterion.
_STARTS_KEPT = 4
# Below, rounding spoils the inverse at wide scales; above, all is nearly the mean.
_RIDGE_BOUNDS = (1e-7, 10.0)
_MAX_ITER = 50
# Logarithm of the error where the regression cannot be solved; the smallest error that counts.
_NO_SOLUTION, _NO_ERROR = 700.0, 1e-300


@dataclass(frozen=True, eq=False)
class Criterion(ABC):
    """A leave-one-out error as a function of scale and ridge."""

    sq_dists: FloatArray  # squared distances between the rows (m, m)

    @abstractmethod
    def value_and_gradient(self, scale: float, ridge: float) -> tuple[float, FloatArray]:
        """Return the error and its derivatives by the scale and by the ridge."""


@dataclass(frozen=True, eq=False)
class CoordinatePress(Criterion):
    """Squared leave-one-out error of coordinates X (m, q), relative to their variance."""

    X: FloatArray

    def value_and_gradient(self, scale: float, ridge: float) -> tuple[float, FloatArray]:
        """Return the error of the coordinates."""
        # Centred coordinates have the same residuals and lose fewer digits.
        ones = np.ones(len(self.X))  # sums by products: their rounding is in reported figures
        centred = self.X - ones @ self.X / len(ones)
        share = np.asarray(1 / (ones @ (centred**2).sum(axis=1)))
        return _squares(self.sq_dists, centred, share, scale, ridge)


@dataclass(frozen=True, eq=False)
class KernelPress(Criterion):
    """Mean squared leave-one-out error of the entries of a kernel matrix K (m, m)."""

    K: FloatArray
    include_diagonal: bool = False  # counts the entries (i, i), too, as published maps do

    def value_and_gradient(self, scale: float, ridge: float) -> tuple[float, FloatArray]:
        """Return the error of the entries."""
        m = len(self.K)
        share = np.full((m, m), 1 / (m * (m - 1)))
        if not self.include_diagonal:
            np.fill_diagonal(share, 0)
        return _squares(self.sq_dists, self.K, share, scale, ridge)


@dataclass(frozen=True, eq=False)
class RebuiltKernelPress(Criterion):
    """The same for rows Y (m, D), each predicted from a kernel matrix computed without it."""

    Y: FloatArray
    matrix_of: MatrixOf
    _kept: list[FloatArray] = field(default_factory=list, repr=False)

    def value_and_gradient(self, scale: float, ridge: float) -> tuple[float, FloatArray]:
        """Return the error of the entries."""
        m = len(self.Y)
        K = np.asarray(self.matrix_of(self.Y))
        H = _gaussians(self.sq_dists, scale)
        D = ridge_inverse(H, ridge)
        own = np.diag(D)
        value, G = 0.0, np.zeros((m, m))
        for i, rebuilt in enumerate(self._without_each()):
            others = np.arange(m) != i
            gap = K[others, i] - rebuilt @ (-D[i, others] / own[i])
            value += gap @ gap
            pull = -2 * rebuilt @ gap  # by the weights -D_ij / D_ii
            G[i, others] = -pull / own[i]
            G[i, i] = pull @ D[i, others] / own[i] ** 2
        count = m * (m - 1)
        return value / count, _by_scale_and_ridge(D, G / count, self.sq_dists, H, scale)

    def _without_each(self) -> Iterator[FloatArray]:
        if self._kept:
            yield from self._kept
            return
        built = []
        for i in range(len(self.Y)):
            rebuilt = np.asarray(self.matrix_of(np.delete(self.Y, i, axis=0)))
            if len(self.Y) ** 3 <= _VALUES_KEPT:
                built.append(rebuilt)
            yield rebuilt
        self._kept.extend(built)  # only once all are there


class Choice(NamedTuple):
    """Scale and ridge with the error that chose them."""

    scale: float
    ridge: float
    value: float


def choose(
    criterion: Criterion,
    unit: float,
    scale: float | None = None,
    ridge: float | None = None,
    first_scales: tuple[float, ...] | None = None,
) -> Choice:
    """Return the scale and the ridge of lowest error; a number that is given stays."""
    # The error has several minima: L-BFGS descends from the lowest of several starts, in
    # logarithms. Starts and bounds of the scale are multiples of `unit`, the mean distance to the
    # tenth neighbour, unless it is known nearly: then a search starts at `first_scales`.
    if first_scales is None:
        first_scales = tuple(unit * factor for factor in _SCALE_STARTS)
    scales = list(first_scales) if scale is None else [scale]
    ridges = [ridge] if ridge is not None else list(_RIDGE_STARTS)
    bounds = [
        np.log(np.array(_SCALE_BOUNDS) * unit) if scale is None else [np.log(scales[0])] * 2,
        np.log(_RIDGE_BOUNDS) if ridge is None else [np.log(ridges[0])] * 2,
    ]

    def error(logs: FloatArray) -> tuple[float, FloatArray]:
        try:
            value, gradient = criterion.value_and_gradient(*np.exp(logs))
        except ValueError:  # too wide a scale for so small a ridge: the line search turns back
            return _NO_SOLUTION, np.zeros(2)
        # The logarithm, since errors differ by orders of magnitude from start to start.
        value = max(value, _NO_ERROR)
        return float(np.log(value)), gradient * np.exp(logs) / value

    if scale is not None and ridge is not None:
        return Choice(scale, ridge, criterion.value_and_gradient(scale, ridge)[0])
    starts = [np.log(numbers) for numbers in product(scales, ridges)]
    starts = sorted(starts, key=lambda start: error(start)[0])[:_STARTS_KEPT]
    settings = {"jac": True, "method": "L-BFGS-B", "options": {"maxiter": _MAX_ITER}}
    ends = [optimize.minimize(error, start, bounds=bounds, **settings) for start in starts]
    best = min(ends, key=lambda end: float(end.fun))
    if best.fun == _NO_SOLUTION:
        criterion.value_and_gradient(scales[0], ridges[0])  # says what is wrong
    found_scale, found_ridge = (float(number) for number in np.exp(best.x))
    # Back through logarithms a given number would come out a rounding away.
    return Choice(
        found_scale if scale is None else scale,
        found_ridge if ridge is None else ridge,
        float(np.exp(best.fun)),
    )


def ridge_inverse(H: FloatArray, ridge: float) -> FloatArray:
    """Return D (m, m), which takes targets to the coefficients of their regression."""
    L, _ = factor_ridge(H, ridge)
    N = np.tril(linalg.lapack.dpotri(L, lower=1)[0])  # a third of the time that solving takes
    N += np.tril(N, -1).T
    sums = N.sum(axis=1)
    N -= np.outer(sums, sums / sums.sum())
    return np.asarray(N)


def left_out_residuals(D: FloatArray, T: FloatArray) -> FloatArray:
    """Return what is missing to targets T (m, p) in the predictions without the row itself."""
    return np.asarray((D @ T) / np.diag(D)[:, None])


def _gaussians(sq_dists: FloatArray, scale: float) -> FloatArray:
    return np.asarray(np.exp(sq_dists / (-2 * scale**2)))


def _squares(
    sq_dists: FloatArray, T: FloatArray, share: FloatArray, scale: float, ridge: float
) -> tuple[float, FloatArray]:
    """Return ``Σ share_ij R_ij²`` and its derivatives by the scale and by the ridge."""
    H = _gaussians(sq_dists, scale)
    D = ridge_inverse(H, ridge)
    R = left_out_residuals(D, T)
    U = R * (2 * share / np.diag(D)[:, None])
    G = U @ T.T
    by_own = np.einsum("ij,ij->i", U, R)
    G.flat[:: len(G) + 1] -= by_own
    value = float(by_own @ np.diag(D)) / 2
    return value, _by_scale_and_ridge(D, G, sq_dists, H, scale)


def _by_scale_and_ridge(
    D: FloatArray, G: FloatArray, sq_dists: FloatArray, H: FloatArray, scale: float
) -> FloatArray:
    """Return the derivatives of a value that changes by ``<G, dD>``."""
    Q = -D @ G @ D
    # One by one: the third power of a small scale is zero, that of a large one infinite.
    return np.array([(Q * sq_dists * H).sum() / scale / scale / scale, np.trace(Q)])

"""Pre-images without a search, one class a method.

**Exact**: kernels whose nearest row is known. For l1, ``||φ(y) - φ(y')||² = ||y - y'||₁``, the
distance to ψ is ``Σ_i α_i ||y - y_i||₁`` up to a constant, so the weighted median of every column
is the exact minimum; for linear the weighted mean is, ``y = Σ_i α_i y_i``.

**Direct**: one step of the fixed point, with kernel values of ψ for those of its pre-image. At an
exact pre-image y of a Gaussian kernel's ψ, ``k(y, y_i)`` is known without y:

    "products" (Arias, Randall and Sapiro 2007, eq. 4.14):   k_i = <ψ, φ(y_i)>
    "distances" (Dambreville and others 2006, eq. 4.12):     k_i = ½ (2 - ||ψ - φ(y_i)||²)
                                                                 = ½ (1 - ||ψ||²) + <ψ, φ(y_i)>

and ``y = Σ_i α_i k_i y_i / Σ_i α_i k_i``. As ``Σ α_i = 1`` the denominators are ``||ψ||²`` and
``½ (1 + ||ψ||²)``, never zero. If ψ is scaled to length one first, as features of a Gaussian kernel
have, "distances" becomes "products", which does not depend on the length of ψ.

**PolynomialClosedForm** (Arias 2007, eq. D.10): both stationarity conditions become the same
formula with ``k(y, y_i) = <ψ, φ(y_i)> = k_i`` and ``k(y, y) = ||ψ||²``:

    y = Σ_i α_i k_i^(1 - 1/p) y_i / ||ψ||^(2 - 2/p)

It is exact for ``ψ = φ(y_i)``. The power is that of ``g'``, which is never negative for an odd
degree p, so ``|k_i|`` is meant there. For an even one the sign of the base is lost and taken as
positive; kernel values below zero, which no row has, count as zero.

**Localise** (Kwok and Tsang 2004): the row at given distances from the nearest rows. Kernel values
say how far the pre-image y should lie from a training row:

    Gaussian:    ||y - y_i||² = -log(k_i) / gamma,          k_i = <ψ, φ(y_i)>
    g(y·y'):     y·y_i = g⁻¹(k_i)

With the n nearest rows of feature space, from their mean ȳ the rows of Yc (n, D), ``G = Yc Ycᵀ``
and ``d0² = diag(G)``, the place is

    y = ȳ - ½ Ycᵀ G⁺ (d² - d0²),

exact where the distances are those of a row in the span (Arias 2007, section 4.1.3, with the sign
of eq. 4.21 corrected). Constants in d² drop out, as G⁺ 1 = 0, so inner products serve in their
place: ``-½ (d² - d0²)`` becomes ``y·y_i - y_i·ȳ``. It needs more rows than columns to be
determined; with fewer it goes the shortest way from ȳ, and has long tails of errors.

**LinearCombination** (Arias 2007, eqs. 4.32-4.34): the affine combination of rows whose combined
features are nearest to ψ. Among the n rows η of nearest features, with weights that sum to one,

    min_β ||ψ - Σ_i β_i φ(y_η(i))||²,    y = Σ_i β_i y_η(i).

From the mean of the neighbours, ``β = 1/n + γ`` with ``Σ γ = 0``, it is

    γ = (H K_ηη H)⁺ H (k - K_ηη 1/n),    H = I - 1 1ᵀ/n,    k_i = <ψ, φ(y_η(i))>.

Only kernel values between training rows are needed, so it takes any kernel, and none depends on a
level added to it. Weights may be negative: a point far from its neighbours is led far away. A
kernel of distances along a graph is not positive: lengths in feature space below the size of its
most negative eigenvalue mean nothing. Directions shorter than that are left out, and as much is
added to the others. Where the kernel is positive it is zero, and nothing changes.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import check_choice, check_count
from twofold.features import L1, RBF, Linear, Polynomial
from twofold.preimages.medians import SortedColumns
from twofold.preimages.points import ClosedForm, FeaturePoints
from twofold.rowwise import blocks, weighted_sums

# With few components the kernel values of ψ can be negative or above one: no distance has these.
_SMALLEST_VALUE = 1e-12
# Eigenvalues below this share of the largest are rounding: of products of rows, and of features.
_KEPT_ROWS, _KEPT_FEATURES = 1e-12, 1e-10


@dataclass(frozen=True)
class Exact(ClosedForm):
    """Exact minimum of the distance: weighted means (linear) or medians (l1).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold import KernelPCA
    >>> from twofold.preimages import Exact
    >>> model = KernelPCA(2, kernel="linear", preimage=Exact()).fit(load_iris().data)
    >>> model.inverse_transform(model.embedding_[:2]).shape
    (2, 4)
    """

    name = "exact"
    needs = "a linear or l1 kernel"
    suits: ClassVar = {
        Linear: "linear kernel, whose features are the rows: their weighted mean",
        L1: "l1 kernel: the weighted median of every column",
    }

    def rows_for(self, target: FeaturePoints) -> FloatArray:
        """Return weighted means or medians."""
        self.check(target.kernel)
        if isinstance(target.kernel, Linear):
            return weighted_sums(target.alpha, target.rows, target.n_threads)
        return SortedColumns(target.rows).medians(target.alpha, target.n_threads)


@dataclass(frozen=True)
class Direct(ClosedForm):
    """Closed form for the Gaussian kernel, good where ψ nearly has a pre-image.

    Parameters
    ----------
    values : {"products", "distances"}
        How kernel values of the pre-image are guessed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold import KernelPCA
    >>> from twofold.preimages import Direct
    >>> model = KernelPCA(2, kernel="rbf", preimage=Direct()).fit(load_iris().data)
    >>> model.inverse_transform(model.embedding_[:2]).shape
    (2, 4)
    """

    values: Literal["products", "distances"] = "products"

    name = "direct"
    needs = "a Gaussian ('rbf') kernel"
    suits: ClassVar = {RBF: "Gaussian kernel, one weighted mean of rows"}

    def __post_init__(self) -> None:
        check_choice("values", self.values, ("products", "distances"))

    def rows_for(self, target: FeaturePoints) -> FloatArray:
        """Return weighted means with guessed kernel values."""
        self.check(target.kernel)
        W = target.alpha * target.inner_products
        if self.values == "distances":
            W += 0.5 * (1 - target.squared_lengths()[:, None]) * target.alpha
        total = np.maximum(W.sum(axis=1, keepdims=True), 1e-300)
        return np.asarray(weighted_sums(W, target.rows) / total)


@dataclass(frozen=True)
class PolynomialClosedForm(ClosedForm):
    """Closed form for polynomial kernels, good where ψ nearly has a pre-image.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold import KernelPCA
    >>> from twofold.preimages import PolynomialClosedForm
    >>> model = KernelPCA(2, kernel="poly", preimage=PolynomialClosedForm()).fit(load_iris().data)
    >>> model.inverse_transform(model.embedding_[:2]).shape
    (2, 4)
    """

    name = "polynomial_closed_form"
    needs = "a polynomial ('poly') kernel"
    suits: ClassVar = {Polynomial: "polynomial kernel, one sum of rows"}

    def rows_for(self, target: FeaturePoints) -> FloatArray:
        """Return weighted sums with guessed kernel values."""
        self.check(target.kernel)
        products, degree = target.inner_products, int(target.kernel.degree)
        power = 1 - 1 / degree  # that of g' for g = (...)^degree, as a power of g itself
        sizes = np.abs(products) if degree % 2 else np.maximum(products, 0)
        lengths = np.maximum(target.squared_lengths(), 1e-300)
        Y = weighted_sums(target.alpha * sizes**power, target.rows) / lengths[:, None] ** power
        return np.asarray(Y)


@dataclass(frozen=True)
class _FromNearestRows(ClosedForm):
    """A method that needs the rows of nearest features, and their kernel values with ψ, only."""

    n_neighbors: int = 10

    _fewest: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_count("n_neighbors", self.n_neighbors, self._fewest)

    def rows_for(self, target: FeaturePoints) -> FloatArray:
        """Return what the nearest rows tell."""
        self.check(target.kernel)
        chosen = target.nearest_rows(self.n_neighbors)
        values = np.take_along_axis(target.inner_products, chosen, axis=1)
        number = chosen.shape[1]
        Y = np.empty((len(chosen), target.rows.shape[1]))
        for block in blocks(len(Y), number * (number + Y.shape[1])):
            Y[block] = self._place(target, chosen[block], values[block])
        return Y

    @abstractmethod
    def _place(self, target: FeaturePoints, chosen: IntArray, values: FloatArray) -> FloatArray:
        """Return rows (n, D) from chosen rows (n, k) and the values (n, k) of ψ with them."""


@dataclass(frozen=True)
class Localise(_FromNearestRows):
    """Find a place among the nearest rows, by distances or inner products to them.

    Parameters
    ----------
    n_neighbors : int
        Number of nearest rows in feature space, at least 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold import KernelPCA
    >>> from twofold.preimages import Localise
    >>> model = KernelPCA(2, kernel="rbf", preimage=Localise()).fit(load_iris().data)
    >>> model.inverse_transform(model.embedding_[:2]).shape
    (2, 4)
    """

    name = "localise"
    needs = "a linear, Gaussian ('rbf') or polynomial ('poly') kernel"
    suits: ClassVar = {
        RBF: "Gaussian kernel, whose values tell distances",
        Linear: "kernel of inner products, whose values tell these",
        Polynomial: "kernel of inner products, whose values tell these",
    }
    _fewest: ClassVar[int] = 2

    def _place(self, target: FeaturePoints, chosen: IntArray, values: FloatArray) -> FloatArray:
        near = target.rows[chosen]
        mean = near.mean(axis=1)
        centred = near - mean[:, None]
        G = centred @ centred.swapaxes(1, 2)
        if isinstance(target.kernel, RBF):
            sq_dists = -np.log(np.clip(values, _SMALLEST_VALUE, 1)) / target.kernel.number()
            right = -0.5 * (sq_dists - np.einsum("nkk->nk", G))
        else:
            right = _inner_products(target.kernel, values) - np.einsum("nkd,nd->nk", near, mean)
        shares = np.linalg.pinv(G, rcond=_KEPT_ROWS, hermitian=True) @ right[:, :, None]
        return np.asarray(mean + np.einsum("nkd,nk->nd", centred, shares[:, :, 0]))


def _inner_products(kernel: Linear | Polynomial, values: FloatArray) -> FloatArray:
    """Return ``y·y_i`` from kernel values; of an even power the root is taken as positive."""
    if isinstance(kernel, Linear):
        return values
    degree = int(kernel.degree)
    if degree % 2 == 0:
        values = np.maximum(values, 0)
    roots = np.sign(values) * np.abs(values) ** (1 / degree)
    return np.asarray((roots - kernel.coef0) / kernel.gamma)


@dataclass(frozen=True)
class LinearCombination(_FromNearestRows):
    """Best affine combination of the nearest features, applied to their rows.

    Parameters
    ----------
    n_neighbors : int
        Number of nearest rows in feature space.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold import KernelPCA
    >>> from twofold.preimages import LinearCombination
    >>> way_back = LinearCombination(n_neighbors=5)
    >>> model = KernelPCA(2, kernel="rbf", preimage=way_back).fit(load_iris().data)
    >>> model.inverse_transform(model.embedding_[:2]).shape
    (2, 4)
    """

    name = "linear_combination"
    needs = "kernel values between training rows"
    suits: ClassVar = {
        object: "only kernel values between training rows are needed, which every kernel has"
    }

    def _place(self, target: FeaturePoints, chosen: IntArray, values: FloatArray) -> FloatArray:
        weights = _affine_weights(target.gram_among(chosen), values)
        return np.einsum("nk,nkd->nd", weights, target.rows[chosen])


def _affine_weights(K: FloatArray, k: FloatArray) -> FloatArray:
    """Return weights (n, k) of sum one from values K (n, k, k) of neighbours, k (n, k) of ψ."""
    row_means = K.mean(axis=2)
    right = k - row_means
    right -= right.mean(axis=1, keepdims=True)
    centred = K - row_means[:, :, None] - row_means[:, None] + row_means.mean(axis=1)[:, None, None]
    values, U = np.linalg.eigh(centred)
    missing = np.maximum(-values[:, :1], 0)
    kept = values > np.maximum(missing, _KEPT_FEATURES * values[:, -1:])
    along = np.einsum("nij,ni->nj", U, right)
    along = np.where(kept, along / np.where(kept, values + missing, 1), 0)
    return 1 / K.shape[1] + np.einsum("nij,nj->ni", U, along)

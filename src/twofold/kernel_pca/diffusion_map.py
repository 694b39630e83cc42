"""Diffusion maps: coordinates in which distance is how differently two random walks spread.

A walk steps from row i to row j with chance P_ij, the likelier the nearer (Coifman and Lafon 2006):

    W_ij = exp(-||y_i - y_j||² / (2 s²)),   q_i = Σ_j w_j W_ij,   W̃_ij = W_ij / (q_i q_j)^α,
    d_i = Σ_j w_j W̃_ij,   P_ij = w_j W̃_ij / d_i,   π_i ∝ w_i d_i.

With eigenpairs ``P ψ_j = λ_j ψ_j``, ``Σ_i π_i ψ_ij² = 1``, of which the constant one is left out, a
row has the coordinates ``x_ij = λ_j^t ψ_ij``. Euclidean distances between them are those between
the distributions of walks of t steps. They are found from the symmetric
``S = sqrt(w_i w_j) W̃_ij / sqrt(d_i d_j)``, whose eigenvectors are ``sqrt(π_i) ψ_ij``.

This is kernel PCA with rows weighted by π and the kernel ``(P^2t)_ij / π_j``: axes have the
coefficients ``π_i ψ_ij / λ_j^t``, the mean π, and kernel values with the mean are 1. So the ways
back are those of kernel PCA. A new row z takes one step to the training rows:

    x_j(z) = Σ_i p_i(z) x_ij / λ_j,   p_i(z) ∝ w_i q_i^-α exp(-||z - y_i||² / (2 s²)).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import (
    NARROWEST,
    WIDEST,
    check_at_least,
    check_choice,
    check_count,
    check_width,
    is_number,
)
from twofold.contract.fitted_state import Array, FittedState, Number, check_there
from twofold.features.data_kernels import RBF, check_rows
from twofold.kernel_pca import memory
from twofold.kernel_pca.data_dependent import DataDependentKernel, neighbor_graph
from twofold.kernel_pca.diffusion_kernel import (
    DiffusionCoordinates,
    DiffusionValues,
    diffusion_matrix,
)
from twofold.kernel_pca.spectral_model import FeatureSpace, SpectralModel, brought_near
from twofold.kernel_pca.spectrum import choose_solver, count_kept, leading_eigenpairs
from twofold.neighborhoods import nearest
from twofold.preimages import get_method
from twofold.preimages.coordinates import CoordinateMap
from twofold.process_settings import warn
from twofold.rowwise import SQUARED_GAP, blocks, fix_signs, multiply_rows, pair_sums

EXTENSIONS = ("analytic", "nystrom", "ridge")
# Smaller powers of eigenvalues leave no digits to tell rows apart.
SMALLEST_POWER = 1e-100
# Chance of leaving a part of the data in a step, below which coordinates only tell parts.
HARDLY_LEFT = 1e-8
# A row at the very end of another's reach is linked to it, however its distance was rounded.
LINK_ROUNDING = 1e-9


class DiffusionMap(SpectralModel):
    """Diffusion maps with a way back.

    Parameters
    ----------
    n_components : int, default=2
        Coordinates q; more than there are features is fine.
    alpha : float, default=1.0
        How much of the density of the rows is taken out: 1 all of it, so that only the shape of
        the manifold counts, 0 nothing (Laplacian eigenmaps).
    time : float, default=1
        Steps t of the walk; the more, the less fine structure is left.
    bandwidth : "auto" or float, default="auto"
        Width s of a step; "auto" is the mean distance to the tenth nearest row.
    n_neighbors : int, default=None
        Let the walk step only between neighbours: rows of which one is among this many nearest rows
        of the other. Memory then grows with the number of rows, not with its square. None for all
        rows.
    extension : {"analytic", "nystrom", "ridge"}, default="analytic"
        Where new rows lie: by a step of the walk to the training rows, with ``n_neighbors`` to
        those that the row would be linked to; by a step to the nearest rows only (the same if
        ``n_neighbors`` is None); or by a kernel ridge regression of the coordinates, which is
        smoother and falls to a constant far away.
    preimage : str or object, default="auto"
        How rows are found for latent points: a method of :mod:`twofold.preimages` or
        its name; "auto" takes what suits the kernel.
    n_jobs : int or None, default=-1
        Threads: -1 for every core, None for one. The result does not depend on it.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Latent points of the rows passed to ``fit``, in their order.
    latent_, data_, weights_ : ndarrays
        Latent points, rows and weights of the distinct rows.
    eigenvalues_ : ndarray of shape (n_components,)
        Of one step of the walk, without the largest, which is 1.
    bandwidth_ : float
        Width of a step.
    stationary_ : ndarray of shape (m,)
        Share of time π that a long walk spends on each row.
    tilt_ : ndarray of shape (m,)
        ``w q^-α``, how likely a step to each row is, apart from its distance.
    reach_ : ndarray of shape (m,)
        With ``n_neighbors``, the distance of each row to the last of them.
    rest_step_ : ndarray of shape (m, r)
        Coefficients of further coordinates, for pre-images that need them ("constrained").
    preimage_, preimage_method_ : str, object
        The method for pre-images and why it was chosen, and the method with its parameters.
    objective_ : float
        ``Σ λ²`` over the eigenvalues of one step that are left out.
    n_iter_, stop_reason_, history_ : int, str, ndarray
        As for other models; the history holds ``Σ λ²`` over all, and what is left out.
    domain_threshold_ : float
        Density that bounds the domain.
    n_features_in_, feature_names_in_ : int, ndarray

    References
    ----------
    R. R. Coifman and S. Lafon, Diffusion maps, Applied and Computational Harmonic Analysis 21,
    2006.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold.kernel_pca import DiffusionMap
    >>> model = DiffusionMap().fit(load_iris().data)
    >>> model.inverse_transform(model.transform([[5.0, 3.5, 1.5, 0.2]])).shape
    (1, 4)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        alpha: float = 1.0,
        time: float = 1,
        bandwidth: str | float = "auto",
        n_neighbors: int | None = None,
        extension: str = "analytic",
        preimage: Any = "auto",
        n_jobs: int | None = -1,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.time = time
        self.bandwidth = bandwidth
        self.n_neighbors = n_neighbors
        self.extension = extension
        self.preimage = preimage
        self.n_jobs = n_jobs

    fitted_state: ClassVar[FittedState] = {
        **SpectralModel.fitted_state,
        "bandwidth_": Number(NARROWEST, WIDEST),
        "stationary_": Array(("n",), low=0),
        "tilt_": Array(("n",), low=0),
        "reach_": Array(("n",), low=0, is_optional=True),
        "rest_step_": Array(("n", "further"), is_optional=True),
    }

    # ---- what the contract asks for -------------------------------------------------------------

    def _fit_distinct(self, Y: FloatArray, weights: FloatArray, source: IntArray) -> FloatArray:
        self._check_training_rows(Y, source)
        is_auto = self.bandwidth == "auto"
        self.bandwidth_ = nearest.neighbor_scale(Y) if is_auto else float(self.bandwidth)
        kernel = WalkKernel(self.bandwidth_, self.alpha, self.time, self.n_neighbors, weights)
        q = int(self.n_components)
        wanted = min(q + self._n_further(kernel), len(Y) - 1)
        self._check_memory(len(Y), wanted)
        S, self.stationary_, self.tilt_ = kernel.symmetric(Y)
        total = float((S.multiply(S) if sparse.issparse(S) else S * S).sum()) - 1
        root = np.sqrt(self.stationary_)
        values, U = _leading_beside(S, root, max(q, wanted))
        advice = (
            f"Lower `bandwidth`, which is {self.bandwidth_:.3g}: the walk steps to any row with "
            "nearly the same chance. Or pass more distinct rows."
        )
        kept = count_kept(values, q, np.finfo(float).eps * len(Y), advice)
        if self.n_neighbors is None and values[0] > 1 - HARDLY_LEFT:
            warn(
                f"With a bandwidth of {self.bandwidth_:.3g} the walk stays in parts of the data: "
                f"{int((values[:q] > 1 - HARDLY_LEFT).sum())} of {q} eigenvalue(s) are 1, and "
                "their coordinates only say which part a row is in. Raise `bandwidth`, or fit the "
                "parts one by one."
            )
        values, psi = values[:kept], fix_signs(U[:, :kept]) / root[:, None]
        latent, powers = psi * values**self.time, values[:q] ** self.time
        if powers.min() < SMALLEST_POWER:
            raise ValueError(
                f"After time={self.time} steps nothing is left of component "
                f"{int(powers.argmin())}, whose eigenvalue is {values[q - 1]:.3g}. Lower `time`."
            )
        self.eigenvalues_ = values[:q]
        # K = Σ λ^2t ψ ψᵀ and Σ π ψ² = 1, so that K π ψ / λ^t are the coordinates λ^t ψ.
        self.dual_coef_ = self.stationary_[:, None] * psi[:, :q] / powers
        if self.n_neighbors is not None:
            rows = check_rows(Y)
            last = nearest.other_rows(rows, self.n_neighbors)[:, -1:]
            self.reach_ = nearest.neighbor_distances(rows, rows, last)[:, 0]
        self._report(total, self.eigenvalues_**2, 1.0)
        self._choose_preimages(kernel, latent[:, :q])
        if self.extension == "ridge":
            self._extend(latent)
        elif kept > q:
            self.rest_step_ = latent[:, q:] / values[q:]
        return latent[:, :q]

    def _restore(self) -> None:
        rows = self.data_.astype(np.float64)
        latent = self.latent_.astype(np.float64)
        kernel = WalkKernel(self.bandwidth_, self.alpha, self.time, self.n_neighbors, self.weights_)
        # The constant function has eigenvalue 1: every row has the kernel value 1 with the mean.
        of_mean = self.stationary_, np.ones(len(rows)), 1.0
        known = latent, self._map(rows, latent)
        self._space = FeatureSpace(kernel, rows, self.dual_coef_, *of_mean, *known)

    def _map(self, rows: FloatArray, latent: FloatArray) -> CoordinateMap | None:
        """Return the coordinates of any row, with derivatives; there are none between links."""
        if self.extension == "ridge" or self.n_neighbors is not None:
            return self._extension()
        steps = DiffusionValues(rows, self.bandwidth_, float(self.alpha), self.tilt_, None)
        rest = getattr(self, "rest_step_", latent[:, :0])
        coefficients = np.hstack([latent / self.eigenvalues_, rest])
        return DiffusionCoordinates(steps, coefficients, np.zeros(coefficients.shape[1]))

    def _place_complete(self, Y: FloatArray) -> FloatArray:
        Z = brought_near(check_rows(Y))
        coordinates = self._space.map
        place = self._step_to_neighbors if coordinates is None else coordinates.values
        X = np.empty((len(Z), self._n_features_out))
        for part in blocks(len(Z), len(self.data_)):
            X[part] = place(Z[part])[:, : X.shape[1]]
        return X

    def _step_to_neighbors(self, Z: FloatArray) -> FloatArray:
        """Return where rows Z (n, D) lie by a step to the training rows they are linked to."""
        rows = self._space.rows
        sq_dists = pair_sums(Z, rows, SQUARED_GAP)
        near = nearest.nearest_rows(Z, rows, min(int(self.n_neighbors or 0) + 1, len(rows)))
        linked = np.zeros(sq_dists.shape, dtype=bool)
        if self.extension == "analytic":
            linked = sq_dists <= self.reach_**2 * (1 + LINK_ROUNDING)
        np.put_along_axis(linked, near, True, axis=1)
        exponents = np.where(linked, sq_dists / (-2 * self.bandwidth_**2), -np.inf)
        # Relative to the nearest row: far away all chances would underflow.
        chances = self.tilt_ * np.exp(exponents - exponents.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        return multiply_rows(chances, self._space.latent / self.eigenvalues_)

    def _check_memory(self, m: int, count: int) -> None:
        """Raise if there is not enough memory for m rows and a number of eigenpairs."""
        if self.n_neighbors is not None:
            pairs = 2 * m * min(int(self.n_neighbors), m)  # a link counts for both its rows
            memory.check(memory.needed_by_pairs(pairs, m, count), m, "Lower `n_neighbors`.")
            return
        solver = choose_solver("auto", m, count)
        hint = "Let the walk step to near rows only by `n_neighbors`, e.g. n_neighbors=20."
        memory.check(memory.needed(m, solver), m, hint)

    def _check_restored(self) -> None:
        super()._check_restored()
        is_ridge, has_links = self.extension == "ridge", self.n_neighbors is not None
        needed = {"preimage_method_": True, "extension_coef_": is_ridge, "reach_": has_links}
        check_there(self, needed)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not is_number(self.alpha) or not 0 <= self.alpha <= 1:
            raise ValueError(f"`alpha` must be a number from 0 to 1; got {self.alpha!r}.")
        check_at_least("time", self.time)
        check_width("bandwidth", self.bandwidth)
        if self.n_neighbors is not None:
            check_count("n_neighbors", self.n_neighbors)
        check_choice("extension", self.extension, EXTENSIONS)
        method, _ = get_method(self.preimage, WalkKernel(1.0, 1.0, 1, None, np.ones(1)))
        if method.needs_rest and self.n_neighbors and self.extension != "ridge":
            raise ValueError(
                f"Pre-images by {method.name!r} follow coordinates that are smooth, and with "
                "`n_neighbors` those of new rows have steps. Use extension='ridge'."
            )


@dataclass(frozen=True, eq=False, repr=False)
class WalkKernel(DataDependentKernel):
    """The kernel ``(P^2t)_ij / π_j`` of walks between weighted rows; see the top of this file."""

    bandwidth: float
    alpha: float
    time: float
    n_neighbors: int | None
    weights: FloatArray

    def __repr__(self) -> str:
        return "the kernel of a diffusion map"

    def symmetric(
        self, Y: FloatArray, *, quiet: bool = False
    ) -> tuple[Any, FloatArray, FloatArray]:
        """Return S (m, m), sparse with ``n_neighbors``, π (m,) and ``w q^-α`` (m,)."""
        gaussians = self._gaussians(check_rows(Y), quiet)
        S, crowd, degrees = diffusion_matrix(gaussians, self.alpha, self.weights)
        stationary = self.weights * degrees
        return S, stationary / stationary.sum(), self.weights * crowd

    def _gaussians(self, Y: FloatArray, quiet: bool) -> Any:
        if self.n_neighbors is None:
            return RBF(0.5 / self.bandwidth**2).gram(Y, Y)
        graph = neighbor_graph(Y, self.n_neighbors, quiet=quiet)
        graph = graph.maximum(graph.T).tocsr()  # linked if either is near to the other
        graph.data = np.exp(graph.data**2 / (-2 * self.bandwidth**2))
        return graph + sparse.eye(len(Y), format="csr")

    def matrix(self, Y: FloatArray) -> FloatArray:
        """Return the kernel values of all rows."""
        S, stationary, _ = self.symmetric(Y, quiet=True)
        values, U = eigh(S.toarray() if sparse.issparse(S) else S)
        U /= np.sqrt(stationary)[:, None]
        return np.asarray((U * np.maximum(values, 0) ** (2 * self.time)) @ U.T)


def _leading_beside(S: Any, known: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """Return the leading eigenpairs of S (m, m) beside the known one of eigenvalue 1."""
    # It is taken out first: where parts of the data hardly hang together, others are as large.
    if not sparse.issparse(S):
        S -= np.outer(known, known)
        return leading_eigenpairs(S, count, "auto", 0.0, None)
    if count >= len(known) - 1:
        return leading_eigenpairs(S.toarray() - np.outer(known, known), count, "dense", 0.0, None)
    rest = LinearOperator(S.shape, lambda v: S @ v - known * (known @ v.ravel()), dtype=float)
    return leading_eigenpairs(rest, count, "arpack", 0.0, None)

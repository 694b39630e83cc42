"""Kernels that are made from all rows at once: LLE, MVU, Isomap, Laplacian eigenmaps, diffusion.

Kernel PCA with such a kernel is the method it is named after, up to the scale of the axes (Ham et
al. 2004; Arias 2007, section 2.4, its misprints corrected). Values for a new row have recipes:

============ ======================================== =============================================
kernel       K                                        k(z, y_i) of a new row z
============ ======================================== =============================================
lle          c I - (I - W)ᵀ(I - W), rows of W sum to  w_z K, w_z the weights that best combine z
             one and best combine a row from its      from its neighbours: coordinates are combined
             neighbours, c the largest eigenvalue     in the same way
             of what is taken off
isomap       -½ d², d along the neighbour graph       -½ d(z, y_i)², first to a neighbour
diffusion    W̃_ij / sqrt(d_i d_j), d = W̃ 1,           w̃_i / sqrt(Σ_j w̃_j d_i),
             W̃_ij = W_ij / (q_i q_j)^α, q = W 1,      w̃_i = w_i / (q(z) q_i)^α, q(z) = Σ_i w_i
             W_ij = exp(-||y_i - y_j||² / (2 s²))
mvu          the widest spread that keeps distances   none: extended by kernel ridge regression
             to neighbours, a semidefinite programme
============ ======================================== =============================================

Where a graph of neighbours falls into parts, these are joined by their shortest links, with a
warning. "laplacian_eigenmaps" is "diffusion" with α = 0; α = 1 takes the density of the rows out.
None is centred; that is done where the axes are found.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import dijkstra
from scipy.sparse.linalg import eigsh

from twofold.array_types import FloatArray, IntArray
from twofold.checks.installing import install_command
from twofold.checks.parameters import check_count, check_positive, is_number
from twofold.features import data_kernels
from twofold.features.data_kernels import (
    RBF,
    DataKernel,
    Laplacian,
    PrecomputedDistance,
    check_rows,
)
from twofold.kernel_pca.compact_kernels import Wendland
from twofold.kernel_pca.diffusion_kernel import (
    DiffusionCoordinates,
    DiffusionValues,
    diffusion_matrix,
)
from twofold.model_files import register_value_type
from twofold.neighborhoods import nearest
from twofold.neighborhoods.embeddings import barycenter_weights, lle_cost
from twofold.neighborhoods.graphs import exact_neighbors, join_parts, linked_rows
from twofold.process_settings import warn, without_warnings

# By how much MVU may miss squared distances between neighbours, as a share of their mean.
MOST_EXCESS = 1e-3
# Sizes of parts of a graph that a message lists.
SIZES_TOLD = 5


# Values (n, m) of rows (n, D) with those that a kernel was made from, none depending on another.
KernelValues: TypeAlias = Callable[[FloatArray], FloatArray]


class DataDependentKernel(ABC):
    """A kernel that is made from all rows at once."""

    is_precomputed: ClassVar[bool] = False
    # Matrices as large as the kernel matrix that are made on the way to it.
    extra_matrices: ClassVar[int] = 1

    def fitted(self, Y: FloatArray) -> Self:
        """Return the kernel ready for rows Y (m, D): numbers chosen, Y checked."""
        check_rows(Y)
        return self

    @abstractmethod
    def matrix(self, Y: FloatArray) -> FloatArray:
        """Return the kernel matrix (m, m) of rows Y (m, D), not centred."""

    def extended(self, Y: FloatArray) -> KernelValues | None:
        """Return the kernel of any row with rows Y (m, D), None where there is no recipe."""
        return None

    @property
    def has_recipe(self) -> bool:
        """Whether new rows have kernel values."""
        return type(self).extended is not DataDependentKernel.extended


@dataclass(frozen=True)
class _OfNeighbors(DataDependentKernel):
    """A kernel made from each row's nearest ones."""

    n_neighbors: int = 10

    def __post_init__(self) -> None:
        check_count("n_neighbors", self.n_neighbors)

    def _with_neighbors(
        self, Y: FloatArray, values: Callable[[FloatArray, IntArray], FloatArray]
    ) -> KernelValues:
        """Return kernel values that follow from rows and their neighbours among rows Y (m, D)."""

        def at(Z: FloatArray) -> FloatArray:
            Z = check_rows(Z)
            # As many neighbours as a row of Y has, which is not its own neighbour.
            return values(Z, nearest.nearest_rows(Z, Y, min(self.n_neighbors, len(Y) - 1)))

        return at


@dataclass(frozen=True)
class LLE(_OfNeighbors):
    """Locally linear embedding as a kernel.

    Parameters
    ----------
    n_neighbors : int
        Rows that a row is combined from; all others if there are fewer.
    regularization : float
        Share of the trace added to the diagonal where weights are solved for.
    """

    regularization: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("regularization", self.regularization)

    def matrix(self, Y: FloatArray) -> FloatArray:
        """Return ``c I - (I - W)ᵀ(I - W)``."""
        return self._sparse(check_rows(Y)).toarray()

    def extended(self, Y: FloatArray) -> KernelValues:
        """Return combinations of the kernel values of neighbours."""
        Y = check_rows(Y)
        K = self._sparse(Y)

        def values(Z: FloatArray, neighbors: IntArray) -> FloatArray:
            W = barycenter_weights(Z, Y, neighbors, self.regularization)
            return np.asarray((linked_rows(W, neighbors, len(Y)) @ K).toarray())

        return self._with_neighbors(Y, values)

    def _sparse(self, Y: FloatArray) -> csr_array:
        M = lle_cost(Y, nearest.other_rows(Y, self.n_neighbors), self.regularization)
        start = np.random.RandomState(0).uniform(size=len(Y))
        largest = float(eigsh(M, 1, which="LA", return_eigenvectors=False, v0=start)[0])
        return csr_array(largest * eye_array(len(Y), format="csr") - M)


@dataclass(frozen=True)
class Isomap(_OfNeighbors):
    """Distances along the graph of nearest neighbours as a kernel.

    Parameters
    ----------
    n_neighbors : int
        Rows that a row is linked to; all others if there are fewer.
    """

    def matrix(self, Y: FloatArray) -> FloatArray:
        """Return ``-½ d²`` of distances along the graph."""
        K = dijkstra(neighbor_graph(check_rows(Y), self.n_neighbors), directed=False)
        return np.asarray(-0.5 * K * K)

    def extended(self, Y: FloatArray) -> KernelValues:
        """Return ``-½ d²``, the first step leading to a neighbour."""
        Y = check_rows(Y)
        graph = neighbor_graph(Y, self.n_neighbors, quiet=True)

        def values(Z: FloatArray, neighbors: IntArray) -> FloatArray:
            steps = nearest.neighbor_distances(Z, Y, neighbors)
            used, place = np.unique(neighbors, return_inverse=True)
            along = dijkstra(graph, directed=False, indices=used)
            d = np.full((len(Z), len(Y)), np.inf)
            for step, first in zip(steps.T, place.reshape(neighbors.shape).T, strict=True):
                np.minimum(d, step[:, None] + along[first], out=d)
            return np.asarray(-0.5 * d * d)

        return self._with_neighbors(Y, values)


@dataclass(frozen=True)
class MVU(_OfNeighbors):
    """Maximum variance unfolding: the widest spread that keeps distances between neighbours.

    Solved by cvxpy (``pip install "twofold[sdp]"``): seconds for 50 rows, and out of reach beyond
    a few hundred, where ``landmarks`` helps.

    Parameters
    ----------
    n_neighbors : int
        Rows whose distances to a row, and to each other, are kept.
    """

    n_neighbors: int = 5

    def matrix(self, Y: FloatArray) -> FloatArray:
        """Return the solution of ``max tr K`` under the distances, K ≽ 0 and ΣK = 0."""
        try:
            cvxpy = importlib.import_module("cvxpy")
        except ImportError as error:
            raise ImportError(
                "Maximum variance unfolding solves a semidefinite programme with cvxpy, which is "
                f"not installed. Run {install_command('sdp')}, or use kernel='isomap', which also "
                "keeps distances between neighbours."
            ) from error
        Y = check_rows(Y)
        rigid = rigid_pairs(nearest.other_rows(Y, self.n_neighbors))
        # Parts that hang together by nothing would drift apart without end.
        linked = np.sort(np.stack(neighbor_graph(Y, self.n_neighbors).nonzero()), axis=0)
        first, second = np.unique(np.hstack([rigid, linked]), axis=1)
        gaps = ((Y[first] - Y[second]) ** 2).sum(axis=1)
        unit = float(gaps.mean())
        K = cvxpy.Variable((len(Y), len(Y)), PSD=True)
        own = cvxpy.diag(K)
        # As bounds: equations leave the solver no room, and the widest spread reaches them anyway.
        kept = own[first] + own[second] - 2 * K[first, second] <= gaps / unit
        problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.trace(K)), [kept, cvxpy.sum(K) == 0])
        with without_warnings(UserWarning):  # about accuracy, which is looked at below
            problem.solve(solver="CLARABEL")
        excess = np.inf if K.value is None else float(np.max(kept.violation()))
        if excess > MOST_EXCESS:
            raise ValueError(
                f"The semidefinite programme of MVU ended as {problem.status!r}, distances missed "
                f"by {excess:.2g}. Use an `n_neighbors` other than {self.n_neighbors}."
            )
        return np.asarray(0.5 * unit * (K.value + K.value.T))


@dataclass(frozen=True)
class Diffusion(DataDependentKernel):
    """Steps of a random walk between rows as a kernel: diffusion maps and Laplacian eigenmaps.

    Parameters
    ----------
    scale : float or None
        Width s of the Gaussian; None for the mean distance to the 10th neighbour.
    alpha : float
        How much of the density of the rows is taken out: 0 nothing (Laplacian eigenmaps), 1 all.
    time : int
        Steps of the walk: the kernel matrix to this power.
    """

    scale: float | None = None
    alpha: float = 1.0
    time: int = 1

    def __post_init__(self) -> None:
        check_positive("scale", 1.0 if self.scale is None else self.scale)
        if not is_number(self.alpha) or not 0 <= self.alpha <= 1:
            raise ValueError(f"`alpha` must be a number from 0 to 1; got {self.alpha!r}.")
        check_count("time", self.time)

    def fitted(self, Y: FloatArray) -> Self:
        """Return the kernel with its ``scale``, chosen from rows Y (m, D) where it is None."""
        return self if self.scale is not None else replace(self, scale=nearest.neighbor_scale(Y))

    def number(self) -> float:
        """Return the scale, which must have been chosen."""
        if self.scale is None:
            raise ValueError("`scale` of Diffusion is None; `fitted(Y)` chooses it from Y.")
        return float(self.scale)

    def matrix(self, Y: FloatArray) -> FloatArray:
        """Return ``W̃_ij / sqrt(d_i d_j)`` to the power of ``time``."""
        K = RBF(0.5 / self.number() ** 2).gram(Y, Y)
        one_step, _, _ = diffusion_matrix(K, self.alpha, np.ones(len(Y)))
        return np.linalg.matrix_power(one_step, self.time)

    def extended(self, Y: FloatArray) -> KernelValues:
        """Return the analytic kernel of new rows, which is K again at old ones."""
        found = DiffusionValues.of(check_rows(Y), self.number(), self.alpha, symmetric=True)
        if self.time == 1:
            return found.values
        return DiffusionCoordinates(found, self.carrier(Y), np.zeros(len(Y))).values

    def carrier(self, Y: FloatArray) -> FloatArray:
        """Return the matrix (m, m) that makes kernel values of one step those of ``time`` steps."""
        return np.linalg.matrix_power(replace(self, time=1).matrix(Y), self.time - 1)


def neighbor_graph(Y: FloatArray, k: int, *, quiet: bool = False) -> csr_array:
    """Return the distances (m, m) of rows Y (m, D) to their k nearest, sparse, parts joined."""
    table = exact_neighbors(Y, k)
    graph, sizes = join_parts(table.directed_graph(table.n_neighbors), Y)
    if len(sizes) > 1 and not quiet:
        listed = ", ".join(str(size) for size in np.sort(sizes)[::-1][:SIZES_TOLD])
        warn(
            f"With n_neighbors={table.n_neighbors} the rows fall into {len(sizes)} unconnected "
            f"parts of {listed}{' ...' if len(sizes) > SIZES_TOLD else ''} rows; they were joined "
            "where they are nearest to each other. Their arrangement then depends on single links: "
            "raise `n_neighbors`, or fit the parts one by one."
        )
    return graph


def rigid_pairs(neighbors: IntArray) -> IntArray:
    """Return the pairs (2, p) of rows that are neighbours, or neighbours of one row."""
    together = np.column_stack([np.arange(len(neighbors)), neighbors])
    first, second = np.triu_indices(together.shape[1], 1)
    pairs = np.stack([together[:, first].ravel(), together[:, second].ravel()])
    return np.unique(np.sort(pairs, axis=0), axis=1)


for name in ("Linear", "Polynomial", "RBF", "Laplacian", "L1", "Precomputed"):
    register_value_type(getattr(data_kernels, name))
for value_type in (Wendland, LLE, MVU, Diffusion, Isomap):
    register_value_type(value_type)

KERNELS: dict[str, Callable[[], DataDependentKernel]] = {
    "lle": LLE,
    "mvu": MVU,
    "laplacian_eigenmaps": lambda: Diffusion(alpha=0.0),
    "diffusion": Diffusion,
    "isomap": Isomap,
}


def get_kernel(spec: Any) -> DataKernel | DataDependentKernel:
    """Return the kernel of that name, the kernel itself, or a callable as a kernel."""
    names = sorted({*data_kernels.KERNELS, *KERNELS, "wendland"} - {"precomputed_distance"})
    expected = (
        f"`kernel` must be one of {names}, a kernel such as RBF(gamma=0.5) or LLE(n_neighbors=8), "
        "or a callable k(A, B) that returns a (len(A), len(B)) array"
    )
    if isinstance(spec, PrecomputedDistance) or (isinstance(spec, str) and spec not in names):
        hint = " For distances D pass -0.5 * D**2 as 'precomputed'." if "dist" in str(spec) else ""
        raise ValueError(f"{expected}; got {spec!r}.{hint}")
    if isinstance(spec, DataDependentKernel):
        return spec
    if isinstance(spec, str) and spec in KERNELS:
        return KERNELS[spec]()
    if isinstance(spec, str) and spec == "wendland":
        return Wendland()
    if isinstance(spec, type) or not (isinstance(spec, (str, DataKernel)) or callable(spec)):
        raise TypeError(f"{expected}; got {spec!r}.")
    return data_kernels.get_data_kernel(spec)


def with_numbers(kernel: Any, Y: FloatArray) -> Any:
    """Return the kernel ready for rows Y (m, D), widths by the tenth neighbour where not given."""
    if isinstance(kernel, RBF) and kernel.gamma is None:
        return RBF(0.5 / nearest.neighbor_scale(Y) ** 2)
    if isinstance(kernel, Laplacian) and kernel.gamma is None:
        return Laplacian(1 / nearest.neighbor_scale(Y, order=1))
    return kernel if kernel.is_precomputed else kernel.fitted(Y)

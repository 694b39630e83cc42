"""Kernels that are made from all rows at once: LLE, MVU, Isomap, Laplacian eigenmaps, diffusion.

Kernel PCA with such a kernel is the method it is named after, but for the scale of the axes (Ham et
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

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.array_types import FloatArray
from twofold.features.data_kernels import KERNELS as ROW_KERNELS
from twofold.features.data_kernels import (
    L1,
    RBF,
    DataKernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    PrecomputedDistance,
    get_data_kernel,
)
from twofold.kernel_pca.compact_kernels import Wendland
from twofold.kernel_pca.diffusion_kernel import Diffusion, DiffusionCoordinates, DiffusionValues
from twofold.kernel_pca.from_all_rows import DataDependentKernel, KernelValues
from twofold.kernel_pca.graph_kernels import LLE, MVU, Isomap
from twofold.kernel_pca.neighbors import neighbor_scale
from twofold.tables import register_value_type

__all__ = [
    "KERNELS",
    "LLE",
    "MVU",
    "DataDependentKernel",
    "Diffusion",
    "DiffusionCoordinates",
    "DiffusionValues",
    "Isomap",
    "KernelValues",
    "get_kernel",
    "with_numbers",
]

for value_type in (
    Linear,
    Polynomial,
    RBF,
    Laplacian,
    L1,
    Precomputed,
    Wendland,
    LLE,
    MVU,
    Diffusion,
    Isomap,
):
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
    names = sorted({*ROW_KERNELS, *KERNELS, "wendland"} - {"precomputed_distance"})
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
    return get_data_kernel(spec)


def with_numbers(kernel: Any, Y: FloatArray) -> Any:
    """Return the kernel ready for rows Y (m, D), widths by the tenth neighbour where not given."""
    if isinstance(kernel, RBF) and kernel.gamma is None:
        return RBF(0.5 / neighbor_scale(Y) ** 2)
    if isinstance(kernel, Laplacian) and kernel.gamma is None:
        return Laplacian(1 / neighbor_scale(Y, order=1))
    return kernel if kernel.is_precomputed else kernel.fitted(Y)

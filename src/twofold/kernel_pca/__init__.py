"""Kernel PCA and diffusion maps that can come back: `estimator` and `diffusion_map` are the doors.

`spectrum` finds the axes, over landmarks where rows are many. Both are a `spectral_model`: what
follows then, places on them and the way back (by :mod:`twofold.preimages`). Kernels:
`data_dependent` looks them up by name and holds those made from all rows, `diffusion_kernel` their
derivatives; `compact_kernels` vanish beyond a radius. Further: `sparse_matrix` takes sparse kernel
matrices, `memory` says what a fit needs before it takes it, and `extension` carries an embedding
over to new rows.
"""

from twofold.kernel_pca.compact_kernels import Wendland
from twofold.kernel_pca.diffusion_map import DiffusionMap
from twofold.kernel_pca.estimator import KernelPCA
from twofold.kernel_pca.extension import KernelExtension

__all__ = ["DiffusionMap", "KernelExtension", "KernelPCA", "Wendland"]

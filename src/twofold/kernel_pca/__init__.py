"""Kernel PCA and diffusion maps that can come back: `estimator` and `diffusion_map` are the doors.

Both are a `spectral_model`: what follows once the axes are found. `spectrum` finds them, over
landmarks where rows are many, and `feature_space` places points on them and leads back (by
:mod:`twofold.preimages`). Kernels: `data_dependent` looks them up by name and holds those made from
all rows, `diffusion_kernel` their derivatives; `compact_kernels` vanish beyond a radius. Further:
`sparse_matrix` takes sparse kernel matrices, `memory` says what a fit needs before it takes it,
`incomplete_rows` have gaps, and `extension` carries an embedding over to new rows.
"""

from twofold.kernel_pca.compact_kernels import Wendland
from twofold.kernel_pca.diffusion_map import DiffusionMap
from twofold.kernel_pca.estimator import KernelPCA
from twofold.kernel_pca.extension import KernelExtension

__all__ = ["DiffusionMap", "KernelExtension", "KernelPCA", "Wendland"]

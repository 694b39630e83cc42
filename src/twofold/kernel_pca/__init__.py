"""Kernel PCA and diffusion maps that can come back: `estimator` and `diffusion_map` are the doors.

Both are a `spectral_model`: what follows once the axes are found. `spectrum` finds them, and
`feature_space` places points on them and leads back (by :mod:`twofold.preimages`). Kernels:
`data_dependent` looks them up by name; `from_all_rows` says what one made from all rows offers,
`graph_kernels` and `diffusion_kernel` are such, `compact_kernels` vanish beyond a radius. Many
rows: `landmark_rows` lets a few span the feature space, `sparse_matrix` takes sparse kernel
matrices, `memory` says what a fit needs before it takes it. Further: `neighbors` of rows,
`incomplete_rows`, and `extension`, which carries an embedding over to new rows.
"""

from twofold.kernel_pca.compact_kernels import Wendland
from twofold.kernel_pca.diffusion_map import DiffusionMap
from twofold.kernel_pca.estimator import KernelPCA
from twofold.kernel_pca.extension import KernelExtension

__all__ = ["DiffusionMap", "KernelExtension", "KernelPCA", "Wendland"]

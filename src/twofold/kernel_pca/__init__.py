"""Kernel PCA and diffusion maps that can come back: `estimator` and `diffusion_map` are the doors.

The rooms: `spectrum` finds the principal axes, `data_dependent` holds kernels that are made from
all rows at once, `landmark_rows` lets a few rows span the feature space, `memory` says what a fit
needs before it takes it, `extension` and `coordinates` place new rows, `preimages` leads back.
"""

from twofold.kernel_pca.diffusion_map import DiffusionMap
from twofold.kernel_pca.estimator import KernelPCA
from twofold.kernel_pca.extension import KernelExtension

__all__ = ["DiffusionMap", "KernelExtension", "KernelPCA"]

"""Data seen through a kernel: kernels of data rows, coordinates in feature space.

`data_kernels` says how alike two rows are, `feature_map` turns that into ordinary coordinates in
which distances are those of feature space. `twofold.preimages` leads from there back to rows.
"""

from twofold.features.data_kernels import (
    L1,
    RBF,
    Custom,
    DataKernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    PrecomputedDistance,
    Sigmoid,
    get_data_kernel,
)
from twofold.features.feature_map import FeatureMap

__all__ = [
    "L1",
    "RBF",
    "Custom",
    "DataKernel",
    "FeatureMap",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Precomputed",
    "PrecomputedDistance",
    "Sigmoid",
    "get_data_kernel",
]
__dir__ = __all__.copy  # without numpy and other imports

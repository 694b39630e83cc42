"""Kernels that the contract tests run through: the built-in ones and users' own."""

from __future__ import annotations

import numpy as np

from twofold.kernels import EPANECHNIKOV, GAUSSIAN, QUARTIC, TRIWEIGHT, Kernel

# Heavy tails, but light enough that a cutoff of 1e-14 is reached at s = 24.
POWER = Kernel("power", lambda s: (1 + s) ** -10.0, lambda s: -10 * (1 + s) ** -11.0)
# Exponential kernels of other rates than the Gaussian: one falls so slowly that a distance at which
# the Gaussian is nothing still counts.
SLOW = Kernel(
    "slow", lambda s: np.exp(-s / 200), lambda s: -np.exp(-s / 200) / 200, is_exponential=True
)
FAST = Kernel("fast", lambda s: np.exp(-3 * s), lambda s: -3 * np.exp(-3 * s), is_exponential=True)

BUILT_IN = (GAUSSIAN, EPANECHNIKOV, QUARTIC, TRIWEIGHT)
ALL_KERNELS = (*BUILT_IN, POWER, SLOW, FAST)
SMOOTH = tuple(kernel for kernel in ALL_KERNELS if kernel.smoothness >= 1)
FINITE = (EPANECHNIKOV, QUARTIC, TRIWEIGHT)


def name_of(kernel: Kernel) -> str:
    return kernel.name

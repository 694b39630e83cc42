"""Noise added to clean rows, independent in every coordinate.

=============  ==========================  ==================
kind           what ``noise`` means        standard deviation
=============  ==========================  ==================
``gaussian``   standard deviation          ``noise``
``laplacian``  standard deviation          ``noise``
``uniform``    half width of the interval  ``noise / sqrt(3)``
=============  ==========================  ==================

The Laplacian density ``exp(-|u| / b) / (2 b)`` has standard deviation ``sqrt(2) b``. Klanke's
thesis writes sigma for ``b`` in (5.13), but his tables come out only with ``b = sigma / sqrt(2)``,
which makes sigma a standard deviation as in the Gaussian case. Uniform noise is given by its half
width because the thesis states it so: ``[-0.1, 0.1]`` for the spiral.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from twofold.array_types import FloatArray

NoiseKind: TypeAlias = Literal["gaussian", "uniform", "laplacian"]
Seed: TypeAlias = int | np.random.Generator | None


def draw_noise(
    shape: tuple[int, ...], noise: float, kind: NoiseKind, rng: np.random.Generator
) -> FloatArray:
    """Draw noise of mean zero, see the module's table for the meaning of `noise`."""
    if not (np.isfinite(noise) and noise >= 0):
        raise ValueError(
            f"`noise` must be a finite number >= 0; got {noise}. Use 0 for clean rows."
        )
    if kind == "gaussian":
        return rng.normal(scale=noise, size=shape)
    if kind == "laplacian":
        return rng.laplace(scale=noise / np.sqrt(2), size=shape)
    if kind == "uniform":
        return rng.uniform(-noise, noise, size=shape)
    raise ValueError(f"`noise_kind` must be one of {get_args(NoiseKind)}; got {kind!r}.")

"""The way back of a model in plain arrays, for those who run it elsewhere: in a web page, say."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class KernelDescription:
    """Everything that ``inverse_transform`` of a kernel regression depends on.

    With ``s_i = ||(x - x_i) ∘ latent_scale||² / h_i²`` the way back is the local polynomial
    regression of ``degree`` with weights ``ω_i F(s_i)``; at degree 0 the weighted mean of rows.
    """

    latent: FloatArray  # (m, q) latent points x_i
    data: FloatArray  # (m, D) the rows they carry; NaN where an entry takes no part
    weights: FloatArray  # (m,) ω_i
    widths: FloatArray | None  # (m,) h_i, or None if all are 1
    kernel: str  # name of F in `twofold.kernels`
    degree: int | str  # 0, 1, 2 or "2-axes"
    cutoff: float  # weights below this, relative to the largest, are left out
    latent_scale: FloatArray  # (q,) factors from latent units to those of the kernel

    def in_order(self, order: IntArray) -> Self:
        """Return the same with references in another order."""
        return replace(
            self,
            latent=self.latent[order],
            data=self.data[order],
            weights=self.weights[order],
            widths=None if self.widths is None else self.widths[order],
        )


@dataclass(frozen=True, eq=False)
class NearestMeans(KernelDescription):
    """A mean of the nearest references; the kernel is only that of the density.

        f(x) = Σ_{j ∈ N_K(x)} ω_j y_j / Σ_{j ∈ N_K(x)} ω_j

    over the K nearest latent points, entries that are missing left out. Where the map has parts of
    their own, the K are those of the part that the nearest point belongs to.
    """

    n_neighbors: int = 1
    groups: IntArray | None = None  # (m,) the part of the map of each reference, None for one map
    observed: BoolArray | None = None  # (m, D) which entries of data were given; None for all

    @property
    def rows(self) -> FloatArray:
        """The rows (m, D) as they were given, NaN where an entry was filled."""
        return self.data if self.observed is None else np.where(self.observed, self.data, np.nan)

    def in_order(self, order: IntArray) -> Self:
        """Return the same with references in another order."""
        return replace(
            super().in_order(order),
            groups=None if self.groups is None else self.groups[order],
            observed=None if self.observed is None else self.observed[order],
        )

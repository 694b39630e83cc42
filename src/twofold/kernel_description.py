"""A kernel regression in plain arrays, for those who run it elsewhere: in a web page, say."""

from __future__ import annotations

from dataclasses import dataclass, replace

from twofold.array_types import FloatArray


@dataclass(frozen=True, eq=False)
class KernelDescription:
    """Everything that ``inverse_transform`` of a kernel regression depends on.

    With ``s_i = ||(x - x_i) ∘ latent_scale||² / h_i²`` the way back is the local polynomial
    regression of ``degree`` with weights ``ω_i F(s_i)``; at degree 0 the weighted mean of rows.

    Attributes
    ----------
    latent : (m, q) latent points x_i
    data : (m, D) the rows they carry; NaN where an entry is missing and takes no part
    weights : (m,) ω_i
    widths : (m,) h_i, or None if all are 1
    kernel : name of F in :mod:`twofold.kernels`
    degree : 0, 1, 2 or "2-axes"
    tolerance : weights below this, relative to the largest, are left out
    latent_scale : (q,) factors from latent units to those of the kernel
    """

    latent: FloatArray
    data: FloatArray
    weights: FloatArray
    widths: FloatArray | None
    kernel: str
    degree: int | str
    tolerance: float
    latent_scale: FloatArray

    def with_data(self, data: FloatArray) -> KernelDescription:
        """Return the same regression of other rows."""
        return replace(self, data=data)

"""Rows as the products of tiles want them: padded, in one of the precisions of `sums`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from twofold.engine.gpu.library import load_torch
from twofold.kernels import Kernel

if TYPE_CHECKING:
    from torch import Tensor

# Columns that a program sums up at a time; more would not fit the registers.
MOST_COLUMNS = 64
# Factors in float16 go up to 2 to this power; what is smaller by 2 to the 25 keeps its last bits.
LARGEST_EXPONENT = 13


@dataclass(frozen=True)
class Columns:
    """Rows (padded, COLUMNS) as the products want them, and their mass in float32.

    All are multiplied by ``scale``, a power of two that lets float16 hold them.
    """

    high: Tensor
    low: Tensor
    mass: Tensor
    scale: Tensor
    width: int  # before columns were padded

    @property
    def n_columns(self) -> int:
        """Columns, padded."""
        return int(self.high.shape[1])

    @property
    def at_a_time(self) -> int:
        """Columns that a program takes on."""
        return min(self.n_columns, MOST_COLUMNS)


def tile_precision(kernel: Kernel, precision: str) -> str:
    """Return the products that give "fp32", "tf32" or "bf16" for a kernel."""
    return "tf32x3" if precision == "fp32" and not kernel.is_exponential else precision


def columns_for(V: Tensor, precision: str) -> Columns:
    """Lay out rows V (padded, C) for the products, the last column apart as the mass."""
    torch = load_torch()
    width = V.shape[1] - 1
    n_columns = 16
    while n_columns < min(width, MOST_COLUMNS):
        n_columns *= 2
    n_columns = n_columns if width <= MOST_COLUMNS else -(-width // MOST_COLUMNS) * MOST_COLUMNS
    scale = torch.ones((), device=V.device)
    if precision == "fp32":
        scale = torch.exp2(LARGEST_EXPONENT - torch.frexp(V.abs().amax().float())[1].float())
    wide = torch.zeros((len(V), n_columns), device=V.device)
    wide[:, :width] = V[:, :-1] * scale
    mass = (V[:, -1] * scale).float().contiguous()
    if precision.startswith("tf32"):
        return Columns(wide, wide, mass, scale, width)
    if precision == "bf16":
        high = wide.bfloat16()
        return Columns(high, high, mass, scale, width)
    high = wide.half()
    return Columns(high, (wide - high.float()).half(), mass, scale, width)

"""What a kernel that is made from all rows at once has to offer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol, Self

from twofold.array_types import FloatArray
from twofold.features.data_kernels import check_rows


class KernelValues(Protocol):
    """Kernel values of rows that were not among those the kernel was made from."""

    def values(self, Z: FloatArray) -> FloatArray:
        """Return the values (n, m) of rows Z (n, D), none depending on another."""
        ...


class DataDependentKernel(ABC):
    """A kernel that is made from all rows at once."""

    is_precomputed: ClassVar[bool] = False
    # Matrices as large as the kernel matrix that are made on the way to it.
    extra_matrices: ClassVar[int] = 1

    def fitted(self, Y: FloatArray) -> Self:
        """Return the kernel ready for rows Y (m, D): numbers chosen, Y checked."""
        check_rows(Y)
        return self

    @abstractmethod
    def matrix(self, Y: FloatArray) -> FloatArray:
        """Return the kernel matrix (m, m) of rows Y (m, D), not centred."""

    def extended(self, Y: FloatArray) -> KernelValues | None:
        """Return the kernel of any row with rows Y (m, D), None where there is no recipe."""
        return None

    def has_recipe(self) -> bool:
        """Say whether new rows have kernel values."""
        return type(self).extended is not DataDependentKernel.extended

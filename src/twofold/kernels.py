"""Radial density kernels of the latent space, and the facts about them.

A kernel is ``K(x_i - x_j) = F(s)`` with ``s = ||x_i - x_j||²``, unit bandwidth and ``F(0) = 1``:
normalising constants cancel in every regression (Klanke 2007, eqs. 4.13-4.15, 4.40, 5.31).

============= ================ =================== ======== ===========================
name          F(s)             F'(s)               support  smoothness of K(x)
============= ================ =================== ======== ===========================
gaussian      exp(-s/2)        -F/2                all      infinite
epanechnikov  [1-s]₊           -1 for s < 1        s < 1    C⁰: evaluation only
quartic       [1-s]₊²          -2[1-s]₊            s < 1    C¹
triweight     [1-s]₊³          -3[1-s]₊²           s < 1    C²
============= ================ =================== ======== ===========================

Any other radial kernel is one :class:`Kernel` with two numpy functions:

>>> import numpy as np
>>> from twofold.kernels import Kernel
>>> cauchy = Kernel("cauchy", lambda s: 1 / (1 + s), lambda s: -1 / (1 + s) ** 2)
>>> float(cauchy.value(np.array([1.0]))[0])
0.5

Those of the library by name, and as objects:

>>> from twofold.kernels import EPANECHNIKOV, GAUSSIAN, KERNELS, QUARTIC, TRIWEIGHT
>>> KERNELS["gaussian"] is GAUSSIAN
True
>>> [kernel.smoothness for kernel in (EPANECHNIKOV, QUARTIC, TRIWEIGHT)]
[0, 1, 2]
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from twofold.array_types import FloatArray

__all__ = ["EPANECHNIKOV", "GAUSSIAN", "KERNELS", "QUARTIC", "TRIWEIGHT", "Kernel", "get_kernel"]
__dir__ = __all__.copy  # without numpy and other imports

INFINITELY_SMOOTH = 1_000


@dataclass(frozen=True)
class Kernel:
    """A radial kernel ``F(s)`` of the squared latent distance ``s``.

    Parameters
    ----------
    name : str
        Its name in messages.
    value, derivative : callable
        ``F(s)`` and ``F'(s)``, elementwise on an array, in the array's dtype.
    support : float
        ``F`` is zero from this ``s`` on; infinite by default.
    smoothness : int
        How often ``K(x)`` is continuously differentiable; training needs at least 1.
    is_exponential : bool
        ``F(s + t) = F(s) F(t)``: only then may a row of weights be rescaled to keep it from
        underflowing without changing the regression.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.kernels import Kernel
    >>> student = Kernel("student", lambda s: (1 + s) ** -3, lambda s: -3 * (1 + s) ** -4)
    >>> student.value(np.array([0.0, 1.0]))
    array([1.   , 0.125])
    """

    name: str
    value: Callable[[FloatArray], FloatArray]
    derivative: Callable[[FloatArray], FloatArray]
    support: float = math.inf
    smoothness: int = INFINITELY_SMOOTH
    is_exponential: bool = False

    def weigh(self, s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``F(s)`` and ``-2 F'(s)``; the memory of ``s`` may be used for the answer."""
        if self is GAUSSIAN:
            np.multiply(s, -0.5, out=s)
            np.exp(s, out=s)
            return s, s  # -2 F' = F: the reason why the Gaussian is cheap
        return self.value(s), -2 * self.derivative(s)

    def reach(self, cutoff: float) -> float:
        """Return the ``s`` beyond which a reference may be left out.

        For an exponential kernel a weight below ``cutoff`` relative to the row's largest may
        be; a kernel with a heavier tail has no such bound, so all of its support counts.
        """
        return math.log(cutoff) / self._first_slope if self.is_exponential else self.support

    @cached_property
    def _first_slope(self) -> float:
        return float(self.derivative(np.zeros(1))[0])

    def half_width(self) -> float:
        """Return the distance at which half of the weight is gone."""
        low, high = 0.0, 1.0
        # Doubled until half is gone, for nobody says how wide a user's kernel is; then bisected.
        while self._at(high) >= 0.5 and high < 1e12:
            high *= 2
        while high - low > 1e-6 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._at(middle) >= 0.5 else (low, middle)
        return math.sqrt(high)

    def _at(self, s: float) -> float:
        return float(self.value(np.array([s]))[0])

    def __reduce__(self) -> tuple[Any, ...]:
        # By name: functions of no name cannot be pickled, and a copy must stay the kernel itself.
        if KERNELS.get(self.name) is self:
            return get_kernel, (self.name,)
        return Kernel, tuple(getattr(self, field.name) for field in fields(self))


def _remainder(s: FloatArray) -> FloatArray:
    return np.maximum(1 - s, 0)


GAUSSIAN = Kernel(
    "gaussian",
    value=lambda s: np.exp(-0.5 * s),
    derivative=lambda s: -0.5 * np.exp(-0.5 * s),
    is_exponential=True,
)
EPANECHNIKOV = Kernel(
    "epanechnikov",
    value=_remainder,
    derivative=lambda s: -(s < 1).astype(s.dtype),
    support=1.0,
    smoothness=0,
)
QUARTIC = Kernel(
    "quartic",
    value=lambda s: _remainder(s) ** 2,
    derivative=lambda s: -2 * _remainder(s),
    support=1.0,
    smoothness=1,
)
TRIWEIGHT = Kernel(
    "triweight",
    # A power of 3 goes through logarithms: four times as slow as the square times one more.
    value=lambda s: _remainder(s) ** 2 * _remainder(s),
    derivative=lambda s: -3 * _remainder(s) ** 2,
    support=1.0,
    smoothness=2,
)

KERNELS = {kernel.name: kernel for kernel in (GAUSSIAN, EPANECHNIKOV, QUARTIC, TRIWEIGHT)}


def get_kernel(kernel: str | Kernel, *, training: bool = False) -> Kernel:
    """Return the kernel of that name, or the kernel itself, checked for its use.

    Raises ValueError for an unknown name, and for a kernel with a kink where gradients are needed.

    Examples
    --------
    >>> from twofold.kernels import KERNELS, get_kernel
    >>> sorted(KERNELS)
    ['epanechnikov', 'gaussian', 'quartic', 'triweight']
    >>> get_kernel("quartic").support
    1.0
    """
    usable = [name for name, known in KERNELS.items() if known.smoothness >= training]
    expected = f"`kernel` must be one of {sorted(usable)} or a twofold.kernels.Kernel"
    if isinstance(kernel, str):
        if kernel not in KERNELS:
            raise ValueError(f"{expected}; got {kernel!r}.")
        return get_kernel(KERNELS[kernel], training=training)
    if not isinstance(kernel, Kernel):
        raise TypeError(f"{expected}; got {type(kernel).__name__}.")
    if KERNELS.get(kernel.name) is not kernel:
        _check_kernel(kernel)
    if training and kernel.smoothness < 1:
        raise ValueError(
            f"The {kernel.name} kernel has a kink at the edge of its support, so latent points "
            "cannot be trained with it. Use 'quartic' (or 'triweight', 'gaussian')."
        )
    return kernel


def _check_kernel(kernel: Kernel) -> None:
    """Try a kernel of the user's at a few places; say what is wrong with it."""
    s = np.linspace(0.05, 0.9, 7) * min(kernel.support, 2.0)
    step = 1e-6
    try:
        start = float(kernel.value(np.zeros(1))[0])
        found = np.asarray(kernel.derivative(s), dtype=float)
        slope = (kernel.value(s + step) - kernel.value(s - step)) / (2 * step)
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"`value` and `derivative` of the kernel {kernel.name!r} must take an array and return "
            f"an array of its shape, elementwise; trying them raised: {error}"
        ) from error
    if not abs(start - 1) < 1e-6:
        raise ValueError(f"The kernel {kernel.name!r} must have F(0) = 1; got {start}.")
    values = np.asarray(kernel.value(s), dtype=float)
    if not ((values >= 0).all() and (np.diff(values) <= 1e-12).all()):
        raise ValueError(
            f"The kernel {kernel.name!r} must not be negative and must not rise with the distance; "
            f"at s = {s.round(2)} it is {values.round(4)}."
        )
    if found.shape != s.shape or not np.allclose(found, slope, atol=1e-4, rtol=1e-3):
        raise ValueError(
            f"`derivative` of the kernel {kernel.name!r} is not the derivative of its `value` by "
            f"the squared distance s: at s = {s[2]:.3g} it is {found.ravel()[2]:.4g}, "
            f"expected {slope[2]:.4g}."
        )

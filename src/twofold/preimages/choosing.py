"""Which pre-image method goes with which kernel, and why.

==============  =========  =====================================================================
kernel          method     why
==============  =========  =====================================================================
linear, l1      Exact      weighted means and medians are the minimum
any other       Learned    the least squared error of rows given their coordinates
==============  =========  =====================================================================

The methods that minimise a distance in feature space (FixedPoint, Gradient and others) are for
those who want just that: with few components feature space holds little of what tells rows apart,
its distances have few minima, and many rows share a pre-image. A sinusoid in two components comes
back with an error of 0.95 by Gradient and of 0.09 by Learned, digits in 16 with 1.11 and 0.72.
"""

from __future__ import annotations

from typing import Any

from twofold.features import L1, Linear
from twofold.preimages.constrained import Constrained
from twofold.preimages.direct import Direct
from twofold.preimages.exact import Exact
from twofold.preimages.fixed_point import FixedPoint
from twofold.preimages.gradient import Gradient
from twofold.preimages.learned import Learned
from twofold.preimages.linear_combination import LinearCombination
from twofold.preimages.localise import Localise
from twofold.preimages.medians import Medians
from twofold.preimages.points import PreImageMethod
from twofold.preimages.polynomial import PolynomialClosedForm

METHODS: dict[str, type[PreImageMethod]] = {
    method.name: method
    for method in (
        Exact,
        FixedPoint,
        Gradient,
        Medians,
        Localise,
        Direct,
        PolynomialClosedForm,
        LinearCombination,
        Learned,
        Constrained,
    )
}


def choose(kernel: Any, D: int, n: int) -> tuple[PreImageMethod, str]:
    """Return the method that suits a kernel of n training rows with D columns, and why.

    >>> from twofold.features import RBF
    >>> from twofold.preimages import choose
    >>> method, why = choose(RBF(0.5), 16, 1000)
    >>> method.name
    'learned'
    """
    if isinstance(kernel, (Linear, L1)):
        return _named(Exact(), kernel)
    return _named(Learned(), kernel)


def get_method(
    spec: str | PreImageMethod, kernel: Any, D: int, n: int
) -> tuple[PreImageMethod, str]:
    """Return the method of a name ("auto" to choose one), or the method itself, and why it fits.

    Raises ValueError for an unknown name or a kernel it does not fit, TypeError for anything else.
    """
    expected = f"`preimage` must be 'auto', one of {sorted(METHODS)}, or a method such as Learned()"
    if isinstance(spec, str):
        if spec == "auto":
            return choose(kernel, D, n)
        if spec not in METHODS:
            raise ValueError(f"{expected}; got {spec!r}.")
        method = METHODS[spec]()
    elif isinstance(spec, PreImageMethod):
        method = spec
    else:
        raise TypeError(f"{expected}; got {spec!r}.")
    method.check(kernel)
    return _named(method, kernel)


def _named(method: PreImageMethod, kernel: Any) -> tuple[PreImageMethod, str]:
    return method, f"{method.name}: {method.fits(kernel)}"

"""Losses of a residual ``r = f - y``, row by row, unreduced (Klanke 2007, sections 5.1.1, 5.1.2).

A loss is any object with ``value_and_slope(R)``: for residuals (rows, D) it returns the loss of
each row (rows,) and its derivative by the residual (rows, D), both in the dtype of R. Missing
entries arrive as residual zero and must cost nothing. A loss that is a frozen dataclass can be
saved with a model.

=========================  ============================================  =======================
loss                       L(r)                                          dL/dr
=========================  ============================================  =======================
Squared (4.26)             ||r||²                                        2 r
Huber (5.1)                Σ_m r_m²/(2δ) for |r_m| < δ, |r_m|-δ/2 above  clip(r_m/δ, -1, 1)
EpsilonInsensitive (5.3)   Σ_m [|r_m|-ε]₊²                               2 [|r_m|-ε]₊ sign r_m
the same, per vector (5.4) [||r||-ε]₊²                                   2 [||r||-ε]₊ r/||r||
=========================  ============================================  =======================

Both also exist for the length of a residual, ``per="vector"``, and the ε-insensitive one without
the square, ``order=1`` (Kramer 2013, 5.8), which UNN takes. The slope of (5.3) as printed in (B.15)
has a wrong sign below -ε; it is 2(r + ε) there.

Those of the library also take residuals that are tensors of torch, on any device.

What else a loss may have, and what replaces it where it does not, is up to three functions:
:func:`in_unit`, :func:`rows_of` and :func:`is_rotation_invariant`.

>>> import numpy as np
>>> from twofold.losses import Huber
>>> Huber(delta=0.5).value_and_slope(np.array([[0.1, -2.0]]))[0].round(3)
array([1.76])
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, cast

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.checks.parameters import check_choice, is_number

__all__ = [
    "EpsilonInsensitive",
    "Huber",
    "Loss",
    "Squared",
    "get_loss",
    "in_unit",
    "is_rotation_invariant",
    "rows_of",
]
__dir__ = __all__.copy  # without numpy and other imports

# Beyond 1.345 standard deviations Huber's loss is linear: 95 % as efficient as least squares under
# normal noise. The median of |r| is 1/1.4826 of the standard deviation of normal residuals.
_HUBER_REACH = 1.345 * 1.4826


class Loss(Protocol):
    """What a loss must provide.

    Examples
    --------
    >>> import numpy as np
    >>> class Quartic:
    ...     def value_and_slope(self, R):
    ...         return (R**4).sum(axis=1), 4 * R**3
    >>> from twofold.losses import get_loss
    >>> get_loss(Quartic()).value_and_slope(np.array([[2.0]]))[0]
    array([16.])
    """

    def value_and_slope(self, R: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the loss of each row and its derivative by the residual."""
        ...


@dataclass(frozen=True)
class Squared:
    """``L(r) = ||r||²`` (Klanke 2007, eq. 4.26).

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.losses import Squared
    >>> Squared().value_and_slope(np.array([[3.0, 4.0]]))[0]
    array([25.])
    """

    is_rotation_invariant: ClassVar[bool] = True

    def value_and_slope(self, R: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``||r||²`` and ``2 r``."""
        return (R * R).sum(axis=1), 2 * R

    def in_unit(self, unit: float) -> tuple[Squared, float]:
        """Return the loss for residuals measured in `unit`, and its worth, ``unit²``."""
        return self, _squared(unit)


@dataclass(frozen=True)
class Huber:
    """Quadratic near zero and linear beyond (Klanke 2007, eq. 5.1).

    Parameters
    ----------
    delta : float or None
        The residual at which it turns from quadratic to linear, in the unit of the data. None takes
        it from a robust scale of the residuals, found during the fit, see :meth:`fitted`.
    trim : float or None
        Leave rows out whose error exceeds this multiple of the median one, and fit again; 4 is a
        good choice where whole rows may be wrong. None keeps every row.
    per : {"component", "vector"}
        Whether it is the loss of each component of a residual, or of its length.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.losses import Huber
    >>> Huber(delta=1.0).value_and_slope(np.array([[0.5], [10.0]]))[0]
    array([0.125, 9.5  ])
    """

    delta: float | None = None
    trim: float | None = None
    per: Literal["component", "vector"] = "component"

    def __post_init__(self) -> None:
        check_choice("per", self.per, ("component", "vector"))
        if self.trim is not None and not (is_number(self.trim) and 1 < self.trim < math.inf):
            raise ValueError(
                "`trim` must be a number above 1, or None to let every row take part; "
                f"got {self.trim!r}."
            )
        if self.delta is None:
            return
        if not is_number(self.delta) or not 0 < self.delta < math.inf:
            raise ValueError(
                "`delta` must be a positive number, or None to find it during the fit; "
                f"got {self.delta!r}."
            )
        object.__setattr__(self, "delta", float(self.delta))  # a numpy scalar would widen float32

    @property
    def is_rotation_invariant(self) -> bool:
        """Whether only the lengths of the residuals count."""
        return self.per == "vector"

    def value_and_slope(self, R: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``Σ_m`` of ``r²/(2δ)`` or ``|r|-δ/2``, and ``clip(r/δ, -1, 1)``."""
        if self.delta is None:
            raise ValueError(
                "This Huber loss has no `delta` yet. Give one, Huber(delta=...), or take the loss "
                "that `fitted` makes from residuals."
            )
        if self.per == "vector":
            length = _lengths(R)
            inner = length.clip(max=self.delta)
            values = (length - inner + 0.5 * inner * inner / self.delta)[:, 0]
            return values, R / length.clip(min=self.delta)
        inner = R.clip(-self.delta, self.delta)
        slope = inner / self.delta
        return (abs(R - inner) + 0.5 * inner * slope).sum(axis=1), slope

    def fitted(self, R: FloatArray, observed: BoolArray | None = None, unit: float = 1.0) -> Huber:
        """Return the loss with ``δ = 1.345 × 1.4826 × median |r|``; itself where δ was given.

        The median goes over ``observed`` entries (n, D) of the residuals R (n, D), or lengths,
        other than zero, so that rows reproduced exactly do not make it zero. Without any other
        residual ``δ`` is 1e-6 of ``unit``, the size of the data.
        """
        if self.delta is not None:
            return self
        if self.per == "vector":
            sizes = _lengths(R if observed is None else np.where(observed, R, 0))
        else:
            sizes = np.abs(R if observed is None else R[observed])
        sizes = sizes[sizes > 0]
        if not sizes.size:
            return replace(self, delta=1e-6 * unit)
        return replace(self, delta=_HUBER_REACH * float(np.median(sizes)))

    def in_unit(self, unit: float) -> tuple[Huber, float]:
        """Return the loss for residuals measured in `unit`, and its worth, ``unit``."""
        delta = None if self.delta is None else self.delta / unit
        return replace(self, delta=delta), float(unit)


@dataclass(frozen=True, eq=False)
class EpsilonInsensitive:
    """No loss up to ``ε``; beyond it the excess or its square (Klanke 2007, eqs. 5.3, 5.4).

    Parameters
    ----------
    eps : float, (n,) or (n, D)
        The tolerance, in the unit of the data: one number, one per row, or, with
        ``per="component"``, one per entry.
    per : {"component", "vector"}
        Whether each component of a residual may be off by ``ε``, or its length.
    order : {2, 1}
        2 takes the square of what is beyond ``ε``, 1 what is beyond (Kramer 2013, eq. 5.8).

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.losses import EpsilonInsensitive
    >>> EpsilonInsensitive(1.0).value_and_slope(np.array([[0.5, -3.0]]))[0]
    array([4.])
    """

    eps: float | FloatArray
    per: Literal["component", "vector"] = "component"
    order: Literal[1, 2] = 2

    def __post_init__(self) -> None:
        check_choice("per", self.per, ("component", "vector"))
        if self.order not in (1, 2) or isinstance(self.order, bool):
            raise ValueError(f"`order` must be 1 or 2; got {self.order!r}.")
        try:
            eps = np.array(self.eps, dtype=float)
        except (TypeError, ValueError):
            eps = np.array(math.nan)
        if eps.ndim > 1 + (self.per == "component") or not ((eps >= 0) & (eps < math.inf)).all():
            came = f"an array {eps.shape} from {eps.min()} to {eps.max()}" if eps.ndim else self.eps
            raise ValueError(
                "`eps` must be a non-negative number, or an array of them: (n,) one per row, or "
                f"(n, D) one per entry with per='component'; got {came} with per={self.per!r}."
            )
        eps.flags.writeable = False
        object.__setattr__(self, "eps", eps if eps.ndim else float(eps))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EpsilonInsensitive):
            return NotImplemented
        same = (self.per, self.order) == (other.per, other.order)
        return same and np.array_equal(self.eps, other.eps)

    def __hash__(self) -> int:
        # Arrays have no hash; equal losses agree in this much.
        return hash((self.per, self.order, np.shape(self.eps)))

    @property
    def is_rotation_invariant(self) -> bool:
        """Whether only the lengths of the residuals count."""
        return self.per == "vector"

    def value_and_slope(self, R: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what exceeds ``ε``, or its square, and its derivative."""
        eps = self._eps_of(R)
        if self.per == "component":
            excess = R - R.clip(-eps, eps)
            if self.order == 1:
                return abs(excess).sum(axis=1), _signs(excess)
            return (excess * excess).sum(axis=1), 2 * excess
        length = _lengths(R)
        beyond = (length - eps).clip(min=0)
        divisor = length + (length == 0)
        if self.order == 1:
            return beyond[:, 0], _signs(beyond) / divisor * R
        return (beyond * beyond)[:, 0], 2 * beyond / divisor * R

    def at(self, numbers: IntArray) -> EpsilonInsensitive:
        """Return the loss of some rows, by their numbers."""
        if isinstance(self.eps, float):
            return self
        return replace(self, eps=self.eps[numbers])

    def in_unit(self, unit: float) -> tuple[EpsilonInsensitive, float]:
        """Return the loss for residuals measured in `unit`, and its worth: ``unit ** order``."""
        worth = float(unit) if self.order == 1 else _squared(unit)
        return replace(self, eps=self.eps / unit), worth

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise a ValueError unless there is an ``ε`` for each row, or entry, of that table."""
        given = np.shape(self.eps)
        if given != shape[: len(given)]:
            raise ValueError(
                f"`eps` of the loss has the shape {given}; expected {shape[: len(given)]} for "
                f"residuals of shape {shape}. Give one number, one per row or one per entry; "
                "twofold.losses.rows_of(loss, numbers) is the loss of some of the rows."
            )

    def _eps_of(self, R: FloatArray) -> Any:
        """Return the ε of each residual in a shape that fits R, in its dtype."""
        if isinstance(self.eps, float):
            return self.eps
        self.check_shape(R.shape)
        if not isinstance(R, np.ndarray):
            return R.new_tensor(self.eps if self.eps.ndim == 2 else self.eps[:, None])
        eps = self.eps.astype(R.dtype, copy=False)
        return eps if eps.ndim == 2 else eps[:, None]


def _lengths(R: FloatArray) -> FloatArray:
    squares: FloatArray = (R * R).sum(axis=1, keepdims=True)
    return squares**0.5


def _signs(R: FloatArray) -> Any:
    return np.sign(R) if isinstance(R, np.ndarray) else R.sign()


def _squared(unit: float) -> float:
    """Return the square of a unit, as far as a float goes."""
    return float(unit) ** 2 if 1e-150 < unit < 1e150 else (1e-300 if unit < 1 else 1e300)


@dataclass(frozen=True)
class _InUnit:
    """A user's loss for residuals measured in a unit: ``L'(r') = L(unit × r')``."""

    loss: Loss
    unit: float

    @property
    def is_rotation_invariant(self) -> bool:
        return is_rotation_invariant(self.loss)

    def value_and_slope(self, R: FloatArray) -> tuple[FloatArray, FloatArray]:
        losses, slope = self.loss.value_and_slope(self.unit * R)
        return np.asarray(losses, dtype=R.dtype), self.unit * np.asarray(slope, dtype=R.dtype)

    def at(self, numbers: IntArray) -> _InUnit:
        return _InUnit(rows_of(self.loss, numbers), self.unit)


def in_unit(loss: Loss, unit: float) -> tuple[Loss, float]:
    """Return the loss ``L'`` for residuals measured in `unit`, and the number E it is worth.

    ``L(unit × r') = E × L'(r')``: a fit may work in a unit that suits its numbers and report
    the objective in the user's. A loss without a method of this name is wrapped, with E = 1.

    Examples
    --------
    >>> from twofold.losses import Huber, in_unit
    >>> in_unit(Huber(delta=2.0), 4.0)[0].delta
    0.5
    """
    own = getattr(loss, "in_unit", None)
    if own is not None:
        return cast("tuple[Loss, float]", own(unit))
    return _InUnit(loss, float(unit)), 1.0


def rows_of(loss: Loss, numbers: IntArray) -> Loss:
    """Return the loss of some rows: ``loss.at(numbers)``, or the loss itself if it has no ``at``.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.losses import EpsilonInsensitive, rows_of
    >>> rows_of(EpsilonInsensitive(np.array([0.1, 0.2, 0.3]), per="vector"), np.array([0, 2])).eps
    array([0.1, 0.3])
    """
    own = getattr(loss, "at", None)
    return loss if own is None else cast(Loss, own(numbers))


def is_rotation_invariant(loss: Loss) -> bool:
    """Return whether the loss stays the same when all residuals are rotated.

    Examples
    --------
    >>> from twofold.losses import Huber, Squared, is_rotation_invariant
    >>> is_rotation_invariant(Squared()), is_rotation_invariant(Huber(1.0))
    (True, False)
    """
    fact = getattr(loss, "is_rotation_invariant", False)
    return isinstance(fact, bool | np.bool_) and bool(fact)


_NAMED: dict[str, Loss] = {
    "squared": Squared(),
    "huber": Huber(),
    "row_huber": Huber(per="vector"),
    "absolute": EpsilonInsensitive(0.0, per="vector", order=1),
}
_EXPECTED = (
    f"`loss` must be one of {', '.join(map(repr, _NAMED))} or an object of twofold.losses, such as "
    "Huber(delta) or EpsilonInsensitive(eps), or one with a method value_and_slope(R)"
)


def get_loss(loss: object, shape: tuple[int, int] | None = None) -> Loss:
    """Return the loss of that name, or the object itself, which is tried out if it is your own.

    Parameters
    ----------
    loss : str or Loss
        "squared", "huber", "row_huber" (of the length of a residual), "absolute" (that length),
        or an object with ``value_and_slope``.
    shape : (n, D), optional
        The shape of the data, for losses with a parameter for each row or each component.

    Raises
    ------
    ValueError, TypeError
        For an unknown name or a loss that breaks a rule of the module docstring, and for anything
        that is not a loss.

    Examples
    --------
    >>> from twofold.losses import get_loss
    >>> get_loss("huber")
    Huber(delta=None, trim=None, per='component')
    """
    if isinstance(loss, str):
        return _named(loss)
    if isinstance(loss, type) and hasattr(loss, "value_and_slope"):
        raise TypeError(
            f"{_EXPECTED}; got the class {loss.__name__}. Call it: loss={loss.__name__}(...)."
        )
    if not callable(getattr(loss, "value_and_slope", None)):
        raise TypeError(f"{_EXPECTED}; got {type(loss).__name__}.")
    if type(loss) is EpsilonInsensitive and shape is not None:
        loss.check_shape(shape)
    known = cast(Loss, loss)
    if type(loss) not in (Squared, Huber, EpsilonInsensitive):
        n, D = (2, 3) if shape is None else shape
        # Imported at first use: it asks this module what a loss may have.
        from twofold.losses.trial import try_out

        try_out(known, min(n, 2), D)
    return known


def _named(name: str) -> Loss:
    if name in _NAMED:
        return _NAMED[name]
    if name.startswith("eps") or "insensitive" in name:
        raise ValueError(
            f"The ε-insensitive loss needs an ε, in the unit of the data; got only {name!r}. Pass "
            "loss=twofold.losses.EpsilonInsensitive(eps=...)."
        )
    raise ValueError(f"{_EXPECTED}; got {name!r}.")

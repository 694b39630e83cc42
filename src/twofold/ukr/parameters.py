"""Checks of UKR's parameters: each by itself, and which go together.

Everything combines with everything, except:

- an ε-insensitive loss with cross-validation: inside the tube a wiggly and a smooth manifold cost
  the same, so nothing smooths (Klanke 2007, section 5.1.2);
- the smoothest manifold without an ε;
- a loss of single components in feature space, which has no components that mean anything;
- landmarks for a precomputed kernel: their kernel values are not in the matrix.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

from twofold.engine import DEGREES, check_tolerance
from twofold.engine.threads import count_threads
from twofold.features import DataKernel, get_data_kernel
from twofold.kernels import get_kernel
from twofold.landmarks import Landmarks, get_landmarks
from twofold.losses import EpsilonInsensitive, Loss, get_loss, is_rotation_invariant
from twofold.regularization import (
    LeaveKOut,
    LeaveOneOut,
    Regularization,
    Smoothest,
    get_regularization,
)

OPTIMIZERS = ("auto", "lbfgs", "rprop", "rprop-", "irprop-", "irprop+")


def check_parameters(parameters: dict[str, Any]) -> None:
    """Raise if a constructor parameter has a value that no data could make right."""
    given = dict(parameters)
    if not (isinstance(given["n_components"], str) and given["n_components"] == "auto"):
        _check_number("n_components", given["n_components"], numbers.Integral, 1)
    _check_number("max_iter", given["max_iter"], numbers.Integral, 0)
    _check_number("tol", given["tol"], numbers.Real, 0)
    check_tolerance(given["tolerance"])
    count_threads(given["n_jobs"])
    get_kernel(given["kernel"], training=True)
    for name, allowed in (("optimizer", OPTIMIZERS), ("degree", DEGREES)):
        if not _is_one_of(given[name], allowed):
            raise ValueError(f"`{name}` must be one of {allowed}; got {given[name]!r}.")
    if given["verbose"] not in (True, False, "auto"):
        raise ValueError(f"`verbose` must be True, False or 'auto'; got {given['verbose']!r}.")
    _check_callbacks(given["callbacks"])
    kernel = given["data_kernel"]
    if given["n_components"] == "auto" and kernel is not None:
        raise ValueError(
            "`n_components` = 'auto' looks at the rows themselves and cannot see them through a "
            "`data_kernel`; give a number."
        )
    check_combination(
        get_loss(given["loss"]),
        get_regularization(given["regularization"]),
        None if kernel is None else get_data_kernel(kernel),
        get_landmarks(given["landmarks"]),
    )


def _is_one_of(value: object, allowed: tuple[object, ...]) -> bool:
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        value = int(value)
    return any(type(value) is type(choice) and value == choice for choice in allowed)


def _check_number(name: str, value: Any, kind: Any, least: int) -> None:
    if not isinstance(value, kind) or isinstance(value, bool) or not value >= least:
        noun = "an integer" if kind is numbers.Integral else "a number"
        raise ValueError(f"`{name}` must be {noun} of at least {least}; got {value!r}.")


def _check_callbacks(callbacks: Any) -> None:
    if not isinstance(callbacks, Iterable) or not all(map(callable, callbacks)):
        raise ValueError(
            f"`callbacks` must be a sequence of functions, e.g. [print]; got {callbacks!r}."
        )


def check_combination(
    loss: Loss,
    regularization: Regularization,
    data_kernel: DataKernel | None,
    landmarks: Landmarks | None,
) -> None:
    """Raise if the parameters of a model make no sense together."""
    is_tube = isinstance(loss, EpsilonInsensitive)
    if is_tube and isinstance(regularization, LeaveOneOut | LeaveKOut):
        raise ValueError(
            "An ε-insensitive loss does not go with cross-validation (regularization="
            f"{regularization!r}): within ε a wiggly manifold costs no more than a smooth one. Use "
            "regularization='smoothest', Extension(...) or Density(...)."
        )
    if isinstance(regularization, Smoothest) and not is_tube:
        raise ValueError(
            "regularization='smoothest' looks for the smoothest manifold within ε of every row and "
            f"needs loss=EpsilonInsensitive(eps) of twofold.losses; got loss={loss!r}."
        )
    if data_kernel is not None and not is_rotation_invariant(loss):
        raise ValueError(
            f"The loss {loss!r} looks at single components, and in the feature space of a "
            "`data_kernel` these mean nothing. Use loss='squared' or EpsilonInsensitive(eps, "
            "per='vector'), or leave `data_kernel` out."
        )
    if data_kernel is not None and data_kernel.is_precomputed and landmarks is not None:
        raise ValueError(
            "`landmarks` need kernel values that a precomputed matrix does not hold. Pass the "
            "kernel as a function of rows, or leave `landmarks` out."
        )

"""What of UKR a GPU does, and which part of a fit stays there; knows neither torch nor how.

Sums over pairs of rows go there for every kernel of the library, local polynomials for up to three
latent dimensions: the engine sends them. What is cross-validated by a loss of the library and
minimised by L-BFGS stays there as a whole, so that no row travels while it is trained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from twofold.engine.cells import GRIDDED
from twofold.engine.sums import MOST_FITTED_AXES
from twofold.kernels import KERNELS, Kernel
from twofold.losses import EpsilonInsensitive, Huber, Loss, Squared
from twofold.optimize import Journal
from twofold.regularization import LeaveKOut, LeaveOneOut
from twofold.ukr.objective import Problem
from twofold.ukr.surface import Surface

if TYPE_CHECKING:
    from twofold.ukr.training import Training


def beyond_gpu(degree: int | str, q: int, kernel: Kernel) -> str:
    """Name what of a problem has sums that a device cannot do; empty if there is nothing."""
    if degree != 0 and q > MOST_FITTED_AXES:
        return f"degree={degree!r} in {q} latent dimensions (at most {MOST_FITTED_AXES})"
    return "" if _is_of_the_library(kernel) else f"the kernel {kernel.name!r}"


def is_summed_on_device(problem: Problem) -> bool:
    """Say whether the error of a problem, and its gradient, can stay on a device.

    That a device has the sums was seen to when the problem was posed for it.
    """
    return problem.engine.device != "cpu" and _is_known(problem.loss)


def is_trained_on_device(problem: Problem, training: Training) -> bool:
    """Say whether a problem is minimised on a device, from the first step to the last."""
    how = problem.regularization
    is_plain = isinstance(how, LeaveOneOut | LeaveKOut) and how.homotopy in ("auto", "none")
    if not is_plain or getattr(how, "border", 0.0) != 0:
        return False
    # A checkpoint keeps where a method stands as arrays.
    is_kept = type(training.journal) is not Journal
    return training.method == "lbfgs" and not is_kept and is_summed_on_device(problem)


def is_projected_on_device(surface: Surface, loss: Loss) -> bool:
    """Say whether many rows should be projected onto a surface on a device, and can be."""
    engine, q = surface.engine, surface.X.shape[1]
    if engine.device == "cpu" or surface.widths is not None or q > GRIDDED:
        return False
    return _is_of_the_library(engine.kernel) and _is_known(loss)


def _is_of_the_library(kernel: Kernel) -> bool:
    return KERNELS.get(kernel.name) is kernel


def _is_known(loss: Loss) -> bool:
    """Say whether a loss takes tensors and has no numbers for each row, which would travel."""
    return isinstance(loss, Squared | Huber | EpsilonInsensitive) and (
        np.ndim(getattr(loss, "eps", 0.0)) == 0
    )

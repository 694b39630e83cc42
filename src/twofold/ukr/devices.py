"""What of UKR a GPU can do; knows neither torch nor what is done there."""

from __future__ import annotations

from twofold.engine.cells import GRIDDED
from twofold.kernels import KERNELS, Kernel
from twofold.losses import Huber, Loss, Squared
from twofold.regularization import LeaveKOut, LeaveOneOut, Regularization
from twofold.ukr.objective import Problem
from twofold.ukr.surface import Surface


def beyond_gpu(
    regularization: Regularization, degree: int | str, loss: Loss, kernel: Kernel
) -> str:
    """Name what of a problem a device cannot do yet; empty if it can do all."""
    is_plain = isinstance(regularization, LeaveOneOut | LeaveKOut)
    if not is_plain or getattr(regularization, "border", 0.0) != 0:
        return f"regularization={regularization!r}"
    if getattr(regularization, "homotopy", "none") not in ("auto", "none"):
        return f"regularization={regularization!r}"
    if degree != 0:
        return f"degree={degree!r}"
    if not isinstance(loss, Squared | Huber):
        return f"loss={loss!r}"
    return "" if KERNELS.get(kernel.name) is kernel else f"the kernel {kernel.name!r}"


def is_for_device(problem: Problem) -> bool:
    """Say whether a problem can be solved on a device."""
    if problem.landmarks is not None:
        return False
    kernel, degree = problem.engine.kernel, problem.rows.degree
    return not beyond_gpu(problem.regularization, degree, problem.loss, kernel)


def is_projected_on_device(surface: Surface, loss: Loss) -> bool:
    """Say whether many rows are to be projected onto a surface on a device, and can be."""
    kernel, q = surface.engine.kernel, surface.X.shape[1]
    if surface.engine.device == "cpu" or surface.widths is not None or q > GRIDDED:
        return False
    return not beyond_gpu(LeaveOneOut(), surface.rows.degree, loss, kernel)

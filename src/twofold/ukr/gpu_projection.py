"""Projection of rows onto the manifold on a device: `twofold.ukr.projection` for tensors.

All rows advance together from all their starts, by damped steps with the Jacobian of the
regression, whose curvature is learned along the way (BFGS), as the rough searches of
`twofold.optimize.levenberg_marquardt` do. A step that leaves the domain is moved back onto its
border; one that does not lower the error is shortened. Starts much worse than the best of their
row are given up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from twofold.array_types import BoolArray, FloatArray
from twofold.engine.gpu.library import in_parts, load_torch
from twofold.engine.gpu.tiles import along_a_curve
from twofold.losses import Loss, in_unit
from twofold.optimize.levenberg_marquardt import (
    ADDED_CURVATURE,
    AFTER_ANY_DECREASE,
    AFTER_FAILURE,
    FIRST_ROUGH_DAMPING,
    LEAST_DAMPING,
    LEAST_SLACK,
    MOST_DAMPING,
    SLACK,
    SLACK_DECAY,
)
from twofold.ukr.projection import (
    BORDER_MARGIN,
    BORDER_STEPS,
    DECREASE_TOLERANCE,
    FARTHEST_BORDER,
    MAX_STEPS,
    N_NEAREST,
    N_STARTS,
    STEP_TOLERANCE,
)
from twofold.ukr.surface import Surface

if TYPE_CHECKING:
    from torch import Tensor

# Rows that advance together, by the memory of their derivatives; distances to starts at once.
MOST_NUMBERS, MOST_DISTANCES = 2**29, 2**28


def project_on_device(
    surface: Surface,
    Y: FloatArray,
    observed: BoolArray | None,
    loss: Loss,
    near: FloatArray | None = None,
) -> FloatArray:
    """Return the latent places (m, q) of rows Y (m, D), of which entries may be unobserved.

    Rows that are known to lie ``near`` places (m, q) are searched for from there alone.
    """
    if near is None:
        surface.prepare_projection()
    looking = _Looking(surface, in_unit(loss, surface.rows.unit)[0])
    q, width = surface.X.shape[1], surface.rows.V.shape[1]
    places = np.empty((len(Y), q), surface.rows.Y.dtype)

    def work(part: slice) -> None:
        some, known = surface.rows.scaled(Y[part]), None
        if observed is not None:
            known = looking.tensor(observed[part])
            some = np.where(observed[part], some, 0)
        rows = looking.tensor(some)
        if near is None:
            starts = _starts(looking, rows, known)
        else:
            starts = looking.tensor(near[part])[:, None]
        places[part] = _project_some(looking, rows, known, starts).cpu().numpy()

    in_parts(len(Y), max(1, MOST_NUMBERS // (N_STARTS * (1 + q) * width)), work)
    return places


class _Looking:
    """The surface on a device: what is seen at latent places."""

    def __init__(self, surface: Surface, loss: Loss) -> None:
        self.surface, self.loss, rows = surface, loss, surface.rows
        self.device, self.D = surface.engine.device, rows.n_features
        self.is_fitted = rows.degree != 0

    def tensor(self, array: FloatArray | BoolArray) -> Tensor:
        torch = load_torch()
        return torch.as_tensor(np.asarray(array), dtype=torch.float32, device=self.device)

    def at(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return f (m, D), its derivative (m, q, D), the density (m,) and its rise (m, q)."""
        torch = load_torch()
        # Starts are sorted once, and move little.
        A, shift, dA = self.surface.sums_tensor(X, slopes=True, is_sorted=True)
        D, of_columns = self.D, self.surface.rows.of_columns
        S = of_columns(A)
        safe = torch.where(S > 0, S, 1)
        f = A[:, :D] / safe
        J = dA[:, :, :D]
        if not self.is_fitted:  # a local fit is no ratio of sums
            J = (J - f[:, None] * of_columns(dA)) / safe[:, None]
        mass = A[:, -1]
        lowered = torch.exp(-0.5 * shift)  # only exponential kernels are shifted
        rise = dA[:, :, -1] / torch.where(mass > 0, mass, 1)[:, None]
        return f, J, lowered * mass / self.surface.total_weight, rise

    def inside(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return places, f, its derivative and the density there; places outside are moved in."""
        torch = load_torch()
        threshold = self.surface.threshold
        f, J, density, rise = self.at(X)
        for _ in range(BORDER_STEPS):
            out = torch.nonzero((density < threshold) & (density > 0))[:, 0]
            steepness = (rise[out] ** 2).sum(dim=1)
            lacking = torch.log(threshold / density[out]) + BORDER_MARGIN
            leads = lacking < FARTHEST_BORDER * self.surface.kernel_width * torch.sqrt(steepness)
            out, steepness, lacking = out[leads], steepness[leads], lacking[leads]
            if not len(out):
                break
            X = X.clone()
            X[out] += (lacking / steepness)[:, None] * rise[out]
            f[out], J[out], density[out], rise[out] = self.at(X[out])
        return X, f, J, density

    def errors(
        self, X: Tensor, Y: Tensor, known: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return places inside, errors (m,), gradients (m, q) and curvatures (m, q, q)."""
        torch = load_torch()
        X, f, J, density = self.inside(X)
        residual = f - Y if known is None else (f - Y) * known
        error, slope = self.loss.value_and_slope(residual)
        weights = torch.where(residual == 0, 0, slope / torch.where(residual == 0, 1, 2 * residual))
        if known is not None:
            weights = weights * known
        gradient = (J @ (slope / 2)[:, :, None])[:, :, 0]
        curvature = (J * weights[:, None]) @ J.transpose(1, 2)
        is_bad = (density < self.surface.threshold) | ~torch.isfinite(curvature).flatten(1).all(1)
        return X, torch.where(is_bad, torch.inf, error), gradient, curvature


def _project_some(looking: _Looking, Y: Tensor, known: Tensor | None, starts: Tensor) -> Tensor:
    """Return the best places (m, q) that rows Y (m, D) reach from starts (m, k, q)."""
    torch = load_torch()
    m, k, q = starts.shape
    width = looking.surface.kernel_width
    x = starts.reshape(-1, q)
    order = along_a_curve(x)
    x, owner = x[order], torch.div(order, k, rounding_mode="floor")
    x, error, gradient, H = looking.errors(x, Y[owner], None if known is None else known[owner])
    gradient, H = gradient * width, H * width**2
    damping = torch.full_like(error, FIRST_ROUGH_DAMPING)
    going = torch.arange(m * k, device=Y.device)
    for step_number in range(MAX_STEPS):
        going = going[damping[going] < MOST_DAMPING]
        # Starts that lag behind the best of their row, after a step each, have no part in the end.
        if step_number:
            slack = max(LEAST_SLACK, SLACK * SLACK_DECAY ** (step_number - 1))
            best = torch.full_like(Y[:, 0], torch.inf).scatter_reduce(0, owner, error, "amin")
            going = going[error[going] <= (1 + slack) * best[owner[going]]]
        if not len(going):
            break
        step = _damped_steps(H[going], gradient[going], damping[going])
        rows = owner[going]
        seen = None if known is None else known[rows]
        new = looking.errors(x[going] + step * width, Y[rows], seen)
        new_x, new_error, new_gradient, new_H = new
        new_gradient, new_H = new_gradient * width, new_H * width**2
        before = error[going]
        is_better = new_error <= before
        better = going[is_better]
        H[better] = _learned(
            H[better], new_H[is_better], gradient[better], new_gradient[is_better], step[is_better]
        )
        x[better], error[better] = new_x[is_better], new_error[is_better]
        gradient[better] = new_gradient[is_better]
        change = torch.where(is_better, AFTER_ANY_DECREASE, AFTER_FAILURE)
        damping[going] = (damping[going] * change).clamp_min(LEAST_DAMPING)
        hardly = is_better & (before - new_error <= DECREASE_TOLERANCE * before)
        is_done = hardly | (step.abs().amax(dim=1) < STEP_TOLERANCE)
        going = going[~is_done]
    place = torch.empty_like(order)
    place[order] = torch.arange(m * k, device=Y.device)  # of each start of each row
    best = error[place].view(m, k).argmin(dim=1, keepdim=True)
    return x[place.view(m, k).gather(1, best)[:, 0]]


def _damped_steps(H: Tensor, gradient: Tensor, damping: Tensor) -> Tensor:
    """Return steps (b, q) that solve (H + μ (diag H + a)) step = -gradient."""
    torch = load_torch()
    diagonal = torch.diagonal(H, dim1=1, dim2=2)
    added = ADDED_CURVATURE * diagonal.amax(dim=1, keepdim=True).clamp_min(1e-30)
    damped = H + torch.diag_embed(damping[:, None] * diagonal.clamp_min(0) + added)
    solution, info = torch.linalg.solve_ex(damped, -gradient[:, :, None])
    step = solution[:, :, 0]
    is_good = torch.isfinite(step).all(dim=1) & (info == 0)
    return torch.where(is_good[:, None], step, 0)


def _learned(H: Tensor, fresh: Tensor, old: Tensor, new: Tensor, step: Tensor) -> Tensor:
    """Put into H (b, q, q) what the change of the gradient says, else take it up afresh."""
    torch = load_torch()
    change, moved = new - old, (H @ step[:, :, None])[:, :, 0]
    along = (step * change).sum(dim=1)[:, None, None]
    length = (step * moved).sum(dim=1)[:, None, None]
    is_convex = (along > 0) & (length > 0)
    gained = change[:, :, None] * change[:, None] / torch.where(is_convex, along, 1)
    lost = moved[:, :, None] * moved[:, None] / torch.where(is_convex, length, 1)
    return torch.where(is_convex, H + gained - lost, fresh)


def _starts(looking: _Looking, Y: Tensor, known: Tensor | None) -> Tensor:
    """Return a few places for each row (m, k, q): near reconstructions that lie apart."""
    torch = load_torch()
    places = looking.surface.starting_places
    F, X = looking.tensor(places.reconstructions), looking.tensor(places.X)
    k, n_near = min(N_STARTS, len(X)), min(N_NEAREST, len(X))
    separation = looking.surface.kernel_width**2
    found = []
    rows = max(1, MOST_DISTANCES // len(X))
    for start in range(0, len(Y), rows):
        block = Y[start : start + rows]
        gaps = -2 * block @ F.T
        if known is None:
            gaps += (F * F).sum(dim=1)
        else:
            gaps += known[start : start + rows] @ (F * F).T
        near = X[gaps.topk(n_near, dim=1, largest=False).indices]  # (b, near, q)
        s = torch.cdist(near, near) ** 2
        is_free = torch.ones(near.shape[:2], dtype=torch.bool, device=Y.device)
        chosen = []
        for _ in range(k):
            # The nearest one that is apart from all chosen; the very nearest if there is none.
            place = is_free.float().argmax(dim=1)
            here = torch.arange(len(block), device=Y.device)
            chosen.append(near[here, place])
            is_free &= s[here, place] > separation
        found.append(torch.stack(chosen, dim=1))
    return torch.cat(found)

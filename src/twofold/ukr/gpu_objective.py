"""What UKR minimises, on a device: `Reconstruction`, the scale search and L-BFGS for tensors.

Latent points keep the order of the rows, landmarks follow them; sums go over tiles of neighbours,
whose order is renewed when points have moved so far that a third more pairs are visited than at
first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.array_types import BoolArray, FloatArray
from twofold.engine.gpu.library import load_torch, saying_what_fits
from twofold.engine.gpu.sums import CarriedTiles, DeviceSums, carried
from twofold.neighborhoods.gpu_neighbors import MOST_DISTANCES
from twofold.optimize import Solution
from twofold.optimize.on_device import minimize_on_device
from twofold.regularization import n_left_out
from twofold.ukr.objective import (
    GRID,
    MOST_SCALED_ROWS,
    NARROWEST,
    WIDEST,
    Problem,
    better_factors,
    spread_rows,
)

if TYPE_CHECKING:
    from torch import Tensor

    from twofold.ukr.training import Training

# Pairs that are visited, of those after the last sorting, before points are sorted again.
WORN = 4 / 3


@dataclass
class _InOrder:
    """What answers need of the rows, in the order of tiles."""

    order: Any
    Y: Any
    share: Any
    observed: Any


class DeviceReconstruction:
    """The cross-validated error of data rows from their latent points, with its gradient."""

    def __init__(self, problem: Problem) -> None:
        torch = load_torch()
        self.problem, self.device = problem, problem.engine.device
        rows, engine = problem.rows, problem.engine
        self.references = rows if problem.landmarks is None else problem.landmarks
        self.Y, self.V = self.tensor(rows.Y), self.tensor(self.references.V)
        self.observed = None if rows.observed is None else self.tensor(rows.observed)
        # A product with indicators adds up in a fixed order, unlike `index_add` on a device.
        group_of = self.references.group_of
        self.members = self.tensor(group_of[:, None] == np.arange(len(self.references.groups)))
        self.share = self.tensor(rows.weights / rows.weights.sum())
        self.loss = problem._loss_and_unit[0]
        self.hidden = None
        if problem.hidden is not None:
            self.hidden = torch.as_tensor(problem.hidden, device=self.device)
        self.engine = DeviceSums(engine.kernel, engine.cutoff)
        self.tiles: CarriedTiles | None = None
        self.pairs_when_sorted = 0
        self.in_order: _InOrder | None = None

    def tensor(self, array: FloatArray | BoolArray) -> Tensor:
        """Return an array on the device, in float32."""
        torch = load_torch()
        return torch.as_tensor(np.asarray(array), dtype=torch.float32, device=self.device)

    def value_and_grad(self, X: Tensor) -> tuple[float, Tensor]:
        """Return R(X) and dR/dX, for all latent points."""
        torch, n, has_landmarks = load_torch(), len(self.share), self.problem.landmarks is not None
        how: dict[str, Any] = {"hides_itself": True}
        if self.hidden is not None:
            how = {"hidden": self.hidden}
        if has_landmarks:
            how["queries"] = X[:n]
        tiles = self._tiles_at(X[n:] if has_landmarks else X)
        losses, by_query, by_reference = self.engine.evaluate(tiles, self._respond, **how)
        if not self.pairs_when_sorted:
            self.pairs_when_sorted = self.engine.n_pairs
        value = float(losses.sum(dtype=torch.float64))
        if has_landmarks:
            return value, torch.cat([by_query, by_reference])
        return value, by_query + by_reference

    def value_on(self, X: Tensor, numbers: Tensor) -> float:
        """Return R(X) over some of the rows only, with all rows as references."""
        return self._on(X, numbers, wants_slope=False)[0]

    def value_and_scale_slope(self, X: Tensor, numbers: Tensor) -> tuple[float, FloatArray]:
        """Return R(X) over some rows and its derivative by the log scale of each dimension."""
        return self._on(X, numbers, wants_slope=True)

    def _on(self, X: Tensor, numbers: Tensor, *, wants_slope: bool) -> tuple[float, FloatArray]:
        def respond(order: Tensor, A: Tensor, shift: Tensor) -> tuple[Tensor, Tensor | None]:
            losses, U = self._respond(numbers[order], A, shift)
            return losses, U if wants_slope else None

        hidden = numbers[:, None] if self.hidden is None else self.hidden[numbers]
        losses, by_query, by_reference = self.engine.evaluate(
            self._tiles_at(X), respond, queries=X[numbers], hidden=hidden
        )
        slope = (by_query * X[numbers]).sum(dim=0) + (by_reference * X).sum(dim=0)
        counted = float(self.share[numbers].double().sum())
        return float(losses.double().sum()) / counted, slope.double().cpu().numpy() / counted

    def _tiles_at(self, X: Tensor) -> CarriedTiles:
        if self.tiles is not None and self.engine.n_pairs <= WORN * self.pairs_when_sorted:
            return self.tiles.moved_to(X)
        how, local = self.problem.engine, self.references.local(X.shape[1])
        self.tiles = carried(X, self.V, how.kernel, how.precision, local)
        self.pairs_when_sorted = 0
        return self.tiles

    def _respond(self, numbers: Tensor, A: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
        rows, is_whole = self._rows(numbers), self.references.observed is None
        D = rows.Y.shape[1]
        S = self.references.of_columns(A)
        is_alive = S > 0
        safe = S.where(is_alive, S.new_ones(()))
        f = A[:, :D] / safe
        # The nearest row has a weight under an exponential kernel, and asking would be waiting.
        is_sure = is_whole and self.engine.kernel.is_exponential
        if not is_sure and not bool(is_alive.all()):
            f = f.where(is_alive, self._mean_without(numbers))
        residual = f - rows.Y
        if rows.observed is not None:
            residual *= rows.observed
        losses, slope = self.loss.value_and_slope(residual)
        E = (slope * rows.share[:, None]).where(is_alive, S.new_zeros(())) / safe
        torch = load_torch()
        U = torch.zeros_like(A)
        U[:, :D] = E
        U[:, self.references.denominators] = self._group_sums(-E * f)
        return losses * rows.share, U

    def _group_sums(self, E: Tensor) -> Tensor:
        """Return sums (m, groups) of the columns that share a denominator."""
        n_groups = len(self.references.groups)
        if n_groups == 1:
            return E.sum(dim=1, keepdim=True)
        return E if n_groups == E.shape[1] else E @ self.members

    def _rows(self, numbers: Tensor) -> _InOrder:
        if self.in_order is None or self.in_order.order is not numbers:
            observed = None if self.observed is None else self.observed[numbers]
            found = _InOrder(numbers, self.Y[numbers], self.share[numbers], observed)
            if self.tiles is None or numbers is not self.tiles.order:
                return found
            self.in_order = found
        return self.in_order

    def _mean_without(self, numbers: Tensor) -> Tensor:
        """Return the mean of all references but those hidden from some, as scaled (m, D)."""
        torch = load_torch()
        hidden = numbers[:, None] if self.hidden is None else self.hidden[numbers]
        mass, Y = self.tensor(self.references.mass), self.tensor(self.references.Y)
        total, summed = mass.double().sum(dim=0), (mass * Y).double().sum(dim=0)
        rest = total.expand(len(numbers), -1)
        left = summed.expand(len(numbers), -1)
        for k in range(hidden.shape[1]):
            is_hidden = (hidden[:, k] >= 0)[:, None]
            rest = rest - mass[hidden[:, k]] * is_hidden
            left = left - (mass * Y)[hidden[:, k]] * is_hidden
        return (left / torch.where(rest > 0, rest, torch.inf)).float()


def scaled_start(X: Tensor, objective: DeviceReconstruction) -> tuple[Tensor, float]:
    """Return latent points with the best common factor, then one a dimension, and their error."""
    torch = load_torch()
    rows = torch.as_tensor(spread_rows(len(X), MOST_SCALED_ROWS), device=X.device)
    X = X - X.mean(dim=0)
    factors = np.geomspace(1 / WIDEST, 1 / NARROWEST, GRID) / _typical_spacing(X, rows)
    errors = [objective.value_on(X * factor, rows) for factor in factors]
    return _with_factors(X * factors[int(np.argmin(errors))], min(errors), objective, rows)


def rescaled_on_device(problem: Problem, X: FloatArray) -> FloatArray:
    """Return latent points X (n, q) with the factor a dimension at which their error is lowest."""
    torch = load_torch()
    with saying_what_fits(*problem.rows.V.shape):
        objective = DeviceReconstruction(problem)
        points = objective.tensor(X)
        rows = torch.as_tensor(spread_rows(len(X), MOST_SCALED_ROWS), device=points.device)
        error = objective.value_on(points, rows)
        scaled: FloatArray = _with_factors(points, error, objective, rows)[0].cpu().numpy()
    return scaled


def _with_factors(
    X: Tensor, error: float, objective: DeviceReconstruction, rows: Tensor
) -> tuple[Tensor, float]:
    """Return latent points of that error with better factors, one a dimension, and theirs."""
    torch = load_torch()

    def error_and_slope(logs: FloatArray) -> tuple[float, FloatArray]:
        return objective.value_and_scale_slope(X * torch.exp(objective.tensor(logs)), rows)

    found, lowest = better_factors(error_and_slope, X.shape[1], error)
    return (X, error) if found is None else (X * torch.exp(objective.tensor(found)), lowest)


def _typical_spacing(X: Tensor, rows: Tensor) -> float:
    """Return the median distance of some points to the nearest other one, away from zero."""
    torch = load_torch()
    k = min(len(X), 4)
    exact, nearest = "donot_use_mm_for_euclid_dist", []
    for some in X[rows].split(max(1, MOST_DISTANCES // len(X))):
        distances = torch.cdist(some, X, compute_mode=exact)
        nearest.append(distances.topk(k, largest=False).values[:, 1:])
    apart = torch.cat(nearest)
    apart = torch.where(apart > 0, apart, torch.inf).amin(dim=1)
    apart = apart[apart.isfinite()]
    return float(apart.median()) if len(apart) else max(float(X.std()), 1e-12)


def train_on_device(problem: Problem, X: FloatArray, training: Training) -> Solution:
    """Minimise the cross-validated error from all latent points X by L-BFGS."""
    k, pace = n_left_out(problem.regularization), problem.pace()
    with saying_what_fits(*problem.rows.V.shape):
        objective = DeviceReconstruction(problem)
        solution = minimize_on_device(
            objective,
            objective.tensor(X - X.mean(axis=0)),
            max_iter=training.max_iter,
            tol=training.tol,
            pace=None if pace is None else objective.tensor(pace),
            callbacks=training.callbacks,
            label="leave-one-out" if k == 1 else f"leave-{k}-out",
        )
    problem.engine.last_plan = objective.engine.plan(len(objective.Y), len(objective.V))
    return solution

"""Moving the latent points: from a start to the minimum, straight or through a homotopy.

A start that unfolds the data is improved directly. A homotopy (Klanke 2007, section 4.4.3) leads
through easier problems that are nearly contracted at first, each warm-started from the last:

- density: ``min R_cv`` with ``p(x_i) >= η``, η = 40/n, 32/n, … 2/n, by a barrier, then free;
- box: ``min R_cv`` with all coordinates within 0.5, 1.5, 2.5, … until nothing is bound;
- penalty: ``min R + λ penalty`` with λ falling by a factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from twofold.array_types import FloatArray
from twofold.optimize import (
    Ball,
    Box,
    Callback,
    Objective,
    Solution,
    Stage,
    continue_through,
)
from twofold.regularization import Density, Extension, LeaveKOut, LeaveOneOut, n_left_out
from twofold.ukr.problem import Problem
from twofold.ukr.terms import (
    DensityTerm,
    DensityVariance,
    ExtensionPenalty,
    SumOf,
    lowest_density,
)

DENSITY_STAGES = (40, 32, 24, 16, 8, 4, 2)
STAGE_ITERATIONS = 50
# Strength of the barrier, as a part of the data's spread: felt close to the bound. A tenth and a
# hundredth of it take four to six times as many evaluations and end no lower.
BARRIER = 1e-2
MOST_BOXES = 100
CONTRACTED = 0.1

StopWhen = Callable[[Solution, Stage], bool]


@dataclass(frozen=True)
class Training:
    """How to minimise: method, number of iterations, tolerance and who is told."""

    method: str
    max_iter: int
    tol: float
    callbacks: Sequence[Callback]


def train(problem: Problem, X: FloatArray, training: Training) -> Solution:
    """Minimise the objective of a problem from latent points X (n, q); not of the smoothest one."""
    X = (X - X.mean(axis=0)).astype(problem.rows.Y.dtype)
    regularization = problem.regularization
    if getattr(regularization, "start", None) is not None:
        X = _contracted(X)
    stop_when = None
    if isinstance(regularization, LeaveOneOut | LeaveKOut):
        X, stages, stop_when = _cross_validated_stages(problem, X, training)
    elif isinstance(regularization, Extension):
        X, stages = _extension_stages(problem, regularization, X, training)
    else:
        assert isinstance(regularization, Density)
        X, stages = _density_stages(problem, regularization, X, training)
    target = getattr(regularization, "target", None)
    if target is not None:
        wanted = target / problem.error_unit
        stop_when = _reached(problem.reconstruction(cross_validated=False), wanted)
    return continue_through(
        stages,
        X,
        method=training.method,
        pace=problem.pace(),
        tol=training.tol,
        callbacks=training.callbacks,
        stop_when=stop_when,
    )


def _cross_validated_stages(
    problem: Problem, X: FloatArray, training: Training
) -> tuple[FloatArray, Iterable[Stage], StopWhen | None]:
    assert isinstance(problem.regularization, LeaveOneOut | LeaveKOut)
    error = _cross_validation_error(problem)
    last = Stage(error, label=_name(problem), max_iter=training.max_iter)
    way = problem.regularization.homotopy
    if way in ("auto", "none") or training.max_iter == 0:
        return X, [last], None
    if way == "box":
        contracted = X * (0.5 / np.abs(X).max())
        return contracted, _growing_boxes(error, training), _nothing_bound
    n, strength = len(X), BARRIER * problem.spread()
    floors = [count / n for count in DENSITY_STAGES if count < n / 2]
    stages = [
        Stage(
            SumOf([error, DensityTerm(strength, problem.point_weights, problem.engine, floor)]),
            label=f"density ≥ {floor:.2g}",
            max_iter=min(STAGE_ITERATIONS, training.max_iter),
        )
        for floor in floors
    ]
    X = _contracted(X)
    if floors:
        X = _shrink_until_dense(problem, X, floors[0])
    return X, [*stages, last], None


def _name(problem: Problem) -> str:
    k = n_left_out(problem.regularization)
    return "leave-one-out" if k == 1 else f"leave-{k}-out"


def _cross_validation_error(problem: Problem) -> Objective:
    """Return the cross-validated error, with what smooths the border where that is asked for."""
    error = problem.reconstruction(cross_validated=True)
    border = getattr(problem.regularization, "border", 0.0)
    if border == 0:
        return error
    strength = border / problem.error_unit
    return SumOf([error, DensityVariance(strength, problem.point_weights, problem.engine)])


def _contracted(X: FloatArray) -> FloatArray:
    """Return latent points close together, where a homotopy begins; never in one place."""
    return X * (CONTRACTED / X.std())


def _growing_boxes(error: Objective, training: Training) -> Iterator[Stage]:
    for step in range(MOST_BOXES):
        half = 0.5 + step
        yield Stage(error, Box(half), f"box ±{half:g}", training.max_iter)


def _nothing_bound(solution: Solution, stage: Stage) -> bool:
    return stage.constraint is not None and stage.constraint.is_binding(solution.X) == 0


def _extension_stages(
    problem: Problem, regularization: Extension, X: FloatArray, training: Training
) -> tuple[FloatArray, list[Stage]]:
    error = problem.reconstruction(cross_validated=False)
    if regularization.penalty is None:
        constraint = (
            Ball(regularization.radius)
            if regularization.radius is not None
            else Box(_box(regularization))
        )
        label = f"within {constraint}"
        return X, [Stage(error, constraint, label, training.max_iter)]
    strengths = _falling(regularization.start, regularization.penalty, regularization.decay)
    return X, [
        Stage(
            SumOf([error, ExtensionPenalty(strength / problem.error_unit, problem.point_weights)]),
            label=f"extension λ = {strength:.3g}",
            max_iter=training.max_iter,
        )
        for strength in strengths
    ]


def _box(regularization: Extension) -> float:
    assert regularization.box is not None
    return regularization.box


def _density_stages(
    problem: Problem, regularization: Density, X: FloatArray, training: Training
) -> tuple[FloatArray, list[Stage]]:
    error = problem.reconstruction(cross_validated=False)
    floor, unit, weights = 0.0, problem.error_unit, problem.point_weights
    if regularization.penalty is not None:
        strengths = _falling(regularization.start, regularization.penalty, regularization.decay)
    else:
        assert regularization.threshold is not None
        floor = regularization.threshold
        _check_threshold(floor, len(X))
        X = _shrink_until_dense(problem, X, floor)
        strengths = [unit * problem.spread() * part for part in (1e-2, 1e-3, 1e-4, 1e-5)]
    return X, [
        Stage(
            SumOf([error, DensityTerm(strength / unit, weights, problem.engine, floor)]),
            label=f"density λ = {strength:.3g}",
            max_iter=training.max_iter,
        )
        for strength in strengths
    ]


def _check_threshold(floor: float, n: int) -> None:
    if not 1 / n < floor < 1:
        raise ValueError(
            f"The density `threshold` must lie between 1/n = {1 / n:.3g} (every row alone) and 1 "
            f"(all in one place); got {floor:.3g}."
        )


def _falling(start: float | None, end: float, decay: float) -> list[float]:
    strengths = [end]
    while start is not None and strengths[-1] / decay <= start * (1 + 1e-9):
        strengths.append(strengths[-1] / decay)
    return strengths[::-1]


def _shrink_until_dense(problem: Problem, X: FloatArray, floor: float) -> FloatArray:
    """Contract the latent points until all lie well above a density."""
    wanted = min(1.05 * floor, 0.5 + floor / 2)
    while lowest_density(X, problem.point_weights, problem.engine) <= wanted:
        X = X * 0.8
        if X.std() < 1e-6:
            raise ValueError(
                f"No latent points above a density of {floor:.6g} exist unless all coincide; "
                "lower the `threshold`."
            )
    return X


def _reached(error: Objective, target: float) -> StopWhen:
    def stop_when(solution: Solution, stage: Stage) -> bool:
        return error.value_and_grad(solution.X)[0] < target

    return stop_when

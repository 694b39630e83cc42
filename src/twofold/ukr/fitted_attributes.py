"""The fitted attributes of UKR: written when a fit is over, read when a model wakes up.

They are all that a saved file holds, so whatever the rooms of this folder hand over becomes plain
arrays and values here, in the user's units.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from twofold.array_types import BoolArray, FloatArray
from twofold.features import Custom, FeatureMap, get_data_kernel
from twofold.optimize import Solution, StopReason
from twofold.regularization import Extension, Smoothest
from twofold.ukr.feature_space import FeatureSpace
from twofold.ukr.fitting import Fit
from twofold.ukr.problem import Problem
from twofold.ukr.table_fitting import FittedTable, principal_axes

if TYPE_CHECKING:
    from twofold.ukr.estimator import UKR


def leave_out(model: UKR, trimmed: BoolArray) -> None:
    """Let rows take no part in the model; they are projected like rows of weight 0."""
    if trimmed.any():
        place = np.where(trimmed, -1, np.cumsum(~trimmed) - 1)
        model.member_ = np.where(model.member_ >= 0, place[model.member_], -1)
        model.data_, model.weights_ = model.data_[~trimmed], model.weights_[~trimmed]


def keep_table(model: UKR, table: FittedTable) -> None:
    """Set the fitted attributes that a table's fit comes to."""
    fit = table.fit
    if model.landmarks is not None:
        # Landmarks become the rows of the model; the rows passed to fit are projected.
        model.data_, model.weights_ = table.data, np.ones(len(table.data))
        model.member_ = np.full(len(model.member_), -1)
    if table.features is not None:
        if not isinstance(table.features.kernel, Custom):
            model.data_kernel_ = table.features.kernel
        model.feature_projector_ = table.features.projector
        model.feature_mean_row_ = table.features.mean_row
        model.feature_mean_ = table.features.mean
    optional = {
        "carried_": table.carried,
        "columns_": table.columns,
        "smoothness_": table.gamma,
        "violation_": fit.violation,
    }
    for name, value in optional.items():
        if value is not None:
            setattr(model, name, value)
    model.start_ = fit.start.name
    model.starts_ = {
        name: float(error * fit.start_unit) for name, error in fit.start.errors.items()
    }
    model.loss_ = fit.problem.loss
    model.latent_scale_ = np.ones(model._wanted_dimensions())
    report(model, fit.solution, fit.problem)


def latent_of(model: UKR, fit: Fit) -> FloatArray:
    """Return the latent points of a fit in the user's units, turned to principal axes."""
    regularization, start = fit.problem.regularization, fit.start
    is_own = start.is_own and fit.problem.landmarks is None
    if isinstance(regularization, Extension) and not is_own:
        return fit.X if regularization.penalty is None else principal_axes(fit.X)
    if is_own:
        # The user's picture keeps its own units; the kernel's are behind a factor.
        model.latent_scale_ = start.scales
        return fit.X / start.scales + start.centre
    return fit.X if isinstance(model.degree, str) else principal_axes(fit.X)


def feature_space_of(model: UKR) -> FeatureSpace | None:
    """Return the feature space of a fitted model; None without a data kernel."""
    if model.data_kernel is None:
        return None
    kernel = getattr(model, "data_kernel_", None) or get_data_kernel(model.data_kernel)
    data = model.data_[:, :0] if kernel.is_precomputed else model.data_
    found = FeatureMap(
        kernel, data, model.feature_projector_, model.feature_mean_row_, model.feature_mean_
    )
    carried = getattr(model, "carried_", found.coordinates)
    columns = model.columns_ if kernel.is_precomputed else None
    return FeatureSpace(found, model.data_, carried, columns, model.n_jobs)


def report(model: UKR, solution: Solution, problem: Problem) -> None:
    """Set the attributes that tell how the optimisation went."""
    plan = problem.engine.last_plan
    model.backend_ = f"{plan.backend}: {plan.reason}" if plan else ""
    # The extension that "smoothest" minimises has no unit of the data.
    unit = 1.0 if isinstance(problem.regularization, Smoothest) else problem.error_unit
    model.objective_, model.history_ = float(solution.value * unit), solution.history * unit
    model.n_iter_, model.stop_reason_ = solution.n_iter, str(solution.stop_reason)
    if solution.stop_reason is StopReason.INTERRUPTED:
        warnings.warn(
            f"Interrupted after {solution.n_iter} iterations; the best model so far is kept.",
            ConvergenceWarning,
            stacklevel=4,
        )

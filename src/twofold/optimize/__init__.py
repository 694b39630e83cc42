"""Minimise a smooth function of an (n, q) array; knows nothing of manifolds.

`minimize` solves one problem, `continue_through` a warm-started sequence of them. `solution` says
what goes in and out, `loop` drives the methods in `rprop` and `lbfgs`. `levenberg_marquardt` solves
many small least-squares problems at once.

A callback is any function of an `Event`; one that returns True ends the run.

>>> from twofold.optimize import Callback
>>> stop_soon: Callback = lambda event: event.iteration >= 3
"""

from twofold.optimize.constraints import Ball, Box, Constraint, Unconstrained
from twofold.optimize.continuation import Stage, continue_through, in_halves
from twofold.optimize.levenberg_marquardt import LeastSquares, Residuals, levenberg_marquardt
from twofold.optimize.loop import Journal, minimize
from twofold.optimize.progress import ProgressBar
from twofold.optimize.solution import Callback, Event, Objective, Solution, StageRecord, StopReason

__all__ = [
    "Ball",
    "Box",
    "Callback",
    "Constraint",
    "Event",
    "Journal",
    "LeastSquares",
    "Objective",
    "ProgressBar",
    "Residuals",
    "Solution",
    "Stage",
    "StageRecord",
    "StopReason",
    "Unconstrained",
    "continue_through",
    "in_halves",
    "levenberg_marquardt",
    "minimize",
]
__dir__ = __all__.copy  # without numpy and other imports

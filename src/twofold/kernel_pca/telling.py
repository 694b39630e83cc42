"""Warnings that point at the line of the user's code, however deep the fault was found."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

# scikit-learn wraps the methods of estimators.
_INNER = ("twofold", "sklearn", "joblib")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning in the name of the first caller outside this package and scikit-learn."""
    level, frame = 1, sys._getframe().f_back
    while frame is not None and _is_inner(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)


def _is_inner(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _INNER

"""Frames of pandas or polars from the way back, for those who asked for them with ``set_output``.

scikit-learn does it for ``transform`` alone. Columns have the names of the fit, rows the index of
the frame that was passed.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils._set_output import ADAPTERS_MANAGER, _get_output_config

Method = TypeVar("Method", bound=Callable[..., Any])
PLAIN = "default"


def answers_in_frames(method: Method) -> Method:
    """Let a method that returns rows of data return frames where ``set_output`` asks for them."""

    @wraps(method)
    def answering(self: Any, *given: Any, **named: Any) -> Any:
        found = method(self, *given, **named)
        library = asked_for(self)
        # Mixed tables are answered by tables anyway.
        if library == PLAIN or self._mixed_columns():
            return found
        like = given[0] if given else named.get("X")
        if isinstance(found, tuple):
            return tuple(_as_frames(self, part, like, library) for part in found)
        return _as_frames(self, found, like, library)

    return cast(Method, answering)


def asked_for(model: Any) -> str:
    """Return what `set_output` of a model, or of scikit-learn's configuration, asks for."""
    return str(_get_output_config("transform", model)["dense"])


def _as_frames(model: Any, rows: Any, like: Any, library: str) -> Any:
    """Return rows (n, D) as a frame, draws (k, n, D) as a list of them."""
    if not isinstance(rows, np.ndarray):
        return rows
    if rows.ndim == 3:
        return [_as_frames(model, draw, like, library) for draw in rows]
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = np.array([f"x{k + 1}" for k in range(rows.shape[1])], dtype=object)
    return ADAPTERS_MANAGER.adapters[library].create_container(rows, like, columns=lambda: names)

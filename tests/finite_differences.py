"""Central differences in float64."""

from __future__ import annotations

import numpy as np


def numerical_gradient(function, X, step=1e-5):
    """Return the derivative of a scalar function by each entry of X.

    The error is about ``step² f'''`` plus ``eps |f| / step``: 1e-10 and 2e-11 where the function
    and its derivatives are of order 1.
    """
    grad = np.empty(X.shape)
    for place in np.ndindex(X.shape):
        forward, backward = X.copy(), X.copy()
        forward[place] += step
        backward[place] -= step
        grad[place] = (function(forward) - function(backward)) / (2 * step)
    return grad


def relative_error(found, expected):
    """Return the norm of the difference relative to the norm of what is expected."""
    return np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1e-300)

"""How many latent dimensions a model has that is to find out itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from twofold.array_types import FloatArray

# What a model has before it has seen data: a map to look at.
UNKNOWN = 2


def dimension_of_data(Y: FloatArray, init: Any, random_state: Any) -> int:
    """Return the columns of a start of the user's, else what the data shows."""
    if not isinstance(init, str) and not hasattr(init, "fit_transform"):
        return int(np.shape(init)[1])
    # Few fits ask, and it takes a while to import.
    from twofold.metrics.local_dimension import dimension_of

    seed = int(check_random_state(random_state).randint(2**31 - 1))
    return dimension_of(Y, seed)

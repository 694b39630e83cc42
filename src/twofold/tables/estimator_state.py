"""What a file of a fitted estimator holds: its parameters and its public fitted attributes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from twofold.tables.model_file import ModelFile


def state_of(estimator: Any, run_only: Collection[str]) -> ModelFile:
    """Return the content of a file; parameters named ``run_only`` are kept as empty tuples."""
    fitted = {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_")
    }
    arrays = {name: value for name, value in fitted.items() if isinstance(value, np.ndarray)}
    rest = {name: value for name, value in fitted.items() if name not in arrays}
    parameters = estimator.get_params(deep=False)
    parameters.update({name: () for name in run_only if name in parameters})
    return ModelFile(type(estimator).__name__, parameters, rest, arrays)

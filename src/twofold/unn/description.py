"""The way back of Unsupervised Nearest Neighbors in plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold.array_types import IntArray
from twofold.contract.kernel_description import NearestMeans

# Terms of the density below this share of the largest are left out.
CUTOFF = 1e-6


def describe(model: Any, groups: IntArray | None = None) -> NearestMeans:
    """Return the means that a fitted model goes back by, in parts if ``groups`` (m,) says so."""
    is_filled = hasattr(model, "filled_")
    rows = model.filled_ if is_filled else model.data_
    return NearestMeans(
        latent=model.latent_.astype(np.float64),
        data=rows.astype(np.float64),
        weights=np.asarray(model.weights_, dtype=np.float64),
        widths=None,
        kernel="gaussian",
        degree=0,
        cutoff=CUTOFF,
        latent_scale=1 / np.asarray(model._latent_unit(), dtype=np.float64),
        n_neighbors=int(model.n_neighbors),
        groups=groups,
        observed=~np.isnan(model.data_) if is_filled else None,
    )

"""Densities over latent points: how wide their kernels are, and points drawn, by rejection."""

from collections.abc import Callable

import numpy as np

from twofold.array_types import BoolArray, FloatArray
from twofold.checks.parameters import check_choice, check_count

# Of drawing again: a domain may be a small part of the box around it.
MOST_ROUNDS = 1_000


def scott_widths(X: FloatArray, weights: FloatArray, least_share: float = 0.0) -> FloatArray:
    """Return the widths (q,) of a density over latent points X (n, q) by Scott's rule.

    They are those of standard deviations, each at least ``least_share`` of the largest, and of 1
    along an axis on which all points are equal: none is 0.
    """
    n, q = X.shape
    shares = weights / weights.sum()
    gaps = X.astype(np.float64) - shares @ X
    deviation: FloatArray = np.sqrt(shares @ gaps**2)
    deviation = np.maximum(deviation, least_share * deviation.max())
    return np.where(deviation > 0, deviation, 1.0) * float(n ** (-1 / (q + 4)))


def check_request(n: object, spread: object) -> None:
    """Raise unless n points can be drawn in that way."""
    check_count("n_samples", n)
    check_choice("spread", spread, ("density", "uniform"))


def draw_latent_points(
    X: FloatArray,
    weights: FloatArray,
    n: int,
    rng: np.random.RandomState,
    bandwidth: FloatArray | None,
    inside: Callable[[FloatArray], BoolArray],
) -> FloatArray:
    """Return n latent points (n, q) for which ``inside`` holds.

    With a ``bandwidth`` (q,) they follow the kernel density of the points X (u, q), else they are
    spread evenly over the box around X.
    """
    low, high, share = X.min(axis=0), X.max(axis=0), weights / weights.sum()
    kept: list[FloatArray] = []
    count = 0
    for _ in range(MOST_ROUNDS):
        # More than are missing, for some fall outside.
        size = 2 * (n - count) + 16
        if bandwidth is None:
            drawn: FloatArray = rng.uniform(low, high, (size, len(low)))
        else:
            centres = X[rng.choice(len(X), size, p=share)]
            drawn = centres + rng.normal(size=centres.shape) * bandwidth
        drawn = drawn.astype(X.dtype)
        kept.append(drawn[inside(drawn)])
        count += len(kept[-1])
        if count >= n:
            return np.concatenate(kept)[:n]
    if bandwidth is None:
        how, advice = "evenly over the map", "is a small part of its box; use spread='density'"
    else:
        how, advice = "around training points", "does not fit them; fit the model again"
    raise ValueError(
        f"Only {count} of {n} points drawn {how} fell into the domain, which {advice}."
    )

"""Cells of mixed tables as features, one at a time, as the formulas of `twofold.mixed` say."""

from __future__ import annotations

import math
from datetime import datetime


def level_features(cell: str, levels: list[str]) -> list[float]:
    return [1.0 if cell == level else 0.0 for level in levels]


def ordered_features(cell: str, levels: list[str]) -> list[float]:
    return [1.0 if levels.index(cell) > k else 0.0 for k in range(len(levels) - 1)]


def date_features(cell: datetime, season: bool, hour: bool) -> list[float]:
    days = (cell - datetime(1970, 1, 1)).total_seconds() / 86_400
    found = [days]
    for period in [365.2425] * season + [1.0] * hour:
        found += [math.cos(2 * math.pi * days / period), math.sin(2 * math.pi * days / period)]
    return found


def kernel_probabilities(
    x: list[float], places: list[list[float]], cells: list[str], scale: float, levels: list[str]
) -> list[float]:
    """The share of each level among rows, weighted by a Gaussian kernel around x."""
    shares = dict.fromkeys(levels, 0.0)
    for place, cell in zip(places, cells, strict=True):
        s = sum(((a - b) * scale) ** 2 for a, b in zip(x, place, strict=True))
        shares[cell] += math.exp(-s / 2)
    total = sum(shares.values())
    return [shares[level] / total for level in levels]

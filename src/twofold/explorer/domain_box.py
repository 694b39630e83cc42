"""Boxes: domains whose border is known exactly, and which need no density.

A model that was given its places on a grid trusts the whole box around it, and its density is the
same everywhere inside. What is asked of it is only ``in_domain`` and ``density``, so it may be
wrapped in others. The stand-in of such a model lies on a lattice that fills the box.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twofold.array_types import BoolArray, FloatArray
from twofold.contract import TwoWayModel

# How often the spread of the rows is doubled to look for a side, and halved to find it.
DOUBLINGS, HALVINGS = 10, 50
# So many random places tell whether it is one; those so near to a side, as a share, tell nothing.
N_PROBES, NEAR = 4_000, 1e-6
# In more dimensions a lattice of some thousand places is too coarse.
MOST_DIMENSIONS = 6


@dataclass(frozen=True, eq=False)
class DomainBox:
    """The domain ``low ≤ x ≤ high``, (q,) each."""

    low: FloatArray
    high: FloatArray

    @property
    def sides(self) -> FloatArray:
        """Lengths (q,) of its sides."""
        return self.high - self.low

    def holds(self, X: FloatArray, slack: float = 0.0) -> BoolArray:
        """Say which points (m, q) lie inside, with a share of each side added all around."""
        margin = slack * self.sides
        return np.asarray(((self.low - margin <= X) & (self.high + margin >= X)).all(axis=1))

    def draw(self, n: int, rng: np.random.RandomState, slack: float = 0.0) -> FloatArray:
        """Return random points (n, q) of the box, widened by a share of its sides."""
        margin = slack * self.sides
        return rng.uniform(self.low - margin, self.high + margin, (n, len(self.low)))

    def lattice(self, count: int) -> tuple[FloatArray, float]:
        """Return at most ``count`` points, corners included, and their distance in sides.

        At least two along each side, however few are asked for.
        """
        q = len(self.low)
        steps = max(2, int(count ** (1 / q) + 1e-9))
        along = np.linspace(0.0, 1.0, steps)
        unit = np.stack(np.meshgrid(*[along] * q, indexing="ij"), axis=-1).reshape(-1, q)
        return self.low + unit * self.sides, 1 / (steps - 1)


def find_box(model: TwoWayModel) -> DomainBox | None:
    """Return the box that is a model's domain, with one density inside; None for other domains."""
    X = model.embedding_.astype(np.float64)
    middle = 0.5 * (X.min(axis=0) + X.max(axis=0))
    reach = 0.5 * np.ptp(X, axis=0)
    if X.shape[1] > MOST_DIMENSIONS or not (reach > 0).all():
        return None
    if len(np.unique(model.density(X))) > 1:
        return None
    signs = np.concatenate([-np.eye(len(middle)), np.eye(len(middle))])
    inside, outside = 0.0 * signs.sum(axis=1), np.full(len(signs), 2.0**DOUBLINGS)

    def at(lengths: FloatArray) -> BoolArray:
        return np.asarray(model.in_domain(middle + signs * lengths[:, None] * reach))

    if not at(inside).all() or at(outside).any():
        return None
    for _ in range(HALVINGS):
        half = 0.5 * (inside + outside)
        is_in = at(half)
        inside, outside = np.where(is_in, half, inside), np.where(is_in, outside, half)
    lower, upper = np.split(inside, 2)
    box = DomainBox(middle - lower * reach, middle + upper * reach)
    return box if (box.sides > 0).all() and _is_domain(box, model) else None


def _is_domain(box: DomainBox, model: TwoWayModel) -> bool:
    """Say whether a box and a model agree about random places in and around it."""
    rng = np.random.RandomState(0)
    probes = np.concatenate([box.draw(N_PROBES, rng), box.draw(N_PROBES, rng, slack=0.2)])
    held = box.holds(probes)
    clear = box.holds(probes, -NEAR) | ~box.holds(probes, NEAR)
    if (model.in_domain(probes) != held)[clear].any():
        return False
    return len(np.unique(model.density(probes[held & clear]))) == 1

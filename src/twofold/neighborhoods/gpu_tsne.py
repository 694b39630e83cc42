"""t-SNE on a device: the steps of `twofold.neighborhoods.tsne`, for tensors.

Rows are spread onto the nodes of a grid in whole numbers, so that they add up to the same sum in
any order. Attraction goes over the neighbours of a row in the order of a list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.fft import next_fast_len

from twofold.engine.gpu.grid import Around
from twofold.engine.gpu.library import in_parts, load_torch
from twofold.engine.grid import NODES, nodes_over
from twofold.neighborhoods.tsne import (
    GAIN_DOWN,
    GAIN_UP,
    LEAST_GAIN,
    LONGEST_STEP,
    MARGIN,
    MOMENTUM,
    MOST_BISECTIONS,
    MOST_NODES,
    SPACING,
)

if TYPE_CHECKING:
    from torch import Tensor

# Shares of a row are counted in this part of a whole, by the nodes that it is spread to at once.
FIXED_POINT = 2.0**32
MOST_SHARES = 2**25


@dataclass(frozen=True)
class Affinities:
    """P of sum 1 as lists: ``other[first[i]:first[i + 1]]`` pull on row i by ``p``."""

    first: Tensor
    other: Tensor
    p: Tensor

    def __mul__(self, factor: float) -> Affinities:
        return replace(self, p=self.p * factor)


def affinities(distances: Tensor, neighbors: Tensor, perplexity: float) -> Affinities:
    """Return P (n, n): as near as a Gaussian of that perplexity makes neighbours (n, k)."""
    torch = load_torch()
    n, k = neighbors.shape
    p = (_conditional(distances.double() ** 2, float(np.log(perplexity))) / (2 * n)).float()
    own, others = torch.arange(n, device=p.device).repeat_interleave(k), neighbors.flatten()
    ends = torch.cat([own, others])
    return _listed(ends, torch.cat([others, own]), torch.cat([p.flatten(), p.flatten()]), n)


def mixed(near: Affinities, wide: Affinities, share: float) -> Affinities:
    """Return a mixture of two P; ``share`` is that of the second."""
    torch = load_torch()
    n, both = len(near.first) - 1, (near * (1 - share), wide * share)
    own = torch.arange(n, device=near.p.device)
    ends = torch.cat([own.repeat_interleave(P.first.diff()) for P in both])
    others, p = (torch.cat([getattr(P, name) for P in both]) for name in ("other", "p"))
    return _listed(ends, others, p, n)


def _listed(ends: Tensor, others: Tensor, p: Tensor, n: int) -> Affinities:
    """Sort affinities of pairs of rows by the first of the two."""
    torch = load_torch()
    order = torch.argsort(ends, stable=True)
    counts = torch.bincount(ends, minlength=n)
    first = torch.cat([counts.new_zeros(1), torch.cumsum(counts, dim=0)])
    return Affinities(first, others[order].int(), p[order])


def _conditional(sq_dists: Tensor, entropy: float) -> Tensor:
    """Return, for squared distances (n, k), weights of sum 1 and that entropy, by bisection."""
    torch = load_torch()
    gaps = sq_dists - sq_dists[:, :1]
    low = torch.zeros_like(gaps[:, :1])
    high = torch.full_like(low, torch.inf)
    steepness = 1.0 / sq_dists[:, -1:].clamp_min(1e-300)
    for _ in range(MOST_BISECTIONS):
        weights = torch.exp(-steepness * gaps)
        total = weights.sum(dim=1, keepdim=True)
        mean = (weights * gaps).sum(dim=1, keepdim=True)
        is_flat = torch.log(total) + steepness * mean / total > entropy
        low, high = torch.where(is_flat, steepness, low), torch.where(is_flat, high, steepness)
        middle = (low + high) / 2
        steepness = torch.where(torch.isinf(high), 2 * steepness, middle)
    weights = torch.exp(-steepness * gaps)
    return weights / weights.sum(dim=1, keepdim=True)


def descend(
    P: Affinities,
    X: Tensor,
    n_iter: int,
    tell: Callable[[str, int, int], None] = lambda words, step, total: None,
) -> Tensor:
    """Return latent points (n, q) after some steps of t-SNE from X, for affinities P."""
    torch = load_torch()
    X = X.float().contiguous()
    speed, gains, rate = torch.zeros_like(X), torch.ones_like(X), float(len(X))
    field = None
    for step in range(n_iter):
        tell("t-SNE of all rows", step, n_iter)
        if field is None or not field.covers(X):
            field = _Field(X)
        slope, Z = field.slope(X)
        gradient = _attraction(P, X) + slope / (2 * Z)
        goes_on = (gradient > 0) != (speed > 0)
        gains = torch.where(goes_on, gains + GAIN_UP, gains * GAIN_DOWN).clamp_min(LEAST_GAIN)
        speed = MOMENTUM * speed - rate * gains * gradient
        length = speed.square().sum(dim=1, keepdim=True).sqrt()
        speed = speed * (LONGEST_STEP / length.clamp_min(LONGEST_STEP))
        X = X + speed
        X = X - X.mean(dim=0)
    return X


def _attraction(P: Affinities, X: Tensor) -> Tensor:
    """Return Σ_j p_ij (x_i - x_j) / (1 + ||x_i - x_j||²), (n, q)."""
    from twofold.engine.gpu.kernels import attract

    torch = load_torch()
    pull = torch.empty_like(X)
    attract[(len(X),)](P.first, P.other, P.p, X, pull, Q=X.shape[1], BLOCK=64, num_warps=1)
    return pull


class _Field:
    """The potential Σ_j 1 / (1 + ||x - x_j||²) over a grid that reaches a little beyond points."""

    def __init__(self, X: Tensor) -> None:
        torch = load_torch()
        low, high = X.amin(dim=0).double(), X.amax(dim=0).double()
        margin = MARGIN * (high - low).amax()
        self.low, self.high = low - margin, high + margin
        q = X.shape[1]
        corners = self.low.cpu().numpy(), self.high.cpu().numpy()
        self.spacing = max(SPACING, float((corners[1] - corners[0]).max()) / MOST_NODES[q - 1])
        grid = nodes_over(*corners, self.spacing, lambda distance: distance)
        self.shape = [int(length) for length in grid.shape[-q:]]
        on_device = {"dtype": torch.float32, "device": X.device}
        self.origin = torch.as_tensor(grid.origin[-q:], dtype=torch.float64, device=X.device)
        self.weights = torch.as_tensor(grid.weights.T.copy(), **on_device)
        self.slopes = torch.as_tensor(grid.slopes.T.copy(), **on_device)
        self.padded = [next_fast_len(2 * length - 1, real=True) for length in self.shape]
        sq_dists = torch.zeros((), dtype=torch.float64, device=X.device)
        for axis, n in enumerate(self.padded):
            steps = torch.arange(n, device=X.device)
            along = torch.minimum(steps, n - steps).double() * self.spacing
            sq_dists = sq_dists + (along**2).view([-1 if m == axis else 1 for m in range(q)])
        self.kernel = torch.fft.rfftn(1 / (1 + sq_dists))

    def covers(self, X: Tensor) -> bool:
        """Say whether all points lie on the grid."""
        return bool(((self.low <= X) & (self.high >= X)).all())

    def slope(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the slope of the potential at its points X (n, q), and Z."""
        torch = load_torch()
        n_nodes, at_once = int(np.prod(self.shape)), MOST_SHARES // NODES ** X.shape[1]
        counted = torch.zeros(n_nodes, dtype=torch.int64, device=X.device)

        def spread(some: slice) -> None:
            nodes, shares, _ = self._shares(X[some], slopes=False)
            fixed = (shares.double() * FIXED_POINT).round().long()
            counted.index_add_(0, nodes.flatten(), fixed.flatten())

        in_parts(len(X), at_once, spread)
        G = (counted.double() / FIXED_POINT).view(self.shape)
        H = torch.fft.irfftn(torch.fft.rfftn(G, s=self.padded) * self.kernel, s=self.padded)
        H = H[tuple(slice(length) for length in self.shape)].contiguous()
        slope, flat = torch.empty_like(X), H.flatten().float()

        def read(some: slice) -> None:
            nodes, _, by_axis = self._shares(X[some], slopes=True)
            potential = flat[nodes]
            for m, shares in enumerate(by_axis):
                slope[some, m] = (potential * shares).sum(dim=1)

        in_parts(len(X), at_once, read)
        return slope, (G * H).sum() - len(X)

    def _shares(self, X: Tensor, *, slopes: bool) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Return nodes around points (m, 6^q), their shares, and the slopes of these by axis."""
        torch = load_torch()
        m, q = X.shape
        near = Around.of(X, self.origin, self.spacing, self.weights, self.slopes)
        w, dw = near.weights, near.slopes
        steps = torch.arange(NODES, device=X.device)
        nodes = torch.zeros((m, 1), dtype=torch.int64, device=X.device)
        for axis in range(q):
            along = near.first[:, axis, None] + steps
            nodes = (nodes[:, :, None] * self.shape[axis] + along[:, None]).view(m, -1)
        if not slopes:
            return nodes, _outer([w[:, axis] for axis in range(q)]), []
        by_axis = [
            _outer([dw[:, axis] if axis == at else w[:, axis] for axis in range(q)])
            for at in range(q)
        ]
        return nodes, w, by_axis


def _outer(factors: list[Tensor]) -> Tensor:
    """Return all products of one entry of each factor (m, 6), (m, 6^q)."""
    product = factors[0]
    for factor in factors[1:]:
        product = (product[:, :, None] * factor[:, None]).flatten(1)
    return product

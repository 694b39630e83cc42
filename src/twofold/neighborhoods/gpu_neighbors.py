"""Nearest rows of all rows of a table, on a device.

Up to ``ALL_PAIRS`` rows are compared with all others, by blocks of matrix products. Of more rows
most neighbours are found, by lists around centres, as `twofold.neighborhoods.approximate` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twofold.engine.gpu.library import in_parts, load_torch
from twofold.neighborhoods.approximate import COMPARED, LISTS, N_ROUNDS, ROWS_A_LIST

if TYPE_CHECKING:
    from torch import Tensor

ALL_PAIRS = 200_000
# Distances that are held at once.
MOST_DISTANCES = 2**29


def nearest_among(Y: Tensor, references: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return distances (m, k) of rows Y (m, D) to the k nearest references, and their numbers."""
    torch = load_torch()
    lengths = (references * references).sum(dim=1)
    distances = Y.new_empty((len(Y), k))
    found = torch.empty((len(Y), k), dtype=torch.int64, device=Y.device)

    def work(some: slice) -> None:
        block = Y[some]
        gaps = torch.addmm(lengths, block, references.t(), alpha=-2)
        near = gaps.topk(k, dim=1, largest=False, sorted=True)
        found[some] = near.indices
        distances[some] = near.values + (block * block).sum(dim=1, keepdim=True)

    in_parts(len(Y), max(1, MOST_DISTANCES // len(references)), work)
    return distances.clamp_min(0).sqrt(), found


def most_neighbors(Y: Tensor, k: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return distances (n, k) of rows Y (n, D) to their nearest others, and their numbers."""
    if len(Y) <= ALL_PAIRS:
        numbers = load_torch().arange(len(Y), device=Y.device)
        return _without_itself(numbers, *nearest_among(Y, Y, k + 1))
    return _by_lists(Y, k, seed)


def _without_itself(own: Tensor, distances: Tensor, found: Tensor) -> tuple[Tensor, Tensor]:
    """Drop rows ``own`` (n,) from their lists, else the farthest, where rounding misplaced them."""
    n, k = len(found), found.shape[1] - 1
    is_other = found != own[:, None]
    is_other[:, -1] &= ~is_other.all(dim=1)
    return distances[is_other].view(n, k), found[is_other].view(n, k)


def _by_lists(Y: Tensor, k: int, seed: int) -> tuple[Tensor, Tensor]:
    torch = load_torch()
    n, n_lists = len(Y), round(LISTS * len(Y) ** 0.5)
    centres = _centres(Y, n_lists, seed)
    owner = nearest_among(Y, centres, 1)[1][:, 0]
    order = torch.argsort(owner, stable=True)
    sizes = torch.bincount(owner, minlength=n_lists)
    starts = [0, *torch.cumsum(sizes, dim=0).tolist()]
    near = torch.cdist(centres, centres).argsort(dim=1, stable=True)
    reached = torch.cumsum(sizes[near], dim=1) < max(k + 1, COMPARED * n**0.5)
    counts, near = (reached.sum(dim=1) + 1).tolist(), near.tolist()
    distances = torch.empty((n, k), device=Y.device)
    found = torch.empty((n, k), dtype=torch.int64, device=Y.device)
    for number in range(n_lists):
        own = order[starts[number] : starts[number + 1]]
        if not len(own):
            continue
        lists = near[number][: counts[number]]
        others = torch.cat([order[starts[other] : starts[other + 1]] for other in lists])
        gaps, places = nearest_among(Y[own], Y[others], k + 1)
        distances[own], found[own] = _without_itself(own, gaps, others[places])
    return distances, found


def _centres(Y: Tensor, n_lists: int, seed: int) -> Tensor:
    """Return centres (n_lists, D) by a few rounds of k-means on some of the rows."""
    torch = load_torch()
    draw = torch.Generator().manual_seed(seed)
    some = torch.randperm(len(Y), generator=draw)[: ROWS_A_LIST * n_lists]
    rows = Y[some.to(Y.device)]
    centres = rows[:n_lists].clone()
    for _ in range(N_ROUNDS):
        owner = nearest_among(rows, centres, 1)[1][:, 0]
        order = torch.argsort(owner, stable=True)
        sizes = torch.bincount(owner, minlength=n_lists)
        # Sums of neighbours in a sorted table, from running ones: in the same order every time.
        running = torch.cumsum(rows[order].double(), dim=0)
        ends = torch.cumsum(sizes, dim=0)
        running = torch.cat([running.new_zeros((1, rows.shape[1])), running])
        sums = running[ends] - running[ends - sizes]
        means = (sums / sizes.clamp_min(1)[:, None]).to(rows.dtype)
        centres = torch.where(sizes[:, None] > 0, means, centres)
    return centres

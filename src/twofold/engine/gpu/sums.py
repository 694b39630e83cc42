"""The engine's sums on a device: what `KernelSums.evaluate` does, for tensors.

    A_j = Σ_i F(s_ji) V_i,   dR/dx_j = Σ_i a_ji (U_j·V_i)(x_i - x_j),
    dR/dx_i = -Σ_j a_ji (U_j·V_i)(x_i - x_j)            (see `twofold.engine.sums`)

Where queries are their own references and each is hidden from itself alone, both gradients are
one sum, Σ_i a_ji (U_j·V_i + V_j·U_i)(x_i - x_j), which every row owns: no atomic additions, the
same bits in every run. The last column of V, the mass, is added up in float32; the others go
through tensor cores in a chosen precision, with sums in float32. Gradient errors against float64
(norms, D = 64, q = 2, leave-one-out):

========= ======================================== ===========
precision factors of the products                  error below
========= ======================================== ===========
"fp32"    two float16 parts of each, 22 bits       1e-5
"tf32x3"  two tf32 parts of each, 22 bits          1e-5
"tf32"    11 bits                                  3e-3
"bf16"    8 bits                                   1e-2
========= ======================================== ===========

"fp32" is for exponential kernels, whose largest weight in a row is about 1. With a radius a row may
have nothing but tiny weights, which float16 does not hold: there "tf32x3" is as exact.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from twofold.engine.cells import NEAR
from twofold.engine.gpu.columns import columns_for, tile_precision
from twofold.engine.gpu.grid import evaluate_over_nodes, is_crowded
from twofold.engine.gpu.library import FEWEST_ROWS, load_torch
from twofold.engine.gpu.tiles import (
    TILE,
    CountedTiles,
    TiledPoints,
    TileList,
    along_a_curve,
    list_near,
    list_nearest,
)
from twofold.engine.grid import AXES
from twofold.engine.local_fit import LocalFit
from twofold.engine.plan import Plan
from twofold.kernels import KERNELS, Kernel

if TYPE_CHECKING:
    from torch import Tensor

logger = logging.getLogger(__name__)

# Shifts up to here may be multiplied into U. All of U shares one scale in float16: rows of shift 0
# must keep their digits beside others that are exp(6) times larger.
MOST_FOLDED_SHIFT = 12.0

# Given the order of the rows (m,), their sums (m, C) in that order and their shifts (m,): return
# the loss of each and U (m, C), or None where no gradient is wanted.
Respond = Callable[["Tensor", "Tensor", "Tensor"], "tuple[Tensor, Tensor | None]"]


class CarriedTiles:
    """References X (n, q) in tiles, with the rows V (n, C) that they carry."""

    def __init__(self, X: Tensor, V: Tensor, precision: str = "fp32") -> None:
        self.X, self.V, self.order = X, V, along_a_curve(X)
        self.points = TiledPoints(X, self.order)
        self.columns = columns_for(self.points.padded_rows(V), precision)
        self.precision = precision

    def moved_to(self, X: Tensor) -> CarriedTiles:
        """Return the same rows in the same order, at other places X (n, q)."""
        moved = object.__new__(type(self))
        moved.__dict__ |= self.__dict__
        moved.X, moved.points = X, TiledPoints(X, self.order)
        return moved

    def run(
        self, engine: DeviceSums, queries: Tensor | None, hidden: Tensor | None, **how: Any
    ) -> TileRun:
        """Return an evaluation at queries, the references themselves if None."""
        return TileRun(engine, self, queries, hidden, **how)


def carried(
    X: Tensor, V: Tensor, kernel: Kernel, precision: str, local: LocalFit | None
) -> CarriedTiles:
    """Return references X (n, q) with rows V (n, C) for sums, or for ``local`` fits."""
    if local is None:
        return CarriedTiles(X, V, tile_precision(kernel, precision))
    from twofold.engine.gpu.local_fit import CarriedFits

    return CarriedFits(X, V, local)


class DeviceSums:
    """Kernel-weighted sums on the device of its tensors, with one kernel and cutoff.

    ``nodes`` says whether :meth:`evaluate` sums over the nodes of a grid, where it can; None for
    where that is quicker.
    """

    def __init__(self, kernel: Kernel, cutoff: float = 1e-6, *, nodes: bool | None = None) -> None:
        if KERNELS.get(kernel.name) is not kernel:
            raise ValueError(
                f"The kernel {kernel.name!r} is not one of {sorted(KERNELS)}, which are all that a "
                "GPU knows. Use one of them, or device='cpu'."
            )
        self.kernel, self.cutoff, self.nodes = kernel, cutoff, nodes
        self.n_pairs = 0  # in tiles within reach, at the last call
        self.is_over_nodes = False  # whether the last call went over nodes instead
        self.parts = 1  # that queries are summed in: more where memory is short

    def over_pairs(self) -> DeviceSums:
        """Return the same that never goes over nodes."""
        return DeviceSums(self.kernel, self.cutoff, nodes=False)

    def plan(self, n_queries: int, n_references: int) -> Plan:
        """Return how the last call went."""
        share = self.n_pairs / (n_queries * n_references)
        where = "gpu_grid" if self.is_over_nodes else "gpu"
        return Plan(where, f"{share:.1%} of all pairs are in tiles within reach")

    def evaluate(
        self,
        references: CarriedTiles,
        respond: Respond,
        *,
        queries: Tensor | None = None,
        hidden: Tensor | None = None,
        hides_itself: bool = False,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the loss of each query and the gradients by queries and by references.

        Without ``queries`` (m, q) the references are their own; the full gradient is the sum of
        the two, and may be in the first alone. ``hidden`` (m, K) are references that a query must
        not see, -1 for none; ``hides_itself`` says that each is hidden from itself. Out of memory,
        fewer queries are summed at a time, from then on.
        """
        torch, places = load_torch(), references.X if queries is None else queries
        while True:
            try:
                if self.parts == 1:
                    return self._evaluate(references, respond, queries, hidden, hides_itself)
                if hides_itself:
                    hidden = torch.arange(len(places), device=places.device)[:, None]
                return self._in_parts(references, respond, places, hidden)
            except torch.OutOfMemoryError:
                if len(places) <= FEWEST_ROWS * self.parts:
                    raise
                self.parts *= 4
            logger.info("out of GPU memory: sums go on in %d parts", self.parts)
            torch.cuda.empty_cache()

    def _in_parts(
        self, references: CarriedTiles, respond: Respond, queries: Tensor, hidden: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Do what `evaluate` does, some queries at a time, which lie together."""
        X, n_pairs, order = references.X, 0, along_a_curve(queries)
        losses, by_query = X.new_empty(len(queries)), X.new_empty(queries.shape)
        by_reference = X.new_zeros(X.shape)
        for some in order.split(-(-len(queries) // self.parts)):

            def answer(order: Tensor, A: Tensor, shift: Tensor, some: Tensor = some) -> Any:
                return respond(some[order], A, shift)

            unseen = None if hidden is None else hidden[some]
            losses[some], by_query[some], push = self._evaluate(
                references, answer, queries[some], unseen, hides_itself=False
            )
            by_reference += push
            n_pairs += self.n_pairs
        self.n_pairs = n_pairs
        return losses, by_query, by_reference

    def _evaluate(
        self,
        references: CarriedTiles,
        respond: Respond,
        queries: Tensor | None,
        hidden: Tensor | None,
        hides_itself: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        run = references.run(self, queries, hidden, hides_itself=hides_itself)
        self.is_over_nodes = run.can_use_nodes and (
            is_crowded(self, references, queries) if self.nodes is None else self.nodes
        )
        if self.is_over_nodes:
            if hides_itself:
                hidden = load_torch().arange(len(references.X), device=references.X.device)[:, None]
            return evaluate_over_nodes(self, references, respond, queries, hidden)
        losses, U = respond(run.order, run.sums(slopes=False)[0], run.shift[: run.n_queries])
        in_order = losses.new_empty(len(losses))
        in_order[run.order] = losses
        if U is None:
            return in_order, _zeros_for(run.points), _zeros_for(references.points)
        return in_order, *run.pulls(U)

    def at(
        self,
        references: CarriedTiles,
        queries: Tensor,
        *,
        hidden: Tensor | None = None,
        slopes: bool = False,
        order: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return sums (m, C) at queries (m, q), shifts (m,) and slopes (m, q, C), or an empty one.

        True sums are ``sums * F(shift)``. ``order`` (m,) is one in which queries that follow each
        other are neighbours; found if not given.
        """
        run = references.run(self, queries, hidden, order=order)
        A = run.sums(slopes=slopes)
        out = A.new_empty((len(A), run.n_queries, A.shape[2]))
        out[:, run.order] = A
        shift = out.new_empty(run.n_queries)
        shift[run.order] = run.shift[: run.n_queries]
        return out[0], shift, out[1:].transpose(0, 1)


class TileRun:
    """One evaluation: queries in tiles, what they are shifted by, and what they visit."""

    def __init__(
        self,
        engine: DeviceSums,
        references: CarriedTiles,
        queries: Tensor | None,
        hidden: Tensor | None,
        *,
        hides_itself: bool = False,
        order: Tensor | None = None,
    ) -> None:
        self.engine, self.references = engine, references
        self.is_own = queries is None
        if queries is None:
            order = references.order
        self.order = along_a_curve(queries) if order is None else order
        self.points = references.points if queries is None else TiledPoints(queries, self.order)
        self.n_queries = self.points.n
        self.can_use_nodes = engine.kernel.is_exponential and self.points.q <= AXES
        self.hidden, self.n_hidden = references.order, -1 if hides_itself else 0
        if hidden is not None:
            self.hidden, self.n_hidden = self._places(hidden), hidden.shape[1]
        self.is_folded = True  # whether shifts may be multiplied into U
        self.shift = self.points.X.new_zeros(self.points.padded)
        self.reach = engine.kernel.reach(engine.cutoff) + self.shift[: self.points.n_tiles]
        self.counted = self._within_reach()
        engine.n_pairs = self.counted.n_pairs

    @cached_property
    def near(self) -> TileList:
        """The tiles within reach of each tile of queries."""
        return self.counted.listed()

    def _within_reach(self) -> CountedTiles:
        """Find what rows are shifted by and how far they reach; count the tiles within reach."""
        a, b = self.points, self.references.points
        if not self.engine.kernel.is_exponential:
            return self._counted()
        nearest, farthest = a.X.new_empty(a.padded), a.X.new_empty((2, a.n_tiles))
        self._lower(nearest, farthest, list_nearest(a, b), begins=True)
        reach, self.reach = self.reach, self.reach + farthest[0]
        # Counted before anybody asks for lonely rows: the device waits for no answer.
        counted = self._counted()
        if float(farthest[1].amax()) >= 0:
            self._shift_lonely(nearest, farthest)
            self.reach = reach + farthest[0]
            counted = self._counted()
        return counted

    def _counted(self) -> CountedTiles:
        other = self.reach if self.is_own else _nowhere(self.references.points)
        return self._count(self.points, self.references.points, self.reach, other)

    def _count(
        self, a: TiledPoints, b: TiledPoints, reach_a: Tensor, reach_b: Tensor
    ) -> CountedTiles:
        # Tiles of points that are hidden from themselves are visited before their list.
        return CountedTiles(a, b, reach_a, reach_b, but_own=self.n_hidden == -1)

    def _places(self, hidden: Tensor) -> Tensor:
        """Return hidden references (padded, K) by their places in the tiles, -1 for none."""
        torch = load_torch()
        n = self.references.points.n
        place = torch.full((n + 1,), -1, dtype=torch.int32, device=hidden.device)
        place[self.references.order] = torch.arange(n, dtype=torch.int32, device=hidden.device)
        return self.points.padded_rows(place[hidden.long()])

    def _shift_lonely(self, nearest: Tensor, farthest: Tensor) -> None:
        """Shift rows far from every reference by the distance of the nearest, exact for those."""
        torch = load_torch()
        a, b = self.points, self.references.points
        self._lower(nearest, farthest, list_near(a, b, farthest[1].clone(), _nowhere(b)))
        self.is_folded = bool(nearest.amax() <= MOST_FOLDED_SHIFT)
        is_far = (nearest > self.engine.kernel.reach(NEAR)) & torch.isfinite(nearest)
        self.shift = torch.where(is_far, nearest, 0.0)

    def _lower(
        self, nearest: Tensor, farthest: Tensor, near: TileList, *, begins: bool = False
    ) -> None:
        from twofold.engine.gpu.kernels import nearest_in_tiles

        a, b = self.points, self.references.points
        nearest_in_tiles[(a.n_tiles,)](
            *(a.X, b.X, self.hidden, near.first, near.tiles, nearest, farthest),
            *(self.engine.kernel.reach(NEAR), a.padded, b.padded, a.n, b.n),
            BEGINS=begins,
            **self._how(),
        )

    def _how(self) -> dict[str, Any]:
        return {"Q": self.points.q, "HIDDEN": self.n_hidden, "BM": TILE, "BN": TILE}

    def _how_columns(self, *, one_stage: tuple[str, ...], most_registers: int) -> dict[str, Any]:
        """Return what a kernel is compiled for.

        Tiles of four bytes a number fill the shared memory: a single stage of them lets more
        programs run side by side, as do fewer registers. Both were chosen on an H200 for q = 2.
        """
        columns, precision = self.references.columns, self.references.precision
        stages = 3 if columns.n_columns == columns.at_a_time else 2
        how = {
            "COLUMNS": columns.n_columns,
            "C": columns.at_a_time,
            "KERNEL": self.engine.kernel.name,
            "PRECISION": precision,
            **self._how(),
            "num_warps": 4,
            "num_stages": 1 if precision in one_stage else stages,
        }
        return how if self.points.q > 2 else {**how, "maxnreg": most_registers}

    def sums(self, *, slopes: bool) -> Tensor:
        """Return sums and their slopes (1 + q, m, C) in the order of the tiles."""
        from twofold.engine.gpu.kernels import sum_tiles

        torch = load_torch()
        a, b, columns = self.points, self.references.points, self.references.columns
        axes = 1 + a.q if slopes else 1
        A = torch.empty((axes, a.padded, columns.n_columns), device=a.X.device)
        totals = torch.empty((axes, a.padded), device=a.X.device)
        grid = (a.n_tiles, columns.n_columns // columns.at_a_time, axes)
        sum_tiles[grid](
            *(a.X, b.X, self.shift, columns.high, columns.low, columns.mass),
            *(self.hidden, self.near.order, self.near.first, self.near.tiles, A, totals),
            *(a.padded, b.padded),
            SLOPES=slopes,
            **self._how_columns(one_stage=("tf32", "tf32x3"), most_registers=168),
        )
        m = self.n_queries
        return torch.cat([A[:, :m, : columns.width], totals[:, :m, None]], dim=2) / columns.scale

    def pulls(self, U: Tensor) -> tuple[Tensor, Tensor]:
        """Carry U (m, C), in the order of the tiles, back to queries and references."""
        torch = load_torch()
        a, b, kernel = self.points, self.references.points, self.engine.kernel
        padded = U.new_zeros((a.padded, U.shape[1]))
        padded[: len(U)] = U
        if self.is_own and self.n_hidden <= 0 and self.is_folded and kernel.is_exponential:
            padded *= torch.exp(self.shift / 2)[:, None]
            both = self._pull(padded, self.shift, a, b, self.near, "both")
            return both, torch.zeros_like(both)
        # Rows of hardly any weight answer with very large U: each gets a size of its own.
        size = torch.exp2(torch.frexp(padded.abs().amax(dim=1))[1].float())
        padded /= size[:, None]
        by_query = self._pull(padded, size, a, b, self.near, "queries")
        return by_query, self._pull(padded, size, b, a, self.seen_by(), "references")

    def seen_by(self) -> TileList:
        """List the tiles of queries that see each tile of references."""
        a, b = self.points, self.references.points
        return self._count(b, a, _nowhere(b), self.reach).listed()

    def _pull(
        self, U: Tensor, size: Tensor, a: TiledPoints, b: TiledPoints, near: TileList, side: str
    ) -> Tensor:
        from twofold.engine.gpu.kernels import pull_tiles

        torch = load_torch()
        u, v = columns_for(U, self.references.precision), self.references.columns
        pull = torch.zeros((a.q, a.padded), device=a.X.device)
        pull_tiles[(a.n_tiles,)](
            *(a.X, b.X, self.shift, u.high, u.low, v.high, v.low, u.mass, v.mass, size),
            *(self.hidden, near.order, near.first, near.tiles, pull, a.padded, b.padded),
            SIDE=side,
            **self._how_columns(one_stage=("fp32", "tf32", "tf32x3"), most_registers=160),
        )
        out = pull.new_empty((a.n, a.q))
        out[a.order] = pull[:, : a.n].t() / (u.scale * v.scale)
        return out


def _zeros_for(points: TiledPoints) -> Tensor:
    return points.X.new_zeros((points.n, points.q))


def _nowhere(points: TiledPoints) -> Tensor:
    """Return the reach of tiles that look for nothing."""
    return points.low.new_full((points.n_tiles,), -1.0)

"""The error of UKR summed by the workers of a cluster, to the bits of one machine.

Rows and losses go to every worker once. At each step latent points X (n, q) go there, and

    dR/dX = Σ_strips (pull of the strip's own rows, push to the rows around them)

comes back strip by strip, cut and added up as the engine cuts and adds on one machine: whoever did
a strip, the sums are the same. Of what a strip pushes only the references from the first to the
last that it touches travel; in cells these are hardly more than its own rows.

Sums over a grid of nodes, and those of few rows, are done sooner than they are sent: they stay with
the process that asks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from twofold.array_types import FloatArray
from twofold.engine.runs import NodesRun, StripRun
from twofold.engine.threads import run_tasks
from twofold.process_settings import keep_freed_memory
from twofold.tables.dask_workers import KeptByAll
from twofold.ukr.objective import Reconstruction

# Entries of rows to add up, below which sums are done before workers have been asked: on one core
# they take about half a second, and an answer of two workers a tenth.
WORTH_SENDING = 5e8


class StripSums(NamedTuple):
    """The sums of a strip of rows."""

    losses: FloatArray
    grad: FloatArray  # (rows, q) by the queries
    push: FloatArray  # (q, references) from the first to the last that it is not 0 for
    first: int


class SpreadReconstruction(Reconstruction):
    """The reconstruction error, its strips summed by the workers of a client of dask."""

    def __init__(self, workers: Any, *made_of: Any) -> None:
        super().__init__(*made_of)
        self.kept = KeptByAll(workers, Reconstruction(*made_of))

    def value_and_grad(self, X: FloatArray) -> tuple[float, FloatArray]:
        """Return R(X) and dR/dX, for all latent points."""
        X = X.astype(self.rows.Y.dtype, copy=False)
        run = begin(self, X, is_empty=True)
        n_columns = self.references.V.shape[1]
        if isinstance(run, NodesRun) or run.n_pairs() * n_columns < WORTH_SENDING:
            return super().value_and_grad(X)
        strips = run.strips()
        pushes = []
        for blocks, found in zip(strips, self.kept.ask(sum_strips, X, len(strips)), strict=True):
            numbers = run.numbers[blocks[0].start : blocks[-1].stop]
            run.losses[numbers], run.grad_queries[numbers] = found.losses, found.grad
            push = np.zeros_like(run.points)
            push[:, found.first : found.first + found.push.shape[1]] = found.push
            pushes.append(push)
        return self._summed(*run.finished(pushes))


def begin(objective: Reconstruction, X: FloatArray, *, is_empty: bool) -> StripRun | NodesRun:
    """Return an evaluation at X; one that is empty has no rows to sum, but the same strips."""
    n, V = len(objective.share), objective.references.V
    return objective.engine.begin(
        X[:n],
        V[:, :0] if is_empty else V,
        objective._respond,
        references=None if objective.landmarks is None else X[n:],
        hidden=objective.hidden,
        local=objective.references.local(X.shape[1]),
    )


def sum_strips(objective: Reconstruction, X: FloatArray, first: int, stop: int) -> list[StripSums]:
    """Sum some strips of an evaluation at X: what a worker does."""
    from distributed import get_worker

    keep_freed_memory()
    run = begin(objective, X, is_empty=False)
    assert isinstance(run, StripRun)
    strips = run.strips()[first:stop]
    pushes = run_tasks(run.strip, strips, get_worker().state.nthreads)
    return [_cut(run, blocks, push) for blocks, push in zip(strips, pushes, strict=True)]


def _cut(run: StripRun, blocks: list[slice], push: FloatArray) -> StripSums:
    numbers = run.numbers[blocks[0].start : blocks[-1].stop]
    touched = np.flatnonzero(push.any(axis=0))
    first, stop = (int(touched[0]), int(touched[-1]) + 1) if len(touched) else (0, 0)
    return StripSums(run.losses[numbers], run.grad_queries[numbers], push[:, first:stop], first)

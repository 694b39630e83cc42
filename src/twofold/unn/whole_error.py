"""The error of whole embeddings, many at a time: what evolution strategies and CMA-ES minimise.

    E(X) = Σ_i w_i e_i(X)

with `e_i` the error of row i for the mean of its K nearest latent points, see `point_errors`.
Embeddings are shared out among threads; each one is computed by itself, so the number of threads
does not matter.
"""

from __future__ import annotations

import numpy as np

from twofold.array_types import FloatArray
from twofold.compiled import compiled
from twofold.engine.threads import run_tasks
from twofold.unn.growing import PointTree, empty_tree, rebuild
from twofold.unn.placing import judge_of, list_errors
from twofold.unn.point_errors import PointError
from twofold.unn.regression import blocks_of
from twofold.unn.rows import NOBODY, Rows, error_of_mean, rows_of, write_mean
from twofold.unn.task import Task

# Embeddings that a thread takes at a time.
_BLOCK = 16


class WholeError:
    """E as a function of embeddings.

    Parameters
    ----------
    task : Task
    include_self : bool
        Whether a row is one of its own K neighbours.
    """

    def __init__(self, task: Task, include_self: bool) -> None:
        Y = task.Y - task.Y.mean(axis=0) if task.error.is_shift_invariant else task.Y
        self._rows = rows_of(Y, task.weights)
        self._k = min(task.others(include_self), len(Y) - 1)
        self._include_self, self._error = include_self, task.error
        self._n_threads = task.n_threads

    def __call__(self, candidates: FloatArray) -> FloatArray:
        """Return the error (m,) of embeddings (m, n, q)."""
        m, n, q = candidates.shape
        values = np.zeros(m)
        if n == 1:
            return values  # nobody has a neighbour

        def work(part: slice) -> None:
            _write_values(
                empty_tree(n, q),
                candidates[part],
                self._rows,
                self._k,
                self._include_self,
                self._error,
                values[part],
            )

        run_tasks(work, blocks_of(m, _BLOCK), self._n_threads)
        return values


@compiled
def _write_values(
    tree: PointTree,
    candidates: FloatArray,
    rows: Rows,
    k: int,
    include_self: bool,
    error: PointError,
    values: FloatArray,
) -> None:
    judge = judge_of(rows, k, include_self, error)
    for c in range(len(candidates)):
        if tree.X.shape[1] == 1:
            values[c] = _error_on_line(candidates[c, :, 0], rows, k, include_self, error)
            continue
        tree.X[:] = candidates[c]
        tree.leaf_of[:] = 0  # all points are in the tree; rebuilding finds out where
        rebuild(tree)
        errors, _ = list_errors(tree, rows, judge)
        total = 0.0
        for i in range(errors.size):
            total += rows.weights[i] * errors[i]
        values[c] = total


@compiled
def _error_on_line(
    x: FloatArray, rows: Rows, k: int, include_self: bool, error: PointError
) -> float:
    """Return the error of an embedding x (n,): sorted points have their neighbours beside them."""
    n = x.size
    order = np.argsort(x)
    near, f = np.empty(k, dtype=np.int64), np.empty(rows.values.shape[1])
    total = 0.0
    for rank in range(n):
        i = order[rank]
        left, right = rank - 1, rank + 1
        for place in range(k):
            if right == n or (left >= 0 and x[i] - x[order[left]] <= x[order[right]] - x[i]):
                near[place] = order[left]
                left -= 1
            else:
                near[place] = order[right]
                right += 1
        write_mean(rows, near, k, i if include_self else NOBODY, f)
        total += rows.weights[i] * error_of_mean(f, rows, i, error)
    return total

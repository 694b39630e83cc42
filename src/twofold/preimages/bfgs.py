"""Limited-memory BFGS directions of many small problems, each with pairs of its own.

A problem keeps its last pairs of a step s and a change c of the gradient, oldest first, with
``1 / s·c``, which is 0 for a place that holds none. The two loops over the pairs are those of
Nocedal (1980).
"""

import math
from typing import NamedTuple

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled
from twofold.small_systems import assign, dot

# A step and a change of the gradient at a wider angle than this tell no curvature.
_SMALLEST_COSINE = 1e-8


class Memory(NamedTuple):
    """Pairs of n problems in D unknowns, the last k of each."""

    steps: FloatArray  # (n, k, D)
    changes: FloatArray  # (n, k, D), of gradients
    inverse: FloatArray  # (n, k), one over step times change; 0 for an empty place


def empty_memory(n: int, k: int, D: int) -> Memory:
    """Return room for k pairs of each problem."""
    return Memory(np.zeros((n, k, D)), np.zeros((n, k, D)), np.zeros((n, k)))


@compiled
def remember(memory: Memory, rows: IntArray, step: FloatArray, change: FloatArray) -> None:
    """Add a pair (a, D) to the a problems `rows`, in place of their oldest."""
    steps, changes, inverse = memory
    k, D = steps.shape[1], steps.shape[2]
    for r in range(rows.shape[0]):
        j = rows[r]
        product = dot(step[r], change[r])
        sizes = dot(step[r], step[r]) * dot(change[r], change[r])
        if not product > _SMALLEST_COSINE * math.sqrt(sizes):
            inverse[j, :] = 0  # what was learned elsewhere does not hold here
            continue
        for p in range(k - 1):
            inverse[j, p] = inverse[j, p + 1]
            for d in range(D):
                steps[j, p, d] = steps[j, p + 1, d]
                changes[j, p, d] = changes[j, p + 1, d]
        inverse[j, k - 1] = 1 / product
        for d in range(D):
            steps[j, k - 1, d] = step[r, d]
            changes[j, k - 1, d] = change[r, d]


@compiled
def directions(
    memory: Memory,
    rows: IntArray,
    gradient: FloatArray,
    rate: FloatArray,
    moves: FloatArray,
    longest: FloatArray,
) -> FloatArray:
    """Return directions (a, D) down, or the moves, none longer than `longest` (a,)."""
    # The moves (a, D) stay where no pair is known, or the pairs lead up. The rate (a,) is a guess
    # at the curvature for problems that know none.
    steps, changes, inverse = memory
    found = moves.copy()
    k, D = steps.shape[1], steps.shape[2]
    g, shares = np.empty(D), np.empty(k)
    for r in range(rows.shape[0]):
        j = rows[r]
        if not inverse[j].any():
            continue
        assign(g, gradient[r])
        for p in range(k - 1, -1, -1):
            shares[p] = inverse[j, p] * dot(steps[j, p], g)
            for d in range(D):
                g[d] -= shares[p] * changes[j, p, d]
        squares = dot(changes[j, k - 1], changes[j, k - 1])
        if inverse[j, k - 1] > 0 and squares > 0:
            size = 1 / (inverse[j, k - 1] * squares)
        else:
            size = 1 / rate[r] if rate[r] > 0 else 0.0
        for d in range(D):
            g[d] *= size
        for p in range(k):
            back = shares[p] - inverse[j, p] * dot(changes[j, p], g)
            for d in range(D):
                g[d] += back * steps[j, p, d]
        if dot(g, gradient[r]) > 0:
            length = max(math.sqrt(dot(g, g)), 1e-300)
            share = -min(1.0, longest[r] / length)
            for d in range(D):
                found[r, d] = share * g[d]
    return found

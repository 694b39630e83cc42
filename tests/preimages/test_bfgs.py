from __future__ import annotations

import numpy as np

from twofold.preimages import bfgs


def inverse_hessian(steps, changes):
    """Return the inverse Hessian after updates by pairs, written out as matrices."""
    D = len(steps[0])
    size = steps[-1] @ changes[-1] / (changes[-1] @ changes[-1])
    H = size * np.eye(D)
    for s, c in zip(steps, changes, strict=True):
        V = np.eye(D) - np.outer(c, s) / (s @ c)
        H = V.T @ H @ V + np.outer(s, s) / (s @ c)
    return H


def pairs(rng, n, D):
    A = rng.normal(size=(D, D))
    steps = rng.normal(size=(n, D))
    return steps, steps @ (A @ A.T + np.eye(D))


def directions(memory, rows, gradient, longest=np.inf):
    k = len(rows)
    return bfgs.directions(
        memory, rows, gradient, np.full(k, 2.0), -gradient / 2.0, np.full(k, longest)
    )


def test_directions_are_those_of_the_updated_matrix():
    rng = np.random.default_rng(0)
    memory, rows = bfgs.empty_memory(3, 4, 5), np.array([2, 0])
    kept = [pairs(rng, 6, 5) for _ in rows]
    for k in range(6):
        step, change = (np.array([kept[r][part][k] for r in range(2)]) for part in (0, 1))
        bfgs.remember(memory, rows, step, change)
    gradient = rng.normal(size=(2, 5))
    found = directions(memory, rows, gradient)
    for r in range(2):  # the last four of six pairs are left
        H = inverse_hessian(kept[r][0][2:], kept[r][1][2:])
        np.testing.assert_allclose(found[r], -H @ gradient[r])


def test_moves_where_nothing_is_known():
    rng = np.random.default_rng(1)
    memory, rows, gradient = bfgs.empty_memory(2, 3, 4), np.arange(2), rng.normal(size=(2, 4))
    np.testing.assert_array_equal(directions(memory, rows, gradient), -gradient / 2)
    step, change = pairs(rng, 2, 4)
    bfgs.remember(memory, rows, step, change)
    assert memory.inverse.any(axis=1).all()
    bfgs.remember(memory, rows[:1], step[:1], -change[:1])  # bends down: all is forgotten
    np.testing.assert_array_equal(memory.inverse.any(axis=1), [False, True])
    memory.inverse[rows] = 0
    np.testing.assert_array_equal(directions(memory, rows, gradient), -gradient / 2)


def test_no_direction_is_too_long():
    rng = np.random.default_rng(2)
    memory, rows, gradient = bfgs.empty_memory(2, 3, 4), np.arange(2), rng.normal(size=(2, 4))
    bfgs.remember(memory, rows, *pairs(rng, 2, 4))
    free, short = directions(memory, rows, gradient), directions(memory, rows, gradient, 1e-3)
    np.testing.assert_allclose(np.linalg.norm(short, axis=1), 1e-3)
    lengths = np.linalg.norm(free, axis=1, keepdims=True)
    np.testing.assert_allclose(short, 1e-3 * free / lengths)

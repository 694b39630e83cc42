"""Objectives with known minima, shared by the tests of this folder."""

from __future__ import annotations

import numpy as np


class Quadratic:
    """Half the sum of w (x - c)^2; the minimum is 0 at the centre."""

    def __init__(self, centre, weights=1.0):
        self.centre = np.asarray(centre)
        self.weights = weights

    def value_and_grad(self, X):
        offset = X - self.centre
        return float(0.5 * (self.weights * offset**2).sum()), self.weights * offset


class Rosenbrock:
    """100 (b - a^2)^2 + (1 - a)^2 in every row (a, b); the minimum is 0 at (1, 1)."""

    def value_and_grad(self, X):
        a, b = X[:, 0], X[:, 1]
        bend = b - a * a
        value = float((100 * bend**2 + (1 - a) ** 2).sum())
        return value, np.stack([-400 * a * bend - 2 * (1 - a), 200 * bend], axis=1)


class LogBarrier:
    """Every coordinate: -x + 0.1 cos(5 x) - mu log(1 - x), and inf from x = 1 on; not convex."""

    def __init__(self, mu=0.01):
        self.mu = mu

    def value_and_grad(self, X):
        if (X >= 1).any():
            return np.inf, np.full_like(X, np.nan)
        value = -X + 0.1 * np.cos(5 * X) - self.mu * np.log(1 - X)
        return float(value.sum()), -1 - 0.5 * np.sin(5 * X) + self.mu / (1 - X)


class DoubleWell:
    """Every coordinate: (x^2 - 1)^2 + 0.3 x + penalty x^2; the lower well is near -1.04."""

    def __init__(self, penalty=0.0):
        self.penalty = penalty

    def value_and_grad(self, X):
        value = (X * X - 1) ** 2 + 0.3 * X + self.penalty * X * X
        return float(value.sum()), 4 * X * (X * X - 1) + 0.3 + 2 * self.penalty * X


class Spoilt:
    """Another objective, whose call number `call` (from 1) is replaced by `act(X)`."""

    def __init__(self, objective, call, act):
        self.objective = objective
        self.call = call
        self.act = act
        self.n_calls = 0

    def value_and_grad(self, X):
        self.n_calls += 1
        if self.n_calls == self.call:
            return self.act(X)
        return self.objective.value_and_grad(X)


def interrupt(X):
    raise KeyboardInterrupt

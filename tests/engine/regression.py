"""A regression problem in the engine's terms, beside the same in the oracle's."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from finite_differences import numerical_gradient, relative_error
from oracles import kernel_sums as oracle

from twofold.engine import KernelSums

# So wide that a few cells lie side by side, and so narrow that most points have neighbours.
SPREAD = {1: 3.0, 2: 1.5, 3: 0.9, 5: 0.5}


class Regression:
    """Squared distance of ``f(x_j)`` from targets, with weights and missing entries."""

    def __init__(self, Q, X, Y, targets, own=None, omega=None, observed=None):
        self.Q, self.X, self.Y, self.targets = Q, X, Y, targets
        self.own, self.omega, self.observed = own, omega, observed

    def expected(self, kernel):
        return oracle.error(
            kernel, self.Q, self.X, self.Y, self.targets, self.own, self.omega, self.observed
        )

    def found(self, kernel, *, dtype=np.float64, **options):
        """Return what the engine gives for losses and the gradients by Q and by X."""
        engine = KernelSums(kernel, **options)
        references = None if self.Q is self.X else self.X.astype(dtype)
        return engine.evaluate(
            self.Q.astype(dtype),
            self.carried().astype(dtype),
            self.respond,
            references=references,
            hidden=self.own,
        )

    def gradient_error(self, kernel, backend):
        """How far the gradient of rows among themselves is from central differences."""
        engine = KernelSums(kernel, cutoff=1e-15, n_jobs=1, backend=backend)
        V = self.carried()

        def error(X):
            return engine.evaluate(X, V, self.respond, hidden=self.own)[0].sum()

        _, by_query, by_reference = engine.evaluate(self.X, V, self.respond, hidden=self.own)
        return relative_error(by_query + by_reference, numerical_gradient(error, self.X))

    def carried(self):
        """Numerators and denominators, column by column."""
        known = np.ones(self.Y.shape) if self.observed is None else self.observed
        known = known if self.omega is None else known * self.omega[:, None]
        return np.concatenate([known * self.Y, known], axis=1)

    def respond(self, numbers, A, shift):
        D = self.Y.shape[1]
        denominator = np.where(A[:, D:] > 0, A[:, D:], 1)
        alive = A[:, D:] > 0
        f = np.where(alive, A[:, :D] / denominator, self.means[numbers])
        E = np.where(alive, 2 * (f - self.targets[numbers]), 0) / denominator
        losses = ((f - self.targets[numbers]) ** 2).sum(axis=1)
        return losses, np.concatenate([E, -E * f], axis=1).astype(A.dtype)

    @cached_property
    def means(self):
        """The mean of the rows that each query may see, (m, D)."""
        known = self.carried()[:, self.Y.shape[1] :]
        seen = np.broadcast_to(known, (len(self.Q), *known.shape)).copy()
        if self.own is not None:
            seen[np.flatnonzero(self.own >= 0), self.own[self.own >= 0]] = 0
        total = seen.sum(axis=1)
        return (seen * self.Y).sum(axis=1) / np.where(total > 0, total, 1)


def make_regression(kernel, q, situation="", *, seed=0, n=60, D=3):
    """Return a problem; ``situation`` names what it has: own, weights, missing, queries."""
    rng = np.random.default_rng([seed, q])
    # In units of the kernel's width, so that all kernels see about as many neighbours.
    spread = SPREAD[q] * kernel.half_width()
    X = spread * rng.normal(size=(n, q))
    Y = rng.normal(size=(n, D)) + 2
    Q, own, m = X, np.arange(n), n
    if "queries" in situation:
        m = 25
        Q = spread * rng.normal(size=(m, q))
        own = rng.integers(-1, n, size=m)
    return Regression(
        Q,
        X,
        Y,
        rng.normal(size=(m, D)),
        own if "own" in situation else None,
        rng.uniform(0.2, 3, size=n) if "weights" in situation else None,
        rng.random((n, D)) < 0.8 if "missing" in situation else None,
    )

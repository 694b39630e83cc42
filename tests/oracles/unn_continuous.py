"""Continuous embeddings by nearest neighbours, slowly: every mean and every error from scratch."""

from __future__ import annotations

import numpy as np


def neighbors_of(x, X, rows, k):
    """Return the k rows nearest to x, of two as near the one that came first."""
    dists = {j: ((X[j] - x) ** 2).sum() for j in rows}
    return sorted(rows, key=lambda j: (dists[j], j))[:k]


def mean_of(Y, weights, rows):
    """Return the weighted mean of rows over their observed entries, else that of the column."""
    f = np.empty(Y.shape[1])
    for d in range(Y.shape[1]):
        some = [j for j in rows if not np.isnan(Y[j, d])]
        if not some:
            some = [j for j in range(len(Y)) if not np.isnan(Y[j, d])]
        f[d] = np.average(Y[some, d], weights=weights[some])
    return f


def squared(f, y):
    """Return ||f - y||² over observed entries, scaled up to all of them."""
    seen = ~np.isnan(y)
    return ((f - y)[seen] ** 2).sum() * len(y) / seen.sum()


def squared_gap(a, b):
    """Return the squared distance of two rows, over common entries and scaled up to all."""
    both = ~np.isnan(a) & ~np.isnan(b)
    return ((a - b)[both] ** 2).sum() * len(a) / both.sum()


class Points:
    """Rows with latent points; ``error_of(f, y)`` is the error of a row."""

    def __init__(self, Y, q, K, weights=None, include_self=True, error_of=squared):
        self.Y, self.X = Y, np.zeros((len(Y), q))
        self.weights = np.ones(len(Y)) if weights is None else weights
        self.include_self, self.error_of = include_self, error_of
        self.k = max(1, K - 1) if include_self else K

    def error(self, i, x, rows):
        """Return the error of row i at x with its neighbours among ``rows``."""
        # In one order: places with the same neighbours must tie to the last bit.
        near = sorted(neighbors_of(x, self.X, [j for j in rows if j != i], self.k))
        near = [*near, i] if self.include_self else near
        return self.error_of(mean_of(self.Y, self.weights, near), self.Y[i])

    def full_error(self):
        rows = range(len(self.Y))
        return sum(self.weights[i] * self.error(i, self.X[i], rows) for i in rows)

    def nearest(self, i, rows):
        return min(rows, key=lambda j: (squared_gap(self.Y[i], self.Y[j]), j))

    def best(self, i, places, rows):
        errors = [self.error(i, x, rows) for x in places]
        return places[int(np.argmin(errors))], min(errors)

    def gaussian(self, n_candidates, rng, nearest=None, spread="squared"):
        """Run Algorithm 10."""
        nearest = nearest or self.nearest
        for i in range(len(self.Y)):
            Z = rng.standard_normal((n_candidates, self.X.shape[1]))
            if i:
                near = nearest(i, range(i))
                sigma = squared_gap(self.Y[i], self.Y[near])
                sigma = sigma if spread == "squared" else np.sqrt(sigma)
                self.X[i], _ = self.best(i, self.X[near] + sigma * Z, range(i))
        return self.X

    def swarm(self, n_steps, pull, rng):
        """Run Algorithm 9."""
        for i in range(len(self.Y)):
            v, lots = rng.standard_normal(self.X.shape[1]), rng.random((n_steps, 2))
            if not i:
                continue
            start = self.X[self.nearest(i, range(i))]
            x, best, lowest = start.copy(), start.copy(), np.inf
            for one, other in lots:
                v = v + pull[0] * one * (best - x) + pull[1] * other * (start - x)
                x = x + v
                error = self.error(i, x, range(i))
                if error < lowest:
                    best, lowest = x.copy(), error
            self.X[i] = best
        return self.X

    def refine(self, n_candidates, rng):
        """Take each row up once; move it if its own error and the full error fall."""
        rows = range(len(self.Y))
        for i in rows:
            Z = rng.standard_normal((n_candidates, self.X.shape[1]))
            near = self.nearest(i, [j for j in rows if j != i])
            sigma = squared_gap(self.Y[i], self.Y[near])
            x, lowest = self.best(i, self.X[near] + sigma * Z, rows)
            if lowest >= self.error(i, self.X[i], rows):
                continue
            before, old = self.full_error(), self.X[i].copy()
            self.X[i] = x
            if self.full_error() >= before:
                self.X[i] = old
        return self.X


def neighbor_lists(A, K):
    """Return the K nearest rows of each row of A, itself first."""
    gaps = ((A[:, None] - A[None]) ** 2).sum(axis=2)
    np.fill_diagonal(gaps, -1)
    return np.argsort(gaps, axis=1, kind="stable")[:, :K]


def normalized_dsre(Y, X, K):
    """Return E_N = sqrt(Σ ||f - y||²) / n, each row among its own K neighbours."""
    F = Y[neighbor_lists(X, K)].mean(axis=1)
    return np.sqrt(((F - Y) ** 2).sum()) / len(Y)


def shared_neighbors(Y, X, K):
    """Return E_NX: the share of neighbours that both spaces agree on, each row its own first."""
    pairs = zip(neighbor_lists(Y, K), neighbor_lists(X, K), strict=True)
    return float(np.mean([len(set(a) & set(b)) / K for a, b in pairs]))

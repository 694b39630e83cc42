"""Ranks and co-ranking scores one pair at a time, straight from the definitions.

Lee and Verleysen 2009 and 2010, Lee et al. 2015, Venna and Kaski 2001; ties by index.
"""

from __future__ import annotations

import numpy as np


def squared_distance(a, b):
    return sum((float(u) - float(v)) ** 2 for u, v in zip(a, b, strict=True))


def rank_matrix(A):
    """Return ranks (n, n) of column j seen from row i, 1 .. n - 1; 0 for a point itself."""
    n = len(A)
    ranks = np.zeros((n, n), dtype=int)
    for i in range(n):
        gaps = [squared_distance(A[i], A[k]) for k in range(n)]
        for j in range(n):
            for k in range(n):
                nearer = gaps[k] < gaps[j] or (gaps[k] == gaps[j] and k < j)
                if k != i and j != i and nearer:
                    ranks[i, j] += 1
            ranks[i, j] += j != i
    return ranks


def matrix(Y, X, queries=None):
    """Return Q (n - 1, n - 1)."""
    n = len(Y)
    rho, r = rank_matrix(Y), rank_matrix(X)
    Q = np.zeros((n - 1, n - 1), dtype=int)
    for i in range(n) if queries is None else queries:
        for j in range(n):
            if i != j:
                Q[rho[i, j] - 1, r[i, j] - 1] += 1
    return Q


def q_nx(Q, K, part="all"):
    m = Q[0].sum()
    kept = 0
    for k in range(K):
        for l in range(K):  # noqa: E741
            wanted = {"all": True, "closer": k > l, "farther": k < l}[part]
            kept += Q[k, l] if wanted else 0
    return kept / (K * m)


def r_nx(Q, K):
    n = len(Q) + 1
    return ((n - 1) * q_nx(Q, K) - K) / (n - 1 - K)


def lcmc(Q, K):
    return q_nx(Q, K) - K / len(Q)


def k_max(Q):
    return max(range(1, len(Q) + 1), key=lambda K: lcmc(Q, K))


def q_local(Q):
    return np.mean([q_nx(Q, K) for K in range(1, k_max(Q) + 1)])


def q_global(Q):
    return np.mean([q_nx(Q, K) for K in range(k_max(Q), len(Q) + 1)])


def auc(Q):
    sizes = range(1, len(Q))
    return sum(r_nx(Q, K) / K for K in sizes) / sum(1 / K for K in sizes)


def trustworthiness(Q, K):
    n, m = len(Q) + 1, Q[0].sum()
    penalty = 0
    for k in range(K + 1, n):
        for l in range(1, K + 1):  # noqa: E741
            penalty += (k - K) * Q[k - 1, l - 1]
    return 1 - 2 * penalty / (m * K * (2 * n - 3 * K - 1))


def continuity(Q, K):
    return trustworthiness(Q.T, K)


def e_nx(Y, X, sizes):
    """Return the overlap of neighbourhoods in which a point is its own first neighbour."""
    rho, r = rank_matrix(Y), rank_matrix(X)
    return [np.mean([np.sum((rho[i] < K) & (r[i] < K)) / K for i in range(len(Y))]) for K in sizes]

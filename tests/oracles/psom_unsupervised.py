"""Unsupervised PSOM+ as written in the thesis: one row after the other, dense matrices."""

from __future__ import annotations

import numpy as np
from oracles import psom, psom_smoothing


def principal_plane(Y, q):
    """Return the places (m, q) of rows on their principal plane, scaled to the box (eq. 3.42)."""
    mean = Y.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(Y.T))
    V = vectors[:, np.argsort(values)[::-1][:q]]
    scores = (Y - mean) @ V
    lengths = np.abs(scores).max(axis=0)
    return scores / lengths


def project(nodes, W, y, x):
    """Return the better of the best matches from the last place and from the best node."""
    q, p = len(nodes), np.ones(len(y))
    node = np.stack(np.meshgrid(*nodes, indexing="ij"), axis=-1).reshape(-1, q)
    starts = [x, node[psom.best_node(W, y, p)]]
    found = [psom.best_match(nodes, -np.ones(q), np.ones(q), W, y, p, start) for start in starts]
    return min(found, key=lambda one: one[1])[0]


def anneal(nodes, M, Y, schedule):
    """Return node values and places after adaption and projection for each smoothness."""
    X = principal_plane(Y, len(nodes))
    for lam in schedule:
        B = psom_smoothing.design(nodes, X)
        # The schedule is that for 1,000 rows; eq. 3.40 has the sum over the rows.
        W = psom_smoothing.soft(B, M, Y, lam * len(Y) / 1000)
        X = np.array([project(nodes, W, y, x) for y, x in zip(Y, X, strict=True)])
    return W, X

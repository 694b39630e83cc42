"""Nearest neighbours of Kramer 2013 one row at a time, straight from the formulas."""

from __future__ import annotations

import numpy as np


def distance(a, b, p=2.0):
    return float((np.abs(np.asarray(a) - np.asarray(b)) ** p).sum() ** (1 / p))


def weighted_mean(X, y, x, k, p=2.0):
    """Return eq. 2.12 at x; the mean of the rows on x if there are any."""
    gaps = np.array([distance(row, x, p) for row in X])
    near = np.argsort(gaps, kind="stable")[:k]
    if (gaps[near] == 0).any():
        return np.mean([y[i] for i in near if gaps[i] == 0], axis=0)
    weights = [1 / gaps[i] ** 2 for i in near]
    return sum(w * y[i] for w, i in zip(weights, near, strict=True)) / sum(weights)


def balls(X, y):
    """Return (row, radius, count) of the balls of model-based nearest neighbours, one by one."""
    n = len(X)
    ungrouped = set(range(n))
    found = []
    while ungrouped:
        candidates = []
        for i in sorted(ungrouped):
            others = [distance(X[i], X[j]) for j in range(n) if y[j] != y[i]]
            limit = min(others) if others else np.inf
            members = [
                j
                for j in sorted(ungrouped)
                if j == i or (y[j] == y[i] and distance(X[i], X[j]) < limit)
            ]
            radius = max(distance(X[i], X[j]) for j in members)
            candidates.append((-len(members), radius, i, members))
        count, radius, i, members = min(candidates)
        found.append((i, radius, -count))
        ungrouped -= set(members)
    return found


def ball_label(X, y, found, x):
    """Return the label of x by balls."""
    inside = [b for b in found if distance(x, X[b[0]]) - b[1] <= 0]
    if inside:
        most = max(count for _, _, count in inside)
        inside = [b for b in inside if b[2] == most]
    best = min(inside or found, key=lambda b: distance(x, X[b[0]]) - b[1])
    return y[best[0]]


def propagate(X, y):
    """Return all labels after those other than -1 have spread, and the rows in that order."""
    labels = list(y)
    labelled = [i for i in range(len(X)) if y[i] != -1]
    unlabelled = [i for i in range(len(X)) if y[i] == -1]
    order = []
    while unlabelled:
        pairs = [
            (distance(X[u], X[v]) ** 2, u, place)
            for u in unlabelled
            for place, v in enumerate(labelled)
        ]
        _, u, place = min(pairs)
        labels[u] = labels[labelled[place]]
        labelled.append(u)
        unlabelled.remove(u)
        order.append(u)
    return labels, order


def vote(labels):
    """Return the most frequent label, of several the smallest."""
    return min(sorted(set(labels)), key=lambda label: (-labels.count(label), label))


def one_pass(Y, zeta):
    """Return centres and labels of constructive K-means, means taken afresh."""
    clusters, labels = [], []
    for i, y in enumerate(Y):
        gaps = [distance(y, np.mean(Y[members], axis=0)) for members in clusters]
        if not gaps or min(gaps) > zeta:
            labels.append(len(clusters))
            clusters.append([i])
        else:
            labels.append(int(np.argmin(gaps)))
            clusters[labels[-1]].append(i)
    return np.array([np.mean(Y[members], axis=0) for members in clusters]), labels

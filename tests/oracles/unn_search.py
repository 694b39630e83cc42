"""Filling gaps and changing whole embeddings, slowly: every sum and every order from scratch."""

from __future__ import annotations

import numpy as np
from oracles.unn import error_on_lattice, error_on_line


def repair(Y, K, weights=None):
    """Return Y filled row by row from complete rows (Kramer 2013, Algorithm 4)."""
    Y = np.array(Y, dtype=float)
    weights = np.ones(len(Y)) if weights is None else weights
    seen = ~np.isnan(Y)

    def turn(i):
        entries = [y if there else -np.inf for y, there in zip(Y[i], seen[i], strict=True)]
        return (~seen[i]).sum(), entries

    waiting = sorted(range(len(Y)), key=turn)
    mass = (weights[:, None] * seen).sum(axis=0)
    means = (weights[:, None] * np.where(seen, Y, 0)).sum(axis=0) / mass
    complete = []
    for i in waiting:
        if seen[i].all():
            complete.append(i)
            continue
        if complete:
            gaps = [np.linalg.norm((Y[i] - Y[j])[seen[i]]) for j in complete]
            near = [complete[place] for place in np.argsort(gaps, kind="stable")[:K]]
            filler = weights[near] @ Y[near] / weights[near].sum()
        else:
            filler = means
        Y[i] = np.where(seen[i], Y[i], filler)
        complete.append(i)
    return Y


def full_error(sites, setting):
    """Return the weighted sum of errors of rows at sites (n, q), ranks or points of a lattice."""
    if sites.shape[1] == 1:
        order = np.argsort(sites[:, 0])
        errors = [error_on_line(rank, order, setting) for rank in range(len(order))]
        return setting.weights[order] @ errors
    table = {j: tuple(int(c) for c in site) for j, site in enumerate(sites)}
    return sum(setting.weights[j] * error_on_lattice(j, table, setting) for j in table)


def swap(sites, pairs, setting):
    """Swap the rows at pairs of places, counted by coordinates; return sites and all errors."""
    sites = np.array(sites, dtype=float)
    places = sites[np.lexsort(sites.T[::-1])]
    values = [full_error(sites, setting)]
    for a, b in pairs:
        rows = [int(np.flatnonzero((sites == places[p]).all(axis=1))[0]) for p in (a, b)]
        trial = sites.copy()
        trial[rows] = sites[rows[::-1]]
        value = full_error(trial, setting)
        if value <= values[-1] * (1 + 1e-12):
            sites = trial
            values.append(value)
        else:
            values.append(values[-1])
    return sites, np.array(values)


def whole_error(X, setting):
    """Return the weighted sum of errors of an embedding X (n, q) anywhere."""
    total = 0.0
    for i in range(len(X)):
        gaps = np.linalg.norm(X - X[i], axis=1)
        others = [j for j in np.argsort(gaps, kind="stable") if j != i][: setting.n_others]
        total += setting.weights[i] * setting.error(i, others)
    return total

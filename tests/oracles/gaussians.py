"""Gaussians and their conditionals as the formulas say, row by row with whole covariances."""

from __future__ import annotations

import numpy as np


def condition_row(y, mean, covariance):
    """Return means and variances of each entry given the other observed ones, and log p(y_o)."""
    seen = np.flatnonzero(~np.isnan(y))
    means, variances = np.empty_like(mean), np.empty_like(mean)
    for d in range(len(y)):
        others = seen[seen != d]
        S = covariance[np.ix_(others, others)]
        reach = covariance[d, others]
        means[d] = mean[d] + reach @ np.linalg.solve(S, (y - mean)[others])
        variances[d] = covariance[d, d] - reach @ np.linalg.solve(S, reach)
    S, gap = covariance[np.ix_(seen, seen)], (y - mean)[seen]
    distance = gap @ np.linalg.solve(S, gap)
    log_density = -0.5 * (np.linalg.slogdet(2 * np.pi * S)[1] + distance)
    return means, variances, log_density, distance


def local_gaussian(place, places, rows, doubt, prior_covariance, k, rows_of_prior, farther):
    """Return mean and covariance of the k nearest rows around a place, shrunken."""
    squares = ((places - place) ** 2).sum(axis=1) + farther
    near = np.argsort(squares, kind="stable")[: k + 1]
    w = 1 - squares[near] / squares[near[-1]]
    w = w / w.sum()
    mean = w @ rows[near]
    covariance = np.zeros((rows.shape[1], rows.shape[1]))
    for weight, i in zip(w, near, strict=True):
        covariance += weight * (np.outer(rows[i] - mean, rows[i] - mean) + np.diag(doubt[i]))
    worth = 1 / (w**2).sum()
    scale = np.trace(covariance) / np.trace(prior_covariance)
    total = worth * covariance + rows_of_prior * scale * prior_covariance
    return mean, total / (worth + rows_of_prior)


def factor_log_likelihood(Y, mean, loadings, variances):
    """Return the mean log density of rows with gaps under one Gaussian."""
    covariance = loadings @ loadings.T + np.diag(variances)
    return np.mean([condition_row(y, mean, covariance)[2] for y in Y])

"""Unsupervised nearest neighbours, slowly: every gap, every site and every mean from scratch."""

from __future__ import annotations

import numpy as np


def squared_residual(f, y, power=2.0, kernel=None):
    """Return r² from a mean f and a row y, whose missing entries do not count."""
    if kernel is not None:
        return kernel(f, f) - 2 * kernel(f, y) + kernel(y, y)
    seen = ~np.isnan(y)
    r = np.linalg.norm(f[seen] - y[seen], ord=power)
    return (r * (len(y) / seen.sum()) ** (1 / power)) ** 2


def loss_of(squared, loss, number):
    if loss == "squared":
        return squared
    r = np.sqrt(max(squared, 0.0))
    if loss == "huber":
        return r**2 / (2 * number) if r <= number else r - number / 2
    if loss == "epsilon":
        return max(0.0, r - number)
    assert loss == "absolute"
    return r


def nearest_ranks(rank, n, n_others):
    """Return the others on a line nearest to a rank, of two as near the left one first."""
    others = sorted((abs(j - rank), j) for j in range(n) if j != rank)
    return [j for _, j in others[:n_others]]


class Setting:
    """What an error is: neighbours, loss, distance, weights of rows."""

    def __init__(
        self, Y, K, include_self, loss="squared", number=0.0, power=2.0, kernel=None, weights=None
    ):
        self.Y = np.asarray(Y, dtype=float)
        self.weights = np.ones(len(Y)) if weights is None else weights
        self.include_self = include_self
        self.n_others = max(1, K - 1) if include_self else K
        self.loss, self.number, self.power, self.kernel = loss, number, power, kernel
        self.center = np.nanmean(self.Y, axis=0)

    def error(self, number, others):
        """Return the error of a row with these neighbours."""
        if not others:
            return 0.0
        rows = [*others, number] if self.include_self else list(others)
        Y, w = self.Y[rows], self.weights[rows, None]
        seen = ~np.isnan(Y)
        mass = (w * seen).sum(axis=0)
        f = np.where(mass > 0, (w * np.where(seen, Y, 0)).sum(axis=0), self.center)
        f = f / np.where(mass > 0, mass, 1)
        return self.loss_of(f, self.Y[number])

    def loss_of(self, f, y):
        return loss_of(squared_residual(f, y, self.power, self.kernel), self.loss, self.number)

    def distance(self, i, j):
        """Return the (feature) distance by which nearest rows are found, up to a constant."""
        if self.kernel is not None:
            k, a, b = self.kernel, self.Y[i], self.Y[j]
            return k(b, b) - 2 * k(a, b)
        both = ~np.isnan(self.Y[i]) & ~np.isnan(self.Y[j])
        if not both.any():
            return np.inf
        return ((self.Y[i] - self.Y[j])[both] ** 2).mean()

    def nearest(self, i, among):
        """Return the nearest of some rows, the first of equals."""
        return self.several_nearest(i, among, 1)[0]

    def several_nearest(self, i, among, k=10):
        """Return the nearest of some rows, the nearest first, equals in their order."""
        return sorted(among, key=lambda j: (self.distance(i, j), among.index(j)))[:k]


def error_on_line(rank, order, setting):
    others = nearest_ranks(rank, len(order), setting.n_others)
    return setting.error(order[rank], [order[j] for j in others])


def full_error_on_line(order, setting):
    return sum(
        setting.weights[order[j]] * error_on_line(j, order, setting) for j in range(len(order))
    )


def sort_on_line(setting, criterion, exhaustive):
    """Return the order of rows from left to right (Kramer 2013, Algorithm 3 and section 5.3)."""
    order = [0]
    for i in range(1, len(setting.Y)):
        gaps = range(len(order) + 1)
        if not exhaustive:
            at = order.index(setting.nearest(i, list(range(i))))
            gaps = [at, at + 1]
        best, best_cost = None, np.inf
        for gap in gaps:
            trial = [*order[:gap], i, *order[gap:]]
            if criterion == "point":
                cost = error_on_line(gap, trial, setting)
            else:
                cost = full_error_on_line(trial, setting)
            if best is None or cost < best_cost - 1e-11 * abs(best_cost):
                best, best_cost = trial, cost
        order = best
    return np.array(order)


def refine_on_line(order, setting, exhaustive=True):
    """Take each row out and put it back where the full error is smallest, if that is smaller."""
    order = list(order)
    for i in range(len(order)):
        rest = [j for j in order if j != i]
        gaps = range(len(order))
        if not exhaustive:
            at = [rest.index(j) for j in setting.several_nearest(i, sorted(rest))]
            gaps = [gap for place in at for gap in (place, place + 1)]
        stay = full_error_on_line(order, setting)
        best, best_cost = None, np.inf
        for gap in gaps:
            trial = [*rest[:gap], i, *rest[gap:]]
            cost = full_error_on_line(trial, setting)
            if best is None or cost < best_cost - 1e-11 * abs(best_cost):
                best, best_cost = trial, cost
        if best_cost < stay - 1e-11 * abs(stay):
            order = best
    return np.array(order)


def neighbors_on_lattice(number, sites, setting):
    """Return the neighbours of a row; `sites` are those of all rows, by their number."""
    here = np.array(sites[number])

    def nearness(other):
        step = np.array(sites[other]) - here
        return step @ step, tuple(step)

    return sorted((j for j in sites if j != number), key=nearness)[: setting.n_others]


def error_on_lattice(number, sites, setting):
    return setting.error(number, neighbors_on_lattice(number, sites, setting))


def full_error_on_lattice(sites, setting):
    return sum(setting.weights[j] * error_on_lattice(j, sites, setting) for j in sites)


def pushed(number, beside, axis, sign, sites, side):
    """Return the sites after a row was put beside another one; None without room."""
    step = np.zeros(len(sites[beside]), dtype=int)
    step[axis] = sign
    taken = {site: j for j, site in sites.items()}
    after, at, new = dict(sites), tuple(np.array(sites[beside]) + step), number
    while True:
        if not all(0 <= c < side for c in at):
            return None
        after[new] = at
        if at not in taken:
            return after
        new, at = taken[at], tuple(np.array(at) + step)


def best_on_lattice(number, besides, sites, setting, criterion, side):
    """Return the sites after the cheapest push beside some rows, and their cost."""
    q = len(next(iter(sites.values())))
    best, best_cost, best_spread = None, np.inf, np.inf
    trials = [
        pushed(number, beside, axis, sign, sites, side)
        for beside in besides
        for axis in range(q)
        for sign in (-1, 1)
    ]
    if all(trial is None for trial in trials):
        here = np.array(sites[besides[0]])
        free = [site for site in np.ndindex(*(side,) * q) if site not in set(sites.values())]
        nearest = min(free, key=lambda site: (((site - here) ** 2).sum(), site))
        trials = [{**sites, number: nearest}]
    for trial in trials:
        if trial is None:
            continue
        if criterion == "point":
            cost = error_on_lattice(number, trial, setting)
        else:
            cost = full_error_on_lattice(trial, setting)
        spread = spread_on_lattice(trial, sites, side)
        is_tie = best is not None and not best_cost < cost - 1e-11 * abs(cost)
        if (
            best is None
            or cost < best_cost - 1e-11 * abs(best_cost)
            or (is_tie and spread < best_spread)
        ):
            best, best_cost, best_spread = trial, cost, spread
    return best, best_cost


def spread_on_lattice(after, before, side):
    """Return how far from the middle the site is that an insertion fills; 0 on a line."""
    (site,) = set(after.values()) - set(before.values())
    return 0 if len(site) == 1 else ((np.array(site) - side // 2) ** 2).sum()


def sort_on_lattice(setting, q, side, criterion, exhaustive):
    """Return the site of each row, by its number."""
    sites = {0: (side // 2,) * q}
    for i in range(1, len(setting.Y)):
        besides = list(range(i)) if exhaustive else [setting.nearest(i, list(range(i)))]
        sites, _ = best_on_lattice(i, besides, sites, setting, criterion, side)
    return sites


def refine_on_lattice(sites, setting):
    """Let each row change places with those beside its ten nearest where the full error falls."""
    q = len(sites[0])
    for i in range(len(sites)):
        for near in setting.several_nearest(i, sorted(set(sites) - {i})):
            around = neighbors_on_lattice(near, sites, setting)[: 2 * q]
            for place in [sites[j] for j in around]:
                (other,) = (j for j in sites if sites[j] == place)
                trial = {**sites, i: sites[other], other: sites[i]}
                before = full_error_on_lattice(sites, setting)
                if full_error_on_lattice(trial, setting) < before * (1 - 1e-12):
                    sites = trial
    return sites

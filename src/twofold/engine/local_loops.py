"""The compiled loops of local polynomial fits; see :mod:`twofold.engine.local_fit`."""

from typing import NamedTuple

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled
from twofold.engine.cells import Pairs
from twofold.small_systems import dot, factor, solve_factored

# Felt only where references are fewer than terms, or lie in a line.
RIDGE = 1e-7


class Fits(NamedTuple):
    """The fits of one group of columns around some queries."""

    pairs: Pairs
    queries: FloatArray  # (m, q)
    points: FloatArray  # (q, n)
    terms: IntArray  # (p, 2) as `polynomial_terms` returns them
    mass: FloatArray  # (n,) ω, 0 for references that take no part
    inverses: FloatArray  # (m, p, p) C⁻¹ of each query, written by `fit_pairs`
    totals: FloatArray  # (m,) S of each query, likewise


# Two functions: as one the compiler no longer inlines it, and fits take 1.7 times as long.
@compiled
def _expand(x: FloatArray, points: FloatArray, i: int, delta: FloatArray) -> None:
    for m in range(delta.size):
        delta[m] = float(points[m, i]) - float(x[m])


@compiled
def _monomials(delta: FloatArray, terms: IntArray, xi: FloatArray) -> None:
    for a in range(terms.shape[0]):
        value = 1.0
        if terms[a, 0] >= 0:
            value *= delta[terms[a, 0]]
        if terms[a, 1] >= 0:
            value *= delta[terms[a, 1]]
        xi[a] = value


@compiled
def _gradient(c: FloatArray, delta: FloatArray, terms: IntArray, out: FloatArray) -> None:
    """Write the gradient of the polynomial ``c·ξ(δ)``."""
    out[:] = 0
    for a in range(terms.shape[0]):
        first, second = terms[a, 0], terms[a, 1]
        if first >= 0 and second < 0:
            out[first] += c[a]
        elif first >= 0:
            out[first] += c[a] * delta[second]
            out[second] += c[a] * delta[first]


@compiled
def _slope(terms: IntArray, a: int, c: int, delta: FloatArray) -> float:
    """Return the derivative of one term by one coordinate of δ."""
    first, second = terms[a, 0], terms[a, 1]
    if second < 0:
        return 1.0 if first == c else 0.0
    slope = delta[second] if first == c else 0.0
    return slope + (delta[first] if second == c else 0.0)


@compiled
def _ridge(terms: IntArray, a: int, far: float) -> float:
    """Return the ridge of one term; ``far`` is 1 plus the mean squared distance."""
    return RIDGE * far if terms[a, 1] < 0 else RIDGE * far * far


@compiled
def _ridge_slope(terms: IntArray, a: int, far: float) -> float:
    """Return the derivative of :func:`_ridge` by ``far``."""
    return RIDGE if terms[a, 1] < 0 else 2 * RIDGE * far


@compiled
def _invert(C: FloatArray, inverse: FloatArray) -> None:
    """Write the inverse of a positive definite matrix; only its lower half is read."""
    # With the ridge no pivot is below it apart from rounding.
    factor(C, 0.5 * RIDGE)
    inverse[:] = 0
    for a in range(C.shape[0]):
        inverse[a, a] = 1
    solve_factored(C, inverse)


@compiled
def fit_pairs(fits: Fits) -> FloatArray:
    """Return the weights b of all pairs; write the inverse of C and S of each query."""
    first, index, weight = fits.pairs[:3]
    queries, points, terms, mass, inverses, totals = fits[1:]
    p, q = terms.shape[0], queries.shape[1]
    C, xi, delta = np.empty((p, p)), np.empty(p), np.empty(q)
    fitted = np.empty_like(weight)
    for j in range(queries.shape[0]):
        total = 0.0
        for k in range(first[j], first[j + 1]):
            total += weight[k] * mass[index[k]]
        totals[j] = total
        if not total > 0:
            fitted[first[j] : first[j + 1]] = 0
            continue
        C[:] = 0
        far = 1.0
        for k in range(first[j], first[j + 1]):
            w = weight[k] * mass[index[k]] / total
            if w == 0:
                continue
            _expand(queries[j], points, index[k], delta)
            _monomials(delta, terms, xi)
            far += w * dot(delta, delta)
            for a in range(p):
                for b in range(a + 1):
                    C[a, b] += w * xi[a] * xi[b]
        for a in range(1, p):
            C[a, a] += _ridge(terms, a, far)
        _invert(C, inverses[j])
        for k in range(first[j], first[j + 1]):
            _expand(queries[j], points, index[k], delta)
            _monomials(delta, terms, xi)
            w = weight[k] * mass[index[k]] / total
            fitted[k] = w * dot(inverses[j, 0], xi)
    return fitted


@compiled
def pull_fits(fits: Fits, G: FloatArray, grad_queries: FloatArray, push: FloatArray) -> None:
    """Carry ``G = dR/db`` of all pairs back, the formula of E in the docstring of `local_fit`."""
    first, index, weight, slope = fits.pairs[:4]
    queries, points, terms, mass, inverses, totals = fits[1:]
    p, q = terms.shape[0], queries.shape[1]
    xi, delta, m, h = np.empty(p), np.empty(q), np.empty(p), np.empty(p)
    of_u, of_v, pulled = np.empty(q), np.empty(q), np.empty(q)
    for j in range(queries.shape[0]):
        if not totals[j] > 0:
            continue
        g = inverses[j, 0]
        m[:] = 0
        mean_square = 0.0
        for k in range(first[j], first[j + 1]):
            _expand(queries[j], points, index[k], delta)
            _monomials(delta, terms, xi)
            w = weight[k] * mass[index[k]] / totals[j]
            mean_square += w * dot(delta, delta)
            for a in range(p):
                m[a] += w * G[k] * xi[a]
        ridge, stiff = 0.0, 0.0
        for a in range(p):
            h[a] = dot(inverses[j, a], m)
            if a > 0:
                ridge += h[a] * g[a] * _ridge(terms, a, 1 + mean_square)
                stiff += h[a] * g[a] * _ridge_slope(terms, a, 1 + mean_square)
        pulled[:] = 0
        for k in range(first[j], first[j + 1]):
            i = index[k]
            _expand(queries[j], points, i, delta)
            _monomials(delta, terms, xi)
            _gradient(g, delta, terms, of_u)
            _gradient(h, delta, terms, of_v)
            share = mass[i] / totals[j]
            u, T = dot(g, xi), G[k] - dot(h, xi)
            off = stiff * (mean_square - dot(delta, delta))
            along = -slope[k] * share * (T * u - ridge + off) - 2 * stiff * weight[k] * share
            for c in range(q):
                E = along * delta[c] + weight[k] * share * (T * of_u[c] - u * of_v[c])
                push[c, i] += E
                pulled[c] -= E
        for c in range(q):
            grad_queries[j, c] += pulled[c]


@compiled
def plain_steps(fits: Fits, steps: FloatArray) -> None:
    """Write the derivative of plain weights by the query, (q, pairs)."""
    first, index, _, slope = fits.pairs[:4]
    for j in range(fits.queries.shape[0]):
        for k in range(first[j], first[j + 1]):
            for c in range(fits.queries.shape[1]):
                steps[c, k] = slope[k] * (fits.points[c, index[k]] - fits.queries[j, c])


@compiled
def fit_steps(fits: Fits, steps: FloatArray) -> None:
    """Write the derivative of the weights b by the query, (q, pairs).

    It is ``db_i/dx_c = z_ic + ŵ_i κ_cᵀ C⁻¹ ξ_i`` with ``z_ic = ŝ_i δ_ic u_i - ŵ_i ∂_c u_i``,
    ``ŝ = -2F' ω/S`` and ``κ_c = Σ_i (ŵ_i u_i ∂_c ξ_i - z_ic ξ_i)``, from which comes, for a > 0,
    ``g_a`` times what the ridge and its change with the mean squared distance contribute.
    """
    first, index, weight, slope = fits.pairs[:4]
    queries, points, terms, mass, inverses, totals = fits[1:]
    p, q = terms.shape[0], queries.shape[1]
    xi, delta, of_u = np.empty(p), np.empty(q), np.empty(q)
    kappa, back = np.empty((q, p)), np.empty((q, p))
    along, spread, outward = np.empty(q), np.empty(q), np.empty(q)
    for j in range(queries.shape[0]):
        if not totals[j] > 0:
            steps[:, first[j] : first[j + 1]] = 0
            continue
        g = inverses[j, 0]
        kappa[:], along[:], spread[:], outward[:], mean_square = 0, 0, 0, 0, 0.0
        for k in range(first[j], first[j + 1]):
            _expand(queries[j], points, index[k], delta)
            _monomials(delta, terms, xi)
            _gradient(g, delta, terms, of_u)
            share = mass[index[k]] / totals[j]
            w, u = weight[k] * share, dot(g, xi)
            square = dot(delta, delta)
            mean_square += w * square
            for c in range(q):
                pulled = slope[k] * share * delta[c]
                along[c] += pulled
                spread[c] += pulled * square
                outward[c] += 2 * w * delta[c]
                z = pulled * u - w * of_u[c]
                steps[c, k] = z
                for a in range(p):
                    kappa[c, a] -= z * xi[a]
            for a in range(1, p):
                for c in range(q):
                    kappa[c, a] += w * u * _slope(terms, a, c, delta)
        for c in range(q):
            # -dμ/dx_c; the ŵ sum to 1, so what all gain together is taken off each of them.
            moved = along[c] * mean_square - spread[c] + outward[c]
            for a in range(1, p):
                ridge = _ridge(terms, a, 1 + mean_square) * along[c]
                kappa[c, a] += g[a] * (_ridge_slope(terms, a, 1 + mean_square) * moved - ridge)
            for a in range(p):
                back[c, a] = dot(inverses[j, a], kappa[c])
        for k in range(first[j], first[j + 1]):
            _expand(queries[j], points, index[k], delta)
            _monomials(delta, terms, xi)
            w = weight[k] * mass[index[k]] / totals[j]
            for c in range(q):
                steps[c, k] += w * dot(back[c], xi)

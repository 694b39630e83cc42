"""Local polynomial regression and what is built on it, in float64, one query at a time.

Klanke 2007, sections 5.2 (leave-K-out), 5.3 (landmarks) and 5.4 (local polynomials), written to be
read beside the formulas. A kernel is a function ``F(s)`` of the squared distance. Exponentials are
not shifted here, so distances must stay where ``F`` does not underflow.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np


def design(deltas, degree):
    """Return the columns of the local polynomial for ``δ_i = x_i - x``, (n, p) for deltas (n, q).

    ======= ==========================================  =================
    degree  columns                                     p
    ======= ==========================================  =================
    0       1                                           1
    1       1, δ_1..δ_q                                 q + 1
    2-axes  1, δ_1..δ_q, δ_1²..δ_q²                     2q + 1
    2       1, δ_1..δ_q, δ_1²..δ_q², δ_a δ_b for a < b  (q + 1)(q + 2)/2
    ======= ==========================================  =================
    """
    n, q = deltas.shape
    columns = [np.ones(n)]
    if degree in (1, "2-axes", 2):
        columns += [deltas[:, a] for a in range(q)]
    if degree in ("2-axes", 2):
        columns += [deltas[:, a] ** 2 for a in range(q)]
    if degree == 2:
        columns += [deltas[:, a] * deltas[:, b] for a, b in combinations(range(q), 2)]
    return np.column_stack(columns)


def local_weights(query, references, weights=None, hidden=(), *, degree=0, F, ridge=0.0):
    """Return the weight ``b_i`` of each reference in the regression at `query`, (n,).

    The regression is the value at the query of the polynomial ``β`` that minimises

        Σ_i ŵ_i (y_i - βᵀξ_i)² + Σ_{k>0} ρ_k β_k²,    ŵ_i = ω_i F(||x_i - x||²) / Σ_j ω_j F(..),

    which is its intercept (5.44, 5.59, 5.61): ``b_i = ŵ_i ξ_iᵀ C⁻¹ e_0`` with
    ``C = Σ_i ŵ_i ξ_i ξ_iᵀ + diag(0, ρ_1, ..)`` and ``ρ_k = ρ (1 + Σ_i ŵ_i ||δ_i||²)^degree of term
    k``. Instead of C, whose condition is the square, the rows ``√ŵ_i ξ_i`` and ``√ρ_k e_k`` are
    inverted. Hidden references have weight zero from the
    start. Where all weights are zero, the mean of the references that are not hidden stands in;
    where there is none either, every ``b_i`` is zero.
    """
    omega = np.ones(len(references)) if weights is None else np.array(weights, dtype=float)
    omega[list(hidden)] = 0
    w = omega * F(((references - query) ** 2).sum(axis=1))
    if not w.any():
        return omega / omega.sum() if omega.any() else omega
    w = w / w.sum()
    xi = design(references - query, degree)
    n, p = xi.shape
    far = 1 + w @ ((references - query) ** 2).sum(axis=1)
    powers = np.where(np.arange(p) <= len(query), 1, 2)
    ridges = np.sqrt(ridge * far**powers)
    rows = np.vstack([np.sqrt(w)[:, None] * xi, np.diag(ridges)[1:]])
    if np.linalg.matrix_rank(rows) < p:
        raise np.linalg.LinAlgError("too few references in reach for this degree without a ridge")
    return np.linalg.pinv(rows)[0, :n] * np.sqrt(w)


def regress(
    query, references, values, weights=None, hidden=(), *, degree=0, F, ridge=0.0, observed=None
):
    """Return ``f(x) = Σ_i b_i y_i`` at one query, (D,): each column from the rows that have it."""
    n, D = values.shape
    observed = np.ones((n, D), dtype=bool) if observed is None else observed
    f = np.zeros(D)
    for d in range(D):
        unseen = {*hidden, *np.flatnonzero(~observed[:, d])}
        b = local_weights(
            query, references, weights, sorted(unseen), degree=degree, F=F, ridge=ridge
        )
        f[d] = sum(b[i] * values[i, d] for i in range(n) if i not in unseen)
    return f


def objective(
    X,
    Y,
    loss_function,
    *,
    references=None,
    reference_values=None,
    reference_weights=None,
    weights=None,
    hidden_lists=None,
    observed=None,
    degree=0,
    F,
    ridge=0.0,
):
    """Return ``Σ_j ω_j L(f(x_j) - y_j) / Σ_j ω_j`` over the queries X with their data Y.

    Without `references` the rows are regressed on themselves (5.62), with `weights` and `observed`
    for both sides. With them (landmarks, 5.23) `reference_weights`, equal by default, belong to
    the references, whose values are complete. ``loss_function(R)`` returns the loss of each row;
    missing entries have residual zero. ``hidden_lists[j]`` are the references that query j does
    not see (5.19).
    """
    m, D = Y.shape
    omega = np.ones(m) if weights is None else weights
    known = np.ones((m, D), dtype=bool) if observed is None else observed
    if references is None:
        sides = {"references": X, "values": Y, "weights": omega, "observed": known}
    else:
        sides = {"references": references, "values": reference_values, "weights": reference_weights}
    R = np.zeros((m, D))
    for j in range(m):
        hidden = () if hidden_lists is None else hidden_lists[j]
        f = regress(X[j], hidden=hidden, degree=degree, F=F, ridge=ridge, **sides)
        R[j, known[j]] = f[known[j]] - Y[j, known[j]]
    return float((omega * loss_function(R)).sum() / omega.sum())


def leave_k_out_lists(Y, k):
    """Return for each row itself and its k - 1 nearest others in data space, (n, k) (5.18).

    Of equally near rows the first is taken.
    """
    lists = []
    for i in range(len(Y)):
        others = [j for j in range(len(Y)) if j != i]
        others.sort(key=lambda j, i=i: (((Y[i] - Y[j]) ** 2).sum(), j))
        lists.append([i, *others[: k - 1]])
    return np.array(lists)


def density_variance(X, F):
    """Return ``1/n Σ_i (p_i - p̄)²`` with ``p_i = Σ_j F(||x_i - x_j||²)``, own term included.

    (5.20) with the density as a sum: with the mean of (4.19) it is n² times smaller.
    """
    p = np.array([F(((X - x) ** 2).sum(axis=1)).sum() for x in X])
    return float(((p - p.mean()) ** 2).mean())


def roughness(samples, references, F, *, weights=None, degree=0, ridge=0.0, step=5e-4):
    """Return ``M_ij``, the mean over the samples of ``Σ_μν ∂_μν b_i ∂_μν b_j``, (n, n) (5.30).

    ``tr(Zᵀ M Z)`` is the roughness of the map with values Z at the references. The second
    derivatives are differences of ``b``: their error is about ``step²/6 b''''`` and
    ``4 eps/step²``, below 1e-7 and 4e-9 where the derivatives are of order 1.
    """

    def b(x):
        return local_weights(x, references, weights, degree=degree, F=F, ridge=ridge)

    n, q = references.shape
    axes = step * np.eye(q)
    M = np.zeros((n, n))
    for x in samples:
        for mu in range(q):
            for nu in range(q):
                e, d = axes[mu], axes[nu]
                if mu == nu:
                    second = (b(x + e) - 2 * b(x) + b(x - e)) / step**2
                else:
                    corners = b(x + e + d) - b(x + e - d) - b(x - e + d) + b(x - e - d)
                    second = corners / (4 * step**2)
                M += np.outer(second, second)
    return M / len(samples)


def adapt(Y, A, M, gamma, weights=None):
    """Return the values Z (n, D) that minimise ``Σ_j ω_j ||y_j - A_j Z||² + γ tr(Zᵀ M Z)``.

    (5.38, 5.40) in rows, ``A[j, i] = b_i(x_j)`` (m, n); the data term is a sum over the rows, not
    a mean. The rows ``√ω_j A_j`` and ``√γ M^½`` are solved by least squares; of several minima the
    shortest.
    """
    root_weights = np.sqrt(np.ones(len(Y)) if weights is None else weights)[:, None]
    eigenvalues, eigenvectors = np.linalg.eigh(M)
    root = np.sqrt(gamma * np.maximum(eigenvalues, 0))[:, None] * eigenvectors.T
    rows = np.vstack([root_weights * A, root])
    targets = np.vstack([root_weights * Y, np.zeros((len(M), Y.shape[1]))])
    return np.linalg.lstsq(rows, targets, rcond=None)[0]

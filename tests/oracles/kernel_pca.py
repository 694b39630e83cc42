"""Kernel PCA and its extension and pre-images, step by step.

Arias 2007, chapters 2 to 4, in the row convention. Slow, float64, readable.
"""

from __future__ import annotations

import numpy as np

# ---- extension by kernel ridge regression -------------------------------------------------------


def gauss(A, B, s):
    return np.array([[np.exp(-((a - b) @ (a - b)) / (2 * s * s)) for b in B] for a in A])


def centred(K):
    J = np.eye(len(K)) - 1 / len(K)
    return J @ K @ J


def eigenpairs(K, tol=1e-6):
    """Return eigenvalues above ``tol`` times the largest, falling, and their vectors."""
    values, U = np.linalg.eigh(K)
    values, U = values[::-1], U[:, ::-1]
    kept = values > tol * values[0]
    return values[kept], U[:, kept]


def bordered(H, ridge):
    """Return ``[[H + ridge I, 1], [1ᵀ, 0]]``."""
    m = len(H)
    C = np.ones((m + 1, m + 1))
    C[:m, :m] = H + ridge * np.eye(m)
    C[m, m] = 0
    return C


def ridge_regression(Y, T, s, ridge):
    """Return the function z -> prediction of targets T (m, p), solved with its bias at once."""
    zeros = np.zeros((1, T.shape[1]))
    B = np.linalg.solve(bordered(gauss(Y, Y, s), ridge), np.vstack([T, zeros]))
    return lambda Z: gauss(Z, Y, s) @ B[:-1] + B[-1]


def extended_projection(Y, K, Z, s, ridge):
    """Extend every column of K, centre, project on the principal axes: all r coordinates of Z."""
    k = ridge_regression(Y, K, s, ridge)(Z)
    k = k - k.mean(axis=1, keepdims=True) - K.mean(axis=1) + K.mean()
    values, U = eigenpairs(centred(K))
    return k @ U / np.sqrt(values), U * np.sqrt(values)


def diffusion_kernel(Y, s, alpha=1.0):
    W = gauss(Y, Y, s)
    q = W.sum(axis=1)
    W = W / np.outer(q, q) ** alpha
    d = W.sum(axis=1)
    return W / np.sqrt(np.outer(d, d))


def left_out_residuals(Y, T, s, ridge):
    """Fit m times, each time without one row."""
    R = np.empty(T.shape)
    for i in range(len(Y)):
        rest = np.arange(len(Y)) != i
        R[i] = T[i] - ridge_regression(Y[rest], T[rest], s, ridge)(Y[i : i + 1])[0]
    return R


def rebuilt_press(Y, matrix_of, s, ridge):
    """Fit and compute the kernel m times, each time without one row."""
    K = matrix_of(Y)
    errors = []
    for i in range(len(Y)):
        rest = np.arange(len(Y)) != i
        rebuilt = matrix_of(Y[rest])
        k = ridge_regression(Y[rest], rebuilt, s, ridge)(Y[i : i + 1])[0]
        errors.append(((K[rest, i] - k) ** 2).mean())
    return np.mean(errors)


# ---- pre-images: ψ = Σ_i α_i φ(y_i), one point at a time -----------------------------------------


def feature_distance(value, y, rows, alpha):
    """``||φ(y) - ψ||²`` for a kernel ``value(a, b)`` of two rows."""
    K = np.array([[value(r, t) for t in rows] for r in rows])
    k = np.array([value(y, r) for r in rows])
    return value(y, y) - 2 * alpha @ k + alpha @ K @ alpha


def direct_by_products(rows, alpha, K):
    """Method A of the thesis, eq. 4.14."""
    k = K @ alpha
    return (alpha * k) @ rows / (alpha @ k)


def direct_by_distances(rows, alpha, K):
    """Method C of the thesis, eq. 4.12."""
    k = np.array([1 - 0.5 * (alpha - e) @ K @ (alpha - e) for e in np.eye(len(K))])
    return (alpha * k) @ rows / (alpha @ k)


def gaussian_fixed_point(rows, alpha, s, y, steps):
    """Method D of the thesis, eq. 4.9, as it is."""
    for _ in range(steps):
        weights = alpha * gauss(y[None], rows, s)[0]
        y = weights @ rows / weights.sum()
    return y


def localised(rows, alpha, K, s, n):
    """Method B of the thesis, by the singular value decomposition, for a Gaussian kernel."""
    k = K @ alpha
    near = np.argsort(1 - 2 * k)[:n]
    sq_dists = -2 * s * s * np.log(np.clip(k[near], 1e-12, 1))
    return multilaterate(rows[near], sq_dists)


def multilaterate(near, sq_dists):
    """The point at given squared distances from rows."""
    mean = near.mean(axis=0)
    E, L, Vt = np.linalg.svd((near - mean).T, full_matrices=False)
    kept = L / L[0] > 1e-6
    E, L, Vt = E[:, kept], L[kept], Vt[kept]
    own = ((L[:, None] * Vt) ** 2).sum(axis=0)
    return E @ (-0.5 / L * (Vt @ (sq_dists - own))) + mean


def affine_weights(K, k):
    """Weights of sum one that minimise ``||ψ - Σ β_i φ_i||²``, from the system with multiplier."""
    n = len(K)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = K
    system[n, n] = 0
    return np.linalg.solve(system, np.append(k, 1.0))[:n]


def constrained_preimage(parts, z, target, q, mu, tau, max_iter):
    """Projected gradient with a Newton step back to the level set, as the thesis has it.

    ``parts(Z, targets, q)`` gives coordinates, gradient and Jacobian of rows.
    """
    n_iter = 0
    while n_iter < max_iter:
        _, g, J = (array[0] for array in parts(z[None], target[None], q))
        Q = np.linalg.qr(J.T)[0]
        g = g - Q @ (Q.T @ g)
        if np.linalg.norm(g) <= tau:
            break
        z = z - mu * g
        X, _, J = (array[0] for array in parts(z[None], target[None], q))
        z = z - np.linalg.pinv(J, rcond=1e-6) @ (X[:q] - target[:q])
        n_iter += 1
    return z, n_iter


# ---- principal axes, and walks between rows -----------------------------------------------------


def kernel_pca_of_copies(kernel, Y, counts, Z, q):
    """Return coordinates (n, q) of rows Z on the axes of rows Y, each there so many times."""
    copies = np.repeat(Y, counts, axis=0)
    K, k = kernel(copies, copies), kernel(Z, copies)
    values, U = eigenpairs(centred(K))
    k = k - k.mean(axis=1, keepdims=True) - K.mean(axis=1) + K.mean()
    return (k @ U / np.sqrt(values))[:, :q]


def step_chances(Y, s, alpha):
    """Return the chances P (m, m) of a step from row to row."""
    W = gauss(Y, Y, s)
    q = W.sum(axis=1)
    W = W / np.outer(q, q) ** alpha
    return W / W.sum(axis=1, keepdims=True)


def stationary_shares(P):
    """Return the shares of time of a long walk, from walking long."""
    return np.linalg.matrix_power(P, 4096).mean(axis=0)


def diffusion_distances(P, t):
    """Return the squared distances (m, m) between where walks of t steps end."""
    ends, shares = np.linalg.matrix_power(P, t), stationary_shares(P)
    return np.array([[((a - b) ** 2 / shares).sum() for b in ends] for a in ends])

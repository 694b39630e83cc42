"""Points of feature space to go back from."""

from __future__ import annotations

import dataclasses

import numpy as np
from tests.oracles import kernel_pca as oracle

from twofold.features import RBF, Polynomial
from twofold.preimages import FeaturePoints
from twofold.preimages.coordinates import GaussianCoordinates


def sinusoid(m, noise=0.4, seed=0):
    """Return noisy rows around ``(t, sin t)``, and the rows without noise."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 2 * np.pi, m)
    clean = np.column_stack([t, np.sin(t)])
    return clean + noise * rng.normal(size=(m, 2)), clean


def rows(m=40, D=3, seed=0):
    return np.random.default_rng(seed).normal(size=(m, D))


def coefficients(n, m, seed=1, *, negative=False):
    rng = np.random.default_rng(seed)
    alpha = rng.dirichlet(np.full(m, 0.2), size=n)
    if negative:
        alpha = alpha + 0.1 * rng.normal(size=alpha.shape)
    return alpha / alpha.sum(axis=1, keepdims=True)


def points(kernel, Y=None, n=6, *, negative=False, **known):
    Y = rows() if Y is None else Y
    return FeaturePoints(kernel, Y, coefficients(n, len(Y), negative=negative), **known)


def gaussian_pca(Y, scale, q, rank=None):
    """Return the training rows' own points ``P_q φ(y_i)``, starting at the rows."""
    K = oracle.gauss(Y, Y, scale)
    values, U = oracle.eigenpairs(oracle.centred(K), 1e-9)
    values, U = values[:rank], U[:, :rank]
    axes = U / np.sqrt(values)
    gamma = 0.5 / scale**2
    return FeaturePoints.on_axes(
        RBF(gamma),
        Y,
        axes[:, :q],
        (U * np.sqrt(values))[:, :q],
        start=Y,
        map=GaussianCoordinates.of_kernel(Y, axes, K.mean(axis=0), gamma),
        row_coordinates=U * np.sqrt(values),
        n_jobs=1,
    )


def diffusion(Y, scale, extension_scale, q, ridge=0.01):
    """Return ``P_q`` of the rows in diffusion coordinates that are extended by regression."""
    K = oracle.diffusion_kernel(Y, scale)
    values, U = oracle.eigenpairs(oracle.centred(K))
    X = U * np.sqrt(values)
    extended = GaussianCoordinates.by_ridge(Y, X, extension_scale, ridge)
    # As in the thesis: the coordinates asked for are the extended ones, so that rows have them.
    return FeaturePoints.on_axes(
        "diffusion",
        Y,
        (U / np.sqrt(values))[:, :q],
        extended.values(Y)[:, :q],
        start=Y,
        map=extended,
        row_coordinates=X,
        gram=K,
        n_jobs=1,
    )


def without(target, *names):
    return dataclasses.replace(target, **dict.fromkeys(names))


def value_of(kernel):
    """Return the kernel as a function of two rows."""
    return lambda a, b: float(kernel.gram(a[None], b[None])[0, 0])


SMOOTH = {
    "rbf": RBF(0.4),
    "narrow rbf": RBF(8.0),
    "poly1": Polynomial(1, 2.0, 1.0),
    "poly2": Polynomial(2, 0.5, 1.0),
    "poly3": Polynomial(3, 1.0, 0.0),
    "poly3c": Polynomial(3, 1.0, 1.0),
}

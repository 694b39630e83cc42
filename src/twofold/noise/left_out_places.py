"""Where rows with hidden entries would lie on a map that had never seen them.

A training row was placed by all of its entries, and the manifold passes near it. Projected again
with entries hidden, it would find its own place, and the manifold would seem to know what was
hidden. So it is sought without itself: from the place of the other row whose image is nearest to
the observed entries, downhill by Levenberg and Marquardt's steps on

    ‖y_o - f₋ᵢ(x)_o‖²

with f₋ᵢ the regression without row i, and derivatives by differences: every family has those.
"""

from collections.abc import Callable

import numpy as np

from twofold.array_types import FloatArray, IntArray

MOST_STEPS = 8
MOST_IMAGES = 20_000
# The step of differences, in units in which a distance of 1 is near.
DIFFERENCE = 1e-2

# From places (m, q), and which of the rows (m,) they belong to, to images (m, D) without these.
ImagesWithout = Callable[[FloatArray, IntArray], FloatArray]


def nearest_other_images(Y: FloatArray, images: FloatArray, own: IntArray) -> IntArray:
    """Return for rows Y (m, D) with gaps which image (n, D) is nearest, not that of ``own``.

    Only the first images are looked at, of rows in no order: where these are many, a near one is
    among them.
    """
    images, observed = images[:MOST_IMAGES], ~np.isnan(Y)
    known = np.where(observed, Y, 0)
    squares = observed @ (images**2).T - 2 * known @ images.T
    own_image = np.flatnonzero(own < len(images))
    squares[own_image, own[own_image]] = np.inf
    return np.asarray(squares.argmin(axis=1))


def seek_places(Y: FloatArray, X: FloatArray, unit: FloatArray, image: ImagesWithout) -> FloatArray:
    """Return places (m, q) of rows Y (m, D) with gaps, downhill from X; a unit (q,) is near."""
    observed, X = ~np.isnan(Y), X.copy()
    known, rows = np.where(observed, Y, 0), np.arange(len(Y))
    q = X.shape[1]

    def residuals(places: FloatArray) -> FloatArray:
        return np.where(observed, known - image(places, rows), 0)

    R = residuals(X)
    error, damping = (R**2).sum(axis=1), np.full(len(Y), 1e-2)
    for _ in range(MOST_STEPS):
        shifts = np.eye(q) * unit * DIFFERENCE
        J = np.stack([(residuals(X - s) - residuals(X + s)) / (2 * DIFFERENCE) for s in shifts], 2)
        A = np.einsum("mdq,mdr->mqr", J, J)
        size = np.maximum(np.einsum("mqq->m", A) / q, np.finfo(np.float64).tiny)
        A += (damping * size)[:, None, None] * np.eye(q)
        step = np.linalg.solve(A, np.einsum("mdq,md->mq", J, R)[:, :, None])[:, :, 0]
        # No farther than a unit: beyond, the derivative says nothing.
        step /= np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1)
        tried = X + step * unit
        new = residuals(tried)
        better = (new**2).sum(axis=1) < error
        X[better], R[better] = tried[better], new[better]
        error, damping = (R**2).sum(axis=1), np.where(better, damping / 4, damping * 8)
    return X

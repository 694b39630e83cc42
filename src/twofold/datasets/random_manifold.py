"""Smooth random manifolds of a chosen dimension, the test bed for dimension estimates.

With Q a random rotation of R^D, the manifold is the graph of D - q waves over a q-dimensional cube:

    f(x) = Q (x, g(x)),    g_j(x) = a_j sin(w_j d_j . x + b_j),    x in [-1, 1]^q,

d_j a random unit direction, b_j a random phase and w_j uniform in [pi / 2, 3 pi / 2], half a wave
to one and a half across the cube. A graph never crosses itself, so the dimension is exactly q, and
x is read off the rotated rows. The amplitudes ``a_j = c / w_j^2`` give every wave the same share in
the curvature: along a unit direction v the second derivative of f has mean square

    E ||d^2 f / dv^2||^2 = (D - q) c^2 E[(d . v)^4] / 2,    E[(d . v)^4] = 3 / (q (q + 2)),

the expectation taken over directions and phases; c follows from the curvature that is asked for.
"""

from dataclasses import dataclass

import numpy as np

from twofold.array_types import FloatArray
from twofold.checks.parameters import check_at_least, check_count
from twofold.datasets.sample import Sample, Searched, Seed, as_rows, observe, row_norms

N_DESCENT_STEPS = 60
# Rows whose damping grew to this can no longer move by more than rounding.
MAX_DAMPING = 1e16


@dataclass(frozen=True, eq=False)
class WaveGraph(Searched):
    """The graph ``Q (x, amplitudes * sin(waves x + phases))`` over R^q."""

    rotation: FloatArray  # Q (D, D)
    waves: FloatArray  # w_j d_j in rows (D - q, q)
    phases: FloatArray  # b_j
    amplitudes: FloatArray  # a_j

    def point(self, latent: FloatArray) -> FloatArray:
        """Carry latent rows (n, q) to the manifold (n, D)."""
        X = as_rows(latent, self.waves.shape[1])
        return np.hstack([X, self._heights(X)]) @ self.rotation.T

    def nearest(self, Y: FloatArray) -> FloatArray:
        """Return latent rows (n, q) of the manifold points nearest to rows (n, D).

        A damped Gauss-Newton descent starts from the flat coordinates of each row. It finds the
        nearest point of rows closer to the manifold than its radius of curvature; of rows farther
        away it may find a local minimum only. The graph goes on over all of R^q.
        """
        q = self.waves.shape[1]
        turned = as_rows(Y, len(self.rotation)) @ self.rotation
        flat, height = turned[:, :q], turned[:, q:]
        X = flat.copy()
        value = self._sq_dist(X, flat, height)
        damping = np.full(len(X), 1e-3)
        for _ in range(N_DESCENT_STEPS):
            X_new = X + self._step(X, flat, height, damping)
            value_new = self._sq_dist(X_new, flat, height)
            is_better = value_new < value
            X = np.where(is_better[:, None], X_new, X)
            value = np.where(is_better, value_new, value)
            damping = np.minimum(np.where(is_better, damping / 10, damping * 10), MAX_DAMPING)
        return X

    def _heights(self, X: FloatArray) -> FloatArray:
        return self.amplitudes * np.sin(X @ self.waves.T + self.phases)

    def _sq_dist(self, X: FloatArray, flat: FloatArray, height: FloatArray) -> FloatArray:
        return row_norms(np.hstack([flat - X, height - self._heights(X)])) ** 2

    def _step(
        self, X: FloatArray, flat: FloatArray, height: FloatArray, damping: FloatArray
    ) -> FloatArray:
        """Gauss-Newton steps (n, q): the Jacobian in rotated coordinates is (I, G)."""
        slope = self.amplitudes * np.cos(X @ self.waves.T + self.phases)
        G = slope[:, :, None] * self.waves
        descent = flat - X + np.einsum("njq,nj->nq", G, height - self._heights(X))
        normal = np.einsum("njp,njq->npq", G, G)
        normal += (1 + damping)[:, None, None] * np.eye(X.shape[1])
        return np.asarray(np.linalg.solve(normal, descent[:, :, None])[:, :, 0])


def make_random_manifold(
    n: int, q: int, D: int, *, noise: float = 0.0, curvature: float = 2.0, random_state: Seed = None
) -> Sample:
    """Draw rows from a smooth random manifold of dimension q in D dimensions.

    Latent rows are uniform in the cube [-1, 1]^q.

    Parameters
    ----------
    n, q, D : int
        Number of rows, dimension of the manifold and of the data; `D` is `q` or more.
    noise : float, default=0.0
        Standard deviation of Gaussian noise per coordinate.
    curvature : float, default=2.0
        Root mean square of the second derivative along a unit direction of latent space; its
        inverse is about the radius of the bends. With 0 the manifold is flat.
    random_state : int, Generator or None, default=None
        Seed of both the manifold and the rows.

    Examples
    --------
    >>> sample = make_random_manifold(500, 3, 20, noise=0.01, random_state=0)
    >>> sample.Y.shape, sample.latent.shape
    ((500, 20), (500, 3))
    """
    check_count("n", n)
    if not 1 <= q <= D:
        raise ValueError(f"`q` must be in [1, D = {D}]; got {q}. Lower `q` or raise `D`.")
    check_at_least("curvature", curvature)
    rng = np.random.default_rng(random_state)
    n_waves = D - q
    directions = rng.normal(size=(n_waves, q))
    directions /= row_norms(directions)[:, None]
    numbers = rng.uniform(np.pi / 2, 3 * np.pi / 2, size=n_waves)
    rotation, _ = np.linalg.qr(rng.normal(size=(D, D)))
    # Without waves (q = D) there is nothing to bend; max() only avoids a division by zero.
    bend = curvature / np.sqrt(max(n_waves, 1) * 3 / (2 * q * (q + 2)))
    phases = rng.uniform(0.0, 2 * np.pi, size=n_waves)
    graph = WaveGraph(rotation, numbers[:, None] * directions, phases, bend / numbers**2)
    return observe(graph, lambda rng: rng.uniform(-1.0, 1.0, (n, q)), n, noise, "gaussian", rng)

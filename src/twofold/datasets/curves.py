"""Plane curves with known latent coordinate: the spiral and the half circle.

From S. Klanke, "Learning manifolds with the parametrized self-organizing map and unsupervised
kernel regression", Bielefeld 2007.

Spiral (5.15): ``s(t) = (t + 0.2) (sin 4 pi t, cos 4 pi t)``, t in [0, 1]: two windings, radius 0.2
to 1.2. The thesis does not say how t was drawn. Here ``t = -0.2 + sqrt(0.04 + 1.4 u)`` with u in
[0, 1], which covers the curve evenly but for the small radial part of its speed.

Half circle (section 5.1.4): ``10 (cos a, sin a)``, a uniform in [0, pi].

Inner is the side of the smaller radius: ``||y|| < ||nearest point||``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from twofold.array_types import FloatArray
from twofold.datasets.nearest import nearest_parameter
from twofold.datasets.noise import NoiseKind, Seed, draw_noise
from twofold.datasets.sample import Sample, as_rows, check_size, observe, row_norms

Sampling: TypeAlias = Literal["stratified", "iid"]

CIRCLE_RADIUS = 10.0
# Steps of at most 0.03 on a curve whose radius of curvature is 0.19 or more.
SPIRAL_NODES = np.linspace(0.0, 1.0, 513)


@dataclass(frozen=True)
class Spiral:
    """The curve ``s(t) = (t + 0.2) (sin 4 pi t, cos 4 pi t)``, t in [0, 1]."""

    def point(self, latent: FloatArray) -> FloatArray:
        """Carry t (n, 1) to the curve (n, 2)."""
        return _spiral(as_rows(latent, 1)[:, 0])

    def nearest(self, Y: FloatArray) -> FloatArray:
        """Return the t (n, 1) of the curve points nearest to rows (n, 2)."""
        return nearest_parameter(_sq_dist_to_spiral, as_rows(Y, 2), SPIRAL_NODES)[:, None]

    def distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, 2) to the curve, its two ends included."""
        return row_norms(as_rows(Y, 2) - self.point(self.nearest(Y)))

    def signed_distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, 2), positive for rows nearer to the origin than the curve."""
        Y = as_rows(Y, 2)
        foot = self.point(self.nearest(Y))
        is_inner = row_norms(Y) < row_norms(foot)
        return np.where(is_inner, 1.0, -1.0) * row_norms(Y - foot)


@dataclass(frozen=True)
class HalfCircle:
    """Half of the circle of radius 10 about the origin.

    Distances are those to the whole circle, ``| ||y|| - 10 |``, as in the thesis: a model that
    runs on beyond an end of the half is not punished for it.
    """

    def point(self, latent: FloatArray) -> FloatArray:
        """Carry angles (n, 1) to the circle (n, 2)."""
        angle = as_rows(latent, 1)[:, 0]
        return CIRCLE_RADIUS * np.column_stack([np.cos(angle), np.sin(angle)])

    def distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, 2) to the circle."""
        return np.abs(self.signed_distance(Y))

    def signed_distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, 2), positive inside the circle."""
        return CIRCLE_RADIUS - row_norms(as_rows(Y, 2))


def make_spiral(
    n: int = 300,
    *,
    noise: float = 0.05,
    noise_kind: NoiseKind = "gaussian",
    sampling: Sampling = "stratified",
    random_state: Seed = None,
) -> Sample:
    """Draw rows from the spiral of two windings.

    Parameters
    ----------
    n : int, default=300
        Number of rows.
    noise : float, default=0.05
        Standard deviation per coordinate; for uniform noise the half width of the interval.
    noise_kind : {"gaussian", "uniform", "laplacian"}, default="gaussian"
        Law of the noise. The thesis uses Gaussian 0.05 and uniform 0.1.
    sampling : {"stratified", "iid"}, default="stratified"
        "stratified" draws one row in each of n pieces of about equal length, in random order;
        "iid" draws independently and leaves the gaps that make neighbour graphs fail more often.
    random_state : int, Generator or None, default=None
        Seed of the draw.

    Returns
    -------
    Sample
        With D = 2 and the parameter t of the spiral as the one latent coordinate.

    Examples
    --------
    >>> sample = make_spiral(300, noise=0.1, noise_kind="uniform", random_state=0)
    >>> sample.Y.shape, sample.latent.shape
    ((300, 2), (300, 1))
    """
    check_size(n)
    rng = np.random.default_rng(random_state)
    u = _draw_unit(n, sampling, rng)
    t = -0.2 + np.sqrt(0.04 + 1.4 * u)
    return observe(Spiral(), t[:, None], noise=noise, noise_kind=noise_kind, rng=rng)


def make_half_circle(
    n: int = 100,
    *,
    noise: float = 0.25,
    noise_kind: NoiseKind = "gaussian",
    n_outliers: int = 0,
    random_state: Seed = None,
) -> Sample:
    """Draw rows from half a circle of radius 10, on request with outliers.

    Parameters
    ----------
    n : int, default=100
        Number of rows.
    noise : float, default=0.25
        Standard deviation per coordinate; for uniform noise the half width of the interval.
    noise_kind : {"gaussian", "uniform", "laplacian"}, default="gaussian"
        Law of the noise.
    n_outliers : int, default=0
        So many rows, chosen at random, are multiplied by a factor uniform in [0.5, 1.5] before the
        noise is added. The thesis takes 10 of 100. The clean rows stay on the circle.
    random_state : int, Generator or None, default=None
        Seed of the draw.

    Returns
    -------
    Sample
        With D = 2 and the angle in [0, pi] as the one latent coordinate.

    Examples
    --------
    >>> sample = make_half_circle(100, noise=0.5, noise_kind="laplacian", random_state=0)
    >>> bool(sample.distance(sample.clean).max() < 1e-12)
    True
    """
    check_size(n)
    if not 0 <= n_outliers <= n:
        raise ValueError(
            f"`n_outliers` must be in [0, n = {n}]; got {n_outliers}. Lower it or raise `n`."
        )
    rng = np.random.default_rng(random_state)
    manifold = HalfCircle()
    latent = rng.uniform(0.0, np.pi, size=(n, 1))
    clean = manifold.point(latent)
    noise_rows = draw_noise(clean.shape, noise, noise_kind, rng)
    factor = np.ones((n, 1))
    factor[rng.choice(n, size=n_outliers, replace=False)] = rng.uniform(0.5, 1.5, (n_outliers, 1))
    return Sample(Y=factor * clean + noise_rows, latent=latent, clean=clean, manifold=manifold)


def _spiral(t: FloatArray) -> FloatArray:
    """Points (..., 2) of the spiral at t (...)."""
    radius, angle = t + 0.2, 4 * np.pi * t
    return np.stack([radius * np.sin(angle), radius * np.cos(angle)], axis=-1)


def _sq_dist_to_spiral(t: FloatArray, Y: FloatArray, /) -> FloatArray:
    gap = Y - _spiral(t)
    sq_dists: FloatArray = gap[..., 0] ** 2 + gap[..., 1] ** 2
    return sq_dists


def _draw_unit(n: int, sampling: Sampling, rng: np.random.Generator) -> FloatArray:
    """Draw n numbers from [0, 1), independently or one in each interval [i / n, (i + 1) / n)."""
    if sampling == "iid":
        return rng.random(n)
    if sampling == "stratified":
        # Shuffled, so that the order of the rows does not give the latent order away.
        return (rng.permutation(n) + rng.random(n)) / n
    raise ValueError(f"`sampling` must be one of {get_args(Sampling)}; got {sampling!r}.")

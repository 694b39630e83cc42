"""Curves in the plane and surfaces in space with known latent coordinates.

From S. Klanke, "Learning manifolds with the parametrized self-organizing map and unsupervised
kernel regression", Bielefeld 2007.

Spiral (5.15): ``s(t) = (t + 0.2) (sin 4 pi t, cos 4 pi t)``, t in [0, 1]: two windings, radius 0.2
to 1.2. The thesis does not say how t was drawn. Here ``t = -0.2 + sqrt(0.04 + 1.4 u)`` with u in
[0, 1], which covers the curve evenly but for the small radial part of its speed.

Half circle (section 5.1.4): ``10 (cos a, sin a)``, a uniform in [0, pi].

Swiss roll (section 5.1.4): ``(t cos t, h, t sin t)``, t uniform in [1.5 pi, 4.5 pi], h uniform in
[0, 21]. The thesis gives no formula; this common one reproduces its distances of the raw data.

S-shaped triangle (section 4.6.2): with u, v uniform in [0, 1], ``t1 = sqrt(u)`` and
``t2 = t1 (2 v - 1)``, the point ``(sin(-1.5 pi (2 t1 - 1)), 2 t2, 2 sin(2.3 (2 t1 - 1)))``.

Fish bowl (3.44): ``10 (sqrt(1 - c^2) cos phi, sqrt(1 - c^2) sin phi, c)``, c uniform in [-0.7, 1],
phi uniform in [0, 2 pi]: a sphere without its lowest cap, evenly covered.

Inner is the side of the smaller radius, about the origin or, for the roll, about its axis.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np

from twofold.array_types import FloatArray
from twofold.datasets.nearest import nearest_parameter
from twofold.datasets.sample import (
    Manifold,
    NoiseKind,
    Sample,
    Seed,
    as_rows,
    check_size,
    draw_noise,
    observe,
    row_norms,
)

Sampling: TypeAlias = Literal["stratified", "iid"]

ROLL_TURN = (1.5 * np.pi, 4.5 * np.pi)
ROLL_HEIGHT = 21.0
BOWL_LOWEST = -0.7
# Steps of at most 0.03 on a curve whose radius of curvature is 0.19 or more.
SPIRAL_NODES = np.linspace(0.0, 1.0, 513)
# Steps of at most 0.27 on a spiral whose radius of curvature is 4.6 or more.
ROLL_NODES = np.linspace(*ROLL_TURN, 513)
TRIANGLE_NODES = np.linspace(0.0, 1.0, 513)


class _Searched(Manifold):
    """A manifold whose nearest points are found by a search; D is the number of columns."""

    D: ClassVar[int]

    @abstractmethod
    def nearest(self, Y: FloatArray) -> FloatArray:
        """Return the latent rows (n, q) of the points nearest to rows (n, D)."""

    def distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, D) to the manifold, its borders included."""
        return row_norms(as_rows(Y, self.D) - self.point(self.nearest(Y)))


class _Round(Manifold):
    """A part of a circle or sphere about the origin; distances are those to the whole."""

    D: ClassVar[int]
    RADIUS: ClassVar[float] = 10.0

    def distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, D) to the circle or sphere."""
        return np.abs(self.signed_distance(Y))

    def signed_distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, D), positive inside."""
        return self.RADIUS - row_norms(as_rows(Y, self.D))


class Spiral(_Searched):
    """The curve ``s(t) = (t + 0.2) (sin 4 pi t, cos 4 pi t)``, t in [0, 1]."""

    D = 2

    def point(self, latent: FloatArray) -> FloatArray:
        """Carry t (n, 1) to the curve (n, 2)."""
        return _spiral(as_rows(latent, 1)[:, 0])

    def nearest(self, Y: FloatArray) -> FloatArray:
        """Return the t (n, 1) of the curve points nearest to rows (n, 2)."""
        return nearest_parameter(_sq_dist_to_spiral, as_rows(Y, 2), SPIRAL_NODES)[:, None]

    def signed_distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, 2), positive for rows nearer to the origin than the curve."""
        Y = as_rows(Y, 2)
        foot = self.point(self.nearest(Y))
        is_inner = row_norms(Y) < row_norms(foot)
        return np.where(is_inner, 1.0, -1.0) * row_norms(Y - foot)


class HalfCircle(_Round):
    """Half of the circle of radius 10 about the origin.

    Distances are those to the whole circle, ``| ||y|| - 10 |``, as in the thesis: a model that
    runs on beyond an end of the half is not punished for it.
    """

    D = 2

    def point(self, latent: FloatArray) -> FloatArray:
        """Carry angles (n, 1) to the circle (n, 2)."""
        angle = as_rows(latent, 1)[:, 0]
        return self.RADIUS * np.column_stack([np.cos(angle), np.sin(angle)])


class SwissRoll(_Searched):
    """The sheet ``(t cos t, h, t sin t)``, t in [1.5 pi, 4.5 pi], h in [0, 21].

    Distances are those to the roll continued beyond both ends of its height. The thesis leaves this
    open; for its raw data it reports 0.401 (Gaussian) and 0.366 (Laplacian), the continued roll
    gives 0.399 and 0.367, the bounded one 0.402 and 0.371.
    """

    D = 3

    def point(self, latent: FloatArray) -> FloatArray:
        """Carry (t, h) rows (n, 2) to the sheet (n, 3)."""
        t, h = as_rows(latent, 2).T
        return np.column_stack([t * np.cos(t), h, t * np.sin(t)])

    def nearest(self, Y: FloatArray) -> FloatArray:
        """Return the (t, h) rows (n, 2) of the sheet points nearest to rows (n, 3)."""
        Y = as_rows(Y, 3)
        return np.column_stack([nearest_parameter(_sq_dist_to_roll, Y, ROLL_NODES), Y[:, 1]])

    def signed_distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, 3), positive for rows nearer to the axis than the sheet."""
        Y = as_rows(Y, 3)
        foot = self.nearest(Y)
        # The sheet point at parameter t lies at distance t from the axis.
        is_inner = np.hypot(Y[:, 0], Y[:, 2]) < foot[:, 0]
        return np.where(is_inner, 1.0, -1.0) * row_norms(Y - self.point(foot))


class STriangle(_Searched):
    """A triangle bent to an S: latent rows (t1, t2) with t1 in [0, 1] and |t2| <= t1."""

    D = 3

    def point(self, latent: FloatArray) -> FloatArray:
        """Carry (t1, t2) rows (n, 2) to the triangle (n, 3)."""
        t1, t2 = as_rows(latent, 2).T
        x, z = _s_curve(t1)
        return np.column_stack([x, 2 * t2, z])

    def nearest(self, Y: FloatArray) -> FloatArray:
        """Return the (t1, t2) rows (n, 2) of the triangle points nearest to rows (n, 3)."""
        Y = as_rows(Y, 3)
        t1 = nearest_parameter(_sq_dist_to_triangle, Y, TRIANGLE_NODES)
        return np.column_stack([t1, np.clip(Y[:, 1] / 2, -t1, t1)])


class FishBowl(_Round):
    """The sphere of radius 10 about the origin without its lowest cap.

    The latent rows are ``theta (cos phi, sin phi)`` with theta the angle from the north pole: the
    bowl flattened to a disc, which unlike (c, phi) tears no neighbours apart. Distances are those
    to the whole sphere.
    """

    D = 3

    def point(self, latent: FloatArray) -> FloatArray:
        """Carry disc rows (n, 2) to the sphere (n, 3)."""
        disc = as_rows(latent, 2)
        theta = row_norms(disc)
        # sin(theta) / theta without the division by zero at the pole; numpy's sinc includes pi.
        flat = np.sinc(theta / np.pi)[:, None] * disc
        return self.RADIUS * np.column_stack([flat, np.cos(theta)])


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

    def draw(rng: np.random.Generator) -> FloatArray:
        return -0.2 + np.sqrt(0.04 + 1.4 * _draw_unit(n, sampling, rng)[:, None])

    return observe(Spiral(), draw, n, noise, noise_kind, random_state)


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
        Number of rows, chosen at random, that are multiplied by a factor uniform in [0.5, 1.5]
        before the noise is added. The thesis takes 10 of 100. The clean rows stay on the circle.
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
    return Sample(factor * clean + noise_rows, latent, clean, manifold)


def make_swiss_roll(
    n: int = 1000,
    *,
    noise: float = 0.5,
    noise_kind: NoiseKind = "gaussian",
    random_state: Seed = None,
) -> Sample:
    """Draw rows from the Swiss roll, more densely wound inside than outside.

    Parameters
    ----------
    n : int, default=1000
        Number of rows.
    noise : float, default=0.5
        Standard deviation per coordinate; for uniform noise the half width of the interval.
    noise_kind : {"gaussian", "uniform", "laplacian"}, default="gaussian"
        Law of the noise.
    random_state : int, Generator or None, default=None
        Seed of the draw.

    Returns
    -------
    Sample
        With D = 3 and latent rows (t, h): turning angle and height.

    Examples
    --------
    >>> sample = make_swiss_roll(1000, random_state=0)
    >>> sample.Y.shape, sample.latent.shape
    ((1000, 3), (1000, 2))
    """
    low, high = (ROLL_TURN[0], 0.0), (ROLL_TURN[1], ROLL_HEIGHT)
    return observe(
        SwissRoll(), lambda rng: rng.uniform(low, high, (n, 2)), n, noise, noise_kind, random_state
    )


def make_s_triangle(
    n: int = 1000,
    *,
    noise: float = 0.1,
    noise_kind: NoiseKind = "gaussian",
    random_state: Seed = None,
) -> Sample:
    """Draw rows from a triangle bent to an S.

    Parameters
    ----------
    n : int, default=1000
        Number of rows.
    noise : float, default=0.1
        Standard deviation per coordinate; for uniform noise the half width of the interval.
    noise_kind : {"gaussian", "uniform", "laplacian"}, default="gaussian"
        Law of the noise.
    random_state : int, Generator or None, default=None
        Seed of the draw.

    Returns
    -------
    Sample
        With D = 3 and latent rows (t1, t2), uniform in the triangle |t2| <= t1 <= 1.

    Examples
    --------
    >>> sample = make_s_triangle(1000, random_state=0)
    >>> bool((abs(sample.latent[:, 1]) <= sample.latent[:, 0]).all())
    True
    """

    def draw(rng: np.random.Generator) -> FloatArray:
        u, v = rng.random((2, n))
        return np.sqrt(u)[:, None] * np.column_stack([np.ones(n), 2 * v - 1])

    return observe(STriangle(), draw, n, noise, noise_kind, random_state)


def make_fish_bowl(
    n: int = 2000,
    *,
    noise: float = 0.5,
    noise_kind: NoiseKind = "gaussian",
    random_state: Seed = None,
) -> Sample:
    """Draw rows from a sphere without its lowest cap.

    Parameters
    ----------
    n : int, default=2000
        Number of rows.
    noise : float, default=0.5
        Standard deviation per coordinate; for uniform noise the half width of the interval. The
        thesis uses 0.5 in section 5.3 and 0.1 in section 3.5.
    noise_kind : {"gaussian", "uniform", "laplacian"}, default="gaussian"
        Law of the noise.
    random_state : int, Generator or None, default=None
        Seed of the draw.

    Returns
    -------
    Sample
        With D = 3 and latent rows in the disc ``theta (cos phi, sin phi)``.

    Examples
    --------
    >>> sample = make_fish_bowl(2000, noise=0.1, random_state=0)
    >>> bool(sample.clean[:, 2].min() >= -7)
    True
    """

    def draw(rng: np.random.Generator) -> FloatArray:
        theta = np.arccos(rng.uniform(BOWL_LOWEST, 1.0, size=n))
        phi = rng.uniform(0.0, 2 * np.pi, size=n)
        return theta[:, None] * np.column_stack([np.cos(phi), np.sin(phi)])

    return observe(FishBowl(), draw, n, noise, noise_kind, random_state)


def _spiral(t: FloatArray) -> FloatArray:
    """Points (..., 2) of the spiral at t (...)."""
    radius, angle = t + 0.2, 4 * np.pi * t
    return np.stack([radius * np.sin(angle), radius * np.cos(angle)], axis=-1)


def _sq_dist_to_spiral(t: FloatArray, Y: FloatArray, /) -> FloatArray:
    gap = Y - _spiral(t)
    sq_dists: FloatArray = gap[..., 0] ** 2 + gap[..., 1] ** 2
    return sq_dists


def _s_curve(t1: FloatArray) -> tuple[FloatArray, FloatArray]:
    """First and third coordinate of the S at t1."""
    s = 2 * t1 - 1
    return np.sin(-1.5 * np.pi * s), 2 * np.sin(2.3 * s)


def _sq_dist_to_roll(t: FloatArray, Y: FloatArray, /) -> FloatArray:
    sq_dists: FloatArray = (Y[..., 0] - t * np.cos(t)) ** 2 + (Y[..., 2] - t * np.sin(t)) ** 2
    return sq_dists


def _sq_dist_to_triangle(t1: FloatArray, Y: FloatArray, /) -> FloatArray:
    """Squared distance to the segment |t2| <= t1, whose half length is 2 t1."""
    x, z = _s_curve(t1)
    overhang = np.maximum(np.abs(Y[..., 1]) - 2 * t1, 0.0)
    sq_dists: FloatArray = (Y[..., 0] - x) ** 2 + overhang**2 + (Y[..., 2] - z) ** 2
    return sq_dists


def _draw_unit(n: int, sampling: Sampling, rng: np.random.Generator) -> FloatArray:
    """Draw n numbers from [0, 1), independently or one in each interval [i / n, (i + 1) / n)."""
    if sampling == "iid":
        return rng.random(n)
    if sampling == "stratified":
        # Shuffled, so that the order of the rows does not give the latent order away.
        return (rng.permutation(n) + rng.random(n)) / n
    raise ValueError(f"`sampling` must be one of {get_args(Sampling)}; got {sampling!r}.")

"""Surfaces in three dimensions with known latent coordinates.

From S. Klanke, "Learning manifolds with the parametrized self-organizing map and unsupervised
kernel regression", Bielefeld 2007.

Swiss roll (section 5.1.4): ``(t cos t, h, t sin t)``, t uniform in [1.5 pi, 4.5 pi], h uniform in
[0, 21]. The thesis gives no formula; this common one reproduces its distances of the raw data.

S-shaped triangle (section 4.6.2): with u, v uniform in [0, 1], ``t1 = sqrt(u)`` and
``t2 = t1 (2 v - 1)``, the point ``(sin(-1.5 pi (2 t1 - 1)), 2 t2, 2 sin(2.3 (2 t1 - 1)))``.

Fish bowl (3.44): ``10 (sqrt(1 - c^2) cos phi, sqrt(1 - c^2) sin phi, c)``, c uniform in [-0.7, 1],
phi uniform in [0, 2 pi]: a sphere without its lowest cap, evenly covered.

Inner is the side of the axis for the roll and of the centre for the bowl.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twofold.array_types import FloatArray
from twofold.datasets.nearest import nearest_parameter
from twofold.datasets.noise import NoiseKind, Seed
from twofold.datasets.sample import Sample, as_rows, check_size, observe, row_norms

ROLL_TURN = (1.5 * np.pi, 4.5 * np.pi)
ROLL_HEIGHT = 21.0
BOWL_RADIUS = 10.0
BOWL_LOWEST = -0.7
# Steps of at most 0.27 on a spiral whose radius of curvature is 4.6 or more.
ROLL_NODES = np.linspace(*ROLL_TURN, 513)
TRIANGLE_NODES = np.linspace(0.0, 1.0, 513)


@dataclass(frozen=True)
class SwissRoll:
    """The sheet ``(t cos t, h, t sin t)``, t in [1.5 pi, 4.5 pi], h in [0, 21].

    Distances are those to the roll continued beyond both ends of its height. The thesis leaves this
    open; for its raw data it reports 0.401 (Gaussian) and 0.366 (Laplacian), the continued roll
    gives 0.399 and 0.367, the bounded one 0.402 and 0.371.
    """

    def point(self, latent: FloatArray) -> FloatArray:
        """Carry (t, h) rows (n, 2) to the sheet (n, 3)."""
        t, h = as_rows(latent, 2).T
        return np.column_stack([t * np.cos(t), h, t * np.sin(t)])

    def nearest(self, Y: FloatArray) -> FloatArray:
        """Return the (t, h) rows (n, 2) of the sheet points nearest to rows (n, 3)."""
        Y = as_rows(Y, 3)
        return np.column_stack([nearest_parameter(_sq_dist_to_roll, Y, ROLL_NODES), Y[:, 1]])

    def distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, 3) to the sheet, its inner and outer edge included."""
        return row_norms(as_rows(Y, 3) - self.point(self.nearest(Y)))

    def signed_distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, 3), positive for rows nearer to the axis than the sheet."""
        Y = as_rows(Y, 3)
        foot = self.nearest(Y)
        # The sheet point at parameter t lies at distance t from the axis.
        is_inner = np.hypot(Y[:, 0], Y[:, 2]) < foot[:, 0]
        return np.where(is_inner, 1.0, -1.0) * row_norms(Y - self.point(foot))


@dataclass(frozen=True)
class STriangle:
    """A triangle bent to an S: latent rows (t1, t2) with t1 in [0, 1] and |t2| <= t1."""

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

    def distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, 3) to the triangle, its borders included."""
        return row_norms(as_rows(Y, 3) - self.point(self.nearest(Y)))


@dataclass(frozen=True)
class FishBowl:
    """The sphere of radius 10 about the origin without its lowest cap.

    The latent rows are ``theta (cos phi, sin phi)`` with theta the angle from the north pole: the
    bowl flattened to a disc, which unlike (c, phi) tears no neighbours apart. Distances are those
    to the whole sphere.
    """

    def point(self, latent: FloatArray) -> FloatArray:
        """Carry disc rows (n, 2) to the sphere (n, 3)."""
        disc = as_rows(latent, 2)
        theta = row_norms(disc)
        # sin(theta) / theta without the division by zero at the pole; numpy's sinc includes pi.
        flat = np.sinc(theta / np.pi)[:, None] * disc
        return BOWL_RADIUS * np.column_stack([flat, np.cos(theta)])

    def distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, 3) to the sphere."""
        return np.abs(self.signed_distance(Y))

    def signed_distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, 3), positive inside the sphere."""
        return BOWL_RADIUS - row_norms(as_rows(Y, 3))


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
    check_size(n)
    rng = np.random.default_rng(random_state)
    latent = rng.uniform((ROLL_TURN[0], 0.0), (ROLL_TURN[1], ROLL_HEIGHT), size=(n, 2))
    return observe(SwissRoll(), latent, noise=noise, noise_kind=noise_kind, rng=rng)


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
    check_size(n)
    rng = np.random.default_rng(random_state)
    u, v = rng.random((2, n))
    t1 = np.sqrt(u)
    latent = np.column_stack([t1, t1 * (2 * v - 1)])
    return observe(STriangle(), latent, noise=noise, noise_kind=noise_kind, rng=rng)


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
    check_size(n)
    rng = np.random.default_rng(random_state)
    theta = np.arccos(rng.uniform(BOWL_LOWEST, 1.0, size=n))
    phi = rng.uniform(0.0, 2 * np.pi, size=n)
    latent = theta[:, None] * np.column_stack([np.cos(phi), np.sin(phi)])
    return observe(FishBowl(), latent, noise=noise, noise_kind=noise_kind, rng=rng)


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

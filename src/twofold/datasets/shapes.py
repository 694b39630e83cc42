"""Curves in the plane and surfaces in space with known latent coordinates.

All but the last are from S. Klanke, "Learning manifolds with the parametrized self-organizing map
and unsupervised kernel regression", Bielefeld 2007.

Spiral (5.15): ``s(t) = (t + 0.2) (sin 4 pi t, cos 4 pi t)``, t in [0, 1]: two windings, radius 0.2
to 1.2. The thesis does not say how t was drawn. Here ``t = -0.2 + sqrt(0.04 + 1.4 u)`` with u in
[0, 1], which covers the curve evenly except for the small radial part of its speed.

Half circle (section 5.1.4): ``10 (cos a, sin a)``, a uniform in [0, pi].

Swiss roll (section 5.1.4): ``(t cos t, h, t sin t)``, t uniform in [1.5 pi, 4.5 pi], h uniform in
[0, 21]. The thesis gives no formula; this common one reproduces its distances of the raw data.

S-shaped triangle (section 4.6.2): with u, v uniform in [0, 1], ``t1 = sqrt(u)`` and
``t2 = t1 (2 v - 1)``, the point ``(sin(-1.5 pi (2 t1 - 1)), 2 t2, 2 sin(2.3 (2 t1 - 1)))``.

Fish bowl (3.44): ``10 (sqrt(1 - c^2) cos phi, sqrt(1 - c^2) sin phi, c)``, c uniform in [-0.7, 1],
phi uniform in [0, 2 pi]: a sphere without its lowest cap, evenly covered.

Inner is the side of the smaller radius, about the origin or, for the roll, about its axis.

The S: two three-quarter circles that meet, alone or drawn out to a sheet, whole or with a hole.
With ``a = pi (1.5 u - 1)``, u uniform in [0, 1], half of the rows lie on the upper arc
``(cos a, sin a)`` and half on the lower one ``(-cos a, 2 - sin a)``; in three dimensions a height
h, uniform in [0, ``height``], stands between the two coordinates (Roweis and Saul 2000). O. Kramer,
"Dimensionality Reduction with Unsupervised Nearest Neighbors" (Springer 2013), uses these data
without a formula. This one has the reconstruction errors that the book reports for rows in their
first, arbitrary order: 691.3, 904.5 and 945.8 for 500 rows of height 5 and 2, 5 and 10 neighbours.
Its tables on robust losses fit 100 rows of height 2. The hole is not described there ("about 350"
of 500 rows are left); here it takes the middle 55 % of the length and of the height, hence 30 % of
the sheet. The book's noise (5.9) multiplies: every entry of a row by a draw of its own from
N(1, noise²). It prints noise 5, but only about 0.5 fits its figures.

Nearest points of manifolds with one free parameter: the squared distance from a row to a curve may
have one minimum a winding. All of them are bracketed on a grid, each bracket is narrowed by golden
sections, and the least value wins; so the answer is global as long as the grid steps are short
against the curve's radius of curvature.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import check_at_least, check_choice, check_count, check_positive
from twofold.datasets.sample import (
    Manifold,
    NoiseKind,
    Sample,
    Searched,
    Seed,
    as_rows,
    draw_noise,
    observe,
    row_norms,
)

Sampling: TypeAlias = Literal["stratified", "iid"]

ROLL_TURN = (1.5 * np.pi, 4.5 * np.pi)
ROLL_HEIGHT = 21.0
BOWL_LOWEST = -0.7
S_LENGTH = 3 * np.pi
HOLE_SHARE = 0.55
# Steps of at most 0.03 on a curve whose radius of curvature is 0.19 or more.
UNIT_NODES = np.linspace(0.0, 1.0, 513)
# Steps of at most 0.27 on a spiral whose radius of curvature is 4.6 or more.
ROLL_NODES = np.linspace(*ROLL_TURN, 513)
GOLDEN = (np.sqrt(5) - 1) / 2
# 0.618 ** 75 = 2e-16: a bracket of any width shrinks to the rounding of its ends.
N_SECTIONS = 75
# Rows of the distance table held at once; with 512 nodes a block takes 4 MiB.
BLOCK_ROWS = 1024

# Squared distance of rows Y (..., D) to the points with parameters t, broadcast together.
SquaredDistance: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]


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


class Spiral(Searched):
    """The curve ``s(t) = (t + 0.2) (sin 4 pi t, cos 4 pi t)``, t in [0, 1]."""

    D = 2

    def point(self, latent: FloatArray) -> FloatArray:
        """Carry t (n, 1) to the curve (n, 2)."""
        return _spiral(as_rows(latent, 1)[:, 0])

    def nearest(self, Y: FloatArray) -> FloatArray:
        """Return the t (n, 1) of the curve points nearest to rows (n, 2)."""

        def sq_dist(t: FloatArray, Y: FloatArray) -> FloatArray:
            gap = Y - _spiral(t)
            return gap[..., 0] ** 2 + gap[..., 1] ** 2

        return nearest_parameter(sq_dist, as_rows(Y, 2), UNIT_NODES)[:, None]

    def signed_distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, 2), positive for rows nearer to the origin than the curve."""
        Y = as_rows(Y, 2)
        foot = self.point(self.nearest(Y))
        is_inner = row_norms(Y) < row_norms(foot)
        return np.where(is_inner, 1.0, -1.0) * row_norms(Y - foot)


class HalfCircle(_Round):
    """Half of the circle of radius 10 about the origin.

    As in the thesis, a model that runs on beyond an end of the half is not punished for it.
    """

    D = 2

    def point(self, latent: FloatArray) -> FloatArray:
        """Carry angles (n, 1) to the circle (n, 2)."""
        angle = as_rows(latent, 1)[:, 0]
        return self.RADIUS * np.column_stack([np.cos(angle), np.sin(angle)])


class SwissRoll(Searched):
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

        def sq_dist(t: FloatArray, Y: FloatArray) -> FloatArray:
            return (Y[..., 0] - t * np.cos(t)) ** 2 + (Y[..., 2] - t * np.sin(t)) ** 2

        Y = as_rows(Y, 3)
        return np.column_stack([nearest_parameter(sq_dist, Y, ROLL_NODES), Y[:, 1]])

    def signed_distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, 3), positive for rows nearer to the axis than the sheet."""
        Y = as_rows(Y, 3)
        foot = self.nearest(Y)
        # The sheet point at parameter t lies at distance t from the axis.
        is_inner = np.hypot(Y[:, 0], Y[:, 2]) < foot[:, 0]
        return np.where(is_inner, 1.0, -1.0) * row_norms(Y - self.point(foot))


class STriangle(Searched):
    """A triangle bent to an S: latent rows (t1, t2) with t1 in [0, 1] and |t2| <= t1."""

    D = 3

    def point(self, latent: FloatArray) -> FloatArray:
        """Carry (t1, t2) rows (n, 2) to the triangle (n, 3)."""
        t1, t2 = as_rows(latent, 2).T
        x, z = _s_curve(t1)
        return np.column_stack([x, 2 * t2, z])

    def nearest(self, Y: FloatArray) -> FloatArray:
        """Return the (t1, t2) rows (n, 2) of the triangle points nearest to rows (n, 3)."""

        def sq_dist(t1: FloatArray, Y: FloatArray) -> FloatArray:
            x, z = _s_curve(t1)
            # Beyond the segment |t2| <= t1, whose half length is 2 t1.
            overhang = np.maximum(np.abs(Y[..., 1]) - 2 * t1, 0.0)
            return (Y[..., 0] - x) ** 2 + overhang**2 + (Y[..., 2] - z) ** 2

        Y = as_rows(Y, 3)
        t1 = nearest_parameter(sq_dist, Y, UNIT_NODES)
        return np.column_stack([t1, np.clip(Y[:, 1] / 2, -t1, t1)])


class FishBowl(_Round):
    """The sphere of radius 10 about the origin without its lowest cap.

    The latent rows are ``theta (cos phi, sin phi)`` with theta the angle from the north pole: the
    bowl flattened to a disc, which unlike (c, phi) tears no neighbours apart.
    """

    D = 3

    def point(self, latent: FloatArray) -> FloatArray:
        """Carry disc rows (n, 2) to the sphere (n, 3)."""
        disc = as_rows(latent, 2)
        theta = row_norms(disc)
        # sin(theta) / theta without the division by zero at the pole; numpy's sinc includes pi.
        flat = np.sinc(theta / np.pi)[:, None] * disc
        return self.RADIUS * np.column_stack([flat, np.cos(theta)])


@dataclass(frozen=True)
class SStructure(Manifold):
    """The S with latent rows t in [0, 3 pi], its length, or (t, h) with h in [0, height].

    Distances are those to the whole S, its hole filled.
    """

    dim: int = 3
    height: float = 5.0

    def point(self, latent: FloatArray) -> FloatArray:
        """Carry latent rows (n, dim - 1) to the S (n, dim)."""
        rows = as_rows(latent, self.dim - 1)
        # The lower arc is run through backwards, so that t goes on where the arcs meet.
        is_upper = rows[:, 0] <= S_LENGTH / 2
        a = np.where(is_upper, rows[:, 0], S_LENGTH - rows[:, 0]) - np.pi
        x = np.where(is_upper, np.cos(a), -np.cos(a))
        z = np.where(is_upper, np.sin(a), 2 - np.sin(a))
        return np.column_stack([x, *rows[:, 1:].T, z])

    def distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, dim) to the S, its borders included."""
        Y = as_rows(Y, self.dim)
        flat = Y[:, [0, -1]]
        upper = _distance_to_arc(flat)
        lower = _distance_to_arc(np.array([0.0, 2.0]) - flat)  # the upper arc turned about (0, 1)
        across = np.minimum(upper, lower)
        if self.dim == 2:
            return across
        return np.hypot(across, Y[:, 1] - np.clip(Y[:, 1], 0, self.height))


def make_spiral(
    n: int = 300,
    *,
    noise: float = 0.05,
    noise_kind: NoiseKind = "gaussian",
    sampling: Sampling = "stratified",
    random_state: Seed = None,
) -> Sample:
    """Draw rows from the spiral of two windings.

    The sample has D = 2 and the parameter t of the spiral as the one latent coordinate.

    Parameters
    ----------
    n : int, default=300
        Number of rows.
    noise : float, default=0.05
        Standard deviation per coordinate; for uniform noise the half width of the interval.
    noise_kind : {"gaussian", "uniform", "laplacian"}, default="gaussian"
        Distribution of the noise. The thesis uses Gaussian 0.05 and uniform 0.1.
    sampling : {"stratified", "iid"}, default="stratified"
        "stratified" draws one row in each of n pieces of about equal length, in random order;
        "iid" draws independently and leaves the gaps that make neighbour graphs fail more often.
    random_state : int, Generator or None, default=None

    Examples
    --------
    >>> sample = make_spiral(300, noise=0.1, noise_kind="uniform", random_state=0)
    >>> sample.Y.shape, sample.latent.shape
    ((300, 2), (300, 1))
    """
    check_choice("sampling", sampling, get_args(Sampling))

    def draw(rng: np.random.Generator) -> FloatArray:
        # Shuffled, so that the order of the rows does not give the latent order away.
        piece = rng.permutation(n) if sampling == "stratified" else None
        u = rng.random(n) if piece is None else (piece + rng.random(n)) / n
        return -0.2 + np.sqrt(0.04 + 1.4 * u[:, None])

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

    The sample has D = 2 and the angle in [0, pi] as the one latent coordinate.

    Parameters
    ----------
    n, noise, noise_kind, random_state
        As in :func:`make_spiral`; by default 100 rows with Gaussian noise 0.25.
    n_outliers : int, default=0
        Number of rows, chosen at random, that are multiplied by a factor uniform in [0.5, 1.5]
        before the noise is added. The thesis takes 10 of 100. The clean rows stay on the circle.

    Examples
    --------
    >>> sample = make_half_circle(100, noise=0.5, noise_kind="laplacian", random_state=0)
    >>> bool(sample.distance(sample.clean).max() < 1e-12)
    True
    """
    check_count("n", n)
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

    The sample has D = 3 and latent rows (t, h): turning angle and height.

    Parameters are as in :func:`make_spiral`; by default 1000 rows with Gaussian noise 0.5.

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

    The sample has D = 3 and latent rows (t1, t2), uniform in the triangle |t2| <= t1 <= 1.

    Parameters are as in :func:`make_spiral`; by default 1000 rows with Gaussian noise 0.1.

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

    The sample has D = 3 and latent rows in the disc ``theta (cos phi, sin phi)``.

    Parameters are as in :func:`make_spiral`; by default 2000 rows with Gaussian noise 0.5. The
    thesis uses 0.5 in section 5.3 and 0.1 in section 3.5.

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


def make_s_structure(
    n: int = 500,
    *,
    dim: int = 3,
    height: float = 5.0,
    hole: bool = False,
    noise: float = 0.0,
    random_state: Seed = None,
) -> Sample:
    """Draw rows from an S, in random order.

    Latent rows are t or (t, h): length along the S, from 0 to 3 pi, and height.

    Parameters
    ----------
    n : int, default=500
        Number of rows, those in a hole not counted.
    dim : {2, 3}, default=3
        A curve in the plane, or a sheet in space.
    height : float, default=5.0
        Height of the sheet.
    hole : bool, default=False
        Leave out the middle of the sheet.
    noise : float, default=0.0
        Standard deviation of the factor, of mean 1, by which each entry is multiplied.
    random_state : int, Generator or None, default=None

    Examples
    --------
    >>> sample = make_s_structure(350, hole=True, random_state=0)
    >>> sample.Y.shape, sample.latent.shape
    ((350, 3), (350, 2))
    """
    check_count("n", n)
    if dim not in (2, 3):
        raise ValueError(f"`dim` must be 2 (a curve) or 3 (a sheet); got {dim!r}.")
    if hole and dim == 2:
        raise ValueError("A curve has no hole; use dim=3 or hole=False.")
    check_positive("height", height)
    check_at_least("noise", noise)
    rng = np.random.default_rng(random_state)
    halves = [_draw_half(n // 2, height, hole, rng), _draw_half(n - n // 2, height, hole, rng)]
    halves[1][:, 0] = S_LENGTH - halves[1][:, 0]
    latent = rng.permutation(np.concatenate(halves))[:, : dim - 1]
    manifold = SStructure(dim, float(height))
    clean = manifold.point(latent)
    Y = clean * rng.normal(1.0, noise, clean.shape) if noise > 0 else clean.copy()
    return Sample(Y, latent, clean, manifold)


def _spiral(t: FloatArray) -> FloatArray:
    """Points (..., 2) of the spiral at t (...)."""
    radius, angle = t + 0.2, 4 * np.pi * t
    return np.stack([radius * np.sin(angle), radius * np.cos(angle)], axis=-1)


def _s_curve(t1: FloatArray) -> tuple[FloatArray, FloatArray]:
    """First and third coordinate of the S at t1."""
    s = 2 * t1 - 1
    return np.sin(-1.5 * np.pi * s), 2 * np.sin(2.3 * s)


def _draw_half(n: int, height: float, hole: bool, rng: np.random.Generator) -> FloatArray:
    """Return (t, h) of n rows on the first half of the S."""
    kept = np.empty((0, 2))
    while len(kept) < n:
        drawn = rng.uniform((0.0, 0.0), (S_LENGTH / 2, height), size=(n, 2))
        off_centre = np.abs(drawn / (S_LENGTH, height) - 0.5)
        in_hole = (off_centre < HOLE_SHARE / 2).all(axis=1)
        kept = np.concatenate([kept, drawn[~in_hole] if hole else drawn])
    return kept[:n]


def _distance_to_arc(Y: FloatArray) -> FloatArray:
    """Distance (n,) of rows (n, 2) to the unit circle without the quarter from 90° to 180°."""
    in_gap = (Y[:, 0] < 0) & (Y[:, 1] > 0)
    to_ends = np.minimum(row_norms(Y - (0.0, 1.0)), row_norms(Y - (-1.0, 0.0)))
    return np.where(in_gap, to_ends, np.abs(row_norms(Y) - 1))


def nearest_parameter(sq_dist: SquaredDistance, Y: FloatArray, nodes: FloatArray) -> FloatArray:
    """Return the parameter (n,) of the point nearest to each row of Y (n, D), within `nodes`."""
    rows, cols = _bracket_minima(sq_dist, Y, nodes)
    lo = nodes[np.maximum(cols - 1, 0)]
    hi = nodes[np.minimum(cols + 1, len(nodes) - 1)]
    t, value = _narrow(sq_dist, Y[rows], lo, hi)
    order = np.lexsort((value, rows))
    # Each row brackets at least one minimum, so the firsts are the best of rows 0, 1, ..., n - 1.
    _, first = np.unique(rows[order], return_index=True)
    return t[order][first]


def _bracket_minima(
    sq_dist: SquaredDistance, Y: FloatArray, nodes: FloatArray
) -> tuple[IntArray, IntArray]:
    """Row and node indices of every local minimum on the grid, ends included."""
    rows, cols = [], []
    for start in range(0, max(len(Y), 1), BLOCK_ROWS):
        table = sq_dist(nodes, Y[start : start + BLOCK_ROWS, None, :])
        walled = np.pad(table, ((0, 0), (1, 1)), constant_values=np.inf)
        is_low = (table <= walled[:, :-2]) & (table <= walled[:, 2:])
        block_rows, block_cols = np.nonzero(is_low)
        rows.append(block_rows + start)
        cols.append(block_cols)
    return np.concatenate(rows), np.concatenate(cols)


def _narrow(
    sq_dist: SquaredDistance, Y: FloatArray, lo: FloatArray, hi: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Golden-section search in each bracket; returns the parameters and their values."""
    a, b = hi - GOLDEN * (hi - lo), lo + GOLDEN * (hi - lo)
    value_a, value_b = sq_dist(a, Y), sq_dist(b, Y)
    for _ in range(N_SECTIONS):
        go_left = value_a <= value_b
        lo, hi = np.where(go_left, lo, a), np.where(go_left, b, hi)
        # Golden sections overlap: one of the two inner points serves the next round as well.
        kept, value_kept = np.where(go_left, a, b), np.where(go_left, value_a, value_b)
        fresh = np.where(go_left, hi - GOLDEN * (hi - lo), lo + GOLDEN * (hi - lo))
        value_fresh = sq_dist(fresh, Y)
        a, b = np.where(go_left, fresh, kept), np.where(go_left, kept, fresh)
        value_a = np.where(go_left, value_fresh, value_kept)
        value_b = np.where(go_left, value_kept, value_fresh)
    return np.where(value_a <= value_b, a, b), np.minimum(value_a, value_b)

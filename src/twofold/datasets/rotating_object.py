"""Small pictures of a pot that turns about its upright axis: a closed curve in pixel space.

A stand-in for the 400 views of a teapot over 360 degrees on which pre-images of kernel PCA were
tried (Arias 2007, section 4.4: 26 x 34 pixels, values in [0, 1], noise 0.01). The pot has a body, a
lid with a knob, a spout on one side and a handle on the other, so that no two views are alike.

The surface is covered with small spheres; sphere k has, after the turn, a place (u_k, v_k) on the
picture, a depth z_k towards the viewer and a brightness c_k by the direction it faces. With
Gaussian footprints ``g_k(p) = exp(-|p - (u_k, v_k)|² / (2 w²))`` a pixel p has the value

    I(p) = (1 - exp(-o Σ_k g_k(p))) Σ_k c_k e^(z_k/t) g_k(p) / Σ_k e^(z_k/t) g_k(p):

how much of the pixel is covered, times the brightness of what is in front. The depths decide
smoothly, not by an order, and every part is a smooth function of the angle; so is the picture.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from twofold.array_types import FloatArray
from twofold.datasets.sample import Manifold, Sample, Seed, as_rows, observe

HEIGHT, WIDTH = 26, 34
# The viewer looks down by this angle; the light comes from the upper left, in front.
TILT = np.radians(25)
LIGHT = np.array([-0.5, 0.6, 0.62]) / np.linalg.norm([-0.5, 0.6, 0.62])
# In units of the body's radius: half the height of the picture, and the spheres' footprint.
HALF_HEIGHT, FOOTPRINT = 1.55, 0.11
# Spheres this much farther back count for 1/e.
DEPTH_UNIT = 0.12
OPACITY = 1.2
# Angles between which the curve is taken as straight, for distances to it.
N_CHORDS = 1440
FRAMES_AT_A_TIME = 64


@dataclass(frozen=True, eq=False)
class RotatingObject(Manifold):
    """The closed curve of all views of the pot, in pictures of ``height`` x ``width`` pixels."""

    height: int = HEIGHT
    width: int = WIDTH
    _surface: tuple[FloatArray, FloatArray] = field(default_factory=lambda: _pot(), repr=False)

    def point(self, latent: FloatArray) -> FloatArray:
        """Carry angles (n, 1), in radians, to pictures (n, height * width), row by row."""
        angles = as_rows(latent, 1)[:, 0]
        pictures = np.empty((len(angles), self.height * self.width))
        for start in range(0, len(angles), FRAMES_AT_A_TIME):
            part = slice(start, start + FRAMES_AT_A_TIME)
            pictures[part] = self._render(angles[part]).reshape(-1, pictures.shape[1])
        return pictures

    def nearest(self, Y: FloatArray) -> FloatArray:
        """Return the angles (n, 1) in [0, 2 pi) of the views nearest to pictures (n, D)."""
        return self._nearest(Y)[0]

    def distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) to the curve, taken as 1440 chords; they cut off less than 0.001."""
        return self._nearest(Y)[1]

    def _nearest(self, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return angles (n, 1) and distances (n,), by the best of the two chords at the best node.

        With the nodes 0.25 degrees apart, the nearest point lies on a chord at the nearest node.
        """
        Y = as_rows(Y, self.height * self.width)
        nodes = self._nodes
        sq_dists = (Y**2).sum(axis=1)[:, None] + (nodes**2).sum(axis=1) - 2 * Y @ nodes.T
        best = sq_dists.argmin(axis=1)
        step = 2 * np.pi / N_CHORDS
        angles, distances = np.zeros(len(Y)), np.full(len(Y), np.inf)
        for first in (best - 1, best):
            start, chord = nodes[first], nodes[(first + 1) % N_CHORDS] - nodes[first]
            share = ((Y - start) * chord).sum(axis=1) / (chord**2).sum(axis=1)
            share = np.clip(share, 0, 1)
            there = np.linalg.norm(Y - start - share[:, None] * chord, axis=1)
            angles = np.where(there < distances, (first + share) * step, angles)
            distances = np.minimum(there, distances)
        return angles[:, None] % (2 * np.pi), distances

    @cached_property
    def _nodes(self) -> FloatArray:
        return self.point(np.arange(N_CHORDS)[:, None] * (2 * np.pi / N_CHORDS))

    def _render(self, angles: FloatArray) -> FloatArray:
        """Return pictures (n, height, width)."""
        places, normals = (_turn(part, angles) for part in self._surface)
        brightness = 0.15 + 0.8 * ((1 + normals @ LIGHT) / 2) ** 2
        # No part of the pot comes nearer than 2, so that none of these is above 1.
        front = np.exp((places[:, :, 2] - 2) / DEPTH_UNIT)
        pixel = 2 * HALF_HEIGHT / self.height
        rows = HALF_HEIGHT - pixel * (np.arange(self.height) + 0.5)
        columns = pixel * (np.arange(self.width) + 0.5 - self.width / 2)
        by_row = _footprints(rows, places[:, :, 1]).swapaxes(1, 2)
        by_column = _footprints(columns, places[:, :, 0])

        def splat(weight: FloatArray | float) -> FloatArray:
            return by_row @ (by_column * np.broadcast_to(weight, front.shape)[..., None])

        seen = np.maximum(splat(front), 1e-300)  # where nothing covers a pixel, it is 0 / 1e-300
        return np.asarray(-np.expm1(-OPACITY * splat(1.0)) * splat(front * brightness) / seen)


def make_rotating_object(n: int = 400, *, noise: float = 0.01, random_state: Seed = None) -> Sample:
    """Take pictures of a turning pot at equal steps over 360 degrees.

    The sample has D = 884, pictures of 26 x 34 pixels row by row, and the angle in [0, 2 pi) as the
    one latent coordinate, rising.

    Parameters
    ----------
    n : int, default=400
        Number of pictures.
    noise : float, default=0.01
        Standard deviation of Gaussian noise in every pixel; clean values lie in [0, 1].
    random_state : int, Generator or None, default=None
        Seed of the noise.

    Examples
    --------
    >>> from twofold.datasets.rotating_object import make_rotating_object
    >>> sample = make_rotating_object(8, random_state=0)
    >>> sample.Y.reshape(8, 26, 34).shape
    (8, 26, 34)
    """
    angles = 2 * np.pi * np.arange(n)[:, None] / max(n, 1)
    return observe(RotatingObject(), lambda _: angles, n, noise, "gaussian", random_state)


def _turn(vectors: FloatArray, angles: FloatArray) -> FloatArray:
    """Return vectors (K, 3), turned about the upright axis and tilted, shape (n, K, 3)."""
    x, y, z = vectors.T
    sine, cosine = np.sin(angles)[:, None], np.cos(angles)[:, None]
    right, towards = cosine * x + sine * z, cosine * z - sine * x
    up = np.cos(TILT) * y - np.sin(TILT) * towards
    return np.stack([right, up, np.cos(TILT) * towards + np.sin(TILT) * y], axis=2)


def _footprints(grid: FloatArray, places: FloatArray) -> FloatArray:
    """Return footprints (n, K, len(grid)) of spheres at places (n, K) along one side."""
    gaps = (grid - places[:, :, None]) / FOOTPRINT
    return np.asarray(np.exp(-0.5 * gaps**2))


def _pot() -> tuple[FloatArray, FloatArray]:
    """Return places (K, 3) of the spheres, y upright, and the directions (K, 3) they face."""
    # The body is a ball pressed flat to 0.78 of its height.
    press = np.array([1.0, 0.78, 1.0])
    places, normals = _ball(np.zeros(3), 1.0, 420)
    normals = normals / press
    body = places * press, normals / np.linalg.norm(normals, axis=1, keepdims=True)
    knob = _ball(np.array([0.0, 0.93, 0.0]), 0.16, 24)
    # The spout rises from the body to the right, and narrows; the handle is half a ring.
    t = np.linspace(0, 1, 9)
    spout = np.column_stack([0.9 + 0.6 * t, -0.15 + 0.75 * t**1.5, np.zeros(9)])
    turn = np.linspace(0.45, 1.55, 13) * np.pi
    handle = np.column_stack([-0.95 + 0.5 * np.cos(turn), 0.42 * np.sin(turn), np.zeros(13)])
    parts = [body, knob, *_tube(spout, 0.2 - 0.1 * t), *_tube(handle, np.full(13, 0.08))]
    places, normals = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return places, normals


def _ball(centre: FloatArray, radius: float, count: int) -> tuple[FloatArray, FloatArray]:
    """Return spheres evenly over a ball, along a spiral of golden turns."""
    y = 1 - 2 * (np.arange(count) + 0.5) / count
    turn = np.pi * (1 + np.sqrt(5)) * np.arange(count)
    ring = np.sqrt(1 - y**2)
    normals = np.column_stack([ring * np.cos(turn), y, ring * np.sin(turn)])
    return centre + radius * normals, normals


def _tube(path: FloatArray, radii: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """Return balls of eight spheres strung along a path (L, 3)."""
    return [_ball(place, radius, 8) for place, radius in zip(path, radii, strict=True)]

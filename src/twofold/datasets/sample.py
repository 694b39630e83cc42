"""What a generator returns: rows, their true latent coordinates and the true manifold.

A generator draws latent points, carries them to data space with ``manifold.point`` and adds noise,
independent in every coordinate: ``Y = point(latent) + noise``. The clean rows are kept, and the
manifold can say how far any other rows lie from it, so that a fitted model is judged against the
truth and not against noisy data.

=============  ==========================  ==================
kind           what ``noise`` means        standard deviation
=============  ==========================  ==================
``gaussian``   standard deviation          ``noise``
``laplacian``  standard deviation          ``noise``
``uniform``    half width of the interval  ``noise / sqrt(3)``
=============  ==========================  ==================

The Laplacian density ``exp(-|u| / b) / (2 b)`` has standard deviation ``sqrt(2) b``. Klanke's
thesis writes sigma for ``b`` in (5.13), but his tables come out only with ``b = sigma / sqrt(2)``,
which makes sigma a standard deviation as in the Gaussian case. Uniform noise is given by its half
width because the thesis states it so: ``[-0.1, 0.1]`` for the spiral.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from twofold.array_types import FloatArray
from twofold.checks.parameters import check_at_least, check_choice, check_count

NoiseKind: TypeAlias = Literal["gaussian", "uniform", "laplacian"]
Seed: TypeAlias = int | np.random.Generator | None


class Manifold(ABC):
    """A known manifold: the map from latent to data space, and the distance to its image."""

    @abstractmethod
    def point(self, latent: FloatArray) -> FloatArray:
        """Carry latent rows (n, q) to data space (n, D)."""

    @abstractmethod
    def distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, D) to the manifold."""

    def signed_distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, D), positive on the inner side, where there is one."""
        raise TypeError(
            "signed_distance needs a manifold with an inner side; "
            f"{type(self).__name__} has none. Use distance instead."
        )


class Searched(Manifold):
    """A manifold whose nearest points are found by a search."""

    @abstractmethod
    def nearest(self, Y: FloatArray) -> FloatArray:
        """Return the latent rows (n, q) of the points nearest to rows (n, D)."""

    def distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, D) to the manifold, its borders included."""
        foot = self.point(self.nearest(Y))
        return row_norms(np.asarray(Y, dtype=np.float64) - foot)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Rows drawn from a known manifold: with noise, as ``latent`` coordinates, and ``clean``.

    The latent coordinates are those of the generator, and ``clean == manifold.point(latent)``.

    Examples
    --------
    >>> from twofold.datasets import make_spiral
    >>> spiral = make_spiral(100, noise=0.1, random_state=0)
    >>> spiral.Y.shape, spiral.latent.shape
    ((100, 2), (100, 1))
    >>> bool((spiral.distance(spiral.clean) < 1e-6).all())
    True
    """

    Y: FloatArray  # (n, D)
    latent: FloatArray  # (n, q)
    clean: FloatArray  # (n, D) before noise and outliers
    manifold: Manifold

    def distance(self, Y: FloatArray) -> FloatArray:
        """Return how far (m,) rows (m, D), e.g. reconstructions, lie from the true manifold."""
        return self.manifold.distance(Y)

    def signed_distance(self, Y: FloatArray) -> FloatArray:
        """Return how far (m,) rows (m, D) lie from the true manifold, and on which side.

        Its mean is the bias of a model and its standard deviation the roughness. Klanke's equation
        (5.16) counts the inner side as positive, and so does this method; his tables 5.10 to 5.12
        carry the opposite sign. A manifold without an inner side raises a TypeError.
        """
        return self.manifold.signed_distance(Y)


def observe(
    manifold: Manifold,
    draw_latent: Callable[[np.random.Generator], FloatArray],
    n: int,
    noise: float,
    noise_kind: NoiseKind,
    random_state: Seed,
) -> Sample:
    """Draw n latent rows, carry them to data space and add noise."""
    check_count("n", n)
    rng = np.random.default_rng(random_state)
    latent = draw_latent(rng)
    clean = manifold.point(latent)
    return Sample(clean + draw_noise(clean.shape, noise, noise_kind, rng), latent, clean, manifold)


def draw_noise(
    shape: tuple[int, ...], noise: float, kind: NoiseKind, rng: np.random.Generator
) -> FloatArray:
    """Draw noise of mean zero, see the module's table for the meaning of `noise`."""
    check_at_least("noise", noise)
    check_choice("noise_kind", kind, get_args(NoiseKind))
    if kind == "gaussian":
        return rng.normal(scale=noise, size=shape)
    if kind == "laplacian":
        return rng.laplace(scale=noise / np.sqrt(2), size=shape)
    return rng.uniform(-noise, noise, size=shape)


def row_norms(Y: FloatArray) -> FloatArray:
    """Euclidean norm (n,) of each row."""
    return np.asarray(np.linalg.norm(Y, axis=1))


def as_rows(Y: FloatArray, n_columns: int) -> FloatArray:
    """Return finite float64 rows (n, n_columns), or say what is wrong with them."""
    rows = np.asarray(Y, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != n_columns:
        raise ValueError(
            f"expected rows of shape (n, {n_columns}); got an array of shape {rows.shape}. "
            "Pass one row per point."
        )
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        raise ValueError(
            f"expected finite rows; got {len(bad)} NaN or infinite entries, the first in row "
            f"{bad[0, 0]}, column {bad[0, 1]}. Drop or fill them first."
        )
    return rows

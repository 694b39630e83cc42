"""What a generator returns: rows, their true latent coordinates and the true manifold.

A generator draws latent points, carries them to data space with ``manifold.point`` and adds noise:
``Y = point(latent) + noise``. The clean rows are kept, and the manifold can say how far any other
rows lie from it, so that a fitted model is judged against the truth and not against noisy data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from twofold.array_types import FloatArray
from twofold.datasets.noise import NoiseKind, draw_noise


class Manifold(Protocol):
    """A known manifold: the map from latent to data space, and the distance to its image."""

    def point(self, latent: FloatArray) -> FloatArray:
        """Carry latent rows (n, q) to data space (n, D)."""
        ...

    def distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, D) to the manifold."""
        ...


@runtime_checkable
class OrientedManifold(Manifold, Protocol):
    """A manifold with an inner side."""

    def signed_distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of rows (n, D), positive on the inner side."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Rows drawn from a known manifold.

    Parameters
    ----------
    Y : ndarray of shape (n, D)
        The noisy rows.
    latent : ndarray of shape (n, q)
        The true latent coordinates, in the generator's own parametrization.
    clean : ndarray of shape (n, D)
        The rows before noise and outliers; they lie on the manifold.
    manifold : Manifold
        The true manifold, with ``clean == manifold.point(latent)``.
    """

    Y: FloatArray
    latent: FloatArray
    clean: FloatArray
    manifold: Manifold

    def distance(self, Y: FloatArray) -> FloatArray:
        """Measure how far rows lie from the true manifold.

        Parameters
        ----------
        Y : ndarray of shape (m, D)
            Any rows of data space, for example a model's reconstructions.

        Returns
        -------
        ndarray of shape (m,)
            The distances, none of them negative.
        """
        return self.manifold.distance(Y)

    def signed_distance(self, Y: FloatArray) -> FloatArray:
        """Measure how far rows lie from the true manifold, and on which side.

        Its mean is the bias of a model and its standard deviation the roughness. Klanke's equation
        (5.16) counts the inner side as positive, and so does this method; his tables 5.10 to 5.12
        carry the opposite sign.

        Parameters
        ----------
        Y : ndarray of shape (m, D)
            Any rows of data space, for example a model's reconstructions.

        Returns
        -------
        ndarray of shape (m,)
            The distances, positive on the inner side.

        Raises
        ------
        TypeError
            If the manifold has no inner side.
        """
        if not isinstance(self.manifold, OrientedManifold):
            raise TypeError(
                "signed_distance needs a manifold with an inner side; "
                f"{type(self.manifold).__name__} has none. Use distance instead."
            )
        return self.manifold.signed_distance(Y)


def observe(
    manifold: Manifold,
    latent: FloatArray,
    *,
    noise: float,
    noise_kind: NoiseKind,
    rng: np.random.Generator,
) -> Sample:
    """Carry latent rows (n, q) to data space and add noise."""
    clean = manifold.point(latent)
    Y = clean + draw_noise(clean.shape, noise, noise_kind, rng)
    return Sample(Y=Y, latent=latent, clean=clean, manifold=manifold)


def check_size(n: int) -> None:
    """Refuse a sample without rows."""
    if n < 1:
        raise ValueError(f"`n` must be at least 1; got {n}. Ask for one row or more.")


def row_norms(Y: FloatArray) -> FloatArray:
    """Euclidean norm (n,) of each row."""
    norms: FloatArray = np.linalg.norm(Y, axis=1)
    return norms


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

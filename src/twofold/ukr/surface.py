"""The fitted manifold: regression, density and domain over a set of latent points.

f(x) = Σ_i ω_i y_i F(s_i) / Σ_i ω_i F(s_i)          (Klanke 2007, eq. 4.18; 5.61 at degrees above 0)
p(x) = Σ_i ω_i F(s_i) / Σ_i ω_i                     (4.19, with F(0) = 1)
domain = {x : p(x) >= η},  η = ½ min_i p(x_i)       (4.55, 4.56)

The thesis bounds the domain by min_i p(x_i) and, for the Swiss roll, by half a kernel height. With
leave-one-out training latent points lie about a bandwidth apart, and the full minimum leaves
islands around each of them, which raises the projection error of new rows. So half is the rule.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from twofold.array_types import FloatArray
from twofold.engine import KernelSums, PreparedReferences, Sums
from twofold.ukr.rows import CarriedRows

# The domain ends where the density is this share of the lowest at a training point.
DOMAIN_SHARE = 0.5
_NUMBERS_AT_A_TIME = 20_000_000


class Surface:
    """A manifold given by latent points, the rows they carry and a kernel of unit bandwidth."""

    def __init__(
        self,
        X: FloatArray,
        rows: CarriedRows,
        weights: FloatArray,
        engine: KernelSums,
        widths: FloatArray | None = None,
    ) -> None:
        self.X = np.ascontiguousarray(X, dtype=rows.Y.dtype)
        self.rows, self.engine = rows, engine
        self.total_weight = float(weights.sum())
        local = rows.local(X.shape[1])
        self.prepared = PreparedReferences(engine, self.X, rows.V, widths, local)
        self.threshold = 0.0

    @cached_property
    def kernel_width(self) -> float:
        """The distance at which half of the kernel's weight is gone."""
        return self.engine.kernel.half_width()

    def regress(self, X: FloatArray) -> FloatArray:
        """Return f(x) (m, D) at any latent places."""
        f, _ = self.rows.regress(self.prepared.at(X).values)
        return self.rows.unscaled(f)

    def density(self, X: FloatArray) -> FloatArray:
        """Return p(x) (m,), relative to F(0) = 1."""
        # The sums of all columns come with it: of very wide rows a few places at a time.
        step = max(1, _NUMBERS_AT_A_TIME // self.rows.V.shape[1])
        pieces = [X[start : start + step] for start in range(0, len(X), step)] or [X]
        return np.concatenate([self._density(self.prepared.at(piece)) for piece in pieces])

    def _density(self, sums: Sums) -> FloatArray:
        lowered = self.engine.kernel.value(sums.shift)
        return np.where(sums.shift > 0, lowered, 1) * sums.values[:, -1] / self.total_weight

    def basis(self, X: FloatArray) -> FloatArray:
        """Return how much of each row is in f at latent places: b (m, n), each row of sum 1."""
        B = self.prepared.basis(X, self.rows.whole_fit(X.shape[1]))
        alone = ~(B != 0).any(axis=1)
        B[alone] = self.rows.weights / self.total_weight
        return B

    def look(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return f as the rows are scaled (m, D), its derivative (m, q, D), the density (m,)."""
        sums = self.prepared.at(X, slopes=True)
        f, J = self.rows.jacobian(sums.values, sums.slopes)
        return f, J, self._density(sums)

    def lowest_density(self) -> float:
        """Return the lowest density at a training point."""
        return float(self.density(self.X).min())

    def default_threshold(self) -> float:
        """Return the density η that bounds the domain, with every training point well inside."""
        return DOMAIN_SHARE * self.lowest_density()

    @cached_property
    def reconstructions_t(self) -> FloatArray:
        """f(x_i) - mean of the training points, transposed (D, n)."""
        f, _ = self.rows.regress(self.prepared.at(self.X).values)
        return np.ascontiguousarray(f.T)

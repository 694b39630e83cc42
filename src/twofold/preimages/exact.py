"""Kernels whose nearest row is known: weighted means, and weighted medians of every column.

* l1, ``||φ(y) - φ(y')||² = ||y - y'||₁``: the distance to ψ is ``Σ_i α_i ||y - y_i||₁`` but for a
  constant, so the weighted median is the exact minimum.
* linear: the weighted mean is, ``y = Σ_i α_i y_i``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from twofold.array_types import FloatArray
from twofold.engine.threads import count_threads
from twofold.features import L1, Linear
from twofold.preimages.points import FeaturePoints, PreImageMethod, PreImages
from twofold.preimages.weighted_medians import SortedColumns
from twofold.rowwise import weighted_sums


@dataclass(frozen=True)
class Exact(PreImageMethod):
    """Exact minimum of the distance: weighted means (linear) or medians (l1)."""

    name: ClassVar[str] = "exact"
    needs: ClassVar[str] = "a linear or l1 kernel"

    def fits(self, kernel: Any) -> str | None:
        """Return why the method fits that kernel, None if it does not."""
        if isinstance(kernel, Linear):
            return "linear kernel, whose features are the rows: their weighted mean"
        if isinstance(kernel, L1):
            return "l1 kernel: the weighted median of every column"
        return None

    def find(self, target: FeaturePoints) -> PreImages:
        """Return the pre-images of the points."""
        return PreImages.in_closed_form(target, self.minima(target))

    def minima(self, target: FeaturePoints) -> FloatArray:
        """Return the rows (n, D) alone; their distances take longer than they do."""
        self.check(target.kernel)
        n_threads = count_threads(target.n_jobs)
        if isinstance(target.kernel, Linear):
            return weighted_sums(target.alpha, target.rows, n_threads)
        return SortedColumns(target.rows).medians(target.alpha, n_threads)

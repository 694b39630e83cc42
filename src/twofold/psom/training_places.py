"""Where training rows lie in a map whose places were learned: starts for new rows, and a domain.

The latent density is a Gaussian kernel density with widths by Scott's rule, and the domain ends
where it is half of its lowest value at a training point. A map of polynomials goes on in the parts
of its box where no row came to lie, but there it is made up by the roughness alone.

New rows look for their best match from the training row whose image is nearest to their observed
entries (and from nodes). Where the match lies outside of the domain, the best place inside is taken
on the line from that training row to the match.
"""

from collections.abc import Callable

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.compiled import compiled
from twofold.engine import KernelSums, PreparedReferences
from twofold.engine.threads import run_tasks, slices
from twofold.kernels import get_kernel
from twofold.latent.density import scott_widths

# Kernel weights below this, relative to the largest, are left out of a density.
CUTOFF = 1e-6
ROWS_PER_TASK = 64
# Places tried on the line from a training row to a match outside of the domain.
PLACES_ON_LINE = 33
# An axis that rows hardly use must not be nearly infinitely narrow: a share of the widest.
LEAST_WIDTH = 1e-3


class TrainingPlaces:
    """Training rows of a map: latent points X (n, q), images (n, D) and weights (n,)."""

    def __init__(
        self, X: FloatArray, images: FloatArray, weights: FloatArray, n_threads: int
    ) -> None:
        self.X = np.ascontiguousarray(X, dtype=np.float64)
        self.images = np.ascontiguousarray(images)
        self.unit = scott_widths(X, weights, LEAST_WIDTH)
        self.n_threads = n_threads
        self.engine = KernelSums(get_kernel("gaussian"), CUTOFF, n_threads)
        shares = (weights / weights.sum())[:, None]
        self.prepared = PreparedReferences(self.engine, self._in_units(X), shares)

    def density(self, X: FloatArray) -> FloatArray:
        """Return the density (m,), in units of one kernel at its centre."""
        sums = self.prepared.at(self._in_units(X))
        return np.asarray(sums.values[:, 0] * self.engine.kernel.value(sums.shift))

    def _in_units(self, X: FloatArray) -> FloatArray:
        return np.ascontiguousarray(np.asarray(X, dtype=np.float64) / self.unit)

    def nearest(self, Y: FloatArray) -> FloatArray:
        """Return the latent points (m, q) whose images are nearest to rows Y, NaN left out."""
        rows = np.ascontiguousarray(Y, dtype=np.float64)
        observed = ~np.isnan(rows)
        found = np.empty(len(rows), dtype=np.int64)

        def work(at: slice) -> None:
            _nearest(rows[at], observed[at], self.images, found[at])

        run_tasks(work, slices(len(rows), ROWS_PER_TASK), self.n_threads)
        return self.X[found]


def best_inside(
    anchors: FloatArray,
    matches: FloatArray,
    is_inside: Callable[[FloatArray], BoolArray],
    errors_at: Callable[[FloatArray, IntArray], FloatArray],
) -> FloatArray:
    """Return the best places inside on the lines from anchors (m, q), inside, to matches (m, q).

    ``errors_at(places (k, q), rows (k,))`` are the errors (k,) of rows at places.
    """
    m, q = anchors.shape
    shares = np.linspace(0, 1, PLACES_ON_LINE)[:, None]
    lines = anchors[:, None] + shares * (matches - anchors)[:, None]
    places = lines.reshape(-1, q).astype(matches.dtype)
    inside = is_inside(places).reshape(m, -1)
    errors = errors_at(places, np.repeat(np.arange(m), PLACES_ON_LINE)).reshape(m, -1)
    # The anchor is a training row; rounding must not put it outside.
    inside[:, 0] = True
    best = np.where(inside, errors, np.inf).argmin(axis=1)
    return places.reshape(m, -1, q)[np.arange(m), best]


@compiled
def _nearest(Y: FloatArray, observed: BoolArray, images: FloatArray, found: IntArray) -> None:
    D = Y.shape[1]
    for j in range(Y.shape[0]):
        least = np.inf
        found[j] = 0
        for i in range(images.shape[0]):
            distance = 0.0
            for d in range(D):
                if observed[j, d]:
                    off = Y[j, d] - images[i, d]
                    distance += off * off
                    if distance >= least:
                        break
            if distance < least:
                least = distance
                found[j] = i

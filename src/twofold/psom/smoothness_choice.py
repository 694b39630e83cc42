"""How much to smooth: a whole path of fits, and the rules that choose one of them.

Every smoothing problem here is, in suitable coordinates, the least squares problem

    minimise ||y - K z||² + λ ||z||²,

and with the singular values s of K and the parts p of the data along its left singular vectors
everything there is to know for every λ follows from the shares λ / (s² + λ) that smoothing takes
away: the residual Σ share² p², and the degrees of freedom left over Σ share. Where the singular
values are only known approximately (:mod:`twofold.psom.penalized`) that last sum is estimated by
probes: for random signs u, the mean of uᵀ (I - H) u is the trace of I - H (Hutchinson).

- :class:`GCV`, generalized cross-validation, the default: minimise ``mean residual² / (1 -
  tr H/n)²``. Needs no knowledge of the noise.
- :class:`Discrepancy`: the mean squared residual equals the squared noise (Klanke 2007, section
  3.3.2). It smooths too much, because the fit takes part of the noise along; it is here for
  comparison and for its simplicity.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from twofold.array_types import FloatArray
from twofold.checks.parameters import check_positive, is_number

# Range of λ relative to the largest s². Data without noise drive it to the lower end.
LEAST, MOST = 1e-10, 1e3
GRID_POINTS = 60


@dataclass(frozen=True)
class GCV:
    """Generalized cross-validation, pooled over the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold import PSOM
    >>> from twofold.psom import GCV, Grid
    >>> x = Grid.make((6, 6)).places()
    >>> noise = 0.05 * np.random.default_rng(0).normal(size=(36, 3))
    >>> Y = np.column_stack([x, x.prod(axis=1)]) + noise
    >>> PSOM(grid=(6, 6), smoothness=GCV()).fit_grid(Y).smoothness_ > 0
    True
    """


@dataclass(frozen=True)
class Discrepancy:
    """Smooth until the mean squared residual equals the known squared noise.

    ``sigma`` is the standard deviation of the noise of each entry, above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold import PSOM
    >>> from twofold.psom import Discrepancy, Grid
    >>> x = Grid.make((6, 6)).places()
    >>> noise = 0.05 * np.random.default_rng(0).normal(size=(36, 3))
    >>> Y = np.column_stack([x, x.prod(axis=1)]) + noise
    >>> PSOM(grid=(6, 6), smoothness=Discrepancy(0.05)).fit_grid(Y).smoothness_ > 0
    True
    """

    sigma: float

    def __post_init__(self) -> None:
        check_positive("sigma", self.sigma)


Rule = GCV | Discrepancy
Smoothness = float | str | GCV | Discrepancy


@dataclass(frozen=True, eq=False)
class SmoothnessPath:
    """The fits of some columns for every smoothness."""

    singular_values: FloatArray  # (r,) of K
    data_parts: FloatArray  # (r, D) the data along the left singular vectors
    outside: float  # squared norm of the data that no fit reaches
    # The same (r, p) of vectors whose squared entries add up to the degrees of freedom left, and
    # the mean of their squared norm outside.
    probe_parts: FloatArray
    probe_outside: float
    n_rows: int  # observations of each column
    # Gives node values (N, D) for coefficients (r, D) along the right singular vectors.
    restore: Callable[[FloatArray], FloatArray]

    @property
    def n_columns(self) -> int:
        """Number of columns D."""
        return self.data_parts.shape[1]

    def shares(self, smoothness: float) -> FloatArray:
        """Return what smoothing takes away along each direction (r,)."""
        return smoothness / (self.singular_values**2 + smoothness)

    def squared_residual(self, smoothness: float) -> float:
        """Return the sum of squared residuals."""
        left = self.shares(smoothness)[:, None] * self.data_parts
        return self.outside + float((left**2).sum())

    def free(self, smoothness: float) -> float:
        """Return the degrees of freedom left over in each column, n - tr H."""
        parts = (self.probe_parts**2).mean(axis=1)
        return self.probe_outside + float(self.shares(smoothness) @ parts)

    def solution(self, smoothness: float) -> FloatArray:
        """Return the node values (N, D)."""
        shrunk = self.singular_values / (self.singular_values**2 + smoothness)
        return self.restore(shrunk[:, None] * self.data_parts)


def checked_smoothness(smoothness: Smoothness) -> float | Rule:
    """Return a number >= 0 or a rule."""
    if isinstance(smoothness, GCV | Discrepancy):
        return smoothness
    if isinstance(smoothness, str) and smoothness == "gcv":
        return GCV()
    if is_number(smoothness) and 0 <= float(smoothness) < np.inf:
        return float(smoothness)
    raise ValueError(
        "`smoothness` must be a number >= 0, 'gcv', GCV() or Discrepancy(sigma); "
        f"got {smoothness!r}."
    )


def choose_smoothness(paths: Sequence[SmoothnessPath], rule: Rule) -> float:
    """Return the smoothness that a rule chooses for all columns together."""
    scale = max((float(path.singular_values.max(initial=0)) for path in paths), default=0.0) ** 2
    if scale == 0:
        return 1.0  # every map of the grid is affine: there is nothing to smooth
    lowest, highest = math.log(LEAST * scale), math.log(MOST * scale)
    if isinstance(rule, Discrepancy):
        return _reach_noise(paths, rule.sigma, lowest, highest)
    places = np.linspace(lowest, highest, GRID_POINTS)
    scores = [log_gcv(paths, math.exp(at)) for at in places]
    best = int(np.argmin(scores))
    if best in (0, GRID_POINTS - 1):
        return math.exp(places[best])
    around = (places[best - 1], places[best + 1])
    found = minimize_scalar(
        lambda at: log_gcv(paths, math.exp(at)),
        bounds=around,
        method="bounded",
        options={"xatol": 1e-3},
    )
    return math.exp(float(found.x) if found.fun < scores[best] else places[best])


def log_gcv(paths: Sequence[SmoothnessPath], smoothness: float) -> float:
    """Return the logarithm of the generalized cross-validation error of all columns together."""
    entries = sum(path.n_rows * path.n_columns for path in paths)
    residual = sum(path.squared_residual(smoothness) for path in paths) / entries
    free = sum(path.free(smoothness) * path.n_columns for path in paths) / entries
    tiny = np.finfo(np.float64).tiny
    return math.log(max(residual, tiny)) - 2 * math.log(max(free, tiny))


def _reach_noise(
    paths: Sequence[SmoothnessPath], sigma: float, lowest: float, highest: float
) -> float:
    entries = sum(path.n_rows * path.n_columns for path in paths)

    def excess(at: float) -> float:
        residual = sum(path.squared_residual(math.exp(at)) for path in paths)
        return residual / entries - sigma**2

    # The residual grows with the smoothness; at the ends the nearest there is must do.
    if excess(lowest) >= 0:
        return math.exp(lowest)
    if excess(highest) <= 0:
        return math.exp(highest)
    return math.exp(brentq(excess, lowest, highest, xtol=1e-6))

"""Many small nonlinear least-squares problems at once, within bounds (Levenberg-Marquardt).

Row i asks for the x (q,) that minimises ``||r_i(x)||²``. With the Jacobian J of the residuals, a
step solves

    (JᵀJ + S + μ diag(JᵀJ)) step = -Jᵀr

in the coordinates that are free: one that lies on a bound and would leave it is held, and what
steps over a bound is moved back onto it (Klanke 2007, section 3.1, leaves the constants open). The
damping μ belongs to the row: it falls after a step that lowers the error, and rises otherwise.

S stands for ``Σ_k r_k ∇²r_k``, which Gauss-Newton leaves out and which counts where residuals stay
large. It is learned from the steps, as (J₊ - J)ᵀ r₊ ≈ S step, by the update of Dennis, Gay and
Welsch (1981, ACM TOMS 7, 348-368), and a row uses it only while it foretells the error better.

Where JᵀJ is singular, as in problems with fewer residuals than unknowns, the damping makes the
step the shortest one that does the job. Such a problem ends at a solution near its start.

All rows advance together, but each row's arithmetic is its own: a row gives the same result alone
or among others, if its residuals do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.compiled import compiled_in_order

FIRST_DAMPING = 1e-2
# Below the least damping a singular system could no longer be solved to a useful accuracy.
LEAST_DAMPING, MOST_DAMPING = 1e-10, 1e10
# What the damping is multiplied by, according to the share of the expected decrease that came.
GOOD_SHARE, POOR_SHARE = 0.75, 0.25
AFTER_GOOD, AFTER_POOR, AFTER_FAILURE = 0.1, 3.0, 5.0
# A coordinate that hardly moves the residuals is damped as if it moved them this much (squared).
LEAST_CURVATURE = 1e-6

ResidualAndJacobian = Callable[[FloatArray, IntArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class LeastSquares:
    """Where the rows ended.

    Attributes
    ----------
    x : (n, q)
    squared_error : (n,) sum of squared residuals there
    converged : (n,) whether the row met a tolerance, and not merely the limit of steps
    n_iter : (n,) number of steps tried
    """

    x: FloatArray
    squared_error: FloatArray
    converged: BoolArray
    n_iter: IntArray


def levenberg_marquardt(
    residual_and_jacobian: ResidualAndJacobian,
    start: ArrayLike,
    *,
    lo: ArrayLike | None = None,
    hi: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    max_iter: int = 60,
    step_tolerance: float = 1e-8,
    gradient_tolerance: float = 1e-7,
) -> LeastSquares:
    """Minimise ``||r_i(x_i)||²`` for every row i.

    Parameters
    ----------
    residual_and_jacobian : ``(x (b, q), rows (b,)) -> r (b, k), J (b, k, q)``; rows are the numbers
        of the problems that x belongs to. Where r is not finite the step is refused
    start : (n, q), moved into the bounds where it lies outside
    lo, hi : bounds (q,) or (n, q); None for none
    scale : (q,) size of a large step of each coordinate; ``hi - lo``, or 1 where that is infinite
    max_iter : largest number of steps tried
    step_tolerance : a row has converged once a hardly damped step is below this share of the scale
    gradient_tolerance : or once the cosine between the residuals and every free column of the
        Jacobian is below this; rounding blurs it to about 1e-8 where residuals stay large
    """
    problem = _Problem(residual_and_jacobian, np.array(start, dtype=np.float64), lo, hi, scale)
    active = problem.look_at_start()
    for count in range(1, max_iter + 1):
        step = problem.propose(active)
        arrived = (step.cosine <= gradient_tolerance) | (problem.error[active] == 0)
        problem.converged[active[arrived]] = True
        active, step = active[~arrived], step.of(~arrived)
        if not len(active):
            break
        problem.n_iter[active] = count
        undamped = problem.damping[active] <= 1
        problem.take(active, step)
        length = np.abs(step.scaled).max(axis=1)
        small = undamped & (length > 0) & (length <= step_tolerance)
        problem.converged[active[small]] = True
        active = active[~small & (problem.damping[active] <= MOST_DAMPING)]
    return LeastSquares(problem.x, problem.error, problem.converged, problem.n_iter)


@dataclass(frozen=True)
class _Step:
    """Proposed places.

    Attributes
    ----------
    x : (b, q) places
    scaled : (b, q) the steps that lead there, divided by the scale
    expected : (b,) foretold decrease of the error
    cosine : (b,) largest cosine between the residuals and a free column of the Jacobian
    """

    x: FloatArray
    scaled: FloatArray
    expected: FloatArray
    cosine: FloatArray

    def of(self, rows: BoolArray) -> _Step:
        return _Step(self.x[rows], self.scaled[rows], self.expected[rows], self.cosine[rows])


class _Problem:
    """The state of all rows."""

    def __init__(
        self,
        residual_and_jacobian: ResidualAndJacobian,
        start: FloatArray,
        lo: ArrayLike | None,
        hi: ArrayLike | None,
        scale: ArrayLike | None,
    ) -> None:
        if start.ndim != 2 or not np.isfinite(start).all():
            raise ValueError(f"`start` must be a finite array (n, q); got shape {start.shape}.")
        n, q = start.shape
        self.look_up = residual_and_jacobian
        self.lo = np.broadcast_to(np.asarray(-np.inf if lo is None else lo), start.shape)
        self.hi = np.broadcast_to(np.asarray(np.inf if hi is None else hi), start.shape)
        if not (self.lo <= self.hi).all():
            raise ValueError("`lo` must not lie above `hi`.")
        self.scale = _scale(scale, self.lo, self.hi)
        self.x = np.clip(start, self.lo, self.hi)
        self.error = np.full(n, np.inf)
        self.gradient: FloatArray = np.zeros((n, q))
        self.curvature: FloatArray = np.zeros((n, q, q))
        self.learned: FloatArray = np.zeros((n, q, q))
        self.trusts_learned = np.zeros(n, dtype=bool)
        self.damping = np.full(n, FIRST_DAMPING)
        self.converged, self.n_iter = np.zeros(n, dtype=bool), np.zeros(n, dtype=np.int64)

    def look_at_start(self) -> IntArray:
        """Take up the error at the start; return the rows where it is finite."""
        rows = np.arange(len(self.x))
        r, self.jacobian, finite = self._look(self.x, rows)
        self.error, self.gradient, self.curvature = _normal_equations(r, self.jacobian)
        finite &= np.isfinite(self.error)  # squares may overflow where residuals do not
        self.error[~finite] = np.inf
        return rows[finite]

    def _look(self, x: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return residuals, Jacobian in coordinates divided by their scale, and where finite."""
        r, J = self.look_up(x, rows)
        finite = np.logical_and(np.isfinite(r).all(axis=1), np.isfinite(J).all(axis=(1, 2)))
        # One memory layout, whatever comes: the loops are compiled anew for each.
        scaled = np.multiply(J, self.scale[rows][:, None, :], order="C", dtype=np.float64)
        return np.ascontiguousarray(r, dtype=np.float64), scaled, finite

    def propose(self, rows: IntArray) -> _Step:
        """Return a damped Gauss-Newton step of each row, within the bounds."""
        x, lo, hi, scale = self.x[rows], self.lo[rows], self.hi[rows], self.scale[rows]
        step, expected, cosine = _damped_steps(
            (lo - x) / scale,
            (hi - x) / scale,
            self.gradient[rows],
            self.curvature[rows],
            self.learned[rows] * self.trusts_learned[rows, None, None],
            self.error[rows],
            self.damping[rows],
        )
        proposed = np.minimum(np.maximum(x + step * scale, lo), hi)
        return _Step(proposed, step, expected, cosine)

    def take(self, rows: IntArray, step: _Step) -> None:
        """Make the steps that lower the error, and adapt the damping."""
        r, J, finite = self._look(step.x, rows)
        error, gradient, curvature = _normal_equations(r, J)
        error[~finite] = np.inf
        decrease = self.error[rows] - error
        better = decrease > 0
        taken = rows[better]
        self.learned[taken], self.trusts_learned[taken] = _learn(
            self.learned[taken],
            self.curvature[taken],
            self.gradient[taken],
            gradient[better],
            self.jacobian[taken],
            r[better],
            step.scaled[better],
            decrease[better],
        )
        self.x[taken], self.error[taken] = step.x[better], error[better]
        self.gradient[taken], self.curvature[taken] = gradient[better], curvature[better]
        self.jacobian[taken] = J[better]
        good, fair = (decrease > share * step.expected for share in (GOOD_SHARE, POOR_SHARE))
        factor = np.select([~better, good, fair], [AFTER_FAILURE, AFTER_GOOD, 1.0], AFTER_POOR)
        self.damping[rows] = np.maximum(self.damping[rows] * factor, LEAST_DAMPING)


def _scale(scale: ArrayLike | None, lo: FloatArray, hi: FloatArray) -> FloatArray:
    if scale is None:
        width = hi - lo
        return np.where(np.isfinite(width) & (width > 0), width, 1.0)
    values = np.broadcast_to(np.asarray(scale, dtype=np.float64), lo.shape)
    if not (values > 0).all():
        raise ValueError("`scale` must be positive.")
    return values


@compiled_in_order
def _normal_equations(r: FloatArray, J: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return r·r (b,), Jᵀr (b, q) and JᵀJ (b, q, q)."""
    b, k, q = J.shape
    error, gradient, curvature = np.zeros(b), np.zeros((b, q)), np.zeros((b, q, q))
    for i in range(b):
        for j in range(k):
            error[i] += r[i, j] * r[i, j]
            for a in range(q):
                gradient[i, a] += J[i, j, a] * r[i, j]
                for c in range(a + 1):
                    curvature[i, a, c] += J[i, j, a] * J[i, j, c]
        for a in range(q):
            for c in range(a):
                curvature[i, c, a] = curvature[i, a, c]
    return error, gradient, curvature


@compiled_in_order
def _learn(
    S: FloatArray,
    H: FloatArray,
    gradient: FloatArray,
    new_gradient: FloatArray,
    J: FloatArray,
    new_r: FloatArray,
    step: FloatArray,
    decrease: FloatArray,
) -> tuple[FloatArray, BoolArray]:
    """Return S (b, q, q) after steps were taken, and whether S would have foretold them better."""
    b, k, q = J.shape
    trusted = np.zeros(b, dtype=np.bool_)
    S = S.copy()
    for i in range(b):
        s = step[i]
        change = new_gradient[i] - gradient[i]
        bend = new_gradient[i].copy()
        for j in range(k):
            for a in range(q):
                bend[a] -= J[i, j, a] * new_r[i, j]
        moved = np.zeros(q)
        without = along = along_bend = along_moved = 0.0
        for a in range(q):
            for c in range(q):
                moved[a] += S[i, a, c] * s[c]
                without -= s[a] * H[i, a, c] * s[c]
            without -= 2 * gradient[i, a] * s[a]
            along += change[a] * s[a]
            along_bend += bend[a] * s[a]
            along_moved += moved[a] * s[a]
        trusted[i] = abs(decrease[i] - without + along_moved) < abs(decrease[i] - without)
        if not along > 0:
            continue
        # What was learned where residuals were larger is cut down to what the last step shows.
        cut = abs(along_bend / along_moved) if abs(along_bend) < abs(along_moved) else 1.0
        miss, along_miss = bend - cut * moved, along_bend - cut * along_moved
        for a in range(q):
            for c in range(q):
                both = miss[a] * change[c] + change[a] * miss[c]
                twice = along_miss * change[a] * change[c]
                S[i, a, c] = cut * S[i, a, c] + both / along - twice / along**2
    return S, trusted


@compiled_in_order
def _damped_steps(
    lowest: FloatArray,
    highest: FloatArray,
    gradient: FloatArray,
    curvature: FloatArray,
    learned: FloatArray,
    error: FloatArray,
    damping: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return steps (b, q) between bounds (b, q) that hold 0, and what `_Step` says of them."""
    b, q = gradient.shape
    steps, expected, cosine = np.zeros((b, q)), np.zeros(b), np.zeros(b)
    H, extra = np.empty((q, q)), np.empty(q)
    free, still_free = np.empty(q, dtype=np.bool_), np.empty(q, dtype=np.bool_)
    for i in range(b):
        step, g = steps[i], gradient[i]
        largest = 0.0
        for a in range(q):
            own = curvature[i, a, a]
            largest = max(largest, own)
            outwards = (lowest[i, a] >= 0 and g[a] > 0) or (highest[i, a] <= 0 and g[a] < 0)
            free[a] = not outwards
            if free[a] and error[i] > 0 and own > 0:
                cosine[i] = max(cosine[i], abs(g[a]) / np.sqrt(error[i]) / np.sqrt(own))
        if largest == 0:
            continue
        # What was learned may bend downwards; Gauss-Newton's matrix alone never does.
        for share in (1.0, 0.0):
            for a in range(q):
                for c in range(q):
                    H[a, c] = curvature[i, a, c] + share * learned[i, a, c]
                extra[a] = damping[i] * max(curvature[i, a, a], LEAST_CURVATURE * largest)
                still_free[a] = free[a]
            if _solve_within(H, extra, g, lowest[i], highest[i], still_free, step):
                break
        for a in range(q):
            expected[i] -= 2 * g[a] * step[a]
            for c in range(q):
                expected[i] -= step[a] * H[a, c] * step[c]
    return steps, expected, cosine


@compiled_in_order
def _solve_within(
    H: FloatArray,
    extra: FloatArray,
    g: FloatArray,
    lowest: FloatArray,
    highest: FloatArray,
    free: BoolArray,
    step: FloatArray,
) -> bool:
    """Solve ``(H + diag(extra)) step = -g`` within bounds; say whether H was positive definite.

    A coordinate that steps over a bound is put on it, and the others are solved for again: each
    round holds at least one more.
    """
    q = g.size
    L, b = np.empty((q, q)), np.empty(q)
    step[:] = 0
    for _ in range(q):
        for a in range(q):
            b[a] = -g[a] if free[a] else 0.0
            for c in range(q):
                L[a, c] = H[a, c] if free[a] and free[c] else 0.0
                if free[a] and not free[c]:
                    b[a] -= H[a, c] * step[c]
            L[a, a] += extra[a]
        if not _solve_in_place(L, b):
            return False
        inside = True
        for a in range(q):
            if free[a]:
                step[a] = min(max(b[a], lowest[a]), highest[a])
                free[a] = step[a] == b[a]
                inside = inside and free[a]
        if inside:
            break
    return True


@compiled_in_order
def _solve_in_place(L: FloatArray, b: FloatArray) -> bool:
    """Overwrite b with the solution, by Cholesky, and L; False if not positive definite."""
    q = b.size
    for a in range(q):
        for c in range(a + 1):
            total = L[a, c]
            for k in range(c):
                total -= L[a, k] * L[c, k]
            if a > c:
                L[a, c] = total / L[c, c]
            elif total > 0:
                L[a, a] = np.sqrt(total)
            else:
                return False
    for a in range(q):
        for k in range(a):
            b[a] -= L[a, k] * b[k]
        b[a] /= L[a, a]
    for a in range(q - 1, -1, -1):
        for k in range(a + 1, q):
            b[a] -= L[k, a] * b[k]
        b[a] /= L[a, a]
    return True

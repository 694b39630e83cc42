"""Many small nonlinear least-squares problems at once (Levenberg-Marquardt).

Row i asks for the x (q,) that minimises ``Σ_k w_k r_k(x)²``. With the Jacobian J of the residuals
and W = diag(w), a step solves

    (H + μ diag(H)) step = -JᵀWr,   H = JᵀWJ + S

in the coordinates that are free: one that lies on a bound and would leave it is held, and what
steps over a bound is moved back onto it (Klanke 2007, section 3.1, leaves the constants open). The
damping μ belongs to the row: it falls after a step that lowers the error, and rises otherwise, also
where the step leaves the domain that the problem itself tells of.

S stands for ``Σ_k w_k r_k ∇²r_k``, which Gauss-Newton leaves out and which counts where residuals
stay large. It is learned from the steps, in one of two ways. For exact searches S alone is learned,
as ``(J₊ - J)ᵀ W₊r₊ ≈ S step``, by the update of Dennis, Gay and Welsch (1981, ACM TOMS 7, 348-368),
and a row uses it only while it foretells the error better: where residuals vanish, so does S, and
steps end as Newton's. Rough searches have H updated as a whole (BFGS), and keep no Jacobians.

For losses other than the squared one, w are the weights that make the gradient of the loss that of
least squares (iterated reweighting), and S has their change as well.

Where JᵀWJ is singular, as in problems with fewer residuals than unknowns, the damping makes the
step the shortest one that does the job. Such a problem ends at a solution near its start.

All rows advance together, but each row's arithmetic is its own: a row gives the same result alone
or among others, if its residuals do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.compiled import compiled_in_order, written_into_callers
from twofold.small_systems import assign, factor, solve_factored

# Rough searches begin with shorter steps: a long one from a start among many may end elsewhere.
FIRST_DAMPING, FIRST_ROUGH_DAMPING = 1e-2, 1.0
# Below the least damping a singular system could no longer be solved to a useful accuracy.
LEAST_DAMPING, MOST_DAMPING = 1e-10, 1e10
# What the damping is multiplied by, according to the share of the expected decrease that came.
GOOD_SHARE, POOR_SHARE = 0.75, 0.25
AFTER_GOOD, AFTER_POOR, AFTER_FAILURE = 0.1, 3.0, 5.0
# Rough searches look at the decrease no closer than that.
AFTER_ANY_DECREASE = 0.2
# A coordinate that hardly moves the residuals is damped as if it moved them this much (squared);
# in rough searches all are damped that much more.
LEAST_CURVATURE, ADDED_CURVATURE = 1e-6, 1e-3
# How much worse than the best of its problem a start may be to go on: narrower from step to step.
SLACK, SLACK_DECAY, LEAST_SLACK = 0.6, 0.6, 0.02
# The same of what starts promise that were seen before.
PROMISED_SLACK = 0.3


class Residuals(NamedTuple):
    """Residuals and derivatives of b problems at b places.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.optimize import Residuals
    >>> Residuals(r=np.array([[0.5]]), J=np.ones((1, 1, 1))).weights is None
    True
    """

    r: FloatArray  # (b, k)
    J: FloatArray  # (b, q, k), their derivatives
    weights: FloatArray | None = None  # (b, k), felt in the gradient only where below 0; None for 1
    error: FloatArray | None = None  # (b,) the loss behind the weights; None for Σ_k w_k r_k²
    inside: BoolArray | None = None  # (b,) whether a step may end here; None for everywhere
    places: FloatArray | None = None  # (b, q) where it was looked instead, e.g. on a border


class NormalEquations(NamedTuple):
    """What rough searches need of b problems at b places, where residuals are taken elsewhere."""

    error: FloatArray  # (b,), rᵀWr
    gradient: FloatArray  # (b, q), JᵀWr
    curvature: FloatArray  # (b, q, q), JᵀWJ
    inside: BoolArray | None = None  # as of `Residuals`
    places: FloatArray | None = None


@dataclass(frozen=True)
class LeastSquares:
    """The result of :func:`levenberg_marquardt`: where each row ended.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.optimize import LeastSquares, Residuals, levenberg_marquardt
    >>> look = lambda x, rows: Residuals(x - 1, np.ones((len(x), 1, 1)))
    >>> found = levenberg_marquardt(look, [[3.0]])
    >>> isinstance(found, LeastSquares), found.X.round(3)
    (True, array([[1.]]))
    """

    X: FloatArray  # (n, q)
    error: FloatArray  # (n,) weighted sum of squared residuals there, or loss
    converged: BoolArray  # (n,) whether the row met a tolerance, and not merely the limit of steps
    n_iter: IntArray  # (n,) number of steps tried

    @classmethod
    def joined(cls, parts: Sequence[LeastSquares]) -> LeastSquares:
        """Return the rows of all parts, at least one."""
        names = ("X", "error", "converged", "n_iter")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def of(self, rows: IntArray | BoolArray) -> LeastSquares:
        """Return some rows."""
        return LeastSquares(self.X[rows], self.error[rows], self.converged[rows], self.n_iter[rows])

    def best_of(self, n_starts: int) -> LeastSquares:
        """Return the best start of each problem, the first of equal ones."""
        best = self.error.reshape(-1, n_starts).argmin(axis=1)
        return self.of(np.arange(len(best)) * n_starts + best)


def levenberg_marquardt(
    look: Callable[[FloatArray, IntArray], Residuals | NormalEquations],
    start: ArrayLike,
    *,
    lo: ArrayLike | None = None,
    hi: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    n_starts: int = 1,
    max_iter: int = 60,
    step_tolerance: float = 1e-8,
    gradient_tolerance: float = 1e-7,
    decrease_tolerance: float = 0.0,
    seen: NormalEquations | None = None,
) -> LeastSquares:
    """Minimise ``Σ_k w_k r_k(x_i)²``, or a loss, for every row i.

    Parameters
    ----------
    look : ``(x (b, q), rows (b,)) -> Residuals``; rows are the numbers of the rows that x belongs
        to. A step to where residuals or derivatives are not finite is refused. For rough searches
        `NormalEquations` are enough
    start : (n, q), moved into the bounds where it lies outside
    lo, hi : bounds (q,) or (n, q); None for none
    scale : (q,) size of a large step of each coordinate; ``hi - lo``, or 1 where that is infinite
    n_starts : rows that follow one another and are starts of one problem. Those that are clearly
        worse than the best of them are dropped, more readily after more steps
    max_iter : largest number of steps tried
    step_tolerance : a row has converged once a hardly damped step is below this share of the scale
    gradient_tolerance : or once the cosine between the residuals and every free column of the
        Jacobian is below this; rounding blurs it to about 1e-8 where residuals stay large
    decrease_tolerance : a share of the error. Where it is above 0 the search is rough: it ends once
        a step lowers the error by less, or is short for whatever reason
    seen : what a look at the starts of a rough search would show, where that is known. Starts that
        promise clearly less than the best of their problem are then given up at once

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.optimize import Residuals, levenberg_marquardt
    >>> def look(x, rows):
    ...     return Residuals(r=x**2 - 4, J=2 * x[:, None, :])
    >>> levenberg_marquardt(look, [[1.0]], lo=[0.0], hi=[5.0]).X.round(3)
    array([[2.]])
    """
    rows = _Rows(look, np.array(start, dtype=np.float64), lo, hi, scale, decrease_tolerance, seen)
    state, active = rows.state, np.flatnonzero(np.isfinite(rows.state.error))
    for count in range(1, max_iter + 1):
        step, expected, cosine = rows.propose(active)
        arrived = (cosine <= gradient_tolerance) | (state.error[active] == 0)
        rows.converged[active[arrived]] = True
        kept = ~arrived
        if count == 1 and seen is not None and n_starts > 1:
            kept &= _are_promising(state.error, active, expected, n_starts)
        active, step, expected = active[kept], step[kept], expected[kept]
        if not len(active):
            break
        rows.n_iter[active] = count
        # In exact searches a step that damping made short does not say that a row has arrived.
        may_arrive = rows.is_rough | (state.damping[active] <= 1)
        settled = rows.take(active, step, expected)
        length = np.linalg.norm(step, 2 if rows.is_rough else np.inf, axis=1)
        settled |= may_arrive & (length > 0) & (length <= step_tolerance)
        rows.converged[active[settled]] = True
        active = active[~settled & (state.damping[active] <= MOST_DAMPING)]
        # Starts that fall behind the best of their problem give up.
        if n_starts > 1:
            slack = max(SLACK * SLACK_DECAY ** (count - 1), LEAST_SLACK)
            best = state.error.reshape(-1, n_starts).min(axis=1)
            active = active[state.error[active] <= (1 + slack) * best[active // n_starts]]
    return LeastSquares(state.x, state.error, rows.converged, rows.n_iter)


def _are_promising(
    error: FloatArray, active: IntArray, expected: FloatArray, n_starts: int
) -> BoolArray:
    """Say which starts promise nearly as low an error as the best of their problem."""
    promised = np.full(len(error), np.inf)
    promised[active] = np.maximum(error[active] - expected, 0)
    best = promised.reshape(-1, n_starts).min(axis=1)
    return promised[active] <= (1 + PROMISED_SLACK) * best[active // n_starts]


_Found = tuple[FloatArray, FloatArray, FloatArray]
NOTHING: FloatArray = np.empty((0, 0, 0))


class _State(NamedTuple):
    """Where all rows stand; gradients and curvatures are in units of the scale."""

    x: FloatArray
    error: FloatArray  # infinite where anything is not finite
    gradient: FloatArray
    curvature: FloatArray
    learned: FloatArray
    trusts_learned: BoolArray
    damping: FloatArray


class _New(NamedTuple):
    """What was found at the next places of some rows."""

    x: FloatArray
    error: FloatArray
    gradient: FloatArray
    curvature: FloatArray


class _Rows:
    """All rows: what is asked of them, and how far they came."""

    def __init__(
        self,
        look: Callable[[FloatArray, IntArray], Residuals | NormalEquations],
        start: FloatArray,
        lo: ArrayLike | None,
        hi: ArrayLike | None,
        scale: ArrayLike | None,
        decrease_tolerance: float,
        seen: NormalEquations | None,
    ) -> None:
        if start.ndim != 2 or not np.isfinite(start).all():
            raise ValueError(f"`start` must be a finite array (n, q); got shape {start.shape}.")
        n, q = start.shape
        self.look = look
        self.lo = np.broadcast_to(np.asarray(-np.inf if lo is None else lo), start.shape)
        self.hi = np.broadcast_to(np.asarray(np.inf if hi is None else hi), start.shape)
        if not (self.lo <= self.hi).all():
            raise ValueError("`lo` must not lie above `hi`.")
        self.scale = _scale(scale, self.lo, self.hi)
        self.decrease_tolerance, self.is_rough = decrease_tolerance, decrease_tolerance > 0
        self.converged, self.n_iter = np.zeros(n, dtype=bool), np.zeros(n, dtype=np.int64)
        x = np.clip(start, self.lo, self.hi)
        found, J, *_ = self._weighed(look(x, np.arange(n)) if seen is None else seen, np.arange(n))
        # Rough searches learn without the last Jacobians.
        self.jacobian = J[:0] if self.is_rough else J
        damping = np.full(n, FIRST_ROUGH_DAMPING if self.is_rough else FIRST_DAMPING)
        self.state = _State(x, *found, np.zeros((n, q, q)), np.zeros(n, dtype=bool), damping)

    def _weighed(
        self, seen: Residuals | NormalEquations, rows: IntArray
    ) -> tuple[_Found, FloatArray, FloatArray]:
        """Return error, gradient and curvature of what was seen; Jacobian, weighted residuals.

        Where no residuals come, there are none of the latter two.
        """
        J = pulled = NOTHING
        if isinstance(seen, NormalEquations):
            error, gradient, curvature = seen[:3]
        else:
            r, J, weights, loss = seen[:4]
            pulled = r if weights is None else weights * r
            # One memory layout, whatever comes: the loop is compiled again for each.
            J, pulled = np.ascontiguousarray(J), np.ascontiguousarray(pulled)
            counted = np.ones((1, 1), r.dtype) if weights is None else np.ascontiguousarray(weights)
            found = _normal_equations(np.ascontiguousarray(r), J, pulled, counted)
            error, gradient, curvature = found
            if loss is not None:
                error = loss.astype(np.float64)
        # Sums over all residuals and derivatives: none of them is finite unless all those are.
        lost = ~(np.isfinite(gradient).all(axis=1) & np.isfinite(curvature).all(axis=(1, 2)))
        error[lost | ~np.isfinite(error)] = np.inf
        scale = self.scale[rows]
        curvature *= scale[:, :, None] * scale[:, None, :]
        return (error, gradient * scale, curvature), J, pulled

    def propose(self, rows: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return damped steps (b, q) within the bounds; see `_damped_steps`."""
        x, scale = self.state.x[rows], self.scale[rows]
        lowest, highest = (self.lo[rows] - x) / scale, (self.hi[rows] - x) / scale
        least, added = (0.0, ADDED_CURVATURE) if self.is_rough else (LEAST_CURVATURE, 0.0)
        step, expected, cosine = _damped_steps(rows, lowest, highest, self.state, least, added)
        # Where numbers overflow on the way the row stays: `look` is asked at finite places only.
        step[~np.isfinite(step).all(axis=1)] = 0
        return step, expected, cosine

    def take(self, rows: IntArray, step: FloatArray, expected: FloatArray) -> BoolArray:
        """Make the steps that lower the error, adapt the damping; say which lower it hardly."""
        x = np.clip(self.state.x[rows] + step * self.scale[rows], self.lo[rows], self.hi[rows])
        seen = self.look(x, rows)
        found, J, pulled = self._weighed(seen, rows)
        error, bend, _ = found
        if seen.inside is not None:
            error[~seen.inside] = np.inf
        if seen.places is not None:
            x = seen.places.astype(np.float64)
        before = self.state.error[rows]
        new = _New(x, *found)
        if self.is_rough:
            better = _take_rough(rows, step, new, self.state)
            return better & (before - error <= self.decrease_tolerance * before)
        bend = bend - _pulled_back(self.jacobian, rows, pulled) * self.scale[rows]
        better = _take_close(rows, step, expected, bend, new, self.state)
        self.jacobian[rows[better]] = J[better]
        return np.zeros_like(better)


def _scale(scale: ArrayLike | None, lo: FloatArray, hi: FloatArray) -> FloatArray:
    if scale is None:
        width = hi - lo
        return np.where(np.isfinite(width) & (width > 0), width, 1.0)
    values = np.broadcast_to(np.asarray(scale, dtype=np.float64), lo.shape)
    if not (values > 0).all():
        raise ValueError("`scale` must be positive.")
    return values


# In order, so that residuals of weight 0 change no bit: rows that ask for others share a batch.
@compiled_in_order
def _normal_equations(
    r: FloatArray, J: FloatArray, pulled: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return rᵀWr (b,), JᵀWr (b, q) and JᵀWJ (b, q, q), float64; weights may be (1, 1)."""
    b, q, k = J.shape
    error, gradient, curvature = np.zeros(b), np.zeros((b, q)), np.zeros((b, q, q))
    weighted = weights.shape == r.shape
    for i in range(b):
        for j in range(k):
            weight = max(weights[i, j] if weighted else weights[0, 0], 0)
            error[i] += pulled[i, j] * r[i, j]
            for a in range(q):
                gradient[i, a] += J[i, a, j] * pulled[i, j]
                for c in range(a + 1):
                    curvature[i, a, c] += weight * J[i, a, j] * J[i, c, j]
        for a in range(q):
            for c in range(a):
                curvature[i, c, a] = curvature[i, a, c]
    return error, gradient, curvature


@compiled_in_order
def _pulled_back(J: FloatArray, rows: IntArray, pulled: FloatArray) -> FloatArray:
    """Return ``J[row] p`` (b, q) for residuals p (b, k) of these rows."""
    sums = np.zeros((rows.size, J.shape[1]))
    for i in range(rows.size):
        for j in range(J.shape[2]):
            for a in range(J.shape[1]):
                sums[i, a] += J[rows[i], a, j] * pulled[i, j]
    return sums


@compiled_in_order
def _take_rough(rows: IntArray, step: FloatArray, new: _New, state: _State) -> BoolArray:
    """Keep what is new of the b rows where the error fell, and say which; adapt all dampings.

    Curvatures are those of Gauss-Newton, put right by how gradients change.
    """
    better = np.zeros(rows.size, dtype=np.bool_)
    for i in range(rows.size):
        row = rows[i]
        change = AFTER_FAILURE
        better[i] = state.error[row] - new.error[i] >= 0
        if better[i]:
            H, gradient = state.curvature[row], state.gradient[row]
            _update(H, new.curvature[i], gradient, new.gradient[i], step[i])
            change = AFTER_ANY_DECREASE
            _keep(i, row, new, state)
        state.damping[row] = max(state.damping[row] * change, LEAST_DAMPING)
    return better


@compiled_in_order
def _take_close(
    rows: IntArray,
    step: FloatArray,
    expected: FloatArray,
    bend: FloatArray,
    new: _New,
    state: _State,
) -> BoolArray:
    """Do the same where residuals and Jacobians are known: steps are judged by what they promised.

    What Gauss-Newton's curvature leaves out is learned from how the Jacobian bends.
    """
    better = np.zeros(rows.size, dtype=np.bool_)
    for i in range(rows.size):
        row = rows[i]
        decrease = state.error[row] - new.error[i]
        change = AFTER_FAILURE
        better[i] = decrease > 0
        if better[i]:
            H, gradient, S = state.curvature[row], state.gradient[row], state.learned[row]
            state.trusts_learned[row] = _learn(
                S, H, gradient, new.gradient[i], bend[i], step[i], decrease
            )
            _copy_matrix(H, new.curvature[i])
            change = AFTER_POOR
            if decrease > GOOD_SHARE * expected[i]:
                change = AFTER_GOOD
            elif decrease > POOR_SHARE * expected[i]:
                change = 1.0
            _keep(i, row, new, state)
        state.damping[row] = max(state.damping[row] * change, LEAST_DAMPING)
    return better


@written_into_callers
def _keep(i: int, row: int, new: _New, state: _State) -> None:
    """Take over what is new of one row, all but its curvature."""
    state.error[row] = new.error[i]
    assign(state.x[row], new.x[i])
    assign(state.gradient[row], new.gradient[i])


@written_into_callers
def _copy_matrix(out: FloatArray, values: FloatArray) -> None:
    for a in range(values.shape[0]):
        for c in range(values.shape[1]):
            out[a, c] = values[a, c]


@written_into_callers
def _update(
    H: FloatArray,
    gauss_newton: FloatArray,
    gradient: FloatArray,
    new_gradient: FloatArray,
    step: FloatArray,
) -> None:
    """Put into H (q, q) what the change of the gradient along a step says (BFGS).

    Where the change shows no positive curvature, Gauss-Newton's matrix is taken up afresh.
    """
    q = step.size
    change, moved = np.empty(q), np.zeros(q)
    along = length = 0.0
    for a in range(q):
        change[a] = new_gradient[a] - gradient[a]
        for c in range(q):
            moved[a] += H[a, c] * step[c]
        along += step[a] * change[a]
        length += step[a] * moved[a]
    if not (along > 0 and length > 0):
        _copy_matrix(H, gauss_newton)
        return
    for a in range(q):
        for c in range(q):
            H[a, c] += change[a] * change[c] / along - moved[a] * moved[c] / length


@written_into_callers
def _learn(
    S: FloatArray,
    H: FloatArray,
    gradient: FloatArray,
    new_gradient: FloatArray,
    bend: FloatArray,
    step: FloatArray,
    decrease: float,
) -> bool:
    """Update S (q, q), which should carry the step to bend; say whether it foretold better."""
    q = step.size
    change, moved, miss = np.empty(q), np.zeros(q), np.empty(q)
    without = along = along_bend = along_moved = 0.0
    for a in range(q):
        for c in range(q):
            moved[a] += S[a, c] * step[c]
            without -= step[a] * H[a, c] * step[c]
        without -= 2 * gradient[a] * step[a]
        change[a] = new_gradient[a] - gradient[a]
        along += change[a] * step[a]
        along_bend += bend[a] * step[a]
        along_moved += moved[a] * step[a]
    if along > 0:
        # What was learned where residuals were larger is cut down to what the last step shows.
        cut = abs(along_bend / along_moved) if abs(along_bend) < abs(along_moved) else 1.0
        along_miss = along_bend - cut * along_moved
        for a in range(q):
            miss[a] = bend[a] - cut * moved[a]
        for a in range(q):
            for c in range(q):
                both = miss[a] * change[c] + change[a] * miss[c]
                twice = along_miss * change[a] * change[c]
                S[a, c] = cut * S[a, c] + both / along - twice / (along * along)
    # Gauss-Newton foretells -2gᵀs - sᵀHs, and what was learned takes sᵀSs off that.
    return abs(decrease - without + along_moved) < abs(decrease - without)


@compiled_in_order
def _damped_steps(
    rows: IntArray,
    lowest: FloatArray,
    highest: FloatArray,
    state: _State,
    least_curvature: float,
    added_curvature: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return steps (b, q) between bounds (b, q) that hold 0, and the decrease (b,) they promise.

    With them comes the largest cosine (b,) between the residuals and a free column of the Jacobian.
    """
    b, q = lowest.shape
    steps, expected, cosine = np.zeros((b, q)), np.zeros(b), np.zeros(b)
    H, extra = np.empty((q, q)), np.empty(q)
    free, still_free = np.empty(q, dtype=np.bool_), np.empty(q, dtype=np.bool_)
    for i in range(b):
        row = rows[i]
        step, g, JtJ, error = steps[i], state.gradient[row], state.curvature[row], state.error[row]
        largest = 0.0
        for a in range(q):
            own = JtJ[a, a]
            largest = max(largest, own)
            outwards = (lowest[i, a] >= 0 and g[a] > 0) or (highest[i, a] <= 0 and g[a] < 0)
            free[a] = not outwards
            if free[a] and error > 0 and own > 0:
                cosine[i] = max(cosine[i], abs(g[a]) / np.sqrt(error) / np.sqrt(own))
        if largest == 0:
            continue
        # What was learned may bend downwards; Gauss-Newton's matrix alone never does.
        for share in (1.0, 0.0):
            if share > 0 and not state.trusts_learned[row]:
                continue
            for a in range(q):
                for c in range(q):
                    H[a, c] = JtJ[a, c] + share * state.learned[row, a, c]
                size = max(JtJ[a, a], least_curvature * largest) + added_curvature * largest
                extra[a] = state.damping[row] * size
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
    L, b = np.empty((q, q)), np.empty((q, 1))
    step[:] = 0
    for _ in range(q):
        for a in range(q):
            b[a, 0] = -g[a] if free[a] else 0.0
            for c in range(q):
                L[a, c] = H[a, c] if free[a] and free[c] else 0.0
                if free[a] and not free[c]:
                    b[a, 0] -= H[a, c] * step[c]
            L[a, a] += extra[a]
        if not factor(L, 0.0):
            return False
        solve_factored(L, b)
        inside = True
        for a in range(q):
            if free[a]:
                step[a] = min(max(b[a, 0], lowest[a]), highest[a])
                free[a] = step[a] == b[a, 0]
                inside = inside and free[a]
        if inside:
            break
    return True

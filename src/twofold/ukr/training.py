"""From rows to latent points: a start, the scale of the residuals, and down to the minimum.

The order is that of Klanke 2007, section 4.4.5, for every loss and regularisation. Losses that
cannot choose a start give way there: cross-validation must not use an ε-insensitive loss, and
Huber's δ is not known before there are residuals (a provisional one comes from the spread of the
data, the final one from the cross-validated residuals of the start).

A start that unfolds the data is improved directly. A homotopy (section 4.4.3) leads through easier
problems that are nearly contracted at first, each warm-started from the last:

- density: ``min R_cv`` with ``p(x_i) >= η``, η = 40/n, 32/n, … 2/n, by a barrier, then free;
- box: ``min R_cv`` with all coordinates within 0.5, 1.5, 2.5, … until nothing is bound;
- penalty: ``min R + λ penalty`` with λ falling by a factor.

The thesis never fine-tunes a PCA start that beat the spectral ones, but unfolds it through falling
bounds of the latent density. That is right for data that is folded over the plane of its principal
components and wasteful for data that is not, so from there both ways are gone, by some of the rows
only: the nearly contracted beginning of a homotopy visits all pairs of points. If it ends lower by
15 %, the other rows are projected onto what came out and all are trained from there; if not, all
are trained from where they are, as rows that are projected begin worse than in a linear start.

Above three dimensions the linear start is the only one that is tried, unless another is asked for:
t-SNE often has the lowest error before training and nearly always the highest after it, and Isomap
ends at best 3 % below. The figures behind these rules are in ``docs/experiments.md``;
``python -m benchmarks.stages`` prints what each stage of a fit costs and the error that it leaves.

``max_iter`` bounds the iterations of all stages together; half of them are for the last one. If it
is "auto", each of both ways may take as many as the training after them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.features import FeatureMap
from twofold.losses import EpsilonInsensitive, Huber, Loss, Squared, rows_of
from twofold.optimize import (
    Ball,
    Box,
    Callback,
    Event,
    Journal,
    Objective,
    ProgressBar,
    Solution,
    Stage,
    StopReason,
    continue_through,
    in_halves,
    minimize,
)
from twofold.regularization import Density, Extension, LeaveKOut, LeaveOneOut, Smoothest, n_left_out
from twofold.ukr.devices import is_trained_on_device
from twofold.ukr.objective import (
    MOST_SCALED_ROWS,
    Problem,
    common_scale,
    scale_each_dimension,
    spread_rows,
)
from twofold.ukr.projection import places_of
from twofold.ukr.terms import DensityTerm, DensityVariance, ExtensionPenalty, SumOf, lowest_density

if TYPE_CHECKING:
    from twofold.ukr.starts import Init, Start

DENSITY_STAGES = (40, 32, 24, 16, 8, 4, 2)
STAGE_ITERATIONS = 50
# Strength of the barrier, as a part of the data's spread: felt close to the bound. A tenth and a
# hundredth of it take four to six times as many evaluations and end no lower.
BARRIER = 1e-2
MOST_BOXES = 100
CONTRACTED = 0.1
# Rows by which both ways from a linear start are gone, and by which share of the error the longer
# one has to end lower for all others to follow.
MOST_UNFOLDED_ROWS, WORTHWHILE = 500, 0.15
# Latent dimensions up to which other starts than the linear one are worth a try.
UNFOLDED_STARTS = 3

# Of more rows than that, the width of the kernels is sought anew halfway and at the end. Training
# brings like rows together, so that kernels are too wide for what comes out, and a few dozen
# iterations change that width least. Errors of new rows without it, with it at the end, and twice:
# 85,000 word vectors 0.622, 0.610, 0.603; 20,000 of them 0.674, 0.665, 0.661; MNIST 0.182, 0.180,
# 0.179, of 8,000 rows 0.248, 0.246, 0.246. On digits, with 400 iterations, all are the same. In
# three dimensions 10,000 rows of MNIST end at 0.261 instead of 0.250.
FEWEST_RESCALED, MOST_RESCALED_DIMENSIONS = 3_000, 2

StopWhen = Callable[[Solution, Stage], bool]


@dataclass(frozen=True)
class Training:
    """How to minimise: method, iterations, tolerance, who is told, seed, threads, what is kept."""

    method: str
    max_iter: int
    tol: float
    callbacks: Sequence[Callback]
    seed: int = 0
    n_jobs: int | None = None
    journal: Journal = field(default_factory=Journal)
    began: float = field(default_factory=time.perf_counter)
    is_bound: bool = True  # whether trials on the way take their iterations off ``max_iter``

    def trials(self, *, are_all: bool) -> tuple[Training, Training]:
        """Return the same for two trials, which are all there is or take half of it together."""
        if not self.is_bound:
            return self, self
        second = self.max_iter // (2 if are_all else 4)
        first = self.max_iter - second if are_all else second
        return replace(self, max_iter=first), replace(self, max_iter=second)

    def after(self, *trials: Solution) -> Training:
        """Return what is left after trials."""
        used = sum(trial.n_iter for trial in trials) if self.is_bound else 0
        return replace(self, max_iter=self.max_iter - used)

    def tell(self, words: str, step: int, total: int) -> None:
        """Show what happens before the first iteration, where there is a progress bar."""
        nothing = np.empty((0, 0))
        elapsed = time.perf_counter() - self.began
        for bar in self.callbacks:
            if isinstance(bar, ProgressBar):
                bar(Event(step, total, float("nan"), nothing, elapsed, words))


@dataclass(frozen=True)
class Fit:
    """What a fit comes to."""

    X: FloatArray  # (n, q) of the rows, or of the landmarks, centred, in kernel units
    problem: Problem  # its loss with all numbers found
    start: Start
    errors: dict[str, float]  # of every start, in units of the loss
    solution: Solution
    violation: float | None = None  # of the smoothest manifold, in units of the data
    features: FeatureMap | None = None  # of a data kernel
    landmarks: FloatArray | None = None  # (l, D)
    carried: FloatArray | None = None  # (l, r) adapted coordinates of landmarks in feature space
    smoothness: float | None = None  # γ of adapted landmarks


def fit_points(problem: Problem, Y: FloatArray, q: int, init: Init, training: Training) -> Fit:
    """Fit the latent points of rows Y (n, D), NaN where missing, from a start."""
    # Imported at first use: a model that is only opened needs no start embeddings.
    from twofold.ukr.starts import choose_start

    if q > UNFOLDED_STARTS and isinstance(init, str) and init == "auto":
        init = "pca"
    choosing = replace(problem, loss=loss_for_starts(problem, Y))
    kept, interrupted = training.journal.begin(), False
    if kept is None:
        start, errors, interrupted = choose_start(
            choosing, Y, q, init, training.seed, training.tell
        )
        if interrupted:
            training.journal.close()
        training.journal.end((start, list(errors.items())))  # files sort dicts by name
    else:
        start, errors = kept[0], dict(kept[1])
    errors = {name: float(error * choosing.error_unit) for name, error in errors.items()}
    problem = with_huber_scale(problem, choosing, start.X)
    if interrupted:
        training = replace(training, max_iter=0)
    is_linear = start.name == "pca" and training.max_iter > 0
    if is_linear and not isinstance(problem.regularization, Smoothest):
        solution, violation = unfold(problem, start.X, training), None
    else:
        solution, violation = settle(problem, start.X, training)
    if interrupted:
        solution = replace(solution, stop_reason=StopReason.INTERRUPTED)
    return Fit(solution.X, problem, start, errors, solution, violation)


def loss_of_distinct(loss: Loss, member: IntArray, source: IntArray) -> Loss:
    """Return the loss of distinct rows from that of all; merged rows get their smallest ε.

    Of a user's loss with numbers for each row they get those of the first of them.
    """
    if not isinstance(loss, EpsilonInsensitive) or np.ndim(loss.eps) == 0:
        return rows_of(loss, source)
    eps: FloatArray = np.asarray(loss.eps)
    merged = np.full((len(source), *eps.shape[1:]), np.inf)
    counted = member >= 0
    np.minimum.at(merged, member[counted], eps[counted])
    return replace(loss, eps=merged)


def loss_for_starts(problem: Problem, Y: FloatArray) -> Loss:
    """Return the loss by which starts are compared; see the module's docstring."""
    if isinstance(problem.loss, EpsilonInsensitive):
        return Squared()
    if isinstance(problem.loss, Huber):
        around_median = Y - np.nanmedian(Y, axis=0)
        return problem.loss.fitted(around_median, ~np.isnan(Y), problem.rows.unit)
    return problem.loss


def with_huber_scale(problem: Problem, choosing: Problem, X: FloatArray) -> Problem:
    """Return the problem with Huber's δ from cross-validated residuals, where it was not given."""
    if not isinstance(problem.loss, Huber) or problem.loss.delta is not None:
        return problem
    rows = problem.rows
    R = choosing.reconstruction(cross_validated=True).residuals(X) * rows.unit
    return replace(problem, loss=problem.loss.fitted(R, rows.observed, rows.unit))


def settle(problem: Problem, X: FloatArray, training: Training) -> tuple[Solution, float | None]:
    """Improve latent points that are already good; return what `Fit` calls the violation, too."""
    if isinstance(problem.regularization, Smoothest):
        # Imported at first use: it is made of what is here.
        from twofold.ukr.smoothest import smooth

        solution, violation = smooth(problem, X, training)
        return solution, violation * problem.rows.unit
    return train(problem, X, training), None


def unfold(problem: Problem, X: FloatArray, training: Training) -> Solution:
    """Train from linear latent points X (n, q), by a homotopy if that ends lower."""
    if getattr(problem.regularization, "homotopy", "none") != "auto":
        return train(problem, X, training)
    assert isinstance(problem.regularization, LeaveOneOut | LeaveKOut)
    n = len(X)
    rows = spread_rows(n, MOST_UNFOLDED_ROWS)
    small = problem if len(rows) == n else problem.restricted_to(rows)
    first, second = training.trials(are_all=len(rows) == n)
    direct = train(small, X[rows], first)
    if direct.stop_reason.was_requested:
        return direct if len(rows) == n else _stopped(problem, X, training, direct)
    detour = replace(small, regularization=replace(problem.regularization, homotopy="density"))
    other = train(detour, X[rows], second)
    if len(rows) == n:
        best = min(direct, other, key=lambda found: found.value)
        stop = other.stop_reason if other.stop_reason.was_requested else best.stop_reason
        return replace(best, stop_reason=stop)
    if other.value < (1 - WORTHWHILE) * direct.value:
        X = _place_all(problem, small, rows, other.X)
    if other.stop_reason.was_requested:
        return _stopped(problem, X, training, other)
    return train(problem, X, training.after(direct, other))


def _stopped(problem: Problem, X: FloatArray, training: Training, found: Solution) -> Solution:
    """Return latent points as they are, with the reason why a search on some rows was ended."""
    last = train(problem, X, replace(training, max_iter=0))
    return replace(last, stop_reason=found.stop_reason)


def _place_all(problem: Problem, small: Problem, rows: IntArray, X: FloatArray) -> FloatArray:
    """Project the rows that took no part onto the manifold of those that did, and rescale."""
    Y = problem.rows.unscaled(problem.rows.Y)
    placed = places_of(small.surface(X), Y, problem.rows.observed)
    placed[rows] = X
    error = problem.reconstruction(cross_validated=True)
    return scale_each_dimension(*common_scale(placed, error), error)[0]


def train(
    problem: Problem, X: FloatArray, training: Training, *, rescales: bool = True
) -> Solution:
    """Minimise the objective of a problem from latent points X (n, q); not of the smoothest one."""
    # A device computes in single precision, and finer steps would be lost in its rounding.
    dtype = problem.rows.Y.dtype if problem.engine.device == "cpu" else np.float32
    X = (X - X.mean(axis=0)).astype(dtype)
    if rescales and training.max_iter > 0 and _is_rescaled(problem, X):
        return _train_in_halves(problem, X, training)
    if is_trained_on_device(problem, training):
        from twofold.ukr.gpu_objective import train_on_device

        return train_on_device(problem, X, training)
    regularization = problem.regularization
    if getattr(regularization, "start", None) is not None:
        X = _contracted(X)
    stages: Iterable[Stage]
    stop_when = None
    if isinstance(regularization, LeaveOneOut | LeaveKOut):
        X, stages, stop_when = _cross_validated_stages(problem, X, training)
    elif isinstance(regularization, Extension):
        stages = _extension_stages(problem, regularization, training)
    else:
        assert isinstance(regularization, Density)
        X, stages = _density_stages(problem, regularization, X, training)
    target = getattr(regularization, "target", None)
    if target is not None:
        wanted, error = target / problem.error_unit, problem.reconstruction(cross_validated=False)

        def stop_when(solution: Solution, stage: Stage) -> bool:
            return error.value_and_grad(solution.X)[0] < wanted

    how: dict[str, Any] = {
        "method": training.method,
        "pace": problem.pace(),
        "tol": training.tol,
        "callbacks": training.callbacks,
        "journal": training.journal,
    }
    if isinstance(stages, list) and len(stages) == 1 and stop_when is None:
        (only,) = stages
        constraint, label = only.constraint, only.label
        return minimize(
            only.objective, X, constraint=constraint, label=label, max_iter=only.max_iter, **how
        )
    return continue_through(stages, X, stop_when=stop_when, max_iter=training.max_iter, **how)


def _train_in_halves(problem: Problem, X: FloatArray, training: Training) -> Solution:
    def descend(X: FloatArray, max_iter: int, callbacks: Sequence[Callback]) -> Solution:
        how = replace(training, max_iter=max_iter, callbacks=callbacks)
        return train(problem, X, how, rescales=False)

    rescale, journal = partial(_rescaled, problem, training), training.journal
    return in_halves(descend, rescale, X, training.max_iter, training.callbacks, journal)


def _is_rescaled(problem: Problem, X: FloatArray) -> bool:
    """Say whether training is to seek the width of the kernels anew, see ``FEWEST_RESCALED``."""
    how, (n, q) = problem.regularization, X.shape
    is_free = isinstance(how, LeaveOneOut | LeaveKOut) and how.homotopy in ("auto", "none")
    is_plain = is_free and getattr(how, "border", 0.0) == 0 and problem.landmarks is None
    return is_plain and n > FEWEST_RESCALED and q <= MOST_RESCALED_DIMENSIONS


def _rescaled(problem: Problem, training: Training, X: FloatArray) -> FloatArray:
    """Return latent points X (n, q) with the factor a dimension at which their error is lowest."""
    if is_trained_on_device(problem, training):
        from twofold.ukr.gpu_objective import rescaled_on_device

        return rescaled_on_device(problem, X)
    error, rows = (
        problem.reconstruction(cross_validated=True),
        spread_rows(len(X), MOST_SCALED_ROWS),
    )
    scaled, _ = scale_each_dimension(X, error.value_on(X, rows), error)
    return scaled.astype(X.dtype)


def _cross_validated_stages(
    problem: Problem, X: FloatArray, training: Training
) -> tuple[FloatArray, Iterable[Stage], StopWhen | None]:
    assert isinstance(problem.regularization, LeaveOneOut | LeaveKOut)
    error = _cross_validation_error(problem)
    k = n_left_out(problem.regularization)
    name = "leave-one-out" if k == 1 else f"leave-{k}-out"
    last = Stage(error, label=name, max_iter=training.max_iter)
    way = problem.regularization.homotopy
    if way in ("auto", "none") or training.max_iter == 0:
        return X, [last], None
    if way == "box":
        contracted = X * (0.5 / np.abs(X).max())
        return contracted, _growing_boxes(error, training), _nothing_bound
    n, strength = len(X), BARRIER * problem.spread()
    floors = [count / n for count in DENSITY_STAGES if count < n / 2]
    shares = _shares(training.max_iter, len(floors) + 1)
    stages = [
        Stage(
            SumOf([error, DensityTerm(strength, problem.point_weights, problem.engine, floor)]),
            label=f"density ≥ {floor:.2g}",
            max_iter=min(STAGE_ITERATIONS, most),
        )
        for floor, most in zip(floors, shares, strict=False)
    ]
    X = _contracted(X)
    if floors:
        X = _shrink_until_dense(problem, X, floors[0])
    return X, [*stages, last], None


def _shares(max_iter: int, n_stages: int) -> list[int]:
    """Return the most iterations of each stage: half of all, evenly, for those before the last."""
    early = max(1, max_iter // max(1, 2 * (n_stages - 1)))
    return [early] * (n_stages - 1) + [max_iter]


def _cross_validation_error(problem: Problem) -> Objective:
    """Return the cross-validated error, with what smooths the border where that is asked for."""
    error = problem.reconstruction(cross_validated=True)
    border = getattr(problem.regularization, "border", 0.0)
    if border == 0:
        return error
    strength = border / problem.error_unit
    return SumOf([error, DensityVariance(strength, problem.point_weights, problem.engine)])


def _contracted(X: FloatArray) -> FloatArray:
    """Return latent points close together, where a homotopy begins; never in one place."""
    return X * (CONTRACTED / X.std())


def _growing_boxes(error: Objective, training: Training) -> Iterator[Stage]:
    for step in range(MOST_BOXES):
        half = 0.5 + step
        yield Stage(error, Box(half), f"box ±{half:g}", training.max_iter)


def _nothing_bound(solution: Solution, stage: Stage) -> bool:
    return stage.constraint is not None and stage.constraint.is_binding(solution.X) == 0


def _extension_stages(
    problem: Problem, regularization: Extension, training: Training
) -> list[Stage]:
    error = problem.reconstruction(cross_validated=False)
    if regularization.penalty is None:
        radius, half = regularization.radius, cast(float, regularization.box)
        constraint = Box(half) if radius is None else Ball(radius)
        return [Stage(error, constraint, f"within {constraint}", training.max_iter)]
    strengths = _falling(regularization.start, regularization.penalty, regularization.decay)
    shares = _shares(training.max_iter, len(strengths))
    return [
        Stage(
            SumOf([error, ExtensionPenalty(strength / problem.error_unit, problem.point_weights)]),
            label=f"extension λ = {strength:.3g}",
            max_iter=most,
        )
        for strength, most in zip(strengths, shares, strict=True)
    ]


def _density_stages(
    problem: Problem, regularization: Density, X: FloatArray, training: Training
) -> tuple[FloatArray, list[Stage]]:
    error = problem.reconstruction(cross_validated=False)
    floor, unit, weights = 0.0, problem.error_unit, problem.point_weights
    if regularization.penalty is not None:
        strengths = _falling(regularization.start, regularization.penalty, regularization.decay)
    else:
        assert regularization.threshold is not None
        floor = regularization.threshold
        _check_threshold(floor, len(X))
        X = _shrink_until_dense(problem, X, floor)
        strengths = [unit * problem.spread() * part for part in (1e-2, 1e-3, 1e-4, 1e-5)]
    shares = _shares(training.max_iter, len(strengths))
    return X, [
        Stage(
            SumOf([error, DensityTerm(strength / unit, weights, problem.engine, floor)]),
            label=f"density λ = {strength:.3g}",
            max_iter=most,
        )
        for strength, most in zip(strengths, shares, strict=True)
    ]


def _check_threshold(floor: float, n: int) -> None:
    if not 1 / n < floor < 1:
        raise ValueError(
            f"The density `threshold` must lie between 1/n = {1 / n:.3g} (every row alone) and 1 "
            f"(all in one place); got {floor:.3g}."
        )


def _falling(start: float | None, end: float, decay: float) -> list[float]:
    # Upwards from the end, so that the last one is what was asked for to the last bit; the slack
    # keeps rounding from losing the first.
    strengths = [end]
    while start is not None and strengths[-1] / decay <= start * (1 + 1e-9):
        strengths.append(strengths[-1] / decay)
    return strengths[::-1]


def _shrink_until_dense(problem: Problem, X: FloatArray, floor: float) -> FloatArray:
    """Contract the latent points until all lie well above a density."""
    # The barrier is infinite at the bound itself; a bound near 1 leaves little room above it.
    wanted = min(1.05 * floor, 0.5 + floor / 2)
    while lowest_density(X, problem.point_weights, problem.engine) <= wanted:
        X = X * 0.8
        if X.std() < 1e-6:
            raise ValueError(
                f"No latent points above a density of {floor:.6g} exist unless all coincide; "
                "lower the `threshold`."
            )
    return X

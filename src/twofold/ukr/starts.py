"""Choosing the start: every candidate is scaled, and the leave-one-out error picks.

"The start decides": UKR's objective has many minima, and fitting begins in the basin of the
candidate whose scaled leave-one-out error is lowest (Klanke 2007, section 4.4.5, steps 1 to 3).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.ukr.filling import fill_for_start
from twofold.ukr.problem import Problem
from twofold.ukr.scale import Scaled, common_scale, scale_each_dimension

logger = logging.getLogger(__name__)

# So many of the best candidates get a factor a dimension; the others would not win by it.
N_FINALISTS = 2
# With so little of the variance left open by a spectral start, t-SNE, the slowest one, was never
# seen to end in a lower error after training.
WELL_UNFOLDED = 0.03

# Hears what is being done: words, and how many steps of how many.
Tell = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Start:
    """Where training begins.

    Attributes
    ----------
    name : str
    X : (n, q) latent points in kernel units, centred
    errors : leave-one-out error of every start that was tried
    linear : whether it is a linear projection of the data
    interrupted : whether the search was stopped from the keyboard, with this as the best so far
    is_own : whether the user brought it; then ``X = (own - centre) * scales``
    """

    name: str
    X: FloatArray
    errors: dict[str, float]
    linear: bool
    interrupted: bool
    is_own: bool
    scales: FloatArray
    centre: FloatArray


def choose_start(
    problem: Problem,
    Y: FloatArray,
    q: int,
    init: Any,
    source: IntArray,
    seed: int,
    n_jobs: int | None,
    tell: Tell,
) -> Start:
    """Return the start that ``init`` asks for, scaled; see :class:`twofold.UKR` for ``init``.

    ``tell`` hears what is being done: words, how many steps of how many.
    """
    search = _Search(problem, q, seed, n_jobs, tell)
    own = None
    if isinstance(init, str):
        _search_by_name(search, fill_for_start(Y).astype(np.float64), init)
    else:
        own = own_start(init, Y, q, source)
        search.scale([("own", own)])
    best = search.finish()
    errors = {start.name: start.error for start in search.scaled}
    logger.info("start %s, leave-one-out error %.6g; tried %s", best.name, best.error, errors)
    return _finish(best, errors, own, search.interrupted)


def _search_by_name(search: _Search, Y: FloatArray, init: str) -> None:
    """Try the candidates that a name stands for; t-SNE only if the quicker ones leave much open."""
    # Imported at first use: a model that is only opened needs no start embeddings.
    from twofold.ukr.candidates import ALL, KNOWN

    if init != "auto":
        search.try_methods(Y, _checked_method(init, KNOWN))
        _check_found(init, search.scaled, Y.shape, search.q)
        return
    search.try_methods(Y, tuple(method for method in ALL if method != "tsne"))
    lowest = min(start.error for start in search.scaled)
    if not search.interrupted and lowest > WELL_UNFOLDED * search.problem.spread():
        search.try_methods(Y, ("tsne",))


class _Search:
    """Candidates tried so far, scaled; an interrupt ends the search and keeps them."""

    def __init__(self, problem: Problem, q: int, seed: int, n_jobs: int | None, tell: Tell) -> None:
        self.problem, self.q, self.seed, self.n_jobs, self.tell = problem, q, seed, n_jobs, tell
        self.error = problem.reconstruction(cross_validated=True)
        self.scaled: list[Scaled] = []
        self.interrupted = False

    def try_methods(self, Y: FloatArray, methods: tuple[str, ...]) -> None:
        """Compute and scale the candidates of some methods."""
        from twofold.ukr.candidates import StartsInterrupted, make_candidates

        self.tell("start embeddings", 0, 1)
        try:
            found = make_candidates(
                Y, self.q, methods=methods, random_state=self.seed, n_jobs=self.n_jobs
            )
        except StartsInterrupted as stop:
            found, self.interrupted = stop.finished, True
        asked = [start for start in found if start.name.partition("-")[0] in methods]
        self.scale([(start.name, start.X) for start in asked or ([] if self.scaled else found)])

    def scale(self, candidates: list[tuple[str, FloatArray]]) -> None:
        """Give each candidate its best common factor."""
        try:
            for place, (name, X) in enumerate(candidates):
                self.tell(f"scaling start {name}", place, len(candidates))
                self.scaled.append(common_scale(name, X, self.error))
        except KeyboardInterrupt:
            if not self.scaled:
                raise
            self.interrupted = True

    def finish(self) -> Scaled:
        """Give the best ones a factor for each dimension, and return the best of all."""
        self.scaled.sort(key=lambda start: start.error)
        try:
            for place, start in enumerate(self.scaled[: 0 if self.interrupted else N_FINALISTS]):
                self.tell(f"scaling start {start.name}", place, N_FINALISTS)
                self.scaled[place] = scale_each_dimension(start, self.error)
        except KeyboardInterrupt:
            self.interrupted = True
        return min(self.scaled, key=lambda start: start.error)


def _finish(
    best: Scaled, errors: dict[str, float], own: FloatArray | None, interrupted: bool
) -> Start:
    q = best.X.shape[1]
    scales, centre = np.ones(q), np.zeros(q)
    if own is not None:
        centre = own.mean(axis=0)
        scales = best.X.std(axis=0) / np.where(own.std(axis=0) > 0, own.std(axis=0), 1)
        scales = np.where(scales > 0, scales, 1)
    linear = best.name == "pca"
    return Start(best.name, best.X, errors, linear, interrupted, own is not None, scales, centre)


def _checked_method(init: str, known: tuple[str, ...]) -> tuple[str, ...]:
    if init in known:
        return (init,)
    raise ValueError(
        f"`init` must be 'auto', one of {known}, an (n_samples, n_components) array "
        f"or an estimator with fit_transform; got {init!r}."
    )


def _check_found(init: str, scaled: list[Scaled], shape: tuple[int, ...], q: int) -> None:
    """Raise if the one method that was asked for does not work on this data."""
    if not any(start.name.partition("-")[0] == init for start in scaled):
        raise ValueError(
            f"init={init!r} gives no {q}-dimensional start for {shape[0]} distinct rows (t-SNE "
            "goes up to 3 dimensions; the others need enough rows and, for LLE, data in one "
            "piece). Use init='auto', 'pca' or a start of your own."
        )


def own_start(init: Any, Y: FloatArray, q: int, source: IntArray) -> FloatArray:
    """Return the user's start for the distinct rows, (n, q)."""
    if isinstance(init, type):
        raise ValueError(f"`init` must be an estimator, not a class: pass {init.__name__}(...).")
    if hasattr(init, "fit_transform"):
        X = np.asarray(init.fit_transform(fill_for_start(Y)), dtype=np.float64)
        expected = (len(Y), q)
    else:
        try:
            X = np.asarray(init, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "`init` must be 'auto', the name of a method, an array of numbers or an estimator "
                f"with fit_transform; got {type(init).__name__}."
            ) from error
        n_rows = int(source.max()) + 1
        if X.ndim == 2 and X.shape[1] == q and len(X) >= n_rows:
            X = X[source]
            expected = (len(source), q)
        else:
            expected = (n_rows, q)
    if X.shape != expected:
        raise ValueError(
            f"`init` must give one latent point of {q} coordinate(s) for each row, shape "
            f"{expected}; got shape {X.shape}."
        )
    if not np.isfinite(X).all():
        raise ValueError("`init` must be finite; it holds NaN or infinity.")
    if np.all(X.std(axis=0) == 0):
        raise ValueError("`init` puts every row in the same place; the gradient is zero there.")
    return X

"""Improving an embedding instead of only judging it.

The evidence can be used as a start (Harmeling 2007, closing remark): the embedding that explains
the data best is taken on by UKR, which moves points to lower the leave-one-out error, or by a
Gaussian process latent variable model, which moves them to raise the evidence itself
(:mod:`twofold.selection.evidence`). What is optimised always improves; look at the other
scores, continuity above all, before you believe it.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from twofold.array_types import FloatArray
from twofold.checks.parameters import check_choice, check_count
from twofold.checks.rows import check_differences
from twofold.engine.threads import single_threaded_blas
from twofold.metrics.checks import check_same_rows, checked_table
from twofold.selection.evidence import descend
from twofold.selection.procrustes import whitened
from twofold.selection.scores import Scored, leading_directions, score_embedding
from twofold.ukr import UKR, upgrade

# An evaluation of the process takes n³ steps: with more rows it would take minutes.
MOST_ROWS = 1_500
USUAL_ITERATIONS = {"ukr": 200, "evidence": 60}


@dataclass(frozen=True, eq=False)
class Refined:
    """An embedding before and after it was improved: where the rows are now, and its scores.

    Examples
    --------
    >>> from twofold.datasets import make_s_triangle
    >>> from twofold.selection import refine
    >>> bent = make_s_triangle(80, noise=0.02, random_state=0)
    >>> better = refine(bent.Y, bent.Y[:, :2], by="ukr")
    >>> better.embedding.shape, sorted(better.before) == sorted(better.after)
    ((80, 2), True)
    """

    embedding: FloatArray  # (n_samples, n_components)
    model: UKR  # a two-way model of it
    before: dict[str, float]  # the scores of :mod:`twofold.selection.scores`
    after: dict[str, float]

    @property
    def table(self) -> pd.DataFrame:
        """The scores before and after, in two rows."""
        return pd.DataFrame([self.before, self.after], index=["before", "after"])

    def __str__(self) -> str:
        return str(self.table.to_string(float_format=lambda value: f"{value:.3g}"))


def refine(
    Y: Any,
    X: Any,
    *,
    by: Literal["ukr", "evidence"] = "ukr",
    max_iter: int | None = None,
    random_state: int | None = 0,
    n_jobs: int | None = -1,
) -> Refined:
    """Improve an embedding, and score it before and after.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_features)
        Data without missing entries.
    X : array-like of shape (n_samples, n_components)
        The embedding to start from, e.g. the best of :func:`twofold.selection.compare`.
    by : {"ukr", "evidence"}, default="ukr"
        What is improved: the leave-one-out error of UKR, or the evidence (up to 1,500 rows).
    max_iter : int or None, default=None
        Maximum number of iterations; None means 200 for UKR and 60 for the evidence.
    random_state : int or None, default=0
    n_jobs : int or None, default=-1

    Examples
    --------
    >>> from sklearn.manifold import Isomap
    >>> from twofold.datasets import make_fish_bowl
    >>> from twofold.selection import refine
    >>> bowl = make_fish_bowl(200, noise=0.1, random_state=0)
    >>> X = Isomap(n_neighbors=10).fit_transform(bowl.Y)
    >>> better = refine(bowl.Y, X, max_iter=20)
    >>> better.after["reconstruction_error"] < better.before["reconstruction_error"]
    True
    """
    check_choice("by", by, tuple(USUAL_ITERATIONS))
    rows, start = checked_table(Y, "Y"), checked_table(X, "X")
    check_same_rows(rows, "Y", start, "X")
    check_differences(rows)
    steps = USUAL_ITERATIONS[by] if max_iter is None else max_iter
    check_count("max_iter", steps)
    if by == "evidence" and len(rows) > MOST_ROWS:
        raise ValueError(
            f"by='evidence' takes up to {MOST_ROWS:,} rows, as its cost grows with their number "
            f"cubed; got {len(rows):,}. Use by='ukr', or a sample of the rows."
        )
    common: dict[str, Any] = {"random_state": random_state, "n_jobs": n_jobs}
    with single_threaded_blas():
        before = score_embedding(rows, start, **common)
        model = None
        if by == "ukr":
            model = upgrade(start, rows, refine=True, max_iter=steps, verbose=False, **common)
        found = _by_evidence(rows, start, before, steps) if model is None else model.embedding_
        after = score_embedding(rows, found, **common)
    model = after.model if model is None else model
    return Refined(found, model, before.scores, after.scores)


def _by_evidence(Y: FloatArray, X: FloatArray, before: Scored, max_iter: int) -> FloatArray:
    """Return the latent points of a latent variable model, in the units of the embedding."""
    evidence = before.evidence
    start = np.log([evidence.width, evidence.noise_variance / evidence.signal_variance])
    X_w, centre = whitened(X, "X", "full"), X.mean(axis=0)
    Y_w = whitened(leading_directions(Y), "Y", "numerical")
    found = descend(Y_w, X_w, start, max_iter)
    # Turned and scaled back as the picture was drawn.
    back, *_ = np.linalg.lstsq(X_w, X - centre, rcond=None)
    return np.asarray(found @ back + centre)

"""Several embeddings of the same rows side by side, with a recommendation."""

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd
from sklearn.utils import column_or_1d

from twofold.array_types import FloatArray, IntArray
from twofold.checks.rows import check_differences
from twofold.metrics.checks import check_same_rows, checked_table
from twofold.selection import embedders
from twofold.selection.embedders import EMBEDDERS, Request, few_threads, unfitted
from twofold.selection.recommending import Baseline, baselines, ranking, recommend
from twofold.selection.scores import (
    Scored,
    check_whole,
    data_notes,
    distinct_rows,
    leading_directions,
    score_embedding,
)
from twofold.selection.stability import REFUSALS
from twofold.selection.stability import stability as measure_stability
from twofold.selection.tables import numbers_of_table
from twofold.ukr import upgrade


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Embeddings of the same rows, measured by the same scores; made by :func:`compare`.

    ``table`` has a row of scores for each embedding, best first; :mod:`twofold.selection.scores`
    says what they are, and ``seconds`` is what fitting took. ``recommended`` is the name of the
    embedding to trust, None if none can be trusted, and ``reason`` says why, with the numbers.
    ``scored`` holds the embeddings with their evidence, ranks and two-way models, ``failures`` the
    methods that gave no embedding that can be scored, and why. ``notes`` are what methods warned of
    while they were fitted, and under "data" what there is to know about the rows: copies, too few
    of them for that many neighbours, one column that decides alone. ``expected`` says, by
    dimension, how flat the data is locally, and what principal components and flat local pieces
    leave open. ``labels`` are those that were passed, for pictures.

    Examples
    --------
    >>> from twofold.datasets import make_s_triangle
    >>> from twofold.selection import compare
    >>> found = compare(make_s_triangle(100, noise=0.02, random_state=0).Y, ["pca", "isomap"])
    >>> found.recommended in found.table.index, sorted(found.embeddings)
    (True, ['isomap', 'pca'])
    """

    table: pd.DataFrame
    recommended: str | None
    reason: str
    scored: dict[str, Scored]
    failures: dict[str, str] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    expected: dict[int, Baseline] = field(default_factory=dict)
    labels: Any = None

    @property
    def embeddings(self) -> dict[str, FloatArray]:
        """The embeddings by name, best first."""
        return {name: self.scored[name].embedding for name in self.table.index}

    @property
    def models(self) -> dict[str, Any]:
        """A two-way model of each embedding, best first; see :func:`twofold.upgrade`."""
        return {name: self.scored[name].model for name in self.table.index}

    def plot(self, figure: Any = None) -> Any:
        """Draw the embeddings and their scores; see :func:`twofold.plots.comparison`."""
        from twofold import plots  # with matplotlib, which is only needed here

        return plots.comparison(self, figure)

    def __str__(self) -> str:
        lines = [self.table.to_string(float_format=lambda value: f"{value:.3g}"), "", self.reason]
        lines += [f"{name} failed: {why}" for name, why in self.failures.items()]
        lines += [f"Note: {note}" for note in self.notes.get("data", [])]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from html import escape

        said = [self.reason, *(f"{name} failed: {why}" for name, why in self.failures.items())]
        table = self.table.to_html(float_format=lambda value: f"{value:.3g}")
        return "\n".join([table, *(f"<p>{escape(line)}</p>" for line in said)])


def compare(
    Y: Any,
    candidates: Any = embedders.USUAL,
    *,
    labels: Any = None,
    n_components: int = 2,
    n_neighbors: int = 15,
    stability: bool = False,
    kinds: Mapping[str, Any] | None = None,
    weights: Mapping[str, float] | None = None,
    random_state: int | None = 0,
    n_jobs: int | None = -1,
) -> Comparison:
    """Compare embeddings of the same rows and say which to trust.

    Every method's own cost favours that method, so all are measured by scores that none of them
    optimises; UKR alone minimises the one called ``reconstruction_error``.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_features)
        Data without missing entries. Scale columns first if their units differ; in a frame with
        categories or dates all columns count equally, as in :class:`twofold.Mixed`, and missing
        entries are filled by principal components, with a warning. Repeated rows are fitted and
        scored once.
    candidates : dict, or sequence of str
        Names of methods ("pca", "lle", "isomap", "laplacian", "mds", "tsne", "umap", "ukr", "unn",
        "kernel_pca", "diffusion_map", "psom"), or a dict of any names to such a name, to an
        estimator with ``fit_transform`` (fitted as a clone if it can be cloned) or to an embedding
        of shape (n_samples, n_components).
    labels : array-like of shape (n_samples,), default=None
        Classes of the rows: they give the ``neighborhood_hit``, and never drive the recommendation.
        Rows without one (None, NaN or empty text) are left out of that.
    n_components : int, default=2
        Dimensions of the methods that are given by name.
    n_neighbors : int, default=15
        Neighbours of the methods given by name and of the scores that have such a number, which
        look at less than half of the rows.
    stability : bool, default=False
        Also fit every estimator to ten bootstrap samples: slow, and a weak guide.
    kinds, weights : dict, default=None
        Of columns of a frame, as in :class:`twofold.Mixed`; all columns are then scaled as there.
    random_state : int or None, default=0
    n_jobs : int or None, default=-1

    Examples
    --------
    >>> from twofold.datasets import make_s_triangle
    >>> from twofold.selection import compare
    >>> bent = make_s_triangle(300, noise=0.05, random_state=0)
    >>> found = compare(bent.Y, ["pca", "isomap"], n_neighbors=10)
    >>> found.recommended
    'isomap'
    """
    table = checked_table(numbers_of_table(Y, kinds, weights), "Y")
    check_differences(table)
    named = embedders.named_candidates(candidates)
    labels = None if labels is None else column_or_1d(labels)
    if labels is not None and len(labels) != len(table):
        raise ValueError(
            f"`labels` must have one label for each of {len(table)} rows; got {len(labels)}."
        )
    with few_threads(len(table)):
        rows = _Rows(table, *distinct_rows(table), labels)
    n, n_columns = rows.distinct.shape
    n_neighbors = check_whole(n_neighbors, "n_neighbors")
    if any(isinstance(candidate, str) for candidate in named.values()):
        hint = f" (n_features={n_columns}.){embedders.DIMENSION_HINT}"
        n_components = check_whole(n_components, "n_components", n_columns, hint)
    wanted = Request(n, n_components, min(n_neighbors, n - 1), random_state, n_jobs)
    scored: dict[str, Scored] = {}
    failures: dict[str, str] = {}
    notes: dict[str, list[str]] = {}
    for name, candidate in named.items():
        try:
            with few_threads(n):
                scored[name], notes[name] = _measure(rows, candidate, wanted, stability)
        except (*REFUSALS, ImportError) as error:
            failures[name] = str(error)
    if not scored:
        first = next(iter(failures))
        raise ValueError(f"No candidate gave an embedding to score. {first}: {failures[first]}")
    notes["data"] = data_notes(rows.distinct, len(table) - n, n_neighbors, labels)
    notes = {name: said for name, said in notes.items() if said}
    scores = pd.DataFrame.from_dict({name: one.scores for name, one in scored.items()}, "index")
    scores["dimension"] = scores["dimension"].astype(int)
    scores = scores.loc[ranking(scores)]
    with few_threads(n):
        expected = baselines(rows.distinct, sorted(set(scores["dimension"])), random_state)
    choice = recommend(scores, expected)
    return Comparison(scores, *choice, scored, failures, notes, expected, labels)


class _Rows:
    """A table, where its distinct rows come ``first``, and which of these each row is."""

    def __init__(self, table: FloatArray, first: IntArray, member: IntArray, labels: Any) -> None:
        self.table, self.first, self.member = table, first, member
        self.distinct = table[first]
        self.directions = leading_directions(self.distinct)
        self.labels = None if labels is None else labels[first]


def _measure(
    rows: _Rows, candidate: Any, wanted: Request, stability: bool
) -> tuple[Scored, list[str]]:
    """Return the scores of a candidate, and what its method warned of."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        estimator = EMBEDDERS[candidate](wanted) if isinstance(candidate, str) else candidate
        is_method = hasattr(estimator, "fit_transform")
        started = time.perf_counter()
        found = unfitted(estimator).fit_transform(rows.distinct) if is_method else estimator
        seconds = time.perf_counter() - started if is_method else float("nan")
        measured = measure_stability(estimator, rows.distinct) if stability and is_method else None
    X = checked_table(found, "embedding")
    if is_method:
        check_same_rows(rows.distinct, "Y", X, "embedding")
        X = X[rows.member]
    check_same_rows(rows.table, "Y", X, "embedding")
    told = {name: getattr(wanted, name) for name in ("n_neighbors", "random_state", "n_jobs")}
    of_rows: dict[str, Any] = {"directions": rows.directions, "labels": rows.labels}
    scored = score_embedding(rows.distinct, X[rows.first], **of_rows, **told)
    if stability:
        scored.scores["instability"] = float("nan") if measured is None else measured.offset
    scored.scores["seconds"] = seconds
    if len(rows.first) < len(rows.table):
        # Scores look at every row once, but pictures and models are of all of them.
        model = upgrade(X, rows.table, n_jobs=wanted.n_jobs, verbose=False)
        scored = replace(scored, embedding=X, model=model)
    return scored, sorted({str(warning.message) for warning in said})

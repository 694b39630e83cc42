"""Several embeddings of the same rows side by side, with a recommendation."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from twofold.array_types import FloatArray
from twofold.metrics.checks import check_same_rows, checked_table
from twofold.selection.embedders import (
    DIMENSION_HINT,
    USUAL,
    Request,
    embedder,
    named_candidates,
    unfitted,
)
from twofold.selection.recommending import Baseline, baselines, ranking, recommend
from twofold.selection.row_checks import (
    DistinctRows,
    check_whole,
    checked_labels,
    data_notes,
    distinct_rows,
    label_notes,
)
from twofold.selection.scores import Scored, leading_directions, score_embedding
from twofold.selection.stability import REFUSALS
from twofold.selection.stability import stability as measure_stability
from twofold.table_checks import check_differences
from twofold.ukr import upgrade

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Embeddings of the same rows, measured by the same scores; made by :func:`compare`.

    Attributes
    ----------
    table : DataFrame
        A row of scores for each embedding, best first; :mod:`twofold.selection.scores` says what
        they are. ``seconds`` is what fitting took.
    recommended : str or None
        The name of the embedding to trust, or None if none deserves it.
    reason : str
        Why, with the numbers.
    scored : dict of str to Scored
        The embeddings with their evidence, ranks and two-way models.
    failures : dict of str to str
        Methods that gave no embedding that can be scored, and why.
    notes : dict of str to list of str
        What methods warned of while they were fitted, and under "data" what there is to know about
        the rows: copies, too few of them for so many neighbours, one column that decides alone.
    expected : dict of int to Baseline
        What can be expected of embeddings, by dimension: how flat the data is locally, and what
        principal components and flat local pieces leave open.
    labels : ndarray or None
        The labels that were passed, for pictures.
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

        lines = [self.table.to_html(float_format=lambda value: f"{value:.3g}")]
        lines += [f"<p>{escape(self.reason)}</p>"]
        lines += [
            f"<p>{escape(name)} failed: {escape(why)}</p>" for name, why in self.failures.items()
        ]
        return "\n".join(lines)


def compare(
    Y: Any,
    candidates: Any = USUAL,
    *,
    labels: Any = None,
    n_components: int = 2,
    n_neighbors: int = 15,
    stability: bool = False,
    random_state: int | None = 0,
    n_jobs: int | None = None,
) -> Comparison:
    """Compare embeddings of the same rows and say which to trust.

    Every method's own cost favours that method, so all are measured by scores that none of them
    optimises; UKR alone minimises the one called ``reconstruction_error``.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_features)
        Data without missing entries. Scale columns first if their units differ. Rows that are
        there several times are fitted and scored once.
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
    random_state : int or None, default=0
    n_jobs : int or None, default=None

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If no candidate gives an embedding that can be scored.

    Examples
    --------
    >>> from twofold.datasets import make_s_triangle
    >>> from twofold.selection import compare
    >>> bent = make_s_triangle(300, noise=0.05, random_state=0)
    >>> found = compare(bent.Y, ["pca", "isomap"], n_neighbors=10)
    >>> found.recommended
    'isomap'
    """
    table = checked_table(Y, "Y")
    check_differences(table)
    named = named_candidates(candidates)
    labels = None if labels is None else checked_labels(labels, len(table))
    distinct = distinct_rows(table)
    n_neighbors = check_whole(n_neighbors, "n_neighbors")
    if any(isinstance(candidate, str) for candidate in named.values()):
        n_components = _checked_dimension(n_components, distinct.rows.shape[1])
    n = len(distinct.rows)
    wanted = Request(n, n_components, min(n_neighbors, n - 1), random_state, n_jobs)
    scored, failures, notes = _measure_all(table, distinct, named, wanted, labels, stability)
    if not scored:
        first = next(iter(failures))
        raise ValueError(f"No candidate gave an embedding to score. {first}: {failures[first]}")
    notes["data"] = data_notes(distinct.rows, distinct.n_copies, n_neighbors)
    notes["data"] += [] if labels is None else label_notes(labels)
    notes = {name: said for name, said in notes.items() if said}
    found = _conclude(distinct.rows, scored, failures, notes, random_state)
    return replace(found, labels=labels)


def _checked_dimension(n_components: Any, n_columns: int) -> int:
    hint = f" (n_features={n_columns}.){DIMENSION_HINT}"
    return check_whole(n_components, "n_components", n_columns, hint)


def _measure_all(
    table: FloatArray,
    distinct: DistinctRows,
    named: dict[str, Any],
    wanted: Request,
    labels: Any,
    stability: bool,
) -> tuple[dict[str, Scored], dict[str, str], dict[str, list[str]]]:
    """Return by name the scores of candidates, why others have none, and what methods said."""
    directions = leading_directions(distinct.rows)
    scored: dict[str, Scored] = {}
    failures: dict[str, str] = {}
    notes: dict[str, list[str]] = {}
    for name, candidate in named.items():
        try:
            scored[name], notes[name] = _measure(
                table, distinct, directions, candidate, wanted, labels, stability
            )
        except (*REFUSALS, ImportError) as error:
            failures[name] = str(error)
    return scored, failures, notes


def _measure(
    table: FloatArray,
    distinct: DistinctRows,
    directions: FloatArray,
    candidate: Any,
    wanted: Request,
    labels: Any,
    stability: bool,
) -> tuple[Scored, list[str]]:
    """Return the scores of a candidate, and what its method warned of."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        estimator = embedder(candidate, wanted) if isinstance(candidate, str) else candidate
        is_method = hasattr(estimator, "fit_transform")
        started = time.perf_counter()
        found = unfitted(estimator).fit_transform(distinct.rows) if is_method else estimator
        seconds = time.perf_counter() - started if is_method else float("nan")
        measured = measure_stability(estimator, distinct.rows) if stability and is_method else None
    X = checked_table(found, "embedding")
    if is_method:
        check_same_rows(distinct.rows, "Y", X, "embedding")
        X = X[distinct.member]
    check_same_rows(table, "Y", X, "embedding")
    scored = score_embedding(
        distinct.rows,
        X[distinct.first],
        directions=directions,
        labels=None if labels is None else labels[distinct.first],
        n_neighbors=wanted.n_neighbors,
        random_state=wanted.random_state,
        n_jobs=wanted.n_jobs,
    )
    if stability:
        scored.scores["instability"] = float("nan") if measured is None else measured.offset
    scored.scores["seconds"] = seconds
    if distinct.n_copies:
        # Scores look at every row once, but pictures and models are of all of them.
        model = upgrade(X, table, n_jobs=wanted.n_jobs, verbose=False)
        scored = replace(scored, embedding=X, model=model)
    return scored, sorted({str(warning.message) for warning in said})


def _conclude(
    Y: FloatArray,
    scored: dict[str, Scored],
    failures: dict[str, str],
    notes: dict[str, list[str]],
    random_state: int | None,
) -> Comparison:
    import pandas as pd

    table = pd.DataFrame.from_dict({name: one.scores for name, one in scored.items()}, "index")
    table["dimension"] = table["dimension"].astype(int)
    table = table.loc[ranking(table)]
    expected = baselines(Y, sorted(set(table["dimension"])), random_state)
    choice = recommend(table, expected)
    return Comparison(table, choice.name, choice.reason, scored, failures, notes, expected)

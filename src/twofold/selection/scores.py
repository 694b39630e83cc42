"""Everything that is measured about one embedding.

- ``nlml_per_entry``, ``noise_variance``, ``width``: the evidence
  (:func:`twofold.selection.gp_evidence`); lower nlml and noise are better. It is that of the
  leading principal components of the data, 50 and a quarter of the rows at most: whitening makes
  all directions alike, and with as many directions as rows nothing would be left to explain.
- ``reconstruction_error``: the embedding is made a two-way model (:func:`twofold.upgrade`: nothing
  moves, one bandwidth a dimension is found) and each row is reconstructed from the places of the
  others; the squared error as a share of the variance.
- ``trustworthiness``, ``continuity``, ``auc``, ``q_local``, ``q_global``:
  :class:`twofold.metrics.CoRanking`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.contract.distinct_rows import merge_duplicates
from twofold.metrics import CoRanking, coranking, neighborhood_hit
from twofold.selection.evidence import Evidence, gp_evidence
from twofold.ukr import UKR, upgrade

# Evidence of this many rows takes about a second; more rows only make the same order clearer.
EVIDENCE_POINTS = 1_000
EVIDENCE_REPEATS = 2
MOST_DIRECTIONS, ROWS_A_DIRECTION = 50, 4
# Fewer rows have no neighbours to speak of, and some methods crash on them.
FEWEST_ROWS = 4
# One column with a larger share of the variance decides nearly alone who is near whom.
DOMINANT_SHARE = 0.9


@dataclass(frozen=True)
class Scored:
    """An embedding (n, q) and what is measured about it."""

    embedding: FloatArray
    evidence: Evidence
    ranks: CoRanking
    model: UKR  # the two-way model of the embedding
    scores: dict[str, float]


def score_embedding(
    Y: FloatArray,
    X: FloatArray,
    *,
    directions: FloatArray | None = None,
    labels: Any = None,
    n_neighbors: int = 15,
    random_state: int | None = 0,
    n_jobs: int | None = -1,
) -> Scored:
    """Measure an embedding X (n, q) of data Y (n, D)."""
    k = min(n_neighbors, most_scored_neighbors(len(Y)))
    evidence = gp_evidence(
        leading_directions(Y) if directions is None else directions,
        X,
        max_points=EVIDENCE_POINTS,
        repeats=EVIDENCE_REPEATS,
        random_state=random_state,
    )
    model = upgrade(X, Y, n_jobs=n_jobs, verbose=False)
    ranks = coranking(Y, X, random_state=random_state)
    scores = {
        "dimension": float(X.shape[1]),
        "reconstruction_error": model.objective_ / spread_of(Y),
        "nlml_per_entry": evidence.nlml_per_entry,
        "noise_variance": evidence.noise_variance,
        "width": evidence.width,
        "trustworthiness": ranks.trustworthiness(k),
        "continuity": ranks.continuity(k),
        "auc": ranks.auc,
        "q_local": ranks.q_local,
        "q_global": ranks.q_global,
    }
    if labels is not None:
        known = has_label(labels)
        k = min(k, int(known.sum()) - 1)
        hit = neighborhood_hit(X[known], np.asarray(labels)[known], k) if k >= 1 else float("nan")
        scores["neighborhood_hit"] = hit
    return Scored(X, evidence, ranks, model, scores)


def leading_directions(Y: FloatArray) -> FloatArray:
    """Return the principal components of rows (n, D) whose evidence is taken, (n, d)."""
    n, D = Y.shape
    most = max(1, min(MOST_DIRECTIONS, n // ROWS_A_DIRECTION))
    if most >= D:
        return Y
    U, S, _ = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)
    # Directions of no variance would be rounding, blown up to the size of the others.
    kept = int((S[:most] > 1e-10 * S[0]).sum())
    return np.asarray(U[:, :kept] * S[:kept])


def spread_of(Y: FloatArray) -> float:
    """Return the mean squared distance of rows (n, D) from their mean."""
    return float(Y.var(axis=0).sum())


def linear_error(Y: FloatArray, q: int) -> float:
    """Return the share of the variance that q principal components leave open."""
    variances = np.linalg.svd(Y - Y.mean(axis=0), compute_uv=False) ** 2
    return float(variances[q:].sum() / variances.sum())


# ---- what is checked, and said, about rows before methods see them -----------------------------


def distinct_rows(Y: FloatArray) -> tuple[IntArray, IntArray]:
    """Return where rows of Y (n, D) come first, and which of these each is; raise for too few."""
    found = merge_duplicates(Y, np.ones(len(Y)))
    if len(found.first) < FEWEST_ROWS:
        raise ValueError(
            f"Embeddings need at least {FEWEST_ROWS} different rows; got {len(Y)} rows, "
            f"{len(found.first)} of them different."
        )
    order = np.argsort(found.first)
    return found.first[order], np.argsort(order)[found.member]


def data_notes(Y: FloatArray, n_copies: int, n_neighbors: int, labels: Any) -> list[str]:
    """Return what a reader of scores of distinct rows Y (n, D) should know about them."""
    notes = []
    if n_copies:
        notes.append(
            f"{n_copies} {'row is a copy' if n_copies == 1 else 'rows are copies'} of others: "
            "methods see every row once, and so do the scores."
        )
    most = most_scored_neighbors(len(Y))
    if n_neighbors > most:
        notes.append(
            f"{n_neighbors} neighbours are too many for {len(Y)} different rows: scores look at "
            f"{most}, less than half of them."
        )
    if note := dominant_column(Y):
        notes.append(note)
    without = 0 if labels is None else int((~has_label(labels)).sum())
    if without:
        rows = "1 row has" if without == 1 else f"{without} rows have"
        notes.append(f"{rows} no label and no part in the neighborhood_hit.")
    return notes


def dominant_column(Y: FloatArray) -> str:
    """Say which column of Y (n, D) has nearly all of the variance; "" if none has."""
    variances = Y.var(axis=0)
    largest = int(np.argmax(variances))
    if len(variances) < 2 or variances[largest] <= DOMINANT_SHARE * variances.sum():
        return ""
    return (
        f"Column {largest} holds {100 * variances[largest] / variances.sum():.3g} % of the "
        "variance and decides nearly alone. If units differ, scale the columns, e.g. by "
        "twofold.Scaled."
    )


def most_scored_neighbors(n: int) -> int:
    """Return the most neighbours that scores of n rows can look at."""
    return max(1, (n - 1) // 2)


def check_whole(value: Any, name: str, most: int | None = None, hint: str = "") -> int:
    """Return a whole number of at least 1, and at most ``most``."""
    is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    if not is_whole or value < 1 or (most is not None and value > most):
        upper = "at least 1" if most is None else f"within [1, {most}]"
        raise ValueError(f"`{name}` must be a whole number {upper}; got {value!r}.{hint}")
    return int(value)


def has_label(labels: Any) -> BoolArray:
    """Say which labels (n,) are there: None, NaN and empty text are none."""
    is_empty = [isinstance(label, str) and not label.strip() for label in labels]
    return np.asarray(~(pd.isna(np.asarray(labels)) | np.array(is_empty, dtype=bool)))

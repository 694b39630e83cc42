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

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from twofold.array_types import FloatArray
from twofold.metrics import CoRanking, coranking, neighborhood_hit
from twofold.selection.evidence import Evidence, gp_evidence
from twofold.selection.row_checks import has_label, most_scored_neighbors
from twofold.ukr import UKR, upgrade

# Evidence of so many rows takes about a second; more rows only make the same order clearer.
EVIDENCE_POINTS = 1_000
EVIDENCE_REPEATS = 2
MOST_DIRECTIONS, ROWS_A_DIRECTION = 50, 4


@dataclass(frozen=True)
class Scored:
    """An embedding and what is measured about it.

    Attributes
    ----------
    embedding : ndarray of shape (n, q)
    evidence : Evidence
    ranks : CoRanking
    model : UKR
        The two-way model of the embedding.
    scores : dict of str to float
    """

    embedding: FloatArray
    evidence: Evidence
    ranks: CoRanking
    model: UKR
    scores: dict[str, float]


def score_embedding(
    Y: FloatArray,
    X: FloatArray,
    *,
    directions: FloatArray | None = None,
    labels: Any = None,
    n_neighbors: int = 15,
    random_state: int | None = 0,
    n_jobs: int | None = None,
) -> Scored:
    """Measure an embedding X (n, q) of data Y (n, D).

    Parameters
    ----------
    Y, X : ndarrays of float64
    directions : ndarray of shape (n, d) or None
        The :func:`leading_directions` of Y, if they are known already.
    labels : array-like of shape (n,) or None
    n_neighbors : int
        Neighbours of trustworthiness, continuity and neighbourhood hit.
    random_state : int or None
        Draws subsets of many rows.
    n_jobs : int or None

    Returns
    -------
    Scored
    """
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
        scores["neighborhood_hit"] = _hit(X, np.asarray(labels), k)
    return Scored(X, evidence, ranks, model, scores)


def _hit(X: FloatArray, labels: Any, k: int) -> float:
    """Return the neighbourhood hit of the rows that have a label, NaN if hardly any has one."""
    known = has_label(labels)
    k = min(k, int(known.sum()) - 1)
    return neighborhood_hit(X[known], labels[known], k) if k >= 1 else float("nan")


def leading_directions(Y: FloatArray) -> FloatArray:
    """Return the principal components of rows (n, D) whose evidence is taken, (n, d)."""
    n, D = Y.shape
    most = max(1, min(MOST_DIRECTIONS, n // ROWS_A_DIRECTION))
    if most >= D:
        return Y
    centred = Y - Y.mean(axis=0)
    U, S, _ = np.linalg.svd(centred, full_matrices=False)
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

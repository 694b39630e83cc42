"""Methods by name, so that pictures of the same rows can be asked for in one word."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.manifold import MDS, TSNE, Isomap, LocallyLinearEmbedding, SpectralEmbedding

from twofold.loading import TWO_WAY, two_way_model

# What is compared if nothing is said: quick methods of every kind that need no further package.
USUAL = ("pca", "lle", "isomap", "laplacian", "tsne", "ukr")
# Up to this many rows a dense eigenproblem is quick, and it does not fail on singular matrices.
MOST_DENSE = 1_000
# Beyond this t-SNE would have to compare all pairs.
MOST_TSNE_DIMENSIONS = 3
USUAL_PERPLEXITY = 30.0
DIMENSION_HINT = " twofold.selection.choose_dimension tells what the data has."


@dataclass(frozen=True)
class Request:
    """What all named methods are told."""

    n_rows: int
    n_components: int
    n_neighbors: int
    random_state: int | None
    n_jobs: int | None


def _tsne(wanted: Request) -> Any:
    if wanted.n_components > MOST_TSNE_DIMENSIONS:
        raise ValueError(
            f"t-SNE goes up to {MOST_TSNE_DIMENSIONS} dimensions; got {wanted.n_components}."
        )
    perplexity = min(USUAL_PERPLEXITY, (wanted.n_rows - 1) / 3)
    common = {"random_state": wanted.random_state, "n_jobs": wanted.n_jobs}
    return TSNE(wanted.n_components, perplexity=perplexity, **common)


def _umap(wanted: Request) -> Any:
    try:
        umap = import_module("umap")
    except ImportError as error:
        raise ImportError(
            'UMAP is not installed: pip install "twofold[peers]", or leave "umap" out.'
        ) from error
    return umap.UMAP(
        n_components=wanted.n_components,
        n_neighbors=wanted.n_neighbors,
        random_state=wanted.random_state,
        # With a seed it runs on one thread anyway, and warns if it is told otherwise.
        n_jobs=1,
    )


def _two_way(name: str, wanted: Request) -> Any:
    common = {"random_state": wanted.random_state, "n_jobs": wanted.n_jobs, "verbose": False}
    return two_way_model(name, wanted.n_components, **common)


EMBEDDERS: dict[str, Callable[[Request], Any]] = {
    "pca": lambda wanted: PCA(wanted.n_components, random_state=wanted.random_state),
    "lle": lambda wanted: LocallyLinearEmbedding(
        n_neighbors=wanted.n_neighbors,
        n_components=wanted.n_components,
        eigen_solver="dense" if wanted.n_rows <= MOST_DENSE else "auto",
        random_state=wanted.random_state,
        n_jobs=wanted.n_jobs,
    ),
    "isomap": lambda wanted: Isomap(
        n_neighbors=wanted.n_neighbors, n_components=wanted.n_components, n_jobs=wanted.n_jobs
    ),
    "laplacian": lambda wanted: SpectralEmbedding(
        wanted.n_components,
        n_neighbors=wanted.n_neighbors,
        random_state=wanted.random_state,
        n_jobs=wanted.n_jobs,
    ),
    "mds": lambda wanted: MDS(
        wanted.n_components,
        n_init=1,
        init="classical_mds",
        random_state=wanted.random_state,
        n_jobs=wanted.n_jobs,
    ),
    "tsne": _tsne,
    "umap": _umap,
    **{name: partial(_two_way, name) for name in TWO_WAY},
}


def embedder(name: str, wanted: Request) -> Any:
    """Return an estimator with ``fit_transform`` for a key of ``EMBEDDERS``.

    Raises ValueError if there is none or it does not go up to that dimension, ImportError if its
    package is not installed.
    """
    if name not in EMBEDDERS:
        raise ValueError(
            f"Known methods are {', '.join(EMBEDDERS)}; got {name!r}. Pass any other as an "
            "estimator or as its embedding: {name: estimator or array}."
        )
    return EMBEDDERS[name](wanted)


def unfitted(estimator: Any) -> Any:
    """Return a copy that has seen no data; what cannot be cloned is used as it is."""
    return clone(estimator) if hasattr(estimator, "get_params") else estimator


def named_candidates(candidates: Any) -> dict[str, Any]:
    """Return candidates by name: names of methods, estimators or embeddings (n, q)."""
    if isinstance(candidates, str):
        candidates = [candidates]
    if isinstance(candidates, Mapping):
        found = {str(name): candidate for name, candidate in candidates.items()}
    elif isinstance(candidates, Iterable) and not isinstance(candidates, np.ndarray):
        names = list(candidates)
        if not all(isinstance(name, str) for name in names):
            raise TypeError(
                "Without names of their own, candidates are names of methods; pass estimators and "
                "embeddings as {name: candidate}."
            )
        found = {name.lower(): name for name in names}
    else:
        raise TypeError(
            "`candidates` must be names of methods or a dict of names to methods, estimators or "
            f"embeddings; got {type(candidates).__name__}."
        )
    if not found:
        raise ValueError("`candidates` is empty; name at least one method.")
    found = {
        name: candidate.lower() if isinstance(candidate, str) else candidate
        for name, candidate in found.items()
    }
    for name, candidate in found.items():
        if isinstance(candidate, str) and candidate not in EMBEDDERS:
            raise ValueError(
                f"Known methods are {', '.join(EMBEDDERS)}; got {candidate!r} for {name!r}."
            )
        if isinstance(candidate, type):
            raise TypeError(f"{name!r} is a class; pass an estimator: {candidate.__name__}(...).")
    return found

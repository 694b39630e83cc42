"""Methods by name, so that pictures of the same rows can be asked for in one word."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.manifold import MDS, TSNE, Isomap, LocallyLinearEmbedding, SpectralEmbedding

from twofold.checks.installing import install_command
from twofold.engine.threads import single_threaded, single_threaded_blas
from twofold.loading import TWO_WAY, two_way_model

# What is compared if nothing is said: quick methods of every kind that need no further package.
USUAL = ("pca", "lle", "isomap", "laplacian", "tsne", "ukr")
# Up to this many rows a dense eigenproblem is quick, and it does not fail on singular matrices.
MOST_DENSE = 1_000
# Beyond this t-SNE would have to compare all pairs.
MOST_TSNE_DIMENSIONS = 3
USUAL_PERPLEXITY = 30.0
# Threads of OpenMP spin while they wait for each other. Where other processes hold a core, t-SNE of
# 500 rows on two threads takes 6 times the computing of one thread, and of 2,000 rows 2.6 times.
FEW_ROWS = 5_000
DIMENSION_HINT = " twofold.selection.choose_dimension tells what the data has."


@dataclass(frozen=True)
class Request:
    """What all named methods are told."""

    n_rows: int
    n_components: int
    n_neighbors: int
    random_state: int | None
    n_jobs: int | None


def few_threads(n: int) -> AbstractContextManager[None]:
    """Keep linear algebra on one thread inside the block, and OpenMP too if rows are few."""
    return single_threaded() if n <= FEW_ROWS else single_threaded_blas()


def _told(method: Any, wanted: Request, **more: Any) -> Any:
    """Return a method with those of the wanted parameters that it has, and some more."""
    known = signature(method).parameters
    common = {name: value for name, value in asdict(wanted).items() if name in known}
    return method(**{**common, **more})


def _tsne(wanted: Request) -> Any:
    if wanted.n_components > MOST_TSNE_DIMENSIONS:
        raise ValueError(
            f"t-SNE goes up to {MOST_TSNE_DIMENSIONS} dimensions; got {wanted.n_components}."
        )
    return _told(TSNE, wanted, perplexity=min(USUAL_PERPLEXITY, (wanted.n_rows - 1) / 3))


def _umap(wanted: Request) -> Any:
    try:
        umap = import_module("umap")
    except ImportError as error:
        raise ImportError(
            f"UMAP is not installed: {install_command('peers')}, or leave 'umap' out."
        ) from error
    # With a seed it runs on one thread anyway, and warns if it is told otherwise.
    return _told(umap.UMAP, wanted, n_jobs=1)


def _two_way(name: str, wanted: Request) -> Any:
    common = {"random_state": wanted.random_state, "n_jobs": wanted.n_jobs, "verbose": False}
    return two_way_model(name, wanted.n_components, **common)


EMBEDDERS: dict[str, Callable[[Request], Any]] = {
    "pca": partial(_told, PCA),
    "lle": lambda wanted: _told(
        LocallyLinearEmbedding,
        wanted,
        eigen_solver="dense" if wanted.n_rows <= MOST_DENSE else "auto",
    ),
    "isomap": partial(_told, Isomap),
    "laplacian": partial(_told, SpectralEmbedding),
    "mds": partial(_told, MDS, n_init=1, init="classical_mds"),
    "tsne": _tsne,
    "umap": _umap,
    **{name: partial(_two_way, name) for name in TWO_WAY},
}


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
                f"Known methods are {', '.join(EMBEDDERS)}; got {candidate!r} for {name!r}. Pass "
                "any other as an estimator or as its embedding: {name: estimator or array}."
            )
        if isinstance(candidate, type):
            raise TypeError(f"{name!r} is a class; pass an estimator: {candidate.__name__}(...).")
    return found

"""Scores of embeddings, maps and reconstructions."""

from __future__ import annotations

from twofold.metrics.co_ranking import CoRanking, coranking
from twofold.metrics.nearest_neighbors import dsre, e_nx
from twofold.metrics.neighborhoods import continuity, neighborhood_hit, trustworthiness
from twofold.metrics.quantization import quantization_error, topographic_error
from twofold.metrics.reconstruction import reconstruction_error

__all__ = [
    "CoRanking",
    "continuity",
    "coranking",
    "dsre",
    "e_nx",
    "neighborhood_hit",
    "quantization_error",
    "reconstruction_error",
    "topographic_error",
    "trustworthiness",
]


def __dir__() -> list[str]:
    return __all__

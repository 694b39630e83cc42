"""Scores of embeddings, maps and reconstructions."""

from twofold.metrics.co_ranking import CoRanking, coranking
from twofold.metrics.scores import (
    continuity,
    dsre,
    e_nx,
    neighborhood_hit,
    quantization_error,
    reconstruction_error,
    topographic_error,
    trustworthiness,
)

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
__dir__ = __all__.copy  # without numpy and other imports

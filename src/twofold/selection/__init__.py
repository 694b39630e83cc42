"""Choosing between embeddings without knowing the true one."""

from twofold.selection.comparing import Comparison, compare
from twofold.selection.dimension import DimensionChoice, choose_dimension
from twofold.selection.evidence import Evidence, gp_evidence
from twofold.selection.procrustes import procrustes_distance, whiten
from twofold.selection.refining import Refined, refine
from twofold.selection.select_embedding import SelectEmbedding
from twofold.selection.stability import Stability, stability

__all__ = [
    "Comparison",
    "DimensionChoice",
    "Evidence",
    "Refined",
    "SelectEmbedding",
    "Stability",
    "choose_dimension",
    "compare",
    "gp_evidence",
    "procrustes_distance",
    "refine",
    "stability",
    "whiten",
]
__dir__ = __all__.copy  # without numpy and other imports

"""twofold: manifold learning with a way back.

Names are loaded when they are first used, so that ``import twofold`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twofold import (
        anndata,
        datasets,
        explorer,
        features,
        kernels,
        landmarks,
        losses,
        metrics,
        neighbors,
        optimize,
        plots,
        regularization,
        selection,
    )
    from twofold.classification import ManifoldClassifier
    from twofold.filling import ManifoldImputer
    from twofold.kernel_pca import DiffusionMap, KernelExtension, KernelPCA
    from twofold.landmarks.k_harmonic_means import KHarmonicMeans
    from twofold.loading import load
    from twofold.mixed import Mixed
    from twofold.odd_rows import ManifoldOutlierDetector
    from twofold.psom import PSOM
    from twofold.reduced import Reduced
    from twofold.scaled import Scaled
    from twofold.selection import SelectEmbedding, compare
    from twofold.ukr import UKR, NadarayaWatson, upgrade
    from twofold.unn import UNN, ConstructiveKMeans, SubmanifoldUNN

__version__ = "0.1.0"

_HOMES = {
    "UKR": "twofold.ukr",
    "UNN": "twofold.unn",
    "SubmanifoldUNN": "twofold.unn",
    "ConstructiveKMeans": "twofold.unn",
    "PSOM": "twofold.psom",
    "NadarayaWatson": "twofold.ukr",
    "ManifoldClassifier": "twofold.classification",
    "ManifoldImputer": "twofold.filling",
    "ManifoldOutlierDetector": "twofold.odd_rows",
    "KHarmonicMeans": "twofold.landmarks.k_harmonic_means",
    "KernelPCA": "twofold.kernel_pca",
    "DiffusionMap": "twofold.kernel_pca",
    "KernelExtension": "twofold.kernel_pca",
    "Mixed": "twofold.mixed",
    "Scaled": "twofold.scaled",
    "Reduced": "twofold.reduced",
    "SelectEmbedding": "twofold.selection",
    "compare": "twofold.selection",
    "upgrade": "twofold.ukr",
    "load": "twofold.loading",
}
__all__ = [
    "PSOM",
    "UKR",
    "UNN",
    "ConstructiveKMeans",
    "DiffusionMap",
    "KHarmonicMeans",
    "KernelExtension",
    "KernelPCA",
    "ManifoldClassifier",
    "ManifoldImputer",
    "ManifoldOutlierDetector",
    "Mixed",
    "NadarayaWatson",
    "Reduced",
    "Scaled",
    "SelectEmbedding",
    "SubmanifoldUNN",
    "anndata",
    "compare",
    "datasets",
    "explorer",
    "features",
    "kernels",
    "landmarks",
    "load",
    "losses",
    "metrics",
    "neighbors",
    "optimize",
    "plots",
    "regularization",
    "selection",
    "upgrade",
]
_MODULES = tuple(name for name in __all__ if name not in _HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"twofold.{name}")
    raise AttributeError(f"module 'twofold' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

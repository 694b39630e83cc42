"""Digits: held-out round trip and times, beside PCA and UMAP in the same run.

scikit-learn's 1,797 × 64 digits, a tenth held out, two latent dimensions, defaults only. The error
is the squared round-trip error as a fraction of the held-out rows' variance.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness

from benchmarks.report import Row, best_time, show
from twofold import UKR
from twofold.datasets import load_digits_split


def round_trip(model: object, train: np.ndarray, test: np.ndarray) -> float:
    """Return the held-out round-trip error as a fraction of variance."""
    back = model.inverse_transform(model.transform(test))
    return float(((test - back) ** 2).sum() / ((test - train.mean(axis=0)) ** 2).sum())


def run() -> list[Row]:
    """Measure."""
    split = load_digits_split()
    Y, T = split.Y_train, split.Y_test
    UKR(random_state=0, max_iter=5).fit(Y[:400]).transform(T[:5])  # compiled before it is timed
    start = time.perf_counter()
    model = UKR(random_state=0).fit(Y)
    fit_time = time.perf_counter() - start
    latent = model.transform(T)
    alone = np.concatenate([model.transform(row[None]) for row in T[:20]])
    rows = [
        Row("held-out round-trip error", round_trip(model, Y, T), 0.2),
        Row("held-out round-trip error of PCA", round_trip(PCA(2).fit(Y), Y, T)),
        Row("leave-one-out error", model.objective_ / np.var(Y, axis=0).sum()),
        Row("trustworthiness, 12 neighbours", trustworthiness(Y, model.embedding_, n_neighbors=12)),
        Row("rows alone differ from rows in a batch", float((alone != latent[:20]).sum()), 0),
    ]
    times = (
        fit_time,
        best_time(lambda: model.transform(T)),
        best_time(lambda: model.inverse_transform(latent)),
    )
    return rows + against_umap(Y, T, times)


def against_umap(Y: np.ndarray, T: np.ndarray, times: tuple[float, float, float]) -> list[Row]:
    """Compare times with UMAP's, warm, in this process."""
    try:
        import umap
    except ImportError:
        print("umap-learn is not installed: no comparison (pip install 'twofold[peers]')")
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = umap.UMAP().fit(Y)  # compilation
        start = time.perf_counter()
        peer = umap.UMAP().fit(Y)
        fit_time = time.perf_counter() - start
        transform_time = best_time(lambda: peer.transform(T), 2)
        latent = peer.transform(T)
        inverse_time = best_time(lambda: peer.inverse_transform(latent), 2)
        error = round_trip(peer, Y, T)
    return [
        Row("held-out round-trip error of UMAP", error),
        Row("fit / warm UMAP fit", times[0] / fit_time, 2.0),
        Row("transform of 180 rows / UMAP's", times[1] / transform_time, 0.1),
        Row("inverse_transform of 180 points / UMAP's", times[2] / inverse_time, 0.001),
    ]


if __name__ == "__main__":
    show("Digits", run())

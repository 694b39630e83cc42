"""Landmark UKR beside full UKR on the same rows, in the same run.

60,000 MNIST images as 50 principal components in single precision, 10,000 held out. The error is
the squared round-trip error of held-out rows as a fraction of their variance. That of k-means (the
nearest centre) says what as many vectors reach without a manifold between them. The data is the
file mnist.npz with ``X``, ``y`` and ``n_train``; see twofold.datasets.load_npz.

    python -m benchmarks.landmarks [landmarks] [latent dimensions]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from benchmarks.digits import round_trip
from benchmarks.report import Row, show
from twofold import UKR
from twofold.datasets import load_npz


def rows_of_mnist() -> tuple[np.ndarray, np.ndarray]:
    """Return training and held-out rows."""
    data = load_npz("mnist")
    images, n = data["X"].astype(np.float32), int(data["n_train"])
    components = PCA(50, svd_solver="covariance_eigh").fit(images[:n])
    parts = components.transform(images[:n]), components.transform(images[n:])
    return parts[0].astype(np.float32), parts[1].astype(np.float32)


def run(landmarks: int = 500, q: int = 2) -> list[Row]:
    """Measure."""
    train, test = rows_of_mnist()
    for options in ({}, {"landmarks": 50}):  # compiled before it is timed
        UKR(q, random_state=0, max_iter=3, **options).fit(train[:1000]).transform(test[:5])
    few, few_time = timed(UKR(q, landmarks=landmarks, random_state=0), train)
    full, full_time = timed(UKR(q, random_state=0), train)
    error, best = round_trip(few, train, test), round_trip(full, train, test)
    means = KMeans(landmarks, n_init=1, max_iter=20, random_state=0).fit(train[::4])
    nearest = means.cluster_centers_[means.predict(test)]
    variance = ((test - train.mean(axis=0)) ** 2).sum()
    return [
        Row("held-out error, landmarks", error),
        Row("held-out error, full", best),
        Row("held-out error, nearest of as many means", ((test - nearest) ** 2).sum() / variance),
        Row("error, ratio", error / best, 1.1),
        Row("time to fit, ratio", few_time / full_time, 0.1),
        Row("size of the file, ratio", size_of(few) / size_of(full)),
    ]


def timed(model: UKR, Y: np.ndarray) -> tuple[UKR, float]:
    """Fit a model; return it and the seconds it took."""
    start = time.perf_counter()
    model.fit(Y)
    return model, time.perf_counter() - start


def size_of(model: UKR) -> int:
    """Return the size of the saved model in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        return os.path.getsize(path)


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    show("Landmarks", run(*given))

"""Landmark UKR beside full UKR on the same rows, in the same run.

60,000 MNIST images as 50 principal components in single precision, 10,000 held out. The error is
the squared round-trip error of held-out rows as a fraction of their variance. That of k-means (the
nearest centre) says what as many vectors reach without a manifold between them. The data is the
file mnist.npz with ``X``, ``y`` and ``n_train``; see twofold.datasets.load_npz.

    python -m benchmarks.landmarks [landmarks] [latent dimensions]

What as many means leave at best, the nearest one alone and with a plane of its own through it (a
manifold between them has less freedom than that):

    python -m benchmarks.landmarks floor [landmarks ...]

Which share of the rows ends on the border of the map, and the error, with landmarks ("auto") and
without, of three made-up tables with 9 columns: a curved sheet, 30 clusters and four factors.

    python -m benchmarks.landmarks border [rows]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.decomposition import PCA

from benchmarks.digits import round_trip
from benchmarks.report import Row, show
from twofold import UKR
from twofold.datasets import load_npz, make_random_manifold


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


def floor(*counts: int) -> list[Row]:
    """Measure the error of held-out rows beside the nearest means, and on planes through these."""
    train, test = rows_of_mnist()
    variance, found = ((test - train.mean(axis=0)) ** 2).sum(), []
    for count in counts or (2_000, 5_000, 12_000):
        means = MiniBatchKMeans(
            count, init="random", n_init=1, max_iter=10, batch_size=8_192, random_state=0
        ).fit(train)
        own, there = means.predict(train), means.predict(test)
        gaps = test - means.cluster_centers_[there]
        found.append(Row(f"{count} means: the nearest", (gaps**2).sum() / variance))
        for cell in np.unique(there):
            around = train[own == cell] - means.cluster_centers_[cell]
            axes = np.linalg.svd(around, full_matrices=False)[2][:2]
            gaps[there == cell] -= gaps[there == cell] @ axes.T @ axes
        found.append(Row(f"{count} means: a plane each", (gaps**2).sum() / variance))
    return found


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


def sheet(n: int) -> np.ndarray:
    """Return rows of a curved surface with a little noise."""
    return make_random_manifold(n, 2, 9, noise=0.1, random_state=0).Y


def clusters(n: int) -> np.ndarray:
    """Return rows of 30 Gaussian clusters of different sizes and widths."""
    rng = np.random.default_rng(0)
    centres, widths = 3 * rng.normal(size=(30, 9)), rng.uniform(0.3, 1.0, size=(30, 1))
    own = rng.choice(30, size=n, p=rng.dirichlet(np.full(30, 5.0)))
    return centres[own] + widths[own] * rng.normal(size=(n, 9))


def factors(n: int) -> np.ndarray:
    """Return rows of four normal factors, mixed, bent and with noise."""
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=(n, 4)) @ rng.normal(size=(4, 9))
    return mixed + 0.3 * mixed**2 / (1 + np.abs(mixed)) + 0.3 * rng.normal(size=(n, 9))


def border(n: int = 200_000) -> list[Row]:
    """Measure which share of the rows ends on the border, and the error of held-out rows."""
    found = []
    for make in (sheet, clusters, factors):
        Y = make(n + 5_000).astype(np.float32)
        for landmarks in (None, "auto"):
            model, seconds = timed(UKR(landmarks=landmarks, random_state=0), Y[5_000:])
            name = f"{make.__name__}, {'landmarks' if landmarks else 'all rows'}"
            density = model.density(model.embedding_)
            share = float((density < 1.01 * model.domain_threshold_).mean())
            found += [
                Row(f"{name}: share on the border", share, 0.01 if landmarks else None),
                Row(f"{name}: held-out error", round_trip(model, Y[5_000:], Y[:5_000])),
                Row(f"{name}: seconds", seconds),
            ]
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["floor"]:
        show("Landmarks: what means leave", floor(*(int(word) for word in sys.argv[2:])))
    elif sys.argv[1:2] == ["border"]:
        show("Landmarks: the border", border(*(int(word) for word in sys.argv[2:])))
    else:
        show("Landmarks", run(*(int(word) for word in sys.argv[1:])))

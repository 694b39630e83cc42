"""One method on one table, in a process of its own: the steps that `benchmarks.large` times.

    python -m benchmarks.large_steps '{"data": "mnist", "n": 5000, "q": 2, "method": "umap"}'

Lines that begin with "@" are for the caller: the step that begins, and figures as soon as they are
known, so that a run which is stopped keeps what it had. With "prepare" in place of a method the
rows are written to benchmarks/results instead: what that takes is no method's time or memory.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "results"
HELD_OUT = {"mnist": 10_000, "glove": 5_000, "made-up": 5_000}
FEW = 200  # held-out rows that come back by every method: UMAP takes a second for some ten of them
JUDGED = 3_000  # training rows in the trustworthiness, whose time grows with their square
NEIGHBORS = 12
QUICK = 60.0  # a way back that takes fewer seconds is timed again, and the shorter time counts


@dataclass(frozen=True)
class Method:
    """How a method is made and warmed up, and whether all, a few or no rows come back by it.

    `warm_rows` lead through the code that large tables take: UMAP searches neighbours in another
    way from 4,096 rows on, UKR from 10,000 on.
    """

    label: str
    package: str
    make: Callable[[int], Any]
    warm_rows: int = 500
    warm_options: dict[str, Any] = field(default_factory=dict)
    back: str = "all"


def ukr(q: int, **options: Any) -> Any:
    from twofold import UKR

    return UKR(q, random_state=0, verbose=False, **options)


def umap(q: int, **options: Any) -> Any:
    from umap import UMAP

    return UMAP(n_components=q, **options)


def pacmap(q: int) -> Any:
    from pacmap import PaCMAP

    return PaCMAP(n_components=q, save_tree=True)


def pca(q: int) -> Any:
    from sklearn.decomposition import PCA

    return PCA(q)


def kernel_pca(q: int) -> Any:
    from sklearn.decomposition import KernelPCA

    return KernelPCA(q, kernel="rbf", fit_inverse_transform=True)


class OpenTSNE:
    """openTSNE, whose `fit` returns the embedding, with the surface of the others."""

    def __init__(self, q: int):
        self.n_components = q

    def fit(self, Y: np.ndarray) -> OpenTSNE:
        """Embed rows."""
        from openTSNE import TSNE

        self.embedding_ = TSNE(self.n_components, n_jobs=2).fit(Y)
        return self

    def transform(self, Y: np.ndarray) -> np.ndarray:
        """Place new rows."""
        return np.asarray(self.embedding_.transform(Y))


METHODS = {
    "ukr": Method("UKR", "twofold", ukr, 12_000, {"max_iter": 3}),
    "ukr-landmarks": Method("UKR, 2,000 landmarks", "twofold", lambda q: ukr(q, landmarks=2000),
                            12_000, {"max_iter": 3}),
    "umap": Method("UMAP", "umap", umap, 4_500, back="few"),
    "umap-seeded": Method("UMAP, random_state=0", "umap",
                          lambda q: umap(q, random_state=0, n_jobs=1), 4_500, back="few"),
    "pacmap": Method("PaCMAP", "pacmap", pacmap, 4_500, back=""),
    "opentsne": Method("openTSNE", "openTSNE", OpenTSNE, back=""),
    "kernel-pca": Method("KernelPCA", "sklearn", kernel_pca),
    "pca": Method("PCA", "sklearn", pca),
}  # fmt: skip


def report(**what: Any) -> None:
    print("@" + json.dumps(what), flush=True)


def peak_mb() -> float:
    """Return the most memory that this process has held so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e6 / 1024)


def cpu_seconds() -> float:
    """Return the computing of this process and of those it has waited for, on all cores."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def timed(work: Callable[[], Any], twice: bool = False) -> tuple[Any, float]:
    """Return what work returns and the seconds it takes, those of a second call if asked for."""
    for _ in range(2 if twice else 1):
        start = time.perf_counter()
        result = work()
        seconds = time.perf_counter() - start
    return result, seconds


def rows_of_glove() -> tuple[np.ndarray, np.ndarray]:
    """Return word vectors in random order (the file is sorted by frequency), some held out."""
    from twofold.datasets import load_npz

    X = load_npz("glove_341k")["X"]
    X = X[np.random.default_rng(0).permutation(len(X))].astype(np.float32)
    return X[HELD_OUT["glove"] :], X[: HELD_OUT["glove"]]


def rows_made_up(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of a smooth random surface in 50 dimensions with a little noise."""
    from twofold.datasets import make_random_manifold

    count = HELD_OUT["made-up"]
    Y = make_random_manifold(n + count, 2, 50, noise=0.05, random_state=0).Y.astype(np.float32)
    return Y[count:], Y[:count]


def files_of(data: str, n: int) -> tuple[Path, Path]:
    """Return where training and held-out rows are kept."""
    name = f"{data}_{n}" if data == "made-up" else data
    return FOLDER / f"{name}_train.npy", FOLDER / f"{name}_test.npy"


def prepare(data: str, n: int) -> None:
    """Write the rows of a data set, unless they are there."""
    files = files_of(data, n)
    if all(file.exists() for file in files):
        return
    if data == "mnist":
        from benchmarks.landmarks import rows_of_mnist

        parts = rows_of_mnist()
    else:
        parts = rows_of_glove() if data == "glove" else rows_made_up(n)
    for file, rows in zip(files, parts, strict=True):
        part = file.with_suffix(".part")
        with part.open("wb") as stream:
            np.save(stream, rows)
        part.replace(file)  # a file that is there is whole


def load(data: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first training rows and all held-out rows, and read nothing else."""
    train, test = files_of(data, n)
    return np.array(np.load(train, mmap_mode="r")[:n]), np.load(test)


def warm_up(method: Method, q: int, train: np.ndarray, test: np.ndarray) -> None:
    """Compile and import what a fit and the ways there and back need."""
    model = method.make(q)
    for name, value in method.warm_options.items():
        setattr(model, name, value)
    model.fit(train[: method.warm_rows])
    latent = model.transform(test[:20])
    # UMAP comes back through a Delaunay complex, whose size explodes with the dimension.
    if method.back == "all" or (method.back and q < 4):
        model.inverse_transform(latent)


def judge(model: Any, train: np.ndarray) -> float:
    """Return the trustworthiness of a fixed random part of the training rows."""
    from sklearn.manifold import trustworthiness

    chosen = np.random.default_rng(0).permutation(len(train))[:JUDGED]
    embedding = getattr(model, "embedding_", None)
    latent = model.transform(train[chosen]) if embedding is None else np.asarray(embedding)[chosen]
    return float(trustworthiness(train[chosen], latent, n_neighbors=NEIGHBORS))


def share_lost(test: np.ndarray, back: np.ndarray, mean: np.ndarray) -> float:
    """Return the squared error of rows that came back as a share of their variance."""
    lost, all_of_it = ((test - other).astype(np.float64) for other in (back, mean))
    return float((lost**2).sum() / (all_of_it**2).sum())


def come_back(model: Any, method: Method, latent: np.ndarray, test: np.ndarray, mean: np.ndarray):
    """Report times and errors of the way back.

    UMAP's takes 3 to 40 s for the same points, as chance will have it: its Delaunay complex moves
    points at random, and begins again, until they are in general position.
    """
    back, seconds = timed(lambda: model.inverse_transform(latent[:FEW]))
    if seconds < QUICK:
        back, again = timed(lambda: model.inverse_transform(latent[:FEW]))
        seconds = min(seconds, again)
    report(inverse_s=seconds, error_few=share_lost(test[:FEW], back, mean))
    if method.back == "all":
        report(error=share_lost(test, model.inverse_transform(latent), mean))


def run(data: str, n: int, q: int, method: str) -> None:
    """Measure."""
    how = METHODS[method]
    train, test = load(data, n)
    mean = train.mean(axis=0, dtype=np.float64).astype(np.float32)
    report(step="warm-up")
    warm_up(how, q, train, test)
    report(warm_mb=peak_mb(), step="fit")
    model, before = how.make(q), cpu_seconds()
    _, seconds = timed(lambda: model.fit(train))
    report(fit_s=seconds, cpu_s=cpu_seconds() - before, fit_mb=peak_mb(), step="transform")
    latent, seconds = timed(lambda: model.transform(test), twice=True)
    report(transform_s=seconds, peak_mb=peak_mb(), step="trustworthiness")
    report(trust=judge(model, train), step="inverse")
    if how.back:
        come_back(model, how, np.asarray(latent), test, mean)
    report(step="done")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asked = json.loads(sys.argv[1])
    if asked["method"] == "prepare":
        prepare(asked["data"], asked["n"])
    else:
        run(**asked)

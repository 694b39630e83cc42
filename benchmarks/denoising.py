"""Noise taken away: `reconstruct` beside PCA, kernel PCA, the Wiener filter and filters of images.

    python -m benchmarks.denoising [table ...]

Noise is added to rows; every method is fitted to noisy rows and cleans others. Figures are squared
errors against the rows without noise, as a share of the noise that was added: 1 is no gain. PCA
and scikit-learn's kernel PCA have the number of components and the width that do best against the
clean rows, and so has the Gaussian filter of images its width: nobody knows these in earnest. The
Wiener filter (one Gaussian of all rows, Ledoit and Wolf's covariance) and non-local means
(scikit-image) know the size of the noise. `UKR` estimates it; the last column is for a `UKR` that
knows it, too. Rows of real tables have noise of their own, which counts as part of the clean rows.
"""

from __future__ import annotations

import sys
import warnings
from itertools import product

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.ndimage import gaussian_filter
from sklearn import datasets as sklearn_datasets
from sklearn.covariance import ledoit_wolf
from sklearn.decomposition import PCA, KernelPCA

from benchmarks.filling_tables import linear, waves
from twofold import UKR
from twofold.datasets import load_npz

N_TRAIN, N_NEW = 400, 100
# Noise, in root mean squared deviations of a column.
SIZES = (0.25, 0.5)
NAMES = ("PCA, best", "kernel PCA, best", "Wiener, noise known", "Gaussian filter, best",
         "non-local means, noise known", "UKR, manifold", "UKR, with residuals",
         "UKR, noise known")  # fmt: skip


def images(name: str) -> np.ndarray:
    """Return rows of pixels of a data set."""
    rows = np.asarray(load_npz(name)["X"], dtype=np.float64)
    return rows.reshape(len(rows), -1)


# Tables, and the shape of a row where it is an image.
TABLES = {
    "digits": (lambda: sklearn_datasets.load_digits().data, (8, 8)),
    "usps": (lambda: images("usps"), (16, 16)),
    "frey faces": (lambda: images("frey_faces"), (28, 20)),
    "breast cancer": (lambda: standard(sklearn_datasets.load_breast_cancer().data), None),
    "oil flow": (lambda: standard(images("oil_flow")), None),
    "many bends": (lambda: waves(N_TRAIN + N_NEW, noise=0), None),
    "linear": (lambda: linear(N_TRAIN + N_NEW, noise=0), None),
}


def standard(Y: np.ndarray) -> np.ndarray:
    """Return columns with mean 0 and deviation 1."""
    return (Y - Y.mean(axis=0)) / Y.std(axis=0)


def best_pca(train: np.ndarray, noisy: np.ndarray, clean: np.ndarray) -> float:
    """Return the least error of PCA."""
    numbers = [q for q in (1, 2, 3, 4, 5, 8, 12, 20, 40, 80) if q < min(train.shape)]
    axes = [PCA(q, random_state=0).fit(train) for q in numbers]
    return min(
        float(((one.inverse_transform(one.transform(noisy)) - clean) ** 2).mean()) for one in axes
    )


def best_kernel_pca(train: np.ndarray, noisy: np.ndarray, clean: np.ndarray) -> float:
    """Return the least error of kernel PCA with pre-images by ridge regression."""
    usual = 1 / (2 * train.var(axis=0).sum())
    found = []
    for q, width in product((2, 5, 12, 40), (0.1, 0.5, 1, 4)):
        model = KernelPCA(
            q, kernel="rbf", gamma=width * usual, fit_inverse_transform=True, alpha=0.01
        ).fit(train)
        cleaned = model.inverse_transform(model.transform(noisy))
        found.append(float(((cleaned - clean) ** 2).mean()))
    return min(found)


def wiener(train: np.ndarray, noisy: np.ndarray, sigma: float) -> np.ndarray:
    """Return rows shrunk along the principal axes of all rows."""
    mean = train.mean(axis=0)
    values, axes = np.linalg.eigh(ledoit_wolf(train)[0])
    kept = np.maximum(1 - sigma**2 / values, 0)
    return mean + ((noisy - mean) @ axes * kept) @ axes.T


def best_gaussian_filter(noisy: np.ndarray, clean: np.ndarray, shape: tuple[int, int]) -> float:
    """Return the least error of images blurred by a Gaussian."""
    pictures = noisy.reshape(-1, *shape)
    blurred = [
        gaussian_filter(pictures, (0, width, width)) for width in (0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.5)
    ]
    return min(float(((one.reshape(clean.shape) - clean) ** 2).mean()) for one in blurred)


def non_local_means(noisy: np.ndarray, shape: tuple[int, int], sigma: float) -> np.ndarray | None:
    """Return each image cleaned by its own patches, None without scikit-image."""
    try:
        from skimage.restoration import denoise_nl_means
    except ImportError:
        return None
    cleaned = [
        denoise_nl_means(
            row.reshape(shape), patch_size=3, patch_distance=5, h=0.8 * sigma, sigma=sigma
        )
        for row in noisy
    ]
    return np.array(cleaned).reshape(noisy.shape)


def measure(name: str, size: float) -> tuple[dict[str, float], float]:
    """Return errors of all methods on one table, as shares of the noise.

    And how large `UKR` takes the noise to be, as a share of what was added.
    """
    load, shape = TABLES[name]
    random = np.random.default_rng(0)
    Y = np.asarray(load(), dtype=np.float64)
    Y = Y[random.permutation(len(Y))[: N_TRAIN + N_NEW]]
    sigma = size * float(np.sqrt(Y.var(axis=0).mean()))
    noisy = Y + sigma * random.normal(size=Y.shape)
    train, new, clean = noisy[:N_TRAIN], noisy[N_TRAIN:], Y[N_TRAIN:]
    model = UKR(random_state=0).fit(train)

    def error(cleaned: np.ndarray) -> float:
        return float(((cleaned - clean) ** 2).mean())

    found = {
        "PCA, best": best_pca(train, new, clean),
        "kernel PCA, best": best_kernel_pca(train, new, clean),
        "Wiener, noise known": error(wiener(train, new, sigma)),
        "UKR, manifold": error(model.reconstruct(new)),
        "UKR, with residuals": error(model.reconstruct(new, use_residuals=True)),
        "UKR, noise known": error(model.reconstruct(new, use_residuals=True, noise_std=sigma)),
    }
    if shape is not None:
        found["Gaussian filter, best"] = best_gaussian_filter(new, clean, shape)
        alone = non_local_means(new, shape, sigma)
        if alone is not None:
            found["non-local means, noise known"] = error(alone)
    shares = {who: value / sigma**2 for who, value in found.items()}
    return shares, float(model.noise_std()[0]) / sigma


def main() -> None:
    """Measure the tables asked for, all by default, and print what was found."""
    warnings.simplefilter("ignore")
    shown = Table(title="Squared error left, as a share of the noise")
    for title in ("table", "noise", *NAMES, "noise found / added"):
        shown.add_column(title, justify="left" if title == "table" else "right")
    for name, size in product(sys.argv[1:] or TABLES, SIZES):
        found, level = measure(name, size)
        cells = [f"{found[column]:.3f}" if column in found else "" for column in NAMES]
        shown.add_row(name, f"{size:g}", *cells, f"{level:.2f}")
        print(name, size, *cells, f"{level:.2f}", flush=True)
    Console(width=160).print(shown)


if __name__ == "__main__":
    main()

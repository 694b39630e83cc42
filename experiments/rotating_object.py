"""Pre-images of pictures of a turning object (Arias 2007, section 4.4).

The thesis takes 400 views of a teapot (26 x 34 pixels; noise 0.02 by its text, 0.01 by its
neighbour distances) and shows pictures only. Here are a synthetic pot of the same size with noise
0.01, and the 72 views of an object of COIL-20 (means over 4 x 4 pixels, values in [0, 1], noise
0.05). All views with noise are training rows; 50 of them are taken to the first q coordinates and
back.

Kernels: diffusion (α = 1, σ_k by the 3rd neighbour, coordinates extended with σ_h by the 5th and
ridge 0.01, as in the thesis) and Gaussian (3rd neighbour). Methods: constrained and unconstrained
pre-images, the affine combination of ten rows (LC), and ridge regression back (learned).

"Error" is the root mean square per pixel to the clean view; "turned" the median and the largest
angle, in degrees, between the nearest clean view of the result and the true one, over equal steps;
"poses" the number of different views among the results, of so many that went in. Searches end after
200 evaluations; "converged" is the share that ended before.

    python -m experiments.rotating_object [views] [COIL-20 object]

COIL-20 is the file coil20.npz with ``X``, ``y``, ``angle`` and ``image_shape``; see
twofold.datasets.load_npz. Without it, only the pot is shown.
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from experiments.preimage_toys import all_axes
from experiments.table import show
from twofold import UKR
from twofold.array_types import FloatArray
from twofold.datasets import load_npz, make_rotating_object
from twofold.features import RBF
from twofold.kernel_pca.data_dependent import Diffusion
from twofold.kernel_pca.landmark_rows import neighbor_scale
from twofold.kernel_pca.spectrum import Spectrum
from twofold.preimages import (
    Constrained,
    FeaturePoints,
    Gradient,
    Learned,
    LinearCombination,
)
from twofold.preimages.coordinates import GaussianCoordinates

KERNEL_NEIGHBOR, EXTENSION_NEIGHBOR = 3, 5
RIDGE = 0.01
N_DENOISED = 50
COIL_NOISE = 0.05
METHODS = {
    "constrained": Constrained(max_iter=200),
    "unconstrained": Gradient(criterion="projection", max_iter=200, restart=False),
    "LC": LinearCombination(10),
    "learned": Learned(),
}
CONCLUSIONS = {
    "diffusion, constrained, q = 1": "less noise, but turned; poses shared",
    "diffusion, constrained, q = 2": "best: rotation kept, more detail",
    "diffusion, unconstrained, q = 2": "very noisy, handle nearly erased",
    "diffusion, LC, q = 2": "the same picture for many views",
    "Gaussian, constrained, q = 2": "slightly better than unconstrained",
    "Gaussian, unconstrained, q = 2": "noisier, turned",
}


@dataclass(frozen=True)
class Views:
    """Pictures with noise, and without, at equal steps over 360 degrees."""

    name: str
    Y: FloatArray
    clean: FloatArray

    def measure(self, found: FloatArray, views: FloatArray) -> tuple[str, ...]:
        """Return error, angles turned and number of poses of pictures found for some views."""
        step = 360 / len(self.clean)
        nearest = cdist(found, self.clean).argmin(axis=1)
        turned = step * np.abs(nearest - views)
        turned = np.minimum(turned, 360 - turned)
        error = np.sqrt(((found - self.clean[views]) ** 2).mean())
        return (
            f"{error:.4f}",
            f"{np.median(turned):.3g}, {turned.max():.3g}",
            f"{len(np.unique(nearest))} of {len(views)}",
        )


def pot(n: int) -> Views:
    """Take pictures of the synthetic pot."""
    sample = make_rotating_object(n, noise=0.01, random_state=0)
    return Views(f"Pot, {n} views, noise 0.01", sample.Y, sample.clean)


def coil(number: int) -> Views:
    """Return an object of COIL-20, in smaller pictures, with noise."""
    data = load_npz("coil20")
    mine = np.flatnonzero(data["y"] == number)
    mine = mine[np.argsort(data["angle"][mine])]
    height, width = data["image_shape"]
    blocks = data["X"][mine].reshape(len(mine), height // 4, 4, width // 4, 4)
    clean = blocks.mean(axis=(2, 4)).reshape(len(mine), -1) / 255
    noise = COIL_NOISE * np.random.default_rng(0).normal(size=clean.shape)
    return Views(f"COIL-20, object {number}, noise {COIL_NOISE}", clean + noise, clean)


@dataclass(frozen=True)
class Extended:
    """Rows with their kernel matrix, its axes, and the coordinates of any row."""

    Y: FloatArray
    K: FloatArray
    axes: Spectrum
    map: GaussianCoordinates

    @classmethod
    def diffusion(cls, Y: FloatArray) -> Extended:
        """Extend a diffusion kernel by ridge regression."""
        K, axes = all_axes(Diffusion(scale=neighbor_scale(Y, KERNEL_NEIGHBOR)).matrix(Y))
        scale = neighbor_scale(Y, EXTENSION_NEIGHBOR)
        coordinates = GaussianCoordinates.by_ridge(Y, axes.latent, scale, RIDGE)
        return cls(Y, K, axes, coordinates)

    @classmethod
    def gaussian(cls, Y: FloatArray) -> Extended:
        """Take a Gaussian kernel, which needs no extension."""
        gamma = 0.5 / neighbor_scale(Y, KERNEL_NEIGHBOR) ** 2
        K, axes = all_axes(RBF(gamma).gram(Y, Y))
        return cls(Y, K, axes, GaussianCoordinates.of_kernel(Y, axes.axes, axes.mean_row, gamma))

    def projected(self, q: int, views: FloatArray) -> FeaturePoints:
        """Return the features of some rows, projected on the first q axes."""
        start = self.Y[views]
        return FeaturePoints.on_axes(
            None,
            self.Y,
            self.axes.axes[:, :q],
            self.map.first(q).values(start),
            start=start,
            map=self.map,
            row_coordinates=self.axes.latent,
            gram=self.K,
            n_jobs=1,
        )


def denoise(data: Views, dimensions: tuple[int, ...]) -> list[tuple[str, ...]]:
    """Return a row of the table for every kernel, method and number of coordinates."""
    views = np.unique(np.linspace(0, len(data.Y) - 1, N_DENOISED).astype(int))
    rows = [("noisy input", "-", *data.measure(data.Y[views], views), "-", "-")]
    models = {"diffusion": Extended.diffusion(data.Y), "Gaussian": Extended.gaussian(data.Y)}
    for kernel, model in models.items():
        for q in dimensions:
            points = model.projected(q, views)
            for name, method in METHODS.items():
                begin = time.perf_counter()
                found = method.find(points)
                seconds = f"{time.perf_counter() - begin:.1f}"
                label = f"{kernel}, {name}, q = {q}"
                figures = data.measure(found.Y, views)
                converged = f"{found.converged.mean():.2f}"
                rows.append((label, CONCLUSIONS.get(label, "-"), *figures, converged, seconds))
    begin = time.perf_counter()
    found_by_ukr = UKR(2, random_state=0, n_jobs=1).fit(data.Y).reconstruct(data.Y[views])
    seconds = f"{time.perf_counter() - begin:.1f}"
    rows.append(("UKR, q = 2", "-", *data.measure(found_by_ukr, views), "-", seconds))
    return rows


def main(n: int, number: int) -> None:
    """Print a table for the pot and one for an object of COIL-20."""
    # What a search that ends early comes to is in the table.
    warnings.simplefilter("ignore", ConvergenceWarning)
    header = ("kernel, method", "thesis", "error", "turned", "poses", "converged", "seconds")
    data = pot(n)
    show(data.name, header, denoise(data, (1, 2, 10)))
    try:
        data = coil(number)
    except FileNotFoundError as missing:
        print(missing)
        return
    show(data.name, header, denoise(data, (1, 2, 10)))


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(*given, *(400, 0)[len(given) :])

"""Pre-images of pictures of a turning object (Arias 2007, section 4.4).

The thesis takes 400 views of a teapot (26 x 34 pixels; noise 0.02 by its text, 0.01 by its
neighbour distances) and shows pictures only. Here are a synthetic pot of the same size with noise
0.01, and the 72 views of an object of COIL-20 (means over 4 x 4 pixels, values in [0, 1], noise
0.05). All views with noise are training rows; 50 of them are taken to the first q coordinates and
back.

Kernels: diffusion (α = 1, σ_k by the 3rd neighbour, coordinates extended with σ_h by the 5th and
ridge 0.01, as in the thesis) and Gaussian (3rd neighbour). Methods: constrained and unconstrained
pre-images, the affine combination of ten rows (LC), and ridge regression back (learned).

What the thesis says of its pictures is checked by these figures, too.

"Error" is the root mean square per pixel to the clean view; "turned" the median and the largest
angle, in degrees, between the nearest clean view of the result and the true one, over equal steps;
"poses" the number of different views among the results, of so many that went in. Searches end after
200 evaluations; "converged" is the share that ended before.

    python -m experiments.rotating_object [views] [COIL-20 object] [picture.png]

With the name of a picture, seven views of the pot go there, row by row as in figure 4.26.

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

from experiments import ledger
from experiments.preimage_toys import Extended
from experiments.table import show
from twofold import UKR
from twofold.array_types import FloatArray, IntArray
from twofold.datasets import load_npz, make_rotating_object
from twofold.neighborhoods.nearest import neighbor_scale
from twofold.preimages import Constrained, Gradient, Learned, LinearCombination

# Their mean distances give σ_k and σ_h.
NEIGHBORS = (3, 5)
N_DENOISED = 50
COIL_NOISE = 0.05
IMAGE_SHAPE = (26, 34)
METHODS = {
    "constrained": Constrained(max_iter=200),
    "unconstrained": Gradient(criterion="projection", max_iter=200, restart=False),
    "LC": LinearCombination(10),
    "learned": Learned(),
}
DIMENSIONS = (1, 2, 10)
CONCLUSIONS = {
    "diffusion, constrained, q = 1": "less noise, but turned; poses shared",
    "diffusion, constrained, q = 2": "best: rotation kept, more detail",
    "diffusion, unconstrained, q = 2": "very noisy, handle nearly erased",
    "diffusion, LC, q = 2": "the same picture for many views",
    "Gaussian, constrained, q = 2": "slightly better than unconstrained",
    "Gaussian, unconstrained, q = 2": "noisier, turned",
}


PICTURED = (
    "noisy input",
    "diffusion, constrained, q = 2",
    "diffusion, constrained, q = 1",
    "diffusion, unconstrained, q = 2",
    "diffusion, LC, q = 2",
    "diffusion, learned, q = 2",
)


@dataclass(frozen=True)
class Views:
    """Pictures with noise, and without, at equal steps over 360 degrees."""

    name: str
    Y: FloatArray
    clean: FloatArray

    def chosen(self) -> IntArray:
        """Return the views that are denoised."""
        return np.unique(np.linspace(0, len(self.Y) - 1, N_DENOISED).astype(int))

    def measure(self, found: FloatArray) -> Figures:
        """Return error, angles turned and number of poses of pictures found for the views."""
        views = self.chosen()
        nearest = cdist(found, self.clean).argmin(axis=1)
        turned = 360 / len(self.clean) * np.abs(nearest - views)
        turned = np.minimum(turned, 360 - turned)
        error = np.sqrt(((found - self.clean[views]) ** 2).mean())
        return Figures(float(error), turned, len(np.unique(nearest)))


@dataclass(frozen=True)
class Figures:
    """How good some pictures are."""

    error: float
    turned: FloatArray
    poses: int

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the table."""
        turned = f"{np.median(self.turned):.3g}, {self.turned.max():.3g}"
        return f"{self.error:.4f}", turned, f"{self.poses} of {len(self.turned)}"


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
class Result:
    """Pictures that a method found, and how the search went."""

    Y: FloatArray
    converged: str
    seconds: float


def denoise(data: Views) -> dict[str, Result]:
    """Return the pictures found by every kernel, method and number of coordinates."""
    views = data.chosen()
    results = {"noisy input": Result(data.Y[views], "-", 0.0)}
    kernel_scale, scale = (neighbor_scale(data.Y, n) for n in NEIGHBORS)
    models = {
        "diffusion": Extended.diffusion(data.Y, kernel_scale, scale),
        "Gaussian": Extended.gaussian(data.Y, kernel_scale),
    }
    for kernel, model in models.items():
        for q in DIMENSIONS:
            points = model.projected(q, data.Y[views])
            for name, method in METHODS.items():
                begin = time.process_time()
                found = method.find(points)
                seconds = time.process_time() - begin
                converged = f"{found.converged.mean():.2f}"
                results[f"{kernel}, {name}, q = {q}"] = Result(found.Y, converged, seconds)
    begin = time.process_time()
    by_ukr = UKR(2, random_state=0, n_jobs=1).fit(data.Y).reconstruct(data.Y[views])
    results["UKR, q = 2"] = Result(by_ukr, "-", time.process_time() - begin)
    return results


def claims(found: dict[str, Figures]) -> dict[str, bool]:
    """Return what the thesis says of its pictures, and whether the figures say so."""
    error = {name: figures.error for name, figures in found.items()}
    best, one = (f"diffusion, constrained, q = {q}" for q in (2, 1))
    free, lc = "diffusion, unconstrained, q = 2", "diffusion, LC, q = 2"
    gaussian, free_gaussian = "Gaussian, constrained, q = 2", "Gaussian, unconstrained, q = 2"
    return {
        "constrained: q = 2 better than q = 1": error[best] < error[one],
        "constrained, q = 2: turned less than q = 1": bool(
            found[best].turned.mean() < found[one].turned.mean()
        ),
        "constrained, q = 2: better than unconstrained": error[best] < error[free],
        "LC: one picture for many views": 2 * found[lc].poses < len(found[lc].turned),
        "LC: worse than constrained": error[best] < error[lc],
        "Gaussian: constrained better": error[gaussian] < error[free_gaussian],
        "diffusion better than Gaussian, constrained": error[best] < error[gaussian],
        "constrained, q = 2: less noise than before": error[best] < error["noisy input"],
    }


def report(data: Views) -> dict[str, Result]:
    """Print the figures of all methods and the claims; return the pictures."""
    results = denoise(data)
    found = {name: data.measure(result.Y) for name, result in results.items()}
    rows = [
        (
            name,
            CONCLUSIONS.get(name, "-"),
            *found[name].cells(),
            one.converged,
            f"{one.seconds:.1f}",
        )
        for name, one in results.items()
    ]
    header = ("kernel, method", "thesis", "error", "turned", "poses", "converged", "seconds")
    show(data.name, header, rows)
    for words, holds in claims(found).items():
        ledger.claim("Arias, Figures 4.23 to 4.30", f"{data.name}: {words}", holds, 1)
    best = found["UKR, q = 2"].error
    ledger.default("Arias, Figures 4.23 to 4.30", f"{data.name}, `UKR(2)`: error {best:.4f}")
    said: list[tuple[str, ...]] = [
        (words, "yes" if holds else "no") for words, holds in claims(found).items()
    ]
    show("Does it hold?", ("thesis", "here"), said)
    return results


def draw(results: dict[str, Result], path: str) -> None:
    """Save seven views by every pictured method."""
    from matplotlib import image

    height, width = IMAGE_SHAPE
    every = len(results["noisy input"].Y) // 7
    rows = [
        np.hstack([one.reshape(height, width) for one in results[name].Y[: 7 * every : every]])
        for name in PICTURED
    ]
    whole = np.kron(np.clip(np.vstack(rows), 0, 1), np.ones((3, 3)))
    image.imsave(path, whole, cmap="gray")


def main(n: int, number: int, picture: str | None) -> None:
    """Print the tables of the pot and of an object of COIL-20."""
    # What a search that ends early comes to is in the table.
    warnings.simplefilter("ignore", ConvergenceWarning)
    results = report(pot(n))
    if picture is not None:
        draw(results, picture)
    try:
        data = coil(number)
    except FileNotFoundError as missing:
        print(missing)
        return
    report(data)


if __name__ == "__main__":
    words = sys.argv[1:]
    main(
        int(words[0]) if words else 400,
        int(words[1]) if len(words) > 1 else 0,
        words[2] if len(words) > 2 else None,
    )

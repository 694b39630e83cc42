"""Noise removed from USPS digits: kernel PCA there and back, beside scikit-learn's, UKR and PCA.

Models learn from clean images (256 values in [-1, 1]) of the training part. Test images get noise:

- Gaussian, standard deviation 0.5 in every pixel;
- salt and pepper: 30 % of the pixels become -1 or 1, either with equal chance.

The settings of every method are those of the smallest error on 200 further images of the training
part with the same kind of noise. The grid is the same for all kernel PCAs: gamma in shares of the
default ``1 / (2 s²)`` (s the mean distance to the tenth nearest row), the number of components, and
the ridge of scikit-learn's map back, ``alpha``, and of ours by "learned"; for "learned, ridge by
PRESS" the model chooses it from the clean images alone. PCA has a finer choice of components. UKR
has the components given and is otherwise as it comes. Constrained searches end after 50
evaluations. Reported is the mean squared error per pixel on test images, and the seconds of all
fits and searches of a method.

    python -m experiments.usps_denoising [--rows 300] [--test 100] [--ukr-components 8]

The data is the file usps.npz with ``X``, ``y`` and ``n_train``; see twofold.datasets.load_npz.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as TheirKernelPCA
from sklearn.exceptions import ConvergenceWarning

from experiments.table import show
from twofold import UKR, KernelPCA
from twofold.array_types import FloatArray
from twofold.datasets import load_npz
from twofold.features import RBF
from twofold.kernel_pca.landmark_rows import neighbor_scale
from twofold.preimages import Constrained, Learned

GAUSSIAN_NOISE = 0.5
SALT_AND_PEPPER_SHARE = 0.3
N_VALIDATION = 200
GAMMA_SHARES = (0.03, 0.1, 0.3, 1.0)
COMPONENTS = (32, 128, 256)
PCA_COMPONENTS = (16, 32, 48, 64, 96)
ALPHAS = (1e-5, 1e-4, 1e-3, 0.01, 0.1)
NOISES = ("Gaussian", "salt and pepper")

Settings = dict[str, float]
Reconstruct = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Images:
    """Clean images and, by kind of noise, the same with noise."""

    clean: FloatArray
    noisy: dict[str, FloatArray]

    @classmethod
    def spoil(cls, clean: FloatArray, rng: np.random.Generator) -> Images:
        """Add both kinds of noise."""
        gaussian = clean + GAUSSIAN_NOISE * rng.normal(size=clean.shape)
        is_hit = rng.random(clean.shape) < SALT_AND_PEPPER_SHARE
        salted = np.where(is_hit, rng.choice([-1.0, 1.0], clean.shape), clean)
        return cls(clean, dict(zip(NOISES, (gaussian, salted), strict=True)))

    def error(self, reconstruct: Reconstruct, noise: str) -> float:
        """Return the mean squared error per pixel for one kind of noise."""
        return float(((reconstruct(self.noisy[noise]) - self.clean) ** 2).mean())

    def errors(self, reconstruct: Reconstruct) -> dict[str, float]:
        """Return the mean squared error per pixel by kind of noise."""
        return {noise: self.error(reconstruct, noise) for noise in NOISES}


def load(rows: int, n_test: int, seed: int = 0) -> tuple[FloatArray, Images, Images]:
    """Return training images, and images for validation and for the test."""
    data = load_npz("usps")
    Y, n_train = data["X"].astype(np.float64), int(data["n_train"])
    rng = np.random.default_rng(seed)
    chosen = rng.choice(n_train, rows + N_VALIDATION, replace=False)
    tested = n_train + rng.choice(len(Y) - n_train, n_test, replace=False)
    validation = Images.spoil(Y[chosen[rows:]], rng)
    return Y[chosen[:rows]], validation, Images.spoil(Y[tested], rng)


@dataclass(frozen=True)
class Method:
    """Something that removes noise, with the settings to choose from."""

    name: str
    fit: Callable[..., Reconstruct]
    settings: tuple[Settings, ...]


def combinations(**values: Iterable[float]) -> tuple[Settings, ...]:
    """Return all settings of a grid."""
    keys = tuple(values)
    return tuple(
        dict(zip(keys, chosen, strict=True)) for chosen in itertools.product(*values.values())
    )


def methods(Y: FloatArray, ukr_components: int) -> list[Method]:
    """Return all methods, to be fitted to clean rows Y."""
    unit = 1 / (2 * neighbor_scale(Y) ** 2)
    components = [q for q in COMPONENTS if q < len(Y)]
    axes = combinations(gamma=GAMMA_SHARES, q=components)
    with_ridge = combinations(gamma=GAMMA_SHARES, q=components, alpha=ALPHAS)

    def theirs(gamma: float, q: int, alpha: float) -> Reconstruct:
        model = TheirKernelPCA(
            q, kernel="rbf", gamma=gamma * unit, alpha=alpha, fit_inverse_transform=True
        ).fit(Y)
        return lambda rows: np.asarray(model.inverse_transform(model.transform(rows)))

    def ours(preimage: Any) -> Callable[..., Reconstruct]:
        def fit(gamma: float, q: int, alpha: float | None = None) -> Reconstruct:
            method = Learned(ridge=alpha) if alpha else preimage
            model = KernelPCA(q, kernel=RBF(gamma * unit), preimage=method, n_jobs=1)
            return model.fit(Y).reconstruct

        return fit

    def pca(q: int) -> Reconstruct:
        model = PCA(q).fit(Y)
        return lambda rows: np.asarray(model.inverse_transform(model.transform(rows)))

    def ukr(q: int) -> Reconstruct:
        return UKR(q, random_state=0, n_jobs=1).fit(Y).reconstruct

    return [
        Method("noisy input", lambda: lambda rows: rows, ({},)),
        Method("PCA", pca, combinations(q=PCA_COMPONENTS)),
        Method("scikit-learn's KernelPCA", theirs, with_ridge),
        Method("KernelPCA, learned", ours("learned"), with_ridge),
        Method("KernelPCA, learned, ridge by PRESS", ours("learned"), axes),
        Method("KernelPCA, linear_combination", ours("linear_combination"), axes),
        Method("KernelPCA, gradient", ours("gradient"), axes),
        Method("UKR", ukr, combinations(q=(ukr_components,))),
        Method("KernelPCA, constrained", ours(Constrained(max_iter=50)), axes),
    ]


def compare(method: Method, validation: Images, test: Images) -> tuple[str, ...]:
    """Return a row of the table: errors with the settings chosen by validation, and seconds."""
    start = time.perf_counter()
    tried = []
    if len(method.settings) > 1:
        tried = [validation.errors(method.fit(**settings)) for settings in method.settings]
    cells = []
    for noise in NOISES:
        best = min(range(len(tried)), key=lambda i: tried[i][noise]) if tried else 0
        settings = method.settings[best]
        error = test.error(method.fit(**settings), noise)
        chosen = ", ".join(f"{key} {value:g}" for key, value in settings.items())
        cells += [f"{error:.4f}", chosen or "-"]
    return (method.name, *cells, f"{time.perf_counter() - start:.0f}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--test", type=int, default=500)
    parser.add_argument("--ukr-components", type=int, default=8)
    options = parser.parse_args()
    # Searches at poor settings of the grid need not end.
    warnings.simplefilter("ignore", ConvergenceWarning)
    Y, validation, test = load(options.rows, options.test)
    rows = []
    for method in methods(Y, options.ukr_components):
        rows.append(compare(method, validation, test))
        print(*rows[-1], sep="  ", flush=True)
    header = ("method", "Gaussian", "chosen", "salt and pepper", "chosen", "seconds")
    title = f"USPS, {len(Y)} training and {len(test.clean)} test images: mean squared error"
    show(title, header, rows)


if __name__ == "__main__":
    main()

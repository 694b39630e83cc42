"""Noise removed from USPS digits: kernel PCA there and back, beside scikit-learn's, UKR and PCA.

Models learn from clean images (256 values in [-1, 1]) of the training part. Test images get noise:

- Gaussian, standard deviation 0.5 in every pixel;
- salt and pepper: 30 % of the pixels become -1 or 1, either with equal chance.

Every method has the settings of the smallest error on 200 further images of the training part with
the same kind of noise. All search alike: first a coarse grid, three values for each setting, then
the neighbours of the best until it has no better one. Steps are √10 in ``gamma`` (in shares of the
default ``1 / (2 s²)``, s the mean distance to the tenth nearest row) and in the ridge, which is
``alpha`` in scikit-learn, and 2 in the number of components and of neighbours. So no choice lies at
an end of its grid, but for the number of components, which ends at that of the rows, and a gamma of
1e-4, where the kernel is linear. Each search may take 80 fits for both kinds of noise; "*" marks a
choice with neighbours that were not tried, as the fits were used up. UKR and constrained
pre-images, which take longer, choose among a few numbers of components; constrained searches have a
gamma of 0.1 and go on for at most 20 evaluations. A draw takes about ten minutes of one core.

Reported is the mean squared error per pixel on the test images, mean and standard deviation over
draws of rows, images and noise, and the seconds of processor time of a draw for all fits. "Best of
KernelPCA" is whichever of our methods did best on the validation images.

    python -m experiments.usps_denoising [--rows 1000] [--test 500] [--draws 3] [--only NAME ...]

The data is the file usps.npz with ``X``, ``y`` and ``n_train``; see twofold.datasets.load_npz.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
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
from twofold.neighborhoods.nearest import neighbor_scale
from twofold.preimages import (
    Constrained,
    Direct,
    FixedPoint,
    Gradient,
    Learned,
    LinearCombination,
)

GAUSSIAN_NOISE = 0.5
SALT_AND_PEPPER_SHARE = 0.3
N_VALIDATION = 200
NOISES = ("Gaussian", "salt and pepper")
OURS, THEIRS = "KernelPCA, ", "scikit-learn's KernelPCA"
# Fits that a search may take.
MOST_FITS = 80
UKR_COMPONENTS = (3, 5, 8, 12)
CONSTRAINED_COMPONENTS = (8, 32)
# Of each stage of the fit: manifolds that follow the clean images longer take noise for shape.
UKR_STEPS = 10
# What a setting is at step 0, its factor from step to step, and the steps of the coarse grid.
AXES: dict[str, tuple[float, float, tuple[int, int, int]]] = {
    "gamma": (0.1, 10**0.5, (-1, 1, 3)),
    "q": (64, 2, (-1, 1, 3)),
    "alpha": (1e-3, 10**0.5, (-3, 0, 3)),
    "neighbors": (10, 2, (0, 1, 2)),
}
# Where a setting ends: kernels of such a gamma are linear but for rounding.
LEAST = {"gamma": 1e-4, "q": 1, "alpha": 0, "neighbors": 1}

Steps = tuple[int, ...]
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
    """Something that removes noise, with the names of its settings."""

    name: str
    fit: Callable[..., Reconstruct]
    axes: tuple[str, ...] = ()
    choices: tuple[int, ...] = ()
    """Numbers of components to choose from, where that is all there is to choose."""


def methods(Y: FloatArray) -> list[Method]:
    """Return all methods, to be fitted to clean rows Y."""
    unit = 1 / (2 * neighbor_scale(Y) ** 2)

    def theirs(gamma: float, q: int, alpha: float) -> Reconstruct:
        model = TheirKernelPCA(
            q, kernel="rbf", gamma=gamma * unit, alpha=alpha, fit_inverse_transform=True
        ).fit(Y)
        return lambda rows: np.asarray(model.inverse_transform(model.transform(rows)))

    def ours(preimage: Callable[..., Any]) -> Callable[..., Reconstruct]:
        def fit(gamma: float, q: int, **numbers: float) -> Reconstruct:
            method = preimage(**numbers)
            model = KernelPCA(q, kernel=RBF(gamma * unit), preimage=method, n_jobs=1)
            return model.fit(Y).reconstruct

        return fit

    def constrained(q: int) -> Reconstruct:
        return ours(lambda: Constrained(max_iter=20))(AXES["gamma"][0], q)

    def pca(q: int) -> Reconstruct:
        model = PCA(min(q, Y.shape[1])).fit(Y)
        return lambda rows: np.asarray(model.inverse_transform(model.transform(rows)))

    def ukr(q: int) -> Reconstruct:
        return UKR(q, init="pca", max_iter=UKR_STEPS, random_state=0, n_jobs=1).fit(Y).reconstruct

    common = ("gamma", "q")
    return [
        Method("noisy input", lambda: lambda rows: rows),
        Method("PCA", pca, ("q",)),
        Method(THEIRS, theirs, (*common, "alpha")),
        Method(OURS + "learned", ours(lambda alpha: Learned(ridge=alpha)), (*common, "alpha")),
        Method(OURS + "learned, ridge by PRESS", ours(Learned), common),
        Method(
            OURS + "linear_combination",
            ours(lambda neighbors: LinearCombination(int(neighbors))),
            (*common, "neighbors"),
        ),
        Method(OURS + "gradient", ours(Gradient), common),
        Method(OURS + "fixed_point", ours(FixedPoint), common),
        Method(OURS + "direct", ours(Direct), common),
        Method(OURS + "constrained", constrained, choices=CONSTRAINED_COMPONENTS),
        Method("UKR", ukr, choices=UKR_COMPONENTS),
    ]


@dataclass
class Search:
    """Settings of a method tried so far, with their errors on the validation images."""

    method: Method
    validation: Images
    n_rows: int
    errors: dict[Steps, dict[str, float]] = field(default_factory=dict)

    def settings(self, steps: Steps) -> dict[str, float]:
        """Return the numbers at a place of the grid."""
        if self.method.choices:
            return {"q": self.method.choices[steps[0]]}
        found = {}
        for name, step in zip(self.method.axes, steps, strict=True):
            unit, factor, _ = AXES[name]
            value = unit * factor**step
            found[name] = min(int(value), self.n_rows - 1) if name in ("q", "neighbors") else value
        return found

    def coarse(self) -> Iterator[Steps]:
        """Yield the places of the coarse grid."""
        if self.method.choices:
            yield from ((i,) for i in range(len(self.method.choices)))
            return
        yield from itertools.product(*(AXES[name][2] for name in self.method.axes))

    def neighbors(self, steps: Steps) -> Iterator[Steps]:
        """Yield the places one step off, where they mean something else."""
        if self.method.choices:
            return
        here = self.settings(steps)
        for i, name in enumerate(self.method.axes):
            for side in (-1, 1):
                there = (*steps[:i], steps[i] + side, *steps[i + 1 :])
                number = self.settings(there)[name]
                if number != here[name] and number >= LEAST[name]:
                    yield there

    def best(self, noise: str) -> Steps:
        """Return the place of the smallest error."""
        return min(self.errors, key=lambda steps: self.errors[steps][noise])

    def lacking(self, noise: str) -> list[Steps]:
        """Return the neighbours of the best place that were not tried."""
        return [there for there in self.neighbors(self.best(noise)) if there not in self.errors]

    def attempt(self, steps: Steps) -> dict[str, float]:
        """Return the errors of one fit."""
        try:
            reconstruct = self.method.fit(**self.settings(steps))
        except ValueError:  # features do not span so many directions, or the ridge is too small
            return dict.fromkeys(NOISES, np.inf)
        return {noise: self.validation.error(reconstruct, noise) for noise in NOISES}

    def run(self) -> Search:
        """Try the coarse grid, then neighbours of the best places."""
        places = list(self.coarse())
        while places:
            for steps in places:
                self.errors[steps] = self.attempt(steps)
            wanted = dict.fromkeys(there for noise in NOISES for there in self.lacking(noise))
            places = list(wanted)[: max(0, MOST_FITS - len(self.errors))]
        return self


@dataclass(frozen=True)
class Result:
    """Errors of a method in one draw, by kind of noise."""

    validation: dict[str, float]
    test: dict[str, float]
    chosen: dict[str, str]
    seconds: float


def compare(method: Method, validation: Images, test: Images, n_rows: int) -> Result:
    """Return the errors with the settings chosen by validation."""
    start = time.process_time()
    search = Search(method, validation, n_rows).run()
    best = {noise: search.best(noise) for noise in NOISES}
    chosen = {}
    for noise, steps in best.items():
        numbers = (f"{key} {value:.2g}" for key, value in search.settings(steps).items())
        chosen[noise] = ", ".join(numbers) + ("*" if search.lacking(noise) else "")
    fitted = {steps: method.fit(**search.settings(steps)) for steps in set(best.values())}
    errors = {noise: test.error(fitted[best[noise]], noise) for noise in NOISES}
    on_validation = {noise: search.errors[best[noise]][noise] for noise in NOISES}
    return Result(on_validation, errors, chosen, time.process_time() - start)


def best_of_ours(results: dict[str, Result]) -> Result:
    """Return what is the best of our methods on the validation images."""
    ours = {name: result for name, result in results.items() if name.startswith(OURS)}
    names = {n: min(ours, key=lambda name: ours[name].validation[n]) for n in NOISES}
    return Result(
        {n: ours[names[n]].validation[n] for n in NOISES},
        {n: ours[names[n]].test[n] for n in NOISES},
        {n: names[n].removeprefix(OURS) for n in NOISES},
        sum(result.seconds for result in ours.values()),
    )


def show_draws(draws: list[dict[str, Result]], title: str) -> None:
    """Print errors over draws, settings, and whether our best is ahead of scikit-learn's."""
    rows: list[tuple[str, ...]] = []
    choices: list[tuple[str, ...]] = []
    for name in draws[0]:
        results = [draw[name] for draw in draws]
        cells = []
        for noise in NOISES:
            errors = [result.test[noise] for result in results]
            cells.append(f"{np.mean(errors):.4f} ± {np.std(errors):.4f}")
            choices.append((name, noise, " | ".join(r.chosen[noise] or "-" for r in results)))
        rows.append((name, *cells, f"{np.mean([result.seconds for result in results]):.0f}"))
    show(title, ("method", *NOISES, "seconds"), rows)
    show("Chosen in each draw", ("method", "noise", "settings"), choices)
    if THEIRS not in draws[0] or "best of KernelPCA" not in draws[0]:
        return
    for noise in NOISES:
        pairs = [(d["best of KernelPCA"].test[noise], d[THEIRS].test[noise]) for d in draws]
        ahead = sum(a < b for a, b in pairs)
        figures = ", ".join(f"{a:.4f} : {b:.4f}" for a, b in pairs)
        print(f"{noise}: ours below scikit-learn's in {ahead} of {len(pairs)} draws ({figures})")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--test", type=int, default=500)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="seed of the first draw")
    parser.add_argument("--only", nargs="*", default=None, help="methods whose names end so")
    options = parser.parse_args()
    # Searches at poor settings of the grid need not end.
    warnings.simplefilter("ignore", ConvergenceWarning)
    draws: list[dict[str, Result]] = []
    for seed in range(options.first, options.first + options.draws):
        try:
            Y, validation, test = load(options.rows, options.test, seed)
        except FileNotFoundError as missing:
            print(missing)
            return
        results: dict[str, Result] = {}
        for method in methods(Y):
            if options.only is None or method.name.endswith(tuple(options.only)):
                found = compare(method, validation, test, len(Y))
                results[method.name] = found
                errors = (f"{found.test[n]:.4f} [{found.chosen[n]}]" for n in NOISES)
                print(seed, method.name, *errors, f"{found.seconds:.0f} s", sep="  ", flush=True)
        if any(name.startswith(OURS) for name in results):
            results["best of KernelPCA"] = best_of_ours(results)
        draws.append(results)
    show_draws(draws, f"USPS, {options.rows} training and {options.test} test images")


if __name__ == "__main__":
    main()

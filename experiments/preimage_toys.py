"""Extension and pre-images on toy data (Arias 2007, chapters 3 and 4).

The thesis shows pictures and histograms; "prototype" are figures of a reference code, single draws
where no spread is given.

1. Which sinusoid the thesis took: mean distances to the 5th, 10th, 20th and 30th neighbour. It
   names 0.52, 0.8 and 0.99 for the last three.
2. How far the extension reaches (figure 3.1): of the first coordinate's distance from its value at
   infinity, what is left 2 away from the curve.
3. Minima of PRESS in a one-dimensional regression (figure 3.2: from close starts 5.08, which
   overfits, and 5.62, which looks better).
4. Noise removed from a sinusoid of 300 rows by pre-images (figure 4.19), diffusion kernel with σ_k
   by the 20th neighbour, σ_h by the 30th, ridge 0.01. Root mean squares of the distance to the
   curve, to the clean row, and of the shift along the curve; the largest gap along it; and how many
   places there are, to one decimal.
5. The same, distances to the curve only, over scales and ridge, and with a Gaussian kernel.
6. A helix, a closed curve and a surface in three dimensions (figures 4.20 to 4.22).

    python -m experiments.preimage_toys [seeds]
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist, squareform

from experiments import ledger
from experiments.table import middle, show, spread
from twofold.array_types import FloatArray
from twofold.datasets.shapes import nearest_parameter
from twofold.features import RBF
from twofold.kernel_pca.data_dependent import Diffusion
from twofold.kernel_pca.spectrum import Spectrum, decompose
from twofold.neighborhoods.nearest import neighbor_scale
from twofold.preimages import Constrained, FeaturePoints, Gradient, Learned, LinearCombination
from twofold.preimages.coordinates import GaussianCoordinates
from twofold.preimages.press import CoordinatePress

# Rows, noise: mean distances to the 5th, 10th, 20th and 30th neighbour.
SCALES = {
    (300, 0.4): (0.267, 0.377, 0.535, 0.665),
    (300, 0.4**0.5): (0.348, 0.486, 0.683, 0.841),
    (150, 0.4): (0.380, 0.540, 0.792, 1.028),
    (200, 0.4): (0.324, 0.460, 0.667, 0.849),
}
# To curve, to clean, shift, largest gap, places.
DENOISING = {
    "input": (0.382, 0.538, 0, 0.23, 265),
    "nearest point of the curve": (0, 0.375, 0, 0.23, 98),
    "constrained, q = 1": (0.155, 0.418, 0.120, 0.34, 91),
    "unconstrained, q = 1": (0.096, 0.653, 0.553, 0.83, 37),
    "unconstrained, q = 10": (0.232, 0.449, 0.144, 0.34, 204),
    "combination, q = 1": (0.125, 1.167, 1.11, 1.96, 13),
    "combination, q = 10": (0.258, 0.458, 0.121, 0.51, 221),
    "ridge back, q = 1": (0.147, 0.407, 0.115, 0.14, 106),
    "ridge back, q = 10": (0.372, 0.529, 0.026, 0.15, 259),
}
# Rows, neighbour that gives σ_k, σ_h in units of s_30, ridge: distance of input, constrained and
# unconstrained pre-images, and how far these move the first coordinate, in its range.
SETTINGS = {
    (150, 20, 1.0, 0.01): (0.417, 0.232, 0.248, 0.0012, 0.24),
    (150, 20, 2.0, 0.01): (0.417, 0.280, 0.300, 0.0004, 0.23),
    (150, 10, 1.0, 0.01): (0.417, 0.227, 0.179, 0.0016, 0.30),
    (150, 5, 1.0, 0.01): (0.417, 0.238, 0.196, 0.0031, 0.64),
    (150, 20, 1.0, 1.0): (0.417, 0.338, 0.298, 0.0007, 0.26),
    (300, 20, 1.0, 0.01): (0.382, 0.154, 0.096, 0.0026, 0.50),
    (300, 20, 2.0, 0.01): (0.382, 0.156, 0.146, 0.0006, 0.48),
    (300, 10, 1.0, 0.01): (0.382, 0.187, 0.058, 0.0051, 0.70),
}
GAUSSIAN = (0.417, 0.237, 0.227, "-", 0.87)
# Neighbour that gives σ_k, and σ_h in units of s_30. The thesis names none; on the surface rows
# lie farther apart, and wider scales see nothing of its waves.
SPACE_SCALES = {"open curve": (20, 1.0), "closed curve": (20, 1.0), "surface": (5, 0.7)}
UNCONSTRAINED = Gradient("projection", restart=False)
NODES = np.linspace(-1.5, 2 * np.pi + 1.5, 400)
RIDGE = 0.01
# Coordinates below this share of the first's variance are left out.
RANK_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Sinusoid:
    """Rows of one period of a sinusoid, with noise in both columns."""

    Y: FloatArray
    clean: FloatArray

    @classmethod
    def draw(cls, m: int, noise: float, seed: int) -> Sinusoid:
        """Draw m rows."""
        rng = np.random.default_rng(seed)
        t = rng.uniform(0, 2 * np.pi, m)
        clean = np.column_stack([t, np.sin(t)])
        return cls(clean + noise * rng.normal(size=(m, 2)), clean)


def foot(Y: FloatArray) -> FloatArray:
    """Return the parameter (n,) of the nearest point of the sinusoid, which goes on at its ends."""

    def sq_dist(t: FloatArray, rows: FloatArray, /) -> FloatArray:
        return (rows[..., 0] - t) ** 2 + (rows[..., 1] - np.sin(t)) ** 2

    return nearest_parameter(sq_dist, Y, NODES)


def curve(t: FloatArray) -> FloatArray:
    """Return points (n, 2) of the sinusoid."""
    return np.column_stack([t, np.sin(t)])


def rms_distance(A: FloatArray, B: FloatArray) -> float:
    """Return the root mean square distance of rows to others."""
    return float(np.sqrt(((A - B) ** 2).sum(axis=1).mean()))


def show_scales(draws: int) -> None:
    """Print which draws have the thesis' neighbour distances."""
    rows = []
    for (m, noise), known in SCALES.items():
        found = [
            [neighbor_scale(Sinusoid.draw(m, noise, seed).Y, n) for seed in range(draws)]
            for n in (5, 10, 20, 30)
        ]
        cells = [f"{a} / {spread(b)}" for a, b in zip(known, found, strict=True)]
        rows.append((f"{m}, {noise:.2g}", *cells))
    rows.append(("thesis", "-", "0.52", "0.8", "0.99"))
    header = ("rows, noise", "s_5", "s_10", "s_20", "s_30")
    show(f"Neighbour distances, prototype / measured, {draws} draws", header, rows)


def all_axes(K: FloatArray) -> Spectrum:
    """Return all principal axes above rounding of a kernel matrix."""
    values = np.linalg.eigvalsh(K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean())
    rank = int((values > RANK_TOLERANCE * values[-1]).sum())
    return decompose(K.copy(), np.ones(len(K)), rank, "dense")


def beside_curve() -> tuple[FloatArray, list[FloatArray]]:
    """Return places t along the curve, and the rows 2 away from it there, on either side."""
    t = np.linspace(0.5, 2 * np.pi - 0.5, 60)
    normal = np.column_stack([-np.cos(t), np.ones(60)]) / np.hypot(1, np.cos(t))[:, None]
    return t, [curve(t) + side * normal for side in (-2, 2)]


def reach(Y: FloatArray, neighbor: int) -> tuple[float, float, float]:
    """Return σ_h, the share of x_1 left 2 away from the curve, and its order along the curve."""
    axes = all_axes(Diffusion(scale=neighbor_scale(Y, 10)).matrix(Y))
    scale = neighbor_scale(Y, neighbor)
    first = GaussianCoordinates.by_ridge(Y, axes.latent[:, :1], scale, RIDGE)
    t, sides = beside_curve()
    on = first.values(curve(t))[:, 0] - first.offset
    off = np.concatenate([first.values(rows)[:, 0] for rows in sides])
    rises = np.mean(np.diff(on) > 0)
    left = np.abs(off - first.offset).mean() / np.abs(on).mean()
    return scale, float(left), float(max(rises, 1 - rises))


def show_reach(seeds: int) -> None:
    """Print that a wider Gaussian reaches farther."""
    rows, left = [], {}
    for neighbor, reported in ((10, "0.52, near"), (30, "0.99, farther")):
        found = [reach(Sinusoid.draw(150, 0.4, seed).Y, neighbor) for seed in range(seeds)]
        cells = [middle(list(column), 2) for column in zip(*found, strict=True)]
        rows.append((f"s_{neighbor}", reported, *cells))
        scales, left[neighbor], _ = zip(*found, strict=True)
        known = float(reported.partition(",")[0])
        ledger.figure("Arias, Figure 3.1", f"mean distance to neighbour {neighbor}", known, scales)
    held = np.less(left[10], left[30]).sum()
    ledger.claim("Arias, Figure 3.1", "a wider Gaussian extends farther", held, seeds)
    header = ("σ_h", "reported", "σ_h measured", "x_1 left at distance 2", "steps in one direction")
    show("Reach of the extension, 150 rows, σ_k = s_10", header, rows)


def minima(m: int, seed: int) -> list[tuple[float, float, float]]:
    """Return PRESS, σ_h and the true error at the minima that descents from 12 starts reach."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 2 * np.pi, m))
    y = np.sin(x) + 0.3 * rng.normal(size=m)
    criterion = CoordinatePress(squareform(pdist(x[:, None], "sqeuclidean")), y[:, None])

    def log_error(logs: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = criterion.value_and_gradient(*np.exp(logs))
        return float(np.log(value)), gradient * np.exp(logs) / value

    grid = np.linspace(0, 2 * np.pi, 200)
    bounds = list(zip(np.log([0.01, 1e-6]), np.log([20, 10]), strict=True))
    found: list[tuple[float, float, float]] = []
    for start in itertools.product((0.05, 0.1, 0.2, 0.5, 1.0, 3.0), (0.01, 0.5)):
        end = minimize(log_error, np.log(start), jac=True, method="L-BFGS-B", bounds=bounds)
        scale, ridge = np.exp(end.x)
        fit = GaussianCoordinates.by_ridge(x[:, None], y[:, None], scale, ridge)
        error = float(np.sqrt(np.mean((fit.values(grid[:, None])[:, 0] - np.sin(grid)) ** 2)))
        press = float(np.exp(end.fun) * ((y - y.mean()) ** 2).sum())
        if all(abs(press - other) > 0.01 * other for other, *_ in found):
            found.append((press, float(scale), error))
    return sorted(found)


def show_minima(draws: int) -> None:
    """Print how often PRESS has several minima, and what its lowest is worth then."""
    rows, n_several, overfits = [], 0, 0
    for m in (20, 40, 60):
        ends = [minima(m, seed) for seed in range(draws)]
        several = [found for found in ends if len(found) > 1]
        # Of the other minima the widest is the one that "looks better" in the thesis' figure.
        pairs = [(found[0], max(found[1:], key=lambda end: end[1])) for found in several]
        cells = [
            " and ".join(
                f"{np.median([end[k] for end in side]):.3g}" for side in zip(*pairs, strict=True)
            )
            for k in range(3)
        ]
        n_several += len(several)
        overfits += sum(low[2] > wide[2] for low, wide in pairs)
        rows.append((str(m), f"{len(several)} of {draws}", *(cells if pairs else ("-",) * 3)))
    place = "Arias, Figure 3.2"
    ledger.claim(place, "PRESS has several minima on some samples", n_several > 0, 1)
    # The thesis shows one sample, and concludes that PRESS "does not guarantee" a good fit.
    words = f"on some the lowest overfits, and a wider one is better: {overfits} of {n_several}"
    ledger.claim(place, words, overfits > 0, 1)
    header = ("points", "several minima", "PRESS: lowest, widest", "σ_h", "error to the true curve")
    show("Minima of PRESS, noisy sine (reported: 5.08 and 5.62)", header, rows)


@dataclass(frozen=True)
class Extended:
    """Rows with their kernel (None for one without values elsewhere) and coordinates of any row."""

    kernel: RBF | None
    Y: FloatArray
    K: FloatArray
    axes: Spectrum
    map: GaussianCoordinates

    @classmethod
    def diffusion(
        cls, Y: FloatArray, kernel_scale: float, scale: float, ridge: float = RIDGE
    ) -> Extended:
        """Take a diffusion kernel of scale σ_k, its coordinates extended with scale σ_h."""
        K = Diffusion(scale=kernel_scale).matrix(Y)
        axes = all_axes(K)
        return cls(None, Y, K, axes, GaussianCoordinates.by_ridge(Y, axes.latent, scale, ridge))

    @classmethod
    def gaussian(cls, Y: FloatArray, scale: float) -> Extended:
        """Take a Gaussian kernel, which needs no extension."""
        kernel = RBF(0.5 / scale**2)
        K = kernel.gram(Y, Y)
        axes = all_axes(K)
        coordinates = GaussianCoordinates.of_kernel(Y, axes.axes, axes.mean_row, kernel.number())
        return cls(kernel, Y, K, axes, coordinates)

    def projected(self, q: int, rows: FloatArray | None = None) -> FeaturePoints:
        """Return the features of rows, all if not given, projected on the first q axes."""
        rows = self.Y if rows is None else rows
        return FeaturePoints.on_axes(
            self.kernel,
            self.Y,
            self.axes.axes[:, :q],
            self.map.values(rows)[:, :q],
            start=rows,
            map=self.map,
            row_coordinates=self.axes.latent,
            gram=self.K,
            n_jobs=1,
        )

    def drift(self, Y: FloatArray) -> float:
        """Return how far the first coordinate moved at most, in its range."""
        before, after = (self.map.values(rows)[:, :1] for rows in (self.Y, Y))
        return float(np.abs(after - before).max() / np.ptp(before))


def by_neighbors(
    Y: FloatArray, neighbor: int = 20, width: float = 1.0, ridge: float = RIDGE
) -> Extended:
    """Extend a diffusion kernel; σ_h is `width` times the distance to the 30th neighbour."""
    return Extended.diffusion(Y, neighbor_scale(Y, neighbor), width * neighbor_scale(Y, 30), ridge)


def preimages(Y: FloatArray) -> dict[str, tuple[FloatArray, float]]:
    """Return the denoised rows of every method, with the share of searches that converged."""
    model = by_neighbors(Y)
    found = {}
    for q in (1, 10):
        points = model.projected(q)
        unit = 2 * neighbor_scale(model.axes.latent[:, :q], 10)
        methods = {
            "constrained": Constrained(),
            "unconstrained": UNCONSTRAINED,
            "combination": LinearCombination(10),
            "ridge back": Learned(scale=unit, ridge=0.1),
            "ridge back, by PRESS": Learned(),
        }
        for name, method in methods.items():
            if name != "constrained" or q == 1:  # two columns cannot hold ten constraints
                images = method.find(points)
                found[f"{name}, q = {q}"] = images.Y, float(images.converged.mean())
    return found


def measure(data: Sinusoid, Y: FloatArray) -> tuple[float, float, float, float, float]:
    """Return distance to curve and to clean rows, shift, largest gap, and number of places."""
    before, after = foot(data.Y), foot(Y)
    return (
        rms_distance(Y, curve(after)),
        rms_distance(Y, data.clean),
        float(np.sqrt(((after - before) ** 2).mean())),
        float(np.diff(np.sort(after)).max()),
        float(len(np.unique(np.round(Y, 1), axis=0))),
    )


def show_denoising(seeds: int) -> None:
    """Print the distances that pre-images leave."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for seed in range(seeds):
        data = Sinusoid.draw(300, 0.4, seed)
        images = {
            "input": (data.Y, 1.0),
            "nearest point of the curve": (curve(foot(data.Y)), 1.0),
            **preimages(data.Y),
        }
        for name, (Y, converged) in images.items():
            found.setdefault(name, []).append((*measure(data, Y), converged))
    rows, clean = [], {}
    for name, figures in found.items():
        known = DENOISING.get(name, ("-",) * 5)
        columns = list(zip(*figures, strict=True))
        clean[name] = np.array(columns[1])
        cells = [f"{a} / {np.median(b):.3g}" for a, b in zip(known, columns[:5], strict=True)]
        rows.append((name, *cells, f"{np.mean(columns[5]):.2f}"))
    place, best = "Arias, Figures 4.19 to 4.22", clean["constrained, q = 1"]
    held = (best < clean["input"]).sum()
    ledger.claim(place, "sinusoid: constrained pre-images come nearer to clean rows", held, seeds)
    held = (best < clean["unconstrained, q = 1"]).sum()
    ledger.claim(place, "sinusoid: constrained better than unconstrained", held, seeds)
    header = ("method", "to curve", "to clean", "shift", "gap", "places", "converged")
    show(f"Denoising, prototype / measured (median of {seeds} draws)", header, rows)


def compared(model: Extended) -> list[float]:
    """Return distances of input, constrained and unconstrained pre-images, and their drifts."""
    constrained, free = (m.find(model.projected(1)).Y for m in (Constrained(), UNCONSTRAINED))
    distances = [rms_distance(Y, curve(foot(Y))) for Y in (model.Y, constrained, free)]
    return [*distances, model.drift(constrained), model.drift(free)]


def show_settings(seeds: int) -> None:
    """Print what scales and ridge do to the denoising."""
    rows = []
    for setting, known in SETTINGS.items():
        draws = [Sinusoid.draw(setting[0], 0.4, seed) for seed in range(seeds)]
        models = [by_neighbors(data.Y, *setting[1:]) for data in draws]
        found = np.median([compared(model) for model in models], axis=0)
        m, neighbor, width, ridge = setting
        cells = [f"{a} / {b:.3g}" for a, b in zip(known, found, strict=True)]
        rows.append((f"{m}", f"s_{neighbor}", f"{width:g} s_30", f"{ridge:g}", *cells))
    draws = [Sinusoid.draw(150, 0.4, seed) for seed in range(seeds)]
    gaussians = [Extended.gaussian(data.Y, neighbor_scale(data.Y, 10)) for data in draws]
    found = np.median([compared(m) for m in gaussians], axis=0)
    cells = [f"{a} / {b:.3g}" for a, b in zip(GAUSSIAN, found, strict=True)]
    rows.append(("150", "Gaussian", "s_10", "-", *cells))
    header = ("rows", "σ_k", "σ_h", "ridge", "input", "constr.", "free", "drift", "drift, free")
    show(f"To the curve, q = 1, prototype / measured (median of {seeds} draws)", header, rows)


SHAPES: dict[str, tuple[int, Callable[[FloatArray], tuple[FloatArray, ...]]]] = {
    "open curve": (1, lambda u: (2 * np.cos(u[0]), 2 * np.sin(u[0]), 0.7 * u[0])),
    "closed curve": (1, lambda u: (2 * np.cos(u[0]), 2 * np.sin(u[0]), np.sin(2 * u[0]))),
    "surface": (2, lambda u: (u[0], u[1], np.sin(u[0]))),
}


def space_sets(seed: int) -> Iterator[tuple[str, FloatArray, FloatArray, FloatArray]]:
    """Yield the name, noisy rows, clean rows and many points of every shape."""
    rng = np.random.default_rng(seed)
    for name, (q, shape) in SHAPES.items():
        clean = np.column_stack(shape(rng.uniform(0, 2 * np.pi, (q, 400))))
        side = np.linspace(0, 2 * np.pi, 8000 if q == 1 else 200)
        fine = np.column_stack(shape(np.array([u.ravel() for u in np.meshgrid(*[side] * q)])))
        yield name, clean + 0.2 * rng.normal(size=clean.shape), clean, fine


def show_space(seeds: int) -> None:
    """Print the denoising of curves and a surface in three dimensions."""
    found: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for seed in range(seeds):
        for name, Y, clean, fine in space_sets(seed):
            truth, model = cKDTree(fine), by_neighbors(Y, *SPACE_SCALES[name])
            images = {("input", "-"): Y}
            for q in (1, 2):
                images["constrained", str(q)] = Constrained().find(model.projected(q)).Y
                images["unconstrained", str(q)] = UNCONSTRAINED.find(model.projected(q)).Y
            for method, image in images.items():
                gaps = float(np.sqrt(np.mean(truth.query(image)[0] ** 2)))
                found.setdefault((name, *method), []).append((gaps, rms_distance(image, clean)))
    rows = [
        (*key, *(middle(list(column), 2) for column in zip(*figures, strict=True)))
        for key, figures in found.items()
    ]
    for name, (q, _) in SHAPES.items():
        before, after = (
            np.array(found[name, *method])[:, 1]
            for method in (("input", "-"), ("constrained", str(q)))
        )
        words = f"{name}: constrained pre-images come nearer to clean rows"
        ledger.claim("Arias, Figures 4.19 to 4.22", words, (after < before).sum(), seeds)
    title = f"Noise 0.2 in three dimensions, 400 rows, {seeds} draws (reported: pictures)"
    show(title, ("data", "method", "q", "to the manifold", "to clean"), rows)


def main(seeds: int) -> None:
    """Print all tables."""
    show_scales(10)
    show_reach(seeds)
    show_minima(20)
    show_denoising(seeds)
    show_settings(seeds)
    show_space(seeds)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4)

"""Which scale and ridge extend a diffusion kernel best (Arias 2007, sections 3.3, appendix C.3).

Kernel ridge regression with a Gaussian of scale σ_h extends the diffusion kernel (α = 1) of scale
σ_k to new rows. Three leave-one-out errors are to choose σ_h and the ridge:

1. PRESS and RK-PRESS over σ_h on a slice of fixed ridge, for the thesis' data: two clusters in two
   and in ten dimensions (100 + 100 rows around (∓1, 0, …), standard deviations 0.5 and 0.1, σ_k the
   mean distance to the nearest neighbour) and a thick square (its geometry is not given: 200 rows
   on the outline of [-1, 1]² with noise 0.05). "with (i, i)" counts the entries that leaving out
   makes unknown, which is what the thesis' maps show: only so does PRESS bound RK-PRESS, as it
   says. What it says of the minimum of PRESS is therefore judged by the same PRESS. `PROTOTYPE` are
   figures of one draw of a reference code.
2. The conclusions of the thesis beside what the same maps, 8 scales by 8 ridges, say here.
3. PRESS of the coordinates themselves, relative to their variance, on a noisy sinusoid of 300 rows,
   σ_k by the 20th neighbour, ridge 0.01; `COORDINATES` is the reference code's.

    python -m experiments.press [seeds]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist, squareform

from experiments import ledger
from experiments.table import middle, show
from twofold.kernel_pca.data_dependent import Diffusion
from twofold.kernel_pca.spectrum import decompose
from twofold.neighborhoods.nearest import neighbor_scale
from twofold.preimages.press import (
    CoordinatePress,
    Criterion,
    KernelPress,
    RebuiltKernelPress,
    choose,
)

RATIOS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
RIDGES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
NAMES = ("PRESS", "with (i, i)", "RK-PRESS")
# The square's rows lie this far from its outline.
SQUARE_NOISE = 0.05


def two_clusters(D: int) -> Callable[[int], np.ndarray]:
    """Return a function of the seed that draws 100 + 100 rows in D dimensions."""

    def draw(seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        centre = np.zeros(D)
        centre[0] = 1
        wide = rng.normal(-centre, 0.5, (100, D))
        return np.vstack([wide, rng.normal(centre, 0.1, (100, D))])

    return draw


def thick_square(seed: int) -> np.ndarray:
    """Draw 200 rows near the outline of a square."""
    rng = np.random.default_rng(seed)
    along, side = rng.uniform(-1, 1, 200), rng.integers(4, size=200)
    across = np.where(side < 2, -1.0, 1.0)
    upright = side % 2 == 0
    Y = np.column_stack([np.where(upright, across, along), np.where(upright, along, across)])
    return Y + SQUARE_NOISE * rng.normal(size=Y.shape)


@dataclass(frozen=True)
class Case:
    """A data set with the thesis' slice through its map."""

    draw: Callable[[int], np.ndarray]
    neighbor: int
    ridge: float
    kernel_scale: str
    """The thesis' σ_k."""


CASES = {
    "clusters, 2-D": Case(two_clusters(2), 1, 1.58e-7, "0.0658"),
    "clusters, 10-D": Case(two_clusters(10), 1, 1e-3, "0.7285"),
    "square, σ_k = s_1": Case(thick_square, 1, 7.35e-5, "not given"),
    "square, σ_k = s_8": Case(thick_square, 8, 0.4, "0.12"),
}
# Case, scale: PRESS, PRESS with (i, i), RK-PRESS.
PROTOTYPE = {
    ("clusters, 2-D", 0.5): (8.1e-5, 1.15e-3, 7.3e-5),
    ("clusters, 2-D", 1.0): (1.2e-5, 9.4e-4, 5.2e-5),
    ("clusters, 2-D", 1.5): (7.1e-5, 8.7e-4, 1.7e-4),
    ("clusters, 2-D", 2.0): (3.1e-4, 1.0e-3, 4.8e-4),
    ("clusters, 2-D", 3.0): (1.2e-2, 1.3e-2, 1.6e-2),
    ("clusters, 2-D", 5.0): (1.3, 1.3, 0.60),
    ("clusters, 10-D", 1.0): (7.3e-6, 3.65e-4, 8.0e-6),
}
COORDINATE_RATIOS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0)
COORDINATES = {
    "coordinate 1": (0.135, 0.0360, 0.0176, 0.0098, 0.0061, 0.0041, 0.0027, 0.0024, 0.0030),
    "coordinates 1-5": (0.181, 0.0812, 0.0517, 0.0344, 0.0253, 0.0207, 0.0187, 0.0190, 0.0316),
    "kernel": (0.121, 0.0254, 0.0075, 0.0028, 0.0016, 0.0018, 0.0057, 0.0338, 0.115),
}


def sinusoid(m: int, seed: int, noise: float = 0.4) -> np.ndarray:
    """Draw rows from one period of a sinusoid, with noise in both columns."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 2 * np.pi, m)
    return np.column_stack([t, np.sin(t)]) + noise * rng.normal(size=(m, 2))


def criteria(Y: np.ndarray, kernel: Diffusion) -> tuple[Criterion, Criterion, Criterion]:
    """Return PRESS, PRESS with (i, i), and RK-PRESS of a kernel."""
    sq_dists, K = squareform(pdist(Y, "sqeuclidean")), kernel.matrix(Y)
    return (
        KernelPress(sq_dists, K),
        KernelPress(sq_dists, K, include_diagonal=True),
        RebuiltKernelPress(sq_dists, Y, kernel.matrix),
    )


class Maps:
    """Errors of one draw: (3, scales, ridges), on the slice (3, scales), and at chosen numbers."""

    def __init__(self, case: Case, seed: int) -> None:
        Y = case.draw(seed)
        self.kernel_scale = neighbor_scale(Y, case.neighbor)
        self.criteria = criteria(Y, Diffusion(scale=self.kernel_scale))
        self.maps = np.array([[self.row(c, r) for r in RATIOS] for c in self.criteria])
        self.slice = np.array([[self.at(c, r, case.ridge) for r in RATIOS] for c in self.criteria])

    def at(self, criterion: Criterion, ratio: float, ridge: float) -> float:
        """Return one error."""
        return criterion.value_and_gradient(ratio * self.kernel_scale, ridge)[0]

    def row(self, criterion: Criterion, ratio: float) -> list[float]:
        """Return the errors at all ridges."""
        return [self.at(criterion, ratio, ridge) for ridge in RIDGES]


def show_slices(maps: dict[str, list[Maps]]) -> None:
    """Print the three errors along σ_h."""
    rows = []
    for name, draws in maps.items():
        for j, ratio in enumerate(RATIOS):
            known = PROTOTYPE.get((name, ratio), ("",) * 3)
            cells = []
            for k, value in enumerate(known):
                found = np.exp(np.mean([np.log(draw.slice[k, j]) for draw in draws]))
                cells.append(f"{value or '-'} / {found:.2g}")
            rows.append((name, f"{CASES[name].ridge:g}", f"{ratio:g}", *cells))
    header = ("data", "ridge", "σ_h / σ_k", *NAMES)
    show("Errors on a slice, prototype / measured (geometric mean of the draws)", header, rows)


def claims(draw: Maps) -> dict[str, float]:
    """Return what the maps of one draw say to the thesis' conclusions."""
    press, with_own, rebuilt = draw.maps
    at_kernel_scale = RATIOS.index(1.0)
    usual = slice(RIDGES.index(1e-6), RIDGES.index(1e-2) + 1)
    found, counted = (choose(criterion, draw.kernel_scale) for criterion in draw.criteria[:2])
    there, there_counted = (
        draw.criteria[2].value_and_gradient(end.scale, end.ridge)[0] for end in (found, counted)
    )
    ridge_of_rebuilt = RIDGES[int(rebuilt[at_kernel_scale].argmin())]
    return {
        "PRESS ≥ RK-PRESS": float((press >= rebuilt).mean()),
        "… with (i, i)": float((with_own >= rebuilt).mean()),
        "PRESS / RK-PRESS at σ_h = σ_k": press[at_kernel_scale, 4] / rebuilt[at_kernel_scale, 4],
        "… with (i, i)  ": with_own[at_kernel_scale, 4] / rebuilt[at_kernel_scale, 4],
        "PRESS: best σ_h / σ_k": found.scale / draw.kernel_scale,
        "PRESS: best ridge": found.ridge,
        "RK-PRESS: best σ_h / σ_k on the slice": RATIOS[int(draw.slice[2].argmin())],
        "RK-PRESS there / at σ_h = σ_k, ridge 0.01": there / rebuilt[at_kernel_scale, 5],
        "PRESS with (i, i): best σ_h / σ_k": counted.scale / draw.kernel_scale,
        WORSE: there_counted / rebuilt[at_kernel_scale, 5],
        "RK-PRESS, ridge 1e-6…1e-2: largest / smallest": float(
            rebuilt[at_kernel_scale, usual].max() / rebuilt[at_kernel_scale, usual].min()
        ),
        "RK-PRESS: best ridge at σ_h = σ_k": ridge_of_rebuilt,
    }


WORSE = "RK-PRESS at that / at σ_h = σ_k, ridge 0.01"
REPORTED = {
    "PRESS ≥ RK-PRESS": "everywhere",
    "… with (i, i)": "everywhere",
    "PRESS / RK-PRESS at σ_h = σ_k": "10-D: about 100",
    "… with (i, i)  ": "10-D: about 100",
    "PRESS: best σ_h / σ_k": "not 1",
    "PRESS: best ridge": "-",
    "RK-PRESS: best σ_h / σ_k on the slice": "1",
    "RK-PRESS there / at σ_h = σ_k, ridge 0.01": "above 1",
    "PRESS with (i, i): best σ_h / σ_k": "not 1",
    WORSE: "above 1",
    "RK-PRESS, ridge 1e-6…1e-2: largest / smallest": "flat",
    "RK-PRESS: best ridge at σ_h = σ_k": "0.1 to 1",
}


def note_claims(found: dict[str, list[dict[str, float]]]) -> None:
    """Put the conclusions of the thesis into the ledger."""
    draws = [draw for case in found.values() for draw in case]
    best, flat = (
        "RK-PRESS: best σ_h / σ_k on the slice",
        "RK-PRESS, ridge 1e-6…1e-2: largest / smallest",
    )
    conclusions = {
        "RK-PRESS has its minimum near σ_h = σ_k": lambda d: 0.5 <= d[best] <= 1.5,
        "RK-PRESS is flat for ridges of 1e-6 to 1e-2": lambda d: d[flat] < 1.5,
        "PRESS bounds RK-PRESS": lambda d: d["… with (i, i)"] > 0.9,
        "the minimum of PRESS is worse than σ_h = σ_k": lambda d: d[WORSE] > 1,
    }
    for words, holds in conclusions.items():
        ledger.claim("Arias, appendix C.3", words, sum(map(holds, draws)), len(draws))


def show_claims(maps: dict[str, list[Maps]]) -> None:
    """Print the conclusions beside the maps."""
    found = {name: [claims(draw) for draw in draws] for name, draws in maps.items()}
    rows = []
    scales = [middle([draw.kernel_scale for draw in draws]) for draws in maps.values()]
    rows.append(("σ_k", ", ".join(case.kernel_scale for case in CASES.values()), *scales))
    note_claims(found)
    for claim, reported in REPORTED.items():
        cells = [middle([draw[claim] for draw in draws], 2) for draws in found.values()]
        rows.append((claim, reported, *cells))
    show("Conclusions: reported, and measured", ("", "reported", *maps), rows)


def relative_errors(Y: np.ndarray) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return errors relative to the variance along σ_h, and the best σ_h over σ_k."""
    kernel = Diffusion(scale=neighbor_scale(Y, 20))
    sq_dists, K = squareform(pdist(Y, "sqeuclidean")), kernel.matrix(Y)
    X = decompose(K.copy(), np.ones(len(Y)), 5).latent
    apart = ~np.eye(len(Y), dtype=bool)
    whole = KernelPress(sq_dists, K)
    parts: dict[str, tuple[Criterion, float]] = {
        "coordinate 1": (CoordinatePress(sq_dists, X[:, :1]), 1.0),
        "coordinates 1-5": (CoordinatePress(sq_dists, X), 1.0),
        "kernel": (whole, float((K[apart] ** 2).mean())),
    }
    errors = {
        name: [
            criterion.value_and_gradient(ratio * kernel.number(), 0.01)[0] / unit
            for ratio in COORDINATE_RATIOS
        ]
        for name, (criterion, unit) in parts.items()
    }
    best = {
        name: choose(criterion, neighbor_scale(Y), ridge=0.01).scale / kernel.number()
        for name, (criterion, _) in parts.items()
    }
    return errors, best


def show_coordinates(seeds: int) -> None:
    """Print which scale each target asks for."""
    found = [relative_errors(sinusoid(300, seed)) for seed in range(seeds)]
    rows = []
    for j, ratio in enumerate(COORDINATE_RATIOS):
        cells = [
            f"{known[j]} / {np.median([errors[name][j] for errors, _ in found]):.2g}"
            for name, known in COORDINATES.items()
        ]
        rows.append((f"{ratio:g}", *cells))
    rows.append(("best", *(middle([best[name] for _, best in found], 2) for name in COORDINATES)))
    title = "Relative leave-one-out errors, prototype / measured (median of the draws)"
    show(title, ("σ_h / σ_k", *COORDINATES), rows)


def main(seeds: int) -> None:
    """Print the three tables."""
    maps = {name: [Maps(case, seed) for seed in range(seeds)] for name, case in CASES.items()}
    show_slices(maps)
    show_claims(maps)
    show_coordinates(seeds)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)

"""Statements about single figures that belong to no other module, in numbers.

1. local: Klanke 2007, figure 5.26. Local constant, linear and quadratic regression of 100 noisy
   samples of a sine, bandwidths 1 and 0.3. Range and noise are not given: one period, 0.2.
2. votes: Kramer 2013, figure 3.1. The number of neighbours K of nearest-neighbour classifiers, and
   of their vote with support vector machines. The book's data are private; these are made-up loads,
   as for its Table 3.1.
3. landscape: Kramer 2013, figure 7.1. The error of the first row over the latent plane after 300
   rows were placed, K = 5 and 30. The book does not name the data; digits here.
4. spectra: Arias 2007, figure 3.3. Eigenvalues of maximum variance unfolding and of a diffusion
   kernel for the rows of figure 3.1, divided by their sum. Needs the extra [sdp]. The thesis does
   not say how many neighbours MVU keeps; 5 here.

    python -m experiments.single_figures [draws] [local votes landscape spectra]
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from scipy.ndimage import grey_dilation, label, minimum_filter
from scipy.spatial import cKDTree
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier

from experiments import appliances, half_circle, ledger, unn_continuous
from experiments.preimage_toys import Sinusoid, all_axes
from experiments.table import middle, show
from twofold.array_types import FloatArray
from twofold.kernel_pca.data_dependent import MVU, Diffusion
from twofold.losses import Squared
from twofold.neighborhoods.nearest import neighbor_scale
from twofold.neighbors import appliance_ensemble

N_SAMPLES, SINE_NOISE = 100, 0.2
BANDWIDTHS = (1.0, 0.3)
SHARES = ("1/5", "1/3", "1/2")
NEIGHBORS = range(1, 11)
SIDE = 80


def noisy_sine(seed: int) -> tuple[FloatArray, FloatArray]:
    """Draw places (n,) on one period of a sine, and values (n,) with noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 2 * np.pi, N_SAMPLES)
    return x, np.sin(x) + SINE_NOISE * rng.normal(size=N_SAMPLES)


def local_fits(seed: int) -> dict[tuple[float, int], FloatArray]:
    """Return the error of each bandwidth and degree at 201 places of one period of a sine."""
    x, y = noisy_sine(seed)
    grid = np.linspace(0, 2 * np.pi, 201)
    found = {}
    for width in BANDWIDTHS:
        for degree in (0, 1, 2):
            problem = half_circle.pose(y[:, None], Squared(), "gaussian", degree)
            surface = problem.surface(x[:, None] / width)
            found[width, degree] = surface.regress(grid[:, None] / width)[:, 0] - np.sin(grid)
    return found


def show_local(draws: int) -> None:
    """Print errors of local polynomials over all, at the ends and at the peaks."""
    runs = [local_fits(seed) for seed in range(draws)]

    def error(
        run: dict[tuple[float, int], FloatArray], width: float, degree: int, at: str
    ) -> float:
        gaps = run[width, degree]
        places = {"ends": [0, -1], "peaks": [50, 150], "all": slice(None)}[at]
        return float(np.sqrt((gaps[places] ** 2).mean()))

    rows = [
        (
            f"{width:g}",
            str(degree),
            *(
                middle([error(run, width, degree, at) for run in runs])
                for at in ("all", "ends", "peaks")
            ),
        )
        for width, degree in runs[0]
    ]
    show(
        f"Local regression of a sine, {draws} draws: error",
        ("bandwidth", "degree", "all", "ends", "peaks"),
        rows,
    )
    claims = {
        "bandwidth 1: linear and quadratic fit better than constant": lambda run: (
            max(error(run, 1.0, d, "all") for d in (1, 2)) < error(run, 1.0, 0, "all")
        ),
        "bandwidth 1: at the ends their error is at most two thirds": lambda run: (
            1.5 * max(error(run, 1.0, d, "ends") for d in (1, 2)) < error(run, 1.0, 0, "ends")
        ),
        "bandwidth 0.3: at the ends constant is worse than linear": lambda run: (
            error(run, 0.3, 0, "ends") > error(run, 0.3, 1, "ends")
        ),
        "bandwidth 1: at the peaks quadratic is more accurate than linear": lambda run: (
            error(run, 1.0, 2, "peaks") < error(run, 1.0, 1, "peaks")
        ),
    }
    for words, holds in claims.items():
        ledger.claim("Klanke, Figure 5.26", words, sum(map(holds, runs)), draws)


def votes_by_k(training: str, seed: int, numbers: dict[str, float]) -> FloatArray:
    """Return error rates (2, K) of nearest neighbours and of their vote with the machines."""
    X, y, X_test, y_test = appliances.split(training, seed)
    rates = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for k in NEIGHBORS:
            models = KNeighborsClassifier(k), appliance_ensemble(n_neighbors=(k,), **numbers)
            rates.append([np.mean(m.fit(X, y).predict(X_test) != y_test) for m in models])
    return np.array(rates).T


def show_votes(draws: int) -> None:
    """Print how much K matters alone and in the vote."""
    rows, spreads, best = [], {}, {}
    for training in SHARES:
        numbers = appliances.tune(training)
        found = np.mean([votes_by_k(training, seed, numbers) for seed in range(draws)], axis=0)
        spreads[training] = np.ptp(found, axis=1)
        best[training] = NEIGHBORS[int(found[0].argmin())]
        for name, rates in zip(("KNN", "ENS*"), found, strict=True):
            rows.append((training, name, *(f"{rate:.3f}" for rate in rates)))
    show(f"Share of wrong labels by K, {draws} draws", ("training", "", *map(str, NEIGHBORS)), rows)
    place = "Kramer, Figure 3.1"
    ledger.claim(place, "trained on 1/5: alone a K of 4 to 6 is best", 4 <= best["1/5"] <= 6, 1)
    for training in ("1/3", "1/2"):
        alone, together = spreads[training]
        words = f"trained on {training}: K matters less in the vote than alone"
        ledger.claim(place, words, together < alone, 1)
    words = "alone K matters less with half of the rows than with a fifth"
    ledger.claim(place, words, spreads["1/2"][0] < spreads["1/5"][0], 1)


def landscape(k: int, seed: int) -> FloatArray:
    """Return the error (SIDE, SIDE) of the first row at places of the plane."""
    Y = unn_continuous.load()["Digits"]
    X = unn_continuous.embed(Y, k, seed)
    axes = [np.linspace(low, high, SIDE) for low, high in zip(X.min(0), X.max(0), strict=True)]
    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    near = cKDTree(X[1:]).query(places, k)[1] + 1
    return np.linalg.norm(Y[near].mean(axis=1) - Y[0], axis=1).reshape(SIDE, SIDE)


def count_minima(field: FloatArray) -> int:
    """Return the number of plateaus with higher ground all around."""
    level = np.unique(field, return_inverse=True)[1].reshape(field.shape)
    count = 0
    for value in np.unique(level[level <= minimum_filter(level, 3)]):
        parts, n_parts = label(level == value, np.ones((3, 3)))
        for part in range(1, n_parts + 1):
            inside = parts == part
            around = grey_dilation(inside, (3, 3)) & ~inside
            count += bool((level[around] > value).all())
    return count


def relief(field: FloatArray) -> float:
    """Return how much neighbouring places differ, as a share of the range of the field."""
    steps = [np.abs(np.diff(field, axis=axis)).mean() for axis in (0, 1)]
    return float(np.mean(steps) / np.ptp(field))


def show_landscape(draws: int) -> None:
    """Print minima, different neighbourhoods and steps by the number of neighbours."""
    fields = {k: [landscape(k, seed) for seed in range(draws)] for k in (5, 30)}
    minima = {k: [count_minima(field) for field in found] for k, found in fields.items()}
    steps = {k: [relief(field) for field in found] for k, found in fields.items()}
    rows = [
        (str(k), middle(minima[k]), middle([len(np.unique(f)) for f in found]), middle(steps[k]))
        for k, found in fields.items()
    ]
    header = (
        "K",
        "minima",
        f"different values at {SIDE}² places",
        "step to the next place / range",
    )
    show(f"Error of one row over the plane, {draws} draws", header, rows)
    place = "Kramer, Figure 7.1"
    held = sum(count > 1 for count in minima[5])
    ledger.claim(place, "K = 5: the error of one row has several minima", held, draws)
    ledger.claim(place, "K = 30: fewer minima", np.less(minima[30], minima[5]).sum(), draws)
    held = np.less(steps[30], steps[5]).sum()
    ledger.claim(place, "K = 30: larger areas of similar error", held, draws)


def show_spectra(draws: int) -> None:
    """Print the shares of the first eigenvalues."""
    found = []
    for seed in range(draws):
        Y = Sinusoid.draw(150, 0.4, seed).Y
        kernels = MVU().matrix(Y), Diffusion(scale=neighbor_scale(Y, 10)).matrix(Y)
        spectra = [all_axes(K) for K in kernels]
        found.append([one.eigenvalues[:3] / one.total for one in spectra])
    shares = np.array(found)
    rows = [
        (name, *(middle(list(column)) for column in shares[:, place].T))
        for place, name in enumerate(("MVU", "diffusion"))
    ]
    show(f"Share of the eigenvalues, {draws} draws", ("kernel", "first", "second", "third"), rows)
    place = "Arias, Figure 3.3"
    ledger.figure(place, "MVU, share of the first eigenvalue", 1.0, shares[:, 0, 0])
    held = (shares[:, 1, 0] < 0.2).sum()
    ledger.claim(place, "the spectrum of the diffusion kernel decays slowly", held, draws)


PARTS = {
    "local": show_local,
    "votes": show_votes,
    "landscape": show_landscape,
    "spectra": show_spectra,
}


def main(draws: int, names: list[str]) -> None:
    """Print the tables of these parts."""
    for name in names:
        PARTS[name](draws)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2:] or list(PARTS))

"""Which family for which data: round trips of held-out rows, defaults everywhere.

    python -m benchmarks.which_model [table ...]

Each model is fitted to three quarters of the rows and carries the others there and back. Printed is
the squared error as a share of their variance (0 is perfect, 1 is no better than the mean), and the
processor time of the fit. Columns in different units are scaled first, for all alike.
"""

from __future__ import annotations

import resource
import sys
import warnings

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from twofold import PSOM, UKR, UNN, DiffusionMap, KernelPCA, datasets


def tables() -> dict[str, tuple[np.ndarray, int]]:
    """Return rows by name, and how many latent dimensions to take."""
    return {
        "digits": (load_digits().data, 2),
        "wine": (StandardScaler().fit_transform(load_wine().data), 2),
        "Swiss roll": (datasets.make_swiss_roll(800, noise=0.2, random_state=0).Y, 2),
        "bowl": (datasets.make_fish_bowl(600, noise=0.2, random_state=0).Y, 2),
        "spiral": (datasets.make_spiral(400, noise=0.05, random_state=0).Y, 1),
        "turning pot": (datasets.make_rotating_object(200, random_state=0).Y, 2),
        "sheet in 20 columns": (
            datasets.make_random_manifold(500, 2, 20, noise=0.05, random_state=0).Y,
            2,
        ),
        "flat, two factors": (flat(500), 2),
    }


def flat(n: int) -> np.ndarray:
    """Return a Gaussian table of 20 columns with two factors: what PCA is made for."""
    rng = np.random.default_rng(0)
    signal = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 20))
    return signal + 0.3 * rng.normal(size=(n, 20))


def models(q: int) -> dict[str, object]:
    """Return what is compared, for q latent dimensions."""
    return {
        "PCA": PCA(q),
        "UKR": UKR(q, random_state=0),
        "UNN": UNN(q, random_state=0),
        "PSOM": PSOM(q, grid=10, random_state=0),
        "KernelPCA": KernelPCA(q),
        "KernelPCA, 10 axes": KernelPCA(10),
        "DiffusionMap": DiffusionMap(q),
    }


def processor_seconds() -> float:
    """Return what this process has computed so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def round_trip(model: object, train: np.ndarray, test: np.ndarray) -> tuple[float, float]:
    """Return the error of held-out rows as a share of their variance, and the seconds of a fit."""
    began = processor_seconds()
    model.fit(train)
    seconds = processor_seconds() - began
    back = model.inverse_transform(model.transform(test))
    return ((back - test) ** 2).sum() / ((test - train.mean(axis=0)) ** 2).sum(), seconds


def main() -> None:
    """Print one line a table; the first fit of each family only compiles."""
    warnings.simplefilter("ignore")
    some = datasets.make_fish_bowl(100, random_state=0).Y
    for q in (1, 2):
        for model in models(q).values():
            model.fit(some).transform(some)
    print("| data | " + " | ".join(models(2)) + " |")
    wanted = sys.argv[1:]
    for name, (Y, q) in tables().items():
        if wanted and name not in wanted:
            continue
        train, test = train_test_split(Y, test_size=0.25, random_state=0)
        found = [round_trip(model, train, test) for model in models(q).values()]
        cells = [f"{error:.3f} ({seconds:.1f} s)" for error, seconds in found]
        print(f"| {name} ({len(train)} × {Y.shape[1]}) | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

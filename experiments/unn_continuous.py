"""Continuous embeddings by swarm, Gaussian places and kernels (Kramer 2013, chapters 6 and 7).

Tables 6.3, 7.1, 7.2, 7.3 and Figure 7.3, reported beside measured: sqrt(Σ r²) / n with r the
distance of a row from the mean of its K latent neighbours, and the share of the K neighbours kept
(E_NX); both count a row among its own. Two dimensions, rows in their order, mean ± standard
deviation over seeds. "Digits" are the first 300 images of the digits 0 to 5 of scikit-learn, 0 to
16; "Boston" the first 300 rows of the 13 raw features: with these ISOMAP has the figures of the
book. "refined" takes five sweeps more, which the book does not have.

``PSEA`` is ``search="swarm"`` with 50 steps, the rest is ``search="gaussian"`` with 30 places. What
the book calls UNN in Table 7.3 and "linear" in Table 7.2 is not its Algorithm 10; the nearest to it
is "origin": places from N(0, I), wherever the nearest row is.

    python -m experiments.unn_continuous [runs]
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.manifold import Isomap, LocallyLinearEmbedding

from experiments import ledger
from experiments.table import show
from twofold import UNN
from twofold.datasets import load_npz
from twofold.features import RBF, Linear, Polynomial, Sigmoid
from twofold.metrics import dsre, e_nx
from twofold.unn import Gaussian, Swarm

N_ROWS = 300
N_PLACES = 30
SWEEPS = 5
TANH = Sigmoid(1e-6, -1e-2)
Scores = list[tuple[float, float]]
# (error, its deviation, E_NX, its deviation); ISOMAP and LLE have no deviation.
REPORTED_SWARM: dict[str, dict[int, dict[str, tuple[float, ...]]]] = {
    "Digits": {
        5: {"PSEA": (0.94, 0.01, 0.49, 0.01), "ISOMAP": (1.00, 0.45), "LLE": (1.23, 0.30)},
        10: {"PSEA": (1.20, 0.02, 0.42, 0.01), "ISOMAP": (1.03, 0.54), "LLE": (1.08, 0.50)},
        15: {"PSEA": (1.32, 0.05, 0.42, 0.03), "ISOMAP": (1.13, 0.57), "LLE": (1.16, 0.52)},
        30: {"PSEA": (1.50, 0.04, 0.42, 0.03), "ISOMAP": (1.28, 0.64), "LLE": (1.42, 0.51)},
    },
    "Boston": {
        5: {"PSEA": (1.44, 0.19, 0.53, 0.02), "ISOMAP": (1.05, 0.67), "LLE": (2.56, 0.35)},
        10: {"PSEA": (2.21, 0.18, 0.43, 0.01), "ISOMAP": (1.38, 0.65), "LLE": (2.21, 0.42)},
        15: {"PSEA": (2.69, 0.19, 0.39, 0.03), "ISOMAP": (1.50, 0.70), "LLE": (2.28, 0.54)},
        30: {"PSEA": (3.44, 0.15, 0.34, 0.01), "ISOMAP": (2.05, 0.74), "LLE": (2.33, 0.72)},
    },
}
REPORTED_KERNEL = {
    "Digits": {
        5: {"UNN": (1.14, 0.02, 0.31, 0.01), "KUNN": (0.86, 0.01, 0.55, 0.01)},
        10: {"UNN": (1.27, 0.03, 0.31, 0.01), "KUNN": (1.03, 0.01, 0.53, 0.01)},
        30: {"UNN": (1.52, 0.01, 0.40, 0.01), "KUNN": (1.33, 0.02, 0.57, 0.01)},
    },
    "Boston": {
        5: {"UNN": (1.94, 0.11, 0.31, 0.01), "KUNN": (1.00, 0.07, 0.68, 0.01)},
        10: {"UNN": (2.32, 0.03, 0.30, 0.02), "KUNN": (1.57, 0.08, 0.62, 0.01)},
        30: {"UNN": (3.30, 0.04, 0.37, 0.01), "KUNN": (2.85, 0.18, 0.56, 0.02)},
    },
}
# Table 7.1 by γ.
REPORTED_RBF = {
    "Digits": {
        1.0: (1.30, 0.01, 0.30, 0.01),
        1e-4: (1.11, 0.02, 0.45, 0.01),
        1e-8: (0.91, 0.01, 0.50, 0.01),
    },
    "Boston": {
        1.0: (2.43, 0.10, 0.29, 0.01),
        1e-4: (2.15, 0.12, 0.42, 0.01),
        1e-8: (1.14, 0.15, 0.62, 0.04),
    },
}
REPORTED_KERNELS = {
    "Digits": {
        "linear": (1.14, 0.03, 0.31, 0.01),
        "polynomial": (1.12, 0.01, 0.32, 0.01),
        "tanh": (0.85, 0.02, 0.56, 0.01),
    },
    "Boston": {
        "linear": (1.87, 0.04, 0.31, 0.01),
        "polynomial": (1.90, 0.08, 0.31, 0.01),
        "tanh": (1.00, 0.07, 0.68, 0.01),
    },
}
KERNELS = {"linear": Linear(), "polynomial": Polynomial(2), "tanh": TANH, "none": None}
DIMENSIONS = (1, 2, 3, 5, 10)
PLACES = (5, 30, 100)


def load(name: str = "Boston", file: str = "boston") -> dict[str, np.ndarray]:
    """Return the rows of digits and of another table; without its file of the digits only."""
    data = {"Digits": load_digits(n_class=6).data[:N_ROWS]}
    try:
        data[name] = load_npz(file)["X"][:N_ROWS].astype(float)
    except FileNotFoundError as error:
        print(f"{name} is left out: {error}")
    return data


def embed(Y: np.ndarray, k: int, seed: int, search: Any = "gaussian", **numbers: Any) -> np.ndarray:
    """Return the embedding (n, q) of rows that come in their order; q = 2 if not said."""
    settings = {"n_components": 2, "shuffle": False, "refine": 0, **numbers}
    return UNN(n_neighbors=k, search=search, random_state=seed, **settings).fit_transform(Y)


def embed_around_origin(Y: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Embed row by row like the Gaussian search, but with all places from N(0, I)."""
    rng = np.random.default_rng(seed)
    X = np.zeros((len(Y), 2))
    for i in range(1, len(Y)):
        places = rng.normal(size=(N_PLACES, 2))
        gaps = ((places[:, None] - X[:i]) ** 2).sum(axis=2)
        n_others = min(k - 1, i)
        near = np.argsort(gaps, axis=1, kind="stable")[:, :n_others]
        means = (Y[near].sum(axis=1) + Y[i]) / (n_others + 1)
        X[i] = places[((means - Y[i]) ** 2).sum(axis=1).argmin()]
    return X


def isomap(Y: np.ndarray, k: int) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the parts of the graph, which it joins
        return Isomap(n_neighbors=k, n_components=2).fit_transform(Y)


def lle(Y: np.ndarray, k: int) -> np.ndarray:
    return LocallyLinearEmbedding(n_neighbors=k, n_components=2, random_state=0).fit_transform(Y)


def scored(Y: np.ndarray, k: int, X: np.ndarray) -> tuple[float, float]:
    return dsre(Y, X, k, kind="fro_norm"), e_nx(Y, X, k)


def repeat(Y: np.ndarray, k: int, runs: int, **numbers: Any) -> Scores:
    """Return the scores of several seeds."""
    return [scored(Y, k, embed(Y, k, seed, **numbers)) for seed in range(runs)]


def cell(scores: Scores) -> str:
    """Write error and E_NX as mean ± deviation, or as they are if there is one of each."""
    if len(scores) == 1:
        return f"{scores[0][0]:.3f} / {scores[0][1]:.3f}"
    mean, deviation = np.mean(scores, axis=0), np.std(scores, axis=0)
    return f"{mean[0]:.3f}±{deviation[0]:.3f} / {mean[1]:.3f}±{deviation[1]:.3f}"


def old_cell(figures: tuple[float, ...] | None) -> str:
    """Write what the book has."""
    if figures is None:
        return ""
    if len(figures) == 2:
        return f"{figures[0]:.2f} / {figures[1]:.2f}"
    return f"{figures[0]:.2f}±{figures[1]:.2f} / {figures[2]:.2f}±{figures[3]:.2f}"


def note(table: str, what: str, figures: tuple[float, ...] | None, scores: Scores) -> None:
    """Put error and E_NX of one cell into the ledger, if the book has it."""
    if figures is None:
        return
    errors, kept = zip(*scores, strict=True)
    # Without a deviation what is printed is cut off after two digits.
    error, error_dev, share, share_dev = (
        figures if len(figures) == 4 else (figures[0], 0.005, figures[1], 0.005)
    )
    place = f"Kramer, {table}"
    ledger.figure(place, f"{what}: error", error, errors, deviation=error_dev, better="lower")
    ledger.figure(place, f"{what}: E_NX", share, kept, deviation=share_dev, better="higher")


def mean_error(scores: Scores) -> float:
    return float(np.mean(scores, axis=0)[0])


def relation(k: int, a: str, b: str, old: dict[str, Any], new: dict[str, Scores]) -> str:
    """Say whether a has less error than b, in the book and here."""
    book = "yes" if old[a][0] < old[b][0] else "no" if old[a][0] > old[b][0] else "equal"
    here = "yes" if mean_error(new[a]) < mean_error(new[b]) else "no"
    return f"K = {k}: {a} < {b}: book {book}, here {here}"


def compare(
    title: str,
    reported: dict[str, dict[int, dict[str, tuple[float, ...]]]],
    methods: dict[str, Callable[[np.ndarray, int], Scores]],
    pairs: tuple[tuple[str, str], ...],
) -> None:
    """Print reported above measured scores, and who has less error."""
    rows, said = [], []
    for name, Y in load().items():
        for k, old in reported[name].items():
            new = {method: run(Y, k) for method, run in methods.items()}
            for method, figures in old.items():
                if method in new:
                    note(
                        " ".join(title.split()[:2]).rstrip(","),
                        f"{name}, K = {k}, {method}",
                        figures,
                        new[method],
                    )
            rows.append((name, str(k), "book", *(old_cell(old.get(m)) for m in methods)))
            rows.append((name, str(k), "here", *(cell(new[m]) for m in methods)))
            said += [f"{name}, {relation(k, a, b, old, new)}" for a, b in pairs]
    show(f"{title}: error / E_NX", ("data", "K", "", *methods), rows)
    print("\n".join(said))


def table_6_3(runs: int) -> None:
    """Print the swarm beside ISOMAP and LLE."""
    methods = {
        "PSEA": lambda Y, k: repeat(Y, k, runs, search=Swarm()),
        "PSEA refined": lambda Y, k: repeat(Y, k, runs, search=Swarm(), refine=SWEEPS),
        "ISOMAP": lambda Y, k: [scored(Y, k, isomap(Y, k))],
        "LLE": lambda Y, k: [scored(Y, k, lle(Y, k))],
    }
    pairs = (("PSEA", "ISOMAP"), ("PSEA", "LLE"), ("ISOMAP", "LLE"))
    compare(f"Table 6.3, {runs} runs", REPORTED_SWARM, methods, pairs)


def table_7_3(runs: int) -> None:
    """Print the Gaussian embedding, with a kernel and without, beside ISOMAP and LLE."""
    reported = {
        name: {k: {**REPORTED_SWARM[name][k], **old} for k, old in by_k.items()}
        for name, by_k in REPORTED_KERNEL.items()
    }
    methods = {
        "UNN": lambda Y, k: [scored(Y, k, embed_around_origin(Y, k, s)) for s in range(runs)],
        "KUNN": lambda Y, k: repeat(Y, k, runs, data_kernel=TANH),
        "no kernel": lambda Y, k: repeat(Y, k, runs),
        "refined": lambda Y, k: repeat(Y, k, runs, refine=SWEEPS),
        "ISOMAP": lambda Y, k: [scored(Y, k, isomap(Y, k))],
        "LLE": lambda Y, k: [scored(Y, k, lle(Y, k))],
    }
    pairs = (("KUNN", "UNN"), ("KUNN", "ISOMAP"), ("KUNN", "LLE"))
    compare(f"Table 7.3 (UNN: origin), {runs} runs", reported, methods, pairs)


def table_7_1(runs: int) -> None:
    """Print RBF kernels by their width."""
    rows = []
    for name, Y in load().items():
        for gamma in (*REPORTED_RBF[name], 0.0):
            kernel = RBF(gamma) if gamma > 0 else None
            found = [repeat(Y, k, runs, data_kernel=kernel) for k in (5, 10)]
            scores = [cell(one) for one in found]
            note("Table 7.1", f"{name}, γ = {gamma:g}", REPORTED_RBF[name].get(gamma), found[0])
            old = old_cell(REPORTED_RBF[name].get(gamma))
            rows.append((name, f"{gamma:g}" if gamma > 0 else "no kernel", old, *scores))
    header = ("data", "γ", "book (K = 10 in its caption)", "K = 5", "K = 10")
    show(f"Table 7.1, {runs} runs: error / E_NX", header, rows)


def table_7_2(runs: int) -> None:
    """Print kernels, with the nearest row by distance and by the largest kernel value."""
    rows = []
    for name, Y in load().items():
        for kernel_name, kernel in KERNELS.items():
            found = repeat(Y, 5, runs, data_kernel=kernel)
            by_distance = cell(found)
            known = REPORTED_KERNELS[name].get(kernel_name)
            note("Table 7.2", f"{name}, {kernel_name}", known, found)
            by_value = ""
            if kernel is not None:
                search = Gaussian(nearest="argmax")
                by_value = cell(repeat(Y, 5, runs, search=search, data_kernel=kernel))
            old = old_cell(REPORTED_KERNELS[name].get(kernel_name))
            rows.append((name, kernel_name, old, by_distance, by_value))
        origin = cell([scored(Y, 5, embed_around_origin(Y, 5, seed)) for seed in range(runs)])
        rows.append((name, "origin, no kernel", "", origin, ""))
    header = ("data", "kernel", "book", "nearest by distance", "nearest by kernel value")
    show(f"Table 7.2, K = 5, {runs} runs: error / E_NX", header, rows)


def figure_7_3(runs: int) -> None:
    """Print errors by the number of latent dimensions and of places."""
    rows = []
    for name, Y in load("Faces, 32 x 32", "isomap_faces_32x32").items():
        for n_places in PLACES:
            means, errors = [], {}
            for q in DIMENSIONS:
                search = Gaussian(n_candidates=n_places)
                found = repeat(Y, 5, runs, search=search, n_components=q)
                means.append(cell(found))
                errors[q] = mean_error(found)
            words = f"{name}, {n_places} places: the error falls from two dimensions to five"
            ledger.claim("Kramer, Figure 7.3", words, errors[5] < errors[2], 1)
            rows.append((name, str(n_places), *means))
    header = ("data", "places", *(f"q = {q}" for q in DIMENSIONS))
    show(f"Figure 7.3, K = 5, {runs} runs: error / E_NX", header, rows)


def main(runs: int) -> None:
    """Print the tables."""
    table_6_3(runs)
    table_7_1(runs)
    table_7_2(runs)
    table_7_3(runs)
    figure_7_3(runs)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 25)

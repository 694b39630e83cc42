"""Several manifolds side by side (Kramer 2013, section 7.5 and Table 7.4).

Digits of scikit-learn, 0 to 16, in the order of the data set: 540 images of 0, 3 and 7 (the book
has 539) and 1,083 of 0 to 5. First, how many clusters constructive K-means opens by its threshold.
Then mean distances between rows and the means of their K latent neighbours, each row among its own,
threshold 43, 30 places: the six manifolds, all of them together (SL-UNN), and one manifold for all
rows or for the first 180 (KUNN, tanh kernel). "select" lets each cluster of 50 rows choose its
kernel as in the book; "refined" takes no kernel and five sweeps more.

The book's errors of single manifolds differ by a factor of nine, its digits do not. If they are
sums over the rows of a manifold divided by one number for all (the 180 of its KUNN), then 180 times
the reported error over the mean distance here is the number of rows; that is printed, too.

    python -m experiments.unn_submanifolds [runs]
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from experiments import ledger
from experiments.table import show
from twofold import UNN, ConstructiveKMeans, SubmanifoldUNN
from twofold.features import Sigmoid
from twofold.metrics import dsre

THRESHOLD = 43.0
SWEEPS = 5
N_FEW = 180
# Number of clusters by threshold.
REPORTED_COUNTS = {
    "0, 3, 7": {60: 1, 50: 2, 47: 3, 35: 14},
    "0 to 5": {47: 2, 45: 4, 43: 6, 35: 25},
}
# By K: six manifolds, all together, KUNN of 180 rows and of all with their deviations.
REPORTED = {
    5: ((2.53, 8.12, 22.39, 6.22, 11.86, 17.64), (14.49, 0.12), (16.16, 0.25), (13.83, 0.11)),
    10: ((3.06, 9.96, 27.41, 7.43, 13.97, 20.46), (17.51, 0.30), (20.94, 0.50), (16.48, 0.065)),
    30: ((3.63, 10.94, 35.86, 9.33, 17.74, 23.52), (22.44, 0.34), (28.76, 1.28), (22.71, 1.39)),
}


def load() -> dict[str, np.ndarray]:
    digits = load_digits()
    chosen = np.isin(digits.target, (0, 3, 7))
    return {"0, 3, 7": digits.data[chosen], "0 to 5": load_digits(n_class=6).data}


def count(Y: np.ndarray, threshold: float, order: str = "given") -> int:
    return len(ConstructiveKMeans(threshold, order=order).fit(Y).cluster_centers_)


def print_counts(draws: int) -> None:
    """Print the number of clusters by threshold, in the given order, shuffled, farthest first."""
    rows = []
    for name, Y in load().items():
        for threshold, reported in REPORTED_COUNTS[name].items():
            orders = [np.random.default_rng(seed).permutation(len(Y)) for seed in range(draws)]
            shuffled = [count(Y[order], threshold) for order in orders]
            steady = {count(Y[order], threshold, "farthest") for order in orders[:5]}
            here = count(Y, threshold)
            ledger.figure("Kramer, section 7.5, clusters", f"{name}, {threshold}", reported, [here])
            rows.append(
                (
                    name,
                    str(threshold),
                    str(reported),
                    str(here),
                    "yes" if here == reported else "no",
                    f"{np.mean(shuffled):.1f} ({min(shuffled)} to {max(shuffled)})",
                    ", ".join(map(str, sorted(steady))),
                )
            )
    header = ("digits", "threshold", "book", "here", "equal", f"{draws} other orders", "farthest")
    show("Number of manifolds", header, rows)


def left_out_counts() -> None:
    """Print the counts of the rows of 0, 3 and 7 without one of them."""
    Y = load()["0, 3, 7"]
    found = [count(np.delete(Y, i, axis=0), 35) for i in range(len(Y))]
    values, times = np.unique(found, return_counts=True)
    words = ", ".join(f"{v} clusters {t} times" for v, t in zip(values, times, strict=True))
    print(f"0, 3, 7 without one of the 540 images, threshold 35: {words}")


def fit_together(Y: np.ndarray, k: int, seed: int, **numbers: Any) -> tuple[list[float], list[str]]:
    """Return the errors of each manifold and of all together, and the names of the kernels."""
    model = SubmanifoldUNN(
        2,
        threshold=THRESHOLD,
        order="given",
        n_neighbors=k,
        shuffle=False,
        random_state=seed,
        **{"refine": 0, **numbers},
    ).fit(Y)
    errors, sizes = [], []
    for code in range(len(model.cluster_centers_)):
        own = model.labels_ == code
        k_own = min(k, int(own.sum()))
        errors.append(dsre(Y[own], model.embedding_[own], k_own, kind="mean_norm"))
        sizes.append(own.sum())
    kernels = [type(kernel).__name__ for kernel in model.kernels_]
    return [*errors, float(np.average(errors, weights=sizes))], kernels


def fit_one(Y: np.ndarray, k: int, seed: int, **numbers: Any) -> float:
    """Return the error of one manifold for all rows."""
    settings = {"data_kernel": Sigmoid(1e-6, -1e-2), "refine": 0, **numbers}
    model = UNN(2, n_neighbors=k, shuffle=False, random_state=seed, **settings)
    return dsre(Y, model.fit_transform(Y), k, kind="mean_norm")


def cell(values: Any) -> str:
    return f"{np.mean(values):.2f}±{np.std(values):.2f}"


def note(k: int, manifolds: np.ndarray, few: list[float], whole: list[float]) -> None:
    """Put one line of Table 7.4 into the ledger."""
    each, *others = REPORTED[k]
    place = "Kramer, Table 7.4"
    for number, (known, errors) in enumerate(zip(each, manifolds.T[:-1], strict=True)):
        ledger.figure(place, f"K = {k}, manifold {number + 1}", known, errors, better="lower")
    names = ("SL-UNN", f"KUNN of {N_FEW}", "KUNN of all")
    for name, (mean, deviation), errors in zip(
        names, others, (manifolds[:, -1], few, whole), strict=True
    ):
        what = f"K = {k}, {name}"
        ledger.figure(place, what, mean, errors, deviation=deviation, better="lower")


def table_7_4(runs: int) -> None:
    """Print the errors of manifolds alone and together."""
    Y = load()["0 to 5"]
    rows, alone, said = [], [], []
    for k, (each, together, few, whole) in REPORTED.items():
        variants = {
            "select": {"data_kernel": "select"},
            "no kernel": {},
            "refined": {"refine": SWEEPS},
        }
        fits = {
            name: [fit_together(Y, k, seed, **numbers) for seed in range(runs)]
            for name, numbers in variants.items()
        }
        found = {name: np.array([errors for errors, _ in all_]) for name, all_ in fits.items()}
        chosen = Counter(name for _, kernels in fits["select"] for name in kernels)
        said.append(f"K = {k}: kernels chosen: {dict(chosen.most_common())}")
        one_few = [fit_one(Y[:N_FEW], k, seed) for seed in range(runs)]
        one = [fit_one(Y, k, seed) for seed in range(runs)]
        settings = {"data_kernel": None, "refine": SWEEPS}
        one_refined = [fit_one(Y, k, seed, **settings) for seed in range(runs)]
        note(k, found["select"], one_few, one)
        ledger.default("Kramer, Table 7.4", f"K = {k}, `refine=5`: {cell(found['refined'][:, -1])}")
        books = [f"{mean:.2f}±{deviation:.2f}" for mean, deviation in (together, few, whole)]
        rows.append((str(k), "book", books[0], "", "", *books[1:], ""))
        all_rows = [cell(errors[:, -1]) for errors in found.values()]
        rows.append((str(k), "here", *all_rows, cell(one_few), cell(one), cell(one_refined)))
        alone.append((str(k), "book", *(f"{error:.2f}" for error in each)))
        for name, errors in found.items():
            alone.append((str(k), name, *(cell(column) for column in errors[:, :-1].T)))
        sizes = N_FEW * np.array(each) / found["select"][:, :-1].mean(axis=0)
        said.append(f"K = {k}: rows if the book's are sums / {N_FEW}: {sizes.round().tolist()}")
        mean = found["select"][:, -1].mean()
        for other, old, new in (("KUNN 180", few, one_few), ("KUNN 1083", whole, one)):
            book, here = together[0] < old[0], mean < np.mean(new)
            words = ["yes" if is_so else "no" for is_so in (book, here)]
            said.append(f"K = {k}: SL-UNN < {other}: book {words[0]}, here {words[1]}")
    header = ("K", "", "SL, select", "SL, no kernel", "SL, refined")
    ends = (f"KUNN {N_FEW}", "KUNN 1083", "UNN 1083, refined")
    show(f"Table 7.4, {runs} runs: mean distance", (*header, *ends), rows)
    names = [f"M{number + 1}" for number in range(len(alone[1]) - 2)]
    show(f"Table 7.4, {runs} runs: each manifold", ("K", "", *names), alone)
    print("\n".join(said))


def main(runs: int) -> None:
    """Print the counts and the table."""
    print_counts(runs)
    left_out_counts()
    table_7_4(runs)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 25)

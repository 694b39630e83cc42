"""Noisy spiral with LLE starts (Klanke 2007, section 4.6.1).

300 points on a spiral of two windings, Gaussian noise of 0.05 per coordinate, q = 1, Gaussian
kernel, leave-one-out, the best of LLE starts with 5 to 13 neighbours, Rprop. Reported are the
leave-one-out error and the mean squared projection error of 3,000 test points from the same
source; the noise floor of a perfect curve is 0.0025. A data set counts as unrolled when the rank
correlation with the true coordinate is above 0.99.

    python -m experiments.noisy_spiral [seeds]
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.manifold import LocallyLinearEmbedding

from experiments import ledger
from experiments.table import middle, show
from twofold import UKR
from twofold.datasets import make_spiral

PLACE = "Klanke, section 4.6.1"
STEPS = (0, 200, 500, 1000)
REPORTED = {
    0: (0.00430, 0.00289),
    200: (0.00192, 0.00288),
    500: (0.00185, 0.00258),
    1000: (0.00181, 0.00247),
}


def run(seeds: int, optimizer: str) -> dict[int, tuple[list[float], list[float], list[float]]]:
    """Return, for each number of steps, CV errors, projection errors and rank correlations."""
    results: dict[int, tuple[list[float], list[float], list[float]]] = {
        steps: ([], [], []) for steps in STEPS
    }
    for seed in range(seeds):
        train = make_spiral(300, noise=0.05, random_state=seed)
        test = make_spiral(3000, noise=0.05, random_state=10_000 + seed)
        start = best_lle(train.Y)
        for steps in STEPS:
            model = UKR(1, init=start, optimizer=optimizer, max_iter=steps, tol=0).fit(train.Y)
            cv, projection, ranks = results[steps]
            cv.append(model.objective_)
            projection.append(-model.score(test.Y))
            ranks.append(rank_correlation(model.embedding_[:, 0], train.latent[:, 0]))
    return results


def best_lle(Y: np.ndarray) -> np.ndarray:
    """Return the LLE embedding with the lowest leave-one-out error once scaled."""
    starts = [
        LocallyLinearEmbedding(n_neighbors=K, n_components=1, random_state=0) for K in range(5, 14)
    ]
    models = [UKR(1, init=start, max_iter=0).fit(Y) for start in starts]
    return min(models, key=lambda model: model.objective_).embedding_


def rank_correlation(x: np.ndarray, t: np.ndarray) -> float:
    """Return the absolute rank correlation of found and true coordinate."""
    order = [np.argsort(np.argsort(values)) for values in (x, t)]
    return float(abs(np.corrcoef(*order)[0, 1]))


def note(steps: int, cv: list[float], projection: list[float]) -> None:
    """Put the figures of the thesis' optimiser into the ledger."""
    for name, reported, values in zip(
        ("CV error", "projection error"), REPORTED[steps], (cv, projection), strict=True
    ):
        ledger.figure(PLACE, f"{name}, {steps} steps", reported, values, better="lower")


def note_default(seeds: int) -> None:
    """Put the projection error of ``UKR(1)`` into the ledger."""
    errors = []
    for seed in range(seeds):
        train = make_spiral(300, noise=0.05, random_state=seed)
        test = make_spiral(3000, noise=0.05, random_state=10_000 + seed)
        errors.append(-UKR(1, random_state=0).fit(train.Y).score(test.Y))
    ledger.default(PLACE, f"`UKR(1)`: projection error {middle(errors)}")


def main(seeds: int) -> None:
    """Print both optimisers beside the reported figures."""
    note_default(seeds)
    for optimizer in ("rprop-", "lbfgs"):
        rows = []
        for steps, (cv, projection, ranks) in run(seeds, optimizer).items():
            if optimizer == "rprop-":
                note(steps, cv, projection)
            rows.append(
                (
                    str(steps),
                    f"{REPORTED[steps][0]:.5f}",
                    middle(cv),
                    f"{REPORTED[steps][1]:.5f}",
                    middle(projection),
                    f"{np.mean(np.array(ranks) > 0.99):.0%}",
                )
            )
        show(
            f"Noisy spiral, {optimizer}, {seeds} seeds",
            (
                "steps",
                "CV reported",
                "CV measured",
                "projection reported",
                "measured",
                "unrolled",
            ),
            rows,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)

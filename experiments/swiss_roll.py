"""Noisy Swiss roll: losses, leave-K-out and degree (Klanke 2007, Tables 5.4, 5.11, 5.12).

1,000 points, noise of standard deviation 0.5, q = 2, quartic kernel, Isomap start, 1,000 Rprop
steps on the leave-one-out or leave-3-out error, squared loss or Huber's with δ = 0.01; degrees 0,
1, 2 without and 2 with products of two latent coordinates. Reported are the mean distance of the
reconstructions from the roll and its mean with a sign, negative inwards, over 100 data sets. The
rows without a step are the scaled start at degree 0.

    python -m experiments.swiss_roll [seeds] [gaussian | laplacian]
"""

from __future__ import annotations

import sys

import numpy as np

from experiments.table import show, spread
from twofold import UKR
from twofold.datasets import make_swiss_roll
from twofold.losses import Huber, Squared
from twofold.regularization import LeaveKOut, LeaveOneOut

STEPS = 1000
DEGREES = (0, 1, "2-axes", 2)
LOSSES = {"squared": Squared(), "Huber": Huber(0.01)}
VALIDATIONS = {"leave-one-out": LeaveOneOut(), "leave-3-out": LeaveKOut(3)}
# Noise, cross-validation, loss: distance and bias for each degree.
REPORTED = {
    ("gaussian", "leave-one-out", "squared"): (
        (0.281, 0.238, 0.231, 0.214),
        (-0.026, -0.089, 0.005, 0.002),
    ),
    ("gaussian", "leave-one-out", "Huber"): (
        (0.236, 0.233, 0.190, 0.176),
        (-0.027, -0.146, 0.005, 0.002),
    ),
    ("gaussian", "leave-3-out", "squared"): (
        (0.333, 0.462, 0.304, 0.279),
        (-0.018, -0.220, -0.028, -0.027),
    ),
    ("gaussian", "leave-3-out", "Huber"): (
        (0.253, 0.285, 0.212, 0.192),
        (-0.033, -0.177, -0.004, -0.004),
    ),
    ("laplacian", "leave-one-out", "squared"): (
        (0.266, 0.231, 0.216, 0.200),
        (-0.020, -0.083, 0.004, 0.001),
    ),
    ("laplacian", "leave-one-out", "Huber"): (
        (0.225, 0.220, 0.179, 0.168),
        (-0.021, -0.130, 0.003, 0.002),
    ),
    ("laplacian", "leave-3-out", "squared"): (
        (0.309, 0.424, 0.277, 0.252),
        (-0.017, -0.203, -0.029, -0.024),
    ),
    ("laplacian", "leave-3-out", "Huber"): (
        (0.241, 0.265, 0.197, 0.184),
        (-0.039, -0.159, -0.004, -0.005),
    ),
}
REPORTED_DATA = {"gaussian": 0.401, "laplacian": 0.366}


def run(
    noise: str, seed: int, validation: str, loss: str, degree: int | str, steps: int
) -> tuple[float, float]:
    """Return distance and bias of the reconstructions of one model."""
    data = make_swiss_roll(1000, noise=0.5, noise_kind=noise, random_state=seed)
    model = UKR(
        kernel="quartic",
        degree=degree,
        regularization=VALIDATIONS[validation],
        loss=LOSSES[loss],
        init="isomap",
        optimizer="rprop-",
        max_iter=steps,
        tol=0,
        n_jobs=1,
        random_state=0,
    ).fit(data.Y)
    F = model.inverse_transform(model.embedding_)
    return float(data.distance(F).mean()), float(-data.signed_distance(F).mean())


def raw_distances(noise: str, seeds: int) -> list[float]:
    """Return how far the data themselves lie from the roll."""
    sets = (
        make_swiss_roll(1000, noise=0.5, noise_kind=noise, random_state=s) for s in range(seeds)
    )
    return [float(data.distance(data.Y).mean()) for data in sets]


def cells(noise: str, seeds: int, validation: str, loss: str) -> list[tuple[str, ...]]:
    """Return the rows of one loss and one kind of cross-validation."""
    rows = []
    reported = REPORTED[noise, validation, loss]
    trained = zip(DEGREES, (STEPS,) * len(DEGREES), *reported, strict=True)
    for degree, steps, distance, bias in [(0, 0, np.nan, np.nan), *trained]:
        found = [run(noise, seed, validation, loss, degree, steps) for seed in range(seeds)]
        distances, biases = (list(column) for column in zip(*found, strict=True))
        name = str(degree) if steps else f"{degree}, start"
        known = (f"{distance:.3f}", f"{bias:+.3f}") if steps else ("", "")
        rows.append(
            (validation, loss, name, known[0], spread(distances), known[1], spread(biases, 2))
        )
    return rows


def main(seeds: int, noise: str) -> None:
    """Print distance and bias of every model beside the reported ones."""
    rows = []
    for validation in VALIDATIONS:
        for loss in LOSSES:
            rows += cells(noise, seeds, validation, loss)
    raw = f"data {spread(raw_distances(noise, seeds))}, reported {REPORTED_DATA[noise]}"
    show(
        f"Swiss roll, {noise} noise, {seeds} seeds; distance of the {raw}",
        (
            "left out",
            "loss",
            "degree",
            "distance reported",
            "measured",
            "bias reported",
            "measured",
        ),
        rows,
    )


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 2,
        sys.argv[2] if len(sys.argv) > 2 else "gaussian",
    )

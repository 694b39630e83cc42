"""Noisy Swiss roll: losses, leave-K-out and degree (Klanke 2007, Tables 5.4 to 5.6, 5.11 to 5.13).

1,000 points, noise of standard deviation 0.5, q = 2, quartic kernel, Isomap start, 1,000 Rprop
steps on the leave-one-out or leave-3-out error, squared loss or Huber's with δ = 0.01; degrees 0,
1, 2 without and 2 with products of two latent coordinates. Reported are the mean distance of the
reconstructions from the roll and its mean with a sign, negative inwards, over 100 data sets. The
rows without a step are the scaled start at degree 0. Tables 5.5 and 5.6, leave-one-out and degree
0: of 10,000 latent places drawn from the bounding rectangle, the share with a density of at least
K(0) / 2000, and the distance of their images from the roll. Table 5.13: seconds of a fit.

    python -m experiments.swiss_roll [seeds] [gaussian | laplacian]
"""

from __future__ import annotations

import sys
import time
from typing import NamedTuple

import numpy as np

from experiments import ledger
from experiments.table import show, spread
from twofold import UKR
from twofold.datasets import Sample, make_swiss_roll
from twofold.losses import Huber, Squared
from twofold.regularization import LeaveKOut, LeaveOneOut

STEPS = 1000
PLACES = {
    "leave-one-out": "Klanke, Tables 5.4 and 5.11",
    "leave-3-out": "Klanke, Table 5.12",
}
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
# Standard deviations of the distances over the thesis' 100 data sets.
DEVIATIONS = {
    ("gaussian", "leave-one-out", "squared"): (0.020, 0.029, 0.027, 0.028),
    ("gaussian", "leave-one-out", "Huber"): (0.020, 0.049, 0.024, 0.022),
    ("gaussian", "leave-3-out", "squared"): (0.022, 0.049, 0.034, 0.035),
    ("gaussian", "leave-3-out", "Huber"): (0.027, 0.048, 0.031, 0.027),
    ("laplacian", "leave-one-out", "squared"): (0.022, 0.034, 0.029, 0.028),
    ("laplacian", "leave-one-out", "Huber"): (0.018, 0.054, 0.025, 0.022),
    ("laplacian", "leave-3-out", "squared"): (0.023, 0.054, 0.040, 0.037),
    ("laplacian", "leave-3-out", "Huber"): (0.030, 0.057, 0.032, 0.028),
}
# Tables 5.5 and 5.6, by noise and loss: distance of the manifold, share of valid places in percent.
REPORTED_MANIFOLD = {
    ("gaussian", "squared"): ((0.276, 0.014), (82.9, 6.7)),
    ("gaussian", "Huber"): ((0.245, 0.019), (79.2, 14.5)),
    ("laplacian", "squared"): ((0.271, 0.023), (73.3, 16.7)),
    ("laplacian", "Huber"): ((0.242, 0.024), (67.7, 21.2)),
}
REPORTED_SECONDS = dict(zip(DEGREES, (30.4, 36.4, 48.3, 46.9), strict=True))
LATENT_PLACES, LEAST_DENSITY = 10_000, 1 / 2000
REPORTED_DATA = {"gaussian": 0.401, "laplacian": 0.366}


class Outcome(NamedTuple):
    """Distance and bias of the reconstructions, and the model with the seconds of its fit."""

    distance: float
    bias: float
    seconds: float
    model: UKR
    data: Sample


def run(
    noise: str, seed: int, validation: str, loss: str, degree: int | str, steps: int
) -> Outcome:
    """Fit one model."""
    data = make_swiss_roll(1000, noise=0.5, noise_kind=noise, random_state=seed)
    began = time.process_time()
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
    seconds = time.process_time() - began
    F = model.inverse_transform(model.embedding_)
    distance, bias = data.distance(F).mean(), -data.signed_distance(F).mean()
    return Outcome(float(distance), float(bias), seconds, model, data)


def of_manifold(outcome: Outcome) -> tuple[float, float]:
    """Return the distance of the manifold from the roll, and the percentage of valid places."""
    model, X = outcome.model, outcome.model.embedding_
    places = np.random.default_rng(0).uniform(X.min(0), X.max(0), (LATENT_PLACES, 2))
    valid = model.density(places) >= LEAST_DENSITY
    distance = outcome.data.distance(model.inverse_transform(places[valid])).mean()
    return float(distance), 100 * float(valid.mean())


def raw_distances(noise: str, seeds: int) -> list[float]:
    """Return how far the data themselves lie from the roll."""
    sets = (
        make_swiss_roll(1000, noise=0.5, noise_kind=noise, random_state=s) for s in range(seeds)
    )
    return [float(data.distance(data.Y).mean()) for data in sets]


def note_times(degree: int | str, found: list[Outcome]) -> None:
    """Put the seconds of a fit into the ledger."""
    seconds = [one.seconds for one in found]
    reported = REPORTED_SECONDS[degree]
    ledger.figure("Klanke, Table 5.13", f"degree {degree}", reported, seconds, better="lower")


def note_manifold(noise: str, loss: str, found: list[Outcome]) -> None:
    """Put distance and extent of the manifold into the ledger."""
    figures = zip(*map(of_manifold, found), strict=True)
    names = ("distance of the manifold", "valid places, %")
    for name, (mean, deviation), values in zip(
        names, REPORTED_MANIFOLD[noise, loss], figures, strict=True
    ):
        what = f"{noise} noise, {loss}, {name}"
        better = "lower" if "distance" in name else None
        place = "Klanke, Tables 5.5 and 5.6"
        ledger.figure(place, what, mean, values, deviation=deviation, better=better)


def cells(noise: str, seeds: int, validation: str, loss: str) -> list[tuple[str, ...]]:
    """Return the rows of one loss and one kind of cross-validation."""
    rows = []
    reported = REPORTED[noise, validation, loss]
    trained = zip(DEGREES, (STEPS,) * len(DEGREES), *reported, strict=True)
    for degree, steps, distance, bias in [(0, 0, np.nan, np.nan), *trained]:
        found = [run(noise, seed, validation, loss, degree, steps) for seed in range(seeds)]
        distances, biases = [one.distance for one in found], [one.bias for one in found]
        if steps:
            note_times(degree, found)
            if (validation, degree) == ("leave-one-out", 0):
                note_manifold(noise, loss, found)
            place = PLACES[validation]
            what = f"{noise} noise, {loss}, degree {degree}: distance"
            deviation = DEVIATIONS[noise, validation, loss][DEGREES.index(degree)]
            ledger.figure(place, what, distance, distances, deviation=deviation, better="lower")
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
    distances = raw_distances(noise, seeds)
    ledger.figure(PLACES["leave-one-out"], f"data, {noise}", REPORTED_DATA[noise], distances)
    raw = f"data {spread(distances)}, reported {REPORTED_DATA[noise]}"
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

"""The evidence of an embedding: a gradient step beside one Cholesky factor of the same size.

A step needs the factor and the inverse, three times the operations of the factor alone; the rest
(exponentials, products with the data) should not show. Both run on one thread, in turns.

    python -m benchmarks.evidence [rows]
"""

from __future__ import annotations

import sys
import time

import numpy as np
from scipy.linalg import lapack

from benchmarks.report import Row, best_time, show
from twofold.datasets import make_swiss_roll
from twofold.engine.threads import single_threaded_blas
from twofold.selection import gp_evidence, whiten
from twofold.selection.evidence import GaussianProcess


def run(n: int = 2000) -> list[Row]:
    """Measure."""
    roll = make_swiss_roll(n, noise=0.1, random_state=0)
    process = GaussianProcess(whiten(roll.Y), whiten(roll.latent))
    place = np.log([0.3, 0.01])
    process.value(place)
    covariance = np.exp(-0.5 * process.sq_dists / 0.3**2) + 0.01 * np.eye(n)
    scratch = np.empty_like(covariance)

    def factor() -> object:
        scratch[:] = covariance  # as a step has to write the matrix before it is overwritten
        return lapack.dpotrf(scratch.T, lower=0, overwrite_a=1, clean=0)

    with single_threaded_blas():
        rounds = [
            (best_time(factor, 3), best_time(lambda: process.value_and_grad(place), 3))
            for _ in range(3)
        ]
    cholesky, step = np.min(rounds, axis=0)
    start = time.perf_counter()
    gp_evidence(roll.Y, roll.latent, max_points=n)
    whole = time.perf_counter() - start
    return [
        Row(f"gradient step of {n} rows, s", step),
        Row("gradient step / Cholesky factor", step / cholesky, 3.0),
        Row("search from three starts / Cholesky factor", whole / cholesky),
    ]


if __name__ == "__main__":
    show("Evidence", run(*(int(word) for word in sys.argv[1:])))

"""What each stage of a fit costs, and the error it leaves, for several latent dimensions.

3,000 MNIST images as 50 principal components in single precision, 3,000 held out. Costs are seconds
of computing, whichever core does it. Errors are shares of the variance: cross-validated ones of the
training rows after each stage, and the round trip of held-out rows in the end. The data is the file
mnist.npz with ``X``, ``y`` and ``n_train``; see twofold.datasets.load_npz.

    python -m benchmarks.stages [latent dimensions]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from benchmarks.digits import round_trip
from benchmarks.landmarks import rows_of_mnist
from twofold import UKR
from twofold.engine import KernelSums
from twofold.kernels import GAUSSIAN
from twofold.losses import Squared
from twofold.regularization import LeaveOneOut
from twofold.ukr.objective import Problem
from twofold.ukr.starts import ALL, Candidates, _Search
from twofold.ukr.training import UNFOLDED_STARTS, Training, train, unfold

ROWS = 3_000
DIMENSIONS = (2, 3, 5, 8, 16)
WARM_UP_ITERATIONS = 3


@dataclass
class Stages:
    """Stages by name: seconds of computing, and the error that each leaves."""

    found: dict[str, tuple[float, float]] = field(default_factory=dict)
    _last: float = field(default_factory=time.process_time)

    def end(self, name: str, error: float) -> None:
        """Take note of the stage that has just ended."""
        now = time.process_time()
        self.found[name] = now - self._last, error
        self._last = now


def measure(Y: np.ndarray, q: int, max_iter: int) -> dict[str, tuple[float, float]]:
    """Go through the stages of a fit to rows Y (n, D), as `twofold.ukr.training` does."""
    engine = KernelSums(GAUSSIAN)
    problem = Problem.of_rows(Y, np.ones(len(Y)), Squared(), LeaveOneOut(), engine)
    variance, stages = problem.spread(), Stages()
    search = _Search(problem, q, 0, lambda *_: None)
    search.candidates = Candidates(Y, q)
    few = problem.restricted_to(search.candidates.chosen)
    search.error = few.reconstruction(cross_validated=True)
    for name, methods in methods_of(q):
        search.try_methods(search.candidates, methods)
        stages.end(name, min(start.error for start in search.starts) / variance)
    start = search.finish()
    stages.end("all rows", start.error / variance)
    training = Training("lbfgs", max_iter, UKR().tol, [])
    solution = train(problem, start.X, training)
    stages.end("training", solution.value / variance)
    if start.name == "pca":
        # Training comes once more in there.
        solution = unfold(problem, start.X, training)
        stages.end("training, both ways tried", solution.value / variance)
    return stages.found


def methods_of(q: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield which starts are tried in q dimensions, those of a stage together."""
    if q > UNFOLDED_STARTS:
        yield "pca", ("pca",)
        return
    yield "spectral starts", tuple(method for method in ALL if method != "tsne")
    yield "t-SNE", ("tsne",)


def main() -> None:
    """Print a line for each stage."""
    dimensions = [int(word) for word in sys.argv[1:]] or DIMENSIONS
    train_rows, test_rows = rows_of_mnist()
    Y, T = train_rows[:ROWS], test_rows[:ROWS]
    print("| q | stage | seconds of computing | error |")
    print("|---|---|---|---|")
    for q in dimensions:
        measure(Y, q, WARM_UP_ITERATIONS)  # compiled before it is timed
        model = UKR(q, random_state=0).fit(Y)
        for name, (seconds, error) in measure(Y, q, model._most_iterations()).items():
            print(f"| {q} | {name} | {seconds:.1f} | {error:.3f} |", flush=True)
        print(f"| {q} | held-out rows | | {round_trip(model, Y, T):.3f} |", flush=True)


if __name__ == "__main__":
    main()

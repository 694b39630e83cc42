"""Co-ranking of 2,000, 10,000 and 100,000 points in 50 columns: time and memory.

Each size runs in a process of its own after the loops are compiled; memory is the growth of its
peak. Wall time depends on who else uses the machine, so core seconds (all threads added up) stand
beside it, and as ratios to those of scikit-learn's distances between the same queries and all
points, and of its trustworthiness (one number for one neighbourhood size, n × n arrays).

    python -m benchmarks.coranking [points ...]
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from sklearn import manifold
from sklearn.metrics import pairwise_distances_chunked

from benchmarks.report import Row, show
from twofold.metrics import coranking

SIZES = (2_000, 10_000, 100_000)
MOST_FOR_SCIKIT_LEARN = 2_000
MOST_SECONDS, MOST_MEGABYTES = 30.0, 500.0


def make_data(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a curved surface in 50 columns with noise, and its true coordinates."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, size=(n, 2))
    Y = np.sin(X @ rng.normal(size=(2, 50))) + 0.1 * rng.normal(size=(n, 50))
    return Y, X


def timed(work: Callable[[], object]) -> tuple[object, float, float]:
    """Return the result of some work, its wall time and its core seconds."""
    wall, cores = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - cores


def peak_megabytes() -> float:
    """Return the peak memory of this process so far (Linux counts kilobytes)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(n: int) -> dict[str, float]:
    """Return the figures of one size."""
    Y, X = make_data(n)
    coranking(Y[:500], X[:500])  # compiled before it is timed
    before = peak_megabytes()
    found, wall, cores = timed(lambda: coranking(Y, X, random_state=0))
    figures = {
        "seconds": wall,
        "core_seconds": cores,
        "megabytes": peak_megabytes() - before,
        "queries": len(found.queries),
        "auc": found.auc,
        "error": found.standard_error("auc"),
    }
    blocks = pairwise_distances_chunked(Y[found.queries], Y, working_memory=64)
    figures["distances"] = timed(lambda: sum(len(block) for block in blocks))[2]
    if n <= MOST_FOR_SCIKIT_LEARN:
        figures["scikit_learn"] = timed(lambda: manifold.trustworthiness(Y, X))[2]
    return figures


def run(sizes: tuple[int, ...] = SIZES) -> list[Row]:
    """Measure."""
    rows = []
    for n in sizes:
        command = [sys.executable, "-m", "benchmarks.coranking", "--measure", str(n)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        rows += [
            Row(f"{n:,} points, seconds", found["seconds"], MOST_SECONDS),
            Row(f"{n:,} points, core seconds", found["core_seconds"]),
            Row(f"{n:,} points, memory [MB]", found["megabytes"], MOST_MEGABYTES),
            Row(f"{n:,} points, cores / distances", found["core_seconds"] / found["distances"]),
            Row(f"{n:,} points, queries", found["queries"]),
            Row(f"{n:,} points, auc", found["auc"]),
            Row(f"{n:,} points, standard error of auc", found["error"]),
        ]
        if "scikit_learn" in found:
            ratio = found["core_seconds"] / found["scikit_learn"]
            rows.append(Row(f"{n:,} points, cores / scikit-learn's trustworthiness", ratio))
    return rows


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(int(sys.argv[2]))))
    else:
        show("Co-ranking", run(tuple(int(word) for word in sys.argv[1:]) or SIZES))

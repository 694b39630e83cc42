"""Latent sorting: time against the number of rows, beside scikit-learn's Isomap.

Exhaustive search of 256 columns, greedy search of 50, on two threads, after the loops are compiled.
Wall time depends on who else uses the machine, so core seconds (all threads added up) stand beside
it. Growth is the exponent of n in core seconds from the smallest to the largest size. Isomap embeds
the same rows into one dimension.

    python -m benchmarks.unn
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from sklearn.manifold import Isomap

from benchmarks.report import Row, show
from twofold import UNN
from twofold.unn.lattice import Lattice
from twofold.unn.line import Line

N_NEIGHBORS = 5
N_THREADS = 2
EXHAUSTIVE, GREEDY, LATTICE = (1_000, 2_000, 4_000), (12_500, 25_000, 50_000), (2_500, 5_000)
MOST_FOR_ISOMAP = 2_000


def make_data(n: int, D: int) -> np.ndarray:
    """Return rows near a curved three-dimensional sheet in D columns."""
    rng = np.random.default_rng(0)
    waves = rng.uniform(-1, 1, size=(n, 3)) @ rng.normal(size=(3, D)) * 1.5
    return np.cos(waves + rng.uniform(0, 2 * np.pi, size=D)) + 0.05 * rng.normal(size=(n, D))


def timed(work: Callable[..., object], *arguments: object) -> tuple[float, float]:
    """Return the wall time of some work and its core seconds."""
    wall, cores = time.perf_counter(), time.process_time()
    work(*arguments)
    return time.perf_counter() - wall, time.process_time() - cores


def growth(sizes: tuple[int, ...], seconds: list[float]) -> float:
    """Return the exponent of n from the smallest to the largest size."""
    return math.log(seconds[-1] / seconds[0]) / math.log(sizes[-1] / sizes[0])


def line(exhaustive: bool, criterion: str = "point") -> Line:
    return Line(
        n_neighbors=N_NEIGHBORS, criterion=criterion, exhaustive=exhaustive, n_threads=N_THREADS
    )


def run_exhaustive() -> list[Row]:
    """Time the search of all gaps."""
    rows, cores = [], []
    line(True).insert(make_data(50, 256))
    line(True, "full").insert(make_data(50, 256))
    for n in EXHAUSTIVE:
        Y = make_data(n, 256)
        wall, used = timed(line(True).insert, Y)
        cores.append(used)
        target = 5.0 if n == 2_000 else None
        rows.append(Row(f"exhaustive, {n:,} x 256, s", wall, target))
        rows.append(Row(f"exhaustive, {n:,} x 256, core s", used))
        if n == MOST_FOR_ISOMAP:
            isomap = timed(Isomap(n_components=1).fit, Y)[1]
            rows.append(Row("exhaustive / Isomap, core s", used / isomap))
            whole = timed(line(True, "full").insert, Y)[1]
            rows.append(Row(f"exhaustive, full criterion, {n:,} x 256, core s", whole))
            sorted_rows = line(True)
            sorted_rows.insert(Y)
            rows.append(Row("one sweep of refinement, core s", timed(sorted_rows.refine)[1]))
    rows.append(Row("exhaustive, growth", growth(EXHAUSTIVE, cores), 2.1))
    return rows


def run_greedy() -> list[Row]:
    """Time the search next to the nearest row."""
    rows, cores = [], []
    line(False).insert(make_data(50, 50))
    for n in GREEDY:
        Y = make_data(n, 50)
        wall, used = timed(line(False).insert, Y)
        cores.append(used)
        target = 30.0 if n == 50_000 else None
        rows.append(Row(f"greedy, {n:,} x 50, s", wall, target))
        rows.append(Row(f"greedy, {n:,} x 50, core s", used))
    rows.append(Row("greedy, growth", growth(GREEDY, cores), 2.1))
    return rows


def run_lattice() -> list[Row]:
    """Time the greedy search on a lattice of two dimensions."""
    rows, cores = [], []
    Lattice(2, n_neighbors=N_NEIGHBORS, exhaustive=False).insert(make_data(50, 50))
    for n in LATTICE:
        Y = make_data(n, 50)
        lattice = Lattice(
            2, n_neighbors=N_NEIGHBORS, n_rows=n, exhaustive=False, n_threads=N_THREADS
        )
        cores.append(timed(lattice.insert, Y)[1])
        rows.append(Row(f"greedy lattice, {n:,} x 50, core s", cores[-1]))
    rows.append(Row("greedy lattice, growth", growth(LATTICE, cores), 2.1))
    return rows


def run_defaults() -> list[Row]:
    """Time `fit` as users call it: checks, the search, refinement, the objective."""
    rows = []
    for search, n, D, target in (("exhaustive", 2_000, 256, 5.0), ("greedy", 50_000, 50, 30.0)):
        model = UNN(search=search, n_jobs=N_THREADS, random_state=0)
        model.fit(make_data(50, D))
        wall, used = timed(model.fit, make_data(n, D))
        rows.append(Row(f"UNN(search={search!r}).fit, {n:,} x {D}, s", wall, target))
        rows.append(Row(f"UNN(search={search!r}).fit, {n:,} x {D}, core s", used))
    return rows


def run() -> list[Row]:
    """Measure."""
    return [*run_exhaustive(), *run_greedy(), *run_lattice(), *run_defaults()]


if __name__ == "__main__":
    show("Latent sorting", run())

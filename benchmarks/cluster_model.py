"""What a transform over a cluster costs, predicted from one task, beside what it took.

One task is run in this process: seconds and bytes of memory a row. From these follow, for any
number of workers, the seconds of all rows, the most memory of a worker, and the bytes that are sent
(the model, and what is said about tasks; results of parts stay where they are). Then the same is
measured on worker processes, on a machine that does nothing else. docs/cluster.md says what follows
for clusters that nobody has here.

    python -m benchmarks.cluster_model --rows 400000 --workers 1 2 4
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import psutil
from distributed import Client, LocalCluster, wait

from benchmarks.beyond_memory import chunks, write
from benchmarks.cluster import in_parts, seconds_of, settings
from benchmarks.cluster_parquet import Watched
from twofold import UKR
from twofold.contract import lazy_answers

# What is said about a part: read, placed, kept.
BYTES_OF_A_TASK = 5_000


@dataclass(frozen=True)
class Costs:
    """What one row costs, and the model."""

    seconds: float
    bytes_of_task: float
    bytes_of_row: int
    bytes_of_place: int
    bytes_of_model: int

    def predicted(self, n: int, rows_of_a_part: int, workers: int) -> tuple[float, float, float]:
        """Return seconds, MB of memory of a worker beyond what it begins with, and kB sent."""
        at_once = min(workers, os.cpu_count() or 1)
        part = rows_of_a_part * (self.bytes_of_row + self.bytes_of_task)
        places = self.bytes_of_place * n / workers
        # The model goes to the scheduler, from there to the worker that opens it, and on to the
        # others; a part is a task, of which scheduler, worker and client speak.
        sent = (workers + 1) * self.bytes_of_model + BYTES_OF_A_TASK * n / rows_of_a_part
        return n * self.seconds / at_once, (part + places) / 1e6, sent / 1e3


def costs_of(model: UKR, rows: np.ndarray) -> Costs:
    """Measure one task, in seconds of computing and bytes."""

    def task() -> Any:
        return lazy_answers._ask(rows, model, "transform", {}, (), (2,))

    found = task()  # compiled
    started = time.process_time()
    task()
    seconds = time.process_time() - started
    tracemalloc.start()
    task()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    n, sent = len(rows), len(cloudpickle.dumps(model))
    return Costs(seconds / n, most / n, rows.nbytes // n, found.nbytes // n, sent)


def sent_here() -> int:
    """Return the bytes that processes of this machine have sent to each other."""
    return int(psutil.net_io_counters(pernic=True)["lo"].bytes_sent)


def measured(model: UKR, lazy: Any, workers: int) -> tuple[float, float, float]:
    """Return the same as `Costs.predicted`, of worker processes."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        # Every worker has opened what is compiled, and has read a few rows.
        small = lazy[:500].rechunk((500, -1)).persist()
        wait(small)
        for worker in client.nthreads():
            place = client.submit(model.transform, small.compute(), workers=[worker], pure=False)
            place.result()
        before = Watched(cluster)
        time.sleep(1)
        before.stop()
        sent = sent_here()
        during = Watched(cluster)
        kept: list[Any] = []
        seconds = seconds_of(lambda: kept.append(wait(model.transform(lazy).persist())))
        during.stop()
        sent = sent_here() - sent
    growth = max(during.most[name] - before.most[name] for name in before.most)
    return seconds, growth, sent / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--landmarks", type=int, default=100)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    args = parser.parse_args()
    rows = next(chunks(args.rows, args.columns))
    model = UKR(**settings(args, 1)).fit(rows[: 20 * args.landmarks])
    costs = costs_of(model, rows[:25_000])
    print(
        f"a row: {1e6 * costs.seconds:.0f} µs, {costs.bytes_of_row} bytes and "
        f"{costs.bytes_of_task:.0f} in a task, {costs.bytes_of_place} kept; "
        f"model {costs.bytes_of_model / 1e3:.0f} kB"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        write(path, args.rows, args.columns)
        lazy = in_parts(path, args.rows, args.columns)
        for workers in args.workers:
            pairs = zip(
                ("s", "MB a worker", "kB sent"),
                costs.predicted(args.rows, lazy.chunks[0][0], workers),
                measured(model, lazy, workers),
                strict=True,
            )
            words = [f"{a:.1f} predicted, {b:.1f} measured {unit}" for unit, a, b in pairs]
            print(f"{args.rows:,} rows, {workers} workers: {'; '.join(words)}", flush=True)


if __name__ == "__main__":
    main()

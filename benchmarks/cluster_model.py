"""What a transform over a cluster costs, predicted from tasks run alone, beside what it took.

A worker alone runs one task of two sizes, and then reads all parts and does nothing to them. From
the first follow seconds and memory, of a row and of a process; from the second what reading and
dask take for a part. For W workers of which C can compute at once, parts of r rows, P of them,

    seconds = ⌈P / C⌉ · (r · seconds of a row) + P / C · seconds of a part
    memory  = of a process + r · of a row + places kept
    sent    = (W + 1) · model + P · what is said about a task

Then the same is measured on worker processes, on a machine that does nothing else. Work that a
worker takes over from another one (dask does so near the end) sends parts: that is not predicted.
docs/cluster.md says what follows for clusters that nobody has here.

    python -m benchmarks.cluster_model --rows 400000 --workers 1 2 4
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import psutil
from distributed import Client, LocalCluster, wait

from benchmarks.beyond_memory import chunks, write
from benchmarks.cluster import in_parts, part_of, seconds_of, settings
from benchmarks.cluster_parquet import Watched
from twofold import UKR
from twofold.contract import lazy_answers

# What is said about a part: read, placed, kept.
BYTES_OF_A_TASK = 5_000


@dataclass(frozen=True)
class Costs:
    """What a row, a part and a worker cost, and the model."""

    seconds: float  # of a row
    seconds_of_part: float  # read, and handled by dask
    bytes_of_row: float  # in a task, its own bytes included
    bytes_of_worker: float  # buffers and code that any task needs
    bytes_of_place: int
    bytes_of_model: int

    def predicted(self, n: int, rows_of_a_part: int, workers: int) -> tuple[float, float, float]:
        """Return seconds, MB of memory of a worker beyond what it begins with, and kB sent."""
        at_once = min(workers, os.cpu_count() or 1)
        n_parts = math.ceil(n / rows_of_a_part)
        seconds = math.ceil(n_parts / at_once) * rows_of_a_part * self.seconds
        seconds += n_parts / at_once * self.seconds_of_part
        memory = self.bytes_of_worker + rows_of_a_part * self.bytes_of_row
        memory += self.bytes_of_place * n / workers
        # The model goes to the scheduler, from there to the worker that opens it, and on to the
        # others; a part is a task, of which scheduler, worker and client speak.
        sent = (workers + 1) * self.bytes_of_model + BYTES_OF_A_TASK * n_parts
        return seconds, memory / 1e6, sent / 1e3


def costs_of(model: UKR, path: Path, lazy: Any) -> Costs:
    """Measure tasks of one worker that has nothing else to do."""
    rows_of_a_part = lazy.chunks[0][0]
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        watched = Watched(cluster, every=0.01)

        def run(n: int) -> tuple[float, float]:
            """Return the seconds of a task, and the MB that the worker has reached."""
            seconds = client.submit(one_task, str(path), n, model, pure=False).result()
            return seconds, max(watched.most.values())

        run(500)  # compiled
        time.sleep(0.1)
        begun = max(watched.most.values())
        few, many = rows_of_a_part // 2, rows_of_a_part
        _, half = run(few)
        seconds, whole = run(many)
        watched.stop()
        wait(in_parts(path, len(lazy), lazy.shape[1]).map_blocks(first_column).persist())
        kept: list[Any] = []
        read = seconds_of(lambda: kept.append(wait(lazy.map_blocks(first_column).persist())))
    of_row = (whole - half) * 1e6 / (many - few)
    of_worker = (half - begun) * 1e6 - few * of_row
    place = model.latent_.shape[1] * model.latent_.itemsize
    sent = len(cloudpickle.dumps(model))
    return Costs(seconds / many, read / lazy.numblocks[0], of_row, of_worker, place, sent)


def one_task(path: str, n: int, model: UKR) -> float:
    """Place n rows as a task does; return the seconds that it takes."""
    rows = part_of(path, 0, n)
    started = time.perf_counter()
    lazy_answers._ask(rows, model, "transform", {}, (), (2,))
    return time.perf_counter() - started


def first_column(part: np.ndarray) -> np.ndarray:
    """Return hardly anything."""
    return np.array(part[:, :1])


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
    rows = next(chunks(20 * args.landmarks, args.columns))
    model = UKR(**settings(args, 1)).fit(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        write(path, args.rows, args.columns)
        lazy = in_parts(path, args.rows, args.columns)
        costs = costs_of(model, path, lazy)
        print(
            f"a row: {1e6 * costs.seconds:.1f} µs and {costs.bytes_of_row:.0f} bytes in a task, "
            f"{costs.bytes_of_place} kept; a part: {1e3 * costs.seconds_of_part:.0f} ms; a worker: "
            f"{costs.bytes_of_worker / 1e6:.0f} MB; model {costs.bytes_of_model / 1e3:.0f} kB",
            flush=True,
        )
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

"""Fits and projections over worker processes, beside the same on threads of one process.

The table is a noisy curved sheet, in parts that are mapped from one file. For each number of
workers, in the same run: seconds of a fit with landmarks and of a transform, as ratios to the same
with as many threads; bytes of the sample that reach the client; how much the memory of the client
grows (RssAnon, which leaves mapped files out).

    python -m benchmarks.cluster --rows 50000 200000 --workers 1 2 4
    python -m benchmarks.cluster --rows 2000000 --workers 2 --transform-only --order ct
    python -m benchmarks.cluster --rows 20000 --workers 2 --no-landmarks
    python -m benchmarks.cluster --rows 20000 --per-row   # what a row costs, without a cluster
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import cloudpickle
import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster

from benchmarks.beyond_memory import chunks, write
from twofold import UKR
from twofold.contract import spread_fitting
from twofold.contract.distinct_rows import LARGEST_KEY, bound_of_lowest

# Parts that there are at least, so that no worker waits long.
LEAST_PARTS = 16


class Peak:
    """The most memory of this process's own inside a block, above what it was before."""

    def __enter__(self) -> Peak:
        self.before = self.most = self._now()
        self._done = threading.Event()
        self._looker = threading.Thread(target=self._look)
        self._looker.start()
        return self

    def _look(self) -> None:
        while not self._done.wait(0.02):
            self.most = max(self.most, self._now())

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._looker.join()
        self.megabytes = self.most - self.before

    @staticmethod
    def _now() -> float:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) / 1024


def part_of(path: str, start: int, stop: int) -> np.ndarray:
    """Read rows of a file, as a worker does."""
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def edges_of_parts(n: int, rows_of_a_part: int = 25_000) -> list[int]:
    """Return the first row of each part, and the number of all rows."""
    n_parts = max(LEAST_PARTS, n // rows_of_a_part)
    return np.linspace(0, n, n_parts + 1).astype(int).tolist()


def in_parts(path: Path, n: int, D: int, rows_of_a_part: int = 25_000) -> da.Array:
    """Return the file as an array of dask whose parts are read by whoever computes them."""
    import dask

    edges = edges_of_parts(n, rows_of_a_part)
    read = dask.delayed(part_of)
    pairs = pairwise(edges)
    return da.concatenate(
        [da.from_delayed(read(str(path), a, b), (b - a, D), np.float32) for a, b in pairs]
    )


def sample_bytes(path: Path, model: UKR, n: int, D: int) -> int:
    """Return how many bytes of rows all parts together send to be merged."""
    most = model._most_rows(D) or n
    bound = bound_of_lowest(most, n)
    edges = edges_of_parts(n)
    fresh, total = UKR(landmarks=model.landmarks), 0
    fresh.n_features_in_ = D
    for a, b in pairwise(edges):
        part = part_of(str(path), a, b)
        found = spread_fitting._look(
            fresh, part, 1.0, 0, a, np.dtype(np.float32), most, bound
        ).sample
        total += 0 if found is None else found.Y.nbytes + found.weights.nbytes + found.first.nbytes
    return total


def settings(args: argparse.Namespace, n_jobs: int) -> dict[str, Any]:
    """Return the parameters of all models; without landmarks steps are costly enough to share."""
    if getattr(args, "no_landmarks", False):
        how: dict[str, Any] = {"degree": 1, "init": "pca", "max_iter": 5, "random_state": 0}
        return {**how, "verbose": False, "n_jobs": n_jobs}
    return {
        "landmarks": args.landmarks,
        "random_state": 0,
        "max_iter": 20,
        "init": "pca",
        "verbose": False,
        "n_jobs": n_jobs,
    }


def measure(path: Path, n: int, workers: int, args: argparse.Namespace) -> None:
    """Print one line: seconds over a cluster, beside those of as many threads."""
    rows, lazy = np.load(path, mmap_mode="r"), in_parts(path, n, args.columns, args.part)
    small = np.array(rows[: 20 * args.landmarks])
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        few = da.from_array(small, chunks=(100, args.columns))
        model = UKR(**settings(args, workers)).fit(few)
        model.transform(few).compute()  # everybody has opened what is compiled
        UKR(**settings(args, workers)).fit(small).transform(small)
        words = [f"{n:>10,} rows, {workers} workers:"]
        if not args.transform_only:
            words.append(fitted_both_ways(rows, lazy, workers, args))
        if not args.no_landmarks:
            if not args.transform_only:
                sent = sample_bytes(path, model, n, args.columns) / 1e6
                words.append(f"sample {sent:.1f} MB;")
            processes = [
                psutil.Process(),
                *(psutil.Process(w.pid) for w in cluster.workers.values()),
            ]
            words.append(placed_both_ways(model, rows, lazy, workers, args.order, processes))
    print(*words, flush=True)


def fitted_both_ways(rows: Any, lazy: da.Array, workers: int, args: argparse.Namespace) -> str:
    """Return what a fit to all rows takes, and whether both ways give the same bits."""
    found: dict[str, UKR] = {}

    def fit(name: str, table: Any) -> None:
        found[name] = UKR(**settings(args, workers)).fit(table)

    took = in_turn(args.order, lambda: fit("t", rows), lambda: fit("c", lazy))
    equal = np.array_equal(np.asarray(found["c"].embedding_), found["t"].embedding_)
    return f"fit {compared(took, workers)}, client {took['MB']:+.0f} MB, same bits: {equal};"


def placed_both_ways(
    model: UKR,
    rows: Any,
    lazy: da.Array,
    workers: int,
    order: str,
    processes: list[psutil.Process],
) -> str:
    """Return what a transform of all rows takes, also in seconds of computing."""
    took = in_turn(
        order,
        lambda: model.transform(rows),
        lambda: model.transform(lazy).sum().compute(),
        processes,
    )
    computed = took["computed c"] / took["computed t"]
    return (
        f"transform {compared(took, workers)} ({computed:.3f} of their computing), client "
        f"{took['MB']:+.0f} MB"
    )


def in_turn(
    order: str,
    by_threads: Callable[[], object],
    by_cluster: Callable[[], object],
    processes: list[psutil.Process] | None = None,
) -> dict[str, float]:
    """Return seconds of both ways, in an order such as "tcct", and memory of the client.

    Of several turns the shortest counts, which other work on the machine has held up least.
    """
    took: dict[str, list[float]] = {}
    for way in order:
        computed = computing_of(processes or [])
        with Peak() as peak:
            seconds = seconds_of(by_threads if way == "t" else by_cluster)
        took.setdefault(way, []).append(seconds)
        took.setdefault(f"computed {way}", []).append(computing_of(processes or []) - computed)
        if way == "c":
            took.setdefault("MB", []).append(peak.megabytes)
    return {name: max(values) if name == "MB" else min(values) for name, values in took.items()}


def compared(took: dict[str, float], workers: int) -> str:
    """Return seconds over the cluster, beside those of as many threads."""
    return (
        f"{took['c']:.1f} s, {took['c'] / took['t']:.3f} of {workers} threads ({took['t']:.1f} s)"
    )


def computing_of(processes: list[psutil.Process]) -> float:
    """Return the seconds that processes have computed, in the system, too."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def seconds_of(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def per_row(args: argparse.Namespace) -> None:
    """Print what a row costs, in seconds of computing and in bytes, from tasks run right here."""
    D, n = args.columns, args.rows[0]
    rows = next(chunks(n, D))
    model = UKR(**settings(args, 1)).fit(rows[: 5 * args.landmarks])
    empty = UKR(landmarks=args.landmarks)
    empty.n_features_in_ = D
    of_part = (0, 0, rows.dtype)
    share = int(LARGEST_KEY * 0.01)  # of a long table few rows are in the sample
    seen = spread_fitting._look(empty, rows, 1.0, *of_part, 65_536, share)
    tasks = {
        "look": lambda: spread_fitting._look(empty, rows, 1.0, *of_part, 65_536, share),
        "place": lambda: spread_fitting._place(model, rows, *of_part, seen.digests[0]),
    }
    print(f"{len(rows):,} rows of {D} columns, {rows.nbytes / len(rows):.0f} bytes each")
    for name, task in tasks.items():
        task()  # compiled
        started = time.process_time()
        task()
        seconds = time.process_time() - started
        tracemalloc.start()
        task()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"{name}: {1e6 * seconds / len(rows):.1f} µs and {most / len(rows):.0f} bytes a row")
    print(f"model: {len(cloudpickle.dumps(model)) / 1e3:.0f} kB")
    lazy = da.zeros((1000, D), chunks=(1, D))
    sizes = [
        len(cloudpickle.dumps(dict(model.transform(lazy[:k]).dask))) / 1e3 for k in (100, 1000)
    ]
    print(f"graph of a transform: {(sizes[1] - sizes[0]) / 900:.2f} kB a part")
    print(f"places: {model.latent_.shape[1] * model.latent_.itemsize} bytes a row")


def parser_of_sizes(description: str, rows: list[int]) -> argparse.ArgumentParser:
    """Return a parser of the sizes of tables, models and clusters."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=rows)
    parser.add_argument("--part", type=int, default=25_000, help="rows of a part")
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--landmarks", type=int, default=100)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    return parser


def main() -> None:
    parser = parser_of_sizes(__doc__, [50_000, 200_000])
    parser.add_argument(
        "--no-landmarks", action="store_true", help="fits of all rows, whose sums workers share"
    )
    parser.add_argument("--transform-only", action="store_true", help="a fit to few rows only")
    parser.add_argument(
        "--order", default="tcct", help="who goes first: t are threads, c the cluster"
    )
    parser.add_argument("--per-row", action="store_true", help="what a row costs, and no cluster")
    args = parser.parse_args()
    if args.per_row:
        per_row(args)
        return
    with tempfile.TemporaryDirectory() as folder:
        for n in args.rows:
            path = Path(folder) / f"rows-{n}.npy"
            write(path, n, args.columns)
            for workers in args.workers:
                measure(path, n, workers, args)


if __name__ == "__main__":
    main()

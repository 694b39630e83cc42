"""Fits and projections over worker processes, beside the same on threads of one process.

The table is a noisy curved sheet, in parts that are mapped from one file. For each number of
workers, in the same run: seconds of a fit with landmarks and of a transform, as ratios to the same
with as many threads; bytes of the sample that reach the client; how much the memory of the client
grows (RssAnon, which leaves mapped files out).

    python -m benchmarks.cluster --rows 50000 200000 --workers 1 2 4
    python -m benchmarks.cluster --rows 20000 --per-row   # what a row costs, without a cluster
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
import tracemalloc
from itertools import pairwise
from pathlib import Path

import cloudpickle
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from benchmarks.beyond_memory import chunks
from twofold import UKR
from twofold.contract import spread_fitting

PARTS = 16


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


def in_parts(path: Path, n: int, D: int) -> da.Array:
    """Return the file as an array of dask whose parts are read by whoever computes them."""
    import dask

    edges = np.linspace(0, n, PARTS + 1).astype(int).tolist()
    read = dask.delayed(part_of)
    pairs = pairwise(edges)
    return da.concatenate(
        [da.from_delayed(read(str(path), a, b), (b - a, D), np.float32) for a, b in pairs]
    )


def sample_bytes(path: Path, model: UKR, n: int, D: int) -> int:
    """Return how many bytes of rows all parts together send to be merged."""
    most = model._most_rows(D) or n
    enough = most + spread_fitting.MARGIN * np.sqrt(most) + 1
    bound = min(spread_fitting.LARGEST_KEY, int(spread_fitting.LARGEST_KEY * enough / n))
    edges = np.linspace(0, n, PARTS + 1).astype(int).tolist()
    fresh, total = UKR(landmarks=model.landmarks), 0
    fresh.n_features_in_ = D
    for a, b in pairwise(edges):
        part = part_of(str(path), a, b)
        found = spread_fitting._look(
            fresh, part, 1.0, 0, a, np.dtype(np.float32), most, bound
        ).sample
        total += 0 if found is None else found.Y.nbytes + found.weights.nbytes + found.first.nbytes
    return total


def settings(args: argparse.Namespace, n_jobs: int) -> dict[str, object]:
    return {
        "landmarks": args.landmarks,
        "random_state": 0,
        "max_iter": 20,
        "init": "pca",
        "verbose": False,
        "n_jobs": n_jobs,
    }


def measure(path: Path, n: int, workers: int, args: argparse.Namespace) -> None:
    rows, lazy = np.load(path, mmap_mode="r"), in_parts(path, n, args.columns)
    small = np.array(rows[:2000])
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        first = UKR(**settings(args, workers)).fit(da.from_array(small, chunks=(100, args.columns)))
        first.transform(da.from_array(small, chunks=(100, args.columns))).compute()
        started = time.perf_counter()
        alone = UKR(**settings(args, workers)).fit(rows)
        fit_alone = time.perf_counter() - started
        with Peak() as peak:
            started = time.perf_counter()
            model = UKR(**settings(args, workers)).fit(lazy)
            fit_spread = time.perf_counter() - started
        equal = np.array_equal(model.embedding_.compute(), alone.embedding_)
        started = time.perf_counter()
        alone.transform(rows)
        transform_alone = time.perf_counter() - started
        started = time.perf_counter()
        alone.transform(lazy).sum().compute()
        transform_spread = time.perf_counter() - started
    sent = sample_bytes(path, alone, n, args.columns) / 1e6
    print(
        f"{n:>10,} rows, {workers} workers: fit {fit_spread:6.1f} s, {fit_spread / fit_alone:.2f} "
        f"of {workers} threads; transform {transform_spread:6.1f} s, "
        f"{transform_spread / transform_alone:.2f}; sample {sent:.1f} MB; "
        f"client {peak.megabytes:+.0f} MB; same bits: {equal}",
        flush=True,
    )


def per_row(args: argparse.Namespace) -> None:
    """Print what a row costs, in seconds of computing and in bytes, from tasks run right here."""
    D, n = args.columns, args.rows[0]
    rows = next(chunks(n, D))
    model = UKR(**settings(args, 1)).fit(rows[: 5 * args.landmarks])
    empty = UKR(landmarks=args.landmarks)
    empty.n_features_in_ = D
    of_part = (0, 0, rows.dtype)
    share = int(spread_fitting.LARGEST_KEY * 0.01)  # of a long table few rows are in the sample
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[50_000, 200_000])
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--landmarks", type=int, default=100)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--per-row", action="store_true", help="what a row costs, and no cluster")
    args = parser.parse_args()
    if args.per_row:
        per_row(args)
        return
    with tempfile.TemporaryDirectory() as folder:
        for n in args.rows:
            path = Path(folder) / f"rows-{n}.npy"
            np.save(path, np.concatenate(list(chunks(n, args.columns))))
            for workers in args.workers:
                measure(path, n, workers, args)


if __name__ == "__main__":
    main()

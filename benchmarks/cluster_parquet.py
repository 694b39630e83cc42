"""A table larger than its workers' memory: Parquet parts, fitted and transformed, memory watched.

A noisy curved sheet is written as Parquet parts. Workers with a limit of memory each fit a map to
it, place all rows, and write the places. Printed: seconds of each step, the most memory of each
worker (its resident set, code and packages included) and of the client (its own pages, less what it
had after a fit to few rows), and whether a worker ran out of memory and was ended.

    python -m benchmarks.cluster_parquet --rows 5000000 --columns 50 --workers 2 --memory 2GB
    python -m benchmarks.cluster_parquet --rows 100000 400000 1600000 --columns 10 --landmarks 20
    python -m benchmarks.cluster_parquet --parts FOLDER   # of files that an earlier --write-to left
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path

import dask.dataframe as dd
import pandas as pd
import psutil
from distributed import Client, LocalCluster

from benchmarks.beyond_memory import chunks
from benchmarks.cluster import Peak
from twofold import UKR


class Watched:
    """The most memory of each worker of a cluster, and all processes that its workers had."""

    def __init__(self, cluster: LocalCluster, every: float = 0.2) -> None:
        self._seconds = every
        self._cluster, self.most, self.pids = cluster, dict[str, float](), set[int]()
        self._done = threading.Event()
        self._looker = threading.Thread(target=self._look, daemon=True)
        self._looker.start()

    def _look(self) -> None:
        while not self._done.wait(self._seconds):
            for name, nanny in self._cluster.workers.items():
                try:
                    used = psutil.Process(nanny.pid).memory_info().rss / 1e6
                except (psutil.Error, TypeError, ValueError):  # between two lives
                    continue
                self.pids.add(nanny.pid)
                self.most[str(name)] = max(self.most.get(str(name), 0.0), used)

    def stop(self) -> None:
        """Look no longer."""
        self._done.set()
        self._looker.join()


def written(folder: Path, n: int, D: int) -> Path:
    """Write n rows as Parquet files of 50,000 rows to a new folder, and return it."""
    started = time.perf_counter()
    folder.mkdir()
    names = [f"feature {j}" for j in range(D)]
    for number, Y in enumerate(chunks(n, D)):
        path = folder / f"part-{number:05}.parquet"
        pd.DataFrame(Y, columns=names).to_parquet(path, compression=None)
    size, seconds = sum(path.stat().st_size for path in folder.iterdir()), time.perf_counter()
    print(f"{n:,} x {D}: {size / 1e9:.2f} GB, {seconds - started:.0f} s", flush=True)
    return folder


def measure(parts: Path, folder: Path, args: argparse.Namespace) -> None:
    """Fit to part files, place their rows, write the places to a folder, and print what it took."""
    how = {"landmarks": args.landmarks, "init": "pca", "max_iter": 20, "random_state": 0}
    few = pd.read_parquet(parts / "part-00000.parquet")[: 20 * args.landmarks]
    with Peak() as small:  # which opens what is compiled
        UKR(**how, verbose=False).fit(few).transform(few)
    with (
        LocalCluster(
            n_workers=args.workers,
            threads_per_worker=1,
            memory_limit=args.memory,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster),
        Peak() as client,
    ):
        watched = Watched(cluster)
        table = dd.read_parquet(parts)
        started = time.perf_counter()
        model = UKR(**how, verbose=False).fit(table)
        print(
            f"fitted {len(model.embedding_):,} rows: {time.perf_counter() - started:.0f} s",
            flush=True,
        )
        started = time.perf_counter()
        model.transform(table).to_parquet(folder / "places")
        print(f"placed and written: {time.perf_counter() - started:.0f} s", flush=True)
        print(f"mean squared error: {-model.score(table.partitions[:2]):.5f} a row")
        watched.stop()
    n_places = sum(len(pd.read_parquet(path)) for path in (folder / "places").glob("*.parquet"))
    print(f"places in files: {n_places:,}")
    shown = ", ".join(f"{used:.0f}" for used in watched.most.values())
    print(
        f"most memory of the workers: {shown} MB; of the client {client.megabytes:+.0f} MB, "
        f"{client.most:.0f} in all ({small.megabytes:+.0f} by a fit to few rows before)"
    )
    print(f"processes of workers: {len(watched.pids)} (more than {args.workers}: one was ended)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000_000])
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--landmarks", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--write-to", type=Path, help="write part files here, and do no more")
    parser.add_argument("--parts", type=Path, help="part files that are there")
    args = parser.parse_args()
    if args.write_to is not None:
        written(args.write_to, args.rows[0], args.columns)
        return
    for n in args.rows:
        with tempfile.TemporaryDirectory() as folder:
            parts = args.parts or written(Path(folder) / "parts", n, args.columns)
            measure(parts, Path(folder), args)


if __name__ == "__main__":
    main()

"""More rows than one process wants to hold: part files, several workers, one model.

A curved sheet in 20 dimensions is written as Parquet files; worker processes on this machine draw a
sample of its rows, place all of them on the map that is made of it, and carry new rows there and
back. The same lines work with the address of a cluster.

    python examples/cluster_demo.py [workers] [rows]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

from twofold import UKR, Scaled

PARTS = 8


def write_parts(folder: Path, n: int) -> None:
    """Write n noisy rows of a curved sheet as Parquet files, with gaps in one column."""
    rng = np.random.default_rng(0)
    waves, phases = rng.normal(size=(2, 20)), rng.uniform(0, 6, 20)
    for number, rows in enumerate(np.array_split(np.arange(n), PARTS)):
        X = rng.uniform(-1, 1, size=(len(rows), 2))
        Y = np.sin(X @ waves + phases) + rng.normal(scale=0.05, size=(len(rows), 20))
        Y[::50, 3] = np.nan
        frame = pd.DataFrame(Y, columns=[f"sensor {j}" for j in range(20)])
        frame.to_parquet(folder / f"part-{number}.parquet")


def main(n_workers: int, n_rows: int) -> None:
    """Fit, transform and complete over worker processes."""
    with tempfile.TemporaryDirectory() as folder:
        write_parts(Path(folder), n_rows)
        with (
            LocalCluster(
                n_workers=n_workers, threads_per_worker=1, dashboard_address=":0"
            ) as cluster,
            Client(cluster) as client,
        ):
            print(
                f"{n_rows:,} rows in {PARTS} files, {n_workers} workers at {client.scheduler_info()['address']}"
            )
            table = dd.read_parquet(folder)
            started = time.perf_counter()
            model = Scaled(UKR(landmarks=200, random_state=0, max_iter=20)).fit(table)
            print(f"fitted in {time.perf_counter() - started:.1f} s")
            print(f"places: {model.embedding_}")
            filled = model.complete(table)
            print(f"gaps: {int(table.isna().sum().sum().compute())} before, "
                  f"{int(filled.isna().sum().sum().compute())} after")  # fmt: skip
            print(f"mean squared error: {-model.score(table):.4f} in units of scaled columns")


if __name__ == "__main__":
    main(*map(int, [*sys.argv[1:], *("2", "40000")[len(sys.argv) - 1 :]]))

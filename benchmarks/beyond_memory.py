"""Fits to tables on disk: how long they take, and that their memory does not grow with the rows.

Tables of noisy points of a curved sheet are written in chunks, and a model with landmarks is fitted
to each in a process of its own. Its peak of memory is that of its own pages (RssAnon, looked at
every hundredth of a second; pages of a mapped file give way and do not count), less what it was
after a fit to few rows: what Python, its packages and compiled code take.

    python -m benchmarks.beyond_memory --rows 500000 2000000 --columns 50 --kinds npy parquet csv
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

ROWS_AT_A_TIME = 50_000

CHILD = """
import json, sys, threading, time
from pathlib import Path
import numpy as np
from twofold import UKR

highest = 0.0

def look():
    global highest
    while True:
        lines = Path("/proc/self/status").read_text().splitlines()
        own = next(line for line in lines if line.startswith("RssAnon"))
        highest = max(highest, int(own.split()[1]) / 1024)
        time.sleep(0.01)

threading.Thread(target=look, daemon=True).start()
settings = dict(landmarks=int(sys.argv[2]), random_state=0, max_iter=20, init="pca", verbose=False)
few = np.random.default_rng(0).normal(size=(2000, int(sys.argv[3]))).astype(np.float32)
UKR(**settings).fit(few)
before, started = highest, time.perf_counter()
model = UKR(**settings).fit(sys.argv[1])
seconds = time.perf_counter() - started
assert len(model.embedding_) == int(sys.argv[4])
print(json.dumps([seconds, before, highest]))
"""


def chunks(n: int, D: int) -> Iterator[np.ndarray]:
    """Yield rows of a sheet that is curved in D dimensions, float32."""
    rng = np.random.default_rng(0)
    waves = rng.normal(size=(2, D)), rng.uniform(0, 2 * np.pi, D)
    for start in range(0, n, ROWS_AT_A_TIME):
        X = rng.uniform(-1, 1, size=(min(ROWS_AT_A_TIME, n - start), 2))
        Y = np.sin(X @ waves[0] + waves[1]) + rng.normal(scale=0.05, size=(len(X), D))
        yield Y.astype(np.float32)


def write(path: Path, n: int, D: int) -> None:
    """Write a table of the kind that its suffix says, chunk by chunk."""
    names = [f"feature {k}" for k in range(D)]
    if path.suffix == ".npy":
        rows = np.lib.format.open_memmap(path, "w+", np.float32, (n, D))
        start = 0
        for Y in chunks(n, D):
            rows[start : start + len(Y)] = Y
            start += len(Y)
    elif path.suffix == ".csv":
        with path.open("w") as file:
            file.write(",".join(names) + "\n")
            for Y in chunks(n, D):
                pd.DataFrame(Y).to_csv(file, header=False, index=False, float_format="%.6g")
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema([(name, pa.float32()) for name in names])
        with pq.ParquetWriter(path, schema) as writer:
            for Y in chunks(n, D):
                writer.write_table(pa.table([pa.array(y) for y in Y.T], schema=schema))


def main() -> None:
    """Print a line for each table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[500_000, 2_000_000])
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--landmarks", type=int, default=100)
    parser.add_argument("--kinds", nargs="+", default=["npy", "parquet", "csv"])
    given = parser.parse_args()
    print("| file | rows | on disk | in memory | seconds | peak above a small fit |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for kind in given.kinds:
            for n in given.rows:
                path = Path(folder) / f"rows.{kind}"
                write(path, n, given.columns)
                numbers = [str(given.landmarks), str(given.columns), str(n)]
                command = [sys.executable, "-c", CHILD, str(path), *numbers]
                told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                seconds, before, peak = json.loads(told.splitlines()[-1])
                sizes = path.stat().st_size / 1e6, n * given.columns * 4 / 1e6
                print(
                    f"| {kind} | {n:,} | {sizes[0]:.0f} MB | {sizes[1]:.0f} MB | {seconds:.0f} | "
                    f"{peak - before:.0f} MB (of {peak:.0f}) |",
                    flush=True,
                )
                path.unlink()


if __name__ == "__main__":
    main()

"""What a transform over a cluster costs, predicted from tasks run alone, beside what it took.

One worker transforms a few parts, and then as many smaller ones. From both follow seconds of
computing and memory, of a row, of a part and of a process. For W workers, P parts of r rows each,

    computing of all workers = P · (r · of a row + of a part)
    memory of a worker       = of a process + r · of a row + places kept
    sent                     = (W + 1) · model + P · what is said about a task

Then the same is measured on worker processes. Seconds are those of computing, which do not depend
on what else a machine does; on an idle one they take 1 / (cores in use) of it. A part that one
worker has read and another one places (dask moves work near the end, more of it if there are more
workers than cores) is sent: that is not predicted, but counted, by the workers themselves.
docs/cluster.md says what follows for clusters that nobody has here.

    python -m benchmarks.cluster_model --rows 400000 --workers 1 2 4
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import dask.array as da
import psutil
from distributed import Client, LocalCluster, wait

from benchmarks.beyond_memory import chunks, write
from benchmarks.cluster import computing_of, in_parts, parser_of_sizes, settings
from benchmarks.cluster_parquet import Watched
from twofold import UKR

# Parts that one worker transforms to find out what they cost.
FEW = 4


@dataclass(frozen=True)
class Costs:
    """What a row, a part and a worker cost, and the model."""

    seconds: float  # of a row
    seconds_of_part: float  # read, and handled by dask
    bytes_of_row: float  # in a task, its own bytes included
    bytes_of_worker: float  # buffers and code that any task needs
    bytes_of_place: int
    bytes_of_model: int
    bytes_about_part: float  # said by scheduler, worker and client: read, placed, kept

    def predicted(self, n: int, rows_of_a_part: int, workers: int) -> tuple[float, float, float]:
        """Return seconds of computing, MB of a worker beyond what it begins with, and kB sent."""
        n_parts = math.ceil(n / rows_of_a_part)
        seconds = n * self.seconds + n_parts * self.seconds_of_part
        memory = self.bytes_of_worker + rows_of_a_part * self.bytes_of_row
        memory += self.bytes_of_place * n / workers
        # The model goes to the scheduler, to the worker that opens it, and on to the others.
        sent = (workers + 1) * self.bytes_of_model + self.bytes_about_part * n_parts
        return seconds, memory / 1e6, sent / 1e3


@contextmanager
def cluster_of(workers: int) -> Iterator[tuple[LocalCluster, Client, list[psutil.Process]]]:
    """Start worker processes, of which none writes to disk or is ended for its memory."""
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        yield cluster, client, [psutil.Process(w.pid) for w in cluster.workers.values()]


def costs_of(model: UKR, lazy: Any) -> Costs:
    """Measure few parts on one worker, of two sizes."""
    large = lazy.chunks[0][0]
    small = large // 4
    with cluster_of(1) as (cluster, client, processes):
        warm(client, model, lazy)
        begun, sent = memory_now(processes), sent_here()
        few, many = (
            transformed(model, first_rows(lazy, rows), cluster, processes)
            for rows in (small, large)
        )
        sent = sent_here() - sent
    of_row = (many[0] - few[0]) / (FEW * (large - small))
    bytes_of_row = (many[1] - few[1]) / (large - small)
    bytes_of_model = len(cloudpickle.dumps(model))
    return Costs(
        seconds=of_row,
        seconds_of_part=few[0] / FEW - small * of_row,
        bytes_of_row=bytes_of_row,
        bytes_of_worker=few[1] - begun - small * bytes_of_row,
        bytes_of_place=model.latent_.shape[1] * model.latent_.itemsize,
        bytes_of_model=bytes_of_model,
        bytes_about_part=(sent - 4 * bytes_of_model) / (2 * FEW),  # twice, each to two processes
    )


def first_rows(lazy: Any, rows: int) -> Any:
    """Return the first parts, cut to ``rows`` rows, each read by itself."""
    return da.concatenate([lazy.blocks[k][:rows] for k in range(FEW)])


def warm(client: Client, model: UKR, lazy: Any) -> None:
    """Let every worker open what is compiled, and read a few rows."""
    small = lazy[:500].compute()
    for worker in client.nthreads():
        client.submit(model.transform, small, workers=[worker], pure=False).result()


def memory_now(processes: list[psutil.Process]) -> float:
    """Return the bytes of the largest process."""
    return float(max(process.memory_info().rss for process in processes))


def transformed(
    model: UKR, lazy: Any, cluster: LocalCluster, processes: list[psutil.Process]
) -> tuple[float, float]:
    """Transform a table; return seconds of computing, and bytes that the largest worker reached."""
    before, watched = computing_of(processes), Watched(cluster, every=0.02)
    kept = model.transform(lazy).persist()
    wait(kept)
    watched.stop()
    return computing_of(processes) - before, 1e6 * max(watched.most.values())


def sent_here() -> int:
    """Return the bytes that processes of this machine have sent to each other."""
    return int(psutil.net_io_counters(pernic=True)["lo"].bytes_sent)


def moved(client: Client) -> int:
    """Return the bytes that workers have sent to each other."""
    given = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
    return int(sum(given.values()))


def measured(model: UKR, lazy: Any, workers: int) -> tuple[float, float, float, float]:
    """Return the same as `Costs.predicted`, of worker processes, and kB that these moved."""
    with cluster_of(workers) as (cluster, client, processes):
        warm(client, model, lazy)
        begun, sent, given = memory_now(processes), sent_here(), moved(client)
        seconds, most = transformed(model, lazy, cluster, processes)
        sent, given = sent_here() - sent, moved(client) - given
    return seconds, (most - begun) / 1e6, (sent - given) / 1e3, given / 1e3


def main() -> None:
    args = parser_of_sizes(__doc__, [400_000]).parse_args()
    rows = next(chunks(20 * args.landmarks, args.columns))
    model = UKR(**settings(args, 1)).fit(rows)
    with tempfile.TemporaryDirectory() as folder:
        for n in args.rows:
            path = Path(folder) / f"rows-{n}.npy"
            write(path, n, args.columns)
            compare(model, in_parts(path, n, args.columns, args.part), args.workers)


def compare(model: UKR, lazy: Any, numbers_of_workers: list[int]) -> None:
    """Print what a table costs, predicted and measured."""
    costs = costs_of(model, lazy)
    print(
        f"a row: {1e6 * costs.seconds:.1f} µs and {costs.bytes_of_row:.0f} bytes in a task, "
        f"{costs.bytes_of_place} kept; a part: {1e3 * costs.seconds_of_part:.0f} ms; a worker: "
        f"{costs.bytes_of_worker / 1e6:.0f} MB; model {costs.bytes_of_model / 1e3:.0f} kB; "
        f"{costs.bytes_about_part / 1e3:.1f} kB are said about a part",
        flush=True,
    )
    n, rows_of_a_part = lazy.shape[0], lazy.chunks[0][0]
    for workers in numbers_of_workers:
        *found, given = measured(model, lazy, workers)
        guessed = costs.predicted(n, rows_of_a_part, workers)
        units = ("s of computing", "MB a worker", "kB sent")
        words = [
            f"{a:.1f} predicted, {b:.1f} measured {unit}"
            for unit, a, b in zip(units, guessed, found, strict=True)
        ]
        moves = f"{given:.0f} kB moved between workers"
        print(f"{n:,} rows, {workers} workers: {'; '.join(words)}; {moves}", flush=True)


if __name__ == "__main__":
    main()

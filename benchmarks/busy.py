"""Threads that do not fight: what small fits cost while other processes hold every core.

Each fit runs in a process of its own with the threads that libraries start by default, and again
with ``OPENBLAS_NUM_THREADS=OMP_NUM_THREADS=1``; CPU seconds of all threads, default over single.
Threads that wait for each other by spinning show up as a ratio far above 1: scikit-learn's t-SNE of
250 rows, left to itself on two busy cores, has one of 40.

    python -m benchmarks.busy [names of fits]
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import joblib

from benchmarks.report import Row, show
from benchmarks.small_fits import FITS

MOST = 1.5
SECONDS = 0.5
SINGLE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@contextmanager
def busy_cores() -> Iterator[None]:
    """Keep every core busy with something else inside the block."""
    spin = f"import os\nwhile os.getppid() == {os.getpid()}: pass"  # not longer than this process
    spinning = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(joblib.cpu_count())]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def cpu_seconds(name: str, settings: dict[str, str]) -> float:
    """Return the CPU seconds of one fit in a process with some environment variables."""
    others = {key: value for key, value in os.environ.items() if key not in SINGLE}
    command = [sys.executable, "-m", "benchmarks.small_fits", name, str(SECONDS)]
    said = subprocess.run(
        command, check=True, env={**others, **settings}, capture_output=True, text=True
    )
    return float(said.stdout)


def ratio(name: str) -> float:
    """Return the CPU time of a fit with the usual threads over that with single ones."""
    return cpu_seconds(name, {}) / cpu_seconds(name, SINGLE)


def run(names: Sequence[str] = tuple(FITS)) -> list[Row]:
    """Measure."""
    found = []
    with busy_cores():
        for name in names:
            measured = ratio(name)
            if measured > MOST:  # once more, for who else is there changes by the second
                measured = min(measured, ratio(name))
            found.append(Row(f"{name}: CPU time, default over single threads", measured, MOST))
    return found


if __name__ == "__main__":
    show("Busy machine", run(sys.argv[1:] or tuple(FITS)))

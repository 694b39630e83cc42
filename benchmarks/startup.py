"""What a new process waits for: imports, the first fit, the commands, and compilation.

Loops are compiled once a machine and kept on disk. What that takes is measured for each family with
an empty folder, in CPU seconds, for wall time depends on who else is there; what compiled loops
cost when they are opened again is part of the first fit with a warm cache.

    python -m benchmarks.startup
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.report import Row, show

FIRST_FIT = """
import numpy as np
from twofold import UKR
from twofold.datasets import make_random_manifold
UKR(random_state=0).fit(make_random_manifold(1_000, 2, 10, noise=0.05, random_state=0).Y)
"""
WRITE_TABLE = """
import sys
import numpy as np
np.savetxt(sys.argv[1], np.random.default_rng(0).normal(size=(150, 4)), delimiter=",")
"""
COMMAND = ("-c", "from twofold.cli import main; main()")
# Families of `small_fits`, each with loops of its own.
COMPILED = (
    "UKR",
    "UKR, landmarks",
    "UNN",
    "UNN, 2 dimensions",
    "SubmanifoldUNN",
    "PSOM",
    "KernelPCA",
    "DiffusionMap",
    "ManifoldClassifier",
    "compare",
)


def cost(arguments: list[str], cache: str | None = None) -> tuple[float, float]:
    """Return wall and CPU seconds of a new Python process."""
    # Installed packages have bytecode, so a checkout may keep its own, too.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], check=True, env=environment, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return time.perf_counter() - begin, cpu


def seconds(arguments: list[str], cache: str | None = None) -> float:
    """Return the shortest of three wall times."""
    return min(cost(arguments, cache)[0] for _ in range(3))


def first_fits() -> list[Row]:
    """Measure imports and first fits, in Python and from the shell."""
    bare = seconds(["-c", "pass"])
    imported = seconds(["-c", "import twofold"]) - bare
    with tempfile.TemporaryDirectory() as folder:
        table, model = str(Path(folder, "table.csv")), str(Path(folder, "table.twofold"))
        subprocess.run([sys.executable, "-c", WRITE_TABLE, table], check=True)
        fit = [*COMMAND, "fit", table, "--quiet", "-o", model]
        place = [*COMMAND, "transform", model, table, "--quiet"]
        cold = cost(["-c", FIRST_FIT], folder)[0]
        return [
            Row("import twofold [s]", imported, 0.5),
            Row("first fit of 1,000 × 10, cold cache [s]", cold, 10.0),
            Row("first fit of 1,000 × 10, warm cache [s]", seconds(["-c", FIRST_FIT], folder), 2.5),
            Row("twofold --help [s]", seconds([*COMMAND, "--help"]), 0.3),
            Row("twofold fit of 150 × 4, warm cache [s]", seconds(fit, folder), 2.5),
            Row("twofold info, warm cache [s]", seconds([*COMMAND, "info", model], folder), 1.5),
            Row("twofold transform of 150 × 4, warm cache [s]", seconds(place, folder), 1.5),
        ]


def compilation(name: str) -> Row:
    """Measure what a family compiles: the CPU time of a first process less that of a second."""
    fit = ["-W", "ignore", "-m", "benchmarks.small_fits", name]
    with tempfile.TemporaryDirectory() as cache:
        first, second = cost(fit, cache)[1], cost(fit, cache)[1]
    return Row(f"{name}: compiled once a machine [CPU s]", first - second, 10.0)


def run() -> list[Row]:
    """Measure."""
    return first_fits() + [compilation(name) for name in COMPILED]


if __name__ == "__main__":
    show("Start-up", run())

"""What a new process waits for: the import, and the first fit with a cold and a warm cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from benchmarks.report import Row, show

FIRST_FIT = """
import numpy as np
from twofold import UKR
from twofold.datasets import make_random_manifold
UKR(random_state=0).fit(make_random_manifold(1_000, 2, 10, noise=0.05, random_state=0).Y)
"""


def seconds(code: str, cache: str | None = None) -> float:
    """Return the wall time of some code in a new process."""
    environment = dict(os.environ)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    return time.perf_counter() - start


def run() -> list[Row]:
    """Measure."""
    bare = min(seconds("pass") for _ in range(3))
    imported = min(seconds("import twofold") for _ in range(3)) - bare
    with tempfile.TemporaryDirectory() as cache:
        cold = seconds(FIRST_FIT, cache)
        warm = min(seconds(FIRST_FIT, cache) for _ in range(3))
    return [
        Row("import twofold [s]", imported, 0.5),
        Row("first fit of 1,000 × 10, cold cache [s]", cold, 10.0),
        Row("first fit of 1,000 × 10, warm cache [s]", warm, 3.0),
    ]


if __name__ == "__main__":
    show("Start-up", run())

"""A cluster whose scheduler and workers are processes of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.fixture
def start_scheduler(tmp_path):
    """Return what starts a scheduler and workers, and returns its process and its file."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(n_workers: int) -> tuple[subprocess.Popen[bytes], str]:
        where = ["--scheduler-file", str(tmp_path / "scheduler.json")]
        commands = [
            ["scheduler", "--port", "0", "--dashboard-address", ":0", *where],
            *[["worker", "--nthreads", "1", "--no-dashboard", *where]] * n_workers,
        ]
        processes.extend(
            subprocess.Popen([sys.executable, "-m", "dask", *words], stderr=subprocess.DEVNULL)
            for words in commands
        )
        return processes[0], where[1]

    yield start
    for process in processes:
        process.kill()
        process.wait()

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import joblib
import numpy as np
import pytest

from twofold.compiled import compiled
from twofold.engine import threads
from twofold.engine.threads import count_threads, run_tasks


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_results_come_in_the_order_of_the_tasks(n_threads):
    assert run_tasks(lambda task: task**2, range(20), n_threads) == [i * i for i in range(20)]


def test_no_tasks_no_results():
    assert run_tasks(abs, [], 2) == []


def test_tasks_run_side_by_side():
    meeting = threading.Barrier(2, timeout=20)  # passes only if two tasks wait at the same time
    run_tasks(lambda _: meeting.wait(), range(2), 2)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_errors_of_a_task_reach_the_caller(n_threads):
    with pytest.raises(ZeroDivisionError):
        run_tasks(lambda task: 1 // task, [1, 0, 2], n_threads)


def blas_threads(_):
    # The libraries that were there when the first tasks ran: numpy's among them.
    pools = threads._controller().info()
    return max(pool["num_threads"] for pool in pools if pool["user_api"] == "blas")


@pytest.mark.parametrize("n_threads", [1, 2])
def test_blas_is_single_threaded_inside_and_free_again_outside(n_threads):
    before = blas_threads(None)
    assert run_tasks(blas_threads, range(3), n_threads) == [1, 1, 1]
    assert blas_threads(None) == before


def test_number_of_threads():
    available = joblib.cpu_count()
    assert count_threads(None) == 1
    assert count_threads(-1) == available
    assert count_threads(-available - 5) == 1
    assert count_threads(3) == 3
    with pytest.raises(ValueError, match=r"n_jobs.*got 0"):
        count_threads(0)


@pytest.mark.parametrize(
    ("n_jobs", "expected"), [(-1, 8), (-2, 7), (-8, 1), (-9, 1), (-99, 1), (1, 1), (12, 12)]
)
def test_negative_numbers_leave_cores_out(n_jobs, expected, monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    assert count_threads(n_jobs) == expected


@compiled
def _smallest_of(values):
    smallest = np.inf
    for value in values:
        smallest = min(smallest, value)
    return smallest


def test_compiled_code_knows_infinity():
    assert _smallest_of(np.array([np.inf, 3.0, np.inf])) == 3.0
    assert _smallest_of(np.full(9, np.inf)) == np.inf


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    run_tasks(abs, range(4), 2)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # the dead threads of the parent would never answer
        whole = run_tasks(abs, range(4), 2) == [0, 1, 2, 3]
        os._exit(0 if whole else 1)
    assert os.waitpid(child, 0)[1] == 0


LITTLE_MEMORY = """
import resource
import twofold.engine.threads as threads
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
limit = used + (10 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    threads.reserve_for_blas()
except MemoryError:
    print("refused")
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is limited by Linux")
def test_linear_algebra_without_memory_is_refused_instead_of_waiting_for_ever():
    one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LITTLE_MEMORY], env=one_thread, capture_output=True, timeout=60
    )
    assert done.stdout == b"refused\n", done.stderr


def test_tasks_inside_of_tasks_run_one_after_the_other():
    def outer(number: int) -> list[int]:
        return run_tasks(lambda task: 10 * number + task, range(4), 2)

    # Threads that waited for each other would never come to an end.
    assert run_tasks(outer, range(6), 2) == [[10 * n + task for task in range(4)] for n in range(6)]

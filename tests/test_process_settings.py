"""Settings of the process come back when the last thread that wanted them changed is done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings

import pytest

from twofold.engine import threads
from twofold.engine.threads import single_threaded_blas
from twofold.process_settings import without_warnings


def blas_threads():
    pools = threads._controller().info()
    return max(pool["num_threads"] for pool in pools if pool["user_api"] == "blas")


def test_threads_of_blas():
    # In a process of its own: what other tests have loaded may keep BLAS from having two threads.
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def last_user_of_blas():
    """Check that BLAS stays single-threaded until the last user of it leaves."""
    first, second = single_threaded_blas(), single_threaded_blas()
    with threads._controller().limit(limits=2, user_api="blas"):
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert blas_threads() == 1
        second.__exit__(None, None, None)
        assert blas_threads() == 2


def test_warnings_are_shown_again_when_the_last_one_leaves():
    before = list(warnings.filters)
    first, second = without_warnings(UserWarning), without_warnings(FutureWarning)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    warnings.warn("not shown", FutureWarning, stacklevel=1)  # would be an error in these tests
    second.__exit__(None, None, None)
    assert list(warnings.filters) == before
    with pytest.warns(FutureWarning, match="shown"):
        warnings.warn("shown", FutureWarning, stacklevel=1)


def forked_child():
    """Check that a forked child begins without settings that its parent holds."""
    with threads._controller().limit(limits=2, user_api="blas"), single_threaded_blas():
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if blas_threads() == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    last_user_of_blas()
    if hasattr(os, "fork"):
        forked_child()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of glibc")
def test_workers_of_dask_use_freed_memory_again():
    """Pages that are touched for the first time, by arrays of a MB made over and over."""
    code = (
        "import resource, sys, numpy as np; "
        "from twofold.process_settings import keep_freed_memory; "
        "sys.argv[1] == 'kept' and keep_freed_memory(); "
        "np.ones(2**17); before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt; "
        "sums = [float(np.ones(2**17).sum()) for _ in range(50)]; "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)"
    )
    told = {}
    for how in ("kept", "given back"):
        found = subprocess.run(
            [sys.executable, "-c", code, how],
            env={**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"},
            capture_output=True,
            text=True,
            check=True,
        )
        told[how] = int(found.stdout)
    assert told["given back"] > 50 * 200  # 256 pages each
    assert told["kept"] < 2 * 256

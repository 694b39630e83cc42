"""Settings of the process come back when the last thread that wanted them changed is done."""

from __future__ import annotations

import os
import signal
import time
import warnings

import pytest

from twofold.engine import threads
from twofold.engine.threads import single_threaded_blas
from twofold.process_settings import without_warnings


def blas_threads():
    pools = threads._controller().info()
    return max(pool["num_threads"] for pool in pools if pool["user_api"] == "blas")


@pytest.fixture(autouse=True)
def _nobody_else():
    """Wait for threads of earlier tests, such as workers of a cluster that was called off."""
    quiet_since, end = time.monotonic(), time.monotonic() + 60
    while time.monotonic() < min(end, quiet_since + 0.5):
        if threads._blas_limit._holders:
            quiet_since = time.monotonic()
        time.sleep(0.005)


def test_blas_stays_single_threaded_until_the_last_user_of_it_leaves():
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_begins_without_them():
    with threads._controller().limit(limits=2, user_api="blas"), single_threaded_blas():
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if blas_threads() == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0

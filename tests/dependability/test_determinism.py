"""Same seed, same bits: on any number of threads, in any process, from many threads at once."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest
import threadpoolctl
from dependability.answers import MANY, NAMES, OTHERS, answers, digest, drift, fitted, of_model
from families import FAMILIES

import twofold

pytestmark = pytest.mark.filterwarnings("ignore")

ROOT = Path(__file__).parents[2]
AT_ONCE = 8
ALL = [family.name for family in FAMILIES]
BY_DEFAULT = [family.name for family in FAMILIES if not family.is_variant]


def names_with_variants_slow():
    return [pytest.param(family.name, marks=family.marks) for family in FAMILIES]


each_family = pytest.mark.parametrize("name", names_with_variants_slow())


@cache
def known(name: str) -> str:
    return digest(of_model(model_of(name)) if name in ALL else answers(name))


@cache
def model_of(name: str):
    return fitted(name)


@pytest.mark.slow  # tests/contract compares one thread with two
@each_family
@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_any_number_of_threads_gives_the_same_bits(name, n_jobs):
    assert digest(of_model(fitted(name, n_jobs))) == known(name)


@each_family
def test_threads_of_linear_algebra_change_no_bit(name):
    found = set[str]()
    for threads in (1, 2):
        with threadpoolctl.threadpool_limits(threads, user_api="blas"):
            model = fitted(name, rows=MANY[:190])
            X = model.transform(MANY)
            parts = {"own": model.embedding_, "new": X, "back": model.inverse_transform(X)}
        found.add(digest(parts))
    assert len(found) == 1


@pytest.mark.parametrize(
    "names", [BY_DEFAULT, pytest.param(NAMES, marks=pytest.mark.slow)], ids=["default", "all"]
)
def test_a_fresh_process_gives_the_same_bits(names):
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-W", "ignore", "-m", "dependability.answers", *names]
    found = subprocess.run(
        command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    assert json.loads(found.stdout) == {name: known(name) for name in names}


COMPILED_AFTER = """
import sys
import numba
import numpy as np
if sys.argv[1] == "others":
    numba.njit(lambda x: x**2 + abs(x) + min(x, 1.0))(2.0)
    numba.njit(lambda x: x.sum() + x.min() + (x * x + x)[0])(np.ones(3))
from dependability.answers import MANY, answers, digest
from twofold import UKR
local = UKR(3, degree=2, init="pca", max_iter=4).fit(MANY[:60])  # 10 terms: sums are vectorised
print(digest(answers("SubmanifoldUNN")), digest(answers("UKR")), digest(answers("PSOM")))
print(digest({"local": local.embedding_, "new": local.transform(MANY[60:70])}))
"""


@pytest.mark.slow  # two minutes of compilation
def test_what_was_compiled_before_changes_no_bit(tmp_path):
    found = set[str]()
    for before, kept in [("nothing", "first"), ("nothing", "first"), ("others", "second")]:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", COMPILED_AFTER, before],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
                "NUMBA_CACHE_DIR": str(tmp_path / kept),
            },
            check=True,
            capture_output=True,
            text=True,
        )
        found.add(done.stdout)
    assert len(found) == 1


@each_family
def test_a_saved_and_a_pickled_model_give_the_same_bits(name, tmp_path):
    model = model_of(name)
    model.save(tmp_path / "model.twofold")
    assert digest(of_model(twofold.load(tmp_path / "model.twofold"))) == known(name)
    assert digest(of_model(pickle.loads(pickle.dumps(model)))) == known(name)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
@each_family
def test_a_forked_child_gives_the_same_bits_after_threads_ran(name):
    expected = known(name)
    of_model(fitted(name, 2))  # now there are threads, and the child has none of them
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        same = digest(of_model(fitted(name, 2))) == expected
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def at_once(work):
    """Return what eight threads get that begin at the same moment."""
    start = threading.Barrier(AT_ONCE)

    def wait_and_work(_):
        start.wait()
        return work()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return set(pool.map(wait_and_work, range(AT_ONCE)))


def limits():
    # Not warning filters: scikit-learn's checks of tables swap them, each thread for all.
    return {pool["filepath"]: pool["num_threads"] for pool in threadpoolctl.threadpool_info()}


@each_family
def test_eight_threads_at_once_get_the_same_bits_of_one_model(name):
    model = pickle.loads(pickle.dumps(model_of(name)))  # nothing is there yet that is made once
    before = limits()
    assert at_once(lambda: digest(of_model(model))) == {known(name)}
    assert limits() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "UKR" else [pytest.mark.slow]) for n in ALL]
)
def test_eight_fits_at_once_give_the_same_bits(name):
    before = limits()
    assert at_once(lambda: digest(of_model(fitted(name)))) == {known(name)}
    assert limits() == before


@pytest.mark.parametrize("name", [*names_with_variants_slow(), *OTHERS])
def test_nothing_drifts(name):
    changed = drift(name, of_model(model_of(name)) if name in ALL else answers(name))
    assert not changed, (
        f"{changed} If that is meant, say so in the changelog and run "
        "`python -m dependability.answers --renew`."
    )

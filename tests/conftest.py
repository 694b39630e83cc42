"""Tests marked ``cover`` run on a cover of their parameters; the rest of the product is slow.

Slow ones may take longer than others before they count as hanging. On a machine that has compiled
nothing yet the workers first compile loops, each its share of the families: else all of them would
compile the same ones at the same time.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from covers import cover
from families import FAMILIES

SECONDS_OF_SLOW_TESTS = 3000
# The families that take longest to compile, in an order that spreads them over the workers.
COMPILED_FIRST = {"SubmanifoldUNN": 0, "UNN-1d": 1, "UKR": 2, "UNN-lattice": 3}


def pytest_configure():
    if "PYTEST_XDIST_WORKER" not in os.environ:  # before there are workers, which inherit it
        caches = Path(os.environ.get("NUMBA_CACHE_DIR", Path(__file__).parent.parent / "src"))
        os.environ["TWOFOLD_COMPILE_FIRST"] = "" if next(caches.rglob("*.nbi"), None) else "yes"


def pytest_sessionstart():
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None or not os.environ["TWOFOLD_COMPILE_FIRST"]:
        return
    share = slice(int(worker[2:]), None, int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
    rows = np.random.default_rng(0).normal(size=(30, 4))
    for family in sorted(FAMILIES, key=lambda family: COMPILED_FIRST.get(family.name, 9))[share]:
        family.make().fit(rows).transform(rows)


def name_of(value):
    """Return what tells a parameter from the others of the same argument."""
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value), value


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    together = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("cover")
        if mark is not None:
            together[item.nodeid.split("[")[0], mark.args].append(item)
    for (_, (strength,)), same in together.items():
        combinations = [{k: name_of(v) for k, v in item.callspec.params.items()} for item in same]
        chosen = set(cover(combinations, strength))
        for number, item in enumerate(same):
            if number not in chosen:
                item.add_marker("slow")
    for item in items:
        # scikit-learn checks sparse arrays in the same way; what is made of either is the same.
        if item.nodeid.endswith("-check_estimator_sparse_matrix]"):
            item.add_marker("slow")
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.timeout(SECONDS_OF_SLOW_TESTS))

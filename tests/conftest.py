"""Tests marked ``cover`` run on a cover of their parameters; the rest of the product is slow.

Slow ones may take longer than others before they count as hanging.
"""

from __future__ import annotations

from collections import defaultdict

import pytest
from covers import cover

SECONDS_OF_SLOW_TESTS = 3000


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
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.timeout(SECONDS_OF_SLOW_TESTS))

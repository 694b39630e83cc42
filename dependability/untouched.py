"""What a call must leave as it was: its input, and everything that belongs to the whole process."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import threadpoolctl


@contextmanager
def untouched(*tables: Any) -> Iterator[None]:
    """Raise AssertionError if the block changes a table or a setting of the process."""
    contents, settings = [_contents(table) for table in tables], _settings()
    try:
        yield
    finally:
        after = _settings()
        # Of libraries that the block loaded nothing was known before.
        limits = after["thread limits"]
        after["thread limits"] = {name: limits[name] for name in settings["thread limits"]}
        changed = [name for name, value in settings.items() if after[name] != value]
        if [_contents(table) for table in tables] != contents:
            changed.append("the input")
        assert not changed, f"changed: {', '.join(changed)}"


def _settings() -> dict[str, Any]:
    return {
        "numpy's random state": _bytes_of_state(),
        "Python's random state": random.getstate(),
        "warning filters": list(warnings.filters),
        "numpy's error handling": np.geterr(),
        "thread limits": {
            pool["filepath"]: pool["num_threads"] for pool in threadpoolctl.threadpool_info()
        },
    }


def _bytes_of_state() -> tuple[bytes, int]:
    state = np.random.get_state(legacy=False)  # noqa: NPY002 - the global one must stay as it is
    return state["state"]["key"].tobytes(), state["state"]["pos"]


def _contents(table: Any) -> Any:
    if table is None or isinstance(table, list):
        return repr(table)
    if hasattr(table, "toarray"):
        return table.toarray().tobytes(), table.format
    if hasattr(table, "to_numpy"):
        return repr(table.to_numpy().tolist()), list(table.columns), [str(d) for d in table.dtypes]
    if isinstance(table, np.ma.MaskedArray):
        return table.data.tobytes(), np.ma.getmaskarray(table).tobytes()
    if table.dtype == object:
        return repr(table.tolist())
    return table.tobytes(), table.flags.writeable

"""How much memory there is, and sizes in words.

A system that runs out of memory may stop a process without a word, so what is about to be taken is
compared with what is there. In a container that is what its limit leaves (control groups, version 2
and 1), in which cached files do not count: they give way.
"""

import contextlib
import importlib
import os
from pathlib import Path

# The limit of a container, what it uses, and of this what are cached files.
CONTROL_GROUPS = (
    ("memory.max", "memory.current", "file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_cache"),
)


def available() -> int | None:
    """Return the bytes of memory that can be used, None where the system does not say."""
    found = [size for size in (_of_machine(), _of_container()) if size is not None]
    return min(found, default=None)


def _of_machine() -> int | None:
    with contextlib.suppress(OSError, ValueError, KeyError):
        return 1024 * _entries(Path("/proc/meminfo"))["MemAvailable:"]
    with contextlib.suppress(ImportError):
        return int(importlib.import_module("psutil").virtual_memory().available)
    with contextlib.suppress(AttributeError, ValueError, OSError):  # not every system has them
        return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))
    return None


def _of_container(groups: Path = Path("/sys/fs/cgroup")) -> int | None:
    for limit, used, cached in CONTROL_GROUPS:
        # A file that is not there, or "max" for no limit.
        with contextlib.suppress(OSError, ValueError):
            most, now = (int((groups / name).read_text()) for name in (limit, used))
            statistics = _entries((groups / limit).with_name("memory.stat"))
            return max(0, most - now + statistics.get(cached, 0))
    return None


def _entries(path: Path) -> dict[str, int]:
    """Return the numbers that a file of the system has behind names."""
    lines = (line.split() for line in path.read_text().splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1}


def readable(size: int) -> str:
    """Return a number of bytes in words."""
    for unit, bytes_ in (("GB", 1e9), ("MB", 1e6)):
        if size >= bytes_:
            return f"{size / bytes_:.1f} {unit}"
    return f"{size / 1e3:.1f} kB"

"""torch and Triton, loaded at first use, and whether there is a device for them."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from twofold.checks.installing import install_command

# What a fit needs for each row: neighbours for t-SNE, or an amount for each column. A fit of
# 1,000,000 rows with 50 columns took 5.7 GiB.
ROW_BYTES, COLUMN_BYTES = 6_500, 100
FEWEST_ROWS = 1_024
# Where an estimator may be asked to compute.
DEVICES = ("auto", "cpu", "cuda")


class DeviceMemoryError(MemoryError):
    """The GPU has no memory for even a few rows at a time."""


def load_torch() -> Any:
    """Return the module torch, or say how to get it."""
    try:
        import torch
    except ImportError as error:
        hint = _how_to_install()
        raise ImportError(f"The GPU back end needs torch and triton. {hint}") from error
    return torch


def _how_to_install() -> str:
    return f"Install them with `{install_command('gpu')}`."


@lru_cache
def why_no_gpu() -> str:
    """Say why sums cannot run on a GPU here; empty if they can."""
    missing = [name for name in ("torch", "triton") if find_spec(name) is None]
    if missing:
        return f"{' and '.join(missing)} cannot be imported. {_how_to_install()}"
    if not _has_driver():
        return "no CUDA driver is found."
    torch = load_torch()
    if not torch.cuda.is_available():
        return "torch finds no CUDA device."
    major, minor = torch.cuda.get_device_capability()
    if major < 8:
        return f"{torch.cuda.get_device_name()} has compute capability {major}.{minor}, below 8.0."
    return ""


def _has_driver() -> bool:
    """Say whether the CUDA driver is there: torch, which knows too, takes seconds to import."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


def in_parts(n: int, rows: int, work: Callable[[slice], None]) -> None:
    """Do the work for n rows, ``rows`` at a time, or fewer where the device's memory is too small.

    Raises a DeviceMemoryError if even a few rows are too many.
    """
    torch, start = load_torch(), 0
    while start < n:
        some = slice(start, min(start + rows, n))
        try:
            work(some)
        except torch.OutOfMemoryError as error:
            if rows <= FEWEST_ROWS:
                raise DeviceMemoryError(
                    f"The GPU has no memory for {rows:,} rows at a time: "
                    f"{_room() / 2**30:.1f} GiB are available in total. Free some of it, or use "
                    "device='cpu'."
                ) from error
            rows = max(FEWEST_ROWS, rows // 4)
            torch.cuda.empty_cache()
            continue
        start = some.stop


@contextmanager
def saying_what_fits(n: int, columns: int) -> Iterator[None]:
    """Tell how many rows a fit could have where n of them need too much memory."""
    torch = load_torch()
    try:
        yield
    except (torch.OutOfMemoryError, DeviceMemoryError) as error:
        row, room = max(ROW_BYTES, COLUMN_BYTES * columns), _room()
        raise MemoryError(
            f"A fit of {n:,} rows needs about {n * row / 2**30:.1f} GiB on the GPU, and "
            f"{room / 2**30:.1f} GiB are available; about {room // row:,} rows would fit. Pass "
            "fewer rows, use `landmarks`, or device='cpu'."
        ) from error


def _room() -> int:
    """Return the bytes on the device that this process has or can get."""
    cuda = load_torch().cuda
    free, total = cuda.mem_get_info()
    share = cuda.get_per_process_memory_fraction()
    return int(min(free + cuda.memory_reserved(), share * total))

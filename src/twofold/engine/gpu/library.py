"""torch and Triton, loaded at first use, and whether there is a device for them."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import Any

INSTALL = "Install them with `pip install twofold[gpu]`."


def load_torch() -> Any:
    """Return the module torch, or say how to get it."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"The GPU back end needs torch and triton. {INSTALL}") from error
    return torch


@lru_cache
def why_no_gpu() -> str:
    """Say why sums cannot run on a GPU here; empty if they can."""
    missing = [name for name in ("torch", "triton") if find_spec(name) is None]
    if missing:
        return f"{' and '.join(missing)} cannot be imported. {INSTALL}"
    torch = load_torch()
    if not torch.cuda.is_available():
        return "torch finds no CUDA device."
    major, minor = torch.cuda.get_device_capability()
    if major < 8:
        return f"{torch.cuda.get_device_name()} has compute capability {major}.{minor}, below 8.0."
    return ""

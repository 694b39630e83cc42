"""torch, and the device that tests of the GPU run on: a GPU, or Triton's interpreter on the CPU.

Who imports this is skipped where torch or Triton is missing; TWOFOLD_REQUIRE_TORCH=1 makes that an
error.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

missing = [name for name in ("torch", "triton") if find_spec(name) is None]
if missing:
    reason = f"the GPU back end needs {' and '.join(missing)}"
    if os.environ.get("TWOFOLD_REQUIRE_TORCH") == "1":
        raise ImportError(f"{reason}, and TWOFOLD_REQUIRE_TORCH is 1")
    pytest.skip(reason, allow_module_level=True)

import torch  # noqa: E402

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is loaded
# Not "cpu", which stands for numpy.
DEVICE = "cuda" if HAS_GPU else "cpu:0"

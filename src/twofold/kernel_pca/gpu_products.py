"""Products of a large kernel matrix with vectors on a device, in double precision.

ARPACK asks for some fifty of them; each reads the whole matrix, which a GPU does in a thousandth of
a second: of 20,000 rows the eigenvectors take 0.4 s there, the way of the matrix included, and
9.4 s on 16 cores.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from twofold.array_types import FloatArray
from twofold.engine.gpu.library import load_torch, why_no_gpu

logger = logging.getLogger(__name__)

# Rows from which on the way to a device is short beside what is done there.
MANY_ROWS = 5_000


def device_for(wanted: str, n: int) -> str:
    """Return where products of an (n, n) matrix are done, "cpu" or "cuda"."""
    if wanted == "cpu" or (wanted == "auto" and n < MANY_ROWS):
        return "cpu"
    missing = why_no_gpu()
    if missing and wanted == "cuda":
        raise RuntimeError(f"device='cuda' needs a GPU: {missing} Use device='auto' or 'cpu'.")
    if missing:
        logger.info("on the CPU: %s", missing)
    return "cpu" if missing else "cuda"


def on_device(S: FloatArray, device: str) -> Any:
    """Return S (m, m) as what multiplies vectors on a device; S itself where it does not fit."""
    torch = load_torch()
    try:
        matrix = torch.as_tensor(S, device=device)
    except torch.OutOfMemoryError:
        logger.info("on the CPU: the GPU has no room for a matrix of %s rows", f"{len(S):,}")
        return S

    def multiply(v: FloatArray) -> FloatArray:
        product = matrix @ torch.as_tensor(v.ravel(), device=device)
        return np.asarray(product.cpu().numpy())

    return LinearOperator(S.shape, matvec=multiply, dtype=S.dtype)

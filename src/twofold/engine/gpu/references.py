"""References on a device, for many calls with queries that come and go as arrays of numpy."""

from __future__ import annotations

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine.gpu.library import in_parts, load_torch
from twofold.engine.gpu.sums import CarriedTiles, DeviceSums, exact_precision
from twofold.kernels import Kernel

# Numbers of sums and slopes that are on the device at once.
MOST_NUMBERS = 2**29


class DeviceReferences:
    """References (n, q) that carry rows V (n, C), on a device, summed in float32."""

    def __init__(
        self, kernel: Kernel, cutoff: float, points: FloatArray, V: FloatArray, device: str
    ) -> None:
        torch = load_torch()
        self.device, self.dtype, self.width = device, V.dtype, V.shape[1]
        self.engine = DeviceSums(kernel, cutoff)
        X = torch.as_tensor(np.ascontiguousarray(points), dtype=torch.float32, device=device)
        rows = torch.as_tensor(V, dtype=torch.float32, device=device)
        self.tiles = CarriedTiles(X, rows, exact_precision(kernel))

    def at(
        self, queries: FloatArray, hidden: IntArray, *, slopes: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return sums (m, C), shifts (m,) and slopes (m, q, C), empty if not asked for."""
        torch = load_torch()
        m, q = queries.shape
        values, shift = np.empty((m, self.width), self.dtype), np.empty(m, self.dtype)
        by_axis = np.empty((m if slopes else 0, q, self.width), self.dtype)

        def work(some: slice) -> None:
            Q = torch.as_tensor(queries[some], dtype=torch.float32, device=self.device)
            unseen = None
            if (hidden[some] >= 0).any():
                unseen = torch.as_tensor(hidden[some], device=self.device)
            A, far, dA = self.engine.at(self.tiles, Q, hidden=unseen, slopes=slopes)
            values[some], shift[some] = A.cpu().numpy(), far.cpu().numpy()
            if slopes:
                by_axis[some] = dA.cpu().numpy()

        in_parts(m, max(1, MOST_NUMBERS // (self.width * (1 + q * slopes))), work)
        return values, shift, by_axis

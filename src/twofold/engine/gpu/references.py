"""Sums on a device for arrays of numpy: references that stay there, and gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine.gpu.library import in_parts, load_torch, saying_what_fits
from twofold.engine.gpu.sums import DeviceSums, carried
from twofold.engine.local_fit import LocalFit

if TYPE_CHECKING:
    from torch import Tensor

    from twofold.engine.runs import Respond
    from twofold.engine.sums import KernelSums

# Numbers of sums and slopes that are on the device at once.
MOST_NUMBERS = 2**29


class DeviceReferences:
    """References (n, q) that carry rows V (n, C), on a device, summed in float32."""

    def __init__(
        self, how: KernelSums, points: FloatArray, V: FloatArray, local: LocalFit | None = None
    ) -> None:
        torch = load_torch()
        self.device, self.dtype, self.width = how.device, V.dtype, V.shape[1]
        self.engine = DeviceSums(how.kernel, how.cutoff)
        X = torch.as_tensor(np.ascontiguousarray(points), dtype=torch.float32, device=self.device)
        rows = torch.as_tensor(V, dtype=torch.float32, device=self.device)
        self.tiles = carried(X, rows, how.kernel, how.precision, local)

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

    def at_tensor(
        self, queries: Tensor, *, slopes: bool = False, is_sorted: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what `at` does, for queries (m, q) on the device; neighbours in turn if sorted."""
        torch, (m, q) = load_torch(), queries.shape
        values, shift = queries.new_empty((m, self.width)), queries.new_empty(m)
        by_axis = queries.new_empty((m if slopes else 0, q, self.width))

        def work(some: slice) -> None:
            Q = queries[some]
            order = torch.arange(len(Q), device=Q.device) if is_sorted else None
            A, far, dA = self.engine.at(self.tiles, Q, slopes=slopes, order=order)
            values[some], shift[some] = A, far
            if slopes:
                by_axis[some] = dA

        in_parts(m, max(1, MOST_NUMBERS // (self.width * (1 + q * slopes))), work)
        return values, shift, by_axis


def evaluate_on_device(
    how: KernelSums,
    queries: FloatArray,
    V: FloatArray,
    respond: Respond,
    references: FloatArray | None,
    hidden: IntArray,
    local: LocalFit | None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Do what `KernelSums.evaluate` does; sums and answers go to and from the host, once each."""
    torch = load_torch()
    losses = np.empty(len(queries), queries.dtype)

    def tensor(array: FloatArray) -> Tensor:
        array = np.ascontiguousarray(array)
        return torch.as_tensor(array, dtype=torch.float32, device=how.device)

    def answer(order: Tensor, A: Tensor, shift: Tensor) -> tuple[Tensor, Tensor | None]:
        numbers = order.cpu().numpy()
        sums, far = A.cpu().numpy().astype(V.dtype), shift.cpu().numpy().astype(V.dtype)
        losses[numbers], U = respond(numbers, sums, far)
        return shift, None if U is None else tensor(U)

    with saying_what_fits(*V.shape):
        X = tensor(queries if references is None else references)
        engine = DeviceSums(how.kernel, how.cutoff)
        tiles = carried(X, tensor(V), how.kernel, how.precision, local)
        unseen, hides_itself = None, False
        if (hidden >= 0).any():
            own = np.arange(len(queries))[:, None]
            hides_itself = references is None and np.array_equal(hidden, own)
            unseen = None if hides_itself else torch.as_tensor(hidden, device=how.device)
        _, by_query, by_reference = engine.evaluate(
            tiles,
            answer,
            queries=None if references is None else tensor(queries),
            hidden=unseen,
            hides_itself=hides_itself,
        )
    how.last_plan = engine.plan(len(queries), len(X))
    found = by_query.cpu().numpy(), by_reference.cpu().numpy()
    return losses, found[0].astype(queries.dtype), found[1].astype(queries.dtype)

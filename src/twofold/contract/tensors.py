"""Tensors of other libraries in, and tensors of torch out again.

A tensor of torch, on any device, becomes an array of numpy on the way in, and what a method returns
becomes a tensor on the same device on the way out, its floating numbers of the same type; a model
that computes on the tensor's device may answer there itself (``_answer_on_device``). Whatever else
speaks DLPack or has a ``__cuda_array_interface__`` (arrays of CuPy, JAX) is taken in the same way
and answered by arrays of numpy. Nothing here imports torch: who passes a tensor has.
"""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

Method = TypeVar("Method", bound=Callable[..., Any])


def is_tensor(X: Any) -> bool:
    """Say whether something is a tensor of torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def as_array(X: Any) -> Any:
    """Return tensors, and arrays on other devices, as arrays of numpy; anything else as it is."""
    if is_tensor(X):
        X = X.detach().cpu()
        return X.float().numpy() if X.is_floating_point() and X.itemsize < 4 else X.numpy()
    if isinstance(X, np.ndarray) or hasattr(X, "iloc"):
        return X
    if hasattr(X, "__cuda_array_interface__"):
        from twofold.engine.gpu.library import load_torch

        return as_array(load_torch().as_tensor(X, device="cuda"))
    if hasattr(X, "__dlpack__") and hasattr(X, "__dlpack_device__"):
        if X.__dlpack_device__()[0] == 1:  # in the memory of the CPU
            return np.from_dlpack(X)
        from twofold.engine.gpu.library import load_torch

        return as_array(load_torch().from_dlpack(X))
    return X


def _beside(X: Any, found: Any) -> Any:
    """Return an array as a tensor on the device of the tensor X, floating numbers in its type.

    Anything else stays as it is.
    """
    if not isinstance(found, np.ndarray):
        return found
    answer = sys.modules["torch"].from_numpy(np.ascontiguousarray(found))
    if X.is_floating_point() and answer.is_floating_point():
        answer = answer.to(X.dtype)
    return answer.to(X.device)


def takes_tensors(method: Method) -> Method:
    """Let a method of a model take tensors, and answer a tensor of torch by another one."""

    @wraps(method)
    def taking(self: Any, X: Any, *others: Any, **named: Any) -> Any:
        if is_tensor(X) and not others and not named:
            answer = self._answer_on_device(method.__name__, X)
            if answer is not None:
                return answer
        named = {name: as_array(value) for name, value in named.items()}
        found = method(self, as_array(X), *(as_array(other) for other in others), **named)
        if not is_tensor(X):
            return found
        if isinstance(found, tuple):
            return tuple(_beside(X, part) for part in found)
        return _beside(X, found)

    taking.takes_tensors = True  # type: ignore[attr-defined]
    return cast(Method, taking)

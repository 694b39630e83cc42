"""Objective and gradient by the dense back end, beside the products it cannot avoid.

At n = 5,000, D = 64, q = 2 in float32: time as a ratio to three n × n × D matrix products (two of
weights times data, one of data times data transposed, as a plain implementation needs), and to the
plain n × n numpy version. At n = 50,000: memory beyond the data.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.report import Row, best_time, show
from twofold.engine import KernelSums
from twofold.kernels import GAUSSIAN
from twofold.losses import Squared
from twofold.ukr.objective import Reconstruction
from twofold.ukr.surface import CarriedRows


def objective(Y: np.ndarray, backend: str) -> Reconstruction:
    """Return the leave-one-out error of Y with one back end."""
    ones = np.ones(len(Y))
    engine = KernelSums(GAUSSIAN, backend=backend)
    hidden = np.arange(len(Y))[:, None]
    return Reconstruction(CarriedRows(Y, ones, None), Squared(), engine, hidden)


def make_data(n: int, D: int, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """Return latent points (n, 2) and data (n, D) in float32."""
    rng = np.random.default_rng(0)
    X = spread * rng.normal(size=(n, 2))
    Y = np.sin(X @ rng.normal(size=(2, D))) + 0.1 * rng.normal(size=(n, D))
    return X.astype(np.float32), Y.astype(np.float32)


def plain_numpy(X: np.ndarray, Y: np.ndarray) -> tuple[float, np.ndarray]:
    """Return leave-one-out error and gradient the straightforward way, with n × n arrays."""
    n = len(X)
    s = np.maximum((X**2).sum(1)[:, None] + (X**2).sum(1) - 2 * X @ X.T, 0)
    np.fill_diagonal(s, np.inf)
    K = np.exp(-0.5 * (s - s.min(axis=1, keepdims=True)))
    W = K / K.sum(axis=1, keepdims=True)
    F = W @ Y
    R = F - Y
    D = 2 * R / n
    Q = W * (D @ Y.T - (D * F).sum(axis=1, keepdims=True))
    T = Q + Q.T
    return float((R * R).sum() / n), T @ X - T.sum(axis=1, keepdims=True) * X


def extra_megabytes(n: int = 50_000, D: int = 64) -> float:
    """Return the peak memory of one evaluation beyond the data, measured in a new process."""
    code = f"from benchmarks.engine_dense import measure_memory; measure_memory({n}, {D})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def measure_memory(n: int, D: int) -> None:
    """Print the extra memory of one evaluation in megabytes (Linux only)."""
    X, Y = make_data(2_000, D, 3.0)
    objective(Y, "cpu_dense").value_and_grad(X)  # what libraries take is not the algorithm's
    X, Y = make_data(n, D, 3.0)
    error = objective(Y, "cpu_dense")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts over from here
    before = _status("VmRSS")
    error.value_and_grad(X)
    print((_status("VmHWM") - before) / 1024)


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def run() -> list[Row]:
    """Measure."""
    X, Y = make_data(5_000, 64, 3.0)
    error = objective(Y, "cpu_dense")
    K = np.random.default_rng(1).random((len(X), len(X)), dtype=np.float32)
    engine = best_time(lambda: error.value_and_grad(X), 9)
    products = best_time(lambda: (K @ Y, Y @ Y.T, K @ Y), 5)
    thin = best_time(lambda: (K @ Y, K @ Y, K @ Y), 5)
    plain = best_time(lambda: plain_numpy(X, Y), 2)
    _, grad = plain_numpy(X.astype(float), Y.astype(float))
    difference = np.linalg.norm(error.value_and_grad(X)[1] - grad) / np.linalg.norm(grad)
    return [
        Row("time / three n × n × D products (W Y, D Yᵀ, W Y)", engine / products, 1.6),
        Row("time / three products, all of the cheaper kind (W Y)", engine / thin),
        Row("plain n × n numpy / time", plain / engine, 4.0, at_most=False),
        Row("relative difference of the gradient from float64", difference, 1e-4),
        Row("extra memory at n = 50,000 [MB]", extra_megabytes(), 300),
    ]


if __name__ == "__main__":
    show("Engine, dense", run())

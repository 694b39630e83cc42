"""The GPU back end against the device's own ceilings, chunked PyTorch and the CPU, in one run.

    python -m benchmarks.gpu                      # all parts
    python -m benchmarks.gpu ceilings objective   # some of them

Parts: "ceilings" (a large bf16 product, a large copy, exponentials), "objective" (the exact
leave-one-out objective and gradient, all pairs of 70,000 rows and a map of a million), "fit"
(1,000,000 × 50, made up), "mnist" (60,000 images as 50 principal components; 10,000 held out),
"ten-million". Times are medians of repeated runs by events of the device, or of one run by the
clock where they are long.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from twofold import UKR
from twofold.engine.gpu.sums import PRECISIONS, CarriedTiles, DeviceSums
from twofold.kernels import GAUSSIAN

D = 64
# Floating-point operations of a pair: products with D columns once forwards and twice backwards.
PAIR_FLOP = 6 * D


def milliseconds(run: Callable[[], object], repeats: int = 5) -> float:
    """Return the median time of a run, after one that is not counted."""
    run()
    times = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return sorted(times)[len(times) // 2]


def ceilings() -> None:
    A, B = (torch.randn(8192, 8192, device="cuda").bfloat16() for _ in range(2))
    print(f"bf16 product   {2 * 8192**3 / milliseconds(lambda: A @ B) / 1e9:8.0f} TFLOP/s")
    x = torch.randn(2**30, device="cuda")
    y = torch.empty_like(x)
    print(f"copy           {8 * 2**30 / milliseconds(lambda: y.copy_(x)) / 1e9:8.2f} TB/s")


def made_up(n: int, extent: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return latent points over a square, and noisy smooth rows with a column of ones."""
    draw = torch.Generator("cuda").manual_seed(0)
    t = torch.rand(n, 2, device="cuda", generator=draw)
    waves = torch.randn(2, D, device="cuda", generator=draw) * 6
    Y = torch.sin(t @ waves) + 0.3 * torch.randn(n, D, device="cuda", generator=draw)
    Y -= Y.mean(dim=0)
    return extent * t, torch.cat([Y, torch.ones_like(Y[:, :1])], dim=1)


def respond(V: torch.Tensor, numbers: torch.Tensor, A: torch.Tensor):
    """Return losses and dR/dA of rows whose sums are A."""
    f = A[:, :D] / A[:, D:]
    residual = f - V[numbers, :D]
    E = 2 * residual / len(V) / A[:, D:]
    return (residual**2).sum(dim=1), torch.cat([E, -(E * f).sum(dim=1, keepdim=True)], dim=1)


def weights_of(X: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    s = ((X[rows][:, None] - X[None]) ** 2).sum(dim=2)
    return torch.exp(-0.5 * s).scatter(1, rows[:, None], 0.0)


def chunked(X: torch.Tensor, V: torch.Tensor, rows: int, weigh=weights_of):
    """Return objective and gradient by plain PyTorch, some rows at a time."""
    grad, total = torch.zeros_like(X), X.new_zeros(())
    for some in torch.arange(len(X), device=X.device).split(rows):
        W = weigh(X, some)
        losses, U = respond(V, some, W @ V)
        G = W * (U @ V.T)
        by_reference = G.T @ X[some] - G.sum(dim=0)[:, None] * X
        grad[some] += G @ X - G.sum(dim=1, keepdim=True) * X[some]
        grad += by_reference
        total += losses.sum()
    return total / len(X), grad


def ours(X: torch.Tensor, V: torch.Tensor, precision: str, cutoff: float):
    engine, tiles = DeviceSums(GAUSSIAN, cutoff), CarriedTiles(X, V, precision)

    def run() -> torch.Tensor:
        def answer(order: torch.Tensor, A: torch.Tensor, shift: torch.Tensor):
            return respond(V, order, A)

        return engine.evaluate(tiles.moved_to(X), answer, hides_itself=True)[1]

    return engine, run


def objective() -> None:
    X, V = made_up(20_000, 20.0)
    exact = chunked(X.double(), V.double(), 1_000)[1]
    for precision in PRECISIONS:
        found = ours(X, V, precision, 1e-8)[1]().double()
        print(f"gradient error {precision}: {float((found - exact).norm() / exact.norm()):.1e}")
    for n, extent, cutoff, what in (
        (70_000, 2.0, 1e-6, "all pairs"),
        (70_000, 265.0, 1e-4, "a spread map"),
        (1_000_000, 1_000.0, 1e-4, "a spread map"),
    ):
        X, V = made_up(n, extent)
        for precision in PRECISIONS:
            engine, run = ours(X, V, precision, cutoff)
            ms = milliseconds(run)
            rate = engine.n_pairs * PAIR_FLOP / ms / 1e9
            print(
                f"n = {n:9,} {what:13} {precision}: {ms:8.2f} ms, {engine.n_pairs / n:9,.0f} pairs "
                f"a row, {rate:6.1f} TFLOP/s"
            )
    X, V = made_up(70_000, 2.0)
    print(f"chunked PyTorch, all pairs: {milliseconds(lambda: chunked(X, V, 4096), 3):8.2f} ms")
    compiled = torch.compile(weights_of)
    ms = milliseconds(lambda: chunked(X, V, 4096, compiled), 3)
    print(f"the same, weights by torch.compile: {ms:8.2f} ms")


def timed(name: str, run: Callable[[], object]) -> object:
    torch.cuda.synchronize()
    start = time.perf_counter()
    found = run()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() / 2**30
    print(f"{name}: {time.perf_counter() - start:.2f} s, {peak:.1f} GiB on the device", flush=True)
    return found


def explained(model: UKR, Y: np.ndarray) -> float:
    return -model.score(Y) / float(((Y - Y.mean(axis=0)) ** 2).sum(axis=1).mean())


def fit(n: int = 1_000_000) -> None:
    from benchmarks.large_steps import rows_made_up

    train, test = rows_made_up(n)
    torch.cuda.reset_peak_memory_stats()
    model = UKR(device="cuda", random_state=0)
    timed(f"fit of {n:,} × 50", lambda: model.fit(train))
    print(f"start {model.start_}, {model.n_iter_} iterations, {model.backend_}")
    F = timed("inverse of 1,000,000 points", lambda: model.inverse_transform(model.embedding_))
    print(
        f"training rows left: {((F - train) ** 2).sum() / ((train - train.mean(0)) ** 2).sum():.4f}"
    )
    timed("transform of 5,000 rows", lambda: model.transform(test))
    print(f"new rows left: {explained(model, test):.4f}")


def mnist() -> None:
    from benchmarks.landmarks import rows_of_mnist

    train, test = rows_of_mnist()
    noise = np.random.default_rng(0).normal(scale=30, size=(10 * len(test), 50)).astype(np.float32)
    for device in ("cuda", "cuda", "cpu"):
        model = UKR(device=device, random_state=0)
        timed(
            f"MNIST, fit of {len(train):,} × 50 on {device}", lambda model=model: model.fit(train)
        )
        timed("  transform of 10,000", lambda model=model: model.transform(test))
        if device == "cuda":
            many = np.repeat(test, 10, axis=0) + noise
            timed("  transform of 100,000", lambda model=model, many=many: model.transform(many))
        print(
            f"  start {model.start_}, {model.n_iter_} iterations, objective "
            f"{model.objective_:.5g}, new rows left {explained(model, test):.4f}, {model.backend_}"
        )


PARTS = {
    "ceilings": ceilings,
    "objective": objective,
    "mnist": mnist,
    "fit": fit,
    "ten-million": lambda: fit(10_000_000),
}

if __name__ == "__main__":
    if "--log" in sys.argv:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    for name in [name for name in PARTS if name in sys.argv] or PARTS:
        print(f"-- {name}", flush=True)
        PARTS[name]()

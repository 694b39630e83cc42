"""The device's own ceilings, and how near to them each fused kernel comes.

A pair of rows costs products with the columns (tensor cores), one exponential (special function
units) and some arithmetic in float32, counted in the source of the kernels; tiles are read from
the cache, which holds the rows of 70,000 and most of what neighbouring tiles of a million share.
What each of these would take alone, at the rate measured here,
is its floor; the highest floor is what bounds a kernel, and floors that together come to the
measured time say that they do not overlap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from twofold.engine.gpu.tiles import TILE

# Instructions of a pair in float32 by kernel and precision: distances, the exponent, what is
# hidden, rounding or splitting, sums.
INSTRUCTIONS = {
    ("sum_tiles", "bf16"): 10,
    ("sum_tiles", "tf32"): 8,
    ("sum_tiles", "fp32"): 14,
    ("pull_tiles", "bf16"): 12,
    ("pull_tiles", "tf32"): 12,
    ("pull_tiles", "fp32"): 12,
}
# Products that a precision takes, their type, and the bytes of a number in a tile.
PRODUCTS = {"bf16": (1, "bf16", 2), "tf32": (1, "tf32", 4), "fp32": (3, "bf16", 4)}
LOOPS = 512


@triton.jit
def _loop(x, out, EXPONENTIALS: tl.constexpr, LOOPS: tl.constexpr, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + places)
    for _ in range(LOOPS):
        if EXPONENTIALS:
            value = tl.inline_asm_elementwise(
                "ex2.approx.ftz.f32 $0, $1;", "=f,f", [value], tl.float32, is_pure=True, pack=1
            )
        else:
            value = value * value + value
    tl.store(out + places, value)


@triton.jit
def _read(x, out, n, BLOCK: tl.constexpr):
    """Add up all of x in every program, each from another place on."""
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    shift = tl.program_id(0) * BLOCK * 7
    for start in range(0, n, BLOCK):
        total += tl.load(x + (start + shift) % n + tl.arange(0, BLOCK))
    tl.store(out + tl.program_id(0), tl.sum(total, axis=0))


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


@dataclass(frozen=True)
class Ceilings:
    """What the device does in a second at most, measured."""

    bf16: float  # operations in products
    tf32: float
    exponentials: float
    arithmetic: float  # instructions in float32
    memory: float  # bytes, read and written
    cache: float  # bytes read of 16 MB that many programs share


def measure_ceilings() -> Ceilings:
    """Return ceilings by large products, a large copy, and loops within registers."""
    A, B = (torch.randn(8192, 8192, device="cuda") for _ in range(2))
    half = A.bfloat16(), B.bfloat16()
    bf16 = 2 * 8192**3 / milliseconds(lambda: half[0] @ half[1]) * 1e3
    torch.backends.cuda.matmul.allow_tf32 = True
    tf32 = 2 * 8192**3 / milliseconds(lambda: A @ B) * 1e3
    torch.backends.cuda.matmul.allow_tf32 = False
    x = torch.rand(2**24, device="cuda") * 0.1
    out = torch.empty_like(x)
    count = LOOPS * len(x) * 1e3

    def loop(exponentials: bool) -> float:
        how = {"EXPONENTIALS": exponentials, "LOOPS": LOOPS, "BLOCK": 4096}
        return count / milliseconds(lambda: _loop[(len(x) // 4096,)](x, out, **how))

    large = torch.randn(2**30, device="cuda")
    copied = torch.empty_like(large)
    memory = 8 * 2**30 / milliseconds(lambda: copied.copy_(large)) * 1e3
    shared, programs = large[: 2**22], 132 * 8
    read = milliseconds(lambda: _read[(programs,)](shared, copied, len(shared), BLOCK=4096))
    cache = 4 * len(shared) * programs / read * 1e3
    return Ceilings(bf16, tf32, loop(True), loop(False), memory, cache)


def seconds_by_kernel(
    run: Callable[[], object],
    repeats: int = 3,
    kernels: tuple[str, ...] = ("sum_tiles", "pull_tiles"),
) -> dict[str, float]:
    """Return the time of a run on the device by kernel, others together as "rest"."""
    run()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(repeats):
            run()
        torch.cuda.synchronize()
    found = dict.fromkeys((*kernels, "rest"), 0.0)
    for event in profile.key_averages():
        name = event.key if event.key in found else "rest"
        found[name] += event.self_device_time_total / 1e6 / repeats
    return found


def floors(kernel: str, precision: str, n_pairs: int, columns: int, most: Ceilings) -> dict:
    """Return what each part of a kernel would take alone, in seconds."""
    count, kind, itemsize = PRODUCTS[precision]
    sides = 1 if kernel == "sum_tiles" else 2
    flop = 2 * sides * columns * n_pairs
    n_bytes = n_pairs / TILE * sides * columns * itemsize
    return {
        "products": count * flop / getattr(most, kind),
        "exponentials": n_pairs / most.exponentials,
        "arithmetic": n_pairs * INSTRUCTIONS[kernel, precision] / most.arithmetic,
        "bytes": n_bytes / most.cache,
        "flop": flop,
        "n_bytes": n_bytes,
    }

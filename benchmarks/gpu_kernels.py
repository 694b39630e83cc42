"""The device's own ceilings, and how near to them each fused kernel comes.

What a kernel does is counted in its source: products with the columns (tensor cores), exponentials
(special function units), arithmetic in float32 and float64, bytes that come from the cache (tiles,
which the cache holds for 70,000 rows and mostly for a million) or from memory. What each of these
would take alone, at the rate measured here, is its floor; the highest floor is what bounds a
kernel, and floors that together come to the measured time say that they do not overlap. Where no
floor reaches a third of the time, waiting does it: for loads that depend on each other, or for the
longest list of tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from twofold.engine.gpu.tiles import TILE

# The fused kernels, by the part of an evaluation that they belong to.
OF_SUMS = ("sum_tiles", "pull_tiles")
OF_LISTS = ("list_tiles", "nearest_in_tiles", "lay_out")
OF_FITS = ("moments_of_fits", "sum_fits", "push_fits")
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
# Instructions of a pair in float64, for q = 2: moments twice in an evaluation (up to degree 3 and 2
# of degree 1, 5 and 3 of degree 2; 23 + 16 and 45 + 24), sums and pushes once.
IN_DOUBLE = {
    ("moments_of_fits", 1): 39,
    ("moments_of_fits", 2): 69,
    ("sum_fits", 1): 8,
    ("sum_fits", 2): 14,
    ("push_fits", 1): 38,
    ("push_fits", 2): 66,
}
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
    double: float  # instructions in float64
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

    def loop(x: torch.Tensor, out: torch.Tensor, *, exponentials: bool = False) -> float:
        how = {"EXPONENTIALS": exponentials, "LOOPS": LOOPS, "BLOCK": 4096}
        return count / milliseconds(lambda: _loop[(len(x) // 4096,)](x, out, **how))

    rates = loop(x, out, exponentials=True), loop(x, out), loop(x.double(), out.double())

    large = torch.randn(2**30, device="cuda")
    copied = torch.empty_like(large)
    memory = 8 * 2**30 / milliseconds(lambda: copied.copy_(large)) * 1e3
    shared, programs = large[: 2**22], 132 * 8
    read = milliseconds(lambda: _read[(programs,)](shared, copied, len(shared), BLOCK=4096))
    cache = 4 * len(shared) * programs / read * 1e3
    return Ceilings(bf16, tf32, *rates, memory, cache)


def seconds_by_kernel(
    run: Callable[[], object],
    repeats: int = 3,
    kernels: tuple[str, ...] = (*OF_SUMS, *OF_FITS, *OF_LISTS),
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


@dataclass(frozen=True)
class Work:
    """What a kernel does in one evaluation, counted in its source."""

    flop: float = 0.0  # in products, each counted once
    passes: int = 1  # products that a precision takes for one
    kind: str = "bf16"  # of those products
    exponentials: float = 0.0
    arithmetic: float = 0.0
    double: float = 0.0
    cache: float = 0.0  # bytes
    memory: float = 0.0

    def floors(self, most: Ceilings) -> dict[str, float]:
        """Return what each part would take alone, in seconds."""
        found = {
            "products": self.passes * self.flop / getattr(most, self.kind),
            "exponentials": self.exponentials / most.exponentials,
            "arithmetic": self.arithmetic / most.arithmetic,
            "float64": self.double / most.double,
            "bytes": self.cache / most.cache + self.memory / most.memory,
        }
        return {name: seconds for name, seconds in found.items() if seconds > 0}


def work_of(kernel: str, precision: str, degree: int, n: int, n_pairs: int, columns: int) -> Work:
    """Return the work of a kernel over n points with q = 2, and pairs in tiles within reach."""
    n_tiles = -(-n // TILE)
    if kernel == "lay_out":  # a place of 8 bytes, two coordinates read and written
        return Work(memory=24.0 * n, arithmetic=8.0 * n)
    if kernel == "nearest_in_tiles":  # each tile with itself
        return Work(arithmetic=9.0 * n_tiles * TILE**2, cache=16.0 * n)
    if kernel == "list_tiles":  # counted, then written; boxes and a reach, five numbers
        return Work(arithmetic=36.0 * n_tiles**2, cache=40.0 * n_tiles**2)
    if kernel in OF_SUMS:
        passes, kind, itemsize = PRODUCTS[precision]
        sides = 1 if kernel == "sum_tiles" else 2
        return Work(
            2.0 * sides * columns * n_pairs,
            passes,
            kind,
            exponentials=n_pairs,
            arithmetic=float(n_pairs * INSTRUCTIONS[kernel, precision]),
            cache=n_pairs / TILE * sides * columns * itemsize,
        )
    looks = 2 if kernel == "moments_of_fits" else 1  # at every pair, one of them with products
    return Work(
        2.0 * columns * n_pairs,
        3,
        "tf32",
        exponentials=looks * n_pairs,
        arithmetic=8.0 * looks * n_pairs,
        double=float(n_pairs * IN_DOUBLE[kernel, degree]),
        cache=4.0 * n_pairs / TILE * columns,
    )


def work_of_attraction(n: int, n_edges: int) -> Work:
    """Return the work of `attract`: a number, a weight and a point for each neighbour."""
    return Work(arithmetic=14.0 * n_edges, memory=8.0 * n_edges + 24.0 * n, cache=8.0 * n_edges)


def measured(kernel: str, seconds: float, work: Work, most: Ceilings) -> dict:
    """Return a row of the table: time, rates, floors and what bounds the kernel; print it."""
    parts = work.floors(most)
    bound, longest = max(parts.items(), key=lambda part: part[1])
    shares = {name: part / seconds for name, part in parts.items()}
    row = {
        "kernel": kernel,
        "ms": 1e3 * seconds,
        "flops": work.flop / seconds,
        "bandwidth": (work.cache + work.memory) / seconds,
        "floors": parts,
        "bound": bound if longest > seconds / 3 else "waiting",
    }
    print(
        f"    {kernel:16} {1e3 * seconds:8.3f} ms, {row['flops'] / 1e12:6.1f} TFLOP/s, "
        f"{row['bandwidth'] / 1e12:5.2f} TB/s; {row['bound']}; "
        + ", ".join(f"{name} {share:.0%}" for name, share in shares.items()),
        flush=True,
    )
    return row

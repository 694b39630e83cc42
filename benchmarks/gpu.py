"""The GPU back end against the device's own ceilings, chunked PyTorch and the CPU, in one run.

    python -m benchmarks.gpu                      # all parts
    python -m benchmarks.gpu objective mnist      # some of them
    python -m benchmarks.gpu draw                 # table and picture of the last "objective"

Parts: "objective" (the exact leave-one-out objective and gradient: all pairs of 70,000 rows, and
maps of a million; what bounds each kernel), "nodes" (the same over a grid, for wide kernels),
"degrees" (local polynomials), "fit" (1,000,000 × 50, made up; the objective on the
map that was trained), "mnist" (60,000 images as 50 principal components, 10,000 held out; 70,000),
"starts" (what of a fit stays on the CPU), "kernel-pca" (20,000 images), "umap" (TorchDR's, where it
is installed), "ten-million".
Times are medians of repeated runs by events of the device, or of one run by the clock where they
are long.
"""

from __future__ import annotations

import cProfile
import json
import logging
import pstats
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from benchmarks.gpu_kernels import (
    measure_ceilings,
    measured,
    milliseconds,
    seconds_by_kernel,
    work_of,
    work_of_attraction,
)
from twofold import UKR, KernelPCA
from twofold.engine.gpu.library import why_no_gpu
from twofold.engine.gpu.sums import DeviceSums, carried
from twofold.engine.gpu.tiles import along_a_curve
from twofold.engine.local_fit import FitGroup, LocalFit, polynomial_terms
from twofold.kernels import GAUSSIAN
from twofold.losses import Squared
from twofold.neighborhoods.gpu_tsne import _attraction, affinities

D = 64
PRECISIONS = ("bf16", "tf32", "fp32")
RESULTS = Path(__file__).parent / "results" / "gpu.json"


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


def ours(
    X: torch.Tensor,
    V: torch.Tensor,
    precision: str = "fp32",
    cutoff: float = 1e-6,
    *,
    nodes: bool | None = False,
    degree: int = 0,
):
    """Return the engine and a run of it, over pairs or over the nodes of a grid."""
    local = None
    if degree:
        local = LocalFit(
            polynomial_terms(degree, 2), (FitGroup(np.arange(D + 1), np.ones(len(X))),)
        )
    engine = DeviceSums(GAUSSIAN, cutoff, nodes=nodes)
    tiles = carried(X, V, GAUSSIAN, precision, local)

    def run() -> torch.Tensor:
        def answer(order: torch.Tensor, A: torch.Tensor, shift: torch.Tensor):
            return respond(V, order, A)

        found = engine.evaluate(tiles.moved_to(X), answer, hides_itself=True)
        return found[1] + found[2]

    return engine, run


def objective() -> None:
    X, V = made_up(20_000, 20.0)
    exact = chunked(X.double(), V.double(), 1_000)[1]
    for precision in PRECISIONS:
        found = ours(X, V, precision, 1e-8)[1]().double()
        print(f"gradient error {precision}: {float((found - exact).norm() / exact.norm()):.1e}")
    most = measure_ceilings()
    print("ceilings", {name: f"{value:.3g}" for name, value in asdict(most).items()})
    rows = []
    for n, extent, cutoff, what in (
        (70_000, 2.0, 1e-6, "all pairs"),
        (70_000, 265.0, 1e-4, "spread"),
        (1_000_000, 1_000.0, 1e-4, "spread"),
        (1_000_000, 100.0, 1e-6, "wide kernel"),
    ):
        X, V = made_up(n, extent)
        for precision in PRECISIONS:
            engine, run = ours(X, V, precision, cutoff)
            rows += kernel_rows(engine, run, n, what, precision, 0, most)
    for n, extent, what in ((70_000, 20.0, "wide kernel"), (1_000_000, 1_000.0, "spread")):
        X, V = made_up(n, extent)
        for degree in (1, 2):
            engine, run = ours(X, V, nodes=None, degree=degree)
            rows += kernel_rows(engine, run, n, what, "fp32", degree, most)
    for n in (70_000, 1_000_000):
        rows.append(attraction(n, most))
    peers = {}
    X, V = made_up(70_000, 2.0)
    peers["PyTorch in chunks"] = milliseconds(lambda: chunked(X, V, 4096), 3)
    compiled = torch.compile(weights_of)
    peers["the same, torch.compile"] = milliseconds(lambda: chunked(X, V, 4096, compiled), 3)
    print(peers)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"ceilings": asdict(most), "rows": rows, "peers": peers}))


def kernel_rows(engine, run, n: int, what: str, precision: str, degree: int, most) -> list[dict]:
    """Time one evaluation and its kernels, and say what bounds each."""
    ms, found = milliseconds(run), []
    said = {"n": n, "what": what, "precision": precision, "degree": degree, "total_ms": ms}
    print(
        f"n = {n:9,} {what:11} {precision}, degree {degree}: {ms:8.2f} ms, "
        f"{engine.n_pairs / n:9,.0f} pairs a row"
    )
    for kernel, seconds in seconds_by_kernel(run).items():
        if kernel == "rest":
            print(f"    {kernel:16} {1e3 * seconds:8.3f} ms")
            found.append(said | {"kernel": kernel, "ms": 1e3 * seconds})
        elif seconds > 0:
            work = work_of(kernel, precision, degree, n, engine.n_pairs, D)
            found.append(said | measured(kernel, seconds, work, most))
    return found


def attraction(n: int, most, k: int = 30) -> dict:
    """Time the pull of neighbours on a map, a step of t-SNE: neighbours lie side by side."""
    X = made_up(n, 100.0)[0]
    X = X[along_a_curve(X)].contiguous()
    near = torch.arange(n, device="cuda")[:, None] + torch.randint(
        -2 * k, 2 * k, (n, k), device="cuda"
    )
    P = affinities(torch.rand(n, k, device="cuda"), near.clamp(0, n - 1), 10.0)
    run = partial(_attraction, P, X)
    seconds = seconds_by_kernel(run, kernels=("attract",))["attract"]
    print(f"n = {n:9,} t-SNE, {len(P.p) / n:.0f} neighbours a row")
    found = measured("attract", seconds, work_of_attraction(n, len(P.p)), most)
    return {"n": n, "what": "t-SNE", "precision": "fp32", "degree": 0} | found


def nodes() -> None:
    """Compare sums over the nodes of a grid with those over pairs."""
    for n, extent in ((70_000, 2.0), (1_000_000, 100.0), (1_000_000, 50.0), (1_000_000, 25.0)):
        X, V = made_up(n, extent)
        times, found = [], []
        for over_nodes in (False, True):
            engine, run = ours(X, V, nodes=over_nodes)
            times.append(milliseconds(run, 3))
            found.append(run())
        engine.nodes = None
        run()
        off = float((found[1] - found[0]).norm() / found[0].norm())
        print(
            f"n = {n:9,}, {engine.n_pairs / n:9,.0f} pairs a row: pairs {times[0]:7.1f} ms, nodes "
            f"{times[1]:7.1f} ms, gradient {off:.1e} apart, nodes chosen: {engine.is_over_nodes}"
        )


def degrees() -> None:
    """Time local polynomials: one evaluation by kernel, and fits of MNIST."""
    from benchmarks.landmarks import rows_of_mnist

    for n, extent in ((70_000, 20.0), (70_000, 265.0), (1_000_000, 1_000.0)):
        X, V = made_up(n, extent)
        for degree in (0, 1, 2):
            torch.cuda.reset_peak_memory_stats()
            engine, run = ours(X, V, nodes=None, degree=degree)
            ms, parts = milliseconds(run), seconds_by_kernel(run)
            shown = ", ".join(f"{name} {1e3 * s:.2f}" for name, s in parts.items() if s)
            peak = torch.cuda.max_memory_allocated() / 2**30
            print(
                f"n = {n:9,}, {engine.n_pairs / n:7,.0f} pairs a row, degree {degree}: "
                f"{ms:6.2f} ms ({shown}), {peak:.1f} GiB",
                flush=True,
            )
    train, test = rows_of_mnist()
    for degree in (1, 1, 2):
        model = UKR(degree=degree, device="cuda", random_state=0)
        timed(f"MNIST, fit of 60,000 × 50, degree {degree}", lambda m=model: m.fit(train))
        timed("  transform of 10,000", lambda m=model: m.transform(test))
        print(f"  {model.n_iter_} iterations, new rows left {explained(model, test):.4f}")
    for device in ("cuda", "cpu"):
        model = UKR(degree=1, device=device, random_state=0)
        timed(
            f"MNIST, fit of 12,000 × 50, degree 1, 30 iterations, {device}",
            lambda m=model: m.fit(train[:12_000]),
        )
        print(f"  new rows left {explained(model, test[:2000]):.4f}, {model.backend_}")


def timed(name: str, run: Callable[[], object]) -> object:
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
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
    for _ in range(2 if n <= 1_000_000 else 1):  # the first compiles
        model = UKR(device="cuda", random_state=0)
        timed(f"fit of {n:,} × 50", lambda model=model: model.fit(train))
    print(f"start {model.start_}, {model.n_iter_} iterations, {model.backend_}")
    trained_map(model)
    F = timed("inverse of all points", lambda: model.inverse_transform(model.embedding_))
    places = torch.as_tensor(model.embedding_, device="cuda")
    for _ in range(2):
        timed("inverse of a tensor there", lambda: model.inverse_transform(places))
    print(
        f"training rows left: {((F - train) ** 2).sum() / ((train - train.mean(0)) ** 2).sum():.4f}"
    )
    timed("transform of 5,000 rows", lambda: model.transform(test))
    print(f"new rows left: {explained(model, test):.4f}")


def trained_map(model: UKR) -> None:
    """Time the objective and its gradient at the latent points of a fitted model."""
    from dataclasses import replace

    from twofold.ukr.gpu_objective import DeviceReconstruction

    problem = model._pose(model.data_, model.weights_, Squared(), training=True)
    for precision in PRECISIONS:
        problem.engine.precision = precision
        there = DeviceReconstruction(replace(problem))
        X = there.tensor(model.latent_ * model.latent_scale_)
        ms = milliseconds(lambda there=there, X=X: there.value_and_grad(X))
        pairs = there.engine.n_pairs / len(X)
        print(f"  on the trained map, {precision}: {ms:.1f} ms, {pairs:,.0f} pairs a row")


def mnist() -> None:
    from benchmarks.landmarks import rows_of_mnist

    train, test = rows_of_mnist()
    noise = np.random.default_rng(0).normal(scale=30, size=(10 * len(test), 50)).astype(np.float32)
    for device in ("cuda", "cuda", "cpu"):
        model = UKR(device=device, random_state=0)
        timed(f"MNIST, fit of {len(train):,} × 50 on {device}", lambda m=model: m.fit(train))
        timed("  transform of 10,000", lambda m=model: m.transform(test))
        if device == "cuda":
            many = np.repeat(test, 10, axis=0) + noise
            timed("  transform of 100,000", lambda m=model, many=many: m.transform(many))
        print(
            f"  start {model.start_}, {model.n_iter_} iterations, objective "
            f"{model.objective_:.5g}, new rows left {explained(model, test):.4f}, {model.backend_}"
        )
    whole = np.concatenate([train, test])
    timed(
        "MNIST, fit of 70,000 × 50 on cuda", lambda: UKR(device="cuda", random_state=0).fit(whole)
    )
    for device in ("cuda", "cuda", "cpu"):
        few = UKR(device=device, landmarks=500, random_state=0)
        timed(f"MNIST, 500 landmarks on {device}", lambda few=few: few.fit(train))
        print(f"  new rows left {explained(few, test):.4f}")


def starts() -> None:
    """Say how long what stays on the CPU takes in a fit on the device."""
    from benchmarks.landmarks import rows_of_mnist
    from benchmarks.large_steps import rows_made_up

    on_cpu = ("find", "scale", "scale_each_dimension", "choose_landmarks", "adapt")
    there = ("start_on_device", "train_on_device", "_fit_alone", "_project", "_distinct", "_embed")
    train = rows_of_mnist()[0]
    cases = {
        "MNIST 60,000": (train, {}),
        "MNIST 60,000, 500 landmarks": (train, {"landmarks": 500}),
        "made up 1,000,000": (rows_made_up(1_000_000)[0], {}),
    }
    for what, (rows, options) in cases.items():
        for is_first in (True, False):  # the first compiles
            model, profile = UKR(device="cuda", random_state=0, **options), cProfile.Profile()
            start = time.perf_counter()
            profile.runcall(model.fit, rows)
            seconds = time.perf_counter() - start
            if is_first:
                continue
            spent = dict.fromkeys((*on_cpu, *there), 0.0)
            for (path, _, name), row in pstats.Stats(profile).stats.items():
                if name in spent and "twofold" in path:
                    spent[name] += row[3]
            shown = ", ".join(f"{name} {time:.2f}" for name, time in spent.items() if time > 0.005)
            print(f"{what}: fit {seconds:.2f} s, of it {shown}", flush=True)
    compare_starts(train)


def compare_starts(rows: np.ndarray) -> None:
    """Time the comparison of starts of the representatives on the CPU and on the device."""
    from twofold.ukr.gpu_objective import DeviceReconstruction, scaled_start
    from twofold.ukr.objective import common_scale, scale_each_dimension

    model = UKR(device="cuda", random_state=0)
    model.kernel_ = model.kernel
    few = rows[:: len(rows) // 2_000][:2_000].astype(np.float64)
    X = few[:, :2] / few[:, :2].std(axis=0)
    problem = model._pose(few, np.ones(len(few)), Squared(), training=True).cross_validated(few)
    error, objective = problem.reconstruction(cross_validated=True), DeviceReconstruction(problem)
    for _ in range(2):  # the first compiles
        start = time.perf_counter()
        _, lowest = scale_each_dimension(*common_scale(X, error), error)
        here = time.perf_counter() - start
        start = time.perf_counter()
        _, least = scaled_start(objective.tensor(X), objective)
        there = time.perf_counter() - start
    print(
        f"a start of 2,000 rows scaled: CPU {here:.3f} s ({lowest:.6g}), device {there:.3f} s "
        f"({least:.6g})"
    )


def kernel_pca() -> None:
    from benchmarks.landmarks import rows_of_mnist

    rows = rows_of_mnist()[0][:20_000].astype(np.float64)
    KernelPCA(device="cuda").fit(rows[:1_000])
    for device in ("cuda", "cpu"):
        model = KernelPCA(device=device)
        timed(f"KernelPCA, MNIST 20,000 on {device}", lambda model=model: model.fit(rows))
        print(f"  eigenvalues {model.eigenvalues_}")


def umap() -> None:
    if find_spec("torchdr") is None:
        print("TorchDR is not installed")
        return
    from torchdr import UMAP

    from benchmarks.landmarks import rows_of_mnist

    rows = torch.from_numpy(rows_of_mnist()[0]).cuda()
    for _ in range(2):  # backend=None: faiss finds neighbours otherwise
        model = UMAP(device="cuda", backend=None, random_state=0)
        timed("TorchDR's UMAP, MNIST 60,000", lambda model=model: model.fit_transform(rows))


def draw() -> None:
    """Print the table of the last run, and draw docs/images/gpu.png from it."""
    import matplotlib.pyplot as plt

    found = json.loads(RESULTS.read_text())
    # Lists of tiles are the same for every precision and degree.
    rows = [
        row
        for row in found["rows"]
        if "floors" in row and (row["flops"] or (row["precision"], row["degree"]) == ("fp32", 0))
    ]
    print("| rows, map | kernel | time | TFLOP/s | TB/s | bound by | floors |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(cells_of(row))} |")
    parts = ("products", "exponentials", "arithmetic", "float64", "bytes")
    colors = dict(zip(parts, ("#31688e", "#e0a33b", "#8fb87a", "#c0504d", "#b08ab8"), strict=True))
    drawn = [
        row
        for row in rows
        if row["what"] in ("all pairs", "wide kernel")
        or (row["n"] > 70_000 and row["precision"] != "tf32")
    ]
    figure, axis = plt.subplots(figsize=(9, 0.22 * len(drawn) + 1.2), layout="constrained")
    for place, row in enumerate(reversed(drawn)):
        seconds, left = row["ms"] / 1e3, 0.0
        axis.barh(place, 1.0, color="#eeeeee", edgecolor="#888888", height=0.75)
        for name, floor in row["floors"].items():
            axis.barh(place, floor / seconds, left=left, color=colors[name], height=0.45)
            left += floor / seconds
        _, _, shown, rate, bandwidth, *_ = cells_of(row)
        label = f"{shown}, {rate} TFLOP/s" if rate else f"{shown}, {bandwidth} TB/s"
        axis.text(1.56, place, label, va="center", fontsize=7)
    names = [" ".join(cells_of(row)[:2]).replace("`", "") for row in reversed(drawn)]
    axis.set_yticks(range(len(names)), names, fontsize=7)
    axis.axvline(1.0, color="#444444", linewidth=1)
    axis.set_xlim(0, 1.95)
    axis.set_ylim(-0.6, len(drawn) - 0.4)
    axis.set_xticks(np.arange(0, 1.51, 0.25))
    axis.set_xlabel(
        "what each part would take alone, in parts of the measured time (1.0)", loc="left"
    )
    handles = [plt.Rectangle((0, 0), 1, 1, color=colors[name]) for name in parts]
    figure.legend(handles, parts, loc="outside upper center", ncols=5, fontsize=8)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    target = Path(__file__).parents[1] / "docs" / "images" / "gpu.png"
    figure.savefig(target, dpi=120)
    print(target)


def cells_of(row: dict) -> list[str]:
    """Return a row of the table in words."""
    seconds = row["ms"] / 1e3
    how = f'"{row["precision"]}"' + (f", degree {row['degree']}" if row["degree"] else "")
    shares = (f"{name} {floor / seconds:.0%}" for name, floor in row["floors"].items())
    return [
        f"{row['n']:,}, {row['what']}",
        f"`{row['kernel']}`, {how}" if row["flops"] else f"`{row['kernel']}`",
        f"{row['ms']:.2f} ms" if row["ms"] > 0.1 else f"{1e3 * row['ms']:.0f} µs",
        f"{row['flops'] / 1e12:.0f}" if row["flops"] else "",
        f"{row['bandwidth'] / 1e12:.2f}",
        row["bound"],
        ", ".join(shares),
    ]


PARTS = {
    "objective": objective,
    "nodes": nodes,
    "degrees": degrees,
    "mnist": mnist,
    "starts": starts,
    "kernel-pca": kernel_pca,
    "umap": umap,
    "fit": fit,
    "ten-million": lambda: fit(10_000_000),
}

if __name__ == "__main__":
    if "--log" in sys.argv:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    if "draw" in sys.argv:
        draw()
        sys.exit()
    if why_no_gpu():
        sys.exit(f"This benchmark needs a GPU, and {why_no_gpu()}")
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    for name in [name for name in PARTS if name in sys.argv] or PARTS:
        print(f"-- {name}", flush=True)
        PARTS[name]()

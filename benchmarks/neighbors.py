"""Nearest-neighbour search: scikit-learn's brute force beside pynndescent, faiss and hnswlib.

Every search runs in a process of its own, on all processors, k = 15: import, first call (build and
query, with whatever is compiled on the way), second call, and recall: the share of the neighbours
found that are no farther than the true fifteenth. Times are also given as ratios to
scikit-learn's warm call at the same size. "Same on 1 thread" says whether a seeded run on one
thread finds the very same neighbours as one on all of them, at the smallest size.

The data lie near a curved ten-dimensional sheet, as real data do: approximate searches profit from
that. Packages that are not installed are skipped.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
from rich.console import Console
from rich.table import Table

N_NEIGHBORS = 15
SIZES = ((2_000, 64), (20_000, 50), (60_000, 50))
REFERENCE = "scikit-learn brute"


def make_data(n: int, D: int) -> np.ndarray:
    """Return (n, D) rows near a ten-dimensional sheet, in float32."""
    rng = np.random.default_rng(0)
    U = rng.uniform(-1, 1, size=(n, 10))
    waves = np.cos(U @ rng.normal(size=(10, 100)) + rng.uniform(0, 2 * np.pi, size=100))
    Y = waves @ rng.normal(size=(100, D)) / 10 + 0.05 * rng.normal(size=(n, D))
    return Y.astype(np.float32)


def search_sklearn(Y: np.ndarray, n_threads: int) -> np.ndarray:
    """Search exactly; every row is its own first neighbour, as with the others."""
    from sklearn.neighbors import NearestNeighbors
    from threadpoolctl import threadpool_limits

    with threadpool_limits(n_threads):
        model = NearestNeighbors(n_neighbors=N_NEIGHBORS + 1, algorithm="brute").fit(Y)
        return model.kneighbors(Y, return_distance=False)


def search_faiss_flat(Y: np.ndarray, n_threads: int) -> np.ndarray:
    """Search exactly."""
    import faiss

    faiss.omp_set_num_threads(n_threads)
    index = faiss.IndexFlatL2(Y.shape[1])
    index.add(Y)
    return index.search(Y, N_NEIGHBORS + 1)[1]


def search_faiss_hnsw(Y: np.ndarray, n_threads: int) -> np.ndarray:
    """Search a navigable small-world graph."""
    import faiss

    faiss.omp_set_num_threads(n_threads)
    index = faiss.IndexHNSWFlat(Y.shape[1], 16)
    index.hnsw.efConstruction = 100
    index.hnsw.efSearch = 64
    index.add(Y)
    return index.search(Y, N_NEIGHBORS + 1)[1]


def search_hnswlib(Y: np.ndarray, n_threads: int) -> np.ndarray:
    """Search a navigable small-world graph."""
    import hnswlib

    index = hnswlib.Index(space="l2", dim=Y.shape[1])
    index.init_index(max_elements=len(Y), M=16, ef_construction=100, random_seed=0)
    index.set_num_threads(n_threads)
    index.add_items(Y)
    index.set_ef(64)
    return index.knn_query(Y, k=N_NEIGHBORS + 1)[0]


def search_pynndescent(Y: np.ndarray, n_threads: int) -> np.ndarray:
    """Descend on the neighbour graph."""
    from pynndescent import NNDescent

    index = NNDescent(Y, n_neighbors=N_NEIGHBORS + 1, random_state=0, n_jobs=n_threads)
    return index.neighbor_graph[0]


SEARCHES: dict[str, tuple[str, Callable[[np.ndarray, int], np.ndarray]]] = {
    REFERENCE: ("sklearn.neighbors", search_sklearn),
    "faiss flat": ("faiss", search_faiss_flat),
    "faiss hnsw": ("faiss", search_faiss_hnsw),
    "hnswlib": ("hnswlib", search_hnswlib),
    "pynndescent": ("pynndescent", search_pynndescent),
}


@dataclass(frozen=True)
class Measured:
    """Seconds and neighbours of one search in one process."""

    load: float
    first: float
    warm: float
    indices: np.ndarray


def measure(name: str, n: int, D: int, n_threads: int) -> Measured:
    """Time one search; meant to be the only work of its process."""
    package, search = SEARCHES[name]
    Y = make_data(n, D)
    start = time.perf_counter()
    importlib.import_module(package)
    times = [time.perf_counter() - start]
    for _ in range(2):
        start = time.perf_counter()
        indices = search(Y, n_threads)
        times.append(time.perf_counter() - start)
    return Measured(*times, np.asarray(indices))


def in_new_process(name: str, n: int, D: int, n_threads: int) -> Measured:
    """Run `measure` where nothing is loaded or compiled yet."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, name, n, D, n_threads).result()


def recall(Y: np.ndarray, found: np.ndarray, exact: np.ndarray) -> float:
    """Return the share of found neighbours that are no farther than the last exact one."""

    def distances(indices: np.ndarray) -> np.ndarray:
        columns = [((Y - Y[column]) ** 2).sum(axis=1) for column in indices.T]
        return np.column_stack(columns)

    # A missing neighbour is -1; a row given twice would count twice, which no search does.
    last = distances(exact[:, -1:]) * (1 + 1e-5)
    return float(np.mean((distances(found) <= last) & (found >= 0)))


def compare(n: int, D: int, n_threads: int, *, check_threads: bool) -> Table:
    """Return the table of all searches at one size."""
    title = f"n = {n:,}, D = {D}, k = {N_NEIGHBORS}, {n_threads} threads"
    table = Table(title=title, title_justify="left")
    table.add_column("search")
    for heading in ("import s", "first s", "warm s", "first ratio", "warm ratio", "recall"):
        table.add_column(heading, justify="right")
    table.add_column("same on 1 thread")
    Y = make_data(n, D)
    reference = in_new_process(REFERENCE, n, D, n_threads)
    for name, (package, _) in SEARCHES.items():
        if importlib.util.find_spec(package) is None:
            table.add_row(name, "not installed")
            continue
        got = reference if name == REFERENCE else in_new_process(name, n, D, n_threads)
        same = ""
        if check_threads:
            alone = in_new_process(name, n, D, 1)
            same = "yes" if np.array_equal(alone.indices, got.indices) else "NO"
        seconds = [f"{value:.2f}" for value in (got.load, got.first, got.warm)]
        ratios = [f"{value / reference.warm:.2f}" for value in (got.first, got.warm)]
        quality = f"{recall(Y, got.indices, reference.indices):.4f}"
        table.add_row(name, *seconds, *ratios, quality, same)
    return table


def main() -> None:
    n_threads = os.cpu_count() or 1
    for n, D in SIZES:
        table = compare(n, D, n_threads, check_threads=(n, D) == SIZES[0])
        Console(width=110).print(table)


if __name__ == "__main__":
    main()

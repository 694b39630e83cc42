"""Fits of all rows whose sums the workers of a cluster share: the bits of one machine."""

from __future__ import annotations

import os
import pickle
import signal
import threading

import numpy as np
import pytest
from contract.test_workers import ribbon, wait_until_replaced

from twofold import UKR, Scaled
from twofold.engine import KernelSums
from twofold.kernels import get_kernel
from twofold.losses import Squared
from twofold.regularization import LeaveOneOut
from twofold.tables import dask_tables, dask_workers
from twofold.ukr import spread_objective
from twofold.ukr.objective import Problem, Reconstruction

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed", reason="workers need dask.distributed")
da = pytest.importorskip("dask.array")

# Of sockets and processes that dask leaves to the garbage collector.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            protocol="tcp",
            dashboard_address=":0",
            memory_limit=0,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def asked(monkeypatch):
    """Send sums of any size; returns the numbers of strips that were asked for."""
    monkeypatch.setattr(spread_objective, "WORTH_SENDING", 0)
    asked = []
    whole = dask_workers.KeptByAll.ask

    def ask(self, work, changing, n_tasks):
        asked.append(n_tasks)
        return whole(self, work, changing, n_tasks)

    monkeypatch.setattr(dask_workers.KeptByAll, "ask", ask)
    return asked


def problem(n: int, backend: str, *, gaps: bool = False, degree: int = 0) -> Problem:
    Y = ribbon(n)
    if gaps:
        Y[::5, 1] = np.nan
    engine = KernelSums(get_kernel("gaussian"), 1e-6, 1, backend)
    weights = np.random.default_rng(1).integers(1, 4, n).astype(float)
    return Problem.of_rows(Y, weights, Squared(), LeaveOneOut(), engine, degree)


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(
    ("backend", "gaps", "degree"),
    [("cpu_dense", False, 0), ("cpu_cells", True, 0), ("cpu_cells", False, 1)],
)
def test_strips_of_workers_come_to_the_bits_of_one_process(asked, backend, gaps, degree):
    posed = problem(900, backend, gaps=gaps, degree=degree)
    X = np.random.default_rng(2).normal(scale=6, size=(900, 2))
    wanted = posed.reconstruction(cross_validated=True).value_and_grad(X)
    with dask_workers.shared_with_workers():
        error = posed.reconstruction(cross_validated=True)
    assert isinstance(error, spread_objective.SpreadReconstruction)
    for _ in range(2):  # rows go to the workers once
        value, grad = error.value_and_grad(X)
        assert value == wanted[0]
        np.testing.assert_array_equal(grad, wanted[1])
    assert len(asked) == 2


@pytest.mark.usefixtures("client")
def test_a_fit_to_all_rows_is_that_of_one_machine(asked):
    Y = ribbon(400)
    for make in (
        lambda: UKR(max_iter=4, init="pca", random_state=0),
        lambda: Scaled(UKR(max_iter=4, init="pca", random_state=0, kernel="quartic")),
    ):
        model, wanted = make().fit(da.from_array(Y, chunks=(90, 3))), make().fit(Y)
        np.testing.assert_array_equal(model.embedding_, wanted.embedding_)
        assert model.objective_ == wanted.objective_
    assert asked


@pytest.mark.usefixtures("client")
def test_sums_that_are_soon_done_stay_here(asked, monkeypatch):
    posed = problem(900, "cpu_cells")
    X = np.random.default_rng(2).normal(scale=6, size=(900, 2))
    with dask_workers.shared_with_workers():
        error = posed.reconstruction(cross_validated=True)
        on_nodes = problem(2500, "cpu_grid").reconstruction(cross_validated=True)
    on_nodes.value_and_grad(np.random.default_rng(2).normal(scale=3, size=(2500, 2)))
    monkeypatch.setattr(spread_objective, "WORTH_SENDING", 1e9)
    error.value_and_grad(X)
    assert not asked


def test_nothing_is_shared_without_a_cluster():
    posed = problem(30, "cpu_dense")
    with dask.config.set(scheduler="synchronous"), dask_workers.shared_with_workers():
        assert type(posed.reconstruction(cross_validated=True)) is Reconstruction


def test_rows_travel_once_and_arrive_whole():
    rows = problem(50, "cpu_dense", gaps=True).rows
    content = pickle.dumps(rows)
    assert len(content) < rows.V.nbytes + rows.Y.nbytes + rows.mass.nbytes
    np.testing.assert_array_equal(pickle.loads(content).V, rows.V)


def double(value: np.ndarray, factor: float, first: int, stop: int) -> list[float]:
    return [float(value[number] * factor) for number in range(first, stop)]


def leave(value: object, changing: object, first: int, stop: int) -> list[int]:
    raise RuntimeError(f"task {first}")


@pytest.mark.parametrize("n_tasks", [1, 2, 7])
def test_every_task_is_done_once_and_in_order(client, n_tasks):
    kept = dask_workers.KeptByAll(client, np.arange(10.0))
    assert kept.ask(double, 2.0, n_tasks) == [2.0 * number for number in range(n_tasks)]
    with pytest.raises(RuntimeError, match="task"):  # of whoever is first
        kept.ask(leave, 2.0, n_tasks)


def test_a_value_that_was_lost_is_sent_again(client):
    kept = dask_workers.KeptByAll(client, np.arange(10.0))
    assert kept.ask(double, 1.0, 2) == [0.0, 1.0]
    client.cancel([kept._kept], force=True)  # as if every worker that had it had died
    assert kept.ask(double, 3.0, 2) == [0.0, 3.0]


@pytest.mark.slow
@pytest.mark.usefixtures("asked")
def test_a_killed_worker_changes_nothing():
    posed = problem(3000, "cpu_cells")
    X = np.random.default_rng(2).normal(scale=6, size=(3000, 2))
    wanted = posed.reconstruction(cross_validated=True).value_and_grad(X)
    random = np.random.default_rng(0)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
        dask_workers.shared_with_workers(),
    ):
        error = posed.reconstruction(cross_validated=True)
        error.value_and_grad(X)
        for moment in random.uniform(0, 0.3, 5):
            pid = int(random.choice(list(client.run(os.getpid).values())))
            timer = threading.Timer(moment, os.kill, (pid, signal.SIGKILL))
            timer.start()
            for _ in range(3):
                value, grad = error.value_and_grad(X)
                assert value == wanted[0]
                np.testing.assert_array_equal(grad, wanted[1])
            timer.join()
            wait_until_replaced(client, {pid}, 2)


def test_a_cluster_without_workers_is_named(monkeypatch):
    monkeypatch.setattr(dask_workers, "PATIENCE", 0.2)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(dask_tables.ClusterLostError, match="no worker for 0 seconds"),
    ):
        dask_workers.KeptByAll(client, np.arange(3.0)).ask(double, 1.0, 2)


@pytest.mark.slow
def test_a_lost_scheduler_is_named():
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=":0"
    )
    client = distributed.Client(cluster.scheduler_address)
    kept = dask_workers.KeptByAll(client, np.arange(10.0))
    kept.ask(double, 1.0, 2)
    cluster.close()
    with pytest.raises(dask_tables.ClusterLostError, match="scheduler of dask was lost"):
        kept.ask(double, 1.0, 2)
    client.close(timeout=5)

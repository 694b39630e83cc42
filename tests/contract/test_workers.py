"""Tables of dask on real worker processes: the same bits, also when workers or schedulers die."""

from __future__ import annotations

import _thread
import os
import pickle
import signal
import threading
import time
from concurrent.futures import CancelledError
from contextlib import contextmanager

import numpy as np
import pytest

from twofold import UKR
from twofold.contract import chunked_model, spread_fitting
from twofold.contract.lazy_answers import without_callbacks
from twofold.tables.dask_tables import ClusterLostError
from twofold.ukr import checkpoint as checkpoints
from twofold.ukr import manifold

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed", reason="workers need dask.distributed")
da = pytest.importorskip("dask.array")

# Of sockets and processes that dask leaves to the garbage collector.
pytestmark = pytest.mark.filterwarnings("default")


def ribbon(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 3, n)
    return np.c_[np.cos(t), np.sin(t), rng.uniform(0, 1, n)] + rng.normal(scale=0.02, size=(n, 3))


def settings(**given: object) -> dict[str, object]:
    return {"landmarks": 30, "random_state": 0, "max_iter": 4, "init": "pca", **given}


def start(n_workers: int) -> distributed.LocalCluster:
    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        memory_limit=0,
    )


@pytest.fixture(scope="module")
def client():
    with start(2) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.slow  # two processes; tests/cli/test_cluster.py has workers behind sockets
def test_two_workers_give_the_bits_of_one_machine(client):
    Y = ribbon(1500)
    rows = da.from_array(Y, chunks=(200, 3))
    wanted = UKR(**settings()).fit(Y)
    model = UKR(**settings()).fit(rows)
    np.testing.assert_array_equal(model.embedding_.compute(), wanted.embedding_)
    np.testing.assert_array_equal(model.data_, wanted.data_)
    np.testing.assert_array_equal(model.latent_, wanted.latent_)
    new = ribbon(900, seed=1)
    found = wanted.reconstruct(da.from_array(new, chunks=(100, 3))).persist()
    distributed.wait(found)
    np.testing.assert_array_equal(found.compute(), wanted.reconstruct(new))


def slowly(part: np.ndarray) -> np.ndarray:
    time.sleep(0.5)
    return part


@pytest.mark.slow
def test_an_interrupt_cancels_what_was_asked_for(client):
    rows = da.from_array(ribbon(1500), chunks=(10, 3)).map_blocks(slowly, dtype=float)
    model = UKR(**settings())
    timer = threading.Timer(2.0, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(rows)
    assert not hasattr(model, "latent_")
    deadline = time.monotonic() + 30
    while any(client.processing().values()) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not any(client.processing().values())


def wait_until_replaced(client: distributed.Client, gone: set[int], n_workers: int) -> list[int]:
    """Return the processes of all workers, once those that are gone have been replaced."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            pids = set(client.run(os.getpid).values())
        except OSError:  # a worker that was killed is not missed yet
            pids = set()
        if len(pids) == n_workers and not pids & gone:
            # A worker that dies before its keeper has heard of its start is never replaced.
            time.sleep(2)
            return sorted(pids)
        time.sleep(0.5)
    raise TimeoutError("A worker was not replaced.")


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["fit", "transform"])
@pytest.mark.parametrize("n_workers", [2, 4])
def test_a_killed_worker_changes_nothing(n_workers, asked):
    """Ten random moments each of a fit and of a transform, on 2 and on 4 workers."""
    Y, new = ribbon(3000), ribbon(3000, seed=1)
    wanted = UKR(**settings()).fit(Y)
    placed = wanted.transform(new)
    rows, others = da.from_array(Y, chunks=(100, 3)), da.from_array(new, chunks=(100, 3))

    def compute() -> None:
        if asked == "transform":
            np.testing.assert_array_equal(wanted.transform(others).compute(), placed)
            return
        model = UKR(**settings()).fit(rows)
        np.testing.assert_array_equal(model.data_, wanted.data_)
        np.testing.assert_array_equal(model.embedding_.compute(), wanted.embedding_)

    random = np.random.default_rng(n_workers)
    # On a busy machine a worker may take longer to start again than a cluster waits for it.
    patient = {"distributed.deploy.lost-worker-timeout": "300s"}
    with (
        dask.config.set(patient),
        start(n_workers) as cluster,
        distributed.Client(cluster) as client,
    ):
        compute()  # workers have opened what is compiled
        began = time.monotonic()
        compute()
        usual, gone = time.monotonic() - began, set()
        for _ in range(10):
            pids = wait_until_replaced(client, gone, n_workers)
            moment, pid = random.uniform(0, usual), int(random.choice(pids))
            gone.add(pid)
            timer = threading.Timer(moment, os.kill, (pid, signal.SIGKILL))
            timer.start()
            compute()
            timer.join()
    assert len(gone) == 10


@pytest.fixture
def scheduler(start_scheduler):
    """The process and the file of a scheduler with two workers."""
    return start_scheduler(2)


@pytest.fixture
def lost_while(scheduler, monkeypatch):
    """Return what connects to the scheduler, and kills it as soon as a fit tells of some rows."""
    tell = chunked_model._Teller.__call__

    @contextmanager
    def connected(phase):
        def lose(self, done, n_rows):
            tell(self, done, n_rows)
            if self._words == phase:
                scheduler[0].kill()

        with (
            monkeypatch.context() as patched,
            dask.config.set({"distributed.comm.timeouts.connect": "3s"}),
        ):
            patched.setattr(chunked_model._Teller, "__call__", lose)
            client = distributed.Client(scheduler_file=scheduler[1])
            client.wait_for_workers(2, timeout=120)
            yield
            client.close(timeout=5)

    return connected


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["reading rows", "placing rows"])
def test_a_lost_scheduler_leaves_an_error_and_a_checkpoint(
    tmp_path, monkeypatch, lost_while, phase
):
    monkeypatch.setattr(checkpoints, "SECONDS", 3600.0)  # no step is written for its own sake
    Y, path = ribbon(1500), tmp_path / "fit.checkpoint"
    wanted = UKR(**settings()).fit(Y)
    model = UKR(**settings(checkpoint=path))
    rows = da.from_array(Y, chunks=(250, 3)).map_blocks(slowly, dtype=float)
    with lost_while(phase), pytest.raises(ClusterLostError, match="scheduler of dask was lost"):
        model.fit(rows)
    assert not hasattr(model, "latent_")
    is_trained = phase == "placing rows"
    assert path.exists() == is_trained
    steps = []
    with dask.config.set(scheduler="synchronous"):  # another cluster, as it were
        again = UKR(**settings(checkpoint=path, callbacks=[steps.append])).fit(rows)
        assert bool(steps) != is_trained  # landmarks that were trained are not trained again
        np.testing.assert_array_equal(again.embedding_.compute(), wanted.embedding_)
    np.testing.assert_array_equal(again.data_, wanted.data_)
    assert not path.exists()


@pytest.mark.slow
def test_a_lost_scheduler_ends_an_answer_with_a_reason(scheduler):
    model = UKR(**settings()).fit(ribbon(300))
    rows = da.from_array(ribbon(1500), chunks=(50, 3)).map_blocks(slowly, dtype=float)
    with dask.config.set({"distributed.comm.timeouts.connect": "3s"}):
        client = distributed.Client(scheduler_file=scheduler[1])
        client.wait_for_workers(2, timeout=120)
        timer = threading.Timer(2.0, scheduler[0].kill)
        timer.start()
        with pytest.raises(CancelledError, match="lost the connection to the scheduler"):
            model.transform(rows).compute()
        client.close(timeout=5)


def only_workers_have_a_gpu() -> str:
    """Stand for `why_no_gpu`: here workers are threads, and the client is the main one."""
    return "there is none here." if threading.current_thread() is threading.main_thread() else ""


@pytest.mark.parametrize("landmarks", [30, None])
def test_a_device_is_found_by_the_worker_that_has_it(monkeypatch, landmarks):
    """A client without a GPU, workers with one: these fit for it and answer on their own."""
    asked = []

    def device(self, n, training):
        asked.append((self.device, training, only_workers_have_a_gpu()))
        return "cpu"  # which stands for the device of the worker

    for module in (spread_fitting, manifold):
        monkeypatch.setattr(module, "why_no_gpu", only_workers_have_a_gpu)
    monkeypatch.setattr(manifold.KernelManifold, "_device", device)
    Y, how = ribbon(300), settings(landmarks=landmarks)
    wanted = UKR(**how).fit(Y)
    how |= {"device": "cuda", "callbacks": [lambda event: False]}
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        asked.clear()
        rows = da.from_array(Y, chunks=(100, 3))
        model = UKR(**how).fit(rows)
        trained = [where for _, training, where in asked if training]
        assert trained
        assert not any(trained)  # by a worker, where there is one
        np.testing.assert_array_equal(np.asarray(model.embedding_), wanted.embedding_)
        assert len(model.callbacks) == 1
        asked.clear()
        model.transform(da.from_array(ribbon(50, seed=2), chunks=(20, 3))).compute()
        assert ("cuda", False, "") in asked  # looked for where the rows are


def test_a_device_that_nobody_has_is_refused(monkeypatch):
    for module in (spread_fitting, manifold):
        monkeypatch.setattr(module, "why_no_gpu", lambda: "torch finds no CUDA device.")
    with dask.config.set(scheduler="synchronous"), pytest.raises(RuntimeError, match="needs a GPU"):
        UKR(**settings(device="cuda")).fit(da.from_array(ribbon(300), chunks=(100, 3)))


def test_a_model_travels_as_parameters_and_arrays():
    model = UKR(**settings(device="cuda"))
    model.device = "cpu"
    model.fit(ribbon(300))
    model.device = "cuda"
    state = without_callbacks(model).__getstate__()
    assert not {"_surface", "_index"} & set(state)
    content = pickle.dumps(without_callbacks(model))
    arrays = sum(value.nbytes for value in state.values() if isinstance(value, np.ndarray))
    assert len(content) < arrays + 10_000

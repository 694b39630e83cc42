"""A worker process with a GPU fits and answers on it, to the bits of one process with that GPU.

Rows are compared part by part: on a GPU a row may end a little elsewhere in another batch.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from twofold import UKR
from twofold.engine.gpu.library import why_no_gpu

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed", reason="workers need dask.distributed")
if why_no_gpu():
    pytest.skip(f"workers with a GPU: {why_no_gpu()}", allow_module_level=True)

# Of sockets that dask leaves to the garbage collector.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

N_PARTS = 4
MANY = 80_000  # more than the rows that stand for all in a fit with landmarks
SETTINGS = {"device": "cuda", "random_state": 0, "max_iter": 5, "init": "pca"}
# Run by a process that sees no GPU.
CLIENT = """
import sys

import dask.array as da
import numpy as np
from distributed import Client

from twofold import UKR
from twofold.engine.gpu.library import why_no_gpu

folder, n_parts, settings = sys.argv[1], int(sys.argv[2]), eval(sys.argv[3])
assert why_no_gpu(), "this process was to have no GPU"
Y = np.load(f"{folder}/rows.npy")
rows, new = (
    da.from_array(table, chunks=(len(table) // n_parts, table.shape[1]))
    for table in (Y, np.load(f"{folder}/new.npy"))
)
with Client(scheduler_file=f"{folder}/scheduler.json"):
    model = UKR(**settings).fit(rows)
    np.savez(
        f"{folder}/found.npz",
        data=model.data_,
        latent=model.latent_,
        embedding=np.asarray(model.embedding_),
        placed=model.transform(new).compute(),
    )
"""


def sheet(n: int = 6000, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = rng.uniform(-2, 2, size=(n, 2))
    Y = np.column_stack([t, np.sin(t), np.cos(t[:, 0] * t[:, 1])])
    return (Y + rng.normal(scale=0.02, size=Y.shape)).astype(np.float32)


def in_parts(answer, rows):
    return np.concatenate([answer(part) for part in np.split(rows, N_PARTS)])


def lazy(rows):
    return da.from_array(rows, chunks=(len(rows) // N_PARTS, rows.shape[1]))


def most_memory_of_the_gpu() -> int:
    import torch

    return torch.cuda.max_memory_allocated()


@pytest.fixture
def client(start_scheduler):
    _, file = start_scheduler(1)
    with distributed.Client(scheduler_file=file) as client:
        client.wait_for_workers(1, timeout=120)
        yield client


def gpu_memory_of_the_worker(client) -> int:
    return next(iter(client.run(most_memory_of_the_gpu).values()))


@pytest.mark.parametrize("asked", ["transform", "inverse_transform", "complete", "density"])
def test_a_worker_answers_on_its_gpu(client, asked):
    model = UKR(**SETTINGS).fit(sheet())
    given = sheet(seed=1)  # places of rows of the fit are known
    if asked in ("inverse_transform", "density"):
        given = model.transform(given)
    elif asked == "complete":
        given[::7, 1] = np.nan
    assert gpu_memory_of_the_worker(client) == 0
    answer = getattr(model, asked)
    np.testing.assert_array_equal(answer(lazy(given)).compute(), in_parts(answer, given))
    assert gpu_memory_of_the_worker(client) > 0


def test_rows_of_a_fit_are_placed_on_the_gpu_of_the_worker(client):
    Y = sheet(MANY)
    wanted = UKR(landmarks=100, **SETTINGS).fit(Y)
    model = UKR(landmarks=100, **SETTINGS).fit(lazy(Y))
    np.testing.assert_array_equal(model.data_, wanted.data_)
    np.testing.assert_array_equal(model.latent_, wanted.latent_)
    np.testing.assert_array_equal(model.embedding_.compute(), in_parts(wanted.transform, Y))
    assert gpu_memory_of_the_worker(client) > 0


@pytest.mark.parametrize("landmarks", [100, None])
def test_a_worker_fits_for_a_client_without_a_gpu(client, tmp_path, landmarks):
    Y, settings = sheet(MANY if landmarks else 6000), {**SETTINGS, "landmarks": landmarks}
    wanted = UKR(**settings).fit(Y)
    new = sheet(seed=1)
    for name, table in (("rows", Y), ("new", new)):
        np.save(tmp_path / f"{name}.npy", table)
    words = [sys.executable, "-c", CLIENT, str(tmp_path), str(N_PARTS), repr(settings)]
    subprocess.run(words, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, check=True)
    found = np.load(tmp_path / "found.npz")
    np.testing.assert_array_equal(found["data"], wanted.data_)
    np.testing.assert_array_equal(found["latent"], wanted.latent_)
    np.testing.assert_array_equal(found["placed"], in_parts(wanted.transform, new))
    embedding = in_parts(wanted.transform, Y) if landmarks else wanted.embedding_
    np.testing.assert_array_equal(found["embedding"], embedding)
    assert gpu_memory_of_the_worker(client) > 0

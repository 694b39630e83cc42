"""A fit on a device equals one on the CPU; its kernels are interpreted where there is no GPU."""

from __future__ import annotations

import logging
import os
from dataclasses import replace

import numpy as np
import pytest
from finite_differences import relative_error

torch = pytest.importorskip("torch", reason="the GPU back end needs torch")
HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is loaded
pytest.importorskip("triton", reason="the GPU back end needs triton")

from twofold import UKR, load  # noqa: E402
from twofold.engine import KernelSums  # noqa: E402
from twofold.engine.gpu.library import in_parts  # noqa: E402
from twofold.kernels import GAUSSIAN, QUARTIC  # noqa: E402
from twofold.losses import Huber, Squared  # noqa: E402
from twofold.regularization import LeaveKOut, LeaveOneOut  # noqa: E402
from twofold.ukr import manifold, starts  # noqa: E402
from twofold.ukr.gpu_objective import (  # noqa: E402
    DeviceReconstruction,
    scaled_start,
    train_on_device,
)
from twofold.ukr.gpu_projection import project_on_device  # noqa: E402
from twofold.ukr.gpu_starts import start_on_device  # noqa: E402
from twofold.ukr.objective import Problem, common_scale, scale_each_dimension  # noqa: E402
from twofold.ukr.projection import project  # noqa: E402
from twofold.ukr.training import Training, train  # noqa: E402

# Not "cpu", which is what numpy does.
DEVICE = "cuda" if HAS_GPU else "cpu:0"
pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in .*:RuntimeWarning")


def make_problem(*, n=140, kernel=GAUSSIAN, loss=None, how=None, missing=False, seed=0):
    """A curved sheet with weights; return its problem and latent points near the true ones."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-3, 3, size=(n, 2))
    Y = np.column_stack([t, np.sin(t), np.cos(t[:, :1] * t[:, 1:])]) + 0.05 * rng.normal(
        size=(n, 5)
    )
    if missing:
        Y[rng.random(Y.shape) < 0.1] = np.nan
    weights = rng.uniform(0.5, 2, size=n)
    engine = KernelSums(kernel, 1e-8, 1)
    problem = Problem.of_rows(Y, weights, loss or Squared(), how or LeaveOneOut(), engine)
    X = (1.5 * t).astype(np.float32).astype(np.float64)
    return problem.cross_validated(np.nan_to_num(Y)), X, Y


def on_device(problem):
    engine = problem.engine
    there = KernelSums(engine.kernel, engine.cutoff, 1, device=DEVICE)
    return replace(problem, engine=there)


CASES = {
    "plain": {},
    "missing": {"missing": True},
    "huber": {"loss": Huber(0.3)},
    "row_huber": {"loss": Huber(0.3, per="vector")},
    "leave-3-out": {"how": LeaveKOut(3)},
    "out of reach": {"kernel": QUARTIC},
    "missing, out of reach": {"kernel": QUARTIC, "missing": True},
}


@pytest.mark.parametrize("case", list(CASES))
def test_objective_and_gradient_are_those_of_the_cpu(case):
    problem, X, _ = make_problem(**CASES[case])
    value, grad = problem.reconstruction(cross_validated=True).value_and_grad(X)
    objective = DeviceReconstruction(on_device(problem))
    found, slope = objective.value_and_grad(objective.tensor(X))
    assert found == pytest.approx(value, rel=1e-5)
    assert relative_error(slope.double().cpu().numpy(), grad) < 1e-4


def test_scales_are_those_of_the_cpu():
    problem, X, _ = make_problem()
    error = problem.reconstruction(cross_validated=True)
    expected, lowest = scale_each_dimension(*common_scale(X, error), error)
    objective = DeviceReconstruction(on_device(problem))
    found, least = scaled_start(objective.tensor(X), objective)
    assert least == pytest.approx(lowest, rel=1e-3)
    np.testing.assert_allclose(found.std(dim=0).cpu(), expected.std(axis=0), rtol=2e-2)


def test_training_ends_where_the_cpu_ends():
    problem, X, _ = make_problem(n=100)
    training = Training("lbfgs", 12, 1e-9, [])
    expected = train(problem, X, training)
    there = on_device(problem)
    seen = []
    found = train_on_device(there, X, replace(training, callbacks=[seen.append]))
    assert found.value == pytest.approx(expected.value, rel=5e-3)
    assert found.value < 0.7 * found.history[0]
    assert [event.iteration for event in seen] == list(range(1, found.n_iter + 1))
    assert found.X.dtype == np.float32
    assert seen[-1].X.shape == X.shape
    assert there.engine.last_plan.backend == "gpu"


def test_a_callback_stops_training():
    problem, X, _ = make_problem(n=70)
    training = Training("lbfgs", 12, 1e-9, [lambda event: event.iteration == 2])
    found = train(on_device(problem), X, training)
    assert (found.n_iter, str(found.stop_reason)) == (2, "callback")


@pytest.mark.parametrize("name", ["tsne", "isomap"])
def test_all_rows_start_beside_their_representatives(name, monkeypatch):
    monkeypatch.setattr(starts, "MAX_REPRESENTATIVES", 60)
    monkeypatch.setattr("twofold.ukr.gpu_starts.STEPS", 3)
    monkeypatch.setattr("twofold.ukr.starts.ALL_ROWS_STEPS", 3)
    problem, _, Y = make_problem(n=130)
    candidates = starts.Candidates(Y, 2, n_jobs=1)
    chosen = next(found for found in candidates.find([name]) if found.startswith(name))
    there = on_device(problem)
    found = start_on_device(candidates, there, chosen, lambda *words: None, refines=True)
    X = candidates.refine(chosen, candidates.place(chosen), lambda *words: None)
    error = problem.reconstruction(cross_validated=True)
    _, expected = scale_each_dimension(*common_scale(X, error), error)
    assert found.error == pytest.approx(expected, rel=0.02)
    assert found.X.shape == (130, 2)


def test_no_gpu_is_said(monkeypatch):
    monkeypatch.setattr(manifold, "why_no_gpu", lambda: "torch finds no CUDA device.")
    _, _, Y = make_problem(n=60)
    with pytest.raises(RuntimeError, match="torch finds no CUDA device"):
        UKR(device="cuda").fit(Y)


def test_without_a_gpu_the_cpu_takes_over(monkeypatch, caplog):
    monkeypatch.setattr(manifold, "why_no_gpu", lambda: "torch finds no CUDA device.")
    monkeypatch.setattr(manifold, "MANY_ROWS", 50)
    _, _, Y = make_problem(n=60)
    with caplog.at_level(logging.INFO, logger="twofold"):
        model = UKR(max_iter=2, random_state=0).fit(Y)
    assert "on the CPU: torch finds no CUDA device." in caplog.text
    assert model.backend_.startswith("cpu")


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ({"degree": 1}, "degree=1"),
        ({"regularization": "smoothest", "loss": "absolute"}, "regularization=Smoothest"),
        ({"landmarks": 20}, "`landmarks`"),
        ({"checkpoint": "file"}, "`checkpoint`"),
        ({"optimizer": "rprop"}, "optimizer='rprop'"),
    ],
)
def test_what_a_gpu_cannot_do_is_named(monkeypatch, option, name):
    monkeypatch.setattr(manifold, "why_no_gpu", lambda: "")
    _, _, Y = make_problem(n=60)
    with pytest.raises(ValueError, match=f"device='cuda' cannot fit {name}"):
        UKR(device="cuda", **option).fit(Y)


def test_a_model_of_a_gpu_opens_without_one(monkeypatch, tmp_path):
    monkeypatch.setattr(manifold, "why_no_gpu", lambda: "torch finds no CUDA device.")
    _, _, Y = make_problem(n=60)
    model = UKR(max_iter=2, random_state=0).fit(Y)
    model.set_params(device="cuda").save(tmp_path / "model.twofold")
    opened = load(tmp_path / "model.twofold")
    np.testing.assert_array_equal(opened.transform(Y), model.transform(Y))
    assert opened.device == "cuda"


@pytest.mark.skipif(not HAS_GPU, reason="needs a CUDA device")
def test_a_whole_fit_on_a_gpu_is_as_good_as_on_the_cpu():
    rng = np.random.default_rng(0)
    t = rng.uniform(-3, 3, size=(12_000, 2))
    Y = np.column_stack([t, np.sin(2 * t), np.cos(t[:, :1] * t[:, 1:])])
    Y = (Y + 0.05 * rng.normal(size=Y.shape)).astype(np.float32)
    there = UKR(device="cuda", random_state=0).fit(Y[:11_000])
    again = UKR(device="cuda", random_state=0).fit(Y[:11_000])
    here = UKR(device="cpu", random_state=0).fit(Y[:11_000])
    assert there.backend_.startswith("gpu")
    np.testing.assert_array_equal(there.embedding_, again.embedding_)
    assert there.objective_ < 1.05 * here.objective_
    assert there.score(Y[11_000:]) > 1.05 * here.score(Y[11_000:])


@pytest.mark.parametrize("case", ["plain", "missing", "huber", "out of reach"])
def test_projections_are_as_good_as_those_of_the_cpu(case):
    problem, X, Y = make_problem(n=60, **CASES[case])
    rng = np.random.default_rng(5)
    rows = np.nan_to_num(Y[:9]) + 0.2 * rng.normal(size=(9, 5))
    observed = rng.random(rows.shape) < 0.8 if "missing" in case else None
    here, there = problem.surface(X), on_device(problem).surface(X)
    expected = project(here, rows, observed, problem.loss)
    places = project_on_device(there, rows, observed, problem.loss)
    residual = here.regress(places) - rows
    if observed is not None:
        residual *= observed
    errors = problem.loss.value_and_slope(residual)[0]
    assert (here.density(places) >= 0.99 * here.threshold).all()
    # Steps differ by rounding, so that a row may end in another minimum.
    assert (errors < 1.01 * expected.error + 1e-6).sum() >= 8
    assert errors.sum() < 1.06 * expected.error.sum()
    assert np.median(np.abs(places - expected.X)) < 2e-2


def test_sums_at_many_places_are_those_of_the_cpu(monkeypatch):
    monkeypatch.setattr("twofold.engine.sums.MANY_QUERIES", 10)
    problem, X, _ = make_problem(n=90)
    here, there = problem.surface(X), on_device(problem).surface(X)
    places = np.random.default_rng(0).normal(size=(30, 2)) * 3
    np.testing.assert_allclose(there.regress(places), here.regress(places), atol=1e-4)
    np.testing.assert_allclose(there.density(places), here.density(places), rtol=1e-4)
    for found, expected in zip(there.look(places), here.look(places), strict=True):
        assert relative_error(found, expected) < 1e-4
    assert there.domain_bound() == pytest.approx(here.domain_bound(), rel=1e-3)


def test_too_little_memory_says_what_would_fit(monkeypatch):
    def fails(*args, **options):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    problem, X, _ = make_problem(n=60)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (0, 65_000_000))
    monkeypatch.setattr(DeviceReconstruction, "value_and_grad", fails)
    with pytest.raises(MemoryError, match=r"60 rows .* about 10,000 rows would fit"):
        train_on_device(on_device(problem), X, Training("lbfgs", 2, 0.0, []))


def test_fewer_rows_at_a_time_where_memory_is_short():
    seen = []

    def work(some):
        if some.stop - some.start > 2_000:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        seen.append(some)

    in_parts(5_000, 4_000, work)
    assert [rows for some in seen for rows in range(some.start, some.stop)] == list(range(5_000))
    with pytest.raises(MemoryError, match="out of memory for 1024 rows"):
        in_parts(5_000, 4_000, lambda some: work(slice(0, 4_000)))

"""A fit on a device equals one on the CPU; its kernels are interpreted where there is no GPU."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
from finite_differences import relative_error
from kernel_cases import POWER
from on_device import DEVICE, HAS_GPU, torch

from twofold import UKR, load
from twofold.engine import KernelSums
from twofold.engine.gpu import library
from twofold.engine.gpu.library import in_parts
from twofold.engine.gpu.local_fit import FittedRun
from twofold.engine.gpu.sums import TileRun
from twofold.kernels import GAUSSIAN, QUARTIC
from twofold.losses import EpsilonInsensitive, Huber, Squared
from twofold.regularization import Density, Extension, LeaveKOut, LeaveOneOut
from twofold.ukr import manifold, placing, starts
from twofold.ukr import training as ukr_training
from twofold.ukr.devices import is_trained_on_device
from twofold.ukr.gpu_objective import (
    DeviceReconstruction,
    scaled_start,
    train_on_device,
)
from twofold.ukr.gpu_projection import project_on_device
from twofold.ukr.gpu_starts import start_on_device
from twofold.ukr.landmark_fitting import _with_landmarks
from twofold.ukr.objective import Problem, common_scale, scale_each_dimension
from twofold.ukr.projection import project
from twofold.ukr.surface import CarriedRows
from twofold.ukr.terms import DensityTerm, DensityVariance
from twofold.ukr.training import Training, train

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in .*:RuntimeWarning")


def make_problem(*, n=100, kernel=GAUSSIAN, loss=None, how=None, missing=False, seed=0, degree=0):
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
    problem = Problem.of_rows(Y, weights, loss or Squared(), how or LeaveOneOut(), engine, degree)
    X = (1.5 * t).astype(np.float32).astype(np.float64)
    return problem.cross_validated(np.nan_to_num(Y)), X, Y


def on_device(problem, precision="fp32"):
    engine = problem.engine
    there = KernelSums(engine.kernel, engine.cutoff, 1, device=DEVICE, precision=precision)
    return replace(problem, engine=there)


def make_landmark_problem(**options):
    """The same with every fifth row as a landmark, each hidden from the rows next to it."""
    problem, X, Y = make_problem(**options)
    filled = np.nan_to_num(Y)
    landmarks = CarriedRows(filled[::5], np.ones(len(Y[::5])), None, problem.rows.unit)
    Z = X[::5] + 0.1
    joint, _ = _with_landmarks(problem, landmarks, problem.rows.scaled(filled), Z)
    return joint, np.concatenate([X, Z])


CASES = {
    "plain": {},
    "missing": {"missing": True},
    "huber": {"loss": Huber(0.3)},
    "row_huber": {"loss": Huber(0.3, per="vector")},
    "epsilon": {"loss": EpsilonInsensitive(0.05)},
    "absolute": {"loss": EpsilonInsensitive(0.0, per="vector", order=1)},
    "leave-3-out": {"how": LeaveKOut(3)},
    "out of reach": {"kernel": QUARTIC},
    "missing, out of reach": {"kernel": QUARTIC, "missing": True},
    "degree 1": {"degree": 1},
    "degree 2": {"degree": 2, "kernel": QUARTIC},
    "degree 1, missing": {"degree": 1, "missing": True},
    "degree 2-axes, leave-3-out": {"degree": "2-axes", "how": LeaveKOut(3)},
}


ALSO_PROJECTED = ["missing", "huber", "out of reach", "degree 1", "degree 1, missing"]


SLOW_CASES = ("degree 2", "degree 1, missing", "degree 2-axes, leave-3-out")


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.slow] if case in SLOW_CASES else []) for case in CASES],
)
def test_objective_and_gradient_are_those_of_the_cpu(case):
    problem, X, _ = make_problem(**CASES[case])
    value, grad = problem.reconstruction(cross_validated=True).value_and_grad(X)
    objective = DeviceReconstruction(on_device(problem))
    found, slope = objective.value_and_grad(objective.tensor(X))
    assert found == pytest.approx(value, rel=1e-5)
    assert relative_error(slope.double().cpu().numpy(), grad) < 1e-4


@pytest.mark.parametrize("case", ["plain", pytest.param("missing", marks=pytest.mark.slow)])
def test_landmarks_are_those_of_the_cpu(case):
    problem, X = make_landmark_problem(**CASES[case])
    value, grad = problem.reconstruction(cross_validated=True).value_and_grad(X)
    objective = DeviceReconstruction(on_device(problem))
    found, slope = objective.value_and_grad(objective.tensor(X))
    assert found == pytest.approx(value, rel=1e-5)
    assert relative_error(slope.double().cpu().numpy(), grad) < 1e-4


@pytest.mark.slow
def test_landmarks_are_trained_at_their_own_pace():
    problem, X = make_landmark_problem()
    training = Training("lbfgs", 5, 1e-9, [])
    there = on_device(problem)
    assert is_trained_on_device(there, training)
    expected, found = train(problem, X, training), train(there, X, training)
    assert found.value == pytest.approx(expected.value, rel=1e-3)
    assert found.X.shape == X.shape


@pytest.mark.parametrize(("precision", "limit"), [("fp32", 1e-5), ("tf32", 3e-3), ("bf16", 1e-2)])
def test_each_precision_keeps_its_promise(precision, limit):
    problem, X, _ = make_problem()
    value, grad = problem.reconstruction(cross_validated=True).value_and_grad(X)
    objective = DeviceReconstruction(on_device(problem, precision))
    found, slope = objective.value_and_grad(objective.tensor(X))
    assert objective.tiles.precision == precision
    assert found == pytest.approx(value, rel=limit)
    assert relative_error(slope.double().cpu().numpy(), grad) < limit


class Quartic:
    """A loss of a user's."""

    def value_and_slope(self, R):
        return (R**4).sum(axis=1), 4 * R**3


def terms_of(problem):
    """All that may be minimised, each in need of sums of its own."""
    engine, weights = problem.engine, problem.point_weights
    return {
        "own loss": replace(problem, loss=Quartic()).reconstruction(cross_validated=True),
        "all rows seen": problem.reconstruction(cross_validated=False),
        "density": DensityTerm(0.1, weights, engine),
        "variance": DensityVariance(0.1, weights, engine),
    }


@pytest.mark.parametrize("name", ["own loss", "all rows seen", "density", "variance"])
def test_sums_of_every_term_run_on_the_device(name, monkeypatch):
    monkeypatch.setattr("twofold.engine.sums.MANY_PAIRS", 1)
    problem, X, _ = make_problem()
    value, grad = terms_of(problem)[name].value_and_grad(X)
    there = on_device(problem)
    found, slope = terms_of(there)[name].value_and_grad(X)
    assert there.engine.last_plan.backend == "gpu"
    assert found == pytest.approx(value, rel=1e-5)
    assert relative_error(slope, grad) < 1e-4


@pytest.mark.slow
def test_scales_are_those_of_the_cpu():
    problem, X, _ = make_problem()
    error = problem.reconstruction(cross_validated=True)
    expected, lowest = scale_each_dimension(*common_scale(X, error), error)
    objective = DeviceReconstruction(on_device(problem))
    found, least = scaled_start(objective.tensor(X), objective)
    assert least == pytest.approx(lowest, rel=1e-3)
    np.testing.assert_allclose(found.std(dim=0).cpu(), expected.std(axis=0), rtol=2e-2)


def test_training_ends_where_the_cpu_ends():
    problem, X, _ = make_problem(n=60)
    training = Training("lbfgs", 8, 1e-9, [])
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


def test_widths_sought_anew_are_those_of_the_cpu(monkeypatch):
    monkeypatch.setattr(ukr_training, "FEWEST_RESCALED", 50)
    problem, X, _ = make_problem(n=60)
    X = (0.5 * X).astype(np.float32)
    training = Training("lbfgs", 4, 1e-9, [])
    expected = ukr_training._rescaled(problem, training, X)
    there = on_device(problem)
    assert is_trained_on_device(there, training)
    found = ukr_training._rescaled(there, training, X)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.std(axis=0), expected.std(axis=0), rtol=2e-2)
    assert (found.std(axis=0) > 1.2 * X.std(axis=0)).all()
    seen = []
    trained = train(there, X, replace(training, callbacks=[seen.append]))
    assert trained.value == pytest.approx(train(problem, X, training).value, rel=2e-2)
    assert [event.iteration for event in seen] == [1, 2, 3, 4]


def test_a_callback_stops_training():
    problem, X, _ = make_problem(n=70)
    training = Training("lbfgs", 12, 1e-9, [lambda event: event.iteration == 2])
    found = train(on_device(problem), X, training)
    assert (found.n_iter, str(found.stop_reason)) == (2, "callback")


@pytest.mark.parametrize("name", [pytest.param("tsne", marks=pytest.mark.slow), "isomap"])
def test_all_rows_start_beside_their_representatives(name, monkeypatch):
    monkeypatch.setattr(starts, "MAX_REPRESENTATIVES", 60)
    for module in ("objective", "gpu_objective"):  # few evaluations are enough to compare
        monkeypatch.setattr(f"twofold.ukr.{module}.GRID", 3)
        monkeypatch.setattr(f"twofold.ukr.{module}.MOST_SCALED_ROWS", 50)
    monkeypatch.setattr("twofold.ukr.objective.MOST_STEPS", 1)
    monkeypatch.setattr(placing, "ALL_ROWS_STEPS", 3)
    monkeypatch.setattr(placing, "EXAGGERATED_STEPS", 2)
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


def test_without_a_driver_torch_is_not_even_imported(monkeypatch):
    def refuse(name):
        raise OSError(f"{name}: cannot open shared object file")

    def load():
        raise AssertionError("torch takes seconds to import")

    monkeypatch.setattr(library.ctypes, "CDLL", refuse)
    monkeypatch.setattr(library, "find_spec", lambda name: name)
    monkeypatch.setattr(library, "load_torch", load)
    assert library.why_no_gpu.__wrapped__() == "no CUDA driver is found."


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
    assert caplog.text.count("on the CPU: torch finds no CUDA device.") == 1
    assert model.backend_.startswith("cpu")


def test_a_model_with_a_kernel_of_a_user_stays_on_the_cpu(monkeypatch, caplog):
    monkeypatch.setattr(manifold, "why_no_gpu", lambda: "")
    monkeypatch.setattr(manifold, "MANY_ROWS", 50)
    monkeypatch.setattr("twofold.engine.sums.MANY_QUERIES", 10)
    _, _, Y = make_problem(n=60)
    with caplog.at_level(logging.INFO, logger="twofold"):
        model = UKR(kernel=POWER, max_iter=2, random_state=0).fit(Y)
    assert "on the CPU: a GPU cannot do the kernel 'power'" in caplog.text
    assert model.backend_.startswith("cpu")
    assert model.inverse_transform(model.embedding_).shape == Y.shape


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ({"degree": 1, "n_components": 4}, r"degree=1 in 4 latent dimensions \(at most 3\)"),
        ({"kernel": POWER}, "the kernel 'power'"),
    ],
)
def test_what_a_gpu_cannot_do_is_named(monkeypatch, option, name):
    monkeypatch.setattr(manifold, "why_no_gpu", lambda: "")
    _, _, Y = make_problem(n=60)
    with pytest.raises(ValueError, match=f"device='cuda' cannot do {name}. Use device="):
        UKR(device="cuda", **option).fit(Y)


WAYS = {
    "plain": {},
    "bf16": {"precision": "bf16"},
    "landmarks": {"landmarks": 150},
    "landmarks of missing entries": {"landmarks": 150, "missing": True},
    "checkpoint": {"checkpoint": "file"},
    "rprop": {"optimizer": "rprop"},
    "own loss": {"loss": Quartic()},
    "absolute": {"loss": "absolute", "regularization": Extension(penalty=1e-3)},
    "smoothest": {"regularization": "smoothest", "loss": EpsilonInsensitive(0.2)},
    "an ε for each row": {"regularization": "smoothest", "loss": EpsilonInsensitive(np.ones(600))},
    "border": {"regularization": LeaveKOut(3, border=1e-4)},
    "boxes": {"regularization": LeaveOneOut(homotopy="box")},
    "extension": {"regularization": Extension(penalty=1e-3)},
    "ball": {"regularization": Extension(radius=4.0)},
    "density": {"regularization": Density(penalty=0.05)},
    "data kernel": {"data_kernel": "rbf"},
    "degree 1": {"degree": 1},
    "degree 2": {"degree": 2},
    "degree 2-axes": {"degree": "2-axes"},
    "degree 1, missing entries": {"degree": 1, "missing": True},
    "degree 1, landmarks": {"degree": 1, "landmarks": 150},
    "degree 1, own loss": {"degree": 1, "loss": Quartic()},
}


@pytest.mark.skipif(not HAS_GPU, reason="needs a CUDA device")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", list(WAYS))
def test_every_way_to_fit_runs_on_a_gpu(name, monkeypatch, tmp_path):
    monkeypatch.setattr("twofold.engine.sums.MANY_PAIRS", 2**14)
    monkeypatch.chdir(tmp_path)
    options = dict(WAYS[name])
    _, _, Y = make_problem(n=600, missing=options.pop("missing", False))
    model = UKR(device="cuda", random_state=0, max_iter=40, **options).fit(Y)
    expected = UKR(device="cpu", random_state=0, max_iter=40, **options).fit(Y)
    assert model.backend_.startswith("gpu")
    assert np.isfinite(model.embedding_).all()
    # Steps differ by rounding, and so may the minimum that they end in.
    assert model.objective_ < 1.25 * expected.objective_ + 1e-9


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


@pytest.mark.parametrize(
    "case",
    ["plain", *(pytest.param(case, marks=pytest.mark.slow) for case in ALSO_PROJECTED)],
)
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


def test_rows_near_known_places_are_sought_there():
    problem, X, Y = make_problem(n=60)
    here, there = problem.surface(X), on_device(problem).surface(X)
    near = X[:3] + 0.3
    expected = project(here, Y[:3], None, problem.loss, near)
    places = project_on_device(there, Y[:3], None, problem.loss, near)
    np.testing.assert_allclose(places, expected.X, atol=2e-2)


@pytest.mark.parametrize("degree", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_sums_at_many_places_are_those_of_the_cpu(degree, monkeypatch):
    monkeypatch.setattr("twofold.engine.sums.MANY_QUERIES", 10)
    problem, X, _ = make_problem(n=90, degree=degree)
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
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (65_000_000, 65_000_000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_per_process_memory_fraction", lambda: 1.0)
    monkeypatch.setattr(DeviceReconstruction, "value_and_grad", fails)
    with pytest.raises(MemoryError, match=r"60 rows .* about 10,000 rows would fit"):
        train_on_device(on_device(problem), X, Training("lbfgs", 2, 0.0, []))


def test_memory_of_the_host_is_not_taken_for_that_of_the_device(monkeypatch):
    def fails(*args, **options):
        raise MemoryError("Unable to allocate an array")

    problem, X, _ = make_problem(n=60)
    monkeypatch.setattr(DeviceReconstruction, "value_and_grad", fails)
    with pytest.raises(MemoryError, match="Unable to allocate"):
        train_on_device(on_device(problem), X, Training("lbfgs", 2, 0.0, []))


@pytest.mark.parametrize(
    "case",
    [
        "plain",
        "degree 1",
        *(pytest.param(case, marks=pytest.mark.slow) for case in ("missing", "leave-3-out")),
    ],
)
def test_a_fit_out_of_memory_goes_on_in_smaller_parts(case, monkeypatch):
    problem, X, _ = make_problem(n=48, **CASES[case])
    whole = DeviceReconstruction(on_device(problem))
    value, grad = whole.value_and_grad(whole.tensor(X))
    kind, most = FittedRun if case.startswith("degree") else TileRun, 14
    run = kind.sums

    def sums(self, **how):
        if self.n_queries > most:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return run(self, **how)

    monkeypatch.setattr("twofold.engine.gpu.sums.FEWEST_ROWS", 8)
    monkeypatch.setattr(kind, "sums", sums)
    objective = DeviceReconstruction(on_device(problem))
    found, slope = objective.value_and_grad(objective.tensor(X))
    assert objective.engine.parts == 4
    assert found == pytest.approx(value, rel=1e-5)
    assert relative_error(slope.cpu().numpy(), grad.cpu().numpy()) < 1e-5
    assert objective.engine.n_pairs > 0
    most = 2
    with pytest.raises(torch.OutOfMemoryError):
        objective.value_and_grad(objective.tensor(X))


@pytest.fixture
def hold_to():
    """Hold the process to so many bytes of the device, until the end of the test."""
    total = torch.cuda.get_device_properties(0).total_memory

    def hold(n_bytes):
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(n_bytes / total)

    yield hold
    torch.cuda.set_per_process_memory_fraction(1.0)
    torch.cuda.empty_cache()


@pytest.mark.skipif(not HAS_GPU, reason="needs a CUDA device")
def test_a_fit_within_little_memory_is_the_same_fit(hold_to):
    rng = np.random.default_rng(0)
    Y, X = rng.normal(size=(200_000, 60)).astype(np.float32), rng.uniform(0, 300, size=(200_000, 2))
    engine = KernelSums(GAUSSIAN, 1e-6, 1, device=DEVICE)
    problem = Problem.of_rows(Y, np.ones(len(Y)), Squared(), LeaveOneOut(), engine, 0)
    problem = problem.cross_validated(Y)
    objective = DeviceReconstruction(problem)
    places = objective.tensor(X)
    torch.cuda.reset_peak_memory_stats()
    value, grad = objective.value_and_grad(places)
    kept, peak = torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()
    hold_to(kept + 0.5 * (peak - kept))
    found, slope = objective.value_and_grad(places)
    assert objective.engine.parts > 1
    assert found == pytest.approx(value, rel=1e-5)
    assert relative_error(slope.cpu().numpy(), grad.cpu().numpy()) < 1e-5
    del objective, places, grad, slope
    hold_to(0.3 * kept)
    with pytest.raises(MemoryError, match=r"200,000 rows needs .* rows would fit"):
        train_on_device(problem, X, Training("lbfgs", 2, 0.0, []))


def test_fewer_rows_at_a_time_where_memory_is_short(monkeypatch):
    monkeypatch.setattr("twofold.engine.gpu.library._room", lambda: 2**29)
    seen = []

    def work(some):
        if some.stop - some.start > 2_000:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        seen.append(some)

    in_parts(5_000, 4_000, work)
    assert [rows for some in seen for rows in range(some.start, some.stop)] == list(range(5_000))
    with pytest.raises(MemoryError, match=r"no memory for 1,024 rows at a time: 0\.5 GiB"):
        in_parts(5_000, 4_000, lambda some: work(slice(0, 4_000)))

"""Sums over nodes on a device equal those of the CPU's grid, and the dense float64 oracle."""

from __future__ import annotations

import numpy as np
import pytest
from engine.regression import make_regression
from engine.test_gpu_sums import expected_with_hidden, responding, rounded, tensor
from finite_differences import relative_error
from on_device import DEVICE, torch

from twofold.engine import KernelSums
from twofold.engine.gpu import grid as gpu_grid
from twofold.engine.gpu.sums import CarriedTiles, DeviceSums
from twofold.kernels import GAUSSIAN, QUARTIC

SITUATIONS = ["", "own", "own weights missing", "own weights queries"]
CUTOFF = 1e-6
# Of the CPU's grid, which differs by rounding only, and of the oracle, where the spacing shows:
# less in sums than in their derivative.
ROUNDING, OF_LOSSES, OF_GRADIENTS = 1e-4, 3e-5, 3e-3

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in .*:RuntimeWarning")


def found(problem, hidden=None, nodes=True):
    is_own, own = problem.Q is problem.X, problem.own if hidden is None else hidden
    how = {"hides_itself": True}
    if not is_own or own is None or own.ndim == 2:
        how = {} if own is None else {"hidden": tensor(own.reshape(len(own), -1), torch.int64)}
    engine = DeviceSums(GAUSSIAN, CUTOFF, nodes=nodes)
    references = CarriedTiles(tensor(problem.X), tensor(problem.carried()))
    queries = None if is_own else tensor(problem.Q)
    parts = engine.evaluate(references, responding(problem), queries=queries, **how)
    return engine, [part.double().cpu().numpy() for part in parts]


@pytest.mark.parametrize("q", [1, 2, 3])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_values_and_gradients_equal_the_oracle_and_the_cpu(q, situation):
    problem = rounded(make_regression(GAUSSIAN, q, situation, n=150))
    engine, parts = found(problem)
    assert engine.is_over_nodes
    expected = problem.expected(GAUSSIAN)
    on_cpu = problem.found(GAUSSIAN, cutoff=CUTOFF, n_jobs=1, backend="cpu_grid")
    for part, exact, same, limit in zip(
        parts, expected, on_cpu, (OF_LOSSES, OF_GRADIENTS, OF_GRADIENTS), strict=True
    ):
        assert relative_error(part, exact) < limit
        assert relative_error(part, same) < ROUNDING


def test_several_hidden_references_are_not_seen():
    problem = rounded(make_regression(GAUSSIAN, 2, "", n=100))
    rng = np.random.default_rng(0)
    hidden = np.column_stack([np.arange(100), rng.integers(-1, 100, size=(100, 3))])
    hidden[:, 3] = hidden[:, 1]  # named twice
    parts, expected = found(problem, hidden)[1], expected_with_hidden(problem, hidden)
    assert relative_error(parts[0], expected[0]) < OF_LOSSES
    assert relative_error(parts[1] + parts[2], expected[1] + expected[2]) < OF_GRADIENTS


def test_the_gradient_is_that_of_the_sums_as_they_are():
    problem = rounded(make_regression(GAUSSIAN, 2, "own", n=80))
    _, by_query, by_reference = found(problem)[1]
    step, point, total = 2.0**-7, 17, []
    for sign in (1, -1):
        moved = rounded(make_regression(GAUSSIAN, 2, "own", n=80))
        moved.X[point, 1] += sign * step
        moved.Q = moved.X
        total.append(found(moved)[1][0].sum())
    slope = (by_query + by_reference)[point, 1]
    assert (total[0] - total[1]) / (2 * step) == pytest.approx(slope, rel=5e-3)


def test_many_chunks_and_parts_add_up(monkeypatch):
    problem = rounded(make_regression(GAUSSIAN, 2, "own", n=500))
    once = found(problem)[1]
    monkeypatch.setattr(gpu_grid, "MOST_WEIGHTS", 2 * 169 * gpu_grid.CHUNK)
    monkeypatch.setattr(gpu_grid, "MOST_PAIRS", 99)
    for part, expected in zip(found(problem)[1], once, strict=True):
        assert relative_error(part, expected) < ROUNDING


def test_the_same_bits_every_time():
    problem = rounded(make_regression(GAUSSIAN, 2, "own weights", n=300))
    for once, again in zip(found(problem)[1], found(problem)[1], strict=True):
        np.testing.assert_array_equal(once, again)


def test_lonely_rows_go_by_pairs():
    problem = rounded(make_regression(GAUSSIAN, 2, "own", n=100))
    problem.X[:2] = [[12.0, 0.0], [12.5, 9.0]]
    problem.Q = problem.X
    expected, parts = problem.expected(GAUSSIAN), found(problem)[1]
    np.testing.assert_allclose(parts[0][:2], expected[0][:2], rtol=1e-4)
    assert relative_error(parts[1] + parts[2], expected[1] + expected[2]) < OF_GRADIENTS


def test_nodes_are_chosen_where_they_are_quicker():
    problem = rounded(make_regression(GAUSSIAN, 2, "own", n=150))
    references = CarriedTiles(tensor(problem.X), tensor(problem.carried()))
    engine = DeviceSums(GAUSSIAN, CUTOFF)
    engine.n_pairs = 150**2
    assert not gpu_grid.is_crowded(engine, references, None)
    engine.n_pairs = 10**11  # some seconds
    assert gpu_grid.is_crowded(engine, references, None)
    spread = CarriedTiles(tensor(1e4 * problem.X), tensor(problem.carried()))
    assert not gpu_grid.is_crowded(engine, spread, None)


def test_a_model_says_that_it_went_over_nodes(monkeypatch):
    monkeypatch.setattr("twofold.engine.sums.MANY_PAIRS", 1)
    monkeypatch.setattr("twofold.engine.gpu.sums.is_crowded", lambda *how: True)
    problem = rounded(make_regression(GAUSSIAN, 2, "own", n=150))
    engine = KernelSums(GAUSSIAN, CUTOFF, 1, device=DEVICE)
    parts = engine.evaluate(problem.X, problem.carried(), problem.respond, hidden=problem.own)
    assert engine.last_plan.backend == "gpu_grid"
    assert relative_error(parts[0], problem.expected(GAUSSIAN)[0]) < OF_LOSSES


def test_kernels_with_a_radius_have_no_grid():
    problem = rounded(make_regression(QUARTIC, 2, "own", n=70))
    engine = DeviceSums(QUARTIC, CUTOFF, nodes=True)
    references = CarriedTiles(tensor(problem.X), tensor(problem.carried()), "tf32x3")
    engine.evaluate(references, lambda order, A, shift: (A[:, 0], None), hides_itself=True)
    assert not engine.is_over_nodes

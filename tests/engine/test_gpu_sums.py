"""The contract of the GPU back end: tiles equal the dense float64 oracle.

Without a GPU the kernels are interpreted, on tensors of the CPU.
"""

from __future__ import annotations

import numpy as np
import pytest
from engine.regression import make_regression
from finite_differences import relative_error
from kernel_cases import BUILT_IN, POWER, name_of
from on_device import DEVICE, torch
from oracles.kernel_sums import squared_distances

from twofold.engine import KernelSums
from twofold.engine.gpu.columns import tile_precision
from twofold.engine.gpu.sums import CarriedTiles, DeviceSums
from twofold.engine.gpu.tiles import TiledPoints, along_a_curve, list_near
from twofold.kernels import GAUSSIAN, QUARTIC

SITUATIONS = ["", "own", "own weights", "own missing", "own weights missing", "own weights queries"]
# Relative errors of losses and gradients. Rows have three columns here, with a mean of 2: errors
# cancel out less than those of many centred columns.
LIMITS = {"fp32": 1e-4, "tf32": 1e-2, "bf16": 5e-2}
# With 64 centred columns.
PROMISED = {"fp32": 1e-5, "tf32x3": 1e-5, "tf32": 3e-3, "bf16": 1e-2}

# Weights of what is hidden from rows far from all others overflow before they become 0.
pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in .*:RuntimeWarning")


def tensor(array, dtype=torch.float32):
    return torch.as_tensor(np.ascontiguousarray(array), dtype=dtype, device=DEVICE)


def rounded(problem):
    """The problem at places that float32 can tell, so that only sums differ."""
    is_own = problem.Q is problem.X
    problem.X = problem.X.astype(np.float32).astype(np.float64)
    problem.Q = problem.X if is_own else problem.Q.astype(np.float32).astype(np.float64)
    return problem


def responding(problem):
    """What a problem responds to sums, for tensors."""

    def respond(numbers, A, shift):
        losses, U = problem.respond(numbers.cpu().numpy(), A.double().cpu().numpy(), shift)
        return tensor(losses), tensor(U)

    return respond


def found(problem, kernel, precision="fp32", cutoff=1e-10, hidden=None):
    """What the device gives for losses and the gradients by Q and by X, in float64."""
    precision = tile_precision(kernel, precision)
    is_own, own = problem.Q is problem.X, problem.own if hidden is None else hidden
    references = CarriedTiles(tensor(problem.X), tensor(problem.carried()), precision)
    if is_own and own is not None and own.ndim == 1:
        how = {"hides_itself": True}
    else:
        how = {} if own is None else {"hidden": tensor(own.reshape(len(own), -1), torch.int64)}
    queries = None if is_own else tensor(problem.Q)
    respond = responding(problem)
    parts = DeviceSums(kernel, cutoff).evaluate(references, respond, queries=queries, **how)
    return [part.double().cpu().numpy() for part in parts]


def assert_close(parts, expected, limit, is_own):
    assert all(np.isfinite(part).all() for part in parts)
    assert relative_error(parts[0], expected[0]) < limit
    if is_own:  # the two gradients may come as their sum
        assert relative_error(parts[1] + parts[2], expected[1] + expected[2]) < limit
    else:
        assert relative_error(parts[1], expected[1]) < limit
        assert relative_error(parts[2], expected[2]) < limit


@pytest.mark.cover(1)
@pytest.mark.parametrize("kernel", BUILT_IN, ids=name_of)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_values_and_gradients_equal_the_oracle(kernel, situation):
    problem = rounded(make_regression(kernel, 2, situation, n=100))
    assert_close(
        found(problem, kernel), problem.expected(kernel), LIMITS["fp32"], problem.Q is problem.X
    )


@pytest.mark.cover(1)
@pytest.mark.parametrize("q", [1, 3, 5])
@pytest.mark.parametrize("situation", ["own weights", "own queries"])
def test_any_number_of_latent_dimensions(q, situation):
    problem = rounded(make_regression(GAUSSIAN, q, situation, n=100))
    assert_close(
        found(problem, GAUSSIAN), problem.expected(GAUSSIAN), LIMITS["fp32"], problem.Q is problem.X
    )


@pytest.mark.cover(1)
@pytest.mark.parametrize("precision", list(PROMISED))
@pytest.mark.parametrize("D", [64, 150])
def test_each_precision_keeps_its_promise(precision, D):
    problem = rounded(make_regression(GAUSSIAN, 2, "own", n=120, D=D))
    problem.Y -= problem.Y.mean(axis=0)
    expected = problem.expected(GAUSSIAN)
    assert_close(found(problem, GAUSSIAN, precision), expected, PROMISED[precision], True)


def test_rows_far_from_all_others_have_weights():
    problem = make_regression(GAUSSIAN, 2, "own", n=100)
    problem.X[:2] += [[40.0, 0.0], [0.0, 9.0]]  # 1e-347 and 1e-18 of a weight
    problem.Q = problem.X
    problem = rounded(problem)
    assert_close(found(problem, GAUSSIAN), problem.expected(GAUSSIAN), LIMITS["fp32"], True)


@pytest.mark.parametrize("distance", [3.4, pytest.param(7.0, marks=pytest.mark.slow), 12.0])
def test_rows_far_away_do_not_drown_the_others(distance):
    problem = make_regression(GAUSSIAN, 2, "own", n=100)
    problem.X[0] = [0.0, problem.X[:, 1].max() + distance]
    problem.Q = problem.X
    problem = rounded(problem)
    by_query, by_reference = problem.expected(GAUSSIAN)[1:]
    parts = found(problem, GAUSSIAN)
    assert relative_error((parts[1] + parts[2])[1:], (by_query + by_reference)[1:]) < LIMITS["fp32"]


def test_rows_at_the_edge_of_a_radius_do_not_drown_the_others():
    problem = make_regression(QUARTIC, 2, "own", n=100)
    others = problem.X[1:]
    top = others[others[:, 1].argmax()]
    problem.X[0] = top[0], top[1] + 1 - 1e-4  # a weight of 4e-8, all that there is
    problem.Q = problem.X
    problem = rounded(problem)
    by_query, by_reference = problem.expected(QUARTIC)[1:]
    parts = found(problem, QUARTIC)
    # Its answer is 1e8 times larger than theirs, and most of it cancels out.
    assert relative_error((parts[1] + parts[2])[1:], (by_query + by_reference)[1:]) < 1e-2


def expected_with_hidden(problem, hidden):
    """The oracle's error for a Gaussian, where several references are hidden from each query."""
    X, Y, n = problem.X, problem.Y, len(problem.X)
    K = np.exp(-0.5 * squared_distances(X, X))
    for j, k in zip(*np.nonzero(hidden >= 0), strict=True):
        K[j, hidden[j, k]] = 0
    f = K @ Y / K.sum(axis=1, keepdims=True)
    E = 2 * (f - problem.targets)
    pull = K / K.sum(axis=1, keepdims=True) * (E @ Y.T - (E * f).sum(axis=1, keepdims=True))
    steps = pull[:, :, None] * (X[None] - X[:, None])
    assert steps.shape == (n, n, 2)
    return ((f - problem.targets) ** 2).sum(axis=1), steps.sum(axis=1), -steps.sum(axis=0)


def test_several_hidden_references_are_not_seen():
    problem = rounded(make_regression(GAUSSIAN, 2, "", n=100))
    rng = np.random.default_rng(0)
    hidden = np.column_stack([np.arange(100), rng.integers(-1, 100, size=(100, 2))])
    expected = expected_with_hidden(problem, hidden)
    assert_close(found(problem, GAUSSIAN, hidden=hidden), expected, LIMITS["fp32"], False)


@pytest.mark.parametrize("situation", ["own weights", "own weights queries"])
def test_arrays_are_evaluated_there_and_come_back(situation, monkeypatch):
    monkeypatch.setattr("twofold.engine.sums.MANY_PAIRS", 1)
    problem = rounded(make_regression(GAUSSIAN, 2, situation, n=100))
    engine, is_own = KernelSums(GAUSSIAN, 1e-10, 1, device=DEVICE), problem.Q is problem.X
    parts = engine.evaluate(
        problem.Q,
        problem.carried(),
        problem.respond,
        references=None if is_own else problem.X,
        hidden=problem.own,
    )
    assert engine.last_plan.backend == "gpu"
    assert all(part.dtype == np.float64 for part in parts)
    assert_close(parts, problem.expected(GAUSSIAN), LIMITS["fp32"], is_own)


def test_tiles_out_of_reach_are_skipped_and_nothing_is_lost():
    problem = make_regression(QUARTIC, 2, "own", n=400)
    problem.Q = problem.X = np.random.default_rng(0).uniform(0, 20, size=(400, 2))
    problem = rounded(problem)
    engine = DeviceSums(QUARTIC, 1e-6)
    references = CarriedTiles(tensor(problem.X), tensor(problem.carried()))
    engine.evaluate(references, lambda order, A, shift: (A[:, 0], None), hides_itself=True)
    assert engine.n_pairs < 0.8 * 448**2
    assert_close(found(problem, QUARTIC), problem.expected(QUARTIC), LIMITS["fp32"], True)


def test_slopes_are_those_of_the_sums():
    problem = rounded(make_regression(QUARTIC, 2, "weights queries", n=150))
    references = CarriedTiles(tensor(problem.X), tensor(problem.carried()))
    engine = DeviceSums(QUARTIC, 1e-6)
    Q, step = tensor(problem.Q), 1e-2
    _, _, slopes = engine.at(references, Q, slopes=True)
    for axis in range(2):
        move = torch.zeros_like(Q)
        move[:, axis] = step
        up, down = engine.at(references, Q + move)[0], engine.at(references, Q - move)[0]
        expected = (up - down) / (2 * step)
        assert relative_error(slopes[:, axis].cpu().numpy(), expected.cpu().numpy()) < 5e-3


def test_the_same_bits_every_time():
    problem = make_regression(GAUSSIAN, 2, "own", n=100)
    once, again = found(problem, GAUSSIAN), found(problem, GAUSSIAN)
    for a, b in zip(once, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_kernels_of_users_are_refused():
    with pytest.raises(ValueError, match="'power' is not one of"):
        DeviceSums(POWER)


@pytest.mark.parametrize("q", [1, 2, 3])
def test_neighbours_along_the_curve_are_neighbours_in_space(q):
    side = {1: 256, 2: 16, 3: 8}[q]
    grid = np.stack(np.meshgrid(*[np.arange(side)] * q), axis=-1).reshape(-1, q)
    X = tensor(np.random.default_rng(0).permutation(grid))
    steps = X[along_a_curve(X)].diff(dim=0).abs().sum(dim=1)
    assert bool((steps == 1).all())  # a Hilbert curve never jumps


def test_lists_hold_all_tiles_within_reach():
    X = tensor(np.random.default_rng(0).uniform(0, 30, size=(700, 2)))
    points = TiledPoints(X, along_a_curve(X))
    reach = torch.full((11,), 4.0, device=DEVICE)
    near = list_near(points, points, reach, -reach)
    places = X[points.order]
    s = torch.cdist(places, places) ** 2
    for a in range(11):
        listed = set(near.tiles[near.first[a] : near.first[a + 1]].tolist())
        rows = s[64 * a : 64 * (a + 1)]
        needed = {b for b in range(11) if bool((rows[:, 64 * b : 64 * (b + 1)] <= 4).any())}
        assert needed <= listed
        assert len(listed) < 11

from __future__ import annotations

import logging

import numpy as np
import pytest
from kernel_cases import POWER
from oracles.kernel_sums import squared_distances

from twofold.engine import FitGroup, KernelSums, LocalFit, Plan, plan, polynomial_terms
from twofold.engine.cells import NEAR, grid_for
from twofold.engine.plan import share_within_reach
from twofold.engine.sums import check_cutoff
from twofold.kernels import GAUSSIAN, QUARTIC, Kernel

LOCAL = np.random.default_rng(0).uniform(0, 100, size=(2_000, 2))


def ones(numbers, A, shift):
    return A[:, 0], None


@pytest.mark.parametrize("kernel", [GAUSSIAN, QUARTIC])
def test_local_kernels_use_cells(kernel):
    choice = plan(LOCAL, kernel, 1e-7)
    assert choice.backend == "cpu_cells"
    assert "within reach" in choice.reason


def test_kernels_that_reach_everything_use_the_matrix():
    choice = plan(LOCAL / 100, GAUSSIAN, 1e-7)
    assert choice.backend == "cpu_dense"
    assert "within reach" in choice.reason


def test_heavy_tails_reach_everything():
    cauchy = Kernel("cauchy", lambda s: 1 / (1 + s), lambda s: -1 / (1 + s) ** 2)
    assert plan(LOCAL, cauchy, 1e-7).backend == "cpu_dense"
    assert plan(LOCAL, POWER, 1e-7).backend == "cpu_dense"


def test_unknown_back_ends_are_refused():
    with pytest.raises(ValueError, match="'cpu_sells'"):
        KernelSums(GAUSSIAN, backend="cpu_sells")


@pytest.mark.parametrize("q", [4, 8, 16])
def test_many_dimensions_use_lists_where_little_is_within_reach(q):
    X = np.random.default_rng(1).normal(size=(1_200, q))
    s = squared_distances(X, X)
    np.fill_diagonal(s, np.inf)
    for scale, backend in ((8.0, "cpu_cells"), (0.5, "cpu_dense")):
        near = np.maximum(scale**2 * s.min(axis=1), GAUSSIAN.reach(NEAR))
        true = (scale**2 * s <= near[:, None] + GAUSSIAN.reach(1e-6)).mean()
        choice = plan(scale * X, GAUSSIAN, 1e-6)
        assert choice.backend == backend
        estimate = share_within_reach(grid_for(scale * X, GAUSSIAN, 1e-6), GAUSSIAN, 1e-6)
        assert true / 1.5 < estimate < 1.5 * true
        assert f"{estimate:.1%} of all pairs are within reach" in choice.reason


def test_a_few_hundred_points_of_many_dimensions_use_the_matrix():
    X = 4 * np.random.default_rng(1).normal(size=(500, 8))
    assert plan(X, GAUSSIAN, 1e-6).backend == "cpu_dense"


def test_few_points_use_the_matrix():
    assert plan(LOCAL[:199], QUARTIC, 1e-7) == Plan("cpu_dense", "n = 199 is small")
    assert plan(LOCAL[:200], QUARTIC, 1e-7).backend == "cpu_cells"


@pytest.mark.parametrize("q", [1, 2, 3])
@pytest.mark.parametrize("extent", [20.0, 50.0])
def test_the_estimated_share_is_near_the_true_one(q, extent):
    X = np.random.default_rng(2).uniform(0, extent, size=(1_500, q))
    true = (squared_distances(X, X) < GAUSSIAN.reach(1e-4)).mean()
    estimate = share_within_reach(grid_for(X, GAUSSIAN, 1e-4), GAUSSIAN, 1e-4)
    assert true / 2 < estimate < 2 * true


def test_the_choice_is_stored_and_said(caplog):
    engine = KernelSums(QUARTIC)
    assert engine.last_plan is None
    with caplog.at_level(logging.DEBUG, logger="twofold"):
        engine.evaluate(LOCAL, np.ones((2_000, 1)), ones)
    assert engine.last_plan.backend == "cpu_cells"
    assert f"cpu_cells: {engine.last_plan.reason}" in caplog.text


@pytest.mark.parametrize("backend", ["cpu_dense", "cpu_cells"])
def test_the_choice_can_be_made_by_hand(backend):
    engine = KernelSums(QUARTIC, backend=backend)
    engine.evaluate(LOCAL[:50], np.ones((50, 1)), ones)
    assert engine.last_plan == Plan(backend, "asked for")


def test_all_pairs_are_within_reach_of_heavy_tails():
    assert plan(LOCAL[:300], POWER, 1e-7).reason == "100.0% of all pairs are within reach"


@pytest.mark.parametrize("cutoff", [0, 0.1, 1, -1e-6, np.nan, np.inf, "small", None, True])
def test_wrong_tolerances_are_refused(cutoff):
    with pytest.raises(ValueError, match=r"`cutoff` must be a number between 0 and 0\.1; got"):
        check_cutoff(cutoff)


@pytest.mark.parametrize("cutoff", [1e-15, 1e-6, 0.099, np.float32(1e-3)])
def test_small_tolerances_are_taken(cutoff):
    check_cutoff(cutoff)


def test_local_polynomials_pay_for_every_pair_that_is_left_out():
    X, V = LOCAL[:600] / 40, np.ones((600, 2))
    engine = KernelSums(QUARTIC)
    engine.evaluate(X, V, ones)
    assert engine.last_plan.backend == "cpu_dense"
    local = LocalFit(polynomial_terms(1, 2), (FitGroup(np.arange(1), np.ones(600)),))
    engine.evaluate(X, V, ones, local=local)
    assert engine.last_plan.backend == "cpu_cells"

"""Learning maps without known places: the two halves of a cycle, the schedule, and its stop."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles import psom_smoothing as oracle
from oracles import psom_unsupervised

from twofold.datasets import make_fish_bowl, make_random_manifold, make_spiral
from twofold.psom.annealing import Annealing, Goal, get_schedule
from twofold.psom.best_match import best_match
from twofold.psom.grid import Grid
from twofold.psom.interpolation import interpolate
from twofold.psom.roughness import Roughness
from twofold.psom.unsupervised import (
    Adaption,
    ManifoldTask,
    fill_by_plane,
    find_start,
    fit_manifold,
)

GRID = Grid.make((5, 4))
THESIS = Annealing(n_steps=30, holdout=0)


def rows_at_places(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    Y = np.column_stack([np.sin(2 * X.sum(axis=1)), X[:, 0] ** 2, X[:, 1], X[:, 0]])
    return X, Y + 0.05 * rng.normal(size=Y.shape), rng.uniform(0.5, 2, size=n)


def learn(Y, grid, schedule, *, init="pca", weights=None, seed=0, **more):
    weights = np.ones(len(Y)) if weights is None else weights
    start = find_start(init, grid, Y, weights, np.arange(len(Y)), None)
    task = ManifoldTask(grid, Y, weights, start, schedule, **more)
    return fit_manifold(task, np.random.RandomState(seed))


# ---- fitting the map ----------------------------------------------------------------------------


@pytest.mark.parametrize("smoothness", [1e-4, 0.1, 10.0])
def test_adaption_solves_the_normal_equations(smoothness):
    X, Y, weights = rows_at_places()
    adaption = Adaption(GRID, Y, weights, 1)
    C = adaption.solve(X, smoothness, np.zeros((GRID.size, 4)))
    roots = np.sqrt(weights)[:, None]
    B, M = oracle.design(GRID.nodes, X), Roughness(GRID).dense()
    assert_allclose(
        adaption.coordinates.at_nodes(C),
        oracle.soft(roots * B, M, roots * Y, smoothness),
        atol=1e-7,
    )


def test_adaption_solves_each_column_by_the_rows_that_have_it():
    X, Y, weights = rows_at_places()
    rng = np.random.default_rng(1)
    Y[rng.random(Y.shape) < 0.4] = np.nan
    adaption = Adaption(GRID, Y, weights, 1)
    before = rng.normal(size=(GRID.size, 4))
    W = adaption.coordinates.at_nodes(adaption.solve(X, 0.05, before))
    B, M, roots = oracle.design(GRID.nodes, X), Roughness(GRID).dense(), np.sqrt(weights)
    for d in range(4):
        seen = ~np.isnan(Y[:, d])
        B_d = (roots[:, None] * B)[seen]
        expected = oracle.soft(B_d, M, (roots * Y[:, d])[seen], 0.05)
        assert_allclose(W[:, d], expected, atol=1e-6)


def test_what_rows_leave_open_stays_as_it_was():
    X, Y, weights = rows_at_places()
    X[:, 1] = 0.0  # nothing is known along the second axis
    adaption = Adaption(GRID, Y, weights, 1)
    plane = GRID.places() @ np.array([[0.0, 0, 0, 0], [3.0, 0, -1, 0]])
    W = adaption.coordinates.at_nodes(adaption.solve(X, 1.0, adaption.coefficients(plane)))
    ends = interpolate(GRID, W, [[0.3, -1.0], [0.3, 1.0]])
    assert_allclose(ends[1] - ends[0], [6, 0, -2, 0], atol=1e-4)


def test_both_halves_of_a_cycle_lower_the_objective():
    Y = make_fish_bowl(200, noise=0.1, random_state=0).Y
    found = learn(Y, Grid.make((8, 8)), Annealing(0.1, 1.0, n_steps=12, holdout=0))
    objective = found.steps[:, 3]
    assert (np.diff(objective) <= 1e-9 * objective[0]).all()
    assert objective[-1] < 0.5 * objective[0]
    assert found.objective == objective[-1]
    # The books agree with the result.
    again = best_match(Grid.make((8, 8)), found.W, Y, start=found.X, max_iter=1)
    assert_allclose(again.squared_errors.mean(), found.error, rtol=1e-3)
    assert_allclose(found.objective, found.error + 0.1 / 1000 * found.roughness)


# ---- the schedule -------------------------------------------------------------------------------


def test_schedules():
    assert_allclose(THESIS.values()[-1], 0.0124, rtol=2e-3)
    assert len(THESIS.values()) == 30
    gentle = THESIS.values(0.5)
    assert gentle[:3] == [0.5] * 3
    assert (np.diff(gentle) <= 0).all()
    assert gentle[-1] == THESIS.values()[-1]
    assert THESIS.values(100.0) == THESIS.values()
    assert THESIS.values(1e-9) == [1e-9] * 3
    down = Goal(0.3).values()
    assert down[0] == 8
    assert down[-1] == 0.3
    assert (np.diff(down) <= 0).all()
    assert Goal(20.0).values() == [20.0] * 3
    assert get_schedule(None) == Annealing()
    assert get_schedule(2) == Goal(2.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"start": 0}, "start"),
        ({"factor": 1.2}, "factor"),
        ({"n_steps": 0}, "n_steps"),
        ({"cycles": 1.5}, "cycles"),
        ({"holdout": 0.7}, "holdout"),
    ],
)
def test_bad_schedules_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Annealing(**arguments)
    with pytest.raises(ValueError, match="Annealing"):
        get_schedule("gcv")


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(5,), (4, 3)])
def test_whole_annealing_by_the_formulas(counts):
    Y = make_random_manifold(25, len(counts), 3, noise=0.05, random_state=1).Y
    grid, schedule = Grid.make(counts), Annealing(n_steps=6, factor=0.4, holdout=0)
    found = learn(Y, grid, schedule)
    W, X = psom_unsupervised.anneal(grid.nodes, Roughness(grid).dense(), Y, schedule.values())
    # Directions of principal axes have no sign of their own.
    sign = np.sign((X * found.X).sum(axis=0))
    assert_allclose(found.X, sign * X, atol=2e-4)
    node = grid.places()
    assert_allclose(interpolate(grid, found.W, node * sign), W, atol=2e-4)


@pytest.mark.slow
def test_result_does_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr("twofold.psom.unsupervised.ROWS_PER_CHUNK", 50)
    monkeypatch.setattr("twofold.psom.best_match.ROWS_PER_TASK", 40)
    Y = make_fish_bowl(220, noise=0.1, random_state=0).Y
    Y[np.random.default_rng(0).random(Y.shape) < 0.1] = np.nan
    Y = Y[~np.isnan(Y).all(axis=1)]
    one, three = (learn(Y, Grid.make((5, 5)), Annealing(n_steps=8), n_jobs=n) for n in (1, 3))
    assert_array_equal(one.W, three.W)
    assert_array_equal(one.X, three.X)


def test_units_and_number_of_rows_change_nothing():
    Y = make_random_manifold(80, 2, 4, noise=0.02, random_state=0).Y
    grid, schedule = Grid.make((5, 5)), Annealing(n_steps=15, holdout=0)
    once = learn(Y, grid, schedule)
    scaled = learn(1000 * Y, grid, schedule)
    assert_allclose(scaled.X, once.X, atol=1e-5)
    assert_allclose(scaled.W, 1000 * once.W, atol=1e-3)
    heavier = learn(Y, grid, schedule, weights=np.full(len(Y), 7.0))
    assert_allclose(heavier.X, once.X, atol=1e-5)
    assert_allclose(heavier.objective, once.objective, rtol=1e-6)


def test_cycles_are_repeated_steps():
    Y = make_random_manifold(60, 1, 3, random_state=0).Y
    found = learn(Y, Grid.make((6,)), Annealing(n_steps=4, cycles=3, holdout=0))
    assert_allclose(found.steps[:, 0], np.repeat(10 * 0.8 ** np.arange(1, 5), 3))


# ---- the stop -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_held_out_rows_stop_before_noise_is_learned():
    sample = make_random_manifold(150, 1, 3, noise=0.15, random_state=3)
    grid = Grid.make((14,))
    stopped = learn(sample.Y, grid, Annealing(n_steps=80))
    assert stopped.stop_reason == "held-out error rose"
    last = learn(sample.Y, grid, Annealing(n_steps=80, holdout=0))
    assert last.stop_reason == "end of the schedule"
    assert last.error < stopped.error  # it learns the noise, too

    def distance(found):
        return ((interpolate(grid, found.W, found.X) - sample.clean) ** 2).sum(axis=1).mean()

    assert distance(stopped) < 0.9 * distance(last)
    held_out = stopped.steps[:, 4]
    counted = ~np.isnan(held_out)
    assert counted.sum() < 80
    # The last cycles have all rows, at a smoothness that did about as well as the best.
    chosen = np.flatnonzero(counted & (stopped.steps[:, 0] == stopped.smoothness))[0]
    best = np.nanargmin(held_out)
    assert chosen <= best
    assert held_out[chosen] < 1.1 * held_out[best]
    assert_allclose(stopped.steps[~counted, 0], stopped.smoothness)


def test_callback_and_interrupt_keep_what_is_there():
    Y = make_fish_bowl(150, noise=0.1, random_state=0).Y
    grid = Grid.make((6, 6))
    seen = []

    def stop_at_five(event):
        seen.append(event)
        return event.iteration == 5

    found = learn(Y, grid, THESIS, callbacks=[stop_at_five])
    assert found.stop_reason == "callback"
    assert len(found.steps) == len(seen) == 5
    assert [event.iteration for event in seen] == [1, 2, 3, 4, 5]
    assert seen[-1].max_iter == 30
    assert seen[-1].value == found.objective
    assert_array_equal(seen[-1].X, found.X)

    def interrupt(event):
        if event.iteration == 5:
            raise KeyboardInterrupt

    for holdout in (0, 0.1):
        schedule = Annealing(n_steps=30, holdout=holdout)
        kept = learn(Y, grid, schedule, callbacks=[interrupt])
        assert kept.stop_reason == "interrupted"
        assert len(kept.steps) == 5
        assert_allclose(kept.smoothness, 10 * 0.8**5)
        errors = ((interpolate(grid, kept.W, kept.X) - Y) ** 2).sum(axis=1)
        assert_allclose(errors.mean(), kept.error, rtol=1e-6)
    with pytest.raises(KeyboardInterrupt):  # nothing is there yet, nothing is lost
        learn(Y, grid, THESIS, init=_Interrupting())


class _Interrupting:
    def fit_transform(self, Y):
        raise KeyboardInterrupt


# ---- starts -------------------------------------------------------------------------------------


def test_principal_plane_is_the_best_affine_start():
    _, Y, _ = rows_at_places(80)
    weights = np.ones(80)
    start = find_start("pca", GRID, Y, weights, np.arange(80), None)
    assert np.abs(start.X).max(axis=0) == pytest.approx(1)
    images = interpolate(GRID, start.W, start.X)
    values = np.linalg.svd(Y - Y.mean(axis=0), compute_uv=False)
    assert_allclose(((images - Y) ** 2).sum(), (values[2:] ** 2).sum())


def test_gaps_are_filled_from_the_plane():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 5)) + 3
    holes = np.where(rng.random(Y.shape) < 0.15, np.nan, Y)
    by_plane = ((fill_by_plane(holes, np.ones(60), 2) - Y) ** 2).sum()
    by_mean = ((np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes) - Y) ** 2).sum()
    assert by_plane < 0.01 * by_mean
    assert fill_by_plane(Y, np.ones(60), 2) is Y


def test_unrolled_coordinates_as_a_start_keep_a_spiral_unrolled():
    sample = make_spiral(250, random_state=0)
    grid = Grid.make((12,))
    by_plane = learn(sample.Y, grid, THESIS)
    unrolled = learn(sample.Y, grid, THESIS, init=sample.latent)
    assert unrolled.error < 0.3 * by_plane.error
    order = np.corrcoef(
        np.argsort(np.argsort(unrolled.X[:, 0])), np.argsort(np.argsort(sample.latent[:, 0]))
    )
    assert abs(order[0, 1]) > 0.98
    backwards = learn(sample.Y, grid, THESIS, init=-5 * sample.latent + 100)
    assert_allclose(-backwards.X, unrolled.X, atol=1e-3)


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ("isomap", "'isomap'"),
        (np.zeros((3, 2)), "shape"),
        (np.full((60, 2), np.nan), "finite"),
        (np.column_stack([np.arange(60), np.ones(60)]), "same coordinate"),
        (object(), "object"),
        (_Interrupting, "not a class"),
    ],
)
def test_bad_starts_are_explained(init, message):
    _, Y, _ = rows_at_places()
    with pytest.raises(ValueError, match=message):
        find_start(init, GRID, Y, np.ones(60), np.arange(60), None)


# ---- the experiment of the thesis ---------------------------------------------------------------


@pytest.mark.slow
def test_fish_bowl():
    """Klanke 2007, section 3.5: annealing gives a smoother map than a fixed smoothness."""
    Y = make_fish_bowl(1000, noise=0.1, random_state=1).Y
    grid = Grid.make((12, 12))
    annealed = learn(Y, grid, THESIS)
    assert 0.035 < annealed.error < 0.05  # thesis: 0.0386
    trajectory = annealed.steps[[3, 6, 9, 14, 19], 1]
    assert_allclose(trajectory, [5.15, 2.75, 1.7, 0.78, 0.33], rtol=0.1)
    fixed = learn(Y, grid, Annealing(annealed.smoothness, 1.0, n_steps=30, holdout=0))
    assert annealed.roughness < fixed.roughness

from __future__ import annotations

import numpy as np
import pytest
from oracles import unn as oracle

from twofold.features import RBF, Polynomial, Sigmoid
from twofold.losses import EpsilonInsensitive, Huber
from twofold.unn.line import Line
from twofold.unn.nearest_rows import nearest_rows
from twofold.unn.point_errors import PointError, get_point_error
from twofold.unn.rows import rows_of

LOSSES = {
    "squared": ("squared", 0.0),
    "absolute": ("absolute", 0.0),
    "huber": (Huber(1.2, per="vector"), 1.2),
    "epsilon": (EpsilonInsensitive(0.4, per="vector", order=1), 0.4),
}
KERNELS = {
    "poly": (Polynomial(2, 0.5, 1.0), lambda a, b: (0.5 * a @ b + 1) ** 2),
    "rbf": (RBF(0.3), lambda a, b: np.exp(-0.3 * ((a - b) ** 2).sum())),
    "tanh": (Sigmoid(0.05, -0.1), lambda a, b: np.tanh(0.05 * a @ b - 0.1)),
}


def make_rows(n=22, D=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)) + 3.0, rng.uniform(0.5, 3.0, size=n)


def earlier(Y, error=None, first=1, n_threads=1):
    """Return the nearest earlier row of each row from `first` on."""
    rows, error = rows_of(Y, np.ones(len(Y))), PointError() if error is None else error
    return nearest_rows(rows, error, first=first, earlier=True, n_threads=n_threads)[:, 0]


def check(Y, weights, K, criterion, include_self, exhaustive, loss, power=2.0, kernel=None):
    """Compare the order and the full error with the oracle's."""
    spec, number = LOSSES[loss]
    data_kernel, function = (None, None) if kernel is None else KERNELS[kernel]
    setting = oracle.Setting(Y, K, include_self, loss, number, power, function, weights)
    line = Line(
        n_neighbors=K,
        criterion=criterion,
        error=get_point_error(spec, power, data_kernel),
        include_self=include_self,
        exhaustive=exhaustive,
    )
    line.insert(Y, weights)
    expected = oracle.sort_on_line(setting, criterion, exhaustive)
    np.testing.assert_array_equal(line.order, expected)
    full = oracle.full_error_on_line(expected, setting)
    assert line.full_error() == pytest.approx(full, rel=1e-9, abs=1e-12)
    return line, setting


@pytest.mark.cover(2)
@pytest.mark.parametrize("exhaustive", [True, False], ids=["exhaustive", "greedy"])
@pytest.mark.parametrize("include_self", [True, False], ids=["self", "others"])
@pytest.mark.parametrize("criterion", ["point", "full"])
@pytest.mark.parametrize(
    ("loss", "power", "kernel"),
    [
        *((loss, power, None) for loss in LOSSES for power in (1.0, 2.0, 3.0, np.inf)),
        *((loss, 2.0, kernel) for loss in ("squared", "absolute") for kernel in KERNELS),
    ],
)
@pytest.mark.parametrize("weighted", [False, True], ids=["even", "weighted"])
def test_same_order_as_the_oracle(
    exhaustive, include_self, criterion, loss, power, kernel, weighted
):
    Y, weights = make_rows(n=12 if criterion == "full" else 18)
    weights = weights if weighted else None
    check(Y, weights, 3, criterion, include_self, exhaustive, loss, power, kernel)


@pytest.mark.cover(2)
@pytest.mark.parametrize("exhaustive", [True, False], ids=["exhaustive", "greedy"])
@pytest.mark.parametrize("include_self", [True, False], ids=["self", "others"])
@pytest.mark.parametrize("criterion", ["point", "full"])
@pytest.mark.parametrize("K", [1, 2, 4, 7, 30])
@pytest.mark.parametrize("power", [2.0, 1.0])
def test_any_number_of_neighbors_and_refinement(exhaustive, include_self, criterion, K, power):
    Y, weights = make_rows(n=13, seed=K)
    line, setting = check(Y, weights, K, criterion, include_self, exhaustive, "squared", power)
    before = line.order
    history = line.refine()
    expected = oracle.refine_on_line(before, setting, exhaustive)
    np.testing.assert_array_equal(line.order, expected)
    assert history[-1] == pytest.approx(oracle.full_error_on_line(expected, setting), rel=1e-9)
    assert history[-1] <= history[0] * (1 + 1e-12)


@pytest.mark.parametrize("exhaustive", [True, False], ids=["exhaustive", "greedy"])
@pytest.mark.parametrize("include_self", [True, False], ids=["self", "others"])
@pytest.mark.parametrize("criterion", ["point", "full"])
@pytest.mark.parametrize("power", [2.0, 1.0])
def test_missing_entries(exhaustive, include_self, criterion, power):
    Y, weights = make_rows(n=14, D=5, seed=3)
    Y[np.random.default_rng(4).random(Y.shape) < 0.3] = np.nan
    Y[::2, 0], Y[1::2, 1] = 3.0, 4.0  # no row is empty, and some have no entry in common
    line, setting = check(Y, weights, 3, criterion, include_self, exhaustive, "absolute", power)
    before = line.order
    line.refine()
    np.testing.assert_array_equal(line.order, oracle.refine_on_line(before, setting, exhaustive))


def test_missing_entries_that_come_late():
    Y, weights = make_rows(n=30, D=5, seed=5)
    Y[20, 2] = np.nan
    at_once = Line(n_neighbors=4, criterion="full")
    at_once.insert(Y, weights)
    # The first rows are complete, so they are sorted by their products.
    in_parts = Line(n_neighbors=4, criterion="full")
    in_parts.insert(Y[:18], weights[:18])
    in_parts.insert(Y[18:], weights[18:])
    np.testing.assert_array_equal(in_parts.order, at_once.order)


@pytest.mark.parametrize("kernel", [None, "tanh"])
@pytest.mark.parametrize("criterion", ["point", "full"])
@pytest.mark.parametrize("include_self", [True, False], ids=["self", "others"])
def test_products_sums_that_move_and_sums_made_anew_agree(
    criterion, include_self, kernel, monkeypatch
):
    rng = np.random.default_rng(6)
    Y = rng.normal(size=(60, 6)) * [3, 2, 1, 1, 0.5, 0.5] + 1
    error = get_point_error("squared", 2.0, None if kernel is None else KERNELS[kernel][0])
    orders, histories = [], []
    for way in ("products", "moving sums", "sums anew"):
        if way == "moving sums":
            monkeypatch.setattr(PointError, "is_euclidean", False)
        elif way == "sums anew":
            monkeypatch.setattr("twofold.unn.line.is_even", lambda rows: False)
        line = Line(n_neighbors=6, criterion=criterion, include_self=include_self, error=error)
        line.insert(Y)
        orders.append(line.order)
        histories.append(line.refine())
        orders.append(line.order)
    for inserted, refined, history in zip(orders[::2], orders[1::2], histories, strict=True):
        np.testing.assert_array_equal(inserted, orders[0])
        np.testing.assert_array_equal(refined, orders[1])
        np.testing.assert_allclose(history, histories[0], rtol=1e-9)
    assert histories[0][-1] < 0.95 * histories[0][0]


@pytest.mark.parametrize("exhaustive", [True, False], ids=["exhaustive", "greedy"])
@pytest.mark.parametrize("include_self", [True, False], ids=["self", "others"])
@pytest.mark.parametrize("power", [2.0, 1.0])
@pytest.mark.parametrize("K", [1, 2, 5])
def test_rows_that_outweigh_all_others(exhaustive, include_self, power, K):
    # What is left of a sum when a row of weight 1e20 is taken away from it is no number to use.
    Y, weights = make_rows(n=14)
    weights[::4] = 1e20
    line, _ = check(Y, weights, K, "point", include_self, exhaustive, "squared", power)
    history = line.refine(2)
    assert np.isfinite(history).all()
    assert history[-1] <= history[0]


@pytest.mark.parametrize("exhaustive", [True, False], ids=["exhaustive", "greedy"])
@pytest.mark.parametrize("criterion", ["point", "full"])
@pytest.mark.parametrize("power", [2.0, 3.0])
def test_row_by_row_and_after_load_as_at_once(exhaustive, criterion, power):
    Y, weights = make_rows(n=60)
    options = {
        "n_neighbors": 4,
        "criterion": criterion,
        "exhaustive": exhaustive,
        "error": get_point_error("squared", power),
    }
    at_once, one_by_one, loaded = Line(**options), Line(**options), Line(**options)
    at_once.insert(Y, weights)
    for i in range(60):
        one_by_one.insert(Y[i : i + 1], weights[i : i + 1])
        if i == 39:
            loaded.load(Y[:40], one_by_one.latent, weights[:40])
    loaded.insert(Y[40:], weights[40:])
    np.testing.assert_array_equal(one_by_one.order, at_once.order)
    np.testing.assert_array_equal(loaded.order, at_once.order)
    assert loaded.full_error() == pytest.approx(at_once.full_error(), rel=1e-12)


@pytest.mark.parametrize("exhaustive", [True, False], ids=["exhaustive", "greedy"])
def test_same_for_any_number_of_threads(exhaustive):
    Y = np.random.default_rng(7).normal(size=(1500, 3))
    lines = []
    for n_threads in (1, 2):
        line = Line(n_neighbors=5, exhaustive=exhaustive, n_threads=n_threads)
        line.insert(Y)
        lines.append((line.order, line.refine()))
    np.testing.assert_array_equal(lines[0][0], lines[1][0])
    assert lines[0][1] == lines[1][1]


def test_ranks_and_order():
    Y, _ = make_rows(n=30)
    line = Line(n_neighbors=3)
    assert line.order.shape == (0,)
    line.insert(Y)
    np.testing.assert_array_equal(np.sort(line.latent[:, 0]), np.arange(1, 31))
    np.testing.assert_array_equal(np.argsort(line.latent[:, 0]), line.order)
    by_hand = Line(n_neighbors=2, criterion="full")
    by_hand.insert(np.array([[0.0], [3.0], [1.0], [2.0]]))
    assert by_hand.order.tolist() == [1, 3, 2, 0]


def test_all_gaps_cost_nothing_with_a_wide_tolerance():
    # Kramer 2013, section 5.5: the first gap is taken each time, and greedily the left one.
    Y, _ = make_rows(n=20)
    error = get_point_error(EpsilonInsensitive(1e3, per="vector", order=1))
    line = Line(n_neighbors=3, error=error)
    line.insert(Y)
    np.testing.assert_array_equal(line.order, np.arange(20)[::-1])
    greedy = Line(n_neighbors=3, error=error, exhaustive=False)
    greedy.insert(Y)
    ranks = greedy.latent[:, 0]
    nearest = earlier(Y)
    assert all(ranks[i] < ranks[nearest[i - 1]] for i in range(1, 20))


@pytest.mark.parametrize("criterion", ["point", "full"])
def test_fill_takes_the_mean_of_the_neighbors(criterion):
    Y, weights = make_rows(n=20)
    Y[-1, 1] = np.nan
    line = Line(n_neighbors=4, include_self=False, criterion=criterion)
    line.insert(Y, weights)
    rank = int(line.latent[19, 0]) - 1
    near = line.order[oracle.nearest_ranks(rank, 20, 4)]
    filled = line.fill(19)
    assert filled[1] == pytest.approx(np.average(Y[near, 1], weights=weights[near]))
    np.testing.assert_allclose(filled[[0, 2, 3]], Y[-1, [0, 2, 3]])
    # Later rows see it complete.
    Y[-1] = filled
    setting = oracle.Setting(Y, 4, False, weights=weights)
    expected = oracle.full_error_on_line(line.order, setting)
    assert line.full_error() == pytest.approx(expected, rel=1e-9)


def test_watch_is_told_how_many_rows_there_are():
    Y, _ = make_rows(n=600)
    for exhaustive in (True, False):
        seen = []
        Line(n_neighbors=3, exhaustive=exhaustive).insert(Y, watch=seen.append)
        assert seen[-1] == 600
        assert seen == sorted(seen)
        assert len(seen) > 1


def test_nearest_rows():
    rng = np.random.default_rng(8)
    Y = rng.normal(size=(700, 4))
    D = ((Y[:, None] - Y) ** 2).sum(axis=2)
    expected = [D[i, :i].argmin() for i in range(1, 700)]
    np.testing.assert_array_equal(earlier(Y), expected)
    np.testing.assert_array_equal(earlier(Y, first=300, n_threads=2), expected[299:])
    np.fill_diagonal(D, np.inf)
    rows = rows_of(Y, np.ones(700))
    np.testing.assert_array_equal(nearest_rows(rows, PointError())[:, 0], D.argmin(axis=1))
    found = nearest_rows(rows, PointError(), 6, n_threads=2)
    np.testing.assert_array_equal(found, np.argsort(D, axis=1)[:, :6])
    for kernel, function in KERNELS.values():
        error = get_point_error(data_kernel=kernel)
        K = np.array([[function(a, b) for b in Y[:60]] for a in Y[:60]])
        gaps = np.diag(K) - 2 * K
        found = [gaps[i, :i].argmin() for i in range(1, 60)]
        np.testing.assert_array_equal(earlier(Y[:60], error), found)


def test_nearest_rows_with_nothing_in_common_come_last():
    Y = np.array([[0.0, np.nan], [np.nan, 1.0], [5.0, 3.0], [1.0, np.nan]])
    found = nearest_rows(rows_of(Y, np.ones(4)), PointError(), 3)
    assert found.tolist() == [[3, 2, 1], [2, 0, 3], [1, 3, 0], [0, 2, 1]]


def test_wrong_arguments():
    with pytest.raises(ValueError, match="at least 1; got 0"):
        Line(n_neighbors=0)
    with pytest.raises(ValueError, match=r"'point', 'full'.*got 'all'"):
        Line(n_neighbors=2, criterion="all")
    line = Line(n_neighbors=2, error=get_point_error(data_kernel=RBF(1.0)))
    with pytest.raises(ValueError, match="kernel needs complete rows"):
        line.insert(np.array([[0.0, np.nan]]))
    with pytest.raises(ValueError, match="without any observed entry"):
        Line(n_neighbors=2).insert(np.array([[0.0, 1.0], [np.nan, np.nan]]))

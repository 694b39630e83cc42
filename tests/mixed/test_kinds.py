from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from twofold.mixed.columns import ConstantColumn, DateColumn, LevelColumn, NumberColumn
from twofold.mixed.kinds import LeftOut, choose, fit_column

rng = np.random.default_rng(0)
N = 300


def fitted(values, asked=None, weight=1.0):
    values = pd.Series(values)
    return fit_column("c", values, np.ones(len(values)), asked, weight)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (rng.normal(size=N), "number"),
        (rng.integers(0, 50, N), "number"),
        (np.exp(1.5 * rng.normal(size=N)), "log"),
        (rng.standard_t(1.2, N), "robust"),
        (np.where(rng.random(N) < 0.9, 0.0, rng.exponential(size=N)), "robust"),
        (rng.poisson(0.8, N), "count"),
        (rng.integers(0, 2, N), "category"),
        (rng.random(N) < 0.3, "category"),
        (rng.choice(list("abc"), N), "category"),
        (pd.Categorical(rng.choice(list("abc"), N)), "category"),
        (pd.Categorical(rng.choice(list("abc"), N), ordered=True), "ordered"),
        (pd.date_range("2020-01-01", periods=N), "date"),
        ([datetime.date(2020, 1, 1 + k % 28) for k in range(N)], "date"),
        (pd.period_range("2020-01", periods=N, freq="M"), "date"),
        ([Decimal(k % 7) / 10 for k in range(N)], "number"),
        ([Decimal(1), 2.5, 3] * 10, "number"),
        (pd.to_timedelta(rng.integers(0, 1000, N), unit="s"), "number"),
        (pd.array(rng.integers(0, 9, N), dtype="Int64"), "number"),
        ([1, 2.5, None, 4] * 10, "number"),
        (np.arange(N), "out"),
        (np.arange(N) + 2**60, "out"),
        (pd.array(np.arange(N) + 2**60, dtype="Int64"), "out"),
        (np.arange(N, dtype=np.uint64) + np.uint64(2**63), "out"),
        (2**60 + np.random.default_rng(1).integers(0, 9_000, N), "out"),
        (2**60 + np.random.default_rng(1).integers(0, 2, N), "category"),
        (2**60 + np.random.default_rng(1).integers(0, 10**15, N), "number"),
        (2.0**60 + 256.0 * (np.arange(N) % 2), "number"),  # what whole numbers of a file became
        ([f"row {k}" for k in range(N)], "out"),
        ([[1, 2]] * N, "out"),
        ([1, "a"] * 10, "out"),
        (["a"] * N, "constant"),
    ],
)
def test_the_rules(values, kind):
    assert choose(pd.Series(values))[0] == kind


def test_reasons_of_what_is_left_out():
    assert "names" in fitted([f"p{k}" for k in range(N)]).why
    text = [" ".join(rng.choice(list("abcdefghij"), 8)) for _ in range(N)]
    assert "free text: 300 different texts in 300 rows" in fitted(text).why
    assert fitted(np.arange(N)).why == "it counts the rows"
    assert fitted(np.arange(N) + 2**60).why == "it counts the rows"
    assert "identifiers" in fitted(2**60 + np.arange(0, 3 * N, 3)).why
    assert fitted([None, None]).why == "it has no value in any row"
    assert isinstance(fitted([[1]] * 5), LeftOut)


def test_rare_levels_share_an_indicator():
    texts = ["a"] * 200 + ["b"] * 96 + ["x", "y", "y", "z"]
    column = fitted(texts)
    assert isinstance(column, LevelColumn)
    assert column.levels == ("a", "b", "x", "y", "z")
    assert column.groups.tolist() == [0, 1, 2, 2, 2]
    assert column.features == ["c = a", "c = b", "c = one of 3 rare levels"]
    np.testing.assert_allclose(column.shares, [1, 1, 0.25, 0.5, 0.25])
    P = column.probabilities(np.array([[0.0, 0.2, 0.8]]))
    np.testing.assert_allclose(P, [[0, 0.2, 0.2, 0.4, 0.2]])
    assert column.decode(np.array([[0.0, 0.2, 0.8]])).tolist() == ["y"]
    assert "5 levels, 3 rare ones joined" in column.described()


def test_a_single_rare_level_stays():
    assert fitted(["a"] * 200 + ["b"]).groups.tolist() == [0, 1]


def test_where_all_levels_are_rare_the_most_frequent_stay():
    texts = [f"t{k:03d}" for k in range(200)]
    column = fitted([*texts, "t150", "t199"], "category")
    own = [*range(48), 150, 199]
    assert [k for k in range(200) if column.groups[k] < 50] == own
    assert len(column.features) == 51
    assert "c = one of 150 rare levels" in column.features
    assert fitted(["x", "y", "z"], "category").groups.tolist() == [0, 1, 2]
    assert len(fitted(texts[:51], "category").features) == 51  # one level alone is joined to none


def test_circles_where_the_rows_cover_them():
    days = pd.Series(pd.date_range("2020-01-01", "2020-12-31"))
    assert fitted(days).periods == ()
    assert fitted(pd.Series(pd.date_range("2015-01-01", "2020-12-31"))).periods == (365.2425,)
    assert fitted(pd.Series(pd.date_range("2005-01-01", "2020-12-31", freq="YS"))).periods == ()
    assert fitted(pd.Series(pd.period_range("2015", "2020", freq="Q"))).periods == (365.2425,)
    hours = fitted(pd.Series(pd.date_range("2020-01-01", periods=100, freq="h")))
    assert isinstance(hours, DateColumn)
    assert hours.periods == (1.0,)
    assert hours.resolution == 3600
    assert fitted(days).resolution == 86_400


@pytest.mark.parametrize(
    ("values", "asked", "kind"),
    [
        ([1990, 1991, 1992] * 9, "category", LevelColumn),
        (["small", "large"] * 9, ["small", "large"], LevelColumn),
        (["2020-01-05", "2020-02-07"] * 9, "date", DateColumn),
        (["1.5", "2"] * 9, "number", NumberColumn),
        ([1.0, 1.0, 3.0] * 9, "log", NumberColumn),
        (["a"] * 9, "category", ConstantColumn),
        ([1, 2] * 9, "out", LeftOut),
    ],
)
def test_kinds_that_are_asked_for(values, asked, kind):
    assert isinstance(fitted(values, asked), kind)


def test_an_order_that_is_asked_for():
    column = fitted(["low", "high", "mid"] * 5, ["low", "mid", "high"])
    assert column.levels == ("low", "mid", "high")
    assert column.encode(pd.Series(["mid", "high", None])).tolist()[:2] == [[1, 0], [1, 1]]


@pytest.mark.parametrize(
    ("values", "asked", "message"),
    [
        (["1", "x"] * 5, "number", "cannot be a number: 'x' is no number"),
        ([1.0, 0.0, 2.0], "log", "cannot be a log: it holds 0"),
        ([1, -1, 3], "count", "cannot be a count: it holds -1"),
        (["a", "b", "c"], ["a", "b"], "levels that `kinds` does not name: c"),
        (["2020-01-01", "never"], "date", "cannot be dates: 'never' is none"),
        ([1.0, np.inf, 2.0], "number", "holds infinity"),
    ],
)
def test_kinds_that_cannot_be(values, asked, message):
    with pytest.raises(ValueError, match=message):
        fitted(values, asked)

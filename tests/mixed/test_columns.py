from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from oracles import mixed as oracle

from twofold.mixed.columns import scales
from twofold.mixed.kinds import fit_column

rng = np.random.default_rng(1)
N = 240


def fitted(values, asked=None):
    values = pd.Series(values)
    return fit_column("c", values, np.ones(len(values)), asked, 1.0)


TIMES = pd.Series(pd.Timestamp("2018-03-01") + pd.to_timedelta(rng.integers(0, 30_000, N), "h"))
COLUMNS = {
    "number": pd.Series(rng.normal(size=N)),
    "log": pd.Series(np.exp(2 * rng.normal(size=N))),
    "count": pd.Series(rng.poisson(0.7, N)),
    "robust": pd.Series(rng.standard_t(1.2, N)),
    "category": pd.Series(rng.choice(list("abcd"), N)),
    "truth": pd.Series(rng.random(N) < 0.4),
    "ordered": pd.Series(
        pd.Categorical(rng.choice(["s", "m", "l"], N), categories=["s", "m", "l"], ordered=True)
    ),
    "date": TIMES,
    "zone": TIMES.dt.tz_localize("UTC").dt.tz_convert("America/New_York"),
    "duration": pd.Series(pd.to_timedelta(rng.integers(0, 900, N), "s")),
    "small": pd.Series(rng.integers(-100, 100, N).astype(np.int8)),
    "single": pd.Series(rng.normal(size=N).astype(np.float32)),
    "masked": pd.Series(pd.array(rng.integers(0, 9, N), dtype="Int64")),
    "text": pd.Series(rng.choice(["u", "v"], N), dtype="string"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_features_and_back(name):
    values = COLUMNS[name]
    column = fitted(values)
    F = column.encode(values)
    assert F.shape == (N, len(column.features))
    assert sum(column.parts) == F.shape[1]
    back = column.decode(F)
    assert back.dtype == values.dtype
    if pd.api.types.is_float_dtype(values.dtype):
        np.testing.assert_allclose(back, values, rtol=1e-6)
    else:
        pd.testing.assert_series_equal(back, values, check_names=False)


@pytest.mark.parametrize("name", COLUMNS)
def test_variances_add_up_to_the_weight(name):
    column = fitted(COLUMNS[name])
    F = column.encode(COLUMNS[name])
    for weight in (1.0, 3.0):
        center, spread = scales(F, column.parts, weight, np.ones(N))
        assert ((F - center) / spread).var(axis=0).sum() == pytest.approx(weight)


@pytest.mark.parametrize("name", COLUMNS)
def test_gaps_are_gaps_in_every_feature(name):
    values = COLUMNS[name].astype(object)
    values[3] = None
    F = fitted(COLUMNS[name]).encode(values)
    assert np.isnan(F[3]).all()
    assert not np.isnan(np.delete(F, 3, axis=0)).any()


def test_features_against_the_oracle():
    category, ordered, date = (COLUMNS[name] for name in ("category", "ordered", "date"))
    found = fitted(category).encode(category)
    assert found.tolist() == [oracle.level_features(cell, list("abcd")) for cell in category]
    found = fitted(ordered).encode(ordered)
    assert found.tolist() == [oracle.ordered_features(cell, ["s", "m", "l"]) for cell in ordered]
    wanted = [oracle.date_features(cell.to_pydatetime(), True, True) for cell in date]
    np.testing.assert_allclose(fitted(date).encode(date), wanted, atol=1e-9)


def test_probabilities_of_an_order_are_differences():
    column = fitted(COLUMNS["ordered"])
    P = column.probabilities(np.array([[0.9, 0.2], [0.3, 0.5], [-0.1, -0.2]]))
    np.testing.assert_allclose(P, [[0.1, 0.7, 0.2], [0.7, 0, 0.3], [1, 0, 0]])


def test_a_date_is_the_one_with_the_nearest_features():
    # By brute force: every hour of the span.
    column = fitted(TIMES)
    hours = pd.Series(pd.date_range(TIMES.min(), TIMES.max(), freq="h"))
    every, F = column.encode(hours), column.encode(TIMES[:20])
    F = F + rng.normal(size=F.shape) * [30, 0.2, 0.2, 0.2, 0.2]
    unit = np.repeat(column.scales, column.parts)
    cost = (((every[:, None] - F) / unit) ** 2).sum(axis=2)
    found = column.encode(column.decode(F))
    own = (((found - F) / unit) ** 2).sum(axis=1)
    assert (own <= cost.min(axis=0) + 2e-3).all()


@pytest.mark.parametrize("name", ["number", "log", "count", "robust"])
def test_slopes_by_differences(name):
    column = fitted(COLUMNS[name])
    F, step = column.encode(COLUMNS[name])[:5] + 0.1, 1e-6
    expected = (column.numbers(F + step) - column.numbers(F - step)) / (2 * step)
    found = column.slopes(F, np.ones((5, 1, 1)))[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_slopes_of_levels_mean_something():
    J = np.array([[[0.3], [-0.2], [-0.1], [0.0]]])
    assert fitted(COLUMNS["category"]).slopes(np.zeros((1, 4)), J).tolist() == [
        [pytest.approx(0.3)]
    ]
    up = np.array([[[0.5], [0.25]]])
    assert fitted(COLUMNS["ordered"]).slopes(np.zeros((1, 2)), up).tolist() == [[0.75]]


def test_times_of_another_zone_are_the_same_times():
    column = fitted(COLUMNS["zone"])
    other = COLUMNS["zone"].dt.tz_convert("Asia/Tokyo")
    np.testing.assert_allclose(column.encode(other), column.encode(COLUMNS["zone"]))


def test_what_a_logarithm_has_no_value_for_is_missing():
    column = fitted(COLUMNS["log"])
    assert np.isnan(column.encode(pd.Series([1.0, 0.0, -3.0]))[:, 0]).tolist() == [
        False,
        True,
        True,
    ]

"""Tables with columns of unusual types, and tables of which nothing can be learned."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from twofold import UKR, Mixed, load
from twofold.mixed.column_types import ColumnType, wall_days

N = 40
T = np.random.default_rng(0).random(N)
EVERY = np.arange(N)
HOURS = pd.to_timedelta(np.round(9_000 * T), unit="h")
DAYS = pd.Series(pd.Timestamp("2020-01-01") + HOURS.floor("D"))
MONTHS = DAYS.dt.to_period("M").array
PRICES = [decimal.Decimal(f"{9 * t:.2f}") for t in T]
ZONED = pd.Series(pd.Timestamp("2020-01-01", tz="Europe/Berlin") + HOURS)


def with_column(odd) -> pd.DataFrame:
    sides = np.where(T > 0.5, "x", "y")
    return pd.DataFrame(
        {"a": np.round(T, 3), "b": np.round(np.sin(5 * T), 3), "c": sides, "odd": odd}
    )


def fitted(table) -> Mixed:
    return Mixed(UKR(init="pca", max_iter=2, random_state=0, verbose=False)).fit(table)


def gappy(values) -> list:
    return [None if k % 9 == 0 else value for k, value in enumerate(values)]


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(7, id="constant"),
        pytest.param(pd.Categorical(["u"] * N, ["u", "v"]), id="one level"),
        pytest.param(gappy(["u"] * N), id="one level and gaps"),
        pytest.param(np.array(["", "p", "q"])[EVERY % 3], id="empty texts"),
        pytest.param(ZONED, id="time zone"),
        pytest.param(HOURS, id="durations"),
        pytest.param(pd.array(gappy(EVERY % 7), dtype="Int64"), id="Int64"),
        pytest.param(pd.array(gappy(T), dtype="Float64"), id="Float64"),
        pytest.param(pd.array(gappy(T > 0.3), dtype="boolean"), id="boolean"),
        pytest.param(pd.array(gappy("pqrs" * 10), dtype="string"), id="string"),
        pytest.param([datetime.date(2020, 1 + k % 12, 3) for k in EVERY], id="days"),
        pytest.param(pd.Categorical(10 * (EVERY % 3)), id="numbered levels"),
        pytest.param(pd.Categorical(DAYS.dt.to_period("Q")), id="levels of quarters"),
        pytest.param(pd.cut(T, 4), id="intervals"),
        pytest.param(pd.cut(EVERY, [-1, 5, 15, N]), id="intervals of whole numbers"),
        pytest.param(pd.cut(ZONED.dt.tz_convert("UTC"), 3), id="intervals of times"),
        pytest.param(pd.arrays.SparseArray(np.where(T > 0.7, T, 0)), id="sparse"),
        pytest.param(DAYS.astype("date32[day][pyarrow]"), id="Arrow's days"),
        pytest.param(ZONED.astype("timestamp[us, tz=Europe/Berlin][pyarrow]"), id="Arrow's zone"),
        pytest.param(pd.Series(gappy(EVERY % 5)).astype("int32[pyarrow]"), id="Arrow's numbers"),
        pytest.param(gappy(PRICES), id="decimals"),
        pytest.param([decimal.Decimal(int(k % 2)) for k in EVERY], id="two decimals"),
        pytest.param([decimal.Decimal("2.50")] * N, id="one decimal"),
        pytest.param(
            pd.Series(gappy(PRICES), dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
            id="Arrow's decimals",
        ),
        pytest.param(pd.array(gappy(MONTHS), dtype="period[M]"), id="months"),
        pytest.param(MONTHS.asfreq("Y"), id="years"),
        pytest.param(MONTHS[[3] * N], id="one month"),
    ],
)
def test_odd_columns_come_back_in_their_type(odd, tmp_path):
    table = with_column(odd)
    model = fitted(table)
    assert model.left_out_ == {}
    places = model.transform(table)
    back = model.inverse_transform(places)
    assert back.dtypes.to_dict() == table.dtypes.to_dict()
    known = table["odd"].notna().to_numpy()
    assert set(map(type, back["odd"])) <= set(map(type, table["odd"][known]))
    filled = model.complete(table)
    assert filled["odd"].notna().all()
    assert filled["odd"][known].tolist() == table["odd"][known].tolist()
    model.save(tmp_path / "m.twofold")
    again = load(tmp_path / "m.twofold")
    pd.testing.assert_frame_equal(again.inverse_transform(places), back)


@pytest.mark.parametrize(
    ("odd", "why"),
    [
        (np.nan, "no value in any row"),
        ([[1, "a", None, 2.5][k % 4] for k in EVERY], "cells of type float, int, str$"),
        ([[b"u", b"v"][k % 2] for k in EVERY], "cells of type bytes"),
        ([[k] for k in EVERY], "cells of type list"),
        (T + 1j, "complex numbers"),
        ([f"level {k}" for k in EVERY], "40 different texts"),
        (
            pd.Series(list("pq") * 20).astype(pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
            "makes levels of it",
        ),
    ],
)
def test_columns_that_cannot_be_used_are_left_out_with_the_reason(odd, why):
    model = fitted(with_column(odd))
    assert list(model.left_out_) == ["odd"]
    assert pd.Series(model.left_out_).str.contains(why).all()


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (with_column(T)[:0], ValueError, r"at least two rows .* got one of 0 row\(s\)"),
        (with_column(T)[:1], ValueError, r"at least two rows .* got one of 1 row\(s\)"),
        (pd.DataFrame(index=range(5)), ValueError, r"5 row\(s\) and 0 column\(s\)"),
        (with_column(T)[["a"]], ValueError, "choose at most 1"),
        (pd.DataFrame({"k": [1] * 9, "m": np.nan}), ValueError, "'k': the same value in every row"),
        (
            with_column(T).set_axis(["a", "b", "c", "a"], axis=1),
            ValueError,
            "several are called 'a'",
        ),
        (with_column(np.where(T > 0.9, np.inf, T)), ValueError, "'odd' holds infinity; replace it"),
        (pl.from_pandas(with_column(T)).lazy(), TypeError, r"LazyFrame. Pass `X.collect\(\)`"),
    ],
)
def test_tables_that_cannot_be_fitted_are_refused(table, error, message):
    with pytest.raises(error, match=message):
        fitted(table)


def test_complex_numbers_are_no_amounts():
    with pytest.raises(ValueError, match="'odd' cannot be a number: it holds complex numbers"):
        Mixed(kinds={"odd": "number"}).fit(with_column(T + 1j))


def test_decimals_come_back_with_as_many_digits():
    prices = [decimal.Decimal("2.5") if k % 3 else price for k, price in enumerate(PRICES)]
    model = fitted(with_column(prices))
    found = model.inverse_transform(model.embedding_)["odd"]
    assert {-price.as_tuple().exponent for price in found} == {2}
    column = model.columns_[-1].type
    assert column.from_numbers(np.array([1.005, 1e20]))[1] == decimal.Decimal("1e20")
    alike = pd.Series([decimal.Decimal("2.50"), decimal.Decimal("2.5"), decimal.Decimal("10")])
    assert column.codes(alike, ("10", "2.5")).tolist() == [1, 1, 0]


@pytest.mark.parametrize("unit", ["M", "Q", "Y-JUN", "W", "D", "h"])
def test_a_time_becomes_the_period_that_begins_nearest(unit):
    times = DAYS + HOURS
    starts = pd.period_range("2019-01-01", "2024-06-01", freq=unit)
    nearest = [starts[np.abs(starts.start_time - time).argmin()] for time in times]
    column = ColumnType.of(pd.Series(starts))
    days = wall_days(times)
    assert column.from_days(days).tolist() == nearest
    there_and_back = column.from_days(wall_days(column.times(pd.Series(starts))))
    assert there_and_back.tolist() == starts.tolist()


def test_whole_numbers_stay_within_their_type():
    small = pd.array((255 * T).astype(int), dtype="UInt8")
    found = fitted(with_column(small)).sample(400, noise=True, random_state=0)["odd"]
    assert found.dtype == "UInt8"
    assert found.max() == 255
    largest = ColumnType.of(pd.Series([2**62], dtype="Int64")).from_numbers(np.array([1e30]))
    assert largest[0] > 2**62


def test_levels_that_are_numbers_can_be_numbers():
    rating = pd.Categorical((4 * T).astype(int) + 1, categories=[1, 2, 3, 4], ordered=True)
    table = with_column(rating)
    model = Mixed(UKR(init="pca", max_iter=2, verbose=False), kinds={"odd": "number"}).fit(table)
    found = model.inverse_transform(model.embedding_)["odd"]
    assert found.dtype == rating.dtype
    assert np.abs(found.astype(float) - rating.astype(float)).max() <= 1


@pytest.mark.parametrize(
    "form",
    [
        "%Y-%m-%d",
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%dT%H:%M:%S+00:00",
        "%Y-%m-%dT%H:%M:%SZ",
        "%d.%m.%Y",
        "%Y-%m",
        "%B %d, %Y",
    ],
)
def test_texts_that_are_dates_are_filled_as_they_are_written(form):
    table = with_column(gappy(DAYS.dt.strftime(form)))
    is_plain = form in ("%Y-%m", "%B %d, %Y")
    kinds = {"odd": "date"} if is_plain else None
    model = Mixed(UKR(init="pca", max_iter=2, verbose=False), kinds=kinds).fit(table)
    assert model.columns_[-1].kind == "date"
    filled = model.complete(table)["odd"]
    parsed = pd.to_datetime(filled, format=form)
    assert (parsed.dt.strftime(form) == filled).all()
    known = table["odd"].notna()
    assert (filled == table["odd"])[known].all()


def test_texts_of_two_offsets_are_times():
    when = pd.Series(pd.date_range("2020-01-01", periods=N, freq="9D", tz="Europe/Berlin"))
    model = fitted(with_column(when))
    texts = with_column(when.astype(str).where(T > 0.3, None))
    filled = model.complete(texts)["odd"]
    assert filled.notna().all()
    F = model.features(texts)[T > 0.3]
    np.testing.assert_allclose(F, model.features(with_column(when))[T > 0.3], atol=1e-6)
    asked = Mixed(UKR(init="pca", max_iter=2, verbose=False)).fit(texts)
    assert asked.columns_[-1].kind == "date"
    assert asked.complete(texts)["odd"].str.endswith("+00:00")[T <= 0.3].all()


def test_dates_of_any_year_have_a_place():
    days = [datetime.date(9999, 12, 31) if t > 0.9 else datetime.date(1, 1, k + 1)
            for k, t in zip(EVERY % 28, T, strict=True)]  # fmt: skip
    table = with_column(days)
    model = fitted(table)
    assert model.complete(table)["odd"].tolist() == days
    assert model.from_features(model.features(table))["odd"].tolist() == days


@pytest.mark.parametrize("away", [-200_000, 100_000, 2_000_000])
@pytest.mark.parametrize("form", ["s", "ms", "us", "months", "texts"])
def test_times_of_any_year_have_a_place(form, away):
    days = pd.Series(DAYS.to_numpy("datetime64[s]") + np.timedelta64(away, "D"))
    odd = {
        "months": lambda: days.dt.to_period("M"),
        "texts": lambda: days.dt.strftime("%Y-%m-%d"),
    }.get(form, lambda: days.astype(f"datetime64[{form}]"))()
    table = with_column(odd)
    model = fitted(table)
    assert model.columns_[-1].kind == "date"
    back = model.from_features(model.features(table))["odd"]
    pd.testing.assert_series_equal(back, odd, check_names=False)
    assert len(set(model.inverse_transform(model.embedding_)["odd"])) > 10


@pytest.mark.parametrize("unit", ["MS", "ME", "YS", "YE"])
def test_days_of_the_calendar_stay_such(unit):
    days = pd.Series(pd.date_range("2000-01-01", periods=N, freq=unit)).sample(N, random_state=0)
    model = fitted(with_column(days.to_numpy()))
    assert "days of " in model.columns_[-1].described()
    found = model.inverse_transform(np.random.default_rng(0).normal(size=(60, 2)))["odd"]
    assert found.isin(pd.date_range("1980-01-01", "2080-01-01", freq=unit)).all()
    table = with_column(days.to_numpy())
    assert (model.from_features(model.features(table))["odd"] == table["odd"]).all()
    assert pd.isna(model.columns_[-1].decode(np.full((1, 3), np.nan))[0])


def test_times_of_a_few_hours_stay_there():
    night = DAYS + pd.to_timedelta(np.round(210 * np.random.default_rng(1).random(N)) - 100, "min")
    model = fitted(with_column(night))
    assert model.columns_[-1].periods == ()
    found = model.inverse_transform(model.embedding_)["odd"]
    hours = (found - found.dt.normalize()) / pd.Timedelta(hours=1)
    assert ((hours > 22) | (hours < 2)).all()
    assert len(hours.unique()) > 3
    assert "at 22:" in model.columns_[-1].described()
    assert "in seconds" in fitted(with_column(HOURS)).columns_[-1].described()


@pytest.mark.parametrize(
    "odd",
    [DAYS.dt.floor("100D"), DAYS.dt.to_period("Q"), DAYS.dt.floor("90D").dt.date, PRICES[:4] * 10],
    ids=["times", "periods", "dates", "decimals"],
)
def test_dates_and_decimals_can_be_levels(odd):
    table = with_column(gappy(list(odd)) if isinstance(odd, list) else odd.where(T > 0.1, None))
    model = Mixed(UKR(init="pca", max_iter=2, verbose=False), kinds={"odd": "category"}).fit(table)
    filled = model.complete(table)["odd"]
    assert filled.dtype == table["odd"].dtype
    assert filled.isin(table["odd"].dropna()).all()


def test_whole_numbers_of_an_object_column_stay_whole():
    table = with_column(pd.Series(gappy((EVERY % 7).tolist()), dtype=object))
    assert set(map(type, fitted(table).complete(table)["odd"])) == {int}


@pytest.mark.parametrize(
    ("kinds", "odd", "message"),
    [
        ({"odd": "date"}, EVERY + 1980, r"it holds numbers. Make dates .*format='%Y'"),
        ({"odd": "date"}, [f"14:{k:02d}" for k in EVERY], "'14:00' is none"),
        ({"odd": "date"}, [decimal.Decimal(int(k)) for k in EVERY], "it holds numbers"),
        ({"c": ["x", "y", "x"]}, T, r"`kinds\['c'\]` names the level 'x' twice"),
    ],
)
def test_kinds_that_cannot_be_are_refused(kinds, odd, message):
    with pytest.raises(ValueError, match=message):
        Mixed(kinds=kinds).fit(with_column(odd))


def test_new_rows_that_cannot_be_used_are_refused():
    model = fitted(with_column(T))
    with pytest.raises(ValueError, match=r"'a' holds infinity \(first: row 3\)"):
        model.transform(with_column(T).assign(a=np.where(EVERY == 3, np.inf, T)))
    with pytest.raises(ValueError, match="a list of cells for each name"):
        model.transform({"a": 1.0, "b": 2.0, "c": "x", "odd": 1.0})
    with pytest.raises(ValueError, match=r"of a frame `X.dropna\(how='all'\)`"):
        model.complete(with_column(T).mask(np.tile(EVERY == 0, (4, 1)).T))


def tables_with_gaps():
    frame = pl.DataFrame(
        {
            "a": gappy(T.tolist()),
            "word": gappy("uvwx" * 10),
            "level": pl.Series(gappy("xy" * 20), dtype=pl.Enum(["y", "x"])),
            "whole": pl.Series(gappy((EVERY % 9).tolist()), dtype=pl.Int16),
            "count": pl.Series(gappy((EVERY % 9).tolist()), dtype=pl.UInt64),
            "day": gappy(DAYS.dt.date.tolist()),
            "price": pl.Series(gappy(PRICES), dtype=pl.Decimal(9, 2)),
            "flag": gappy((T > 0.3).tolist()),
            "span": pl.Series(HOURS.to_pytimedelta().tolist()),
        }
    )
    return [pytest.param(frame, id="polars"), pytest.param(frame.to_arrow(), id="pyarrow")]


@pytest.mark.parametrize("table", tables_with_gaps())
def test_tables_with_gaps_come_back_in_their_types(table):
    model = fitted(table)
    assert model.left_out_ == {}
    assert model.inverse_transform(model.transform(table)).schema == table.schema
    filled = model.complete(table)
    assert filled.schema == table.schema
    given, found = (pa.table(each).to_pylist() for each in (table, filled))
    for row, other in zip(given, found, strict=True):
        assert None not in other.values()
        assert {**other, **{k: v for k, v in row.items() if v is not None}} == other
    # Fractions between whole numbers are rounded, not cut.
    exact = model._filled(model.features(table))[0][:, model.feature_labels().index("whole")]
    np.testing.assert_array_equal([row["whole"] for row in found], np.rint(exact))

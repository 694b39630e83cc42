from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from twofold import (
    UKR,
    ManifoldImputer,
    ManifoldOutlierDetector,
    Mixed,
    NadarayaWatson,
    Scaled,
    upgrade,
)
from twofold.checks.rows import check_missing, check_numeric, checked_weights, describe_values

NAN = np.nan


def test_partly_observed_tables_pass():
    check_missing(np.array([[1.0, NAN], [NAN, 2.0]]))
    check_missing(np.ones((3, 2)))


def test_rows_without_entries_are_counted_and_named():
    Y = np.array([[1.0, 2.0], [NAN, NAN], [3.0, 4.0], [NAN, NAN]])
    with pytest.raises(ValueError, match=r"2 row\(s\).*first: row 1.*Leave them out"):
        check_missing(Y)


def test_columns_without_entries_are_named_by_number_or_name():
    Y = np.array([[1.0, NAN], [3.0, NAN]])
    with pytest.raises(ValueError, match=r"1 column\(s\).*first: column 1"):
        check_missing(Y)
    with pytest.raises(ValueError, match="first: column 'age'"):
        check_missing(Y, np.array(["height", "age"]))


def test_columns_matter_only_where_something_is_learned():
    check_missing(np.array([[1.0, NAN]]), columns=False)


def test_rows_are_described_by_their_first_values():
    assert describe_values(np.arange(20.0).reshape(2, 10), limit=3) == "[0. 1. 2.]"


def frame(names: str = "abc") -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list(names))


def test_numbers_of_any_kind_pass():
    for table in (frame(), frame().to_numpy(), frame().to_numpy().tolist(), pl.DataFrame(frame())):
        check_numeric(table)
    check_numeric(frame().assign(a=pd.arrays.SparseArray(np.ones(40), fill_value=np.nan)))
    check_numeric(frame().astype(pd.SparseDtype(float, 0)))


def test_columns_of_the_same_name_are_named():
    with pytest.raises(ValueError, match=r"several columns are called 'a'\. Rename them"):
        UKR().fit(frame("aab"))


def test_a_lazy_frame_is_to_be_collected():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TypeError, match=r"`collect\(\)` first"):
            UKR().fit(pl.DataFrame(frame()).lazy())


def test_sparse_columns_that_leave_out_nan_are_to_be_made_dense():
    sparse = frame().astype(pd.SparseDtype(float, np.nan))
    with pytest.raises(ValueError, match=r"X\.sparse\.to_dense\(\)"):
        UKR().fit(sparse)
    check_numeric(sparse.sparse.to_dense())


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (frame().to_records(), "records with the fields 'index', 'a', 'b', 'c'.*data frame"),
        (frame().to_numpy().astype("M8[s]"), r"datetime64\[s\].*Turn times into numbers"),
        (frame().to_numpy().astype("m8[s]"), r"timedelta64\[s\].*Turn times into numbers"),
        (frame().to_numpy() + 1j, "Complex data not supported; got an array of complex128"),
        ((frame().to_numpy() + 1j).tolist(), "Complex data not supported"),
        (list(frame().to_numpy().astype("M8[s]")), "Turn times into numbers"),
    ],
    ids=["records", "dates", "durations", "complex", "list of complex", "list of dates"],
)
def test_arrays_of_other_things_are_refused_in_a_sentence(table, words):
    with pytest.raises(ValueError, match=words) as error:
        UKR().fit(table)
    assert len(str(error.value)) < 250


# Weights of rows

ROWS = np.random.default_rng(0).normal(size=(20, 3))


def test_none_means_ones():
    np.testing.assert_array_equal(checked_weights(None, ROWS), np.ones(20))


@pytest.mark.parametrize("size", [1e-300, 1e-61, 1e61, 1e300])
def test_weights_that_leave_the_range_of_numbers_are_refused(size):
    weights = np.full(20, size)
    with pytest.raises(ValueError, match=r"largest entry of `sample_weight` is .*divide all"):
        UKR(max_iter=1, random_state=0).fit(ROWS, sample_weight=weights)
    with pytest.raises(ValueError, match="largest entry"):
        NadarayaWatson().fit(ROWS, ROWS[:, 0], sample_weight=weights)
    with pytest.raises(ValueError, match="largest entry"):
        upgrade(ROWS[:, :2], ROWS, sample_weight=weights)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -1.0])
def test_odd_weights_are_refused(odd):
    weights = np.ones(20)
    weights[3] = odd
    with pytest.raises(ValueError, match=r"[Ss]ample"):
        upgrade(ROWS[:, :2], ROWS, sample_weight=weights)


def test_a_weight_may_be_next_to_nothing():
    weights = np.ones(20)
    weights[3] = 1e-200
    model = UKR(max_iter=3, random_state=0).fit(ROWS, sample_weight=weights)
    assert np.isfinite(model.embedding_).all()


def test_as_many_weights_as_rows():
    with pytest.raises(ValueError, match=r"one number for each of the 4 rows; got .* \(3,\)"):
        checked_weights(np.ones(3), np.ones((4, 2)))


def test_rows_of_different_lengths_are_named():
    with pytest.raises(ValueError, match="row 0 has 2 and row 2 has 1"):
        check_numeric([[1, 2], (3, 4), [5]])


@pytest.mark.parametrize(
    ("fit", "advice"),
    [
        (UKR().fit, r"`Mixed\(UKR\(\)\).fit\(table\)`"),
        (Scaled().fit, r"`Mixed\(UKR\(\)\).fit\(table\)`"),
        (ManifoldImputer().fit, r"`Mixed\(\).fit\(table\).complete\(table\)`"),
        (ManifoldOutlierDetector().fit, r"`Mixed\(\).fit\(table\).p_values\(table\)`"),
        (
            lambda table: upgrade(np.eye(9)[:, :2], table),
            r"`Mixed\(UKR\(init=picture, max_iter=0\)",
        ),
    ],
)
def test_what_takes_categories_is_named(fit, advice):
    table = pd.DataFrame({"a": np.arange(9) ** 0.5, "b": list("xyzxyzxyz")})
    with pytest.raises(ValueError, match=r"could not convert 'b' .*" + advice):
        fit(table)


def test_that_advice_holds():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=20), "b": list("xy") * 10})
    picture = rng.normal(size=(20, 2))
    model = Mixed(UKR(init=picture, max_iter=0)).fit(table)
    np.testing.assert_allclose(model.embedding_, picture, rtol=0.01)
    assert list(model.inverse_transform(picture)) == ["a", "b"]
    assert model.p_values(table).shape == (20,)
    with pytest.raises(ValueError, match="Pass them as numbers, as for the fit"):
        UKR(max_iter=1).fit(table[["a"]].assign(b=picture[:, 0])).transform(table)

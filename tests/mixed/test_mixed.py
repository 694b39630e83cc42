from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from oracles.mixed import kernel_probabilities
from sklearn.base import clone

from twofold import UKR, KernelPCA, Mixed, load
from twofold.mixed import UnknownLevelWarning

N = 160
QUICK = {"init": "pca", "max_iter": 5, "random_state": 0}


def make_table(n: int = N) -> pd.DataFrame:
    """A sheet with coordinates t and u, seen through columns of every kind."""
    rng = np.random.default_rng(0)
    t, u = rng.random((2, n))
    start = pd.Timestamp("2015-01-01", tz="Europe/Berlin")
    sizes = np.array(["small", "medium", "large"])
    return pd.DataFrame(
        {
            "name": [f"p{k}" for k in range(n)],
            "length": np.sin(3 * t) + 0.02 * rng.normal(size=n),
            "price": np.exp(6 * t),
            "visits": rng.poisson(6 * u**4),
            "size": pd.Categorical(
                sizes[np.minimum((3 * u).astype(int), 2)], [*sizes, "huge"], ordered=True
            ),
            "colour": np.array(["blue", "green", "red", "teal"])[(4 * t).astype(int)],
            "sold": t > u,
            "when": start + pd.to_timedelta(np.round(t * 1500), unit="D"),
            "unit": "kg",
        },
        index=pd.Index([f"r{k}" for k in range(n)], name="key"),
    )


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return make_table()


@pytest.fixture(scope="module")
def model(table) -> Mixed:
    return Mixed(UKR(**QUICK)).fit(table)


@pytest.fixture(scope="module")
def gappy(table) -> pd.DataFrame:
    found, rng = table.copy(), np.random.default_rng(1)
    for name in ("length", "size", "colour", "when", "sold", "visits"):
        found[name] = found[name].astype(
            {"sold": "boolean", "visits": "Int64"}.get(name, found[name].dtype)
        )
        found.loc[rng.random(N) < 0.1, name] = None
    return found


def test_kinds_are_chosen_and_said(model):
    kinds = {column.name: column.kind for column in model.columns_}
    assert kinds == {
        "length": "number",
        "price": "log",
        "visits": "count",
        "size": "ordered",
        "colour": "category",
        "sold": "category",
        "when": "date",
        "unit": "constant",
    }
    assert list(model.left_out_) == ["name"]
    assert list(model.feature_names_in_) == list(kinds)
    said = {column.name: column.described() for column in model.columns_}
    assert said["when"] == ("date (its type): elapsed time, season on a circle, at 00:00 to 01:00")
    assert said["colour"].endswith("4 levels")


def test_the_way_back_is_the_table(table, model):
    back = model.inverse_transform(model.embedding_)
    assert list(back) == [name for name in table if name != "name"]
    assert all(back[name].dtype == table[name].dtype for name in back)
    assert list(back["size"].cat.categories) == ["small", "medium", "large", "huge"]
    assert str(back["when"].dt.tz) == "Europe/Berlin"
    assert (back["colour"].to_numpy() == table["colour"]).mean() > 0.9
    assert (back["size"].to_numpy() == table["size"]).mean() > 0.9
    off = np.abs((back["when"].to_numpy() - table["when"].to_numpy()) / pd.Timedelta(days=1))
    assert np.median(off.astype(float)) < 60
    ratio = np.log(back["price"].to_numpy() / table["price"])
    assert np.abs(ratio).mean() < 0.5


def test_probabilities_are_shares_of_rows_nearby(table, model):
    x = [0.3, -0.2]
    _, found = model.inverse_transform([x], return_probabilities=True)
    description = model.kernel_regression()
    P = found["colour"]
    assert list(P) == ["blue", "green", "red", "teal"]
    expected = kernel_probabilities(
        x,
        model.embedding_.tolist(),
        table["colour"].tolist(),
        float(np.ravel(description.latent_scale)[0]),
        list(P),
    )
    np.testing.assert_allclose(P.iloc[0], expected, atol=1e-5)
    assert set(found) == {"size", "colour", "sold"}


def test_gaps_are_filled_and_the_rest_is_untouched(table, model, gappy):
    filled, P = model.complete(gappy, return_probabilities=True)
    assert not filled.drop(columns="name").isna().any().any()
    assert (filled.dtypes == gappy.dtypes).all()
    assert filled.index.equals(gappy.index)
    for name in table:
        there = gappy[name].notna()
        assert (filled[name][there] == gappy[name][there]).all()
    for name in ("colour", "size"):
        gone = gappy[name].isna()
        assert (filled[name][gone] == table[name][gone]).mean() > 0.7
    np.testing.assert_allclose(P["colour"].sum(axis=1), 1)
    assert P["colour"].index.equals(gappy.index)


def test_a_fit_takes_gaps(gappy):
    model = Mixed(UKR(**QUICK)).fit(gappy)
    assert model.inverse_transform(model.embedding_[:3])["sold"].dtype == "boolean"
    assert np.isfinite(model.score(gappy))


def test_draws_are_tables(gappy, model):
    first, second = model.complete(gappy, n_draws=2, random_state=0)
    assert (first.dtypes == gappy.dtypes).all()
    assert not first["length"].equals(second["length"])


def test_a_new_level_counts_as_missing_with_one_warning(table, model):
    new = table.head(5).copy()
    new["colour"] = ["pink", "blue", "pink", "grey", "red"]
    with pytest.warns(UserWarning, match="colour: 'pink', 'grey'") as caught:
        X = model.transform(new)
    assert len(caught) == 1
    gone = new.copy()
    gone.loc[new["colour"].isin(["pink", "grey"]), "colour"] = None
    np.testing.assert_array_equal(X, model.transform(gone))
    with pytest.warns(UserWarning, match="pink"):
        assert model.complete(new)["colour"].tolist() == new["colour"].tolist()


def test_columns_that_tell_nothing_are_not_needed(table, model):
    X = model.transform(table.drop(columns=["unit", "name"]))
    np.testing.assert_array_equal(X, model.embedding_)
    with pytest.raises(ValueError, match=r"lacks 6 of the 7 columns .* and 1 more\."):
        model.transform(table[["colour"]])
    with pytest.raises(ValueError, match="lacks 1 of the 7 columns of the fit: 'colour'"):
        model.transform(table.drop(columns="colour"))
    shuffled = table[list(table)[::-1]].assign(more=1)
    np.testing.assert_array_equal(model.transform(shuffled), model.embedding_)


def test_jacobian_by_differences(model):
    X, step = model.embedding_[:4], 1e-5
    J = model.jacobian(X)
    assert J.shape == (4, 8, 2)
    names = list(model.feature_names_in_)
    for m in range(2):
        ends = X.copy(), X.copy()
        ends[0][:, m] -= step
        ends[1][:, m] += step
        (low, p_low), (high, p_high) = (
            model.inverse_transform(end, return_probabilities=True) for end in ends
        )
        for name in ("length", "price"):
            slope = (high[name] - low[name]) / (2 * step)
            np.testing.assert_allclose(J[:, names.index(name), m], slope, rtol=1e-3, atol=1e-6)
        moved = (p_high["colour"] - p_low["colour"]).abs().sum(axis=1) / 2 / (2 * step)
        np.testing.assert_allclose(J[:, names.index("colour"), m], moved, rtol=1e-3, atol=1e-6)
        levels = (p_high["size"] - p_low["size"]) @ np.arange(3) / (2 * step)
        np.testing.assert_allclose(J[:, names.index("size"), m], levels, rtol=1e-3, atol=1e-6)
    assert (J[:, names.index("unit")] == 0).all()


def test_slopes_are_of_columns_in_the_units_of_the_jacobian(model):
    X = model.embedding_[:4]
    slopes, std = model.slopes(X, return_std=True)
    assert slopes.shape == std.shape == model.jacobian(X).shape == (4, 8, 2)
    np.testing.assert_array_equal(model.slopes(X), slopes)
    raw, raw_std = model.as_numbers().slopes(X, return_std=True)
    labels = model.feature_labels()
    price = model.inverse_transform(X)["price"].to_numpy()[:, None]
    found = dict(zip(model.feature_names_in_, np.moveaxis(slopes, 1, 0), strict=True))
    errors = dict(zip(model.feature_names_in_, np.moveaxis(std, 1, 0), strict=True))
    at = labels.index("log(price)")
    np.testing.assert_allclose(found["price"], raw[:, at] * price, rtol=1e-6)
    np.testing.assert_allclose(errors["price"], raw_std[:, at] * price, rtol=1e-6)
    np.testing.assert_allclose(found["when"], raw[:, labels.index("when")], rtol=1e-6)
    colours = [labels.index(f"colour = {name}") for name in ("blue", "green", "red", "teal")]
    moved = np.abs(raw[:, colours]).sum(axis=1) / 2
    np.testing.assert_allclose(found["colour"], moved, rtol=1e-6)
    assert np.isnan(errors["colour"]).all()
    assert np.isnan(errors["size"]).all()


def test_scores_of_columns_add_up(table, model):
    found = model.score_columns(table)
    assert list(found) == list(model.feature_names_in_)
    np.testing.assert_allclose(found.sum(axis=1), model.score_samples(table), atol=1e-9)
    assert found["unit"].eq(0).all()


def test_weights_count_for_columns(table):
    plain, heavy = (
        Mixed(UKR(1, **QUICK), weights=weights).fit(table) for weights in (None, {"visits": 20})
    )
    assert (heavy.spread_ < plain.spread_).sum() == 1
    ratio = plain.spread_ / heavy.spread_
    assert ratio.max() == pytest.approx(np.sqrt(20))


def test_kinds_can_be_overruled(table):
    years = table.assign(year=2000 + np.arange(N) % 4)
    model = Mixed(UKR(**QUICK), kinds={"year": "category", "price": "number", "colour": "out"})
    model.fit(years)
    kinds = {column.name: column.kind for column in model.columns_}
    assert kinds["year"] == "category"
    assert kinds["price"] == "number"
    assert model.left_out_["colour"] == "as asked"
    assert model.inverse_transform(model.embedding_[:2])["year"].dtype == years["year"].dtype


def test_saved_and_opened(table, gappy, model, tmp_path):
    model.annotate(names=table["name"])
    model.save(tmp_path / "m.twofold")
    again = load(tmp_path / "m.twofold")
    assert isinstance(again, Mixed)
    pd.testing.assert_frame_equal(again.complete(gappy), model.complete(gappy))
    pd.testing.assert_frame_equal(again.sample(4, random_state=0), model.sample(4, random_state=0))
    assert [c.described() for c in again.columns_] == [c.described() for c in model.columns_]
    assert again.left_out_ == model.left_out_
    assert list(again.notes_.names) == list(table["name"])


def as_polars(table: pd.DataFrame) -> pl.DataFrame:
    found = pl.from_pandas(table)
    sizes = pl.Enum(["small", "medium", "large", "huge"])
    return found.with_columns(
        pl.col("size").cast(pl.String).cast(sizes),
        pl.col("when").dt.date().alias("day"),
        pl.col("visits").cast(pl.UInt16),
    )


def as_arrow(table: pd.DataFrame) -> pa.Table:
    found = pa.Table.from_pandas(table, preserve_index=False)
    days = pa.array(table["when"].dt.date)
    assert pa.types.is_date32(days.type)
    return found.append_column("day", days)


@pytest.mark.parametrize("convert", [as_polars, as_arrow])
def test_tables_of_other_libraries(table, convert, tmp_path):
    given = convert(table)
    model = Mixed(UKR(**QUICK)).fit(given)
    back = model.inverse_transform(model.embedding_[:3])
    assert type(back) is type(given)
    for column in model.columns_:
        if convert is as_polars:
            assert back.schema[column.name] == given.schema[column.name]
        else:
            assert back.schema.field(column.name).type == given.schema.field(column.name).type
    assert model.reconstruct(given).schema == given.schema
    assert model.complete(given).equals(given)
    model.save(tmp_path / "m.twofold")
    assert (
        load(tmp_path / "m.twofold")
        .sample(2, random_state=0)
        .equals(model.sample(2, random_state=0))
    )


def test_new_rows_are_taken_in(table):
    model = Mixed(UKR(**QUICK)).fit(table.head(100))
    model.partial_fit(table.tail(60))
    assert model.embedding_.shape == (N, 2)
    assert (
        model.inverse_transform(model.embedding_)["colour"].to_numpy() == table["colour"]
    ).mean() > 0.8


def test_other_models_inside_and_clones(table):
    model = Mixed(KernelPCA(2), kinds={"visits": "number"})
    assert clone(model).get_params()["kinds"] == {"visits": "number"}
    back = model.fit(table).reconstruct(table)
    assert list(back) == list(table)
    assert back["name"].equals(table["name"])
    assert (back["colour"] == table["colour"]).mean() > 0.6


def test_as_numbers_is_the_same_map(table, model):
    numbers = model.as_numbers()
    names = list(numbers.feature_names_in_)
    assert names[:5] == ["length", "log(price)", "log(1 + visits)", "size > small", "size > medium"]
    F = numbers.inverse_transform(model.embedding_)
    back = model.inverse_transform(model.embedding_)
    np.testing.assert_allclose(np.exp(F[:, 1]), back["price"], rtol=1e-6)
    assert numbers.jacobian(model.embedding_[:2]).shape == (2, len(names), 2)
    np.testing.assert_array_equal(numbers.embedding_, model.embedding_)
    assert numbers.as_numbers() is numbers


def test_intervals_and_oddities(table, model):
    new = make_table(N + 400)[N:]  # its own rows lie where a fit of a few steps left them
    gappy = new.assign(length=np.nan)
    for given in (new, gappy):
        low, high = model.intervals(given)
        inside = (low["length"] <= new["length"]) & (new["length"] <= high["length"])
        # Some 25 hidden lengths and 30 entries of others tell it: 0.9 less two standard errors.
        assert inside.mean() > 0.82
    assert (low["when"] <= high["when"]).all()
    assert low["colour"].isna().all()
    odd = table.head(3).copy()
    odd["length"] = [50.0, *odd["length"][1:]]
    explanation = model.explain(odd)
    assert explanation.deviations.shape == (3, 8)
    assert explanation.features(0)[0] == list(model.feature_names_in_).index("length")
    assert list(explanation.expected) == list(model.feature_names_in_)


def test_deviations_are_in_units_of_the_columns(model):
    back, std = model.inverse_transform(model.embedding_, return_std=True)
    assert list(std) == list(back)
    assert std["colour"].isna().all()
    assert 0 < std["length"].median() < 0.5
    assert 1 < std["when"].median() < 400


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda t: Mixed(kinds={"price": "money"}).fit(t),
            ValueError,
            "must be one of .*got 'money'",
        ),
        (lambda t: Mixed(kinds={"prize": "log"}).fit(t), ValueError, "it has no 'prize'"),
        (lambda t: Mixed(weights={"price": 0}).fit(t), ValueError, "finite number above 0"),
        (lambda t: Mixed(weights=[1]).fit(t), TypeError, "must be a dict"),
        (lambda t: Mixed().fit(np.ones((9, 2))), TypeError, "twofold.Scaled"),
        (lambda t: Mixed().fit(t[["name", "unit"]]), ValueError, "tells anything: 'name'"),
        (lambda t: Mixed().fit(t.set_axis(range(9), axis=1)), ValueError, "text as its name"),
        (lambda t: Mixed().fit("table.csv"), (TypeError, ValueError), "table"),
    ],
)
def test_wrong_input(table, make, error, message):
    with pytest.raises(error, match=message):
        make(table)


def test_numbers_alone_are_what_scaled_makes_of_them(table):
    from twofold import Scaled

    numbers = table[["length", "price"]].assign(more=table["length"] * 2 + table["visits"])
    kinds = dict.fromkeys(numbers, "number")
    mixed = Mixed(UKR(1, **QUICK), kinds=kinds).fit(numbers)
    scaled = Scaled(UKR(1, **QUICK)).fit(numbers)
    np.testing.assert_allclose(mixed.embedding_, scaled.embedding_, rtol=1e-6, atol=1e-9)


def test_no_warning_without_a_reason(table, model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.transform(table)


def test_features_there_and_back(table, gappy, model):
    F = model.features(table)
    assert F.shape == (N, len(model.feature_labels()))
    back = model.from_features(F)
    assert (back["colour"].to_numpy() == table["colour"]).all()
    assert (back["when"].to_numpy() == table["when"].to_numpy()).all()
    filled = model.from_features(F, like=gappy)
    assert (filled["colour"] == table["colour"]).all()
    assert filled.dtypes.equals(gappy.dtypes)
    with pytest.raises(ValueError, match="Expected features with"):
        model.from_features(F[:, :2])


def test_indicators_of_a_column_are_hidden_together():
    from twofold.noise.hidden_entries import entries_to_hide

    observed = np.ones((200, 5), dtype=bool)
    groups = np.array([0, 1, 1, 1, 2])
    hidden = entries_to_hide(observed, np.random.RandomState(0), groups)
    assert (hidden[:, 1] == hidden[:, 2]).all()
    assert (hidden[:, 1] == hidden[:, 3]).all()
    assert 0.05 < hidden.mean() < 0.3


def test_an_odd_level_is_found_by_the_other_columns(table, model):
    odd = table.head(4).copy()
    others = {"blue": "teal", "teal": "blue", "green": "teal", "red": "blue"}
    odd["colour"] = odd["colour"].map(others)
    k = list(model.feature_names_in_).index("colour")
    usual = model.explain(table.head(4)).deviations[:, k]
    assert (model.explain(odd).deviations[:, k] > usual).all()


@pytest.mark.parametrize("dtype", [pd.ArrowDtype(pa.string()), pd.StringDtype("pyarrow")])
def test_texts_of_arrow_come_back_in_their_own_type(table, tmp_path, dtype):
    given = table.drop(columns="name").astype({"colour": dtype, "unit": dtype})
    given["size"] = given["colour"].astype("category")
    fitted = Mixed(UKR(**QUICK)).fit(given)
    fitted.save(tmp_path / "m.twofold")
    for own in (fitted, load(tmp_path / "m.twofold")):
        back = own.inverse_transform(own.embedding_[:3])
        for name in ("colour", "unit"):
            assert repr(back.dtypes[name]) == repr(dtype)
            assert back.dtypes[name] == dtype
        assert back["size"].cat.categories.dtype == dtype


def test_what_counts_as_missing_is_said_by_what_was_wanted(model, table):
    strange = table.head(3).copy()
    strange["price"] = [-1.0, 2.0, 0.0]
    strange["visits"] = [-3, 1, 2]
    strange["colour"] = "pink"
    for answer in (model.transform, model.reconstruct, model.complete, model.explain):
        with pytest.warns(UnknownLevelWarning) as caught:
            answer(strange)
        assert {warning.filename for warning in caught} == {__file__}
    said = str(caught[0].message)
    assert "No number above 0, and counted as missing: price: '-1.0', '0.0'." in said
    assert "No number of at least 0, and counted as missing: visits: '-3'." in said
    assert "Unknown to the fit, and counted as missing: colour: 'pink'." in said

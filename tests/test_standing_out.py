"""What stands out at a place or in some rows, against plain formulas and known structure."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from twofold import UKR, Mixed, Scaled
from twofold.standing_out import what_stands_out


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    t = rng.random(80)
    found = pd.DataFrame(rng.normal(size=(80, 6)), columns=list("abcdef"))
    found["c"] = 3 * t + 0.1 * rng.normal(size=80)
    found["f"] = -2 * t + 0.1 * rng.normal(size=80)
    return found.assign(t=t)


@pytest.fixture(scope="module")
def model(rows) -> Scaled:
    return Scaled(UKR(1, init="pca", max_iter=2, random_state=0)).fit(rows)


def test_rows_against_the_others_by_the_formula(rows, model):
    chosen = (rows["t"] > 0.8).to_numpy()
    found = what_stands_out(model, chosen)
    here, there = rows[chosen].mean(), rows[~chosen].mean()
    expected = (here - there) / rows.std(ddof=0)
    np.testing.assert_allclose(found["difference"], expected[found.index], rtol=1e-6)
    np.testing.assert_allclose(found["spread"], rows[chosen].std(ddof=0)[found.index], rtol=1e-6)
    assert set(found.index[:3]) == {"c", "f", "t"}
    again = what_stands_out(model, np.flatnonzero(chosen))
    pd.testing.assert_frame_equal(found, again)


def test_a_place_against_all_rows_and_another_place(rows, model):
    x, other = model.embedding_[[3, 7]].astype(float)
    found = what_stands_out(model, x)
    np.testing.assert_allclose(
        found["here"], model.inverse_transform([x])[0][rows.columns.get_indexer(found.index)]
    )
    np.testing.assert_allclose(found["there"], rows.mean()[found.index], rtol=1e-6)
    assert (found["spread"] > 0).all()
    between = what_stands_out(model, x, other)
    back = what_stands_out(model, other, x)
    np.testing.assert_allclose(between["difference"], -back["difference"][between.index])
    assert np.abs(found["difference"]).is_monotonic_decreasing


@pytest.fixture(scope="module")
def mixed(rows) -> Mixed:
    days = pd.to_timedelta(np.round(1500 * rows["t"]), unit="D")
    table = rows[["a"]].assign(
        colour=np.where(rows["t"] > 0.8, "red", np.where(rows["b"] > 0, "blue", "green")),
        price=np.exp(3 * rows["t"] ** 2),
        bought=pd.Timestamp("2018-01-01") + days,
        took=pd.to_timedelta(rows["t"], unit="h"),
        **{"How do you like it?" * 3: np.where(rows["t"] > 0.8, "no", "yes, I do")},
        size=pd.Categorical(np.where(rows["t"] > 0.8, "large", "small"), ["small", "large"], True),
    )
    kinds = {"price": "log"}
    return Mixed(UKR(1, init="pca", max_iter=2, random_state=0), kinds).fit(table)


def test_columns_of_mixed_tables_are_listed_once_in_their_units(rows, mixed):
    chosen = (rows["t"] > 0.8).to_numpy()
    found = what_stands_out(mixed, chosen)
    question = "How do you like it?" * 3 + " = no"
    assert len(mixed.feature_labels()) == 12
    assert set(found.index) == {
        "a", "colour = red", "price", "bought", "took", question, "size > small"
    }  # fmt: skip
    t = rows["t"][chosen]
    assert list(found.loc["colour = red", ["here", "there", "spread"]]) == [1, 0, 0]
    assert found.loc["price", "here"] == pytest.approx(np.exp(3 * (t**2).mean()), rel=1e-5)
    start, took = pd.Timestamp("2018-01-01"), found.loc["took", "here"]
    assert abs((found.loc["bought", "here"] - start).days - 1500 * t.mean()) < 2
    assert took.total_seconds() == pytest.approx(3600 * t.mean(), rel=1e-4)
    # Of two levels the one above usual is named.
    assert found.loc[question, "difference"] > 0
    assert question.replace("= no", "= yes, I do") in what_stands_out(mixed, ~chosen).index


def test_rows_are_found_by_their_names(rows):
    model = Scaled(UKR(1, init="pca", max_iter=2, random_state=0)).fit(rows)
    model.annotate(names=[f"item {row}" for row in range(80)])
    pd.testing.assert_frame_equal(
        what_stands_out(model, "item 3"), what_stands_out(model, model.embedding_[3].astype(float))
    )
    pd.testing.assert_frame_equal(
        what_stands_out(model, ["item 3", "item 5"], "item 7"),
        what_stands_out(model, [3, 5], model.embedding_[7].astype(float)),
    )
    with pytest.raises(ValueError, match="No row is called 'thing'"):
        what_stands_out(model, "thing")
    model.annotate(names=["twin"] * 2 + [f"item {row}" for row in range(78)])
    with pytest.raises(ValueError, match="2 rows are called 'twin'; pass a number"):
        what_stands_out(model, "twin")


def test_rounding_is_no_spread(rows):
    table = rows[["a", "c"]].assign(share=0.1)
    table.loc[70:, "share"] = 0.7
    model = Scaled(UKR(1, init="pca", max_iter=2, random_state=0)).fit(table)
    found = what_stands_out(model, range(70))
    assert found.loc["share", "spread"] == 0.0
    table["share"] = 0.1
    model = Scaled(UKR(1, init="pca", max_iter=2, random_state=0)).fit(table)
    assert what_stands_out(model, [0]).loc["share", "difference"] == 0.0


def test_circles_of_dates_are_left_out(rows):
    days = pd.to_timedelta(np.round(1500 * rows["t"]), unit="D")
    table = rows[["a"]].assign(bought=pd.Timestamp("2018-01-01") + days)
    model = Mixed(UKR(1, init="pca", max_iter=2, random_state=0)).fit(table)
    assert len(model.feature_labels()) == 4
    found = what_stands_out(model, (rows["t"] > 0.5).to_numpy())
    assert sorted(found.index) == ["a", "bought"]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ([0.1, 0.2], "a latent place of 1 numbers"),
        ([99], "numbers from 0 to 79"),
        (np.zeros(80, dtype=bool), "one of them True"),
        ("row", "The rows have no names"),
        ([[1, 2]], "Expected a latent place"),
    ],
)
def test_wrong_places(model, where, message):
    with pytest.raises(ValueError, match=message):
        what_stands_out(model, where)


def test_landmarks_know_no_usual_row(rows):
    model = UKR(1, landmarks=10, init="pca", max_iter=2, random_state=0).fit(rows)
    with pytest.raises(ValueError, match="Fit without landmarks"):
        what_stands_out(model, [0.0])


def test_the_picture_has_the_largest_first(model):
    plots = pytest.importorskip("twofold.plots")
    ax = plots.what_stands_out(model, model.embedding_[3].astype(float), n=4)
    found = what_stands_out(model, model.embedding_[3].astype(float))
    assert [label.get_text() for label in ax.get_yticklabels()] == list(found.index[:4])
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, found["difference"][:4])


def test_a_long_name_keeps_its_level(mixed):
    plots = pytest.importorskip("twofold.plots")
    ax = plots.what_stands_out(mixed, mixed.embedding_[3].astype(float))
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert len(names) == 7
    assert any(name.startswith("How do") and name.endswith("= yes, I do") for name in names)

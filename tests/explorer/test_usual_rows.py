"""What is usual for rows, how labels and numbers are written: what the page is told."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from explorer.browsing import OPTIONS, smooth_images

from twofold import UKR, explorer, upgrade
from twofold.contract.label_values import as_days, reading_order
from twofold.contract.row_notes import RowNotes
from twofold.explorer.page import find_payload
from twofold.explorer.scale import Scale, decimals_of
from twofold.explorer.usual_rows import have_order, usual_rows
from twofold.standing_out import what_stands_out


def words(n=80, D=40, seed=0):
    """Return a model of many features without order."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    Y = np.sin(X @ rng.normal(size=(2, D))) + 0.1 * rng.normal(size=(n, D))
    return upgrade(X, pd.DataFrame(Y, columns=[f"gene {k:02d}" for k in range(D)]), **OPTIONS)


def asked(**more):
    return {**dict.fromkeys(("data", "labels", "names")), "view": "auto", **more}


def test_usual_is_what_python_compares_with():
    model = words()
    model.data_[3:9, 4] = np.nan
    model.data_[:, 7] = 2.5
    found = usual_rows(model, None)
    known = what_stands_out(model, model.embedding_[0].astype(float)).sort_index()
    np.testing.assert_allclose(found["mean"], known["there"], rtol=1e-6, atol=1e-7)
    unit = np.nanstd(model.data_.astype(float), axis=0)
    np.testing.assert_allclose(found["deviation"], unit, rtol=1e-5, atol=1e-12)
    assert found["deviation"][7] == 0
    assert found["of"] == "rows"


def test_usual_counts_rows_that_occur_twice():
    _, Y = smooth_images(40, 3)
    model = UKR(init="pca", max_iter=2, **OPTIONS).fit(np.concatenate([Y, Y[:10]]))
    assert len(model.data_) == 40
    both = np.concatenate([Y, Y[:10]])
    np.testing.assert_allclose(usual_rows(model, None)["mean"], both.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(usual_rows(model, None)["deviation"], both.std(axis=0), rtol=1e-5)


def test_landmarks_without_their_table_say_what_is_usual_on_the_map():
    _, Y = smooth_images(60, 3)
    model = UKR(init="pca", landmarks=20, max_iter=2, **OPTIONS).fit(Y)
    assert usual_rows(model, None)["of"] == "map"
    found = usual_rows(model, Y)
    assert found["of"] == "rows"
    np.testing.assert_allclose(found["mean"], Y.mean(axis=0), rtol=1e-6)


def test_columns_of_a_curve_have_an_order_and_genes_have_none():
    rng = np.random.default_rng(0)
    wave = np.sin(np.linspace(0, 9, 60) + 3 * rng.random((50, 1)))
    assert have_order(wave)
    assert not have_order(wave[:, rng.permutation(60)])
    assert not have_order(rng.normal(size=(50, 60)))
    wave[rng.random(wave.shape) < 0.1] = np.nan
    assert have_order(wave)


def test_many_features_without_order_show_what_is_special(tmp_path):
    assert find_payload(words(), None, 20, **asked()).header["view"] == "special"
    X, Y = smooth_images(80, 7)
    assert find_payload(upgrade(X, Y, **OPTIONS), None, 20, **asked()).header["view"] == "curve"


def test_calendar_and_numbers_in_the_order_people_expect():
    def sort(*values):
        return [values[place] for place in reading_order(list(values))]

    assert sort("March", "January", "August") == ["January", "March", "August"]
    assert sort("Dec", "Feb.", "may") == ["Feb.", "may", "Dec"]
    assert sort("Sunday", "Monday", "Fri") == ["Monday", "Fri", "Sunday"]
    assert sort("class 10", "class 9", "b", "7") == ["7", "b", "class 9", "class 10"]
    assert sort("March", "Martin") == ["March", "Martin"]


def test_dates_are_days_since_1970():
    column = np.array(["2020-01-01", "", "1969-12-31 12:00", "2020-01-01"])
    np.testing.assert_array_equal(as_days(column), [18_262, np.nan, -0.5, 18_262])
    times = np.array(["2020-01-01 06:00:00+05:30", "2020-01-01T18:00:00.000Z"])
    np.testing.assert_array_equal(as_days(times), [18_262.25, 18_262.75])
    assert as_days(np.array(["2020-01-01", "soon"])) is None
    assert as_days(np.array(["2020-13-41"])) is None
    assert as_days(np.array(["", ""])) is None


def test_columns_of_dates_become_dates_of_the_page():
    days = pd.Series(pd.date_range("2020-01-30", periods=3)).astype("datetime64[ns]")
    times = days + pd.Timedelta(hours=7)
    months = days.dt.to_period("M").where(days.index != 1)
    given = {"day": days, "time": times.where(days.index != 1), "month": months}
    notes = RowNotes().with_labels(given, 3)
    assert notes.labels["month"].tolist() == ["2020-01-01", "", "2020-02-01"]
    assert notes.labels["day"].tolist() == ["2020-01-30", "2020-01-31", "2020-02-01"]
    assert notes.labels["time"].tolist() == ["2020-01-30T07:00:00", "", "2020-02-01T07:00:00"]
    labels = {name: np.resize(column, 80) for name, column in notes.labels.items()}
    found = find_payload(words(), None, 20, **asked(labels=labels)).header["rows"]["labels"]
    assert found == {
        "day": {"kind": "date", "unit": 86400.0},
        "time": {"kind": "date", "unit": 3600.0},
        "month": {"kind": "date", "unit": 86400.0},
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_with_decimals_are_kept_as_they_are(dtype):
    rng = np.random.default_rng(0)
    Y = np.column_stack([np.round(rng.uniform(-5, 90, 200), 2), rng.integers(0, 900, 200)])
    scale = Scale.of([Y.astype(dtype)], 16)
    assert scale.is_exact
    np.testing.assert_allclose(scale.rounded(Y.astype(dtype)), Y, rtol=0, atol=1e-9)
    assert decimals_of(Y[:, 0].astype(dtype)) == 2
    assert decimals_of(rng.normal(size=200).astype(dtype)) == -1
    # 9.5 million steps do not fit, and in 8 bits 9,500 do not.
    assert not Scale.of([1e3 * Y[:, :1].astype(dtype) + 0.01], 16).is_exact
    assert not Scale.of([Y.astype(dtype)], 8).is_exact


def test_a_second_picture_has_a_place_for_each_row(tmp_path):
    model = words()
    picture = np.random.default_rng(0).normal(size=(80, 3))
    header = find_payload(model, None, 20, **asked(beside={"PCA": picture})).header
    assert header["rows"]["beside"] == "PCA"
    assert header["sections"]["rows.beside"]["shape"] == [80, 2]
    with pytest.raises(TypeError, match="one picture with its title"):
        explorer.write(model, tmp_path / "a.html", beside=picture)
    with pytest.raises(ValueError, match=r"each of the 80 rows; got an array of shape \(79, 3\)"):
        explorer.write(model, tmp_path / "a.html", beside={"PCA": picture[1:]})


def test_a_selection_from_python_names_rows_that_exist():
    pytest.importorskip("anywidget")
    import traitlets

    widget = explorer.show(words())
    widget.selection = [7, 3, 3]
    assert widget.selection == [3, 7]
    with pytest.raises(traitlets.TraitError, match="from 0 to 79; got 3 to 80"):
        widget.selection = [3, 80]

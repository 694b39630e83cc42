"""What rows are coloured by."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from twofold import UKR, load
from twofold.plots import latent_map
from twofold.plots.row_colors import MOST_CATEGORIES, OTHERS, Amounts, Categories, row_colors
from twofold.plots.ticks import show_dates, show_durations


def test_nothing_noted_is_one_color(model):
    assert row_colors(model, None) is None


def test_the_first_label_is_the_default(model, table):
    model.annotate(labels={"digit": table[1], "half": table[1] / 2})
    found = row_colors(model, None)
    assert isinstance(found, Categories)
    assert found.title == "digit"
    assert found.names == [str(digit) for digit in range(10)]
    np.testing.assert_array_equal(found.codes, table[1])
    assert isinstance(row_colors(model, "half"), Amounts)


def test_text_without_a_value_is_in_no_category(model):
    labels = np.array(["b", "", "a"] * 50)
    found = row_colors(model, labels)
    assert found.names == ["a", "b"]
    np.testing.assert_array_equal(found.codes[:3], [1, -1, 0])
    objects = np.array(["b", None, np.nan] * 50, dtype=object)
    np.testing.assert_array_equal(row_colors(model, objects).codes[:3], [0, -1, -1])


def test_booleans_are_categories_and_many_integers_are_not(model):
    assert row_colors(model, np.arange(150) > 70).names == ["False", "True"]
    assert isinstance(row_colors(model, np.arange(150)), Amounts)
    assert row_colors(model, pd.Series(np.arange(150), name="time")).title == "time"


def test_rare_categories_share_one(model):
    texts = np.array([f"c{i:03d}" for i in range(100)] + ["c099"] * 50)
    found = row_colors(model, texts)
    assert len(found.names) == MOST_CATEGORIES
    assert found.names[-1] == OTHERS
    assert "c099" in found.names
    assert found.codes.min() == 0


def test_features_are_the_values_of_the_rows(model, table):
    found = row_colors(model, 36)
    np.testing.assert_array_equal(found.values, table[0][:, 36])
    assert found.title == "x37"
    np.testing.assert_array_equal(row_colors(model, -28).values, table[0][:, 36])
    np.testing.assert_array_equal(row_colors(model, "x37").values, table[0][:, 36])


def test_own_names_come_before_those_of_the_model(table):
    names = [f"p{i}" for i in range(63)] + ["error"]
    frame = pd.DataFrame(table[0] + np.arange(64), columns=names)
    model = UKR(init="pca", max_iter=2).fit(frame)
    np.testing.assert_array_equal(row_colors(model, "error").values, frame["error"])
    model.annotate(labels={"error": table[1]})
    assert isinstance(row_colors(model, "error"), Categories)


def test_what_the_model_says(model, table):
    X = model.embedding_
    np.testing.assert_allclose(row_colors(model, "density").values, model.density(X))
    stretch = row_colors(model, "magnification").values
    np.testing.assert_allclose(10**stretch, model.magnification(X), rtol=1e-6)
    gaps = np.linalg.norm(table[0] - model.inverse_transform(X), axis=1)
    np.testing.assert_allclose(row_colors(model, "error").values, gaps)


def test_rows_of_weight_zero_have_no_value(table):
    weights = np.ones(150)
    weights[3] = 0
    model = UKR(init="pca", max_iter=2).fit(table[0], sample_weight=weights)
    values = row_colors(model, 20).values
    assert np.isnan(values[3])
    np.testing.assert_array_equal(np.delete(values, 3), np.delete(table[0][:, 20], 3))


def test_landmarks_know_reconstructions_only(table):
    model = UKR(landmarks=20, init="isomap", random_state=0, max_iter=5).fit(table[0])
    found = row_colors(model, 20)
    assert "reconstructed" in found.title
    np.testing.assert_allclose(found.values, model.inverse_transform(model.embedding_)[:, 20])
    with pytest.raises(ValueError, match="does not keep them"):
        row_colors(model, "error")


@pytest.mark.parametrize(
    ("color", "message"),
    [
        ("size", r"got 'size'. There are: x1, x2"),
        (64, "between 0 and 63; got 64"),
        (np.zeros(3), r"each of the 150 rows; got an array of shape \(3,\)"),
    ],
)
def test_errors_say_what_is_there(model, color, message):
    with pytest.raises(ValueError, match=message):
        row_colors(model, color)


def test_dates_have_a_scale_of_time(model):
    days = pd.Series(pd.date_range("2020-01-01", periods=150), name="day")
    for dates in (days, days.astype(str), days.dt.tz_localize("Europe/Berlin")):
        found = row_colors(model, dates)
        assert isinstance(found, Amounts)
        assert found.ticks is show_dates
        assert found.values[:2].tolist() == [18262, 18263]
    gappy = days.where(days > "2020-01-02")
    assert np.isnan(row_colors(model, gappy).values).tolist()[:3] == [True, True, False]


def test_durations_have_a_scale_of_their_own(model, tmp_path):
    took = pd.Series(pd.to_timedelta(np.arange(150) * 90.5, unit="s"), name="took")
    took[3] = pd.NaT
    noted = model.annotate(labels=took)
    noted.save(tmp_path / "m")
    for known in (noted, load(tmp_path / "m")):
        for color in ("took", took, list(took.dt.to_pytimedelta())):
            found = row_colors(known, color)
            assert found.ticks is show_durations
            assert found.values[[0, 1, 149]].tolist() == [0, 90.5, 149 * 90.5]
            assert np.isnan(found.values[3])
    ax = latent_map(noted)
    ax.figure.canvas.draw()
    assert {"1 h", "2 h"} <= {text.get_text() for text in ax.child_axes[0].get_yticklabels()}


@pytest.mark.parametrize("names", [["Jan", "Feb", "Apr"], ["step 1", "step 2", "step 10"]])
def test_categories_are_in_the_order_of_reading(model, names):
    found = row_colors(model, np.array(names[::-1] * 50))
    assert found.names == names
    assert found.codes[:3].tolist() == [2, 1, 0]

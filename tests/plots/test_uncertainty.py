"""Pictures of what a map leaves open, and of odd rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from twofold import UKR, Mixed, plots

IRIS = load_iris().data


@pytest.fixture(scope="module")
def model():
    return UKR(init="pca", random_state=0, max_iter=10).fit(IRIS)


def test_intervals_of_a_row_are_drawn_where_they_are(model):
    row = np.array([5.1, np.nan, 1.4, 0.2])
    ax = plots.intervals(model, row, 0.8)
    low, high = model.intervals(row[None], 0.8)
    drawn = np.array([line[:, 1] for line in ax.collections[0].get_segments()])
    center, unit = IRIS.mean(axis=0), IRIS.std(axis=0)
    np.testing.assert_allclose(drawn[:, 0], (low[0] - center) / unit, rtol=1e-6)
    np.testing.assert_allclose(drawn[:, 1], (high[0] - center) / unit, rtol=1e-6)
    assert [line.get_label() for line in ax.lines] == ["observed", "filled"]


def test_odd_rows_are_drawn_with_what_makes_them_odd(model):
    rows = IRIS[:40].copy()
    rows[7, 2] += 3
    ax = plots.odd_rows(model, rows, 5)
    assert ax.get_yticklabels()[0].get_text().startswith("row 8, p = ")
    cells = ax.images[0].get_array()
    assert cells.shape == (5, 4)
    np.testing.assert_allclose(cells[0], model.explain(rows[7:8]).deviations[0], rtol=1e-6)


def test_odd_rows_have_the_names_that_users_know_them_by(model):
    def first(ax):
        return ax.get_yticklabels()[0].get_text().split(",")[0]

    oddest = int(np.argmin(model.log_likelihood(IRIS)))
    assert first(plots.odd_rows(model, n=1)) == f"row {oddest + 1}"  # not as they are kept
    frame = pd.DataFrame(IRIS, index=[f"flower {i}" for i in range(150)])
    assert first(plots.odd_rows(model, frame, 1)) == f"flower {oddest}"
    landmarks = UKR(init="pca", max_iter=1, landmarks=20).fit(IRIS)
    with pytest.raises(ValueError, match=r"odd_rows\(model, X\)"):
        plots.odd_rows(landmarks)


def test_intervals_are_those_of_one_row(model):
    with pytest.raises(ValueError, match=r"one row of 4 entries; got an array of shape \(3, 4\)"):
        plots.intervals(model, IRIS[:3])


def test_rows_of_models_with_names_are_drawn_without_a_warning():
    frame = load_iris(as_frame=True).data
    named = UKR(init="pca", random_state=0, max_iter=3).fit(frame)
    plots.intervals(named, frame.iloc[0])
    plots.intervals(named, [5.1, np.nan, 1.4, 0.2])


def test_a_picture_of_intervals_holds_its_names():
    names = [f"a_long_name_of_column_{k}" for k in range(4)]
    frame = load_iris(as_frame=True).data.set_axis(names, axis=1)
    model = UKR(init="pca", max_iter=2).fit(frame)
    ax = plots.intervals(model, IRIS[0])
    ax.figure.canvas.draw()
    whole = ax.figure.bbox
    texts = [ax.yaxis.label, ax.xaxis.get_ticklabels()[0]]
    for box in (text.get_window_extent() for text in texts):
        assert whole.y0 <= box.y0
        assert box.y1 <= whole.y1
    label = ax.yaxis.label.get_window_extent()
    assert label.height <= 1.05 * ax.bbox.height  # it is as long as the axes at most
    assert ax.bbox.height > 0.45 * whole.height


def test_odd_rows_of_an_array_are_drawn_without_a_warning(recwarn):
    frame = load_iris(as_frame=True).data
    model = UKR(init="pca", max_iter=2).fit(frame)
    ax = plots.odd_rows(model, IRIS, 3)
    assert not [seen for seen in recwarn if "feature names" in str(seen.message)]
    assert ax.get_yticklabels()[0].get_text().startswith("row ")


def test_odd_rows_of_a_mixed_table_have_its_columns():
    rng = np.random.default_rng(0)
    t = rng.random(60)
    bought = pd.Timestamp("2018-01-01") + pd.to_timedelta(np.round(1500 * t), unit="D")
    colour = np.array(["blue", "green", "red"])[(3 * t).astype(int)].astype(object)
    colour[5] = None
    table = pd.DataFrame({"length": t, "colour": colour, "bought": bought, "unit": 7})
    model = Mixed(UKR(1, init="pca", max_iter=2, random_state=0)).fit(table)
    for ax in (plots.odd_rows(model, n=60), plots.odd_rows(model, table, 60)):
        names = [label.get_text() for label in ax.get_xticklabels()]
        assert names == ["length", "colour", "bought"]
        order = [int(text.get_text().split()[1].rstrip(",")) - 1 for text in ax.get_yticklabels()]
        wanted = model.explain(table.iloc[order]).deviations[:, :3]
        drawn = ax.images[0].get_array().filled(np.nan)
        assert np.isnan(drawn[order.index(5)]).tolist() == [False, True, False]
        # Kept rows have been scaled and back: rounding may make new rows of them.
        whole = np.array(order) != 5
        np.testing.assert_allclose(drawn[whole], wanted[whole], rtol=1e-6, atol=1e-3)

"""Maps of rows and of magnification."""

from __future__ import annotations

import io

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.text import Text

from twofold import UKR, UNN, Mixed, plots
from twofold.plots.drawing import COLORS, MISSING, MOST_VECTOR_POINTS, color_limits, intervals


def points(ax) -> list[PathCollection]:
    return [item for item in ax.collections if isinstance(item, PathCollection)]


def color_bar_title(ax) -> str:
    (bar,) = ax.child_axes
    return bar.get_ylabel()


def test_every_row_is_drawn_where_it_is(model, table):
    ax = plots.latent_map(model, color=table[1])
    drawn = np.concatenate([item.get_offsets() for item in points(ax)])
    assert len(drawn) == 150
    order = np.concatenate(
        [
            np.flatnonzero(table[1] == code)
            for code in np.argsort(-np.bincount(table[1]), kind="stable")
        ]
    )
    np.testing.assert_allclose(drawn, model.embedding_[order])
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == [str(digit) for digit in range(10)]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("latent x1", "latent x2")
    assert ax.get_aspect() == 1
    assert ax.get_title() == ""


def test_few_categories_have_their_legend_inside(model, table):
    inside = plots.latent_map(model, color=table[1] > 4).get_legend()
    beside = plots.latent_map(model, color=table[1]).get_legend()
    assert inside.get_bbox_to_anchor().bounds == pytest.approx(inside.axes.bbox.bounds)
    assert beside.get_bbox_to_anchor().x0 > beside.axes.bbox.x1


def test_the_border_is_where_the_density_is_at_the_threshold(model):
    ax = plots.latent_map(model)
    lines = [item for item in ax.collections if item.get_linewidth()[0] == 0.8]
    places = np.concatenate([path.vertices for item in lines for path in item.get_paths()])
    assert len(places) > 50
    # Between places of the lattice the border is interpolated: observed within 5 %.
    np.testing.assert_allclose(model.density(places) / model.domain_threshold_, 1, atol=0.1)
    assert len(plots.latent_map(model, domain=False).collections) == 1


def test_numbers_get_a_color_bar_with_a_name(model):
    ax = plots.latent_map(model, color="error")
    assert color_bar_title(ax) == "distance to reconstruction"
    assert len(points(ax)[0].get_array()) == 150


def test_rows_without_a_value_are_grey(model):
    values = np.arange(150.0)
    values[:5] = np.nan
    grey, colored = points(plots.latent_map(model, color=values))
    assert len(grey.get_offsets()) == 5
    assert matplotlib.colors.to_hex(grey.get_facecolor()[0]) == MISSING
    assert grey.zorder < colored.zorder


def test_one_color_without_labels(model):
    (item,) = points(plots.latent_map(model))
    assert matplotlib.colors.to_hex(item.get_facecolor()[0]) == COLORS[0]
    (item,) = points(plots.latent_map(model, size=3.5))
    assert item.get_sizes() == [3.5]


@pytest.mark.slow
@pytest.mark.parametrize("names", [None, [f"digit number {row}" for row in range(150)]])
def test_names_cover_nothing(model, table, names):
    if names is not None:
        model.annotate(names=names)
    ax = plots.latent_map(model, names=True, color=table[1] > 4)
    ax.figure.canvas.draw()
    # Not `text.get_window_extent`, which has the line to the row too.
    boxes = [Text.get_window_extent(text) for text in ax.texts]
    assert 5 < len(boxes) <= 40
    frame, legend = ax.get_window_extent(), ax.get_legend().get_window_extent()
    (border,) = [item for item in ax.collections if item.get_linewidth()[0] == 0.8]
    line = np.concatenate([path.vertices for path in border.get_paths()])
    for number, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in [*boxes[number + 1 :], legend])
        assert frame.x0 < box.x0 < box.x1 < frame.x1
        assert frame.y0 < box.y0 < box.y1 < frame.y1
        assert box.count_contains(ax.transData.transform(line)) == 0
        wide = box.padded(np.sqrt(points(ax)[0].get_sizes()[0]) / 2 * ax.figure.dpi / 72 * 0.7)
        assert wide.count_contains(ax.transData.transform(model.embedding_)) == 0


def test_a_name_stands_by_its_row(model):
    ax = plots.latent_map(model, names=True)
    for text in ax.texts:
        number = int(text.get_text().removeprefix("row "))
        np.testing.assert_array_equal(text.xy, model.embedding_[number - 1])


def test_everything_fits_into_the_figure(model):
    for ax in (plots.magnification(model), plots.latent_map(model, color="density")):
        ax.figure.draw_without_rendering()
        drawn, (width, height) = ax.figure.get_tightbbox(), ax.figure.get_size_inches()
        assert min(drawn.x0, drawn.y0, width - drawn.x1, height - drawn.y1) >= 0


def test_flat_places_are_painted_too(model, monkeypatch):
    flat = model.embedding_[:, 0] > np.median(model.embedding_[:, 0])
    border = model.embedding_[~flat, 0].max()
    monkeypatch.setattr(
        type(model), "magnification", lambda self, X: np.where(X[:, 0] > border, 0.0, 10.0)
    )
    (image,) = plots.magnification(model).images
    shown = np.unique(image.get_array().compressed())
    assert len(shown) == 2
    assert shown[0] < shown[1] == 1


@pytest.mark.slow
def test_many_points_are_pixels_in_a_vector_file(model):
    n = MOST_VECTOR_POINTS + 1
    few, many = plots.latent_map(model), None
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, 150, n)
    model.embedding_, model.member_ = model.embedding_[chosen], model.member_[chosen]
    many = plots.latent_map(model)
    for ax, has_pixels in ((few, False), (many, True)):
        file = io.StringIO()
        ax.figure.savefig(file, format="svg")
        assert ("<image" in file.getvalue()) is has_pixels
        assert len(file.getvalue()) < 500_000


def test_given_axes_are_used_and_nothing_else_is_touched(model):
    before = dict(matplotlib.rcParams)
    ax = Figure().subplots()
    assert plots.latent_map(model, ax=ax, color="density", contours=True) is ax
    assert plots.magnification(model, ax=Figure().subplots()) is not None
    assert plt.get_fignums() == []
    assert dict(matplotlib.rcParams) == before


def test_subfigures_will_do(model):
    part = Figure(layout="constrained").subfigures(1, 2)[1]
    plots.latent_map(model, ax=part.subplots(), color="density", names=True)


def test_contours_are_lines_of_density(model):
    plain, lined = plots.latent_map(model), plots.latent_map(model, contours=True)
    added = len(lined.collections) - len(plain.collections)
    assert added >= 1


def test_a_line_shows_rows_in_order(table):
    model = UKR(1, init="pca", max_iter=2).fit(table[0])
    ax = plots.latent_map(model, color=table[1] > 4, contours=True)
    drawn = np.concatenate([item.get_offsets() for item in points(ax)])
    drawn = drawn[np.argsort(drawn[:, 1])]
    np.testing.assert_allclose(drawn[:, 0], model.embedding_[:, 0])
    np.testing.assert_array_equal(drawn[:, 1], np.arange(1, 151))
    assert ax.get_ylabel() == "row"


def test_magnification_is_painted_in_place(model):
    ax = plots.magnification(model)
    (image,) = ax.images
    assert color_bar_title(ax) == "log10 magnification"
    field = image.get_array()
    x0, x1, y0, y1 = image.get_extent()
    rows, columns = field.shape
    places = np.array([[c, r] for r in range(0, rows, 9) for c in range(0, columns, 9)])
    X = np.column_stack(
        [
            x0 + (places[:, 0] + 0.5) * (x1 - x0) / columns,
            y0 + (places[:, 1] + 0.5) * (y1 - y0) / rows,
        ]
    )
    inside = model.in_domain(X)
    assert inside.sum() > 10
    found = field[places[inside, 1], places[inside, 0]]
    wanted = np.log10(model.magnification(X[inside]))
    np.testing.assert_allclose(found, np.maximum(wanted, found.min()), atol=1e-6)
    assert image.get_clip_path() is not None


def test_magnification_of_a_line_is_a_curve(table):
    model = UKR(1, init="pca", max_iter=2).fit(table[0])
    ax = plots.magnification(model)
    assert ax.get_ylabel() == "log10 magnification"
    x, y = ax.lines[0].get_data()
    shown = np.isfinite(y)
    assert model.in_domain(x[shown][:, None]).all()


def test_colors_leave_out_far_values_only():
    even = np.linspace(0, 1, 1000)
    assert color_limits(even) == (0, 1)
    _, high = color_limits(np.append(even, 100.0))
    assert high < 1.01
    assert color_limits(np.array([2.0, 2.0])) == (1.5, 2.5)
    assert color_limits(np.array([np.nan])) == (0, 1)


def test_intervals_reach_half_a_step_further():
    axis = np.arange(6.0)
    is_in = np.array([True, True, False, False, True, False])
    assert intervals(axis, is_in) == [(-0.5, 1.5), (3.5, 4.5)]


def test_the_flat_density_of_ranks_is_not_drawn(table):
    ranks = UNN(1, random_state=0).fit(table[0])
    plain, lined = plots.latent_map(ranks), plots.latent_map(ranks, contours=True)
    assert len(lined.collections) == len(plain.collections)
    hilly = UKR(1, init="pca", max_iter=2).fit(table[0])
    plain, lined = plots.latent_map(hilly), plots.latent_map(hilly, contours=True)
    assert len(lined.collections) == len(plain.collections) + 1


@pytest.fixture(scope="module")
def cube(table):
    """A lattice of three dimensions, of which a picture shows two."""
    return UNN(3, search="greedy", random_state=0).fit(table[0])


def test_rows_of_a_lattice_do_not_cover_each_other(cube):
    X = cube.embedding_
    assert len(np.unique(X[:, :2], axis=0)) < 0.7 * len(X)
    (drawn,) = (item.get_offsets() for item in points(plots.latent_map(cube)))
    gaps = np.linalg.norm(drawn[:, None] - drawn[None], axis=2) + np.eye(len(X))
    assert gaps.min() > 0.1
    # Each stays nearest to its own place, and a layer moves as one.
    np.testing.assert_array_equal(np.rint(drawn), X[:, :2])
    moved = np.asarray(drawn) - X[:, :2]
    for layer in np.unique(X[:, 2]):
        assert np.ptp(moved[X[:, 2] == layer], axis=0) == pytest.approx(0, abs=1e-9)


def test_rows_of_other_maps_stay_in_place(table):
    model = UNN(3, random_state=0).fit(np.repeat(table[0][:60], 2, axis=0))
    (drawn,) = (item.get_offsets() for item in points(plots.latent_map(model)))
    np.testing.assert_array_equal(drawn, model.embedding_[:, :2])


def test_places_without_a_slope_are_not_painted(cube, monkeypatch):
    def without_slope_far_out(self, X):
        gaps = np.linalg.norm(X[:, None] - self.latent_[None], axis=2).min(axis=1)
        return np.where(gaps > 1.001, 0.0, 3.0)

    monkeypatch.setattr(type(cube), "magnification", without_slope_far_out)
    (image,) = plots.magnification(cube).images
    shown = np.unique(image.get_array().compressed())
    np.testing.assert_allclose(shown, np.log10(3.0))


def test_dates_of_a_mixed_table_are_dates_on_the_colour_bar():
    rng = np.random.default_rng(0)
    t = rng.random(60)
    bought = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.round(300 * t), unit="D")
    table = pd.DataFrame({"size": t, "kind": np.where(t > 0.5, "a", "b"), "bought": bought})
    model = Mixed(UKR(init="pca", max_iter=2)).fit(table)
    for color in ("bought", table["bought"], table["bought"].astype(str)):
        ax = plots.latent_map(model, color=color)
        ax.figure.canvas.draw()
        texts = [label.get_text() for label in ax.child_axes[0].get_yticklabels()]
        assert {"Apr", "Jul"} <= set(texts), texts

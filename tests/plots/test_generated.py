"""Items over the map and along a way."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from twofold import UKR, Mixed, plots
from twofold.plots.generated import item_style


def test_items_are_what_the_model_generates_there(model):
    ax = plots.grid(model, shape=8, image_shape=(8, 8))
    assert 10 < len(ax.images) <= 64
    for image in ax.images:
        x0, x1, y0, y1 = image.get_extent()
        place = [[(x0 + x1) / 2, (y0 + y1) / 2]]
        assert model.in_domain(place)[0]
        wanted = model.inverse_transform(place).reshape(8, 8)
        np.testing.assert_allclose(image.get_array(), wanted, atol=1e-9)
        assert image.origin == "upper"
        assert x1 - x0 == pytest.approx(y1 - y0)
    assert ax.get_xlim()[0] <= model.embedding_[:, 0].min()


def test_no_place_inside_is_left_out(model):
    ax = plots.grid(model, shape=(5, 9), image_shape=(4, 16))
    x = np.unique([np.mean(image.get_extent()[:2]).round(6) for image in ax.images])
    y = np.unique([np.mean(image.get_extent()[2:]).round(6) for image in ax.images])
    assert len(x) <= 5
    assert len(y) <= 9
    places = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    assert model.in_domain(places).sum() == len(ax.images)


def test_items_do_not_overlap(model):
    extents = [image.get_extent() for image in plots.grid(model, image_shape=(16, 4)).images]
    for number, a in enumerate(extents):
        for b in extents[number + 1 :]:
            assert a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] or b[3] <= a[2]


def test_noted_shapes_are_used_and_curves_without(model):
    curves = plots.grid(model, shape=5)
    assert len(curves.images) == 0
    frames, lines = curves.collections[-2:]
    assert len(lines.get_segments()) == len(frames.get_paths()) > 3
    assert lines.get_segments()[0].shape == (64, 2)
    model.annotate(image_shape=(8, 8))
    assert len(plots.grid(model, shape=5).images) > 3
    assert len(plots.grid(model, shape=5, kind="curve").images) == 0


def test_curves_have_room_between_them(model):
    frames, lines = plots.grid(model, shape=6).collections[-2:]
    boxes = [path.get_extents() for path in frames.get_paths()]
    for number, (box, curve) in enumerate(zip(boxes, lines.get_segments(), strict=True)):
        assert (curve > box.min).all()
        assert (curve < box.max).all()
        # `overlaps` counts a shared edge as well.
        assert not any(box.overlaps(other) for other in boxes[number + 1 :])


def test_curves_take_the_height_there_is(table):
    model = UKR(1, init="pca", max_iter=2).fit(table[0])
    figure = Figure(figsize=(8, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    for ax, least in ((plots.grid(model, ax=left), 0.8), (plots.path(model, 0, 5, ax=right), 0.5)):
        figure.draw_without_rendering()
        (frames,) = [item for item in ax.collections if isinstance(item, PolyCollection)]
        heights = [np.ptp(path.vertices[:, 1]) for path in frames.get_paths()]
        assert min(heights) > least * np.ptp(ax.get_ylim())
        assert ax.get_window_extent().height > 0.7 * figure.bbox.height


def test_the_ends_of_a_short_path_do_not_meet(model):
    model.annotate(names=[f"a row with a very long name {row}" for row in range(150)])
    figure = Figure(figsize=(5, 2.5), layout="constrained")
    ax = plots.path(model, 0, 5, ax=figure.subplots(1, 2)[0])
    figure.draw_without_rendering()
    first, last = (text.get_window_extent() for text in ax.get_xticklabels())
    assert first.x1 < last.x0
    assert ax.get_xticklabels()[1].get_text().endswith(" 5")


def test_drawings_are_dark_on_light_and_photographs_are_not(model, table):
    assert item_style(model, (8, 8), "auto").color_map == "gray_r"
    photographs = UKR(init="pca", max_iter=2).fit(16 - table[0])
    assert item_style(photographs, (8, 8), "auto").color_map == "gray"


def test_colors_are_three_numbers_between_0_and_1(table):
    Y = table[0][:, :48]
    model = UKR(init="pca", max_iter=2).fit(Y)
    image = plots.grid(model, shape=3, image_shape=(4, 4, 3)).images[0]
    assert image.get_array().shape == (4, 4, 3)
    assert 0 <= image.get_array().min() <= image.get_array().max() <= 1


def test_a_line_is_a_row_of_items(table):
    model = UKR(1, init="pca", max_iter=2).fit(table[0])
    ax = plots.grid(model, shape=7, image_shape=(8, 8))
    assert 2 <= len(ax.images) <= 7
    assert {np.mean(image.get_extent()[2:]) for image in ax.images} == {0.0}


def test_more_dimensions_are_those_of_the_row_seen_nearest(table):
    model = UKR(3, init="pca", max_iter=5).fit(table[0])
    image = plots.grid(model, shape=6, dims=(2, 0), image_shape=(8, 8)).images[0]
    x0, x1, y0, y1 = image.get_extent()
    first, third = (y0 + y1) / 2, (x0 + x1) / 2
    near = ((model.embedding_[:, [0, 2]] - [first, third]) ** 2).sum(axis=1).argmin()
    place = [[first, model.embedding_[near, 1], third]]
    np.testing.assert_allclose(
        image.get_array(), model.inverse_transform(place).reshape(8, 8), atol=1e-9
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": 0}, "`shape` must be a number"),
        ({"shape": (3, 4, 5)}, "`shape` must be a number"),
        ({"shape": 2.5}, "`shape` must be a number"),
        ({"kind": "photo"}, "`kind` must be"),
        ({"kind": "image"}, "Images need their shape"),
        ({"image_shape": (8, 9)}, "64 features of a row"),
    ],
)
def test_grid_errors(model, options, message):
    with pytest.raises(ValueError, match=message):
        plots.grid(model, **options)


def test_a_path_runs_straight_from_end_to_end(model):
    model.annotate(names=[f"n{row}" for row in range(150)])
    by_name = plots.path(model, "n3", "n70", steps=5, image_shape=(8, 8))
    a, b = model.embedding_[3], model.embedding_[70]
    places = [a + t * (b - a) for t in np.linspace(0, 1, 5)]
    wanted = model.inverse_transform(places).reshape(5, 8, 8)
    for image, item in zip(by_name.images, wanted, strict=True):
        np.testing.assert_allclose(image.get_array(), item, atol=1e-9)
    by_point = plots.path(model, a, 70, steps=5, image_shape=(8, 8))
    for one, other in zip(by_name.images, by_point.images, strict=True):
        np.testing.assert_allclose(one.get_array(), other.get_array(), atol=1e-9)
    labels = [text.get_text() for text in by_name.get_xticklabels()]
    assert labels == ["n3", "n70"]
    assert by_point.get_xticklabels()[0].get_text() == f"({a[0]:.3g}, {a[1]:.3g})"


def hatched(ax) -> float:
    """Length of the way that is hatched."""
    marked = [item for item in ax.collections if item.get_hatch()]
    return sum(np.ptp(item.get_paths()[0].vertices[:, 0]) for item in marked)


def test_the_way_outside_the_domain_is_hatched(model):
    row = model.embedding_[0]
    assert hatched(plots.path(model, row, row + 1e-3)) == 0
    far = row + np.array([1e4, 0])
    assert hatched(plots.path(model, row, far, steps=11)) == pytest.approx(10, abs=0.2)


def test_a_path_on_a_line_takes_plain_numbers(table):
    model = UKR(1, init="pca", max_iter=2).fit(table[0])
    ax = plots.path(model, 0.5, 3, steps=3)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["(0.5)", "row 4"]


@pytest.mark.parametrize(
    ("start", "options", "message"),
    [
        ("nobody", {}, "No row is called 'nobody'"),
        (150, {}, "between 0 and 149; got 150"),
        ([1.0, 2.0, 3.0], {}, r"latent points of shape \(2,\)"),
        (0, {"steps": 1}, "`steps` must be"),
    ],
)
def test_path_errors(model, start, options, message):
    with pytest.raises(ValueError, match=message):
        plots.path(model, start, 1, **options)


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(0)
    t, u = rng.random((2, 80))
    grades = ["low", "mid", "high"]
    table = pd.DataFrame(
        {
            "size": np.exp(3 * t),
            "kind": np.array(["a", "b", "c"])[(3 * u).astype(int)],
            "grade": pd.Categorical(np.array(grades)[(3 * t).astype(int)], grades, ordered=True),
            "day": pd.Timestamp("2018-01-01") + pd.to_timedelta(np.round(1500 * t), unit="D"),
            "unit": 7,
            "many": [f"level {k}" for k in (9 * u).astype(int)],
        }
    )
    table.loc[::9, "size"] = np.nan
    return Mixed(UKR(init="pca", max_iter=3, random_state=0)).fit(table)


def test_rows_of_a_mixed_table_are_no_items(mixed):
    with pytest.raises(ValueError, match="columns have no common unit"):
        plots.grid(mixed)
    for options in ({"kind": "curve"}, {"image_shape": (1, 5)}):
        with pytest.raises(ValueError, match="columns have no common unit"):
            plots.path(mixed, 0, 1, **options)


def test_columns_of_a_mixed_table_are_drawn_along_a_path(mixed):
    ax = plots.path(mixed, 3, 70, steps=6)
    ax.figure.canvas.draw()
    panels = {panel.get_title(loc="left"): panel for panel in ax.child_axes}
    assert set(panels) == {"size", "kind", "grade", "day", "many"}
    ends = mixed.embedding_[[3, 70]]
    wanted, chances = mixed.inverse_transform(ends, return_probabilities=True)
    x, y = panels["size"].lines[0].get_data()
    assert (x[0], x[-1]) == (0, 5)
    np.testing.assert_allclose(y[[0, -1]], wanted["size"])
    days = panels["day"].lines[0].get_ydata()[[0, -1]]
    since = (wanted["day"] - pd.Timestamp(0)) / pd.Timedelta(days=1)
    np.testing.assert_allclose(days, since, atol=0.5)  # dates of the table are whole days
    texts = {label.get_text() for label in panels["day"].get_yticklabels()}
    assert texts & {"2018", "2019", "2020", "2021"}, texts
    for name in ("kind", "grade"):
        P = chances[name].to_numpy()
        tops = [top(area) for area in panels[name].collections]
        np.testing.assert_allclose(np.transpose(tops), P.cumsum(axis=1), atol=1e-9)
        legend = panels[name].get_legend().get_texts()
        assert [text.get_text() for text in legend] == list(chances[name].columns)[::-1]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["row 4", "row 71"]


def top(area) -> tuple[float, float]:
    """Return the upper end of an area at its left and its right."""
    corners = area.get_paths()[0].vertices
    return tuple(corners[corners[:, 0] == x][:, 1].max() for x in (0, corners[:, 0].max()))


def test_levels_that_are_never_likely_share_a_colour(mixed):
    ax = plots.path(mixed, 3, 70)
    panel = next(panel for panel in ax.child_axes if panel.get_title(loc="left") == "many")
    texts = [text.get_text() for text in panel.get_legend().get_texts()]
    assert texts[0] == "4 others"
    way = np.linspace(*mixed.embedding_[[3, 70]], 50)
    P = mixed.inverse_transform(way, return_probabilities=True)[1]["many"]
    assert set(texts[1:]) == set(P.sum().nlargest(5).index)
    assert top(panel.collections[-1]) == pytest.approx((1, 1))


def test_of_many_columns_those_that_change_most_are_drawn():
    t = np.linspace(0, 1, 60)
    noise = np.random.default_rng(0).normal(size=(60, 14))
    table = pd.DataFrame(noise * 0.3, columns=[f"x{k}" for k in range(14)])
    table[["x3", "x8"]] += 9 * t[:, None]
    table["late"] = t > 0.5
    model = Mixed(UKR(1, init="pca", max_iter=2, random_state=0)).fit(table)
    names = [panel.get_title(loc="left") for panel in plots.path(model, 0, 59).child_axes]
    assert len(names) == 12
    assert set(names[:3]) == {"x3", "x8", "late"}


def test_an_axis_reaches_over_the_usual_values(mixed):
    # A way of no length: nothing changes, and the axis says how little that is.
    ax = plots.path(mixed, 3, 3)
    panel = next(panel for panel in ax.child_axes if panel.get_title(loc="left") == "size")
    low, high = panel.get_ylim()
    assert low < np.exp(3 * 0.1)
    assert high > np.exp(3 * 0.9)


def test_ticks_are_written_in_full():
    t = np.linspace(0, 1, 40)
    day = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.round(9 * t), unit="D")
    model = Mixed(UKR(1, init="pca", max_iter=2)).fit(pd.DataFrame({"tiny": 1e-7 * t, "day": day}))
    ax = plots.path(model, 0, 39)
    ax.figure.canvas.draw()
    # The power of ten or the month, left out of the ticks, would stand in the name of the panel.
    assert [panel.yaxis.get_offset_text().get_text() for panel in ax.child_axes] == ["", ""]
    texts = [tick.get_text() for panel in ax.child_axes for tick in panel.get_yticklabels()]
    assert any("5e" in text for text in texts)
    assert any(text.startswith("2024-03-0") for text in texts)

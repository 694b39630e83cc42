"""Features over the map."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver

from twofold import UKR, Mixed, Scaled, plots
from twofold.plots.features import _block_means


class Plane(SimpleNamespace):
    """The linear model f(x) = A x, whose slopes are known."""

    def __init__(self, A: np.ndarray, X: np.ndarray) -> None:
        super().__init__(A=A, embedding_=X, data_=X @ A.T, weights_=np.ones(len(X)))
        self.n_features_in_, self.domain_threshold_ = len(A), 0.5
        self.member_ = np.arange(len(X))

    def _mixed_columns(self):
        return ()

    def as_numbers(self) -> Plane:
        return self

    def inverse_transform(self, X: np.ndarray) -> np.ndarray:
        return X @ self.A.T

    def jacobian(self, X: np.ndarray) -> np.ndarray:
        return np.tile(self.A, (len(X), 1, 1))

    def has_noise(self) -> bool:
        return False

    def density(self, X: np.ndarray) -> np.ndarray:
        return (np.abs(X).max(axis=1) < 4.5).astype(float)


@pytest.fixture
def plane() -> Plane:
    side = np.linspace(-2, 2, 9)
    X = np.stack(np.meshgrid(side, 2 * side), axis=-1).reshape(-1, 2)
    return Plane(np.array([[1.0, 0], [0, -3], [0, 0], [1, 1]]), X)


def lengths(ax) -> list[list[float]]:
    return [[bar.get_width() for bar in bars] for bars in ax.containers]


def test_bars_are_one_for_what_a_linear_map_explains(plane):
    ax = plots.important_features(plane)
    names = [text.get_text() for text in ax.get_yticklabels()]
    # Latent x2 has twice the spread of latent x1: the last feature owes 4/5 of its square to it.
    wanted = {
        "x1": (1, 0),
        "x2": (0, 1),
        "x4": (0.2, 0.8),
    }
    for number, name in enumerate(names):
        found = [part[number] for part in lengths(ax)]
        np.testing.assert_allclose(found, wanted[name], atol=1e-12)
    assert sorted(names) == sorted(wanted)  # x3 is constant
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["latent x1", "latent x2"]


def test_only_the_most_important_are_shown(model):
    ax = plots.important_features(model, 5)
    total = np.sum(lengths(ax), axis=0)
    assert len(total) == 5
    assert (np.diff(total) <= 0).all()
    with pytest.raises(ValueError, match="`n` must be"):
        plots.important_features(model, 0)


def arrows(ax) -> Quiver:
    (found,) = [item for item in ax.collections if isinstance(item, Quiver)]
    return found


def test_arrows_point_uphill(plane):
    for feature in (0, 1, 3):
        found = arrows(plots.sensitivity(plane, feature))
        direction = np.column_stack([found.U, found.V])
        direction /= np.linalg.norm(direction, axis=1)[:, None]
        uphill = plane.A[feature] / np.linalg.norm(plane.A[feature])
        np.testing.assert_allclose(direction, np.tile(uphill, (len(direction), 1)), atol=1e-9)
        assert len(direction) > 100


def test_a_flat_feature_has_no_arrows(plane):
    ax = plots.sensitivity(plane, 2)
    assert not any(isinstance(item, Quiver) for item in ax.collections)


def test_the_color_is_the_feature(plane):
    ax = plots.sensitivity(plane, 0)
    (image,) = ax.images
    x0, x1, *_ = image.get_extent()
    field = image.get_array()
    columns = x0 + (np.arange(field.shape[1]) + 0.5) * (x1 - x0) / field.shape[1]
    middle = field[field.shape[0] // 2]
    np.testing.assert_allclose(middle[10:-10], columns[10:-10], atol=1e-9)
    assert ax.child_axes[0].get_ylabel() == "x1"


def test_block_means_by_hand():
    axes = [np.arange(4.0), np.arange(3.0)]  # one column is left over
    values = np.arange(12.0).reshape(3, 4, 1)
    places, means = _block_means(axes, values)
    np.testing.assert_allclose(places, [[1, 1]])
    np.testing.assert_allclose(means, [[5]])  # 0 1 2, 4 5 6, 8 9 10
    values[0] = np.nan
    np.testing.assert_allclose(_block_means(axes, values)[1], [[7]])  # 4 5 6, 8 9 10
    values[1, :2] = np.nan
    assert len(_block_means(axes, values)[0]) == 0  # 4 of 9 are known


@pytest.mark.slow
def test_features_by_name(table):
    frame = pd.DataFrame(table[0][:, 20:30], columns=[f"pixel {i}" for i in range(20, 30)])
    model = UKR(init="pca", max_iter=2).fit(frame)
    figure = plots.sensitivities(model, ["pixel 21", 9])
    titles = [panel.get_title() for panel in figure.axes if panel.get_title()]
    assert titles == ["pixel 21", "pixel 29"]
    with pytest.raises(ValueError, match=r"No feature is called 'x'. The features are 'pixel 20'"):
        plots.sensitivity(model, "x")


def test_the_twelve_that_change_most(model):
    given = Figure()
    assert plots.sensitivities(model, figure=given) is given
    panels = [panel for panel in given.axes if panel.get_title()]
    assert len(panels) == 12
    slopes = model.slopes(model.embedding_) * model.embedding_.std(axis=0)
    change = (slopes**2).mean(axis=0).sum(axis=1)
    wanted = {f"x{number + 1}" for number in np.argsort(-change)[:12]}
    assert {panel.get_title() for panel in panels} == wanted
    with pytest.raises(ValueError, match="at least one feature"):
        plots.sensitivities(model, [])


@pytest.mark.slow
def test_units_do_not_decide_which_scaled_columns_change_most(table):
    Y = table[0][:, [20, 21, 26, 27, 28, 29, 34, 35, 36, 37, 42, 43, 44]]
    units = np.full(13, 1.0)
    units[3] = 1e6
    titles = []
    for table_of_units in (Y, Y * units):
        model = Scaled(UKR(init="pca", max_iter=3)).fit(table_of_units)
        figure = plots.sensitivities(model)
        titles.append([panel.get_title() for panel in figure.axes if panel.get_title()])
    assert titles[0] == titles[1]


def test_a_line_shows_the_feature_as_a_curve(table):
    model = UKR(1, init="pca", max_iter=2).fit(table[0])
    ax = plots.sensitivity(model, 36)
    x, y = ax.lines[0].get_data()
    shown = np.isfinite(y)
    np.testing.assert_allclose(y[shown], model.inverse_transform(x[shown][:, None])[:, 36])
    assert ax.get_ylabel() == "x37"
    first, second = plots.sensitivities(model, [1, 2]).axes
    # Their units differ, so both need numbers.
    assert all(panel.yaxis.get_tick_params()["labelleft"] for panel in (first, second))


def test_features_without_names_count_from_one(model):
    by_name = plots.sensitivity(model, "x37")
    by_number = plots.sensitivity(model, 36)
    np.testing.assert_array_equal(*(ax.images[0].get_array() for ax in (by_name, by_number)))
    with pytest.raises(ValueError, match=r"called 'x0'\. The features are 'x1', 'x2'"):
        plots.sensitivity(model, "x0")


@pytest.mark.parametrize(
    "figure",
    [
        None,
        pytest.param(Figure(), marks=pytest.mark.slow),
        pytest.param(Figure(figsize=(15, 4)), marks=pytest.mark.slow),
    ],
)
def test_long_names_do_not_run_into_each_other(table, figure):
    names = [f"expression of the gene number {i} in the tissue" for i in range(4)]
    names += [f"an_identifier_without_any_space_but_long_{i}" for i in range(4, 8)]
    frame = pd.DataFrame(table[0][:, 26:34], columns=names)
    figure = plots.sensitivities(UKR(init="pca", max_iter=2).fit(frame), names, figure=figure)
    figure.draw_without_rendering()
    titles = [panel.title for panel in figure.axes if panel.get_title()]
    assert len({title.get_text() for title in titles}) == 8
    boxes = [title.get_window_extent() for title in titles]
    for number, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[number + 1 :])
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1


def test_bars_stay_clear_of_their_legend(table):
    ax = plots.important_features(UKR(3, init="pca", max_iter=2).fit(table[0]), 4)
    ax.figure.canvas.draw()
    assert ax.get_legend().get_window_extent().y0 >= ax.get_window_extent().y1 - 1


def test_a_category_has_one_bar():
    rng = np.random.default_rng(0)
    t = rng.random(60)
    table = pd.DataFrame({"length": t, "colour": np.array(["blue", "red"])[(2 * t).astype(int)]})
    table["more"], table["one"] = rng.normal(size=60), 5
    model = Mixed(UKR(1, init="pca", max_iter=2, random_state=0)).fit(table)
    ax = plots.important_features(model)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert sorted(names) == ["colour", "length", "more"]
    assert all(np.isfinite(bar.get_width()) for bar in ax.patches)
    plots.latent_map(model, color="colour")
    plots.sensitivity(model, "colour = red")


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(0)
    t, u = rng.random((2, 60))
    sizes = ["small", "medium", "large"]
    table = pd.DataFrame(
        {
            "length": t,
            "colour": np.array(["blue", "green", "red"])[(3 * u).astype(int)],
            "size": pd.Categorical(np.array(sizes)[(3 * t).astype(int)], sizes, ordered=True),
            "sold": t > u,
            "bought": pd.Timestamp("2018-01-01") + pd.to_timedelta(np.round(1500 * t), unit="D"),
            "unit": 7,
        }
    )
    return Mixed(UKR(init="pca", max_iter=2, random_state=0)).fit(table)


def test_each_column_of_a_mixed_table_has_one_panel(mixed):
    figure = plots.sensitivities(mixed)
    titles = [panel.get_title().replace("\n", " ") for panel in figure.axes if panel.get_title()]
    assert len(titles) == 5
    assert {"length", "sold = True", "bought"} < set(titles)
    assert sum(title.startswith("colour = ") for title in titles) == 1
    assert sum(title.startswith("size > ") for title in titles) == 1


def test_dates_over_a_map_are_dates(mixed):
    for ax in (plots.sensitivity(mixed, "bought"), plots.sensitivities(mixed, ["bought"]).axes[0]):
        ax.figure.canvas.draw()
        texts = {label.get_text() for label in ax.child_axes[0].get_yticklabels()}
        assert texts & {"2019", "2020", "2021"}, texts


def test_dates_along_a_line_are_dates():
    t = np.random.default_rng(0).random(60)
    bought = pd.Timestamp("2018-01-01") + pd.to_timedelta(np.round(1500 * t), unit="D")
    table = pd.DataFrame({"length": t, "bought": bought})
    model = Mixed(UKR(1, init="pca", max_iter=2, random_state=0)).fit(table)
    ax = plots.sensitivity(model, "bought")
    ax.figure.canvas.draw()
    assert {label.get_text() for label in ax.get_yticklabels()} & {"2019", "2020", "2021"}


def test_columns_of_a_mixed_table_are_named_and_written_as_in_the_table():
    rng = np.random.default_rng(0)
    t, u = rng.random((2, 60))
    colours = np.array(["blue", "green", "red"])[(3 * u).astype(int)]
    table = pd.DataFrame({"price": 1000 ** (1 + t), "colour": colours, "u": u})
    table["took"] = pd.to_timedelta(5 * t, unit="h")
    model = Mixed(UKR(init="pca", max_iter=2, random_state=0), {"price": "log"}).fit(table)
    legend = plots.latent_map(model, color="colour").get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["blue", "green", "red"]

    def scale(ax):
        ax.figure.canvas.draw()
        bar = ax.child_axes[0]
        low, high = bar.get_ylim()
        shown = zip(bar.get_yticks(), bar.get_yticklabels(), strict=True)
        return bar.get_ylabel(), {text.get_text() for y, text in shown if low <= y <= high}

    for draw in (
        lambda name: plots.latent_map(model, color=name),
        partial(plots.sensitivity, model),
    ):
        title, texts = scale(draw("price"))
        assert title == "price"
        assert {float(text) for text in texts} & {2_000, 3_000, 4_000, 10_000, 20_000, 100_000}
        title, texts = scale(draw("took"))
        assert title == "took"
        assert texts & {"1 h", "2 h", "3 h"}
    assert scale(plots.sensitivity(model, "colour"))[0].startswith("colour = ")
    landmarks = Mixed(UKR(landmarks=30, init="pca", max_iter=1, random_state=0)).fit(table)
    legend = plots.latent_map(landmarks, color="colour").get_legend()
    assert legend.get_title().get_text() == "colour, reconstructed"
    figure = plots.sensitivities(model, ["price", "colour"])
    titles = [panel.get_title() for panel in figure.axes if panel.get_title()]
    assert titles[0] == "price"
    assert titles[1].startswith("colour = ")

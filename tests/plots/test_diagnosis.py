"""How a fit went, and how far to trust it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from twofold import UKR, plots
from twofold.plots.diagnosis import stage_joins
from twofold.regularization import LeaveOneOut


def test_the_objective_is_drawn_over_iterations(model):
    ax = plots.history(model)
    x, y = ax.lines[0].get_data()
    np.testing.assert_array_equal(x, np.arange(model.n_iter_ + 1))
    np.testing.assert_array_equal(y, model.history_)
    assert model.stop_reason_ in ax.texts[0].get_text()
    assert ax.get_yscale() == "linear"


def test_the_end_of_the_history_is_told_above_the_axes(model):
    ax = plots.history(model)
    ax.figure.canvas.draw()
    assert ax.texts[0].get_window_extent().y0 >= ax.get_window_extent().y1


def test_a_long_fall_is_logarithmic(model):
    model.history_ = 10.0 ** -np.arange(5)
    model.n_iter_ = 4
    assert plots.history(model).get_yscale() == "log"


def test_stages_meet_where_the_value_does_not_fall(model):
    assert stage_joins(np.array([5.0, 4, 3, 3, 2, 7, 6]), 3) == [3, 5]
    assert stage_joins(np.array([5.0, 4, 3, 2, 1]), 2) == []  # which of the falls is the join?
    model.history_, model.n_iter_ = np.array([5.0, 4, 3, 3, 2, 7, 6]), 4
    ax = plots.history(model)
    curves = [line for line in ax.lines if line.get_linestyle() == "-"]
    assert [list(line.get_xdata()) for line in curves] == [[0, 1, 2], [2, 3], [3, 4]]
    assert ax.get_xlabel() == "iteration (3 stages)"


def test_a_homotopy_can_be_drawn(table):
    way = LeaveOneOut(homotopy="box")
    model = UKR(1, regularization=way, init="pca", max_iter=40).fit(table[0])
    assert len(model.history_) > model.n_iter_ + 1
    assert "stages" in plots.history(model).get_xlabel()


def test_a_history_of_one_value_is_read_from_zero(model):
    model.history_, model.n_iter_ = np.array([302.5]), 300
    ax = plots.history(model)
    assert len(ax.get_xticks()) == 0
    assert ax.get_xlabel().startswith("end of the fit")
    assert ax.get_ylim()[0] == 0
    assert 302.5 < ax.get_ylim()[1] < 500


@pytest.mark.parametrize("count", [2, 3, 6])
def test_a_history_of_sweeps_is_not_one_of_iterations(model, count):
    # Of UNN: iterations are rows and sweeps, the history has an entry for each sweep.
    model.history_, model.n_iter_ = np.linspace(9.0, 5.0, count), 150 + count
    ax = plots.history(model)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), np.arange(count))
    assert ax.get_xlabel() == "step"
    assert all(tick == round(tick) for tick in ax.get_xticks())


def test_an_empty_history_is_an_error(model):
    model.history_ = np.empty(0)
    with pytest.raises(ValueError, match="no history"):
        plots.history(model)


def test_errors_fall_and_the_worst_are_named(model, table):
    model.annotate(names=[f"n{row}" for row in range(150)])
    wanted = np.linalg.norm(table[0] - model.inverse_transform(model.embedding_), axis=1)
    ax = plots.errors(model)
    ranks, found = ax.lines[0].get_data()
    np.testing.assert_allclose(found, np.sort(wanted)[::-1])
    np.testing.assert_array_equal(ranks, np.arange(1, 151))
    names = [text.get_text() for text in ax.texts]
    assert names[:5] == [f"n{row}" for row in np.argsort(-wanted)[:5]]
    assert names[5] == f"median {np.median(wanted):.3g}"


def test_errors_of_other_rows(model, table):
    Y = table[0][:7] + 0.5
    ax = plots.errors(model, Y)
    wanted = np.sqrt(-model.score_samples(Y))
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.sort(wanted)[::-1])
    assert ax.texts[0].get_text() == f"row {wanted.argmax() + 1}"
    assert ax.get_ylabel().startswith("distance to reconstruction")
    assert [text.get_text() for text in ax.get_xticklabels()] == [str(k) for k in range(1, 8)]


def test_a_frame_names_its_rows(table):
    model = UKR(init="pca", max_iter=2).fit(pd.DataFrame(table[0]).rename(columns=str))
    frame = pd.DataFrame(table[0][:3] + 0.5, index=["a", "b", "c"]).rename(columns=str)
    assert worst_names(model, frame) == ["a", "b", "c"]
    nameless = frame.reset_index(drop=True)
    assert worst_names(model, nameless) == ["row 1", "row 2", "row 3"]
    # What is left of a longer frame keeps the numbers it had there.
    assert worst_names(model, nameless.iloc[1:]) == ["1", "2"]


def worst_names(model, frame) -> list[str]:
    names = [text.get_text() for text in plots.errors(model, frame).texts]
    return sorted(names[: len(frame)])


def test_landmarks_ask_for_the_rows(table):
    model = UKR(landmarks=20, init="isomap", random_state=0, max_iter=5).fit(table[0])
    with pytest.raises(ValueError, match=r"errors\(model, X\)"):
        plots.errors(model)
    assert len(plots.errors(model, table[0]).lines[0].get_xdata()) == 150


def labels(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_one_standard_error_rule_by_hand():
    # Means 5, 3.1, 3; the last has a standard deviation of 0.2 and a standard error of 0.1155.
    ax = plots.dimension_curve({2: [3.1, 3.1, 3.1], 1: [5, 5, 5], 3: [2.8, 3.0, 3.2]})
    assert labels(ax) == ["least error: 3", "fewest within one standard error: 2"]
    # With twelve values of the same spread the standard error is 0.049, and 2 is out of reach.
    ax = plots.dimension_curve({2: [3.1] * 12, 1: [5] * 12, 3: [2.8, 3.0, 3.2] * 4})
    assert labels(ax) == ["least error: 3", "fewest within one standard error: 3"]


def test_single_errors_have_no_spread():
    ax = plots.dimension_curve({1: 4.0, 2: 2.0, 5: 3.0})
    assert labels(ax) == ["least error: 2"]
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [1, 2, 5])


@pytest.mark.parametrize("scores", [{}, {1: []}, {1: np.nan}, {1: [[1.0]]}])
def test_scores_are_checked(scores):
    with pytest.raises(ValueError, match="`scores"):
        plots.dimension_curve(scores)

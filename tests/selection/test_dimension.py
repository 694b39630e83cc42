"""How many latent dimensions: the truth on manifolds, no answer for clouds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from twofold.datasets import (
    make_fish_bowl,
    make_half_circle,
    make_random_manifold,
    make_spiral,
    make_swiss_roll,
)
from twofold.selection import choose_dimension


@pytest.mark.slow
@pytest.mark.cover(1)
@pytest.mark.parametrize("q", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_manifolds_in_twenty_dimensions(q: int, noise: float):
    rows = make_random_manifold(400, q, 20, noise=noise, random_state=10 * q).Y
    choice = choose_dimension(rows)
    assert (choice.dimension, choice.confident) == (q, True)
    assert f"{q} dimension" in choice.reason


@pytest.mark.slow
@pytest.mark.parametrize("d", [3, 4, 6, 8, 10])
@pytest.mark.parametrize("n", [80, 400])
def test_a_gaussian_cloud_has_no_dimension(d: int, n: int):
    choice = choose_dimension(np.random.default_rng(d).normal(size=(n, d)))
    assert choice.dimension is None
    assert not choice.confident
    assert choice.reason.startswith("No confident answer")


@pytest.mark.parametrize(
    ("rows", "q"),
    [
        (make_spiral(300, random_state=0).Y, 1),
        (make_half_circle(120, random_state=0).Y, 1),
        (make_swiss_roll(500, noise=0.3, random_state=0).Y, 2),
        (make_fish_bowl(300, random_state=0).Y, 2),
    ],
    ids=["spiral", "half circle", "swiss roll", "fish bowl"],
)
def test_curves_and_surfaces(rows, q):
    choice = choose_dimension(rows)
    assert (choice.dimension, choice.confident) == (q, True)


@pytest.mark.slow
def test_clusters_are_no_curve():
    rows, _ = make_blobs(600, 5, centers=8, random_state=0)
    choice = choose_dimension(rows)
    assert choice.dimension is None
    assert choice.scales.index.max() < 600 / 8


@pytest.mark.slow
def test_scores_and_scales():
    sample = make_random_manifold(300, 2, 10, noise=0.03, random_state=0)
    choice = choose_dimension(sample.Y)
    assert list(choice.scores.index) == [1, 2, 3, 4]
    errors = choice.scores["reconstruction_error"]
    assert errors[2] < 0.5 * errors[1]
    assert errors[3] > 0.5 * errors[2]
    assert choice.scores["gap"].idxmax() == 2
    assert set(choice.scales["dimension"]) <= {0, 2}
    assert choice.scales["neighbor_dimension"].iloc[-1] == pytest.approx(2, abs=0.5)
    assert (choice.scores["linear_error"].diff()[1:] < 0).all()


@pytest.mark.slow
def test_the_unit_of_all_columns_together_does_not_matter():
    rows = make_random_manifold(200, 2, 8, noise=0.03, random_state=0).Y
    one, other = choose_dimension(rows), choose_dimension(1e6 * rows - 3)
    assert one.dimension == other.dimension == 2
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-4)


@pytest.mark.slow
def test_repeated_rows_count_once():
    rows = make_random_manifold(200, 2, 8, noise=0.03, random_state=0).Y
    assert choose_dimension(np.repeat(rows, 15, axis=0)).dimension == 2


def test_the_largest_answer_can_be_bounded():
    rows = make_random_manifold(300, 3, 10, noise=0.02, random_state=0).Y
    assert choose_dimension(rows, max_dimension=2).dimension is None
    assert choose_dimension(rows, max_dimension=3).dimension == 3
    with pytest.raises(ValueError, match="at least 1"):
        choose_dimension(rows, max_dimension=0)


def test_too_little_to_tell():
    rng = np.random.default_rng(0)
    assert "at least 40 different rows" in choose_dimension(rng.normal(size=(30, 3))).reason
    one = choose_dimension(rng.normal(size=(50, 1)))
    assert one.dimension is None
    assert "One column" in one.reason


@pytest.mark.parametrize("size", [3, 8, 10])
def test_many_tight_groups_are_never_a_confident_answer(size):
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.normal(size=(40, 5)), size, axis=0)
    choice = choose_dimension(rows + 1e-3 * rng.normal(size=rows.shape))
    assert not choice.confident
    assert "tight groups" in choice.reason


def test_endless_factors_are_told_in_words():
    sheet = np.random.default_rng(0).random((150, 2)) @ np.array([[1.0, 0, 0], [0, 1, 0]])
    choice = choose_dimension(sheet)
    assert choice.dimension == 2
    assert "stands out from the next by far" in choice.reason
    assert "e+" not in choice.reason


def test_one_column_that_decides_alone_is_warned_about():
    Y = make_random_manifold(300, 2, 8, noise=0.03, random_state=0).Y.copy()
    Y[:, 3] *= 1000
    with pytest.warns(UserWarning, match="Column 3 holds .* decides nearly alone"):
        choice = choose_dimension(Y)
    assert not choice.confident
    assert "Column 3" in choice.reason

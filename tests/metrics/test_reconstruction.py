from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from twofold import UKR
from twofold.metrics import reconstruction_error


def test_share_of_variance_of_principal_components():
    Y = np.random.default_rng(0).normal(size=(100, 5)) * [5, 3, 2, 1, 1] + 10
    model = PCA(2).fit(Y)
    back = model.inverse_transform(model.transform(Y))
    left = 1 - model.explained_variance_ratio_.sum()
    assert reconstruction_error(Y, back) == pytest.approx(left)
    assert reconstruction_error(Y, back, relative=False) == pytest.approx(
        left * Y.var(axis=0).sum()
    )


def test_the_mean_scores_one_and_the_data_zero():
    Y = np.random.default_rng(0).normal(size=(40, 3))
    assert reconstruction_error(Y, np.tile(Y.mean(axis=0), (40, 1))) == pytest.approx(1)
    assert reconstruction_error(Y, Y) == 0


def test_missing_entries_by_hand():
    nan = np.nan
    Y = [[0.0, 1.0], [2.0, nan], [4.0, 3.0]]
    back = [[1.0, 1.0], [2.0, nan], [4.0, 5.0]]
    # Errors 1 and 4; variances 4 + 0 + 4 in the first column, 1 + 1 in the second.
    assert reconstruction_error(Y, back) == pytest.approx(5 / 10)
    assert reconstruction_error(Y, back, relative=False) == pytest.approx(5 / 3)
    masked = np.ma.masked_invalid(Y)
    assert reconstruction_error(masked, np.nan_to_num(back)) == pytest.approx(5 / 10)


def test_absolute_error_is_the_negative_score_of_a_model():
    Y = np.random.default_rng(0).normal(size=(40, 3))
    Y[3, 1] = np.nan
    model = UKR(1, init="pca", max_iter=3).fit(Y)
    found = reconstruction_error(Y, model.reconstruct(Y), relative=False)
    assert found == pytest.approx(-model.score(Y))


@pytest.mark.parametrize(
    ("Y", "back", "message"),
    [
        ([[1.0], [2.0]], [[1.0]], r"shape of `Y`, \(2, 1\); got \(1, 1\)"),
        ([[np.nan], [np.nan]], [[1.0], [1.0]], "no observed entry"),
        ([[1.0], [2.0]], [[1.0], [np.nan]], "missing where `Y` is observed .first: row 1"),
        ([[2.0], [2.0]], [[1.0], [1.0]], "No column of `Y` varies.*relative=False"),
    ],
)
def test_refusals(Y, back, message):
    with pytest.raises(ValueError, match=message):
        reconstruction_error(Y, back)

"""Tables with categories and gaps, compared as `Mixed` sees them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from twofold.mixed import scaled_features
from twofold.selection import choose_dimension, compare


@pytest.fixture
def table():
    t = np.random.default_rng(0).random(80)
    colour = np.array(["blue", "green", "red"])[(3 * t).astype(int)]
    return pd.DataFrame(
        {"length": t, "height": t**2, "grade": (4 * t).astype(int), "colour": colour}
    )


ASKED = {"kinds": {"grade": "category"}, "weights": {"length": 2.0}}


def test_kinds_and_weights_are_those_of_the_table(table):
    rows = scaled_features(table, **ASKED)
    found, wanted = compare(table, ["pca"], **ASKED), compare(rows, ["pca"])
    scores = found.table.drop(columns="seconds")
    pd.testing.assert_frame_equal(scores, wanted.table.drop(columns="seconds"))
    found, wanted = choose_dimension(table, **ASKED), choose_dimension(rows)
    assert found.dimension == wanted.dimension
    pd.testing.assert_frame_equal(found.scores, wanted.scores)
    numbers = table[["length", "height", "grade"]]
    assert not compare(numbers, ["pca"], weights={"length": 2.0}).table.equals(
        compare(numbers, ["pca"]).table
    )


def test_gaps_of_a_mixed_table_are_filled_and_said(table):
    table.loc[::7, "colour"] = None
    table.loc[3, "height"] = np.nan
    with pytest.warns(UserWarning, match="filled by principal components"):
        assert list(compare(table, ["pca"]).table.index) == ["pca"]
    with pytest.warns(UserWarning, match="filled by principal components"):
        choose_dimension(table)
    with pytest.raises(ValueError, match="NaN"):
        compare(table[["length", "height"]], ["pca"])

"""Levels told from the other columns, where the map alone does not know them."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from twofold import UKR, Mixed
from twofold.mixed.columns import LevelColumn


def checkerboard(n: int = 150) -> pd.DataFrame:
    """Return a table whose category is the sign of a product: no plane tells it."""
    random = np.random.default_rng(0)
    a, b, c = random.uniform(-1, 1, (3, n))
    return pd.DataFrame(
        {
            "a": a,
            "b": b,
            "c": c,
            "side": np.where(a * b > 0, "same", "other"),
            "size": pd.Categorical(
                np.array(["s", "m", "l"])[np.digitize(c, [-0.3, 0.4])],
                ["s", "m", "l"],
                ordered=True,
            ),
        }
    )


@pytest.fixture(scope="module")
def fitted() -> tuple[Mixed, pd.DataFrame, pd.DataFrame]:
    rows = checkerboard()
    gappy = rows.copy()
    gappy.loc[::3, "side"] = None
    gappy.loc[1::5, "size"] = None
    gappy.loc[2::7, "a"] = np.nan
    return Mixed(UKR(1, init="pca", max_iter=5)).fit(gappy), gappy, rows


def test_trees_know_what_a_line_does_not(fitted):
    model, gappy, rows = fitted
    filled = model.complete(gappy)
    by_the_map = model.complete(gappy, use_residuals=False)
    for name, least in (("side", 0.7), ("size", 0.8)):
        gaps = gappy[name].isna() & gappy["a"].notna()
        right = (filled[name] == rows[name])[gaps].mean()
        assert right > least
        assert right > (by_the_map[name] == rows[name])[gaps].mean() + 0.1
    kept = gappy["side"].notna()
    assert (filled["side"] == gappy["side"])[kept].all()


def test_probabilities_are_those_of_map_and_trees(fitted):
    model, gappy, _ = fitted
    row = gappy.iloc[[0]]
    k = [column.name for column in model.columns_].index("side")
    column, part = list(model._table)[k]
    mapped = super(Mixed, model)._filled(model.features(row))[0]
    told = model._planted.features(column, part, mapped)
    expected = (column.proper(mapped[:, part]) + 2 * told) / 3
    found = model.complete(row, return_probabilities=True)[1]["side"]
    np.testing.assert_allclose(found, column.probabilities(expected))


def test_a_row_is_filled_the_same_alone_and_after_a_pickle(fitted):
    model, gappy, _ = fitted
    together = model.complete(gappy)
    again = pickle.loads(pickle.dumps(model))
    pd.testing.assert_frame_equal(again.complete(gappy), together)
    pd.testing.assert_frame_equal(model.complete(gappy.iloc[[3]]), together.iloc[[3]])
    assert "_planted" not in again.__getstate__()


def test_classes_and_features_belong_together():
    for kind, F, classes in [
        ("ordered", [[0, 0], [1, 0], [1, 1]], [0, 1, 2]),
        ("category", [[1, 0, 0], [0, 0, 1], [0, 1, 0]], [0, 2, 1]),
    ]:
        column = LevelColumn.__new__(LevelColumn)
        vars(column).update(kind=kind, levels=("x", "y", "z"), groups=np.arange(3), name="n")
        F = np.array(F, dtype=float)
        np.testing.assert_array_equal(column.classes(F), classes)
        np.testing.assert_allclose(column.from_classes(np.eye(3)[classes]), F)
        np.testing.assert_allclose(column.proper(F), F)


def test_too_few_rows_teach_nothing():
    rows = checkerboard(15)
    rows.loc[0, "side"] = None
    model = Mixed(UKR(1, init="pca", max_iter=2)).fit(rows)
    features = model.features(rows)
    assert model._planted.features(*list(model._table)[3], features) is None
    assert model.complete(rows)["side"].notna().all()

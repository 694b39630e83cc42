"""Gaps told from the other columns, where the map alone does not know them."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from twofold import UKR, ManifoldImputer, Mixed
from twofold.mixed.columns import LevelColumn
from twofold.mixed.other_columns import (
    LEAST_CHANCE,
    MOST_PREDICTORS,
    ROWS_OF_PRIOR,
    Forest,
    Regression,
    mixture_weights,
    places_of_levels,
    strongest,
)


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


def test_other_columns_know_what_a_line_does_not(fitted):
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


def test_numbers_are_the_mean_of_map_and_similar_rows(fitted):
    model, gappy, _ = fitted
    rows, axes = model.features(gappy), model._other_columns._axes
    mapped = super(Mixed, model)._expected(rows)[0]
    taught = np.where(
        np.isnan(model.data_), super(Mixed, model)._expected(model.data_)[0], model.data_
    )
    center, unit = taught.mean(axis=0), model.spread_

    def as_numbers(Y):
        """Three numbers, and one for each of two columns of levels."""
        Z = (Y - center) / unit
        return np.column_stack([Z[:, :3], Z[:, 3:5] @ axes["side"], Z[:, 5:] @ axes["size"]])

    imputer = ManifoldImputer(trees=False, n_jobs=None, random_state=0)
    imputer.fit(as_numbers(model.data_))
    a = 0  # the first feature
    similar = imputer.transform(as_numbers(rows))[:, a] * unit[a] + center[a]
    gaps = np.isnan(rows[:, a])
    assert gaps.sum() > 10
    expected = ((mapped[:, a] + similar) / 2)[gaps]
    np.testing.assert_allclose(model.complete(gappy)["a"][gaps], expected, rtol=1e-6)


def test_a_level_is_told_by_a_mixture(fitted):
    model, gappy, _ = fitted
    row = gappy.iloc[[0]]
    others = model._other_columns
    k = [column.name for column in model.columns_].index("side")
    place = others._columns[k]
    rows = model.features(row)
    mapped = np.where(np.isnan(rows), super(Mixed, model)._expected(rows)[0], rows)
    filled = others._between(rows, mapped)
    teller = others._teller(place, place.column)
    numbers, features = filled.without(place)
    by_hand = (
        np.mean([t.value[t.apply(numbers.astype("f4")), :, 0] for t in f._trees], axis=0)
        for f in (teller._extremely_random, teller._forest)
    )
    said = [*by_hand, teller._regression._model.predict_proba(features)]
    assert teller.weights.sum() == pytest.approx(1)
    expected = sum(w * P for w, P in zip(teller.weights, said, strict=True))
    found = model.complete(row, return_probabilities=True)[1]["side"]
    np.testing.assert_allclose(found, expected)


def test_weights_of_ways_are_the_most_likely():
    random = np.random.default_rng(0)
    chances = random.uniform(0.1, 0.9, (3, 60)) * [[1], [0.8], [0.3]]
    weights = random.integers(1, 4, 60).astype(float)

    def unlikely(w):
        w = np.abs(w) / np.abs(w).sum()
        seen = weights @ np.log(w @ (chances + LEAST_CHANCE))
        return -seen - ROWS_OF_PRIOR / 3 * np.log(w).sum()

    best = optimize.minimize(unlikely, np.ones(3), method="Nelder-Mead", tol=1e-10).x
    np.testing.assert_allclose(
        mixture_weights(chances, weights), np.abs(best) / np.abs(best).sum(), atol=1e-3
    )


def test_levels_of_similar_rows_stand_side_by_side():
    random = np.random.default_rng(1)
    t = random.random(400)
    level = np.array([2, 0, 3, 1])[(4 * t).astype(int)]  # the order along t is 2, 0, 3, 1
    others = np.column_stack([t, np.cos(t), 0.1 * random.normal(size=400)])
    places = places_of_levels(np.eye(4)[level], others)
    order = np.argsort(places).tolist()
    assert order in ([2, 0, 3, 1], [1, 3, 0, 2])
    means = np.array([others[level == k].mean(axis=0) for k in range(4)])
    size = np.linalg.norm(means - others.mean(axis=0), axis=1)
    np.testing.assert_allclose(np.abs(places), size, rtol=0.02)  # they lie on one axis, nearly


def test_trees_say_of_rows_what_those_say_that_have_not_seen_them():
    random = np.random.default_rng(2)
    X = random.normal(size=(60, 3))
    F = np.eye(2)[(X[:, 0] > 0).astype(int)]
    noise = np.eye(2)[random.integers(0, 2, 60)]
    for kind, tried in ((ExtraTreeRegressor, 0.4), (DecisionTreeRegressor, "sqrt")):
        weights = np.ones(60)
        assert ((Forest(kind, tried, X, F, weights).apart > 0.5) == F).mean() > 0.85
        blind = Forest(kind, tried, X, noise, weights)
        assert ((blind.told(X) > 0.5) == noise).mean() > 0.9  # by heart
        assert ((blind.apart > 0.5) == noise).mean() < 0.7


def test_a_regression_is_judged_by_rows_it_has_not_seen():
    random = np.random.default_rng(3)
    X = random.normal(size=(45, 40))
    classes = random.integers(0, 3, 45)
    weights = np.ones(45)
    regression = Regression(X, classes, weights, 4)  # of which the last was never seen
    assert (regression.told(X).argmax(axis=1) == classes).all()
    apart = regression.told_apart(X, classes, weights)
    assert (apart.argmax(axis=1) == classes).mean() < 0.6
    np.testing.assert_allclose(apart.sum(axis=1), 1)
    assert (apart[:, 3] == 0).all()
    np.testing.assert_array_equal(
        Regression(X, np.ones(45, dtype=int), weights, 3).told(X[:2]), [[0, 1, 0]] * 2
    )


def test_a_regression_of_many_classes_says_nothing(recwarn):
    random = np.random.default_rng(5)
    Regression(random.normal(size=(30, 4)), np.arange(30) % 20, np.ones(30), 20)
    assert not recwarn.list


def test_of_many_columns_the_strongest_are_asked():
    random = np.random.default_rng(4)
    X = random.normal(size=(200, MOST_PREDICTORS + 30))
    F = np.eye(2)[(X[:, 77] + X[:, 3] > 0).astype(int)]
    chosen = strongest(X, F)
    assert len(chosen) == MOST_PREDICTORS
    assert {3, 77} <= set(chosen.tolist())
    assert (np.diff(chosen) > 0).all()
    np.testing.assert_array_equal(strongest(X[:, :9], F), np.arange(9))


def test_a_row_is_filled_the_same_alone_and_after_a_pickle(fitted):
    model, gappy, _ = fitted
    together = model.complete(gappy)
    again = pickle.loads(pickle.dumps(model))
    pd.testing.assert_frame_equal(again.complete(gappy), together)
    pd.testing.assert_frame_equal(model.complete(gappy.iloc[[3]]), together.iloc[[3]])
    assert "_other_columns" not in again.__getstate__()


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
        np.testing.assert_allclose(column.to_classes(F), np.eye(3)[classes])


def test_too_few_rows_teach_nothing():
    rows = checkerboard(15)
    rows.loc[0, "side"] = None
    model = Mixed(UKR(1, init="pca", max_iter=2)).fit(rows)
    assert not model._other_columns._is_told.any()
    side = model._other_columns._columns[3]
    assert model._other_columns._teller(side, side.column) is None
    mapped = model.complete(rows, use_residuals=True, return_probabilities=True)[1]["side"]
    assert 0 < mapped.iloc[0, 0] < 1
    assert model.complete(rows)["side"].notna().all()

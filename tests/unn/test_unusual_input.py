"""Data and numbers that a model can do little with: it says so."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from twofold import UNN, SubmanifoldUNN
from twofold.neighbors import (
    DistanceWeightedKNNClassifier,
    DistanceWeightedKNNRegressor,
    ModelBasedKNN,
    PropagatingNearestNeighbor,
)


def rows(seed=0, n=60, D=4):
    return np.random.default_rng(seed).normal(size=(n, D))


@pytest.mark.parametrize(
    ("model", "sweeps"), [(UNN(), 1), (UNN(2), 1), (UNN(2, search="greedy"), 5)]
)
def test_auto_refines(model, sweeps):
    Y = rows(n=200)
    auto = model.set_params(random_state=0).fit(Y)
    assert len(auto.history_) == sweeps + 1
    given = clone(model).set_params(refine=sweeps).fit(Y)
    np.testing.assert_array_equal(auto.embedding_, given.embedding_)
    other = clone(model).set_params(refine=sweeps - 1).fit(Y)
    assert (auto.embedding_ != other.embedding_).any()


@pytest.mark.parametrize("scale", [1e200, 1e150, 1e-170, 1e-200])
@pytest.mark.parametrize("model", [UNN(), UNN(2), SubmanifoldUNN()], ids=repr)
def test_squares_beyond_all_numbers_are_refused(model, scale):
    with pytest.raises(ValueError, match=r"squares of (larger )?values"):
        model.fit(rows(n=30) * scale)
    with pytest.raises(ValueError, match=r"squares of (larger )?values"):
        model.fit(rows(n=30)).transform(rows(n=2) * 1e200)


@pytest.mark.parametrize("scale", [2.0**190, 2.0**-190])
def test_scale_of_data_within_range_changes_nothing(scale):
    plain = UNN(shuffle=False).fit(rows(n=40))
    scaled = UNN(shuffle=False).fit(rows(n=40) * scale)
    np.testing.assert_array_equal(plain.embedding_, scaled.embedding_)
    assert np.isfinite(UNN(2, random_state=0).fit(rows(n=40) * scale).embedding_).all()


@pytest.mark.parametrize("kind", [UNN, SubmanifoldUNN])
def test_all_rows_as_neighbors_are_warned_of(kind):
    with pytest.warns(UserWarning, match="n_neighbors=500 takes in all 20 distinct rows"):
        kind(2, n_neighbors=500, random_state=0).fit(rows(n=20))


def test_unknown_kernel_lists_those_that_are_taken():
    with pytest.raises(ValueError, match="tanh") as error:
        UNN(data_kernel="cosine").fit(rows(n=20))
    assert "precomputed" not in str(error.value)


@pytest.mark.parametrize(
    "model",
    [
        DistanceWeightedKNNClassifier(),
        DistanceWeightedKNNRegressor(),
        ModelBasedKNN(),
        PropagatingNearestNeighbor(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_neighbors_refuse_them_too(model, scale):
    Y, labels = rows(n=30), np.arange(30) % 2
    with pytest.raises(ValueError, match=r"squares of (larger )?values"):
        model.fit(Y * scale, labels)
    with pytest.raises(ValueError, match=r"squares of (larger )?values"):
        model.fit(Y, labels).predict(Y * 1e200)


@pytest.mark.parametrize("kind", ["line", "greedy line", "plane", "lattice", "parts"])
def test_more_neighbors_than_memory_holds_are_all_rows(kind):
    make = {
        "line": lambda k: UNN(n_neighbors=k, random_state=0),
        "greedy line": lambda k: UNN(n_neighbors=k, search="greedy", random_state=0),
        "plane": lambda k: UNN(2, n_neighbors=k, random_state=0),
        "lattice": lambda k: UNN(2, n_neighbors=k, search="greedy", random_state=0),
        "parts": lambda k: SubmanifoldUNN(n_neighbors=k, random_state=0),
    }[kind]
    Y = rows(n=20)
    Y[::7, 1] = np.nan
    with pytest.warns(UserWarning, match="takes in all"):
        many, all_rows = make(10**15).fit(Y), make(20).fit(Y)
    np.testing.assert_array_equal(many.embedding_, all_rows.embedding_)
    np.testing.assert_array_equal(
        many.inverse_transform(many.embedding_), all_rows.inverse_transform(many.embedding_)
    )

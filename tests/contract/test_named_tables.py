"""Frames from the way back where `set_output` asks for them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn

from twofold import UKR, Mixed, Scaled, plots
from twofold.standing_out import what_stands_out

ROWS = pd.DataFrame(
    np.random.default_rng(0).normal(size=(25, 3)).cumsum(axis=0),
    columns=["a", "b", "c"],
    index=[f"r{k}" for k in range(25)],
)
GAPPY = ROWS.mask(np.arange(75).reshape(25, 3) % 7 == 0)


def quick() -> UKR:
    return UKR(init="pca", max_iter=3)


@pytest.mark.parametrize("make", [quick, lambda: Scaled(quick())], ids=["UKR", "Scaled"])
def test_frames_of_pandas(make):
    plain, model = make().fit(ROWS), make().set_output(transform="pandas").fit(ROWS)
    X = model.transform(ROWS)
    for found, expected in [
        (model.inverse_transform(X), plain.inverse_transform(plain.transform(ROWS))),
        (model.reconstruct(ROWS), plain.reconstruct(ROWS)),
        (model.complete(GAPPY), plain.complete(GAPPY)),
    ]:
        assert list(found.columns) == ["a", "b", "c"]
        assert list(found.index) == list(ROWS.index)
        np.testing.assert_array_equal(found, expected)
    assert list(model.sample(2, random_state=0).columns) == ["a", "b", "c"]
    means, std = model.inverse_transform(X, return_std=True)
    assert means.shape == std.shape == (25, 3)
    draws = model.complete(GAPPY, n_draws=2, random_state=0)
    assert [type(draw) for draw in draws] == [pd.DataFrame] * 2


def test_other_libraries_and_columns_without_names():
    model = quick().set_output(transform="polars").fit(ROWS.to_numpy())
    found = model.inverse_transform(model.embedding_)
    assert isinstance(found, pl.DataFrame)
    assert found.columns == ["x1", "x2", "x3"]


def test_nothing_inside_sees_frames():
    with sklearn.config_context(transform_output="pandas"):
        model = quick().fit(ROWS)
        mixed = Mixed(quick()).fit(ROWS.assign(kind=list("ab") * 12 + ["a"]))
        assert isinstance(model.as_numbers().inverse_transform(model.embedding_), np.ndarray)
        assert isinstance(mixed.as_numbers().inverse_transform(mixed.embedding_), np.ndarray)
        assert set(mixed.inverse_transform(mixed.embedding_).columns) == {"a", "b", "c", "kind"}
        assert len(what_stands_out(model, [0, 1, 2])) == 3
        plots.path(model, 0, 1, steps=3)
    assert model.as_numbers() is model

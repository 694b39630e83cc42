"""What is particular to UKR as users meet it: parameters, starts, interrupts, odd data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from twofold import UKR, load, upgrade
from twofold.datasets import make_random_manifold
from twofold.kernels import Kernel
from twofold.regularization import Density, Extension

DATA = make_random_manifold(150, 2, 5, noise=0.02, random_state=0)
TRAIN, NEW = DATA.Y[:110], DATA.Y[110:]
PICTURE = PCA(2).fit_transform(TRAIN)
QUICK = {"init": "pca", "max_iter": 10, "random_state": 0}

BAD_PARAMETERS = {
    "components text": (
        {"n_components": "2"},
        r"`n_components` must be .auto. or an integer of at least 1",
    ),
    "components zero": ({"n_components": 0}, "got 0"),
    "components half": ({"n_components": 2.5}, "got 2.5"),
    "kernel": ({"kernel": "gausian"}, r"\['gaussian', 'quartic', 'triweight'\].*'gausian'"),
    "kink": ({"kernel": "epanechnikov"}, "kink"),
    "init name": ({"init": "umap"}, "'umap'"),
    "init shape": ({"init": np.ones((3, 2))}, r"got shape \(3, 2\)"),
    "init class": ({"init": PCA}, r"pass PCA\(\.\.\.\)"),
    "init dict": ({"init": {}}, "got dict"),
    "init constant": ({"init": np.ones((110, 2))}, "same place"),
    "init infinite": ({"init": np.full((110, 2), np.inf)}, "finite"),
    "optimizer": ({"optimizer": "adam"}, "'adam'"),
    "tol": ({"tol": -1}, "`tol` must be a finite number of at least 0"),
    "cutoff": ({"cutoff": "x"}, "`cutoff`.*'x'"),
    "max_iter": ({"max_iter": 1.5}, "`max_iter`"),
    "n_jobs": ({"n_jobs": 0}, "`n_jobs`.*got 0"),
    "n_jobs text": ({"n_jobs": "x"}, "`n_jobs`.*'x'"),
    "verbose": ({"verbose": "loud"}, "'loud'"),
    "callbacks": ({"callbacks": [3]}, "`callbacks` must be a list of functions"),
    "one callback": ({"callbacks": print}, "`callbacks` must be a list of functions"),
    "regularization": ({"regularization": "ridge"}, "'ridge'"),
    "threshold": ({"regularization": Density(threshold=0.001)}, "between 1/n"),
}


@pytest.mark.parametrize("case", BAD_PARAMETERS)
def test_bad_parameters_are_explained(case: str):
    parameters, message = BAD_PARAMETERS[case]
    with pytest.raises(ValueError, match=message):
        UKR(**QUICK | parameters).fit(TRAIN)


def test_broken_kernels_are_noticed():
    for value, derivative, message in (
        (lambda s: s * np.nan, lambda s: -s, r"F\(0\) = 1; got nan"),
        (lambda s: np.exp(-s), lambda s: np.exp(-s), "is not the derivative"),
        (lambda s: float(s) * 2, lambda s: -s, "elementwise"),
    ):
        with pytest.raises(ValueError, match=message):
            UKR(kernel=Kernel("mine", value, derivative), **QUICK).fit(TRAIN)


def test_a_failed_fit_leaves_the_model_as_it_was():
    def fail(event: object) -> None:
        raise OSError("disk full")

    model = UKR(**QUICK).fit(TRAIN)
    before = model.transform(NEW)
    model.set_params(callbacks=[fail])
    for attempt in (model.fit, model.partial_fit):
        with pytest.raises(OSError, match="disk full"):
            attempt(NEW)
        np.testing.assert_array_equal(model.transform(NEW), before)
        assert len(model.embedding_) == len(model.member_) == len(TRAIN)
    model.set_params(callbacks=()).partial_fit(NEW)
    assert len(model.embedding_) == len(DATA.Y)


@pytest.mark.slow
def test_a_fit_forgets_the_one_before():
    model = upgrade(PICTURE, TRAIN, bandwidth="local").set_params(**QUICK)
    np.testing.assert_array_equal(model.fit(TRAIN).embedding_, UKR(**QUICK).fit(TRAIN).embedding_)
    assert not hasattr(model, "widths_")


def test_local_pictures_refuse_new_rows_whole():
    model = upgrade(PICTURE, TRAIN, bandwidth="local")
    before = model.transform(NEW)
    with pytest.raises(ValueError, match="local bandwidths"):
        model.partial_fit(NEW)
    np.testing.assert_array_equal(model.transform(NEW), before)


def test_a_picture_loses_no_digit_to_float32_data():
    model = upgrade(PICTURE, TRAIN.astype(np.float32))
    np.testing.assert_array_equal(model.embedding_, PICTURE)
    np.testing.assert_array_equal(model.transform(TRAIN.astype(np.float32)), PICTURE)


def test_upgrade_notices_swapped_arguments_and_weights():
    with pytest.raises(ValueError, match="picture first"):
        upgrade(TRAIN, PICTURE)
    with pytest.raises(ValueError, match="same place"):
        upgrade(np.ones((110, 2)), TRAIN)
    with pytest.raises(TypeError, match="max_iter"):
        upgrade(PICTURE, TRAIN, max_iter=3)
    with pytest.raises(ValueError, match="positive `sample_weight`"):
        upgrade(PICTURE, TRAIN, sample_weight=np.zeros(110) + (np.arange(110) > 0))
    weights = np.linspace(1, 5, 110)
    model = upgrade(PICTURE, TRAIN, sample_weight=weights)
    np.testing.assert_array_equal(model.weights_, weights)


@pytest.mark.parametrize("bound", [{"radius": 2.0}, {"box": 1.5}])
def test_bounds_hold_for_the_embedding(bound: dict[str, float]):
    model = UKR(regularization=Extension(**bound), **QUICK).fit(TRAIN)
    if "radius" in bound:
        assert np.linalg.norm(model.embedding_, axis=1).max() <= 2.0 * (1 + 1e-9)
    else:
        assert np.abs(model.embedding_).max() <= 1.5 * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "factor"),
    [(np.float32, 1e25), (np.float32, 1e-25), (np.float64, 1e200), (np.float64, 1e-200)],
)
def test_units_do_not_matter(dtype: type, factor: float):
    Y = TRAIN.astype(dtype)
    plain = UKR(**QUICK).fit(Y)
    power = dtype(2.0 ** round(np.log2(factor)))
    scaled = UKR(**QUICK).fit(Y * power)
    X = plain.embedding_[:5]
    # Rows are in another order, and iterations carry the rounding on.
    near = {"rtol": 1e-3, "atol": 1e-3 if dtype is np.float64 else 0.05}
    np.testing.assert_allclose(scaled.embedding_, plain.embedding_, **near)
    np.testing.assert_allclose(
        scaled.inverse_transform(X) / power, plain.inverse_transform(X), **near
    )
    np.testing.assert_allclose(
        scaled.transform(NEW.astype(dtype) * power), plain.transform(NEW.astype(dtype)), **near
    )
    np.testing.assert_allclose(scaled.jacobian(X) / power, plain.jacobian(X), **near)


def test_penalties_are_in_units_of_the_data():
    Y = 1000 * TRAIN
    for regularization, same in (
        (Extension(penalty=0.01), Extension(penalty=0.01e6)),
        (Density(penalty=0.01), Density(penalty=0.01e6)),
    ):
        a = UKR(regularization=regularization, **QUICK).fit(TRAIN)
        b = UKR(regularization=same, **QUICK).fit(Y)
        assert b.objective_ == pytest.approx(1e6 * a.objective_, rel=1e-3)


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    wide = TRAIN[:40] @ rng.normal(size=(5, 300))
    model = UKR(**QUICK).fit(wide)
    turn = np.linalg.qr(rng.normal(size=(300, 300)))[0]
    turned = UKR(**QUICK).fit(wide @ turn)
    assert turned.starts_["pca"] == pytest.approx(model.starts_["pca"], rel=1e-9)
    assert turned.objective_ == pytest.approx(model.objective_, rel=0.15)
    assert model.inverse_transform(model.embedding_).shape == (40, 300)
    residual = model.inverse_transform(model.embedding_) - wide
    assert (residual**2).sum() < 0.2 * ((wide - wide.mean(axis=0)) ** 2).sum()


def test_the_fitted_kernel_is_what_is_saved(tmp_path):
    model = UKR(**QUICK).fit(TRAIN)
    expected = model.inverse_transform(model.embedding_[:3])
    model.set_params(kernel="quartic").save(tmp_path / "model.twofold")
    again = load(tmp_path / "model.twofold")
    np.testing.assert_array_equal(again.inverse_transform(model.embedding_[:3]), expected)


def test_callbacks_do_not_keep_a_model_from_being_saved(tmp_path):
    model = UKR(callbacks=[lambda event: None], **QUICK).fit(TRAIN)
    model.save(tmp_path / "model.twofold")
    assert load(tmp_path / "model.twofold").callbacks == ()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        model.save(tmp_path)
    with pytest.raises(TypeError, match=r"parameter 'init'.*set_params"):
        UKR(init=PCA(2), max_iter=1).fit(TRAIN).save(tmp_path / "other.twofold")


def test_text_columns_are_named():
    frame = pd.DataFrame(TRAIN, columns=list("abcde"))
    frame["when"] = pd.Timestamp("2020-01-01")
    frame["who"] = "me"
    with pytest.raises(ValueError, match=r"'when' \(datetime64.*'who'"):
        UKR().fit(frame)


@pytest.mark.slow
def test_masked_arrays_are_missing_entries():
    holes = np.random.default_rng(0).random(TRAIN.shape) < 0.1
    masked = UKR(**QUICK).fit(np.ma.array(TRAIN, mask=holes))
    plain = UKR(**QUICK).fit(np.where(holes, np.nan, TRAIN))
    np.testing.assert_array_equal(masked.embedding_, plain.embedding_)


def interrupt_at(iteration: int):
    def callback(event) -> None:
        if event.iteration == iteration:
            raise KeyboardInterrupt

    return callback


def test_an_interrupt_keeps_the_best_so_far():
    model = UKR(1, init="isomap", max_iter=50, callbacks=[interrupt_at(5)])
    with pytest.warns(ConvergenceWarning, match="Interrupted after"):
        model.fit(TRAIN)
    assert model.stop_reason_ == "interrupted"
    assert np.isfinite(model.transform(NEW)).all()


def test_an_interrupt_between_starts_keeps_those_that_are_finished(monkeypatch):
    from twofold.ukr import starts

    waiting = starts.Future.result
    calls = []

    def interrupted_once(future, *arguments):
        calls.append(future)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return waiting(future, *arguments)

    monkeypatch.setattr(starts.Future, "result", interrupted_once)
    with pytest.warns(ConvergenceWarning, match="best model so far"):
        model = UKR(random_state=0).fit(TRAIN)
    assert "pca" in model.starts_
    assert model.n_iter_ == 0


def test_a_callback_can_stop_the_fit():
    model = UKR(1, init="isomap", callbacks=[lambda event: event.iteration >= 3]).fit(TRAIN)
    assert model.stop_reason_ == "callback"
    assert model.n_iter_ == 3


@pytest.mark.slow
def test_far_away_rows_are_placed_without_a_word():
    model = UKR(**QUICK).fit(TRAIN)
    assert np.isfinite(model.transform(NEW * 1e200)).all()


def test_dimensions_are_found_if_asked_for(tmp_path):
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 4, 200)
    Y = np.column_stack([np.cos(angle), np.sin(angle), angle]) @ rng.normal(size=(3, 8))
    model = UKR("auto", random_state=0, max_iter=5).fit(Y + rng.normal(0, 0.01, Y.shape))
    assert model.n_components_ == 1
    assert model.embedding_.shape == (200, 1)
    model.save(tmp_path / "curve.twofold")
    assert load(tmp_path / "curve.twofold").n_components_ == 1
    start = rng.normal(size=(200, 3))
    assert UKR("auto", init=start, max_iter=0).fit(Y).embedding_.shape == (200, 3)
    with pytest.raises(ValueError, match="cannot see them through a `data_kernel`"):
        UKR("auto", data_kernel="rbf").fit(Y)


def test_large_tables_take_fewer_iterations():
    model = UKR()
    for n, expected in (
        (500, 400),
        (3_000, 400),
        (3_001, 200),
        (10_000, 200),
        (10_001, 60),
        (60_000, 40),
        (1_000_000, 15),
    ):
        model.data_ = np.empty((n, 0))
        assert model._most_iterations() == expected
    for n, expected in ((1_000, 200), (1_001, 100), (10_001, 60)):
        model = UKR(4)
        model.data_ = np.empty((n, 0))
        assert model._most_iterations() == expected
    assert UKR(max_iter=7)._most_iterations() == 7

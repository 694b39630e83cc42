from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from twofold import UKR, UNN, KernelPCA, ManifoldClassifier, Scaled, load, model_files
from twofold.contract.kernel_description import KernelDescription
from twofold.rowwise import center_and_spread


@pytest.fixture(scope="module")
def wine() -> pd.DataFrame:
    return load_wine(as_frame=True).data


@pytest.fixture(scope="module")
def model(wine) -> Scaled:
    return Scaled(UKR(init="pca", max_iter=10)).fit(wine)


def test_is_a_pipeline_of_scaler_and_model(wine):
    pipeline = make_pipeline(StandardScaler(), UKR(init="pca", max_iter=2)).fit(wine)
    model = Scaled(UKR(init="pca", max_iter=2)).fit(wine)
    X = model.embedding_
    np.testing.assert_allclose(pipeline[-1].embedding_, X, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        pipeline.inverse_transform(X[:5]), model.inverse_transform(X[:5]), rtol=1e-6
    )


@pytest.mark.slow
def test_columns_count_alike_whatever_their_units(wine, model):
    units = 10.0 ** np.arange(-6, 7)
    Y = wine.to_numpy()
    other = Scaled(UKR(init="pca", max_iter=10)).fit(Y * units + units)
    assert other.objective_ == pytest.approx(model.objective_, rel=0.05)
    found = other.inverse_transform(other.embedding_) / units - 1
    share = ((found - Y) ** 2).mean(axis=0) / Y.var(axis=0)
    expected = ((model.inverse_transform(model.embedding_) - Y) ** 2).mean(axis=0) / Y.var(axis=0)
    np.testing.assert_allclose(share, expected, atol=0.05)
    assert share.mean() < 0.6


def test_standard_and_robust_scales_against_plain_formulas():
    rng = np.random.default_rng(0)
    Y = rng.normal(3, 2, size=(2_000, 3))
    Y[:50, 0] = 1e6
    Y[rng.random(Y.shape) < 0.1] = np.nan
    ones = np.ones(len(Y))
    center, spread = center_and_spread("standard", Y, ones)
    np.testing.assert_allclose(center, np.nanmean(Y, axis=0))
    np.testing.assert_allclose(spread, np.nanstd(Y, axis=0))
    center, spread = center_and_spread("robust", Y, ones)
    np.testing.assert_allclose(center, 3, atol=0.2)
    np.testing.assert_allclose(spread, 2, atol=0.2)


def test_weights_count_in_the_standard_scale():
    Y = np.array([[0.0], [1.0], [5.0]])
    center, spread = center_and_spread("standard", Y, np.array([1.0, 3.0, 2.0]))
    copies = np.repeat(Y, [1, 3, 2], axis=0)
    assert center == pytest.approx(copies.mean())
    assert spread == pytest.approx(copies.std())


def test_constant_and_mostly_equal_columns():
    Y = np.array([[0.1, 0.0], [0.1, 0.0], [0.1, 0.0], [0.1, 0.0], [0.1, 8.0]])
    _, spread = center_and_spread("robust", Y, np.ones(5))
    assert spread[0] == 1
    assert spread[1] == pytest.approx(Y[:, 1].std())
    assert center_and_spread("standard", Y, np.ones(5))[1][0] == 1


def test_a_model_of_numbers_next_to_zero_is_saved(tmp_path):
    Y = np.random.default_rng(0).normal(size=(30, 3)) * 1e-310
    model = Scaled(UKR(init="pca", max_iter=1)).fit(Y)
    model.save(tmp_path / "small.twofold")
    found = load(tmp_path / "small.twofold").reconstruct(Y[:3])
    np.testing.assert_array_equal(found, model.reconstruct(Y[:3]))
    assert np.abs(found).max() > 1e-311


@pytest.mark.parametrize("unit", [2.0**-1040, 2.0**1022])
def test_a_scale_is_found_wherever_numbers_are(unit):
    Y = np.array([[1.0], [1.25], [1.75]])
    center, spread = center_and_spread("standard", Y * unit, np.ones(3))
    np.testing.assert_allclose(center / unit, Y.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(spread / unit, Y.std(axis=0), rtol=1e-6)


@pytest.mark.slow
def test_jacobian_is_in_the_units_of_the_data(model):
    X = model.embedding_[:4]
    steps = 1e-5 * np.eye(2)
    slopes = [
        (model.inverse_transform(X + step) - model.inverse_transform(X - step)) / 2e-5
        for step in steps
    ]
    found = model.jacobian(X) / model.spread_[:, None]
    np.testing.assert_allclose(
        found, np.stack(slopes, axis=2) / model.spread_[:, None], atol=1e-4 * np.abs(found).max()
    )


def test_gaps_are_filled_in_the_units_of_the_data(wine, model):
    partial = wine.copy()
    partial.iloc[::3, 12] = np.nan
    filled = model.complete(partial)
    truth = wine.to_numpy()[::3, 12]
    assert np.abs(filled[::3, 12] - truth).mean() < 0.6 * np.abs(truth - truth.mean()).mean()
    assert np.array_equal(filled[1::3], wine.to_numpy()[1::3])


def test_saved_and_opened(wine, model, tmp_path):
    model.save(tmp_path / "wine.twofold")
    again = load(tmp_path / "wine.twofold")
    assert isinstance(again, Scaled)
    assert again.get_params()["model__max_iter"] == 10
    assert np.array_equal(again.transform(wine), model.transform(wine))
    assert np.array_equal(again.inverse_transform([[0, 0]]), model.inverse_transform([[0, 0]]))
    assert list(again.feature_names_in_) == list(wine.columns)


@pytest.mark.slow
def test_in_a_classifier_and_its_file(wine, tmp_path):
    y = load_wine().target
    classifier = ManifoldClassifier(Scaled(UKR(1, init="pca", max_iter=5))).fit(wine, y)
    assert (classifier.predict(wine) == y).mean() > 0.9
    classifier.save(tmp_path / "c.twofold")
    again = load(tmp_path / "c.twofold")
    assert np.array_equal(again.predict(wine), classifier.predict(wine))
    assert isinstance(again.model, Scaled)


def test_kernel_regression_in_units_of_the_data(model):
    found = model.kernel_regression()
    assert isinstance(found, KernelDescription)
    x = np.array([0.3, -0.2])
    s = (((found.latent - x) * found.latent_scale) ** 2).sum(axis=1)
    weights = found.weights * np.exp(-s / 2)
    weights /= weights.sum()
    np.testing.assert_allclose(weights @ found.data, model.inverse_transform([x])[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (Scaled(how="minmax"), ValueError, "'standard', 'robust'.*got 'minmax'"),
        (Scaled(StandardScaler()), TypeError, "two-way model"),
        (Scaled(UKR(data_kernel="precomputed")), ValueError, "no columns to scale"),
    ],
)
def test_wrong_parameters(wine, wrong, error, message):
    with pytest.raises(error, match=message):
        wrong.fit(wine)


def test_no_partial_fit_where_the_model_has_none():
    assert hasattr(Scaled(), "partial_fit")
    assert hasattr(Scaled(UKR(landmarks=10)), "partial_fit")
    assert not hasattr(Scaled(UKR(data_kernel="rbf")), "partial_fit")


def test_gaps_are_placed_only_if_the_model_inside_places_them():
    Y = load_wine().data
    gappy = Y.copy()
    gappy[3, 2] = np.nan
    model = Scaled(KernelPCA(2)).fit(Y)
    for refuses in (model.transform, model.reconstruct, model.score_samples):
        with pytest.raises(ValueError, match="KernelPCA compares complete rows; 1 of 178 have"):
            refuses(gappy)
    filled = model.complete(gappy)
    assert abs(filled[3, 2] - Y[3, 2]) < 3 * Y[:, 2].std()
    filled[3, 2] = Y[3, 2]
    np.testing.assert_array_equal(filled, Y)


@pytest.mark.parametrize(
    ("model", "least"), [(UNN(), 3), (UKR(), 4), (UKR(3), 5), (Scaled(), 4), (Scaled(UNN()), 3)]
)
def test_partial_fit_says_how_to_begin(model, least):
    with pytest.raises(ValueError, match=f"begin with {least} rows or more, then pass others"):
        model.partial_fit(np.ones((1, 6)))
    with pytest.raises(ValueError, match="Reshape your data") as error:
        model.partial_fit(np.ones(6))
    assert "begin with" not in str(error.value)


@pytest.fixture(scope="module", params=["standard", "robust"])
def both(wine, request) -> tuple[Scaled, UKR]:
    """A scaled model, and one fitted to rows that were scaled by hand."""
    scaled = Scaled(UKR(random_state=0, max_iter=20), request.param).fit(wine.to_numpy())
    by_hand = UKR(random_state=0, max_iter=20)
    return scaled, by_hand.fit((wine.to_numpy() - scaled.center_) / scaled.spread_)


def new_rows(wine: pd.DataFrame) -> np.ndarray:
    """Return rows between those of the fit, some with gaps."""
    Y = wine.to_numpy()
    Y = (Y[:-1] + Y[1:])[::3] / 2
    Y[np.random.default_rng(0).random(Y.shape) < 0.2] = np.nan
    Y[:10] = wine.to_numpy()[:10]
    return Y


def close(found, expected, rtol=1e-9):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-9 * np.nanmax(np.abs(expected)))


def test_what_is_open_is_that_of_rows_scaled_by_hand(wine, both):
    scaled, by_hand = both
    c, s, Y = scaled.center_, scaled.spread_, new_rows(wine)
    Z = (Y - c) / s
    close(scaled.noise_.center, by_hand.noise_.center * s + c)
    close(scaled.noise_.unit, by_hand.noise_.unit * s)
    close(scaled.noise_.weights, by_hand.noise_.weights)
    close(scaled.noise_std(), by_hand.noise_std() * s)
    filled, std = scaled.complete(Y, return_std=True)
    expected, expected_std = by_hand.complete(Z, return_std=True)
    close(filled, expected * s + c)
    close(std, expected_std * s)
    draws = scaled.complete(Y, n_draws=2, random_state=3)
    close(draws, by_hand.complete(Z, n_draws=2, random_state=3) * s + c)
    for end, expected in zip(scaled.intervals(Y), by_hand.intervals(Z), strict=True):
        close(end, expected * s + c)
    rows, row_std = scaled.reconstruct(Y, use_residuals=True, return_std=True)
    expected, expected_std = by_hand.reconstruct(Z, use_residuals=True, return_std=True)
    close(rows, expected * s + c)
    close(row_std, expected_std * s)
    close(scaled.reconstruct(Y), by_hand.reconstruct(Z) * s + c)
    close(
        scaled.sample(20, random_state=1, noise=True),
        by_hand.sample(20, random_state=1, noise=True) * s + c,
    )


def test_what_is_odd_is_that_of_rows_scaled_by_hand(wine, both):
    scaled, by_hand = both
    c, s, Y = scaled.center_, scaled.spread_, new_rows(wine)
    Z = (Y - c) / s
    log_units = (~np.isnan(Y) * np.log(s)).sum(axis=1)
    close(scaled.log_likelihood(Y), by_hand.log_likelihood(Z) - log_units)
    close(scaled.p_values(Y), by_hand.p_values(Z))
    found, expected = scaled.explain(Y), by_hand.explain(Z)
    close(found.expected, expected.expected * s + c)
    close(found.std, expected.std * s)
    close(found.deviations, expected.deviations, rtol=1e-6)
    left, expected_left = scaled.left_open(), by_hand.left_open()
    close(left.share, expected_left.share)
    close(left.features, expected_left.features * s)
    places = by_hand.embedding_[:5]
    close(scaled.slopes(places), by_hand.slopes(places) * s[:, None])


def test_noise_of_an_earlier_version_is_made_again(wine, model, tmp_path):
    stored = model.to_file()
    stored.attributes["noise_"] = model.noise_
    model_files.write_model_file(tmp_path / "old.twofold", stored)
    again = load(tmp_path / "old.twofold")
    assert "noise_" not in vars(again)
    np.testing.assert_array_equal(again.p_values(wine[:5]), model.p_values(wine[:5]))

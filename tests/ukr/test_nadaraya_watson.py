from __future__ import annotations

import pickle

import numpy as np
import pytest
from kernel_cases import ALL_KERNELS, BUILT_IN, FINITE, name_of
from oracles import kernel_sums as oracle
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from twofold import NadarayaWatson
from twofold.kernels import GAUSSIAN, Kernel


@parametrize_with_checks([NadarayaWatson()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def noisy_sine(n=50, noise=0.2, seed=0):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 1, size=n))
    return x[:, None], np.sin(2 * np.pi * x) + noise * rng.normal(size=n)


def cv_error(kernel, x, y, bandwidth, weights=None):
    """CV(h) of 4.10, from the formula."""
    Y = y.reshape(len(y), -1)
    return oracle.reconstruction(kernel, x / bandwidth, Y, True, weights)[0]


def test_two_points_by_hand():
    # K(0.5) = exp(-1/8) from 0 and K(1.5) = exp(-9/8) from 2: f = 4 / (1 + e^(8/8)) + 0.
    model = NadarayaWatson(bandwidth=1.0).fit([[0.0], [2.0]], [0.0, 4.0])
    np.testing.assert_allclose(model.predict([[0.5], [1.0]]), [4 / (1 + np.e), 2], rtol=1e-6)
    assert model.loo_error_ == pytest.approx(16)  # each is predicted by the other


def test_the_bandwidth_is_the_unit_of_length_by_hand():
    # Quartic with h = 2: weights (1 - 1/16)² and (1 - 9/16)² at x = 0.5.
    model = NadarayaWatson("quartic", bandwidth=2.0).fit([[0.0], [2.0]], [0.0, 4.0])
    near, far = (15 / 16) ** 2, (7 / 16) ** 2
    assert model.predict([[0.5]])[0] == pytest.approx(4 * far / (near + far))


@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=name_of)
def test_predictions_equal_the_oracle(kernel):
    rng = np.random.default_rng(1)
    X, Y, weights = rng.normal(size=(40, 2)), rng.normal(size=(40, 3)), rng.uniform(size=40)
    h = np.array([0.8, 1.7])
    model = NadarayaWatson(kernel, bandwidth=h, cutoff=1e-15).fit(X, Y, weights)
    Q = X[:10] + 0.1
    expected, _ = oracle.regress(kernel, Q / h, X / h, Y, None, weights)
    np.testing.assert_allclose(model.predict(Q), expected, rtol=1e-9, atol=1e-12)
    assert model.loo_error_ == pytest.approx(cv_error(kernel, X, Y, h, weights), rel=1e-9)


@pytest.mark.parametrize("kernel", BUILT_IN, ids=name_of)
def test_narrow_kernels_interpolate(kernel):
    x, y = noisy_sine()
    model = NadarayaWatson(kernel, bandwidth=1e-5).fit(x, y)
    np.testing.assert_allclose(model.predict(x), y, rtol=1e-9)


@pytest.mark.parametrize("kernel", BUILT_IN, ids=name_of)
def test_wide_kernels_give_the_mean(kernel):
    x, y = noisy_sine()
    model = NadarayaWatson(kernel, bandwidth=1e5).fit(x, y)
    np.testing.assert_allclose(model.predict([[0.1], [0.9]]), y.mean(), rtol=1e-6)
    assert model.loo_error_ == pytest.approx(y.var() * (50 / 49) ** 2, rel=1e-6)


def test_a_narrow_gaussian_is_the_nearest_neighbour_everywhere():
    x, y = noisy_sine()
    Q = np.array([[-3.0], [0.5], [7.0]])
    nearest = np.abs(Q - x.T).argmin(axis=1)
    np.testing.assert_allclose(NadarayaWatson(bandwidth=1e-4).fit(x, y).predict(Q), y[nearest])


@pytest.mark.parametrize("kernel", FINITE, ids=name_of)
def test_out_of_reach_the_mean_stands_in(kernel):
    x, y = noisy_sine()
    model = NadarayaWatson(kernel, bandwidth=0.2).fit(x, y)
    np.testing.assert_allclose(model.predict([[9.0]]), y.mean())


@pytest.mark.parametrize("kernel", BUILT_IN, ids=name_of)
@pytest.mark.parametrize("bandwidth", ["loo", "loo_common"])
def test_the_bandwidth_is_near_the_best(kernel, bandwidth):
    # Klanke 2007, figures 4.1 and 4.2: 50 samples of a noisy sine.
    for seed in range(3):
        x, y = noisy_sine(seed=seed)
        model = NadarayaWatson(kernel, bandwidth=bandwidth).fit(x, y)
        grid = np.geomspace(0.003, 1, 150)
        errors = [cv_error(kernel, x, y, h) for h in grid]
        assert model.loo_error_ == pytest.approx(cv_error(kernel, x, y, model.bandwidth_), rel=1e-5)
        # A grid in steps of 1.5 alone, or followed by a search, which a kinked kernel hampers.
        assert model.loo_error_ < (1.02 if bandwidth == "loo" else 1.1) * min(errors)
        truth = np.sin(2 * np.pi * x[:, 0])
        assert np.square(model.predict(x) - truth).mean() < 0.5 * 0.2**2


def test_an_irrelevant_feature_gets_a_wide_kernel():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(150, 2)) * np.array([1.0, 1000.0])
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=150)
    each = NadarayaWatson().fit(X, y)
    relative = each.bandwidth_ / X.std(axis=0)
    assert relative[1] > 4 * relative[0]
    assert each.loo_error_ < 0.03
    assert NadarayaWatson(bandwidth="loo_common").fit(X, y).loo_error_ > 3 * each.loo_error_


def test_a_constant_feature_does_not_matter():
    x, y = noisy_sine()
    plain = NadarayaWatson().fit(x, y)
    for constant in (0.0, 0.1, 1e6):
        X = np.column_stack([x, np.full(50, constant)])
        model = NadarayaWatson().fit(X, y)
        assert model.loo_error_ == pytest.approx(plain.loo_error_, rel=1e-3)
        np.testing.assert_allclose(model.predict(X), plain.predict(x), atol=1e-2)


def test_units_do_not_matter():
    x, y = noisy_sine()
    one, other = NadarayaWatson().fit(x, y), NadarayaWatson().fit(1e4 * x - 300, 1e-3 * y)
    np.testing.assert_allclose(other.bandwidth_, 1e4 * one.bandwidth_, rtol=1e-3)
    np.testing.assert_allclose(
        other.predict(1e4 * x - 300), 1e-3 * one.predict(x), rtol=1e-3, atol=1e-6
    )


@pytest.mark.parametrize("bandwidth", [0.1, "loo", "loo_common"])
def test_weights_are_repetitions(bandwidth):
    x, y = noisy_sine()
    times = np.random.default_rng(4).integers(0, 4, size=50)
    weighted = NadarayaWatson(bandwidth=bandwidth).fit(x, y, sample_weight=times)
    repeated = NadarayaWatson(bandwidth=bandwidth).fit(
        np.repeat(x, times, axis=0), np.repeat(y, times)
    )
    np.testing.assert_array_equal(weighted.bandwidth_, repeated.bandwidth_)
    np.testing.assert_array_equal(weighted.predict(x), repeated.predict(x))
    assert weighted.loo_error_ == repeated.loo_error_


def test_equal_inputs_of_different_outputs_are_kept_apart():
    model = NadarayaWatson(bandwidth=1e-3).fit([[0.0], [0.0], [1.0]], [1.0, 3.0, 9.0])
    np.testing.assert_allclose(model.predict([[0.0], [1.0]]), [2, 9])
    assert model.loo_error_ == pytest.approx((4 + 4 + 7**2) / 3)


def test_the_order_of_the_samples_does_not_matter():
    x, y = noisy_sine()
    order = np.random.default_rng(5).permutation(50)
    one, other = NadarayaWatson().fit(x, y), NadarayaWatson().fit(x[order], y[order])
    np.testing.assert_array_equal(one.bandwidth_, other.bandwidth_)
    np.testing.assert_array_equal(one.predict(x), other.predict(x))


def test_shapes_of_the_outputs():
    x, y = noisy_sine()
    assert NadarayaWatson().fit(x, y).predict(x[:4]).shape == (4,)
    assert NadarayaWatson().fit(x, y[:, None]).predict(x[:4]).shape == (4, 1)
    both = NadarayaWatson(bandwidth=0.1).fit(x, np.column_stack([y, -y])).predict(x[:4])
    np.testing.assert_allclose(both[:, 0], -both[:, 1], rtol=1e-12)


def test_fitted_models_survive_pickles_and_clones():
    model = NadarayaWatson(GAUSSIAN, bandwidth=0.1).fit(*noisy_sine())
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict([[0.3]]), model.predict([[0.3]]))
    assert clone(model).get_params() == model.get_params()


def test_any_number_of_threads_gives_the_same_bits():
    x, y = noisy_sine(600)
    one = NadarayaWatson(n_jobs=1).fit(x, y)
    two = NadarayaWatson(n_jobs=2).fit(x, y)
    np.testing.assert_array_equal(one.bandwidth_, two.bandwidth_)
    np.testing.assert_array_equal(one.predict(x), two.predict(x))


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, np.nan, np.inf, [1.0, 2.0], "silverman", None])
def test_bad_bandwidths_are_refused(bandwidth):
    with pytest.raises(ValueError, match="`bandwidth` must be"):
        NadarayaWatson(bandwidth=bandwidth).fit(*noisy_sine())


def test_two_distinct_samples_are_needed():
    with pytest.raises(ValueError, match=r"At least 2 distinct samples.*got 1 among 3"):
        NadarayaWatson().fit([[1.0], [1.0], [1.0]], [2.0, 2.0, 2.0])
    with pytest.raises(ValueError, match=r"At least 2 distinct samples.*got 1 among 2"):
        NadarayaWatson().fit([[1.0], [2.0]], [2.0, 3.0], sample_weight=[1.0, 0.0])


def test_bad_kernels_are_refused():
    with pytest.raises(ValueError, match="got 'box'"):
        NadarayaWatson("box").fit(*noisy_sine())


def test_a_kernel_that_never_falls_gives_the_mean():
    flat = Kernel("flat", np.ones_like, np.zeros_like)
    model = NadarayaWatson(flat, bandwidth=1.0).fit(*noisy_sine())
    np.testing.assert_allclose(model.predict([[0.5]]), model.outputs_.mean())

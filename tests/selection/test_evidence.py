import numpy as np
import pytest
from finite_differences import numerical_gradient, relative_error
from oracles import gp_evidence as oracle
from scipy.optimize import minimize, minimize_scalar

from twofold.datasets import make_random_manifold, make_swiss_roll
from twofold.selection import gp_evidence, whiten
from twofold.selection.evidence import BLOCK, BOUNDS, PILOT_POINTS, GaussianProcess, start_places


def small_case(n=30, q=2, D=3):
    sample = make_random_manifold(n, q, D, noise=0.05, random_state=0)
    return whiten(sample.Y), whiten(sample.latent)


PLACES = [(1.0, 0.1), (0.2, 0.01), (5.0, 1e-4), (0.3, 3.0)]


@pytest.mark.parametrize(("width", "share"), PLACES)
def test_value_is_the_definition_at_the_best_signal(width, share):
    Y, X = small_case()
    found, signal = GaussianProcess(Y, X).value(np.log([width, share]))
    assert found == pytest.approx(oracle.nlml(Y, X, width, signal, share * signal), rel=1e-9)
    best = minimize_scalar(
        lambda log_signal: oracle.nlml(Y, X, width, *np.exp(log_signal) * np.array([1.0, share])),
        bracket=(np.log(signal) - 1, np.log(signal) + 1),
    )
    assert found == pytest.approx(best.fun, rel=1e-7)
    assert np.log(signal) == pytest.approx(best.x, abs=1e-4)


@pytest.mark.parametrize(("width", "share"), PLACES)
@pytest.mark.parametrize(("n", "q", "D"), [(30, 2, 3), (BLOCK + 5, 1, 2), (25, 3, 6)])
def test_gradient_is_that_of_the_oracle(width, share, n, q, D):
    Y, X = small_case(n, q, D)
    place = np.log([width, share])
    value, grad = GaussianProcess(Y, X).value_and_grad(place)
    assert value == pytest.approx(oracle.profiled_nlml(Y, X, width, share)[0], rel=1e-9)
    expected = numerical_gradient(lambda p: oracle.profiled_nlml(Y, X, *np.exp(p))[0], place, 1e-4)
    assert relative_error(grad, expected) < 1e-6


def test_gradient_at_many_rows():
    # Several blocks of the triangle; the oracle would be too slow, the value is tested above.
    Y, X = small_case(3 * BLOCK + 7)
    process, place = GaussianProcess(Y, X), np.log([0.5, 0.01])
    expected = numerical_gradient(lambda p: process.value(p)[0], place, 1e-4)
    assert relative_error(process.value_and_grad(place)[1], expected) < 1e-6


@pytest.mark.slow
def test_evidence_is_the_optimum_over_three_numbers():
    sample = make_random_manifold(40, 1, 3, noise=0.1, random_state=1)
    found = gp_evidence(sample.Y, sample.latent)
    Y, X = oracle.whiten(sample.Y), oracle.whiten(sample.latent)
    numbers = np.log([found.width, found.signal_variance, found.noise_variance])
    assert found.nlml == pytest.approx(oracle.nlml(Y, X, *np.exp(numbers)), rel=1e-8)
    from_afar = minimize(
        lambda p: oracle.nlml(Y, X, *np.exp(p)),
        numbers + np.array([0.3, -0.5, 0.4]),
        method="Nelder-Mead",
        options={"xatol": 1e-5, "fatol": 1e-6},
    )
    assert found.nlml == pytest.approx(from_afar.fun, abs=1e-4)
    np.testing.assert_allclose(from_afar.x, numbers, atol=0.01)
    assert found.converged
    assert found.standard_error is None
    assert found.nlml_per_entry == found.nlml / 120


def test_neither_embedding_nor_data_need_a_unit():
    rng = np.random.default_rng(0)
    sample = make_random_manifold(60, 2, 4, noise=0.05, random_state=0)
    expected = gp_evidence(sample.Y, sample.latent)
    X = sample.latent @ rng.normal(size=(2, 2)) * 1000 + 5
    Y = sample.Y @ rng.normal(size=(4, 4)) - 70
    found = gp_evidence(Y, X)
    assert found.nlml == pytest.approx(expected.nlml, rel=1e-6)
    assert found.noise_variance == pytest.approx(expected.noise_variance, rel=1e-2)


def test_order_of_rows_does_not_count():
    sample = make_random_manifold(60, 2, 3, noise=0.05, random_state=0)
    order = np.random.default_rng(0).permutation(60)
    expected = gp_evidence(sample.Y, sample.latent).nlml
    assert gp_evidence(sample.Y[order], sample.latent[order]).nlml == pytest.approx(expected, 1e-6)


def test_noise_is_found():
    # The noise variance of whitened rows is the noise share of their variance, here 1/26 or so.
    rng = np.random.default_rng(0)
    t = rng.uniform(-2, 2, size=300)
    clean = np.column_stack([np.sin(2 * t), np.cos(2 * t)])
    noise = 0.2 * clean.std()
    found = gp_evidence(clean + rng.normal(scale=noise, size=clean.shape), t[:, None])
    assert found.noise_variance == pytest.approx(0.04 / 1.04, rel=0.15)


def test_an_embedding_that_says_nothing_scores_as_white_noise():
    rng = np.random.default_rng(0)
    found = gp_evidence(rng.normal(size=(200, 3)), rng.normal(size=(200, 2)))
    assert found.nlml_per_entry == pytest.approx(0.5 * np.log(2 * np.pi) + 0.5, abs=0.01)
    assert found.noise_variance > 0.8


@pytest.mark.slow
def test_the_true_embedding_is_preferred():
    roll = make_swiss_roll(300, noise=0.1, random_state=0)
    rng = np.random.default_rng(0)
    blurred = roll.latent + rng.normal(scale=0.1 * roll.latent.std(axis=0), size=(300, 2))
    scores = [gp_evidence(roll.Y, X) for X in (roll.latent, blurred, roll.Y[:, :2])]
    assert scores[0].nlml < scores[1].nlml < scores[2].nlml
    assert scores[0].noise_variance < scores[1].noise_variance < scores[2].noise_variance


def test_directions_without_variance_are_left_out():
    sample = make_random_manifold(80, 2, 3, noise=0.05, random_state=0)
    expected = gp_evidence(sample.Y, sample.latent)
    wide = sample.Y @ np.random.default_rng(0).normal(size=(3, 10))
    found = gp_evidence(wide, sample.latent)
    assert found.n_kept == expected.n_kept == 3
    assert found.nlml == pytest.approx(expected.nlml, rel=1e-6)


def test_an_exact_map_ends_in_the_bounds():
    X = np.random.default_rng(0).uniform(size=(50, 2))
    found = gp_evidence(X @ [[1.0, 2.0], [3.0, -1.0]], X)
    assert np.isfinite(found.nlml)
    assert found.nlml_per_entry < -5
    share = found.noise_variance / found.signal_variance
    assert np.log(share) >= BOUNDS[1, 0] - 1e-9


def test_equal_latent_points_are_no_obstacle():
    sample = make_random_manifold(30, 1, 2, noise=0.1, random_state=0)
    found = gp_evidence(np.tile(sample.Y, (2, 1)), np.tile(sample.latent, (2, 1)))
    assert np.isfinite(found.nlml)


@pytest.mark.slow
def test_subsets_estimate_what_a_subset_scores():
    sample = make_random_manifold(1200, 2, 3, noise=0.1, random_state=0)
    found = gp_evidence(sample.Y, sample.latent, max_points=150, repeats=6)
    assert found.n_points == 150
    again = gp_evidence(sample.Y, sample.latent, max_points=150, repeats=6, random_state=1)
    spread = np.hypot(found.standard_error, again.standard_error)
    assert 0 < found.standard_error < 0.1
    assert abs(found.nlml_per_entry - again.nlml_per_entry) < 4 * spread
    assert found.nlml == pytest.approx(found.nlml_per_entry * 150 * 3)


def test_overlapping_subsets_have_different_rows():
    sample = make_random_manifold(200, 1, 2, noise=0.1, random_state=0)
    assert gp_evidence(sample.Y, sample.latent, max_points=150, repeats=3).standard_error > 0


def test_a_pilot_finds_the_optimum_of_all_rows():
    n = PILOT_POINTS + 100
    sample = make_random_manifold(n, 2, 3, noise=0.1, random_state=0)
    found = gp_evidence(sample.Y, sample.latent)
    process = GaussianProcess(whiten(sample.Y), whiten(sample.latent))
    best = min(process.optimum(place).nlml for place in start_places(3, np.random.default_rng(0)))
    assert found.nlml == pytest.approx(best, abs=1e-4 * 3 * n)
    assert found.n_points == n
    assert len(found.starts) == 3


def test_same_seed_same_result():
    sample = make_random_manifold(300, 2, 3, noise=0.1, random_state=0)
    options = {"max_points": 100, "n_starts": 5, "random_state": 3}
    one, two = (gp_evidence(sample.Y, sample.latent, **options) for _ in range(2))
    assert one == two
    assert len(one.starts) == 5


def test_errors_say_what_came():
    rng = np.random.default_rng(0)
    Y, X = rng.normal(size=(20, 3)), rng.normal(size=(20, 2))
    with pytest.raises(ValueError, match=r"`X` cannot be whitened.*rank 1\)"):
        gp_evidence(Y, X[:, [0, 0]])
    with pytest.raises(ValueError, match="20 and 19 rows"):
        gp_evidence(Y, X[:19])
    with pytest.raises(ValueError, match="`n_starts` must be an integer of at least 1; got 0"):
        gp_evidence(Y, X, n_starts=0)
    with pytest.raises(ValueError, match="`repeats` must be an integer of at least 2; got 1"):
        gp_evidence(Y, X, repeats=1)
    with pytest.raises(ValueError, match="`max_points` must be an integer of at least 3; got 2"):
        gp_evidence(Y, X, max_points=2)
    with pytest.raises(ValueError, match="`Y` cannot be whitened"):
        gp_evidence(np.ones((20, 2)), X)
    with pytest.raises(ValueError, match="20 rows can have, 19"):
        gp_evidence(rng.normal(size=(20, 30)), X)
    assert gp_evidence(rng.normal(size=(20, 18)), X).n_kept == 18

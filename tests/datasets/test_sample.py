"""What every generator owes its user, whatever the manifold."""

import numpy as np
import pytest

from twofold.datasets import (
    make_fish_bowl,
    make_half_circle,
    make_random_manifold,
    make_s_triangle,
    make_spiral,
    make_swiss_roll,
)
from twofold.datasets.sample import draw_noise


def make_wave_graph(n=100, *, noise=0.05, random_state=None):
    return make_random_manifold(n, 2, 6, noise=noise, random_state=random_state)


NOISE_KIND_GENERATORS = [
    make_spiral,
    make_half_circle,
    make_swiss_roll,
    make_s_triangle,
    make_fish_bowl,
]
GENERATORS = [*NOISE_KIND_GENERATORS, make_wave_graph]
# Twenty times the largest distance seen, 5e-15 at coordinates of size 20.
ON_MANIFOLD = 1e-13


@pytest.mark.parametrize("make", GENERATORS)
def test_clean_rows_are_the_image_of_the_latent_rows(make):
    sample = make(200, random_state=1)
    np.testing.assert_array_equal(sample.clean, sample.manifold.point(sample.latent))
    assert len(sample.Y) == len(sample.latent) == len(sample.clean) == 200


@pytest.mark.parametrize("make", GENERATORS)
def test_clean_rows_lie_on_the_manifold_and_noisy_rows_do_not(make):
    sample = make(200, random_state=2)
    assert sample.distance(sample.clean).max() < ON_MANIFOLD
    assert np.median(sample.distance(sample.Y)) > 0.01


@pytest.mark.parametrize("make", GENERATORS)
def test_same_seed_same_rows(make):
    first, again, other = (make(50, random_state=seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first.Y, again.Y)
    np.testing.assert_array_equal(first.latent, again.latent)
    assert not np.allclose(first.Y, other.Y)


@pytest.mark.parametrize("make", GENERATORS)
def test_a_generator_is_used_up_as_it_goes(make):
    rng = np.random.default_rng(7)
    first, second = make(50, random_state=rng), make(50, random_state=rng)
    np.testing.assert_array_equal(first.Y, make(50, random_state=7).Y)
    assert not np.allclose(first.Y, second.Y)


@pytest.mark.parametrize("make", GENERATORS)
def test_without_noise_rows_are_clean(make):
    sample = make(50, noise=0.0, random_state=3)
    np.testing.assert_array_equal(sample.Y, sample.clean)


@pytest.mark.parametrize("make", NOISE_KIND_GENERATORS)
def test_noise_kind_changes_the_noise_only(make):
    gaussian, laplacian = (
        make(50, noise_kind=kind, random_state=4) for kind in ("gaussian", "laplacian")
    )
    np.testing.assert_array_equal(gaussian.clean, laplacian.clean)
    assert not np.allclose(gaussian.Y, laplacian.Y)


@pytest.mark.parametrize("make", [make_spiral, make_half_circle, make_swiss_roll, make_fish_bowl])
def test_signed_distance_has_the_size_of_the_distance(make):
    sample = make(200, random_state=5)
    signed = sample.signed_distance(sample.Y)
    np.testing.assert_array_equal(np.abs(signed), sample.distance(sample.Y))
    assert (signed > 0).any()
    assert (signed < 0).any()


@pytest.mark.parametrize("make", [make_s_triangle, make_wave_graph])
def test_manifold_without_inner_side_says_so(make):
    sample = make(10, random_state=0)
    with pytest.raises(TypeError, match=r"inner side.*Use distance"):
        sample.signed_distance(sample.Y)


@pytest.mark.parametrize("make", GENERATORS)
def test_distance_of_no_rows_is_empty(make):
    sample = make(5, random_state=0)
    assert sample.distance(sample.Y[:0]).shape == (0,)


@pytest.mark.parametrize("make", GENERATORS)
def test_distance_refuses_rows_it_cannot_measure(make):
    sample = make(5, random_state=0)
    with pytest.raises(ValueError, match="expected rows of shape"):
        sample.distance(sample.Y[:, 1:])
    holed = sample.Y.copy()
    holed[3, 1] = np.nan
    with pytest.raises(ValueError, match="1 NaN or infinite entries, the first in row 3, column 1"):
        sample.distance(holed)


@pytest.mark.parametrize("make", GENERATORS)
def test_no_rows_are_refused(make):
    with pytest.raises(ValueError, match="`n` must be an integer of at least 1; got 0"):
        make(0)


def test_sample_is_frozen():
    sample = make_spiral(5, random_state=0)
    with pytest.raises(AttributeError):
        sample.Y = sample.clean


N_DRAWS = 200_000


@pytest.mark.parametrize(
    ("kind", "std", "kurtosis"),
    [
        ("gaussian", 0.25, 3.0),
        ("laplacian", 0.25, 6.0),
        # An interval of half width a has variance a^2 / 3 and kurtosis 9 / 5.
        ("uniform", 0.25 / np.sqrt(3), 1.8),
    ],
)
def test_moments(kind, std, kurtosis):
    draws = draw_noise((N_DRAWS,), 0.25, kind, np.random.default_rng(0))
    assert abs(draws.mean()) < 5 * std / np.sqrt(N_DRAWS)
    # The standard error of the standard deviation is at most 0.25 % (Laplacian); four of them.
    assert draws.std() == pytest.approx(std, rel=0.01)
    assert (draws**4).mean() / draws.var() ** 2 == pytest.approx(kurtosis, rel=0.1)


def test_uniform_noise_stays_in_its_interval_and_fills_it():
    draws = draw_noise((10_000, 2), 0.1, "uniform", np.random.default_rng(0))
    assert 0.0999 < np.abs(draws).max() <= 0.1


def test_coordinates_are_independent():
    draws = draw_noise((N_DRAWS, 2), 1.0, "laplacian", np.random.default_rng(0))
    assert abs(np.corrcoef(draws.T)[0, 1]) < 5 / np.sqrt(N_DRAWS)


@pytest.mark.parametrize("noise", [-0.1, np.nan, np.inf])
def test_impossible_noise_is_refused(noise):
    with pytest.raises(ValueError, match="`noise` must be a finite number of at least 0"):
        draw_noise((3,), noise, "gaussian", np.random.default_rng(0))


def test_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=r"gaussian.*uniform.*laplacian.*got 'pink'"):
        draw_noise((3,), 0.1, "pink", np.random.default_rng(0))

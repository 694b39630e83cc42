import numpy as np
import pytest

from twofold.datasets.noise import draw_noise

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
    with pytest.raises(ValueError, match="`noise` must be a finite number >= 0"):
        draw_noise((3,), noise, "gaussian", np.random.default_rng(0))


def test_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=r"gaussian.*uniform.*laplacian.*got 'pink'"):
        draw_noise((3,), 0.1, "pink", np.random.default_rng(0))

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from twofold.datasets.rotating_object import RotatingObject, make_rotating_object

POT = RotatingObject()


def test_pictures_of_a_full_turn():
    sample = make_rotating_object(40, noise=0, random_state=0)
    assert sample.Y.shape == (40, 26 * 34)
    np.testing.assert_array_equal(sample.Y, sample.clean)
    np.testing.assert_allclose(sample.latent[:, 0], np.arange(40) * 2 * np.pi / 40)
    assert sample.clean.min() >= 0
    assert 0.8 < sample.clean.max() <= 1
    np.testing.assert_allclose(POT.point([[2 * np.pi]]), POT.point([[0.0]]), atol=1e-12)


def test_noise_is_added_to_every_pixel():
    sample = make_rotating_object(40, noise=0.01, random_state=0)
    again = make_rotating_object(40, noise=0.01, random_state=0)
    np.testing.assert_array_equal(sample.Y, again.Y)
    assert (sample.Y - sample.clean).std() == pytest.approx(0.01, rel=0.02)


def test_neighbour_distances_are_those_of_the_thesis():
    # 400 views with noise 0.01: third neighbours 0.5427 apart, fifth 0.6621.
    Y = make_rotating_object(random_state=0).Y
    to_neighbours = np.sort(cdist(Y, Y), axis=1).mean(axis=0)
    assert to_neighbours[3] == pytest.approx(0.5427, rel=0.03)
    assert to_neighbours[5] == pytest.approx(0.6621, rel=0.03)


def test_the_spout_turns_from_right_to_left():
    views = POT.point(np.radians([[0.0], [90.0], [180.0], [270.0]])).reshape(4, 26, 34)
    left, right = views[:, :, :5].sum(axis=(1, 2)), views[:, :, -5:].sum(axis=(1, 2))
    assert right[0] > 2 * right[1]  # the spout reaches over the edge at 0 degrees only
    assert left[2] > 2 * left[3]


def test_views_far_apart_differ():
    sample = make_rotating_object(72, noise=0)
    gap = np.abs(np.subtract.outer(np.arange(72), np.arange(72)))
    far = np.minimum(gap, 72 - gap) >= 4  # 20 degrees
    step = np.linalg.norm(np.diff(sample.clean, axis=0), axis=1).max()
    assert cdist(sample.clean, sample.clean)[far].min() > step


def test_smooth_in_the_angle():
    angles = np.radians(np.arange(0, 360, 7.0))[:, None]

    def bend(h: float) -> np.ndarray:
        low, mid, high = (POT.point(angles + shift) for shift in (-h, 0.0, h))
        return np.linalg.norm(low - 2 * mid + high, axis=1) / h**2

    # A jump would make the second difference grow with the inverse square of the step.
    np.testing.assert_allclose(bend(1e-3), bend(2e-3), rtol=0.01)


def test_distance_and_angle_of_any_picture():
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, (30, 1))
    clean = POT.point(angles)
    assert POT.distance(clean).max() < 1e-3
    np.testing.assert_allclose(POT.nearest(clean), angles, atol=1e-4)
    noisy = clean + 0.01 * rng.normal(size=clean.shape)
    assert POT.distance(noisy).mean() == pytest.approx(0.01 * np.sqrt(883), rel=0.02)
    assert (POT.distance(noisy) <= np.linalg.norm(noisy - clean, axis=1) + 1e-3).all()


def test_other_sizes():
    small = RotatingObject(height=13, width=17)
    half = POT.point([[1.0]]).reshape(13, 2, 17, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(small.point([[1.0]]).reshape(13, 17), half, atol=0.1)


def test_bad_input_is_explained():
    with pytest.raises(ValueError, match="`n` must be an integer of at least 1"):
        make_rotating_object(0)
    with pytest.raises(ValueError, match=r"\(n, 884\)"):
        POT.distance(np.zeros((2, 10)))

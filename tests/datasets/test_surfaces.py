import numpy as np
import pytest
from scipy.spatial import cKDTree

from twofold.datasets.surfaces import (
    FishBowl,
    STriangle,
    SwissRoll,
    make_fish_bowl,
    make_s_triangle,
    make_swiss_roll,
)


def test_roll_by_hand():
    # At t = 2 pi: cos = 1, sin = 0; at t = 2.5 pi: cos = 0, sin = 1.
    latent = np.array([[2 * np.pi, 3.0], [2.5 * np.pi, 4.0]])
    expected = [[2 * np.pi, 3.0, 0.0], [0.0, 4.0, 2.5 * np.pi]]
    np.testing.assert_allclose(SwissRoll().point(latent), expected, atol=1e-14)


def test_roll_distance_matches_brute_force():
    rng = np.random.default_rng(0)
    Y = rng.uniform((-16, -5, -16), (16, 26, 16), size=(300, 3))
    t = np.linspace(1.5 * np.pi, 4.5 * np.pi, 200_001)
    fine = SwissRoll().point(np.column_stack([t, np.zeros_like(t)]))[:, [0, 2]]
    brute, _ = cKDTree(fine).query(Y[:, [0, 2]])
    distance = SwissRoll().distance(Y)
    assert (distance <= brute + 1e-12).all()
    np.testing.assert_allclose(distance, brute, atol=4e-4)  # half a step is 3.3e-4 long


def test_roll_is_continued_beyond_its_height():
    latent = np.array([[7.0, -3.0], [9.0, 30.0]])
    assert SwissRoll().distance(SwissRoll().point(latent)).max() < 1e-13


def test_roll_inner_side_is_positive():
    latent = np.column_stack([np.linspace(5.0, 14.0, 40), np.full(40, 10.0)])
    across = np.array([1.0, 0.0, 1.0])  # the axis is the second coordinate
    points = SwissRoll().point(latent)
    assert (SwissRoll().signed_distance(points - 0.05 * points * across) > 0).all()
    assert (SwissRoll().signed_distance(points + 0.05 * points * across) < 0).all()


@pytest.mark.parametrize(("noise_kind", "reported"), [("gaussian", 0.401), ("laplacian", 0.366)])
def test_roll_raw_data_distance_is_that_of_the_thesis(noise_kind, reported):
    # Klanke (2007), section 5.1.4: means over 100 sets.
    sample = make_swiss_roll(20_000, noise_kind=noise_kind, random_state=0)
    assert sample.distance(sample.Y).mean() == pytest.approx(reported, rel=0.02)


def test_roll_fills_its_latent_rectangle():
    latent = make_swiss_roll(5000, random_state=0).latent
    low, high = [1.5 * np.pi, 0.0], [4.5 * np.pi, 21.0]
    assert (latent >= low).all()
    assert (latent <= high).all()
    np.testing.assert_allclose(latent.mean(axis=0), np.add(low, high) / 2, rtol=0.03)


def test_triangle_by_hand():
    # t1 = 1/2 is the middle of the S, where both sines vanish; t1 = 1: sin(-1.5 pi) = 1.
    latent = np.array([[0.0, 0.0], [0.5, 0.25], [1.0, -1.0]])
    expected = [[-1.0, 0.0, -2 * np.sin(2.3)], [0.0, 0.5, 0.0], [1.0, -2.0, 2 * np.sin(2.3)]]
    np.testing.assert_allclose(STriangle().point(latent), expected, atol=1e-14)


def test_triangle_distance_matches_brute_force():
    rng = np.random.default_rng(0)
    Y = rng.uniform((-2, -3, -3), (2, 3, 3), size=(300, 3))
    t1, side = np.meshgrid(np.linspace(0, 1, 1601), np.linspace(-1, 1, 801), indexing="ij")
    fine = STriangle().point(np.column_stack([t1.ravel(), (t1 * side).ravel()]))
    brute, _ = cKDTree(fine).query(Y)
    distance = STriangle().distance(Y)
    assert (distance <= brute + 1e-12).all()
    # Half steps of the mesh: at most 0.004 along the S (speed 13.2 / 1600) and 0.0025 across.
    np.testing.assert_allclose(distance, brute, atol=5e-3)
    far = brute > 0.2
    np.testing.assert_allclose(distance[far], brute[far], atol=1e-4)


def test_triangle_is_uniform_and_as_wide_as_reported():
    sample = make_s_triangle(50_000, random_state=0)
    t1, t2 = sample.latent.T
    assert (np.abs(t2) <= t1).all()
    # A uniform triangle |t2| <= t1 <= 1 has E[t1] = 2/3 and E[t2^2] = E[t1^2] / 3 = 1/6.
    assert t1.mean() == pytest.approx(2 / 3, rel=0.01)
    assert (t2**2).mean() == pytest.approx(1 / 6, rel=0.02)
    # One sample of 1000 rows had total variance 2.865.
    assert sample.Y.var(axis=0).sum() == pytest.approx(2.865, rel=0.02)


def test_bowl_by_hand():
    # theta = pi/2 is the equator; the disc's first axis is phi = 0.
    latent = np.array([[0.0, 0.0], [np.pi / 2, 0.0], [0.0, -np.pi / 2]])
    expected = [[0, 0, 10], [10, 0, 0], [0, -10, 0]]
    np.testing.assert_allclose(FishBowl().point(latent), expected, atol=1e-14)
    Y = np.array([[2.0, 3.0, 6.0], [8.0, 12.0, -24.0]])  # norms 7 and 28
    np.testing.assert_allclose(FishBowl().signed_distance(Y), [3.0, -18.0])
    np.testing.assert_allclose(FishBowl().distance(Y), [3.0, 18.0])


def test_bowl_has_no_lowest_cap_and_is_evenly_covered():
    clean = make_fish_bowl(20_000, random_state=0).clean
    z = clean[:, 2]
    assert -7.0 <= z.min() < -6.98
    # Equal areas have equal heights: z is uniform in [-7, 10].
    np.testing.assert_allclose(np.quantile(z, [0.25, 0.5, 0.75]), [-2.75, 1.5, 5.75], atol=0.2)
    np.testing.assert_allclose(clean[:, :2].mean(axis=0), 0, atol=0.2)

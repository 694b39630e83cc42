import numpy as np
import pytest
from scipy.spatial import cKDTree
from sklearn.neighbors import NearestNeighbors

from twofold.datasets import make_s_structure
from twofold.datasets.s_structure import SStructure


def test_points_by_hand():
    # a = -pi, -pi/2, 0, pi/2 on the upper arc, then pi/2 - pi/2 = 0 and -pi on the lower one.
    t = np.pi * np.array([0, 0.5, 1, 1.5, 2, 3])
    expected = [[-1, 0], [0, -1], [1, 0], [0, 1], [-1, 2], [1, 2]]
    np.testing.assert_allclose(SStructure(2).point(t[:, None]), expected, atol=1e-14)


def test_height_is_the_second_coordinate():
    np.testing.assert_allclose(SStructure(3).point([[np.pi, 4.0]]), [[1, 4, 0]], atol=1e-14)


def test_rows_are_those_of_the_formula():
    # The textbook form: both arcs in terms of a, in any order.
    sample = make_s_structure(400, random_state=0)
    t, h = sample.latent.T
    a = np.where(t <= 1.5 * np.pi, t, 3 * np.pi - t) - np.pi
    upper = np.column_stack([np.cos(a), h, np.sin(a)])
    lower = np.column_stack([-np.cos(a), h, 2 - np.sin(a)])
    expected = np.where((t <= 1.5 * np.pi)[:, None], upper, lower)
    np.testing.assert_allclose(sample.Y, expected, atol=1e-14)
    assert (t <= 1.5 * np.pi).sum() == 200


@pytest.mark.parametrize("dim", [2, 3])
def test_distance_matches_brute_force(dim):
    manifold = SStructure(dim, height=2.0)
    rng = np.random.default_rng(0)
    low, high = ((-2, -2), (2, 4)) if dim == 2 else ((-2, -1, -2), (2, 3, 4))
    Y = rng.uniform(low, high, size=(300, dim))
    t = np.linspace(0, 3 * np.pi, 2001)
    if dim == 3:
        t, h = (grid.ravel() for grid in np.meshgrid(t, np.linspace(0, 2, 301)))
        fine = manifold.point(np.column_stack([t, h]))
    else:
        fine = manifold.point(t[:, None])
    brute, _ = cKDTree(fine).query(Y)
    distance = manifold.distance(Y)
    assert (distance <= brute + 1e-12).all()
    np.testing.assert_allclose(distance, brute, atol=5e-3)  # half steps of the mesh


def test_hole_is_empty_and_takes_thirty_percent():
    sample = make_s_structure(350, hole=True, random_state=0)
    length, height = (np.abs(sample.latent / (3 * np.pi, 5.0) - 0.5)).T
    assert not ((length < 0.275) & (height < 0.275)).any()
    whole = make_s_structure(20_000, random_state=0).latent
    inside = (np.abs(whole / (3 * np.pi, 5.0) - 0.5) < 0.275).all(axis=1)
    assert inside.mean() == pytest.approx(0.55**2, abs=0.01)


@pytest.mark.parametrize(("n_neighbors", "reported"), [(2, 691.3), (5, 904.5), (10, 945.8)])
def test_first_order_has_the_error_of_the_book(n_neighbors, reported):
    # Kramer (2013), Table 5.1: sum of norms over rows on a line in their first order; a row is
    # among its own neighbours.
    errors = []
    for seed in range(10):
        Y = make_s_structure(500, random_state=seed).Y
        places = np.arange(500.0)[:, None]
        near = NearestNeighbors(n_neighbors=n_neighbors).fit(places)
        means = Y[near.kneighbors(places, return_distance=False)].mean(axis=1)
        errors.append(np.linalg.norm(means - Y, axis=1).sum())
    assert np.mean(errors) == pytest.approx(reported, rel=0.04)


def test_noise_multiplies():
    sample = make_s_structure(20_000, noise=0.5, random_state=0)
    factors = sample.Y / sample.clean
    assert factors.mean() == pytest.approx(1, abs=0.01)
    assert factors.std() == pytest.approx(0.5, abs=0.01)
    assert abs(np.corrcoef(factors.T)[0, 1]) < 0.03  # an own draw for every entry


def test_same_seed_same_rows():
    first, again, other = (make_s_structure(50, random_state=seed).Y for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n": 0}, "`n` must"),
        ({"dim": 4}, "`dim` must"),
        ({"dim": 2, "hole": True}, "no hole"),
        ({"height": 0}, "`height` must"),
        ({"noise": -1}, "`noise` must"),
    ],
)
def test_wrong_requests_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        make_s_structure(**wrong)

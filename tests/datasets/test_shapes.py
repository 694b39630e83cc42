import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from twofold.datasets.shapes import (
    BLOCK_ROWS,
    FishBowl,
    HalfCircle,
    Spiral,
    SStructure,
    STriangle,
    SwissRoll,
    make_fish_bowl,
    make_half_circle,
    make_s_structure,
    make_s_triangle,
    make_spiral,
    make_swiss_roll,
    nearest_parameter,
)


def test_spiral_points_by_hand():
    # s(1/8) = 0.325 (sin pi/2, cos pi/2); s(1/4) = 0.45 (sin pi, cos pi); s(1) = 1.2 (0, 1).
    points = Spiral().point(np.array([[0.0], [1 / 8], [1 / 4], [1.0]]))
    expected = [[0.0, 0.2], [0.325, 0.0], [0.0, -0.45], [0.0, 1.2]]
    np.testing.assert_allclose(points, expected, atol=1e-15)


def test_spiral_distance_matches_brute_force():
    rng = np.random.default_rng(0)
    Y = rng.uniform(-1.6, 1.6, size=(200, 2))
    fine = Spiral().point(np.linspace(0.0, 1.0, 40_001)[:, None])
    brute = cdist(Y, fine).min(axis=1)
    distance = Spiral().distance(Y)
    assert (distance <= brute + 1e-12).all()
    # Half a step of the fine grid is 2e-4 long; at a distance d it costs 2e-8 / d at most.
    np.testing.assert_allclose(distance, brute, atol=2e-4)
    far = brute > 0.05
    np.testing.assert_allclose(distance[far], brute[far], atol=1e-6)


def test_spiral_distance_beyond_its_ends():
    # The outer end (0, 1.2) runs on to the right with a slope of 1 in 4.8 pi; step along it.
    tangent = np.array([4.8 * np.pi, 1.0]) / np.hypot(4.8 * np.pi, 1.0)
    beyond = np.array([[0.0, 1.2]]) + 0.3 * tangent
    np.testing.assert_allclose(Spiral().nearest(beyond), [[1.0]])
    np.testing.assert_allclose(Spiral().distance(beyond), [0.3])


def test_spiral_inner_side_is_positive():
    t = np.linspace(0.05, 0.95, 50)[:, None]
    shrunk, grown = 0.97 * Spiral().point(t), 1.03 * Spiral().point(t)
    assert (Spiral().signed_distance(shrunk) > 0).all()
    assert (Spiral().signed_distance(grown) < 0).all()


def test_stratified_sampling_puts_one_row_in_each_piece():
    t = make_spiral(300, random_state=0).latent[:, 0]
    u = ((t + 0.2) ** 2 - 0.04) / 1.4
    np.testing.assert_array_equal(np.sort(np.floor(300 * u)), np.arange(300))
    assert abs(np.corrcoef(t, np.arange(300))[0, 1]) < 0.2  # the rows are shuffled


def test_iid_sampling_leaves_pieces_empty():
    t = make_spiral(300, sampling="iid", random_state=0).latent[:, 0]
    u = ((t + 0.2) ** 2 - 0.04) / 1.4
    # A share 1 / e of the pieces is expected empty, with a standard deviation of 1.8 %.
    empty = 1 - len(np.unique(np.floor(300 * u))) / 300
    assert empty == pytest.approx(np.exp(-1), abs=0.08)


def test_sampling_is_even_along_the_curve():
    t = np.sort(make_spiral(2000, random_state=0).latent[:, 0])
    speed = np.hypot(1.0, 4 * np.pi * (t + 0.2))
    steps = (speed * np.gradient(t))[5:-5].reshape(-1, 10).mean(axis=1)
    # The neglected radial speed makes the first steps 8 % long.
    assert steps.max() / np.median(steps) < 1.35
    assert steps.min() / np.median(steps) > 0.75


def test_unknown_sampling_is_refused():
    with pytest.raises(ValueError, match=r"stratified.*iid.*got 'even'"):
        make_spiral(10, sampling="even")


def test_half_circle_by_hand():
    circle = HalfCircle()
    points = circle.point(np.array([[0.0], [np.pi / 2], [np.pi]]))
    np.testing.assert_allclose(points, [[10, 0], [0, 10], [-10, 0]], atol=1e-14)
    # Norms 5 and 15; the second row lies below the half, and the whole circle counts.
    Y = np.array([[3.0, 4.0], [-9.0, -12.0]])
    np.testing.assert_array_equal(circle.distance(Y), [5.0, 5.0])
    np.testing.assert_array_equal(circle.signed_distance(Y), [5.0, -5.0])


def test_half_circle_covers_the_upper_half():
    angle = make_half_circle(2000, random_state=0).latent[:, 0]
    assert 0 <= angle.min() < 0.02
    assert np.pi - 0.02 < angle.max() <= np.pi
    assert angle.mean() == pytest.approx(np.pi / 2, abs=0.08)


@pytest.mark.parametrize(
    ("noise", "noise_kind", "reported"),
    [(0.25, "gaussian", 0.201), (0.25, "laplacian", 0.184), (1.0, "laplacian", 0.734)],
)
def test_raw_data_distance_is_that_of_the_thesis(noise, noise_kind, reported):
    # Klanke (2007), section 5.1.4; the Laplacian scale printed there would give 0.259 and 1.037.
    sample = make_half_circle(20_000, noise=noise, noise_kind=noise_kind, random_state=0)
    assert sample.distance(sample.Y).mean() == pytest.approx(reported, rel=0.02)


def test_outliers_are_scaled_rows():
    plain = make_half_circle(100, random_state=3)
    spoilt = make_half_circle(100, n_outliers=10, random_state=3)
    np.testing.assert_array_equal(plain.clean, spoilt.clean)
    shift = spoilt.Y - plain.Y  # (factor - 1) clean in ten rows, nothing in the others
    moved = np.abs(shift).max(axis=1) > 1e-9
    assert moved.sum() == 10
    factor = 1 + (shift[moved] * plain.clean[moved]).sum(axis=1) / 100
    assert ((factor >= 0.5) & (factor <= 1.5)).all()
    np.testing.assert_allclose(shift[moved], (factor - 1)[:, None] * plain.clean[moved], atol=1e-12)
    assert factor.min() < 0.8
    assert factor.max() > 1.2


@pytest.mark.parametrize("n_outliers", [-1, 11])
def test_impossible_number_of_outliers_is_refused(n_outliers):
    with pytest.raises(ValueError, match=r"`n_outliers` must be in \[0, n = 10\]"):
        make_half_circle(10, n_outliers=n_outliers)


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


@pytest.mark.slow
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


@pytest.mark.slow
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


def sq_dist_to_parabola(t, Y):
    return (Y[..., 0] - t) ** 2 + (Y[..., 1] - t**2) ** 2


def test_parabola_by_hand():
    nodes = np.linspace(-2.0, 2.0, 41)
    Y = np.array(
        [
            [0.0, -1.0],  # below the apex: t = 0
            [3.0, 0.5],  # 2 t (t^2 - 0.5) + t - 3 = 2 t^3 - 3 = 0: t = 1.5^(1/3)
            [9.0, 4.0],  # 2 t (t^2 - 4) + t - 9 > 0 from t = 2.5 on only: cut off at t = 2
        ]
    )
    t = nearest_parameter(sq_dist_to_parabola, Y, nodes)
    # The distance is flat about its minimum: the parameter is sharp to sqrt(eps) only.
    np.testing.assert_allclose(t, [0.0, 1.5 ** (1 / 3), 2.0], atol=1e-7)


def test_the_lower_of_two_minima_wins():
    nodes = np.linspace(-2.0, 2.0, 41)
    # Above the focus both branches are near; the row leans to the right one by a hair.
    Y = np.array([[1e-6, 3.0], [-1e-6, 3.0]])
    t = nearest_parameter(sq_dist_to_parabola, Y, nodes)
    # On the axis t^2 = 3 - 1/2.
    np.testing.assert_allclose(t, [np.sqrt(2.5), -np.sqrt(2.5)], atol=1e-5)


def test_blocks_do_not_show():
    rng = np.random.default_rng(0)
    nodes = np.linspace(-2.0, 2.0, 41)
    Y = rng.normal(size=(BLOCK_ROWS + 3, 2))
    whole = nearest_parameter(sq_dist_to_parabola, Y, nodes)
    tail = nearest_parameter(sq_dist_to_parabola, Y[-5:], nodes)
    np.testing.assert_array_equal(whole[-5:], tail)

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import optimize
from scipy.spatial.distance import cdist
from tests.oracles import kernel_pca as oracle
from tests.preimages import cases

from twofold.features import RBF, Polynomial
from twofold.features.data_kernels import Laplacian
from twofold.preimages import FixedPoint, Gradient, Medians, Status

SEARCHES = [FixedPoint(), Gradient(), FixedPoint("collinearity"), Gradient("collinearity")]
all_searches = pytest.mark.parametrize("method", SEARCHES, ids=repr)
all_smooth = pytest.mark.parametrize("name", cases.SMOOTH)


@all_searches
@all_smooth
def test_a_feature_leads_back_to_its_row(method, name):
    if "collinearity" in repr(method) and name in ("poly3", "poly2", "poly1"):
        pytest.skip("angles do not tell lengths")
    Y = cases.rows()
    target = dataclasses.replace(cases.points(cases.SMOOTH[name], Y), alpha=np.eye(40)[:6])
    found = method.find(dataclasses.replace(target, start=Y[:6] + 0.05))
    np.testing.assert_allclose(found.Y, Y[:6], atol=1e-3)
    assert found.converged.all()


@pytest.mark.cover(2)
@all_smooth
@pytest.mark.parametrize("negative", [False, True], ids=["positive", "negative"])
@pytest.mark.parametrize("method", [FixedPoint(), Gradient()], ids=repr)
def test_no_row_is_nearer_and_nothing_around(method, name, negative):
    target = cases.points(cases.SMOOTH[name], negative=negative)
    found = dataclasses.replace(method, max_iter=3000).find(target)
    assert found.converged.all()
    np.testing.assert_allclose(found.distance, target.distances_to(found.Y))
    assert (found.distance <= target.distances_to_rows().min(axis=1) + 1e-10).all()
    rng = np.random.default_rng(4)
    for size in (1e-3, 1e-2):
        around = found.Y + size * rng.normal(size=found.Y.shape)
        assert (found.distance <= target.distances_to(around) + 1e-10).all()


@pytest.mark.slow
def test_fixed_point_is_that_of_the_literature():
    Y, _ = cases.sinusoid(60)
    target = cases.gaussian_pca(Y, 0.7, q=5)
    found = FixedPoint(tol=1e-9, restart=False).find(target)
    for i in (0, 20, 40):
        expected = oracle.gaussian_fixed_point(Y, target.alpha[i], 0.7, Y[i], 500)
        # The plain iteration may cross a ridge where ours stops short; it must not end lower.
        lower = oracle.feature_distance(cases.value_of(target.kernel), expected, Y, target.alpha[i])
        assert found.distance[i] <= lower + 1e-9
    assert found.converged.all()


@pytest.mark.slow
def test_gradient_and_fixed_point_agree_and_it_is_quicker():
    Y, _ = cases.sinusoid(200)
    target = cases.gaussian_pca(Y, 0.7, q=3)
    slow = FixedPoint(tol=1e-7, max_iter=5000).find(target)
    quick = Gradient(tol=1e-7).find(target)
    same = np.abs(slow.distance - quick.distance) < 1e-7
    assert same.mean() > 0.9  # else another minimum, from the same start
    np.testing.assert_allclose(quick.Y[same], slow.Y[same], atol=1e-3)
    assert quick.n_iter.mean() < 0.5 * slow.n_iter.mean()


def test_distance_of_a_polynomial_does_not_jump_to_and_fro():
    # From here the plain iteration goes from y to y' and back for ever.
    kernel, Y = Polynomial(3, 1.0, 1.0), np.array([[1.0], [-2.0]])
    alpha = np.array([[2.2, -1.2]])
    target = dataclasses.replace(cases.points(kernel, Y, n=1), alpha=alpha)
    y, seen = np.array([1.5]), []
    for _ in range(200):
        slopes = 3 * (y * Y[:, 0] + 1) ** 2
        y = np.array([(alpha[0] * slopes) @ Y[:, 0] / (3 * (y[0] ** 2 + 1) ** 2)])
        seen.append(float(y[0]))
    found = FixedPoint().find(dataclasses.replace(target, start=np.array([[1.5]])))
    assert found.converged.all()
    grid = np.linspace(-4, 4, 4001)[:, None]
    E = (grid[:, 0] ** 2 + 1) ** 3 - 2 * ((grid @ Y.T + 1) ** 3) @ alpha[0]
    assert found.Y[0, 0] == pytest.approx(grid[E.argmin(), 0], abs=3e-3)


@pytest.mark.parametrize("method", SEARCHES, ids=repr)
@pytest.mark.parametrize("far", [1e2, 1e8, 1e200])
def test_far_away_starts_come_home(method, far):
    target = cases.points(RBF(0.4), start=np.full((6, 3), far))
    found = method.find(target)
    assert np.isfinite(found.Y).all()
    assert found.converged.all()
    assert np.abs(found.Y).max() < 10


@all_searches
@all_smooth
def test_a_point_is_the_same_alone_and_among_others_on_any_number_of_threads(method, name):
    Y = cases.rows(33, D=5)
    target = cases.points(cases.SMOOTH[name], Y, n=130, negative=True, n_jobs=1)
    together = method.find(target)
    threads = method.find(dataclasses.replace(target, n_jobs=3))
    np.testing.assert_array_equal(threads.Y, together.Y)
    alone = method.find(dataclasses.replace(target, alpha=target.alpha[100:101]))
    np.testing.assert_array_equal(alone.Y[0], together.Y[100])


def test_the_limit_is_told():
    Y, _ = cases.sinusoid(60)
    found = FixedPoint(tol=1e-12, max_iter=3, restart=False).find(cases.gaussian_pca(Y, 0.7, q=3))
    assert not found.converged.any()
    assert (found.status == Status.ITERATION_LIMIT).all()
    assert (found.n_iter == 3).all()


def test_restarts_leave_poor_minima():
    rng = np.random.default_rng(0)
    centres = rng.uniform(0, 10, size=(6, 2))
    Y = np.repeat(centres, 20, axis=0) + 0.3 * rng.normal(size=(120, 2))
    target = cases.gaussian_pca(Y, 0.7, q=1)
    stays, goes = FixedPoint(restart=False).find(target), FixedPoint().find(target)
    assert (goes.distance <= stays.distance + 1e-12).all()
    assert goes.distance.mean() < stays.distance.mean() - 1e-3


def test_projection_goes_down_to_flat_places():
    Y, _ = cases.sinusoid(60)
    target = cases.diffusion(Y, 0.8, 1.0, q=5)
    found = Gradient("projection").find(target)
    assert found.converged.mean() > 0.95
    assert (found.distance <= target.distances_to(Y) + 1e-12).all()
    at = target.map.distance_and_gradient(found.Y, target.targets_on_map())[1]
    before = target.map.distance_and_gradient(Y, target.targets_on_map())[1]
    assert np.linalg.norm(at) < 1e-3 * np.linalg.norm(before)


def test_no_points_give_no_rows():
    target = cases.points(RBF(0.4), n=0)
    assert FixedPoint().find(target).Y.shape == (0, 3)


@pytest.mark.parametrize("negative", [False, True], ids=["positive", "negative"])
def test_medians_of_the_laplacian_kernel(negative):
    target = cases.points(Laplacian(0.5), n=20, negative=negative)
    found = Medians().find(target)
    assert (found.distance <= target.distances_to_rows().min(axis=1) + 1e-12).all()
    if not negative:
        assert found.converged.all()
        rng = np.random.default_rng(4)
        for size in (1e-3, 1e-2):
            around = found.Y + size * rng.normal(size=found.Y.shape)
            assert (found.distance <= target.distances_to(around) + 1e-12).all()


def test_medians_are_the_same_alone_and_among_others_on_any_number_of_threads():
    target = cases.points(Laplacian(0.5), cases.rows(33, D=5), n=130, negative=True, n_jobs=1)
    together = Medians().find(target)
    threads = Medians().find(dataclasses.replace(target, n_jobs=3))
    np.testing.assert_array_equal(threads.Y, together.Y)
    for i in (0, 77, 129):
        alone = Medians().find(dataclasses.replace(target, alpha=target.alpha[i : i + 1]))
        np.testing.assert_array_equal(alone.Y[0], together.Y[i])
        assert alone.n_iter[0] == together.n_iter[i]


def test_medians_take_a_start_only_where_it_is_nearer_than_any_row():
    target = cases.points(Laplacian(0.5), n=20)
    found = Medians().find(target)
    far = Medians().find(dataclasses.replace(target, start=np.full((20, 3), 50.0)))
    np.testing.assert_array_equal(far.Y, found.Y)
    near = Medians().find(dataclasses.replace(target, start=found.Y))
    np.testing.assert_array_equal(near.Y, found.Y)
    assert (near.n_iter <= 1).all()


def test_no_points_give_no_medians():
    assert Medians().find(cases.points(Laplacian(0.5), n=0)).Y.shape == (0, 3)


def test_numbers_are_checked():
    with pytest.raises(ValueError, match="`criterion` must be one of"):
        FixedPoint("projection")
    with pytest.raises(ValueError, match="`tol` must be a finite number above 0; got 0"):
        Gradient(tol=0)
    with pytest.raises(ValueError, match=r"need a Gaussian .* or polynomial"):
        FixedPoint().find(cases.points(Laplacian(0.5)))
    with pytest.raises(ValueError, match="pass `coordinates=` and `map=`"):
        Gradient("projection").find(cases.points(RBF(0.5)))


@all_smooth
def test_as_near_as_by_a_general_search(name):
    kernel, Y = cases.SMOOTH[name], cases.rows()
    target = cases.points(kernel, Y, n=30, negative=True)
    near = Y[target.distances_to_rows().argmin(axis=1)]

    def lowest(i):
        def distance(y):
            return float(
                (kernel.diagonal(y[None]) - 2 * target.alpha[i] @ kernel.gram(Y, y[None]))[0]
            )

        ends = [optimize.minimize(distance, start) for start in (target.alpha[i] @ Y, near[i])]
        return min(end.fun for end in ends)

    theirs = np.array([lowest(i) for i in range(30)]) + target.squared_lengths()
    for method in (FixedPoint(max_iter=3000), Gradient()):
        found = method.find(target).distance
        assert np.mean(found <= theirs + 1e-6 * (1 + theirs)) >= 0.9
        assert found.mean() <= 1.02 * theirs.mean() + 1e-9


@pytest.mark.slow
def test_ends_far_from_all_rows_are_no_ends():
    # One axis of ten clusters: where every coordinate vanishes the criterion is low, far away.
    rng = np.random.default_rng(0)
    Y = np.repeat(rng.uniform(0, 10, (10, 10)), 20, axis=0) + 0.5 * rng.normal(size=(200, 10))
    target = cases.gaussian_pca(Y, 1.9, 1)
    found = Gradient("projection").find(target)
    far = cdist(found.Y, Y).min(axis=1) > 6
    assert 0.05 < far.mean() < 0.1  # long steps lead more than a tenth astray
    assert (found.status[far] == Status.OUT_OF_REACH).all()
    near = cdist(found.Y, Y).min(axis=1) < 2
    assert near.any()
    assert (found.status[near] != Status.OUT_OF_REACH).all()

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.oracles import kernel_pca as oracle
from tests.preimages import cases

from twofold.features import RBF
from twofold.preimages import Constrained, Gradient, Status


def rest(target, Z):
    """Return the sum of squares of the free coordinates."""
    q = target.coordinates.shape[1]
    return (target.map.values(Z)[:, q:] ** 2).sum(axis=1)


def gaps(target, Z):
    q = target.coordinates.shape[1]
    return np.linalg.norm(target.map.values(Z)[:, :q] - target.coordinates, axis=1)


@pytest.fixture(scope="module")
def noisy():
    Y, clean = cases.sinusoid(150)
    return cases.diffusion(Y, 0.8, 1.0, q=1), clean


def test_coordinates_are_kept_and_the_rest_falls(noisy):
    target, _ = noisy
    found = Constrained().find(target)
    assert found.converged.mean() > 0.95
    size = np.ptp(target.coordinates)
    assert gaps(target, found.Y)[found.converged].max() < 1e-6 * size
    assert (rest(target, found.Y) <= rest(target, target.rows) + 1e-12).all()


@pytest.mark.slow
def test_ends_as_low_as_the_plain_projected_gradient(noisy):
    target, _ = noisy
    found = Constrained(tol=1e-5).find(target)
    for i in (0, 40, 80):
        there = target.targets_on_map()[i]
        expected, n_iter = oracle.constrained_preimage(
            target.map.parts, target.rows[i], there, 1, 0.1, 1e-5, 2000
        )
        one = dataclasses.replace(
            target, alpha=target.alpha[:1], coordinates=there[None, :1], start=None, products=None
        )
        assert found.n_iter[i] < max(20, 0.2 * n_iter)
        low, plain = rest(target, found.Y[i : i + 1]), rest(one, expected[None])
        # Another end of the level set is fine where it is lower.
        assert low <= plain * (1 + 1e-2) + 1e-6


def test_denoises_better_than_without_constraint(noisy):
    target, clean = noisy

    def error(Y):
        return np.sqrt(((Y - clean) ** 2).sum(axis=1).mean())

    free = Gradient("projection", restart=False).find(target)
    found = Constrained().find(target)
    assert error(found.Y) < 0.9 * error(target.rows)
    assert error(found.Y) < 0.9 * error(free.Y)
    # Without the constraint rows gather at a few places.
    assert len(np.unique(free.Y.round(2), axis=0)) < 0.7 * len(np.unique(found.Y.round(2), axis=0))


def test_any_point_between_two_ends(noisy):
    target, _ = noisy
    x = target.map.values(target.rows)[:, 0]
    X = np.linspace(np.quantile(x, 0.02), np.quantile(x, 0.98), 15)[:, None]
    generic = dataclasses.replace(
        target, alpha=target.alpha[:15], coordinates=X, start=None, products=None
    )
    found = Constrained().find(generic)
    assert gaps(generic, found.Y).max() < 1e-6 * np.ptp(x)
    along = np.diff(found.Y[:, 0])
    assert (np.sign(along) == np.sign(along.sum())).all()


def test_as_many_constraints_as_columns_leave_rows_where_they_are():
    Y, _ = cases.sinusoid(60)
    target = cases.diffusion(Y, 0.8, 1.0, q=2)
    found = Constrained().find(target)
    np.testing.assert_allclose(found.Y, Y, atol=1e-6)
    assert found.converged.all()


def test_gaussian_kernel_without_extension():
    Y, _ = cases.sinusoid(80)
    target = cases.gaussian_pca(Y, 0.6, q=1)
    found = Constrained().find(target)
    # Bent level sets must not cut steps down: some ten evaluations, not hundreds.
    assert found.converged.all()
    assert np.median(found.n_iter) < 40
    assert gaps(target, found.Y).max() < 1e-6
    assert rest(target, found.Y).mean() < 0.98 * rest(target, Y).mean()


def test_far_away_starts_begin_at_the_nearest_row(noisy):
    target, _ = noisy
    far = dataclasses.replace(target, start=np.full(target.rows.shape, 1e6))
    found = Constrained().find(far)
    assert np.isfinite(found.Y).all()
    assert np.abs(found.Y).max() < 20
    assert found.converged.mean() > 0.9


def test_outliers_are_not_taken_for_solved(noisy):
    target, _ = noisy
    # Far away the extended coordinates are constant, and an outlier has those it is asked for.
    away = np.full((3, 2), 1e3)
    outliers = dataclasses.replace(
        target,
        alpha=target.alpha[:3],
        coordinates=target.map.values(away)[:, :1],
        start=away,
        products=None,
    )
    found = Constrained().find(outliers)
    assert np.abs(found.Y).max() < 20
    assert gaps(outliers, found.Y)[found.converged].max(initial=0) < 1e-6


def test_coordinates_that_nothing_has_are_told(noisy):
    target, _ = noisy
    beyond = dataclasses.replace(target, coordinates=target.coordinates + 1e3)
    found = Constrained().find(beyond)
    assert np.isfinite(found.Y).all()
    assert not found.converged.any()
    assert np.isin(found.status, [Status.OFF_LEVEL, Status.OUT_OF_REACH]).all()


@pytest.fixture(scope="module")
def many_columns():
    """More columns than coordinates: the rest can be made as small as one likes."""
    rng = np.random.default_rng(0)
    Y = np.sin(rng.uniform(0, 4, (150, 2)) @ rng.normal(size=(2, 80)))
    target = cases.gaussian_pca(Y, 4.0, q=2, rank=20)
    start = Y + 0.3 * rng.normal(size=Y.shape)
    return dataclasses.replace(target, start=start)


def test_a_rest_that_is_small_ends_the_search(many_columns):
    target = many_columns
    found = Constrained().find(target)
    assert found.converged.mean() > 0.95
    assert found.n_iter.mean() < 60
    usual = rest(target, target.rows).mean()
    assert rest(target, found.Y)[found.converged].mean() < 0.2 * usual
    assert gaps(target, found.Y)[found.converged].max() < 1e-6


def test_rows_end_alike_alone_and_among_others(many_columns):
    target = many_columns
    together = Constrained().find(target)
    for i in (0, 70, 149):
        one = dataclasses.replace(
            target,
            alpha=target.alpha[i : i + 1],
            coordinates=target.coordinates[i : i + 1],
            start=target.start[i : i + 1],
            products=None,
        )
        np.testing.assert_array_equal(Constrained().find(one).Y[0], together.Y[i])


def test_a_start_with_little_rest_sets_out_again_on_its_own_level(many_columns):
    target = many_columns
    found = Constrained().find(target)
    usual = rest(target, target.rows).mean()
    lowest = found.Y[rest(target, found.Y).argmin()]
    assert rest(target, lowest[None]) < 0.015 * usual
    start = np.tile(lowest, (len(target.rows), 1))
    again = Constrained().find(dataclasses.replace(target, start=start))
    # If rows only went straight to their levels, half would be left with 0.2.
    assert np.median(rest(target, again.Y)) < 0.1 * usual


def test_a_map_is_needed():
    with pytest.raises(ValueError, match="A constrained pre-image needs"):
        Constrained().find(cases.points(RBF(0.4)))

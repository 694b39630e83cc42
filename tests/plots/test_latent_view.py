"""Boxes, lattices and cuts."""

from __future__ import annotations

import numpy as np
import pytest

from twofold import UKR
from twofold.plots.latent_view import LatentView


def test_the_box_holds_rows_and_domain(model):
    view = LatentView(model)
    box = view.limits
    assert (view.rows >= box[:, 0]).all()
    assert (view.rows <= box[:, 1]).all()
    lattice = view.lattice(60)
    inside = lattice.shaped(view.support(lattice) > 0)
    edges = [inside[0], inside[-1], inside[:, 0], inside[:, -1]]
    assert not np.concatenate(edges).any()


def test_support_is_positive_inside(model):
    view = LatentView(model)
    lattice = view.lattice(40)
    np.testing.assert_array_equal(view.support(lattice) > 0, model.in_domain(lattice.places))


def test_support_is_finite_where_a_compact_kernel_ends(table):
    model = UKR(kernel="quartic", init="pca", max_iter=3).fit(table[0])
    view = LatentView(model)
    support = view.support(view.lattice(40))
    assert np.isfinite(support).all()
    assert (support < 0).any()


def test_lattice_is_shaped_second_axis_first(model):
    view = LatentView(model, (1, 0))
    lattice = view.lattice(30)
    first, second = lattice.axes
    field = lattice.shaped(lattice.places[:, 1])
    assert field.shape == (len(second), len(first))
    np.testing.assert_allclose(field, np.tile(first, (len(second), 1)))
    assert view.names == ["latent x2", "latent x1"]
    gaps = [axis[1] - axis[0] for axis in lattice.axes]
    assert gaps[0] == pytest.approx(gaps[1], rel=0.1)


def test_hidden_coordinates_are_those_of_the_row_seen_nearest(table):
    model = UKR(4, init="pca", max_iter=2).fit(table[0])
    view = LatentView(model, (3, 1))
    places = view.places(np.array([[5.0, 7.0]]))
    near = model.embedding_[((view.rows - [5.0, 7.0]) ** 2).sum(axis=1).argmin()]
    np.testing.assert_allclose(places, [[near[0], 7, near[2], 5]])
    np.testing.assert_allclose(view.places(view.rows), model.embedding_)
    np.testing.assert_array_equal(view.rows, model.embedding_[:, [3, 1]])


def test_every_row_of_a_cloud_stands_on_ground_that_the_data_supports(table):
    model = UKR(3, random_state=0, max_iter=20).fit(table[0])
    view = LatentView(model)
    lattice = view.lattice()
    inside = lattice.nearly(view.support(lattice) > 0)
    nearest = ((lattice.places[:, None, :2] - view.rows[None]) ** 2).sum(axis=2).argmin(axis=0)
    assert inside[nearest].all()
    cut = lattice.places.copy()
    cut[:, 2] = np.median(model.embedding_[:, 2])
    assert not lattice.nearly(model.in_domain(cut))[nearest].all()  # the plane leaves rows aside


def test_one_dimension_has_one_axis(table):
    model = UKR(1, init="pca", max_iter=2).fit(table[0])
    view = LatentView(model, (0, 1))
    assert view.is_line
    assert view.names == ["latent x1"]
    lattice = view.lattice()
    assert lattice.places.shape == (len(lattice.axes[0]), 1)


@pytest.mark.parametrize("dims", [(0, 0), (0, 2), (-1, 0), 1, "xy"])
def test_dims_are_checked(model, dims):
    with pytest.raises(ValueError, match="`dims` must be two"):
        LatentView(model, dims)


def test_only_wanted_places_are_evaluated(model):
    lattice = LatentView(model).lattice(50)
    wanted = np.zeros(len(lattice.places), dtype=bool)
    wanted[5:1505] = True
    seen = []

    def both(X):
        seen.append(len(X))
        return np.column_stack([X[:, 0], X[:, 1]])

    found = lattice.evaluate(both, wanted, 2)
    assert sum(seen) == 1500
    assert len(seen) > 1  # a block at a time
    np.testing.assert_array_equal(found[wanted], lattice.places[wanted])
    assert np.isnan(found[~wanted]).all()


def test_neighbours_are_nearly_inside(model):
    lattice = LatentView(model).lattice(20)
    inside = np.zeros(len(lattice.places), dtype=bool)
    inside[len(lattice.axes[0]) * 8 + 8] = True
    assert lattice.nearly(inside).sum() == 25  # two steps each way

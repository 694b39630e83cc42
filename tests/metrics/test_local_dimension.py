"""Neighbourhoods of several sizes, and the dimension that they show."""

from __future__ import annotations

import numpy as np
import pytest

from twofold.datasets import make_random_manifold
from twofold.metrics.local_dimension import (
    dimension_of,
    local_scales,
    neighbor_dimension,
    neighborhood_sizes,
    share_across_gaps,
)


def test_dimension_of_a_table_with_holes():
    rows = make_random_manifold(300, 3, 10, noise=0.02, random_state=0).Y
    holes = np.random.default_rng(0).random(rows.shape) < 0.02
    assert dimension_of(np.where(holes, np.nan, rows)) == 3
    holes = np.random.default_rng(0).random(rows.shape) < 0.2  # hardly a complete row is left
    assert dimension_of(np.where(holes, np.nan, rows)) >= 1
    cloud = np.random.default_rng(0).normal(size=(60, 4))
    with pytest.warns(UserWarning, match=r"the map gets 2, .* No confident answer"):
        assert dimension_of(cloud) == 2
    assert dimension_of(cloud[:, :1]) == 1


def test_neighbour_distances_of_a_uniform_ball():
    rng = np.random.default_rng(0)
    for d in (1, 2, 4):
        # Distances from the centre of a ball: the d-th root of uniform numbers.
        distances = np.sort(rng.uniform(size=(4_000, 30)) ** (1 / d), axis=1)
        assert neighbor_dimension(distances) == pytest.approx(d, rel=0.04)


def test_isotropic_rows_have_neither_gap_nor_excess():
    for scale in local_scales(np.random.default_rng(0).normal(size=(500, 6))):
        np.testing.assert_allclose(scale.gaps(4), 1, atol=0.3)
        assert abs(scale.excess(2)) < 0.15


def test_a_flat_sheet_leaves_its_noise_open():
    rng = np.random.default_rng(0)
    rows = np.hstack([rng.uniform(-1, 1, size=(400, 2)), 0.05 * rng.normal(size=(400, 3))])
    share = 3 * 0.05**2 / rows.var(axis=0).sum()
    for scale in local_scales(rows)[2:]:
        assert scale.left_open(2) == pytest.approx(share, rel=0.25)


def test_neighbourhoods_grow_to_a_third():
    sizes = neighborhood_sizes(900)
    assert (sizes[0], sizes[-1]) == (12, 300)
    assert sizes == sorted(set(sizes))


def test_rows_along_a_line_are_no_groups():
    rng = np.random.default_rng(0)
    distances = np.sort(np.abs(np.linspace(0, 1, 300) - rng.random((200, 1))), axis=1)
    assert share_across_gaps(distances[:, 1:12]) < 0.1
    assert share_across_gaps(np.array([[1.0, 1.1, 6.0], [1.0, 1.1, 1.2]])) == 0.5

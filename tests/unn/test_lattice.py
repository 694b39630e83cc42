from __future__ import annotations

import numpy as np
import pytest
from oracles import unn as oracle
from sklearn.datasets import load_digits

from twofold.unn.lattice import Lattice
from twofold.unn.line import Line
from twofold.unn.point_errors import get_point_error


def make_rows(n=12, D=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)) + 2.0, rng.uniform(0.5, 3.0, size=n)


def sites_of(lattice):
    return (lattice.latent + lattice.side // 2).astype(int)


def table_of(sites):
    return np.array([sites[j] for j in range(len(sites))])


@pytest.mark.cover(2)
@pytest.mark.parametrize("exhaustive", [True, False], ids=["exhaustive", "greedy"])
@pytest.mark.parametrize("include_self", [True, False], ids=["self", "others"])
@pytest.mark.parametrize("criterion", ["point", "full"])
@pytest.mark.parametrize("q", [1, 2, 3])
@pytest.mark.parametrize("K", [1, 4])
def test_same_sites_as_the_oracle(exhaustive, include_self, criterion, q, K):
    Y, weights = make_rows()
    setting = oracle.Setting(Y, K, include_self, weights=weights)
    lattice = Lattice(
        q,
        n_neighbors=K,
        n_rows=len(Y),
        criterion=criterion,
        include_self=include_self,
        exhaustive=exhaustive,
    )
    lattice.insert(Y, weights)
    expected = oracle.sort_on_lattice(setting, q, lattice.side, criterion, exhaustive)
    np.testing.assert_array_equal(sites_of(lattice), table_of(expected))
    full = oracle.full_error_on_lattice(expected, setting)
    assert lattice.full_error() == pytest.approx(full, rel=1e-9)

    history = lattice.refine()
    refined = oracle.refine_on_lattice(expected, setting)
    np.testing.assert_array_equal(sites_of(lattice), table_of(refined))
    assert history[0] == pytest.approx(full, rel=1e-9)
    assert history[-1] == pytest.approx(oracle.full_error_on_lattice(refined, setting), rel=1e-9)
    assert history[-1] <= history[0]


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["point", "full"])
@pytest.mark.parametrize("exhaustive", [True, False], ids=["exhaustive", "greedy"])
def test_other_errors_and_missing_entries(criterion, exhaustive):
    Y, weights = make_rows(n=12, D=4, seed=1)
    Y[np.random.default_rng(2).random(Y.shape) < 0.2] = np.nan
    Y[:, 0] = np.arange(12) % 5  # no row is empty
    setting = oracle.Setting(Y, 3, True, "absolute", power=1.0, weights=weights)
    lattice = Lattice(
        2,
        n_neighbors=3,
        n_rows=12,
        criterion=criterion,
        error=get_point_error("absolute", 1.0),
        exhaustive=exhaustive,
    )
    lattice.insert(Y, weights)
    expected = oracle.sort_on_lattice(setting, 2, lattice.side, criterion, exhaustive)
    np.testing.assert_array_equal(sites_of(lattice), table_of(expected))
    lattice.refine()
    refined = table_of(oracle.refine_on_lattice(expected, setting))
    assert (refined != table_of(expected)).any()
    np.testing.assert_array_equal(sites_of(lattice), refined)


def test_refinement_halves_the_error_of_digits():
    Y = load_digits().data[:300]
    lattice = Lattice(2, n_neighbors=5, n_rows=300, exhaustive=False)
    lattice.insert(Y)
    before = lattice.latent
    history = lattice.refine(20)
    assert len(history) < 21  # until no row moved
    assert (np.diff(history[:-1]) < 0).all()
    assert history[-1] < 0.6 * history[0]
    sort = [X[np.lexsort(X.T)] for X in (before, lattice.latent)]
    np.testing.assert_array_equal(*sort)  # the same sites


@pytest.mark.parametrize("criterion", ["point", "full"])
def test_one_dimension_is_the_line(criterion):
    Y, _ = make_rows(n=60)
    lattice = Lattice(
        1, n_neighbors=4, n_rows=150, criterion=criterion, exhaustive=False
    )  # rows are pushed to either side, so a box of 150 sites never ends too early
    lattice.insert(Y)
    line = Line(n_neighbors=4, criterion=criterion, exhaustive=False)
    line.insert(Y)
    np.testing.assert_array_equal(np.argsort(lattice.latent[:, 0]), line.order)
    assert lattice.full_error() == pytest.approx(line.full_error(), rel=1e-12)


def test_no_two_rows_share_a_site_and_none_leaves_the_box():
    Y, _ = make_rows(n=200)
    for q in (2, 3):
        lattice = Lattice(q, n_neighbors=5, n_rows=200, exhaustive=False)
        lattice.insert(Y)
        sites = sites_of(lattice)
        assert len(np.unique(sites, axis=0)) == 200
        assert sites.min() >= 0
        assert sites.max() < lattice.side
        assert lattice.side == int(np.ceil(250 ** (1 / q)))


def test_box_grows_without_moving_rows():
    Y, _ = make_rows(n=80)
    lattice = Lattice(2, n_neighbors=3, n_rows=12, exhaustive=False, criterion="full")
    lattice.insert(Y[:12])
    before, side = lattice.latent, lattice.side
    lattice.insert(Y[12:13])
    assert lattice.side > side
    moved = np.abs(lattice.latent[:12] - before).max(axis=1)
    assert moved.max() <= 1  # rows may be pushed one step, the box alone moves none
    assert (moved == 0).any()
    lattice.insert(Y[13:])
    assert len(np.unique(lattice.latent, axis=0)) == 80


@pytest.mark.parametrize("criterion", ["point", "full"])
def test_going_on_after_load(criterion):
    Y, weights = make_rows(n=30)
    options = {"n_neighbors": 3, "n_rows": 30, "criterion": criterion, "exhaustive": False}
    whole = Lattice(2, **options)
    whole.insert(Y, weights)
    first = Lattice(2, **options)
    first.insert(Y[:20], weights[:20])
    second = Lattice(2, **options)
    second.load(Y[:20], first.latent, weights[:20])
    second.insert(Y[20:], weights[20:])
    np.testing.assert_array_equal(second.latent, whole.latent)


def test_fill_takes_the_mean_of_the_neighbors():
    Y, weights = make_rows(n=20)
    Y[-1, 1] = np.nan
    lattice = Lattice(2, n_neighbors=4, n_rows=20, include_self=False)
    lattice.insert(Y, weights)
    filled = lattice.fill(19)
    steps = lattice.latent[:19] - lattice.latent[19]
    nearest = sorted(range(19), key=lambda j: (steps[j] @ steps[j], tuple(steps[j])))[:4]
    assert filled[1] == pytest.approx(np.average(Y[nearest, 1], weights=weights[nearest]))
    np.testing.assert_allclose(filled[[0, 2]], Y[-1, [0, 2]])


def test_wrong_dimension():
    with pytest.raises(ValueError, match="1, 2 or 3 dimensions; got `n_components` 4"):
        Lattice(4, n_neighbors=3)


@pytest.mark.parametrize("q", [2, 3])
def test_no_axis_is_favored(q):
    Y = np.random.default_rng(0).normal(size=(300, 10))
    lengths = np.zeros(q)
    for seed in range(6):
        rows = np.random.default_rng(seed).permutation(Y)
        lattice = Lattice(q, n_neighbors=5, n_rows=300, exhaustive=False)
        lattice.insert(rows)
        at = {tuple(site): row for site, row in zip(sites_of(lattice), rows, strict=True)}
        for axis in range(q):
            step = np.eye(q, dtype=int)[axis]
            beside = [(y, at.get(tuple(np.array(site) + step))) for site, y in at.items()]
            lengths[axis] += np.mean([np.linalg.norm(y - z) for y, z in beside if z is not None])
    assert lengths.max() < 1.05 * lengths.min()


def test_first_rows_stay_together():
    Y, _ = make_rows(n=5)
    lattice = Lattice(2, n_neighbors=6, n_rows=100, exhaustive=False)
    lattice.insert(Y)
    assert np.abs(lattice.latent).max() == 1

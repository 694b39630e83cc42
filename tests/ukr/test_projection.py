from __future__ import annotations

import ctypes
import sys

import numpy as np
import pytest
from kernel_cases import name_of
from scipy.optimize import minimize
from ukr.problems import make_surface, sheet

from twofold.kernels import GAUSSIAN, QUARTIC, TRIWEIGHT
from twofold.losses import Huber, Squared
from twofold.ukr import projection
from twofold.ukr.projection import project
from twofold.ukr.surface import _take_distances

kernels = pytest.mark.parametrize("kernel", [GAUSSIAN, QUARTIC, TRIWEIGHT], ids=name_of)


def bent_sheet(kernel=GAUSSIAN, **options):
    return make_surface(kernel, *sheet(), **options)


def on_the_sheet(surface, m=40):
    X = np.random.default_rng(0).uniform(-3, 3, size=(m, 2))
    return X, surface.regress(X)


@kernels
def test_points_on_the_manifold_are_found(kernel):
    surface = bent_sheet(kernel)
    X, Y = on_the_sheet(surface)
    found = project(surface, Y, None)
    assert found.converged.all()
    assert found.error.max() < 1e-9
    np.testing.assert_allclose(found.X, X, atol=1e-3)
    np.testing.assert_allclose(surface.regress(found.X), Y, atol=1e-4)


def test_points_on_a_curve_are_found():
    t = np.linspace(0, 12, 60)[:, None]
    surface = make_surface(GAUSSIAN, t, np.column_stack([np.cos(t / 4), np.sin(t / 4), t / 12]))
    X = np.random.default_rng(1).uniform(0.5, 11.5, size=(30, 1))
    found = project(surface, surface.regress(X), None)
    np.testing.assert_allclose(found.X, X, atol=1e-3)


@kernels
def test_the_error_is_that_of_the_place_found(kernel):
    surface = bent_sheet(kernel)
    Y = on_the_sheet(surface)[1] + 0.2 * np.random.default_rng(2).normal(size=(40, 3))
    found = project(surface, Y, None)
    expected = ((surface.regress(found.X) - Y) ** 2).sum(axis=1)
    np.testing.assert_allclose(found.error, expected, rtol=1e-9)


@kernels
def test_rows_beyond_the_border_slide_along_it(kernel):
    surface = bent_sheet(kernel)
    rng = np.random.default_rng(4)
    Y = surface.rows.unscaled(3 * surface.rows.Y[rng.integers(len(surface.X), size=20)])
    found = project(surface, Y, None)
    assert (surface.density(found.X) >= surface.threshold).all()
    low, high = surface.X.min(axis=0) - 2, surface.X.max(axis=0) + 2
    axes = [np.linspace(a, b, 300) for a, b in zip(low, high, strict=True)]
    lattice = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    lattice = lattice[surface.density(lattice) >= surface.threshold]
    everywhere = ((surface.regress(lattice)[:, None] - Y) ** 2).sum(axis=2)
    assert (found.error <= everywhere.min(axis=0) * (1 + 2e-3)).all()


@pytest.mark.parametrize("q", [2, 4])
def test_some_of_very_many_points_stand_for_all(q, monkeypatch):
    rng = np.random.default_rng(5)
    X = rng.uniform(-4, 4, size=(400, q))
    surface = make_surface(GAUSSIAN, X, np.sin(X @ rng.normal(size=(q, 6))))
    Y = surface.regress(rng.uniform(-3, 3, size=(30, q))) + 0.2 * rng.normal(size=(30, 6))
    whole = project(surface, Y, None)
    monkeypatch.setattr("twofold.ukr.surface.MOST_PLACES", 100)
    del surface.starting_places
    some = project(surface, Y, None)
    assert (len(surface.starting_places.numbers) < 400) == (q == 2)
    assert some.error.sum() < 1.1 * whole.error.sum()


def test_what_is_foreseen_is_what_a_look_shows():
    surface = bent_sheet(GAUSSIAN)
    rng = np.random.default_rng(7)
    Y = surface.rows.Y[:25] + 0.3 * rng.normal(size=(25, surface.rows.Y.shape[1]))
    known = (rng.random(Y.shape) < 0.8).astype(float)
    known[:, 0] = 1
    X, seen = projection._starts(surface, Y * known, known, np.inf)
    q, k = X.shape[2], X.shape[1]
    shown = surface.distances_at(X.reshape(-1, q), np.repeat(Y, k, axis=0), np.repeat(known, k, 0))
    there = np.isfinite(seen.error)
    assert there.reshape(-1, k)[:, 0].all()
    for foreseen, looked in zip(seen[:3], shown, strict=False):
        np.testing.assert_allclose(foreseen[there], looked[there], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("bound", [np.inf, 0.5])
def test_the_nearest_places_are_those_of_the_nearest_groups(bound):
    rng = np.random.default_rng(0)
    F, Y = rng.normal(size=(1_000, 5)), rng.normal(size=(12, 5))
    known = (rng.random(Y.shape) < 0.8).astype(float)
    groups = np.unique(np.append(rng.integers(0, 1_000, 150), [0, 1_000]))
    n_groups = len(groups) - 1
    to_centres = rng.random((len(Y), n_groups))
    near = np.empty((len(Y), 20), dtype=np.int64)
    projection._nearest_in_groups(to_centres, groups, F, Y, known, bound, near)
    group_of = np.repeat(np.arange(n_groups), np.diff(groups))
    for j, y in enumerate(Y):
        searched = np.argsort(to_centres[j])[: projection.N_GROUPS]
        assert len(searched) < n_groups
        off = np.abs(F - y) * known[j]
        loss = np.where(off <= bound, off**2, bound * (2 * off - bound) if bound < 1 else 0)
        distance = np.where(np.isin(group_of, searched), loss.sum(axis=1), np.inf)
        np.testing.assert_array_equal(near[j], np.argsort(distance)[:20])


@pytest.mark.slow
def test_no_start_leads_to_a_lower_error():
    surface = bent_sheet()
    Y = on_the_sheet(surface, 6)[1] + 0.2 * np.random.default_rng(3).normal(size=(6, 3))
    found = project(surface, Y, None)
    for j, y in enumerate(Y):

        def distance(x, y=y):
            outside = 1e3 * (surface.density(x[None])[0] < surface.threshold)
            return ((surface.regress(x[None])[0] - y) ** 2).sum() + outside

        best = min(
            minimize(distance, start, method="Nelder-Mead", options={"xatol": 1e-5}).fun
            for start in surface.X[::29]
        )
        assert found.error[j] <= best * (1 + 1e-4)


@kernels
@pytest.mark.parametrize("distance", [1.0, 10.0, 1e6])
def test_nothing_leaves_the_domain(kernel, distance):
    surface = bent_sheet(kernel)
    Y = distance * np.random.default_rng(4).normal(size=(60, 3))
    found = project(surface, Y, None)
    assert np.isfinite(found.X).all()
    assert (surface.density(found.X) >= surface.threshold).all()


def test_a_flat_slope_of_the_density_leads_nowhere():
    """Points on a line of the plane: outside of the domain the density may hardly rise at all."""
    rng = np.random.default_rng(0)
    along = np.sort(rng.normal(size=13))
    X = np.column_stack([8 * along, np.zeros(13)])
    Y = np.column_stack([2650 + 20 * along, np.zeros(13)])
    surface = make_surface(GAUSSIAN, X, Y, cutoff=1e-6)
    far = np.column_stack([np.linspace(-1e4, 1e4, 200), np.zeros(200)])
    found = project(surface, far, None)
    assert np.isfinite(found.X).all()
    assert (surface.density(found.X) >= surface.threshold).all()


def test_the_bound_of_the_domain_is_felt():
    surface, y = bent_sheet(), np.array([[1.5, 0.0, 1.0]])  # beyond the edge of the sheet
    held = project(surface, y, None)
    bound, surface.threshold = surface.threshold, 0.0
    free = project(surface, y, None)
    assert surface.density(free.X)[0] < bound <= surface.density(held.X)[0]
    assert held.error[0] > free.error[0]


def test_missing_entries_are_ignored():
    surface = bent_sheet()
    X, Y = on_the_sheet(surface)
    observed = np.ones(Y.shape, dtype=bool)
    observed[:, 2] = False  # two coordinates are enough to find the place on the sheet
    found = project(surface, np.where(observed, Y, np.nan), observed)
    np.testing.assert_allclose(found.X, X, atol=2e-3)
    other = project(surface, np.where(observed, Y, 1e9), observed)
    np.testing.assert_array_equal(found.X, other.X)
    residual = ((surface.regress(found.X) - Y) ** 2)[:, :2].sum(axis=1)
    np.testing.assert_allclose(found.error, residual, atol=1e-12)


def test_full_masks_are_no_masks():
    surface = bent_sheet()
    Y = on_the_sheet(surface)[1] + 0.1
    found = project(surface, Y, np.ones(Y.shape, dtype=bool))
    np.testing.assert_array_equal(found.X, project(surface, Y, None).X)


@pytest.mark.cover(2)
@kernels
@pytest.mark.parametrize("D", [1, 2, 3, 5, 17])
@pytest.mark.parametrize("q", [1, 2, 3])
def test_a_row_gives_the_same_bits_alone_or_among_others(kernel, D, q):
    rng = np.random.default_rng([D, q])
    X = rng.normal(size=(70, q))
    surface = make_surface(kernel, X, rng.normal(size=(70, D)))
    Y = rng.normal(size=(9, D))
    observed = rng.random(Y.shape) < 0.8
    observed[:, 0] = True
    together = project(surface, Y, observed)
    for rows in ([0], [3, 4], [8]):
        alone = project(surface, Y[rows], observed[rows])
        np.testing.assert_array_equal(alone.X, together.X[rows])
        np.testing.assert_array_equal(alone.error, together.error[rows])


def shaken(times, sizes, rng):
    """Yield so many times, after changes of the memory that arrays of such sizes will lie in."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    held = []
    for is_new, number in zip(rng.random((times, 6)) < 0.5, rng.random((times, 6)), strict=True):
        for new, place in zip(is_new, number, strict=True):
            if new:
                held.append(libc.malloc(sizes[int(place * len(sizes))]))
            elif held:
                libc.free(held.pop(int(place * len(held))))
        yield
    for place in held:
        libc.free(place)


@pytest.mark.skipif(sys.platform == "win32", reason="asks the C library for memory")
def test_errors_have_the_same_bits_wherever_arrays_lie():
    rng = np.random.default_rng(0)
    m, q, D = 5, 2, 8
    sums = rng.uniform(1, 2, (m, D + 1)), rng.normal(size=(m, q, D + 1))
    Y, known = rng.normal(size=(m, D)), np.ones((1, D))
    answers = np.empty(m), np.empty((m, q)), np.empty((m, q, q)), np.empty((m, q))
    found = set()
    for _ in shaken(5_000, range(8 * D, 8 * D + 160, 8), rng):
        _take_distances(*sums, Y, known, *answers)
        found.add(tuple(array.tobytes() for array in answers))
    assert len(found) == 1


@pytest.mark.parametrize("offset", range(0, 64, 4))
def test_rows_have_the_same_bits_at_any_address(offset):
    surface = bent_sheet()
    Y = on_the_sheet(surface, 9)[1] + 0.1
    expected = project(surface, Y, None)
    room = np.zeros(Y.nbytes + 128, dtype=np.uint8)
    begin = -room.ctypes.data % 64 + offset
    moved = room[begin : begin + Y.nbytes].view(Y.dtype).reshape(Y.shape)
    moved[:] = Y
    for rows in (slice(None), slice(4, 5), slice(None, None, 2)):
        found = project(surface, moved[rows], None)
        np.testing.assert_array_equal(found.X, expected.X[rows])
        np.testing.assert_array_equal(found.error, expected.error[rows])


def test_single_precision():
    X, Y = sheet()
    exact = make_surface(GAUSSIAN, X, Y)
    rough = make_surface(GAUSSIAN, X, Y.astype(np.float32), cutoff=1e-7)
    places, targets = on_the_sheet(exact)
    found = project(rough, targets.astype(np.float32), None)
    assert found.X.dtype == found.error.dtype == np.float32
    np.testing.assert_allclose(found.X, places, atol=5e-2)


def test_more_starts_than_points():
    surface = make_surface(GAUSSIAN, np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]]))
    found = project(surface, np.array([[0.5]]), None)
    np.testing.assert_allclose(found.X, [[0.5]], atol=1e-4)


def test_no_rows_at_all():
    found = project(bent_sheet(), np.empty((0, 3)), None)
    assert found.X.shape == (0, 2)


# ---- more than three dimensions -----------------------------------------------------------------


def far_apart(q, kernel=GAUSSIAN, n=400, missing=False):
    """Return a surface whose points are several bandwidths apart, and rows near it (30, 8)."""
    rng = np.random.default_rng(q)
    X = rng.normal(size=(n, q))
    Y = np.sin(X @ rng.normal(size=(q, 8)) / np.sqrt(q))
    observed = rng.random(Y.shape) < 0.9 if missing else None
    spread = 3.0 if kernel is GAUSSIAN else 0.8 * np.sqrt(q) / 3
    surface = make_surface(kernel, spread * X, Y, observed=observed, cutoff=1e-6)
    new = np.sin(rng.normal(size=(30, q)) @ rng.normal(size=(q, 8)) / np.sqrt(q))
    return surface, new


@pytest.mark.parametrize("q", [4, 6, 9])
@pytest.mark.parametrize("kernel", [GAUSSIAN, QUARTIC], ids=name_of)
def test_many_dimensions_end_inside_and_below_every_training_point(q, kernel):
    surface, Y = far_apart(q, kernel)
    found = project(surface, Y, None)
    assert (surface.density(found.X) >= surface.threshold).all()
    np.testing.assert_allclose(
        found.error, ((surface.regress(found.X) - Y) ** 2).sum(axis=1), rtol=1e-6
    )
    at_points = ((surface.regress(surface.X)[None] - Y[:, None]) ** 2).sum(axis=2)
    assert (found.error <= at_points.min(axis=1) * (1 + 1e-9)).all()


def test_starts_between_points_end_lower(monkeypatch):
    surface, Y = far_apart(8)
    between = project(surface, Y, None).error.mean()
    monkeypatch.setattr(projection, "AROUND", 1e-6)  # at the training points themselves
    assert between < 0.95 * project(surface, Y, None).error.mean()


@pytest.mark.parametrize("loss", [Squared(), Huber(delta=0.3)], ids=["squared", "huber"])
@pytest.mark.parametrize("missing", [False, True])
def test_rows_alone_and_among_others_in_many_dimensions(loss, missing):
    surface, Y = far_apart(6, missing=missing)
    observed = np.random.default_rng(0).random(Y.shape) < 0.8 if missing else None
    together = project(surface, Y, observed, loss)
    for j in (0, 13, 29):
        mask = None if observed is None else observed[j : j + 1]
        alone = project(surface, Y[j : j + 1], mask, loss)
        np.testing.assert_array_equal(alone.X[0], together.X[j])
        assert alone.error[0] == together.error[j]


def test_rows_far_away_have_a_place_in_many_dimensions():
    surface, Y = far_apart(5, n=60)
    Y[0], Y[1] = 1e6, -1e150
    found = project(surface, Y, None)
    assert np.isfinite(found.X).all()
    assert (surface.density(found.X) >= surface.threshold).all()

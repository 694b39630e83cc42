"""Where latent points may lie without the engine losing its way."""

from __future__ import annotations

import numpy as np
import pytest
from engine.regression import Regression
from finite_differences import relative_error
from kernel_cases import POWER, name_of

from twofold.engine import KernelSums, PreparedReferences, cells
from twofold.engine.cells import build_grid
from twofold.kernels import GAUSSIAN, QUARTIC

BACKENDS = ["cpu_dense", "cpu_cells"]


def scattered(rng, q):
    return rng.normal(size=(40, q))


def two_far_apart(rng, q):
    X = rng.normal(size=(40, q))
    X[20:] += 1e6
    return X


def one_far_apart(rng, q):
    X = rng.normal(size=(40, q))
    X[11] = 1e6
    return X


def in_one_place(rng, q):
    return np.full((40, q), 0.3)


def on_a_line(rng, q):
    return np.outer(np.linspace(-4, 4, 40), np.ones(q))


def along_the_last_axis(rng, q):
    X = np.zeros((40, q))
    X[:, -1] = np.linspace(0, 30, 40)
    return X


def along_the_first_axis(rng, q):
    X = np.zeros((40, q))
    X[:, 0] = np.linspace(0, 30, 40)
    return X


def duplicated(rng, q):
    return np.repeat(rng.normal(size=(10, q)), 4, axis=0)


def on_a_lattice(rng, q):
    # Distances of exactly the support of finite kernels, and points on the edges of cells.
    return np.round(3 * rng.random(size=(40, q)))


PLACES = [
    scattered,
    two_far_apart,
    one_far_apart,
    in_one_place,
    on_a_line,
    along_the_last_axis,
    along_the_first_axis,
    duplicated,
    on_a_lattice,
]


@pytest.mark.cover(2)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
@pytest.mark.parametrize("q", [1, 2, 3, 6])
@pytest.mark.parametrize("kernel", [GAUSSIAN, QUARTIC, POWER], ids=name_of)
def test_results_equal_the_oracle(backend, place, q, kernel):
    rng = np.random.default_rng(0)
    X = place(rng, q)
    Y = rng.normal(size=(len(X), 2))
    problem = Regression(X, X, Y, rng.normal(size=Y.shape), own=np.arange(len(X)))
    found = problem.found(kernel, cutoff=1e-14, n_jobs=1, backend=backend)
    expected = problem.expected(kernel)
    # A coordinate of 1e6 is known to 1e-10, so are then the differences.
    limit = 1e-3 if place is one_far_apart else 1e-6 if place is two_far_apart else 1e-9
    scale = max(np.abs(expected[1]).max(), 1e-3)
    assert relative_error(found[0], expected[0]) < limit
    np.testing.assert_allclose(found[1], expected[1], atol=limit * scale)
    np.testing.assert_allclose(found[2], expected[2], atol=limit * scale)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kernel", [GAUSSIAN, QUARTIC], ids=name_of)
def test_one_point_alone(backend, kernel):
    X, Y = np.array([[3.0, 4.0]]), np.array([[5.0]])
    seen = Regression(X, X, Y, np.array([[7.0]]))
    losses, by_query, by_reference = seen.found(kernel, n_jobs=1, backend=backend)
    assert losses[0] == pytest.approx(4.0)  # (5 - 7)²
    assert not by_query.any()
    assert not by_reference.any()
    hidden = Regression(X, X, Y, np.array([[7.0]]), own=np.zeros(1, dtype=int))
    losses, by_query, by_reference = hidden.found(kernel, n_jobs=1, backend=backend)
    assert losses[0] == pytest.approx(49.0)  # nothing to see: 0, by the test's own rule
    assert not by_query.any()
    assert not by_reference.any()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_squared_distances_that_overflow_are_out_of_reach(backend, dtype):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 2))
    X[5] = 1e160 if dtype is np.float64 else 1e25
    Y = rng.normal(size=(12, 2))
    problem = Regression(X, X, Y, Y, own=np.arange(12))
    losses, by_query, by_reference = problem.found(GAUSSIAN, dtype=dtype, backend=backend)
    others = np.delete(Y, 5, axis=0).mean(axis=0)
    assert losses[5] == pytest.approx(((others - Y[5]) ** 2).sum(), rel=1e-5)
    assert not by_query[5].any()
    assert np.isfinite(by_reference).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_queries_out_of_every_reach(backend):
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(50, 2)), rng.normal(size=(50, 1))
    Q = X[:9] + 40
    problem = Regression(Q, X, Y, np.zeros((9, 1)))
    losses, by_query, by_reference = problem.found(QUARTIC, n_jobs=1, backend=backend)
    np.testing.assert_allclose(losses, Y.mean() ** 2)
    assert not by_query.any()
    assert not by_reference.any()


def test_room_for_pairs_grows_when_many_queries_are_isolated(monkeypatch):
    rng = np.random.default_rng(3)
    X, Y = 0.1 * rng.normal(size=(300, 2)), rng.normal(size=(300, 1))
    X[0] = 100  # so that there is more than one cell, and nothing in those around the queries
    Q = 30 + rng.normal(size=(30, 2))
    answers = []
    collect = cells._collect

    def spy(*arguments):
        answers.append(collect(*arguments))
        return answers[-1]

    monkeypatch.setattr(cells, "_collect", spy)
    problem = Regression(Q, X, Y, np.zeros((30, 1)))
    found = problem.found(GAUSSIAN, cutoff=1e-14, n_jobs=1, backend="cpu_cells")
    assert answers[0] == -1
    assert answers[-1] > 0
    expected = problem.expected(GAUSSIAN)
    assert relative_error(found[0], expected[0]) < 1e-9
    assert relative_error(found[1], expected[1]) < 1e-9
    assert relative_error(found[2], expected[2]) < 1e-9


def test_no_queries_at_all():
    references = PreparedReferences(KernelSums(GAUSSIAN), np.zeros((3, 2)), np.ones((3, 4)))
    sums = references.at(np.empty((0, 2)), slopes=True)
    assert sums.values.shape == (0, 4)
    assert sums.slopes.shape == (0, 2, 4)


# ---- numbers that no loop may index with --------------------------------------------------------

ODD = [np.nan, np.inf, -np.inf]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("q", [1, 2, 3, 5])
def test_references_that_are_no_numbers_are_refused(q, odd):
    X = np.random.default_rng(0).normal(size=(40, q))
    X[7, -1] = odd
    with pytest.raises(ValueError, match=r"1 of 40 latent points .*first: point 7"):
        build_grid(X, 1.0)
    with pytest.raises(ValueError, match=r"first: point 7"):
        PreparedReferences(KernelSums(GAUSSIAN), X, np.ones((40, 1)))


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("backend", BACKENDS)
def test_queries_that_are_no_numbers_are_refused(backend, odd):
    X = np.random.default_rng(0).normal(size=(40, 2))
    Q = X.copy()
    Q[3, 0] = odd
    engine = KernelSums(GAUSSIAN, n_jobs=1, backend=backend)

    def respond(numbers, sums, shift):
        return sums[:, 0], None

    for queries, references in ((Q, X), (X, Q), (Q, None)):
        with pytest.raises(ValueError, match=r"first: point 3"):
            engine.evaluate(queries, np.ones((40, 1)), respond, references=references)


def test_a_query_that_is_no_number_is_refused_by_prepared_references():
    X = np.random.default_rng(0).normal(size=(40, 2))
    prepared = PreparedReferences(KernelSums(GAUSSIAN), X, np.ones((40, 1)))
    with pytest.raises(ValueError, match=r"first: point 1"):
        prepared.at(np.array([[0.0, 0.0], [np.nan, 0.0]]))
    with pytest.raises(ValueError, match="must have 2 coordinates"):
        prepared.at(np.zeros((3, 5)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("q", [2, 5])
def test_places_out_of_all_reach_have_sums(dtype, q):
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(40, q)).astype(dtype), np.ones((40, 1), dtype=dtype)
    Q = np.full((4, q), np.finfo(dtype).max, dtype=dtype)
    Q[1], Q[2], Q[3, 0] = -Q[0], Q[0] / 1e3, 0
    sums = PreparedReferences(KernelSums(GAUSSIAN), X, V).at(Q, slopes=True)
    assert np.isfinite(sums.shift).all()
    assert (sums.values >= 1).all()  # weighed relative to the nearest
    assert np.isfinite(sums.slopes).all()


def test_points_farther_apart_than_numbers_go_are_refused():
    with pytest.raises(ValueError, match="their difference overflows"):
        build_grid(np.array([[-1.5e308], [0.0], [1.5e308]]), 1.0)


def test_hidden_references_that_do_not_exist_are_refused():
    X = np.zeros((4, 2))
    for backend in BACKENDS:
        with pytest.raises(ValueError, match="must be below 4; got 4"):
            KernelSums(GAUSSIAN, n_jobs=1, backend=backend).evaluate(
                X, np.ones((4, 1)), lambda *_: (np.zeros(4), None), hidden=np.arange(1, 5)
            )

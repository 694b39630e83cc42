"""Local polynomial fits of the engine against the float64 oracle and against differences."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_cases import name_of
from oracles import extensions as oracle

from twofold.engine import (
    FitGroup,
    KernelSums,
    LocalFit,
    PreparedReferences,
    polynomial_terms,
    runs,
    sums,
)
from twofold.engine.local_loops import RIDGE
from twofold.kernels import GAUSSIAN, QUARTIC, TRIWEIGHT

BACKENDS = ["cpu_dense", "cpu_cells"]
DEGREES = [0, 1, 2, "2-axes"]
KERNELS = [GAUSSIAN, QUARTIC, TRIWEIGHT]
# Points of a box with this many half widths a side: some pairs of a compact kernel are out of
# reach, and around every place there are more references than terms, up to 10 for q = 3.
SIDE = {1: 4.0, 2: 2.6, 3: 2.0}

backends = pytest.mark.parametrize("backend", BACKENDS)
degrees = pytest.mark.parametrize("degree", DEGREES)
kernels = pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
dimensions = pytest.mark.parametrize("q", [1, 2, 3])


class Fits:
    """Local fits in the engine's terms and in the oracle's: D fitted columns, one plain column."""

    def __init__(self, kernel, q, degree, situation="", *, seed=0, n=None, m=12, D=3):
        rng = np.random.default_rng([seed, q])
        n = n or {1: 40, 2: 60, 3: 90}[q]
        side = SIDE[q] * kernel.half_width()
        self.kernel, self.q, self.degree, self.side = kernel, q, degree, side
        self.X = rng.uniform(-side / 2, side / 2, size=(n, q))
        self.Q = rng.uniform(-side / 2, side / 2, size=(m, q)) if "queries" in situation else self.X
        self.Y = rng.normal(size=(n, D))
        self.omega = rng.uniform(0.3, 2, size=n) if "weights" in situation else np.ones(n)
        self.observed = rng.random((n, D)) < 0.85 if "missing" in situation else None
        self.hidden = None
        if "hidden" in situation:
            self.hidden = rng.integers(-1, n, size=(len(self.Q), 4))
        self.targets = rng.normal(size=(len(self.Q), D))
        self.V = np.column_stack([self.Y, self.omega])

    @property
    def local(self):
        """Columns with the same missing entries are one group; the last column is in none."""
        terms, D = polynomial_terms(self.degree, self.q), self.Y.shape[1]
        if self.observed is None:
            return LocalFit(terms, (FitGroup(np.arange(D), self.omega),))
        groups = [FitGroup(np.array([d]), self.omega * self.observed[:, d]) for d in range(D)]
        return LocalFit(terms, tuple(groups))

    def engine(self, **options):
        return KernelSums(self.kernel, **{"cutoff": 1e-15, "n_jobs": 1, **options})

    def evaluate(self, Q=None, X=None, dtype=np.float64, **options):
        """Return the sums (m, C) and the gradients of ``Σ_j ||f_j - t_j||²`` by Q and by X."""
        Q, X = self.Q if Q is None else Q, self.X if X is None else X
        found = np.empty((len(Q), self.V.shape[1]), dtype=dtype)

        def respond(numbers, A, shift):
            R = A[:, :-1] - self.targets[numbers]
            found[numbers] = A
            return (R**2).sum(axis=1), np.column_stack([2 * R, np.zeros(len(R))]).astype(dtype)

        losses, by_query, by_reference = self.engine(**options).evaluate(
            Q.astype(dtype),
            self.V.astype(dtype),
            respond,
            references=None if Q is X else X.astype(dtype),
            hidden=self.hidden,
            local=self.local,
        )
        return found, losses.sum(), by_query, by_reference

    def prepared(self, dtype=np.float64, **options):
        X, V = self.X.astype(dtype), self.V.astype(dtype)
        return PreparedReferences(self.engine(**options), X, V, None, self.local)

    def lists(self):
        hidden = [()] * len(self.Q) if self.hidden is None else self.hidden
        return [sorted({int(i) for i in some if i >= 0}) for some in hidden]

    def expected(self):
        """Return the oracle's regression at the queries, (m, D)."""
        return np.array(
            [
                oracle.regress(
                    x,
                    self.X,
                    self.Y,
                    self.omega,
                    some,
                    degree=self.degree,
                    F=self.kernel.value,
                    ridge=RIDGE,
                    observed=self.observed,
                )
                for x, some in zip(self.Q, self.lists(), strict=True)
            ]
        )

    def weights_at(self, x, ridge=RIDGE):
        return oracle.local_weights(
            x, self.X, self.omega, degree=self.degree, F=self.kernel.value, ridge=ridge
        )


def largest_error(found, expected):
    """Return the largest difference, relative to the largest entry expected."""
    return np.abs(found - expected).max() / np.abs(expected).max()


def differences(function, X, step):
    """Return the derivative by each entry of X, from two central differences (Richardson).

    One central difference is off by ``step²/6 f'''``; with high degrees and the steep flanks of
    compact kernels that would need a step at which rounding shows. The combination is off by
    ``step⁴ f⁽⁵⁾/30``.
    """
    grad = np.empty((*X.shape, *np.shape(function(X))))
    for place in np.ndindex(X.shape):

        def slope(h, place=place):
            there, back = X.copy(), X.copy()
            there[place] += h
            back[place] -= h
            return (function(there) - function(back)) / (2 * h)

        grad[place] = (4 * slope(step) - slope(2 * step)) / 3
    return grad


def assert_clear_of_the_edge(fits, step):
    """Make sure that no pair enters or leaves a compact kernel's support within a difference.

    There the second derivative of the quartic kernel jumps and differences of any order are off
    by the step itself.
    """
    distances = np.sqrt(((fits.Q[:, None] - fits.X[None]) ** 2).sum(axis=2))
    assert np.abs(distances - np.sqrt(fits.kernel.support)).min() > 2 * step


@dimensions
def test_terms_are_the_columns_of_the_design(q):
    deltas = np.random.default_rng(0).normal(size=(5, q))
    padded = np.column_stack([deltas, np.ones(5)])  # index -1 is a factor of 1
    for degree in DEGREES:
        terms = polynomial_terms(degree, q)
        found = np.column_stack([padded[:, a] * padded[:, b] for a, b in terms])
        np.testing.assert_allclose(found, oracle.design(deltas, degree))


@pytest.mark.cover(2)
@backends
@dimensions
@degrees
@kernels
def test_values_equal_the_oracle(kernel, degree, q, backend):
    for situation in (
        "",
        "weights hidden",
        "missing",
        "queries",
        "queries weights missing hidden",
    ):
        fits = Fits(kernel, q, degree, situation)
        found = fits.evaluate(backend=backend)[0]
        # Normal equations lose the square of the condition, at most 1e4 here.
        assert largest_error(found[:, :-1], fits.expected()) < 1e-9, situation


@backends
@kernels
def test_columns_in_no_group_are_plain_sums(kernel, backend):
    fits = Fits(kernel, 2, 2, "queries weights")
    found = fits.evaluate(backend=backend)[0]
    s = ((fits.Q[:, None] - fits.X[None]) ** 2).sum(axis=2)
    if backend == "cpu_dense" and kernel.is_exponential:
        s -= s.min(axis=1, keepdims=True)  # weighed relative to the nearest
    np.testing.assert_allclose(found[:, -1], kernel.value(s) @ fits.omega, rtol=1e-12)


@pytest.mark.cover(2)
@backends
@dimensions
@degrees
@kernels
def test_gradients_equal_differences(kernel, degree, q, backend):
    fits = Fits(kernel, q, degree, "queries weights missing hidden", seed=0, n=10 + 10 * q, m=4)
    step = 1e-4 * kernel.half_width()
    assert_clear_of_the_edge(fits, step)
    _, _, by_query, by_reference = fits.evaluate(backend=backend)
    expected = differences(lambda Q: fits.evaluate(Q=Q, backend=backend)[1], fits.Q, step)
    assert largest_error(by_query, expected) < 1e-6
    expected = differences(lambda X: fits.evaluate(X=X, backend=backend)[1], fits.X, step)
    assert largest_error(by_reference, expected) < 1e-6


@backends
@pytest.mark.parametrize("degree", [1, 2, "2-axes"])
def test_gradients_of_a_few_points_in_several_chunks(degree, backend, monkeypatch):
    # So few that this is quick without compilation as well.
    for name, number in (("N_STRIPS", 1), ("LEAST_PAIRS", 4), ("MOST_PAIRS", 4)):
        monkeypatch.setattr(runs, name, number)
    fits = Fits(GAUSSIAN, 2, degree, "queries weights", seed=3, n=12, m=3, D=1)
    _, _, by_query, by_reference = fits.evaluate(backend=backend)
    expected = differences(lambda Q: fits.evaluate(Q=Q, backend=backend)[1], fits.Q, 1e-4)
    assert largest_error(by_query, expected) < 1e-6
    expected = differences(lambda X: fits.evaluate(X=X, backend=backend)[1], fits.X, 1e-4)
    assert largest_error(by_reference, expected) < 1e-6
    prepared = fits.prepared()
    found = prepared.at(fits.Q, slopes=True)
    assert largest_error(found.values[:, :-1], fits.expected()) < 1e-9
    for j, x in enumerate(fits.Q):
        slopes = differences(lambda z: prepared.at(z[None]).values[0], x, 1e-4)
        assert largest_error(found.slopes[j], slopes) < 1e-6


@backends
@degrees
def test_queries_that_are_the_references_feel_both_gradients(degree, backend):
    fits = Fits(GAUSSIAN, 2, degree, "weights hidden", seed=4, n=24)
    _, _, by_query, by_reference = fits.evaluate(backend=backend)
    expected = differences(
        lambda X: fits.evaluate(Q=X, X=X, backend=backend)[1], fits.X, 1e-4 * GAUSSIAN.half_width()
    )
    assert largest_error(by_query + by_reference, expected) < 1e-6


@pytest.mark.parametrize("degree", [1, 2, "2-axes"])
def test_single_precision_is_near_double(degree):
    fits = Fits(GAUSSIAN, 2, degree, "weights missing hidden")
    for backend in BACKENDS:
        exact = fits.evaluate(backend=backend)
        rough = fits.evaluate(dtype=np.float32, cutoff=1e-9, backend=backend)
        assert rough[2].dtype == rough[3].dtype == np.float32
        for a, b in zip(rough, exact, strict=True):
            assert largest_error(a, b) < 1e-4


@pytest.mark.cover(2)
@dimensions
@degrees
@kernels
def test_prepared_values_and_slopes(kernel, degree, q):
    fits = Fits(kernel, q, degree, "queries weights missing", seed=25)
    step = 1e-4 * kernel.half_width()
    assert_clear_of_the_edge(fits, step)
    prepared = fits.prepared()
    found = prepared.at(fits.Q, slopes=True)
    assert largest_error(found.values[:, :-1], fits.expected()) < 1e-9
    assert not found.shift.any()  # so that the plain column has its true derivative as well
    for j, x in enumerate(fits.Q):
        expected = differences(lambda z: prepared.at(z[None]).values[0], x, step)
        assert largest_error(found.slopes[j], expected) < 1e-6


@backends
def test_a_query_out_of_reach_leaves_those_after_it_alone(backend):
    fits = Fits(QUARTIC, 2, 1, "queries", n=30, m=4)
    fits.Q[0] = 1e3
    _, _, by_query, by_reference = fits.evaluate(backend=backend)
    assert not by_query[0].any()
    fits.Q, fits.targets = fits.Q[1:], fits.targets[1:]
    _, _, of_others, of_references = fits.evaluate(backend=backend)
    assert of_others.any()
    np.testing.assert_allclose(by_query[1:], of_others, rtol=1e-12)
    np.testing.assert_allclose(by_reference, of_references, rtol=1e-12, atol=1e-12)


def test_slopes_of_a_query_that_sees_no_weight_are_zero():
    fits = Fits(QUARTIC, 2, 1, "queries", n=30, m=4)
    fits.X[0] = fits.Q[0] = 1e3
    fits.omega[0] = fits.V[0, -1] = 0.0
    slopes = fits.prepared().at(fits.Q, slopes=True).slopes
    assert not slopes[0].any()
    assert slopes[1:].any()


@pytest.mark.parametrize("kernel", [GAUSSIAN, QUARTIC], ids=name_of)
@pytest.mark.parametrize("degree", [1, 2, "2-axes"])
def test_slopes_with_widths_equal_differences(kernel, degree):
    fits = Fits(kernel, 2, degree, "queries weights", seed=6)
    widths = np.random.default_rng(6).uniform(1.2, 2.5, size=len(fits.X))
    prepared = PreparedReferences(fits.engine(), fits.X, fits.V, widths, fits.local)
    slopes = prepared.at(fits.Q, slopes=True).slopes
    step = 1e-4 * kernel.half_width()
    distances = np.sqrt(((fits.Q[:, None] - fits.X[None]) ** 2).sum(axis=2)) / widths
    assert np.abs(distances - np.sqrt(kernel.support)).min() > 2 * step
    for j, x in enumerate(fits.Q):
        expected = differences(lambda z: prepared.at(z[None]).values[0], x, step)
        assert largest_error(slopes[j], expected) < 1e-6


@pytest.mark.cover(2)
@degrees
@kernels
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_a_row_gives_the_same_bits_alone_or_among_others(kernel, degree, dtype):
    fits = Fits(kernel, 2, degree, "queries weights missing", n=150, m=600)
    prepared = fits.prepared(dtype, cutoff=1e-6)
    whole = LocalFit(fits.local.terms, (FitGroup(np.arange(4), fits.omega),))
    together, basis = prepared.at(fits.Q, slopes=True), prepared.basis(fits.Q, whole).toarray()
    assert together.values.dtype == together.slopes.dtype == basis.dtype == dtype
    for j in (0, 1, 255, 256, 599):
        alone = prepared.at(fits.Q[j : j + 1], slopes=True)
        np.testing.assert_array_equal(alone.values[0], together.values[j])
        np.testing.assert_array_equal(alone.slopes[0], together.slopes[j])
        np.testing.assert_array_equal(
            prepared.basis(fits.Q[j : j + 1], whole).toarray()[0], basis[j]
        )


@pytest.mark.cover(2)
@dimensions
@degrees
@kernels
def test_the_basis_is_the_weights_of_the_oracle(kernel, degree, q):
    fits = Fits(kernel, q, degree, "queries weights")
    B = fits.prepared().basis(fits.Q, fits.local).toarray()
    np.testing.assert_allclose(B.sum(axis=1), 1, atol=1e-10)
    assert largest_error(B, np.array([fits.weights_at(x) for x in fits.Q])) < 1e-9


@pytest.mark.slow
@degrees
@pytest.mark.parametrize("kernel", [GAUSSIAN, TRIWEIGHT], ids=name_of)
def test_any_number_of_threads_gives_the_same_bits(kernel, degree, monkeypatch):
    monkeypatch.setattr(runs, "LEAST_PAIRS", 2**11)
    monkeypatch.setattr(runs, "MOST_PAIRS", 2**13)
    monkeypatch.setattr(sums, "QUERIES_PER_CHUNK", 32)
    fits = Fits(kernel, 2, degree, "weights missing hidden", n=300)

    def run(n_jobs):
        results = []
        for backend in BACKENDS:
            results += fits.evaluate(cutoff=1e-6, n_jobs=n_jobs, backend=backend)
        prepared = fits.prepared(cutoff=1e-6, n_jobs=n_jobs)
        at = prepared.at(fits.X, slopes=True)
        whole = LocalFit(fits.local.terms, (FitGroup(np.arange(4), fits.omega),))
        return [*results, at.values, at.slopes, prepared.basis(fits.X, whole).toarray()]

    once = run(1)
    for n_jobs in (2, 5):
        for a, b in zip(once, run(n_jobs), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.cover(2)
@backends
@kernels
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("degree", [1, 2, "2-axes"])
def test_fewer_references_than_terms(kernel, degree, n, backend):
    fits = Fits(kernel, 2, degree, "queries weights", n=60)
    fits.X = 0.3 * kernel.half_width() * np.random.default_rng(8).normal(size=(n, 2))
    fits.Q = fits.X[:1] + 0.1 * kernel.half_width()
    fits.Y, fits.omega, fits.V = fits.Y[:n], fits.omega[:n], fits.V[:n]
    found, _, by_query, by_reference = fits.evaluate(backend=backend)
    assert np.isfinite(by_query).all()
    assert np.isfinite(by_reference).all()
    # The ridge makes up for the missing references; its inverse costs six digits.
    assert largest_error(found[:, :-1], fits.expected()) < 1e-6
    B = fits.prepared().basis(fits.Q, fits.local).toarray()
    np.testing.assert_allclose(B.sum(axis=1), 1, atol=1e-7)
    assert np.abs(B).max() < 50


@backends
@pytest.mark.parametrize("degree", [1, 2, "2-axes"])
def test_references_in_one_place_and_in_a_line(degree, backend):
    fits = Fits(GAUSSIAN, 2, degree, n=30)
    fits.X[:, 1] = 0.7
    fits.X[:12, 0] = -0.4
    found, _, by_query, by_reference = fits.evaluate(backend=backend)
    assert np.isfinite(by_query).all()
    assert np.isfinite(by_reference).all()
    assert largest_error(found[:, :-1], fits.expected()) < 1e-6


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("distance", [30.0, 1e3, 1e6])
@pytest.mark.parametrize("degree", [1, 2, "2-axes"])
def test_isolated_queries_keep_weights_that_sum_to_one(degree, distance, dtype):
    # From far away only the nearest reference counts: one equation for several terms.
    fits = Fits(GAUSSIAN, 2, degree, "queries weights", n=50)
    fits.Q = np.array([[distance, 0.3 * distance]])
    prepared = fits.prepared(dtype, cutoff=1e-6)
    found = prepared.at(fits.Q, slopes=True)
    assert np.isfinite(found.values).all()
    assert np.isfinite(found.slopes).all()
    np.testing.assert_allclose(
        prepared.basis(fits.Q, fits.local).toarray().sum(axis=1), 1, atol=1e-3
    )


@pytest.mark.cover(2)
@backends
@kernels
@pytest.mark.parametrize("distance", [30.0, 1e4])
@pytest.mark.parametrize("degree", [1, 2, "2-axes"])
def test_an_isolated_reference_is_finite(kernel, degree, distance, backend):
    fits = Fits(kernel, 2, degree, "weights", n=40)
    fits.X[7] = [distance, -distance]
    fits.hidden = np.arange(40)[:, None]
    for part in fits.evaluate(cutoff=1e-6, backend=backend):
        assert np.isfinite(part).all()


@kernels
@pytest.mark.parametrize(
    ("degree", "with_squares", "with_product"),
    [(1, False, False), ("2-axes", True, False), (2, True, True)],
)
def test_polynomials_of_the_degree_come_back(kernel, degree, with_squares, with_product):
    # To 1e-5 and not to rounding: the ridge of 1e-6 pulls every term a little towards zero, more
    # so at the border, where the terms are told apart less well.
    fits = Fits(kernel, 2, degree, "queries weights", n=120)
    Q = 0.5 * fits.Q

    def polynomial(X):
        u, v = X.T
        squares = with_squares * (u**2 - 0.5 * v**2)
        return (1 + 2 * u - v + squares + with_product * u * v)[:, None]

    fits.V = np.column_stack([np.repeat(polynomial(fits.X), 3, axis=1), fits.omega])
    off = np.abs(fits.prepared().at(Q).values[:, :3] - polynomial(Q)).max()
    assert 0 < off < (1e-5 if degree == 1 or kernel is GAUSSIAN else 1e-4)
    fits.degree = 0 if degree == 1 else 1
    assert np.abs(fits.prepared().at(Q).values[:, :3] - polynomial(Q)).max() > 1e-2


def test_degree_0_is_the_ratio_of_plain_sums():
    fits = Fits(GAUSSIAN, 2, 0, "queries weights hidden")
    by_fit = fits.evaluate()[0][:, :-1]

    def respond(numbers, A, shift):
        ratio[numbers] = A[:, :3] / A[:, 3:]
        return A[:, 0], None

    ratio = np.empty_like(by_fit)
    V = np.column_stack([fits.omega[:, None] * fits.Y, fits.omega])
    fits.engine().evaluate(fits.Q, V, respond, references=fits.X, hidden=fits.hidden)
    np.testing.assert_allclose(by_fit, ratio, rtol=1e-12)

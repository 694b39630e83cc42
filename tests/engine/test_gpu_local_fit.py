"""Local polynomial fits of the GPU back end against the float64 oracle and the CPU.

Without a GPU the kernels are interpreted, on tensors of the CPU.
"""

from __future__ import annotations

import numpy as np
import pytest
from engine.test_gpu_sums import rounded
from engine.test_local_fit import DEGREES, Fits, largest_error
from on_device import DEVICE

from twofold.engine import KernelSums
from twofold.engine.gpu.local_fit import Terms, exponents
from twofold.engine.local_fit import polynomial_terms
from twofold.kernels import GAUSSIAN, QUARTIC, TRIWEIGHT

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in .*:RuntimeWarning")

LIMIT = 1e-5  # as for the precision "fp32" of plain sums
fitted = pytest.mark.parametrize("degree", DEGREES[1:])
dimensions = pytest.mark.parametrize("q", [1, 2, 3])
# Every kernel is compiled for each of these, so that they are no product of all parameters.
CASES = [
    (GAUSSIAN, 1, 2, ""),
    (GAUSSIAN, 2, 1, "weights hidden"),
    (QUARTIC, 2, 2, "queries weights"),
    (TRIWEIGHT, 2, "2-axes", "missing"),
]
MORE_CASES = [
    (QUARTIC, 1, 1, "queries missing hidden"),
    (GAUSSIAN, 2, 2, "missing hidden"),
    (GAUSSIAN, 3, 1, "missing"),
    (GAUSSIAN, 3, 2, "queries weights hidden"),
    (QUARTIC, 3, "2-axes", ""),
]
SLOPE_CASES = [(GAUSSIAN, 2, 1), (QUARTIC, 2, 2)]
MORE_SLOPE_CASES = [(TRIWEIGHT, 1, "2-axes"), (GAUSSIAN, 3, 2), (QUARTIC, 3, 1)]


def shown(value):
    return value.name if value in (GAUSSIAN, QUARTIC, TRIWEIGHT) else str(value)


def slow(cases):
    return [pytest.param(*case, marks=pytest.mark.slow) for case in cases]


@pytest.fixture(autouse=True)
def _all_on_device(monkeypatch):
    monkeypatch.setattr("twofold.engine.sums.MANY_PAIRS", 1)
    monkeypatch.setattr("twofold.engine.sums.MANY_QUERIES", 1)


def make_fits(*args, **options):
    """Fits at places that float32 can tell, so that only sums differ."""
    return rounded(Fits(*args, **options))


@pytest.mark.parametrize(
    ("kernel", "q", "degree", "situation"), [*CASES, *slow(MORE_CASES)], ids=shown
)
def test_values_and_gradients_equal_oracle_and_cpu(kernel, degree, q, situation):
    fits = make_fits(kernel, q, degree, situation)
    found, value, by_query, by_reference = fits.evaluate(device=DEVICE)
    _, expected, *gradients = fits.evaluate(backend="cpu_dense")
    assert largest_error(found[:, :-1], fits.expected()) < LIMIT
    assert value == pytest.approx(expected, rel=LIMIT)
    assert largest_error(by_query, gradients[0]) < LIMIT
    assert largest_error(by_reference, gradients[1]) < LIMIT


@pytest.mark.parametrize(
    ("kernel", "q", "degree"), [*SLOPE_CASES, *slow(MORE_SLOPE_CASES)], ids=shown
)
def test_sums_and_slopes_at_places_are_those_of_the_cpu(kernel, degree, q):
    fits = make_fits(kernel, q, degree, "queries weights missing", seed=25)
    expected = fits.prepared(cutoff=1e-9).at(fits.Q, slopes=True)
    prepared = fits.prepared(cutoff=1e-9, device=DEVICE)
    assert prepared.on_device is not None
    found = prepared.at(fits.Q, slopes=True)
    assert largest_error(found.values, expected.values) < LIMIT
    assert largest_error(found.slopes, expected.slopes) < LIMIT


@fitted
@pytest.mark.parametrize("n", [3, pytest.param(5, marks=pytest.mark.slow)])
def test_neighbourhoods_with_fewer_rows_than_terms(degree, n):
    fits = make_fits(GAUSSIAN, 2, degree, "queries", n=n, m=9)
    _, _, *expected = fits.evaluate(backend="cpu_dense")
    found, _, *gradients = fits.evaluate(device=DEVICE)
    assert largest_error(found[:, :-1], fits.expected()) < 1e-4
    # A ridge of 1e-7 holds them: rounding of the coordinates is felt 1e7-fold.
    assert largest_error(gradients[0], expected[0]) < 1e-3
    assert largest_error(gradients[1], expected[1]) < 1e-3


def test_many_columns_and_tiles():
    fits = make_fits(GAUSSIAN, 2, 2, "weights", n=100, D=70)
    found, _, by_query, by_reference = fits.evaluate(device=DEVICE, cutoff=1e-10)
    exact, _, *expected = fits.evaluate(backend="cpu_dense")
    assert largest_error(found[:, :-1], exact[:, :-1]) < LIMIT
    assert largest_error(by_query + by_reference, expected[0] + expected[1]) < LIMIT


def test_places_out_of_reach_see_nothing():
    fits = make_fits(QUARTIC, 2, 1, "queries", n=30, m=4)
    fits.Q[0] = 1e3
    found, _, by_query, by_reference = fits.evaluate(device=DEVICE)
    _, _, *expected = fits.evaluate(backend="cpu_dense")
    assert not found[0].any()
    assert not by_query[0].any()
    assert largest_error(by_query, expected[0]) < LIMIT
    assert largest_error(by_reference, expected[1]) < LIMIT


def test_more_dimensions_stay_on_the_cpu():
    rng = np.random.default_rng(0)
    fits = Fits(GAUSSIAN, 3, 1, n=80)
    X = rng.normal(size=(80, 4))
    engine = KernelSums(GAUSSIAN, 1e-9, 1, device=DEVICE)
    local = fits.local.__class__(polynomial_terms(1, 4), fits.local.groups)
    engine.evaluate(X, fits.V, lambda rows, A, shift: (A[:, 0], None), local=local)
    assert engine.last_plan.backend.startswith("cpu")


@dimensions
def test_places_of_moments_are_those_of_products(q):
    terms = Terms(polynomial_terms(2, q), q)
    delta = np.random.default_rng(0).normal(size=q)
    xi = np.array([np.prod(delta**powers) for powers in terms.powers])
    moments = np.array([np.prod(delta**powers) for powers in exponents(q, 5)])
    np.testing.assert_allclose(moments[terms.places(5, 0)], xi * delta[0])
    np.testing.assert_allclose(
        moments[np.array(terms.products(5, q - 1))], np.outer(xi, xi) * delta[q - 1]
    )
    step = 1e-6 * np.eye(q)[0]
    up, down = (
        np.array([np.prod((delta + sign * step) ** np.array(powers)) for powers in terms.powers])
        for sign in (1, -1)
    )
    np.testing.assert_allclose(terms.derivative(0) @ xi, (up - down) / 2e-6, atol=1e-6)

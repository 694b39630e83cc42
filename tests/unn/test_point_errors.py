from __future__ import annotations

import numpy as np
import pytest
from oracles import unn as oracle

from twofold.features import RBF, Laplacian, Linear, Polynomial, Sigmoid, get_data_kernel
from twofold.losses import EpsilonInsensitive, Huber, Squared, get_loss
from twofold.unn.point_errors import get_point_error, row_error

LOSSES = {
    "squared": (Squared(), 0.0),
    "absolute": ("absolute", 0.0),
    "huber": (Huber(1.5, per="vector"), 1.5),
    "epsilon": (EpsilonInsensitive(1.5, per="vector", order=1), 1.5),
}
KERNELS = [Linear(), Polynomial(3, 0.5, 0.7), RBF(0.2), Sigmoid(0.1, -0.3)]


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(40, 5))
    return F, F + rng.normal(size=(40, 5)) * np.linspace(0.1, 2, 40)[:, None]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("power", [1, 1.5, 2, 10, np.inf])
def test_losses_of_minkowski_distances(pair, loss, power):
    F, Y = pair
    spec, number = LOSSES[loss]
    error = get_point_error(spec, power)
    found = [row_error(f, y, error) for f, y in zip(F, Y, strict=True)]
    r = np.linalg.norm(F - Y, ord=power, axis=1)
    assert r.min() < 1.5 < r.max()  # both branches of a loss are there
    expected = [oracle.loss_of(value**2, loss, number) for value in r]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("loss", LOSSES)
def test_distances_in_feature_space(pair, kernel, loss):
    F, Y = pair
    spec, number = LOSSES[loss]
    squares = kernel.diagonal(F) - 2 * np.diag(kernel.gram(F, Y)) + kernel.diagonal(Y)
    expected = [oracle.loss_of(value, loss, number) for value in squares]
    error = get_point_error(spec, 2, kernel)
    found = [row_error(f, y, error) for f, y in zip(F, Y, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_high_powers_neither_overflow_nor_vanish():
    f, y = np.zeros(3), np.array([1.0, 2.0, 0.5])
    error = get_point_error("absolute", 12.0)
    assert row_error(f, 1e100 * y, error) == pytest.approx(2e100, rel=1e-3)
    assert row_error(f, 1e-100 * y, error) == pytest.approx(2e-100, rel=1e-3)
    assert row_error(f, f, error) == 0.0


def test_a_narrow_rbf_kernel_keeps_its_digits():
    # For gamma near 0 the error is 2 gamma times the squared distance.
    f, y = np.zeros(2), np.array([3.0, 4.0])
    found = row_error(f, y, get_point_error(data_kernel=RBF(1e-14)))
    assert found == pytest.approx(2e-14 * 25, rel=1e-9)


def test_numbers_chosen_from_rows(pair):
    Y = pair[1]
    assert get_point_error(data_kernel="rbf", Y=Y).scale == RBF().fitted(Y).gamma
    near = np.sort(np.linalg.norm(Y[:, None] - Y, axis=2), axis=1)[:, 1]
    assert get_point_error("row_huber", Y=Y).number == pytest.approx(
        1.345 * 1.4826 * np.median(near)
    )
    with pytest.raises(ValueError, match="needs a `gamma`"):
        get_point_error(data_kernel="rbf")
    with pytest.raises(ValueError, match="needs a `delta`"):
        get_point_error("row_huber")


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"loss": "l2"}, ValueError, "'squared', 'absolute', 'row_huber'.*got 'l2'"),
        ({"loss": 3}, TypeError, "got 3"),
        ({"loss": "huber"}, ValueError, "a loss of whole rows.*got 'huber'"),
        ({"loss": Huber(1.0)}, ValueError, r"Huber\(delta, per='vector'\)"),
        ({"loss": EpsilonInsensitive(0.5, per="vector")}, ValueError, "order=1"),
        ({"loss": EpsilonInsensitive(0.5)}, ValueError, "per='vector'"),
        ({"loss": EpsilonInsensitive([0.1, 0.2], per="vector", order=1)}, ValueError, "one number"),
        ({"loss": Huber(1.0, trim=4, per="vector")}, ValueError, "`trim`"),
        ({"power": 0.5}, ValueError, "from 1 to infinity.*got 0.5"),
        ({"power": np.nan}, ValueError, "from 1 to infinity"),
        ({"power": 3, "data_kernel": "tanh"}, ValueError, "must be 2 with a data kernel"),
        ({"data_kernel": Laplacian(1.0)}, ValueError, "function of inner products"),
        ({"data_kernel": "precomputed"}, ValueError, "must be one of .*precomputed"),
        ({"data_kernel": "cosine"}, ValueError, "got 'cosine'"),
    ],
)
def test_wrong_arguments(arguments, kind, message):
    with pytest.raises(kind, match=message):
        get_point_error(**arguments)


def test_sigmoid_kernel(pair):
    A, B = pair
    kernel = Sigmoid(0.1, -0.3)
    np.testing.assert_allclose(kernel.gram(A, B), np.tanh(0.1 * A @ B.T - 0.3), rtol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(A), np.diag(kernel.gram(A, A)), rtol=1e-12)
    assert get_data_kernel("tanh") == get_data_kernel("sigmoid") == Sigmoid()
    with pytest.raises(ValueError, match="`alpha` must be a finite number above 0; got -1"):
        Sigmoid(alpha=-1)
    with pytest.raises(ValueError, match="`beta` must be a finite number; got nan"):
        Sigmoid(beta=np.nan)
    with pytest.raises(ValueError, match="Expected rows with 5 features; got 3"):
        kernel.gram(A[:, :3], B)


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_the_one_of_that_name_elsewhere(name, pair):
    loss = LOSSES[name][0]
    f, y = np.zeros(4), np.array([0.3, -1.0, 2.0, 0.1])
    elsewhere, _ = get_loss(loss).value_and_slope((f - y)[None])
    assert row_error(f, y, get_point_error(loss)) == pytest.approx(float(elsewhere[0]))

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from finite_differences import numerical_gradient
from sklearn.base import BaseEstimator, clone

from twofold.losses import (
    EpsilonInsensitive,
    Huber,
    Squared,
    get_loss,
    in_unit,
    is_rotation_invariant,
    rows_of,
)
from twofold.model_files import ModelFile, read_model_file, register_value_type, write_model_file

PER_ROW = np.array([0.1, 0.6, 0.0, 0.3])
PER_ENTRY = np.linspace(0, 0.8, 12).reshape(4, 3)

LOSSES = {
    "squared": Squared(),
    "huber": Huber(0.5),
    "component": EpsilonInsensitive(0.4),
    "component, a row": EpsilonInsensitive(PER_ROW),
    "component, an entry": EpsilonInsensitive(PER_ENTRY),
    "vector": EpsilonInsensitive(0.7, per="vector"),
    "vector, a row": EpsilonInsensitive(PER_ROW, per="vector"),
    "vector, huber": Huber(0.5, per="vector"),
    "component, order 1": EpsilonInsensitive(0.4, order=1),
    "vector, order 1": EpsilonInsensitive(PER_ROW, per="vector", order=1),
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())


class Welsch:
    """A user's loss: 1 - exp(-||r||²/2)."""

    def value_and_slope(self, R):
        fade = np.exp(-0.5 * (R * R).sum(axis=1))
        return 1 - fade, R * fade[:, None]


class Weighted:
    """A user's loss with a number for each row and each component."""

    def __init__(self, importance):
        self.importance = importance

    def at(self, numbers):
        return Weighted(self.importance[numbers])

    def value_and_slope(self, R):
        return (self.importance * R**2).sum(axis=1), 2 * self.importance * R


def residuals():
    return np.random.default_rng(0).normal(size=(4, 3))


def test_squared_by_hand():
    losses, slopes = Squared().value_and_slope(np.array([[3.0, 4.0], [0.0, -1.0]]))
    np.testing.assert_array_equal(losses, [25, 1])
    np.testing.assert_array_equal(slopes, [[6, 8], [0, -2]])


def test_huber_by_hand():
    losses, slopes = Huber(2.0).value_and_slope(np.array([[1.0, -1.0], [2.0, -5.0]]))
    np.testing.assert_allclose(losses, [1 / 4 + 1 / 4, 1 + 4])  # 2²/4 = 2 - 1 at the joint; 5 - 1
    np.testing.assert_allclose(slopes, [[0.5, -0.5], [1, -1]])


def test_epsilon_per_component_by_hand():
    R = np.array([[0.5, -0.5], [3.0, -2.0]])
    losses, slopes = EpsilonInsensitive(1.0).value_and_slope(R)
    np.testing.assert_allclose(losses, [0, 4 + 1])
    np.testing.assert_allclose(slopes, [[0, 0], [4, -2]])


def test_epsilon_per_vector_by_hand():
    R = np.array([[3.0, 4.0], [0.6, -0.8], [0.0, 0.0]])
    losses, slopes = EpsilonInsensitive(2.0, per="vector").value_and_slope(R)
    np.testing.assert_allclose(losses, [9, 0, 0])
    np.testing.assert_allclose(slopes, [[3.6, 4.8], [0, 0], [0, 0]])  # 2 × 3 × (3, 4)/5


def test_losses_of_lengths_by_hand():
    R = np.array([[3.0, -4.0], [0.3, 0.4]])
    values, slope = Huber(1.0, per="vector").value_and_slope(R)
    np.testing.assert_allclose(values, [4.5, 0.125])
    np.testing.assert_allclose(slope, [[0.6, -0.8], [0.3, 0.4]])
    values, slope = EpsilonInsensitive(1.0, per="vector", order=1).value_and_slope(R)
    np.testing.assert_allclose(values, [4.0, 0.0])
    np.testing.assert_allclose(slope, [[0.6, -0.8], [0.0, 0.0]])
    values, slope = EpsilonInsensitive(1.0, order=1).value_and_slope(R)
    np.testing.assert_allclose(values, [5.0, 0.0])
    np.testing.assert_allclose(slope, [[1.0, -1.0], [0.0, 0.0]])


def test_delta_of_lengths_by_hand():
    R, observed = np.array([[3.0, 4.0], [0.0, 9.0]]), np.array([[True, True], [True, False]])
    assert Huber(per="vector").fitted(R).delta == pytest.approx(1.345 * 1.4826 * 7)
    assert Huber(per="vector").fitted(R, observed).delta == pytest.approx(1.345 * 1.4826 * 5)


@pytest.mark.parametrize("order", [0, 3, True, "1"])
def test_wrong_orders(order):
    with pytest.raises(ValueError, match="`order` must be 1 or 2"):
        EpsilonInsensitive(0.1, order=order)


@pytest.mark.parametrize("per", ["component", "vector"])
def test_no_tolerance_is_the_squared_loss(per):
    R = residuals()
    R[1] = 0
    found, expected = EpsilonInsensitive(0, per).value_and_slope(R), Squared().value_and_slope(R)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-14)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-14)


@pytest.mark.parametrize("per", ["component", "vector"])
def test_one_tolerance_a_row(per):
    R = residuals()
    losses, slopes = EpsilonInsensitive(PER_ROW, per).value_and_slope(R)
    for i, eps in enumerate(PER_ROW):
        loss, slope = EpsilonInsensitive(eps, per).value_and_slope(R[[i]])
        np.testing.assert_allclose(losses[i], loss[0])
        np.testing.assert_allclose(slopes[i], slope[0])


def test_one_tolerance_an_entry():
    R = residuals()
    losses = EpsilonInsensitive(PER_ENTRY).value_and_slope(R)[0]
    expected = (np.maximum(np.abs(R) - PER_ENTRY, 0) ** 2).sum(axis=1)
    np.testing.assert_allclose(losses, expected)


@every_loss
def test_the_slope_is_the_derivative(loss):
    R = residuals()
    expected = numerical_gradient(lambda Z: loss.value_and_slope(Z)[0].sum(), R)
    np.testing.assert_allclose(loss.value_and_slope(R)[1], expected, rtol=1e-8, atol=1e-10)


@every_loss
def test_what_is_missing_costs_nothing(loss):
    losses, slopes = loss.value_and_slope(np.zeros((4, 3)))
    assert not losses.any()
    assert not slopes.any()


@every_loss
def test_single_precision_stays_single(loss):
    losses, slopes = loss.value_and_slope(np.ones((4, 3), dtype=np.float32))
    assert losses.dtype == slopes.dtype == np.float32


def test_numpy_numbers_do_not_widen_the_residuals():
    R = np.ones((4, 3), dtype=np.float32)
    for loss in (Huber(np.float64(0.5)), EpsilonInsensitive(np.float64(0.5))):
        assert all(part.dtype == np.float32 for part in loss.value_and_slope(R))


@every_loss
def test_residuals_are_left_as_they_are(loss):
    R = residuals()
    R.flags.writeable = False
    loss.value_and_slope(R)


@every_loss
def test_the_loss_of_some_rows(loss):
    R, numbers = residuals(), np.array([3, 1])
    losses, slopes = loss.value_and_slope(R)
    some_losses, some_slopes = rows_of(loss, numbers).value_and_slope(R[numbers])
    np.testing.assert_array_equal(some_losses, losses[numbers])
    np.testing.assert_array_equal(some_slopes, slopes[numbers])


def test_losses_without_rows_of_their_own_are_themselves():
    for loss in (Squared(), Huber(), EpsilonInsensitive(0.1), Welsch()):
        assert rows_of(loss, np.arange(2)) is loss


@pytest.mark.parametrize(
    "loss", [*LOSSES.values(), Welsch(), Weighted(PER_ENTRY)], ids=[*LOSSES, "user", "user, rows"]
)
@pytest.mark.parametrize("unit", [1e-3, 1.0, 40.0])
def test_losses_in_another_unit(loss, unit):
    R = residuals()
    other, worth = in_unit(loss, unit)
    losses, slopes = other.value_and_slope(R)
    expected_losses, expected_slopes = loss.value_and_slope(unit * R)
    np.testing.assert_allclose(worth * losses, expected_losses, rtol=1e-12)
    # dL/dr' = unit × dL/dr.
    np.testing.assert_allclose(worth * slopes, unit * expected_slopes, rtol=1e-12)
    assert is_rotation_invariant(other) == is_rotation_invariant(loss)
    some = rows_of(other, np.array([2, 0]))
    np.testing.assert_allclose(some.value_and_slope(R[[2, 0]])[0], losses[[2, 0]])


def test_what_a_loss_is_worth_in_another_unit():
    assert in_unit(Squared(), 3) == (Squared(), 9)
    assert in_unit(Huber(6.0), 3) == (Huber(2.0), 3)
    assert in_unit(Huber(), 3) == (Huber(), 3)
    assert in_unit(EpsilonInsensitive(6.0, "vector"), 3) == (EpsilonInsensitive(2.0, "vector"), 9)
    assert in_unit(Welsch(), 3)[1] == 1


@every_loss
def test_rotation_invariance_is_what_it_says(loss):
    R = residuals()
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    losses, turned = loss.value_and_slope(R)[0], loss.value_and_slope(R @ turn)[0]
    assert np.allclose(losses, turned, rtol=1e-12) == is_rotation_invariant(loss)


def test_nothing_is_taken_for_rotation_invariant_unsaid():
    class Method(Welsch):
        def is_rotation_invariant(self):
            return False

    class Fact(Welsch):
        is_rotation_invariant = True

    assert not is_rotation_invariant(Welsch())
    assert not is_rotation_invariant(Method())
    assert is_rotation_invariant(Fact())


# Huber's delta from the residuals.


def test_delta_by_hand():
    # The non-zero sizes are 1, 2, 3, 4, 100: their median is 3, whatever the outlier.
    R = np.array([[1.0, -2.0], [0.0, 3.0], [-4.0, 100.0]])
    assert Huber().fitted(R).delta == pytest.approx(1.345 * 1.4826 * 3)


def test_delta_from_observed_entries():
    R = np.array([[1.0, -2.0], [50.0, 3.0], [70.0, 60.0]])
    observed = np.array([[True, True], [False, True], [False, False]])
    assert Huber().fitted(R, observed).delta == pytest.approx(1.345 * 1.4826 * 2)


def test_delta_of_normal_residuals_is_a_known_share_of_their_deviation():
    R = np.random.default_rng(0).normal(scale=0.2, size=(4000, 3))
    assert Huber().fitted(R).delta == pytest.approx(1.345 * 0.2, rel=0.03)


def test_delta_of_no_residuals_is_tiny_but_positive():
    assert 0 < Huber().fitted(np.zeros((3, 2))).delta < 1e-5
    assert Huber().fitted(np.zeros((3, 2)), unit=1e6).delta == pytest.approx(1.0)
    nothing = np.zeros((3, 2), dtype=bool)
    assert Huber().fitted(np.ones((3, 2)), nothing).delta == pytest.approx(1e-6)


def test_tiny_deltas_are_as_good_as_absolute_values():
    R = np.array([[1e10, -2.0]], dtype=np.float32)
    losses, slopes = Huber(1e-30).value_and_slope(R)
    np.testing.assert_allclose(losses, [1e10 + 2])
    np.testing.assert_array_equal(slopes, [[1, -1]])


def test_a_given_delta_stays():
    loss = Huber(0.25)
    assert loss.fitted(residuals()) is loss


@pytest.mark.parametrize("trim", [0.5, 1, np.inf, np.nan, True])
def test_rows_are_trimmed_beyond_one_only(trim):
    with pytest.raises(ValueError, match="`trim` must be a number above 1"):
        Huber(trim=trim)
    assert Huber(trim=1.01).trim == 1.01


def test_huber_without_delta_says_so():
    with pytest.raises(ValueError, match=r"no `delta` yet. Give one, Huber\(delta=\.\.\.\)"):
        Huber().value_and_slope(residuals())


@pytest.mark.parametrize("delta", [0, -1.0, np.nan, np.inf, "1", np.ones(2)])
def test_wrong_deltas(delta):
    with pytest.raises(ValueError, match="`delta` must be a positive number, or None"):
        Huber(delta)


# EpsilonInsensitive holds arrays.


@pytest.mark.parametrize("eps", [-0.1, np.nan, np.inf, None, "wide", [0.1, -0.1], [[1], [1, 2]]])
def test_wrong_tolerances(eps):
    with pytest.raises(ValueError, match="`eps` must be a non-negative number"):
        EpsilonInsensitive(eps)


def test_tolerances_of_too_many_dimensions():
    with pytest.raises(ValueError, match=r"an array \(4, 3\) from 0.0 to 0.8 with per='vector'"):
        EpsilonInsensitive(PER_ENTRY, per="vector")
    with pytest.raises(ValueError, match=r"an array \(1, 4, 3\)"):
        EpsilonInsensitive(PER_ENTRY[None])


def test_wrong_per():
    with pytest.raises(ValueError, match=r"'component', 'vector'.*got 'row'"):
        EpsilonInsensitive(0.1, per="row")


@pytest.mark.parametrize("eps", [PER_ROW, PER_ENTRY])
def test_tolerances_of_other_tables(eps):
    with pytest.raises(ValueError, match=r"expected \(2,.*shape \(2, 3\).*rows_of"):
        EpsilonInsensitive(eps).value_and_slope(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"expected \(5,.*shape \(5, 3\)"):
        get_loss(EpsilonInsensitive(eps), shape=(5, 3))
    assert get_loss(EpsilonInsensitive(eps), shape=(4, 3)) == EpsilonInsensitive(eps)


def test_the_loss_keeps_its_own_tolerances():
    eps = PER_ROW.copy()
    loss = EpsilonInsensitive(eps)
    eps[:] = 7
    assert loss == EpsilonInsensitive(PER_ROW)
    with pytest.raises(ValueError, match="read-only"):
        loss.eps[0] = 7
    with pytest.raises(dataclasses.FrozenInstanceError):
        loss.eps = 7


def test_losses_compare_by_value():
    same = [EpsilonInsensitive(PER_ROW), EpsilonInsensitive(list(PER_ROW))]
    assert same[0] == same[1]
    assert hash(same[0]) == hash(same[1])
    others = [EpsilonInsensitive(PER_ROW, "vector"), EpsilonInsensitive(PER_ROW + 1)]
    others += [EpsilonInsensitive(0.1), Squared(), PER_ROW.tolist(), "squared"]
    assert all(same[0] != other for other in others)
    assert Huber(1) == Huber(1.0) != Huber()


class Holder(BaseEstimator):
    def __init__(self, loss="squared"):
        self.loss = loss


@every_loss
def test_losses_survive_copies_clones_and_printing(loss):
    assert copy.deepcopy(loss) == loss
    assert pickle.loads(pickle.dumps(loss)) == loss
    holder = Holder(loss)
    assert clone(holder).loss == loss
    assert clone(holder).set_params(loss=loss).loss is loss
    assert type(loss).__name__ in repr(holder)


@every_loss
def test_losses_survive_model_files(loss, tmp_path):
    register_value_type(type(loss))
    path = tmp_path / "model.twofold"
    write_model_file(path, ModelFile("Holder", {"loss": loss}, {}, {}))
    assert read_model_file(path).params["loss"] == loss


# Names and users' losses.


def test_losses_by_name():
    assert get_loss("squared") == Squared()
    assert get_loss("huber") == Huber()
    assert get_loss("row_huber") == Huber(per="vector")
    assert get_loss("absolute") == EpsilonInsensitive(0.0, per="vector", order=1)


@pytest.mark.parametrize("loss", [*LOSSES.values(), Huber()], ids=[*LOSSES, "huber, no delta"])
def test_losses_pass_through(loss):
    assert get_loss(loss) is loss
    assert get_loss(loss, shape=(4, 3)) is loss


@pytest.mark.parametrize("name", ["epsilon", "eps-insensitive", "squared_insensitive"])
def test_epsilon_by_name_needs_an_epsilon(name):
    with pytest.raises(ValueError, match=rf"needs an ε.*{name}.*EpsilonInsensitive\(eps="):
        get_loss(name)


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'squared', 'huber', .* or an object.*got 'l1'"):
        get_loss("l1")


@pytest.mark.parametrize("loss", [None, 3, lambda R: R, int])
def test_other_types_are_refused(loss):
    with pytest.raises(TypeError, match=rf"value_and_slope\(R\); got {type(loss).__name__}"):
        get_loss(loss)


@pytest.mark.parametrize("loss", [Huber, Welsch])
def test_classes_are_not_losses(loss):
    name = loss.__name__
    with pytest.raises(TypeError, match=rf"got the class {name}. Call it: loss={name}\(\.\.\.\)"):
        get_loss(loss)


@pytest.mark.parametrize("shape", [None, (1, 1), (50, 2), (4, 500)])
def test_own_losses_pass_through(shape):
    loss = Welsch()
    assert get_loss(loss, shape) is loss


def test_own_losses_with_parameters_for_rows_and_components():
    loss = Weighted(PER_ENTRY + 0.5)
    assert get_loss(loss, shape=(4, 3)) is loss
    with pytest.raises(ValueError, match=r"Weighted.*shape \(2, 7\) raised ValueError"):
        get_loss(loss, shape=(4, 7))


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_own_losses_of_any_size_are_judged_alike(scale):
    class Scaled:
        slip = 1.0

        def value_and_slope(self, R):
            return scale * (R**2).sum(axis=1), 2 * self.slip * scale * R

    loss = Scaled()
    assert get_loss(loss) is loss
    loss.slip = 1.001
    with pytest.raises(ValueError, match="must be the derivative"):
        get_loss(loss)


def lengths(R):
    return np.sqrt((R**2).sum(axis=1))


BROKEN = {
    r"shapes \(2,\) and \(2, 3\).*got \(\) and \(2, 3\).*Sum the loss over the components": (
        lambda R: ((R**2).sum(), 2 * R)
    ),
    r"got \(2, 3\) and \(2, 3\)": lambda R: (R**2, 2 * R),
    r"raised TypeError: cannot unpack": lambda R: None,
    r"raised ZeroDivisionError": lambda R: 1 / 0,
    r"finite numbers; for the residual \[0\. 0\. 0\.\].*above all at zero": (
        lambda R: (lengths(R), R / lengths(R)[:, None])
    ),
    r"zero, with slope zero, at residual zero.*the loss 3 and": (
        lambda R: (((R**2) + 1).sum(axis=1), 2 * R)
    ),
    r"got the loss 0 and the slope 0.5": (  # the pinball loss, with a slope chosen at the kink
        lambda R: (0.5 * np.abs(R).sum(axis=1), np.where(R > 0, 0.5, -0.5))
    ),
    r"each row by itself; got .* for row 0 among 2 rows and": (
        lambda R: ((R**2).sum(axis=1) / len(R), 2 * R / len(R))
    ),
    r"derivative of the first.*it is 1.368, expected -1.368.*factor and its sign": (
        lambda R: ((R**2).sum(axis=1), -2 * R)
    ),
    r"must be the derivative": lambda R: ((R**2).sum(axis=1), R),
}


@pytest.mark.parametrize("message", BROKEN)
def test_broken_losses_are_told_what_is_wrong(message):
    class Broken:
        def value_and_slope(self, R):
            return BROKEN[message](R)

    with pytest.raises(ValueError, match="loss Broken") as caught:
        get_loss(Broken())
    assert caught.match(message)


def test_losses_that_say_they_may_be_turned_must_be_so():
    class Claim:
        is_rotation_invariant = True

        def value_and_slope(self, R):
            return (R**4).sum(axis=1), 4 * R**3

    class Fair(Welsch):
        is_rotation_invariant = True

    loss = Fair()
    assert get_loss(loss) is loss
    with pytest.raises(ValueError, match=r"Claim says is_rotation_invariant.*turning one changed"):
        get_loss(Claim())


@pytest.mark.parametrize("loss", [Squared(), EpsilonInsensitive(0.4)], ids=["squared", "epsilon"])
@pytest.mark.parametrize(
    ("unit", "worth"),
    [(3.0, 9.0), (1e-149, 1e-298), (1e149, 1e298), (1e-200, 1e-300), (1e200, 1e300)],
)
def test_the_worth_of_extreme_units_is_a_positive_number(loss, unit, worth):
    assert in_unit(loss, unit)[1] == pytest.approx(worth, rel=1e-12, abs=0)

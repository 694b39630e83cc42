"""Every fact that the table of kernels states, for each kernel."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from kernel_cases import ALL_KERNELS, BUILT_IN, FINITE, POWER, name_of
from sklearn.base import clone

from twofold import NadarayaWatson
from twofold.kernels import EPANECHNIKOV, GAUSSIAN, KERNELS, QUARTIC, TRIWEIGHT, Kernel, get_kernel

every_kernel = pytest.mark.parametrize("kernel", ALL_KERNELS, ids=name_of)


def away_from_the_edge(kernel):
    """Squared distances at which every kernel is smooth."""
    s = np.linspace(0, 3, 61)
    return s[np.abs(s - 1) > 1e-2] if math.isfinite(kernel.support) else s


@pytest.mark.parametrize(
    ("kernel", "values"),
    [
        (GAUSSIAN, [1, math.exp(-0.25), math.exp(-1)]),
        (EPANECHNIKOV, [1, 1 / 2, 0]),
        (QUARTIC, [1, 1 / 4, 0]),
        (TRIWEIGHT, [1, 1 / 8, 0]),
    ],
    ids=["gaussian", "epanechnikov", "quartic", "triweight"],
)
def test_values_by_hand(kernel, values):
    np.testing.assert_allclose(kernel.value(np.array([0, 0.5, 2.0])), values, rtol=1e-15)


@every_kernel
def test_the_centre_weighs_one(kernel):
    assert kernel.value(np.zeros(1))[0] == 1


@every_kernel
def test_weights_fall_with_distance(kernel):
    values = kernel.value(np.linspace(0, 5, 100))
    assert (values >= 0).all()
    assert (np.diff(values) <= 0).all()


@every_kernel
def test_derivative_equals_central_differences(kernel):
    s = away_from_the_edge(kernel)[1:]
    expected = (kernel.value(s + 1e-6) - kernel.value(s - 1e-6)) / 2e-6
    np.testing.assert_allclose(kernel.derivative(s), expected, rtol=1e-7, atol=1e-9)


@every_kernel
def test_weigh_returns_the_value_and_minus_twice_the_derivative(kernel):
    s = away_from_the_edge(kernel)
    weight, slope = kernel.weigh(s.copy())
    np.testing.assert_allclose(weight, kernel.value(s), rtol=1e-15)
    np.testing.assert_allclose(slope, -2 * kernel.derivative(s), rtol=1e-15)


@every_kernel
def test_single_precision_stays_single(kernel):
    s = np.linspace(0, 2, 5, dtype=np.float32)
    assert kernel.value(s).dtype == np.float32
    assert kernel.derivative(s).dtype == np.float32
    assert all(part.dtype == np.float32 for part in kernel.weigh(s))


@every_kernel
def test_support(kernel):
    if math.isfinite(kernel.support):
        assert not kernel.value(np.array([kernel.support, 1.5 * kernel.support])).any()
        assert not kernel.derivative(np.array([kernel.support, 1.5 * kernel.support])).any()
        assert kernel.value(np.array([0.999 * kernel.support]))[0] > 0
    else:
        assert kernel.value(np.array([30.0]))[0] > 0


@every_kernel
def test_exponential_means_that_weights_multiply(kernel):
    s, t = np.array([0.1, 0.3, 0.9]), np.array([0.2, 0.5, 0.05])
    product, value = kernel.value(s) * kernel.value(t), kernel.value(s + t)
    assert np.allclose(product, value, rtol=1e-12) == kernel.is_exponential


@every_kernel
@pytest.mark.parametrize("cutoff", [0.3, 1e-4, 1e-12])
def test_weights_beyond_the_reach_are_below_the_tolerance(kernel, cutoff):
    reach = kernel.reach(cutoff)
    if kernel.is_exponential:
        assert kernel.value(np.array([reach * 1.0001]))[0] < cutoff
        assert kernel.value(np.array([reach * 0.9999]))[0] >= cutoff
    else:
        assert reach == kernel.support


def test_reach_by_hand():
    assert GAUSSIAN.reach(math.exp(-8)) == pytest.approx(16)
    assert POWER.reach(1e-10) == math.inf


@every_kernel
def test_half_the_weight_is_gone_at_the_half_width(kernel):
    assert kernel.value(np.array([kernel.half_width() ** 2]))[0] == pytest.approx(0.5, rel=1e-4)


def test_reach_of_very_sharp_exponentials():
    sharp = Kernel(
        "sharp", lambda s: np.exp(-1e4 * s), lambda s: -1e4 * np.exp(-1e4 * s), is_exponential=True
    )
    assert sharp.reach(math.exp(-5)) == pytest.approx(5e-4)


@pytest.mark.parametrize("kernel", FINITE, ids=name_of)
def test_smoothness_counts_the_derivatives_that_vanish_at_the_edge(kernel):
    # K(r) = F(r²) = [1 - r²]₊^(k+1) has k continuous derivatives: those up to k vanish at r = 1.
    step = 1e-4
    r = 1 - step * np.arange(4)
    differences = kernel.value(r**2)
    for order in range(kernel.smoothness + 2):
        vanishes = abs(differences[0]) / step**order < 1e-2
        assert vanishes == (order <= kernel.smoothness)
        differences = np.diff(differences)


@pytest.mark.parametrize("kernel", BUILT_IN, ids=name_of)
def test_kernels_are_known_by_name(kernel):
    assert get_kernel(kernel.name) is kernel
    assert get_kernel(kernel) is kernel
    assert KERNELS[kernel.name] is kernel


def test_own_kernels_pass_through():
    assert get_kernel(POWER, training=True) is POWER


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"epanechnikov.*gaussian.*quartic.*got 'box'"):
        get_kernel("box")


def test_other_types_are_refused():
    with pytest.raises(TypeError, match="got function"):
        get_kernel(lambda s: s)


@pytest.mark.parametrize("kernel", ["epanechnikov", EPANECHNIKOV])
def test_a_kernel_with_a_kink_is_not_for_training(kernel):
    assert get_kernel(kernel) is EPANECHNIKOV
    with pytest.raises(ValueError, match=r"kink.*Use 'quartic'"):
        get_kernel(kernel, training=True)


@pytest.mark.parametrize("kernel", BUILT_IN, ids=name_of)
def test_built_in_kernels_survive_copies_and_pickles(kernel):
    assert pickle.loads(pickle.dumps(kernel)) is kernel
    assert copy.deepcopy(kernel) is kernel
    assert clone(NadarayaWatson(kernel=kernel)).kernel is kernel


def test_own_kernels_survive_copies():
    assert copy.deepcopy(POWER) == POWER


def power(exponent, factor=1.0):
    """Return a kernel of the user's, its derivative off by a factor."""
    return Kernel(
        "power",
        lambda s: (1 + s) ** -exponent,
        lambda s: -factor * exponent * (1 + s) ** -exponent / (1 + s),
    )


@pytest.mark.parametrize("kernel", ["quartic", "triweight", "gaussian"])
def test_kernels_without_a_kink_are_for_training(kernel):
    assert get_kernel(kernel, training=True) is KERNELS[kernel]


def test_kernels_cannot_be_changed_and_are_keys():
    with pytest.raises(FrozenInstanceError):
        GAUSSIAN.support = 2.0
    assert {GAUSSIAN: 1}[GAUSSIAN] == 1


@pytest.mark.parametrize("exponent", [0.05, 1.0, 3.0])
def test_own_kernels_are_tried_out(exponent):
    right = power(exponent)
    assert get_kernel(right, training=True) is right
    with pytest.raises(ValueError, match=r"is not the derivative of its `value`.* expected -"):
        get_kernel(power(exponent, factor=1.02))


@pytest.mark.parametrize("start", [0.9999, 1.0001, 0.0, math.nan])
def test_own_kernels_begin_at_one(start):
    scaled = Kernel("scaled", lambda s: start * np.exp(-s), lambda s: -start * np.exp(-s))
    with pytest.raises(ValueError, match=rf"must have F\(0\) = 1; got {start}"):
        get_kernel(scaled)


def test_own_kernels_neither_rise_nor_fall_below_zero():
    rising = Kernel("rising", lambda s: 1 + s, lambda s: np.ones_like(s))
    negative = Kernel("negative", lambda s: 1 - s, lambda s: -np.ones_like(s))
    for kernel in (rising, negative):
        with pytest.raises(ValueError, match="must not be negative and must not rise"):
            get_kernel(kernel)


def test_own_kernels_are_elementwise():
    total = Kernel("total", lambda s: np.exp(-s).sum(), lambda s: -np.exp(-s))
    with pytest.raises(ValueError, match="must take an array and return an array of its shape"):
        get_kernel(total)


def test_own_derivatives_have_the_shape_of_the_distances():
    repeated = Kernel("repeated", lambda s: np.exp(-s), lambda s: np.tile(-np.exp(-s), (9, 1)))
    with pytest.raises(ValueError, match="is not the derivative of its `value`"):
        get_kernel(repeated)

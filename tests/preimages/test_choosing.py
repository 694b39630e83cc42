from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.preimages import cases

from twofold.features import L1, RBF, Custom, Linear, Polynomial
from twofold.features.data_kernels import Laplacian
from twofold.model_files import ModelFile, read_model_file, write_model_file
from twofold.preimages import METHODS, FixedPoint, Learned, choose, get_method

EXPECTED = [
    (Linear(), "exact"),
    (L1(), "exact"),
    (RBF(0.5), "learned"),
    (Polynomial(3), "learned"),
    (Laplacian(0.5), "learned"),
    (Custom(lambda A, B: A @ B.T), "learned"),
    ("diffusion", "learned"),
]


@pytest.mark.parametrize(("kernel", "name"), EXPECTED, ids=[str(name) for _, name in EXPECTED])
def test_every_kernel_has_a_method_that_fits_and_a_reason(kernel, name):
    method, why = choose(kernel)
    assert method.name == name
    assert why == f"{name}: {method.fits(kernel)}"
    assert get_method("auto", kernel) == (method, why)


@pytest.mark.parametrize("name", METHODS)
def test_methods_by_name(name):
    kernel = {
        "exact": Linear(),
        "medians": Laplacian(0.5),
        "polynomial_closed_form": Polynomial(3),
    }.get(name, RBF(0.5))
    method, why = get_method(name, kernel)
    assert method == METHODS[name]()
    assert why.startswith(f"{name}: ")
    assert get_method(method, kernel)[0] is method


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_kept_in_model_files(name, tmp_path):
    method = METHODS[name]()
    write_model_file(tmp_path / "m", ModelFile("KernelPCA", {"preimage": method}, {}, {}))
    assert read_model_file(tmp_path / "m").params["preimage"] == method


def test_wrong_choices_are_explained():
    with pytest.raises(ValueError, match=r"one of \['constrained', .*got 'mika'"):
        get_method("mika", RBF(0.5))
    with pytest.raises(TypeError, match="got 3"):
        get_method(3, RBF(0.5))
    with pytest.raises(ValueError, match=r"'fixed_point' need a Gaussian .* got L1"):
        get_method(FixedPoint(), L1())


@pytest.mark.parametrize("name", METHODS)
def test_methods_take_rows_of_any_number_type_and_change_nothing(name):
    kernel = {
        "exact": L1(),
        "medians": Laplacian(0.5),
        "polynomial_closed_form": Polynomial(3),
    }.get(name, RBF(0.5))
    Y, _ = cases.sinusoid(30)
    target = dataclasses.replace(cases.gaussian_pca(Y, 1.0, q=2), kernel=kernel, products=None)
    before = {field: np.copy(getattr(target, field)) for field in ("rows", "alpha", "start")}
    method = Learned(0.5, 0.1) if name == "learned" else METHODS[name]()
    found = method.find(target)
    for field, array in before.items():
        np.testing.assert_array_equal(getattr(target, field), array)
    single = dataclasses.replace(
        target, rows=Y.astype(np.float32), start=target.start.astype(np.float32)
    )
    if name != "constrained":  # a row it cannot improve may go elsewhere
        np.testing.assert_allclose(np.median(method.find(single).Y - found.Y), 0, atol=1e-3)
    assert found.Y.shape == (30, 2)
    assert found.distance.shape == (30,)
    assert np.isfinite(found.Y).all()

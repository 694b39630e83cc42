"""Tensors of torch in, tensors out; the way back as a module with gradients."""

from __future__ import annotations

import numpy as np
import pytest
from families import FAMILIES
from on_device import DEVICE, torch
from sklearn.exceptions import NotFittedError

from twofold import UKR
from twofold.contract.tensors import as_array

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(scope="module", params=["whole", "missing", "quartic"])
def fitted(request):
    rng = np.random.default_rng(0)
    t = rng.uniform(-2, 2, size=(80, 2))
    Y = np.column_stack([t, np.sin(2 * t)]) + 0.05 * rng.normal(size=(80, 4))
    if request.param == "missing":
        Y[rng.random(Y.shape) < 0.1] = np.nan
    kernel = "quartic" if request.param == "quartic" else "gaussian"
    return UKR(random_state=0, max_iter=5, kernel=kernel).fit(
        Y, sample_weight=rng.uniform(1, 2, 80)
    ), Y


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_are_answered_by_tensors(device, dtype):
    Y = np.random.default_rng(0).normal(size=(40, 4))
    rows = torch.as_tensor(Y, dtype=dtype, device=device)
    model = UKR(random_state=0, max_iter=3)
    X = model.fit_transform(rows, sample_weight=torch.ones(40))
    assert isinstance(X, torch.Tensor)
    assert (X.dtype, X.device.type) == (dtype, device)
    for found in (model.transform(rows), model.reconstruct(rows), model.inverse_transform(X)):
        assert (found.dtype, found.device.type) == (dtype, device)
    for found in (*model.inverse_transform(X, return_std=True), *model.intervals(rows)):
        assert (found.dtype, found.device.type) == (dtype, device)
    assert model.in_domain(X).dtype == torch.bool
    assert isinstance(model.score(rows), float)
    same = UKR(random_state=0, max_iter=3).fit(Y.astype(X.cpu().numpy().dtype))
    np.testing.assert_array_equal(X.cpu().numpy(), same.embedding_)


ANSWERS = {
    "of rows": (
        *("transform", "reconstruct", "complete", "score_samples", "intervals"),
        *("log_likelihood", "p_values"),
    ),
    "of places": (
        *("inverse_transform", "density", "in_domain", "jacobian", "magnification", "slopes"),
    ),
}


@pytest.fixture(scope="module", params=[np.float32, np.float64], ids=["single", "double"])
def small_model(request):
    Y = np.random.default_rng(0).normal(size=(60, 4)).astype(request.param)
    return UKR(random_state=0, max_iter=3).fit(Y), Y


@pytest.mark.parametrize("sums_on", ["cpu", DEVICE])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_comes_in_goes_out(small_model, dtype, device, sums_on, monkeypatch):
    """Every method answers in the type and on the device of the tensor, whatever the model has."""
    model, Y = small_model
    monkeypatch.setattr(UKR, "_device", lambda *args: sums_on)
    model._wake()
    rows = torch.as_tensor(Y[:5], dtype=dtype, device=device)
    places = torch.as_tensor(model.embedding_[:5], dtype=dtype, device=device)
    for kind, names in ANSWERS.items():
        for name in names:
            answer = getattr(model, name)(rows if kind == "of rows" else places)
            for found in answer if isinstance(answer, tuple) else (answer,):
                expected = torch.bool if name == "in_domain" else dtype
                assert (found.dtype, found.device.type) == (expected, device), name


def test_every_method_that_takes_tensors_is_tried():
    """`explain` answers with a report in arrays, and `score` with a number."""
    taking = {name for name in dir(UKR) if hasattr(getattr(UKR, name), "takes_tensors")}
    others = {"fit", "fit_transform", "partial_fit", "score", "explain"}
    assert taking - others == {name for names in ANSWERS.values() for name in names}


@pytest.mark.parametrize("kernel", ["gaussian", "quartic"])
def test_tensors_on_the_device_of_the_sums_stay_there(kernel, monkeypatch):
    Y = np.random.default_rng(0).normal(size=(80, 3))
    model = UKR(random_state=0, max_iter=3, kernel=kernel).fit(Y)
    X = np.concatenate([model.embedding_, model.embedding_[:4] + 30])
    names = ("inverse_transform", "density", "in_domain")
    expected = [getattr(model, name)(X) for name in names]
    monkeypatch.setattr(UKR, "_device", lambda *args: DEVICE)
    model._wake()
    monkeypatch.setattr("twofold.contract.tensors.as_array", None)  # the way through the host
    for name, wanted in zip(names, expected, strict=True):
        found = getattr(model, name)(torch.as_tensor(X, device=DEVICE))
        assert found.device.type == DEVICE.partition(":")[0]
        np.testing.assert_allclose(found.cpu().numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_wrong_tensors_are_named_as_wrong_arrays_are(monkeypatch):
    model = UKR(random_state=0, max_iter=3).fit(np.random.default_rng(0).normal(size=(80, 3)))
    monkeypatch.setattr(UKR, "_device", lambda *args: DEVICE)
    model._wake()
    for wrong in (torch.zeros(2, 3), torch.full((2, 2), torch.nan), torch.zeros(2)):
        with pytest.raises(ValueError, match=r"columns|NaN|2D|array|features"):
            model.inverse_transform(wrong.to(DEVICE))
    with pytest.raises(NotFittedError):
        UKR().inverse_transform(torch.zeros(2, 2, device=DEVICE))


@pytest.mark.parametrize("name", ["KernelPCA", "UNN", "PSOM", "Scaled"])
def test_every_family_takes_tensors(name):
    family = next(family for family in FAMILIES if family.name == name)
    Y = torch.as_tensor(np.random.default_rng(0).normal(size=(30, 3)), dtype=torch.float32)
    model = family.make().fit(Y)
    assert isinstance(model.inverse_transform(model.transform(Y[:4])), torch.Tensor)


def test_rows_with_gradients_are_rows():
    Y = torch.as_tensor(np.random.default_rng(0).normal(size=(40, 4))).requires_grad_()
    model = UKR(random_state=0, max_iter=3).fit(Y)
    model.partial_fit(Y + 1)
    assert len(model.embedding_) == 80
    assert model.explain(Y[:3]).expected.shape == (3, 4)


class Foreign:
    """What speaks DLPack and is nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **how):
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_of_other_libraries_are_taken():
    array = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(as_array(Foreign(array)), array)
    assert as_array(array) is array
    assert as_array([[1.0]]) == [[1.0]]
    assert as_array(torch.ones(2, dtype=torch.bfloat16)).dtype == np.float32


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_arrays_on_a_device_are_taken():
    class OfCuda:
        """What has the interface of CUDA arrays and is nothing else."""

        def __init__(self, tensor):
            self.tensor = tensor  # owns the memory
            self.__cuda_array_interface__ = tensor.__cuda_array_interface__

    Y = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    model = UKR(random_state=0, max_iter=3).fit(Y)
    for foreign in (OfCuda, Foreign):
        given = foreign(torch.as_tensor(Y, device="cuda"))
        np.testing.assert_array_equal(as_array(given), Y)
        np.testing.assert_array_equal(model.transform(given), model.transform(Y))


def test_the_module_is_the_way_back(fitted):
    model, _ = fitted
    X = np.concatenate([model.embedding_, 30 + model.embedding_[:3]])
    found = model.to_torch()(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(found, model.inverse_transform(X), atol=1e-4)


def test_the_module_has_gradients_by_the_latent_point(fitted):
    model, _ = fitted
    module = model.to_torch()
    assert not list(module.parameters())
    X = torch.from_numpy(model.embedding_[:6] + 0.01).requires_grad_()
    assert torch.autograd.gradcheck(module, (X,), atol=1e-6)
    J = torch.stack([torch.autograd.functional.jacobian(module, x[None])[0, :, 0] for x in X])
    np.testing.assert_allclose(J.numpy(), model.jacobian(X), atol=1e-3)


def test_the_module_refuses_wrong_shapes_and_stays_finite_far_away(fitted):
    model, _ = fitted
    module = model.to_torch()
    X = torch.as_tensor(model.embedding_)
    for wrong in (X[:, :1], X[0], X[None]):
        with pytest.raises(ValueError, match=r"shape \(m, 2\)"):
            module(wrong)
    # Squares of 1e160 leave the range of numbers.
    assert torch.isfinite(module(X * 1e160)).all()


def test_modules_of_other_regressions_are_refused():
    Y = np.random.default_rng(0).normal(size=(30, 3))
    model = UKR(1, degree=1, random_state=0, max_iter=2).fit(Y)
    with pytest.raises(ValueError, match=r"to_torch\(\) needs .* degree=1"):
        model.to_torch()

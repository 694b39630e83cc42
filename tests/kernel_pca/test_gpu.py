"""Kernel PCA's products on a device: the same axes, and what is said where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from on_device import DEVICE, HAS_GPU

from twofold import KernelPCA
from twofold.kernel_pca import gpu_products
from twofold.kernel_pca.spectrum import leading_eigenpairs


def test_eigenpairs_are_those_of_the_cpu():
    A = np.random.default_rng(0).normal(size=(300, 40))
    S = A @ A.T
    values, U = leading_eigenpairs(S, 3, "arpack", 0.0, None)
    found, V = leading_eigenpairs(S, 3, "arpack", 0.0, None, DEVICE)
    np.testing.assert_allclose(found, values, rtol=1e-12)
    np.testing.assert_allclose(abs((U * V).sum(axis=0)), 1, rtol=1e-10)


def test_no_gpu_is_said(monkeypatch, caplog):
    monkeypatch.setattr(gpu_products, "why_no_gpu", lambda: "torch finds no CUDA device.")
    Y = np.random.default_rng(0).normal(size=(250, 3))
    with pytest.raises(RuntimeError, match="device='cuda' needs a GPU: torch finds no CUDA"):
        KernelPCA(device="cuda").fit(Y)
    monkeypatch.setattr(gpu_products, "MANY_ROWS", 100)
    with caplog.at_level("INFO", logger="twofold"):
        KernelPCA().fit(Y)
    assert "on the CPU: torch finds no CUDA device." in caplog.text
    with pytest.raises(ValueError, match="`device` must be one of"):
        KernelPCA(device="gpu").fit(Y)


@pytest.mark.skipif(not HAS_GPU, reason="needs a CUDA device")
def test_a_fit_on_a_gpu_is_that_of_the_cpu():
    Y = np.random.default_rng(0).normal(size=(5_000, 3))
    there, here = KernelPCA(device="cuda").fit(Y), KernelPCA(device="cpu").fit(Y)
    np.testing.assert_allclose(there.embedding_, here.embedding_, atol=1e-7)


@pytest.mark.skipif(HAS_GPU, reason="there is a GPU")
@pytest.mark.parametrize("solver", ["auto", "dense", "arpack"])
def test_cuda_without_a_gpu_is_refused_by_every_solver(solver):
    Y = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(RuntimeError, match="device='cuda' needs a GPU"):
        KernelPCA(2, device="cuda", eigen_solver=solver).fit(Y)

from __future__ import annotations

import numpy as np
import pytest

from twofold.kernel_pca import DiffusionMap, KernelPCA, memory

Y = np.random.default_rng(0).normal(size=(300, 3))


def test_what_is_needed_grows_with_the_square_of_the_rows():
    assert memory.needed(1000, "dense") == 4 * 8 * 1000**2
    assert memory.needed(2000, "arpack", 1) == 3 * 8 * 2000**2
    assert memory.needed_by_pairs(40_000, 2000, 2) == 2 * memory.needed_by_pairs(20_000, 1000, 2)


def test_a_fit_that_fits_says_nothing(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 10**9)
    memory.check(10**9, 100, "")
    monkeypatch.setattr(memory, "available", lambda: None)
    memory.check(10**30, 100, "")


def test_figures_and_a_way_out_are_named(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1_500_000)
    message = r"300 rows needs about 2\.9 MB .* 1\.5 MB is available.*landmarks=2000"
    with pytest.raises(MemoryError, match=message):
        KernelPCA(12).fit(Y)
    with pytest.raises(MemoryError, match="n_neighbors=20"):
        DiffusionMap(12).fit(Y)
    monkeypatch.setattr(memory, "available", lambda: 5_000)
    with pytest.raises(MemoryError, match="Lower `n_neighbors`"):
        DiffusionMap(n_neighbors=10).fit(Y)


def test_nothing_is_allocated_before(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1)

    def never(*_):
        raise AssertionError("the kernel was evaluated")

    with pytest.raises(MemoryError):
        KernelPCA(kernel=never).fit(Y)


def test_landmarks_need_less(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 100_000)
    model = KernelPCA(landmarks=30, kernel="linear").fit(Y)
    assert model.data_.shape == (30, 3)

"""Models to draw, fitted once, and no figure left open."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_digits

from twofold import UKR

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    import matplotlib.pyplot as plt

    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def table() -> tuple[np.ndarray, np.ndarray]:
    Y, labels = load_digits(return_X_y=True)
    return Y[:150], labels[:150]


@pytest.fixture(scope="session")
def fitted(table) -> UKR:
    return UKR(init="isomap", random_state=0, max_iter=20).fit(table[0])


@pytest.fixture
def model(fitted: UKR) -> UKR:
    """A copy of the model that a test may change."""
    return pickle.loads(pickle.dumps(fitted))

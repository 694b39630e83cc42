"""scikit-learn's own checks, whole: no check is expected to fail."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from twofold import (
    PSOM,
    UKR,
    UNN,
    DiffusionMap,
    KernelExtension,
    KernelPCA,
    Scaled,
    SelectEmbedding,
)
from twofold.regularization import Extension

ESTIMATORS = [
    UKR(),
    UKR(1, kernel="quartic", max_iter=10),
    UKR(regularization=Extension(radius=3.0), init="pca", max_iter=10),
    UKR(degree=2, init="pca", max_iter=10),
    UKR(loss="huber", init="pca", max_iter=10),
    UKR(landmarks="auto", init="pca", max_iter=10),
    UKR(data_kernel="rbf", init="pca", max_iter=10),
    Scaled(),
    Scaled(UKR(init="pca", max_iter=10), how="robust"),
    SelectEmbedding(["pca", "isomap"]),
    KernelPCA(),
    KernelPCA(kernel="lle", n_landmarks=8),
    DiffusionMap(),
    KernelExtension(),
    PSOM(),
    PSOM(5),
    UNN(),
    UNN(search="gaussian"),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)

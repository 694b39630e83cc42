"""scikit-learn's own checks, whole: no check is expected to fail.

`KernelExtension`, `SelectEmbedding`, `SubmanifoldUNN` and `neighbors` have them in their own tests.
"""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from twofold import PSOM, UKR, UNN, DiffusionMap, KernelPCA, Reduced, Scaled
from twofold.psom import Annealing
from twofold.regularization import Extension

# One of every class by default; what options change is in the tests of each family.
ONE_OF_EACH = [
    UKR(init="pca", max_iter=3),
    Scaled(UKR(init="pca", max_iter=3), how="robust"),
    Reduced(UKR(init="pca", max_iter=3)),
    KernelPCA(),
    DiffusionMap(),
    PSOM(1, grid=3, smoothness=Annealing(n_steps=5)),
    UNN(),
]
VARIANTS = [
    UKR(),
    UKR(1, kernel="quartic", max_iter=10),
    UKR(regularization=Extension(radius=3.0), init="pca", max_iter=10),
    UKR(degree=2, init="pca", max_iter=10),
    UKR(loss="huber", init="pca", max_iter=10),
    UKR(landmarks="auto", init="pca", max_iter=10),
    UKR(data_kernel="rbf", init="pca", max_iter=10),
    Scaled(),
    KernelPCA(kernel="lle", landmarks=8),
    PSOM(),
    PSOM(1, grid=3),
    UNN(search="gaussian"),
]

may_skip = pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")


@may_skip
@parametrize_with_checks(ONE_OF_EACH)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@may_skip
@parametrize_with_checks(VARIANTS)
def test_scikit_learn_check_of_variants(estimator, check):
    check(estimator)

"""scikit-learn's own checks."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from twofold.neighbors import (
    DistanceWeightedKNNClassifier,
    DistanceWeightedKNNRegressor,
    ModelBasedKNN,
    PropagatingNearestNeighbor,
)

ONE_OF_EACH = [
    DistanceWeightedKNNRegressor(),
    DistanceWeightedKNNClassifier(),
    ModelBasedKNN(),
    PropagatingNearestNeighbor(),
]
VARIANTS = [
    DistanceWeightedKNNRegressor(None),
    DistanceWeightedKNNClassifier(None),
    ModelBasedKNN("representatives"),
]


def expected_failures(estimator):
    if isinstance(estimator, PropagatingNearestNeighbor):
        reason = "the check wants a class named -1, which means no label here"
        return {"check_classifiers_classes": reason}
    return {}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(ONE_OF_EACH, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(VARIANTS)
def test_scikit_learn_check_of_variants(estimator, check):
    check(estimator)

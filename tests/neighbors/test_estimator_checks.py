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

ESTIMATORS = [
    DistanceWeightedKNNRegressor(),
    DistanceWeightedKNNRegressor(None),
    DistanceWeightedKNNClassifier(),
    DistanceWeightedKNNClassifier(None),
    ModelBasedKNN(),
    ModelBasedKNN("representatives"),
    PropagatingNearestNeighbor(),
]


def expected_failures(estimator):
    if isinstance(estimator, PropagatingNearestNeighbor):
        reason = "the check wants a class named -1, which means no label here"
        return {"check_classifiers_classes": reason}
    return {}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)

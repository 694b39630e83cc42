"""Numbers near the ends of their range: finite results, or an error that names the row."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from twofold import (
    PSOM,
    UKR,
    UNN,
    DiffusionMap,
    KernelPCA,
    ManifoldClassifier,
    NadarayaWatson,
    Scaled,
    SubmanifoldUNN,
    compare,
    upgrade,
)
from twofold.contract import TwoWayModel
from twofold.regularization import Density, Extension
from twofold.selection import choose_dimension

ANGLE = np.linspace(0, 3, 60)
ROWS = np.column_stack(
    [np.cos(ANGLE), np.sin(ANGLE), ANGLE, 0.1 * np.random.default_rng(0).normal(size=60)]
)

MODELS = {
    "UKR": lambda: UKR(init="pca", max_iter=3),
    "UKR-landmarks": lambda: UKR(init="pca", landmarks=20, max_iter=3, random_state=0),
    "Scaled": lambda: Scaled(UKR(init="pca", max_iter=3)),
    "Scaled-UNN": lambda: Scaled(UNN(2, random_state=0)),
    "UNN": lambda: UNN(random_state=0),
    "UNN-2d": lambda: UNN(2, random_state=0),
    "SubmanifoldUNN": lambda: SubmanifoldUNN(random_state=0),
    "KernelPCA": lambda: KernelPCA(),
    "DiffusionMap": lambda: DiffusionMap(),
    "PSOM": lambda: PSOM(2, grid=(4, 4), random_state=0),
}
SPECTRAL = ("KernelPCA", "DiffusionMap")

# Words of the errors that say what range is supported.
REFUSED = (
    "entries beyond|overflow|leave the range|leaves the range|squares of values|too large for dtype"
    "|so far from the training rows|cannot be the width of a kernel"
)


def outcome(call) -> str:
    """Return "finite" or "refused" with a row; whatever else comes is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        try:
            values = call()
        except ValueError as error:
            if not re.search(REFUSED, str(error)):
                raise
            return "refused"
    assert np.isfinite(values).all()
    return "finite"


def uses(model: TwoWayModel, Y: np.ndarray, X: np.ndarray):
    gaps = Y.copy()
    gaps[:, 0] = np.nan
    return {
        "transform": lambda: model.transform(Y),
        "reconstruct": lambda: model.reconstruct(Y),
        "score_samples": lambda: model.score_samples(Y),
        "complete": lambda: model.complete(gaps),
        "inverse_transform": lambda: model.inverse_transform(X),
        "density": lambda: model.density(X),
        "in_domain": lambda: model.in_domain(X),
        "jacobian": lambda: model.jacobian(X),
        "magnification": lambda: model.magnification(X),
        "sample": lambda: model.sample(3, 0),
    }


SINGLE = pytest.param(np.float32, marks=pytest.mark.slow)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [np.float64, SINGLE], ids=["float64", "float32"])
def test_far_rows_and_places_end_in_numbers_or_in_a_sentence(name, dtype):
    model = MODELS[name]().fit(ROWS.astype(dtype))
    for far in (1e20, 3e38) if dtype is np.float32 else (1e20, 1e160, 1e300, 1.7e308):
        Y, X = ROWS[:3].astype(dtype), model.embedding_[:3].copy()
        Y[1, 1] = X[1, 0] = far
        for call in uses(model, Y, X).values():
            outcome(call)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-70, 1e59, 1e100, 1e160, 1e300])
def test_data_of_any_size_are_fitted_or_refused(name, scale):
    model = MODELS[name]()
    if outcome(lambda: model.fit(ROWS * scale).embedding_) == "finite":
        found = {
            use: outcome(call)
            for use, call in uses(model, ROWS[:3] * scale, model.embedding_[:3]).items()
        }
        # Volumes and squared errors may leave the range of numbers that rows are still in.
        refused = {use for use, what in found.items() if what == "refused"}
        assert refused <= {"magnification", "score_samples"}


@pytest.mark.parametrize("scale", [1e-44, 1e-20, 1e14, 1e20, 3e37])
@pytest.mark.parametrize("name", ["UKR", "UNN-2d", "Scaled", "PSOM"])
def test_single_precision_of_any_size_is_fitted_or_refused(name, scale):
    model, Y = MODELS[name](), (ROWS * scale).astype(np.float32)
    if outcome(lambda: model.fit(Y).embedding_) == "finite":
        for call in uses(model, Y[:3], model.embedding_[:3]).values():
            outcome(call)


@pytest.mark.parametrize("use", ["transform", "reconstruct", "score_samples", "complete"])
def test_rows_that_overflow_once_scaled_are_refused_by_number(use):
    narrow = ROWS * [1, 1e-20, 1, 1]
    model = Scaled(UKR(init="pca", max_iter=0)).fit(narrow)
    rows = narrow[:4].copy()
    rows[2, 1] = 1e300
    with pytest.raises(ValueError, match=r"1 row\(s\) have entries beyond .*first: row 2"):
        uses(model, rows, model.embedding_[:1])[use]()
    single = Scaled(UKR(init="pca", max_iter=0)).fit(narrow.astype(np.float32))
    rows[2, 1] = 1e30
    with pytest.raises(ValueError, match=r"1 row\(s\) have entries beyond .*first: row 2"):
        uses(single, rows, model.embedding_[:1])[use]()


def test_the_model_inside_refuses_rows_that_it_would_refuse_by_itself():
    model = Scaled(UNN(random_state=0)).fit(ROWS)
    with pytest.raises(ValueError, match=r"entries beyond 1e\+60 \(first: row 1\)"):
        model.transform([[1.0, 2, 3, 4], [1, 2, 1e70, 4]])


def test_rows_too_large_for_the_type_of_the_model_are_refused():
    model = UKR(init="pca", max_iter=0).fit(ROWS.astype(np.float32))
    with pytest.raises(ValueError, match=r"entries beyond 3.403e\+38 \(first: row 1\)"):
        model.transform([[1.0, 2, 3, 4], [1, 2, 1e300, 4]])


@pytest.mark.parametrize("penalized", [Extension, Density])
@pytest.mark.parametrize(
    ("dtype", "scale", "expected"),
    [
        (np.float64, 1e-60, "finite"),
        (np.float64, 1e-100, "refused"),
        (np.float64, 1e-310, "refused"),
        (np.float32, 1e-8, "finite"),
        (np.float32, 1e-17, "refused"),
    ],
)
def test_penalties_of_data_near_zero(penalized, dtype, scale, expected):
    model = UKR(init="pca", max_iter=5, regularization=penalized(penalty=0.01))
    Y = (ROWS * scale).astype(dtype)
    assert outcome(lambda: model.fit(Y).embedding_) == expected


@pytest.mark.parametrize(("scale", "expected"), [(1e-290, "finite"), (1e-310, "refused")])
def test_features_of_data_near_zero(scale, expected):
    model = UKR(init="pca", max_iter=5, data_kernel="l1")
    assert outcome(lambda: model.fit(ROWS * scale).embedding_) == expected


@pytest.mark.parametrize("name", ["UKR", "UNN", "UNN-2d", "Scaled", "Scaled-UNN"])
@pytest.mark.parametrize(
    ("dtype", "far"), [(np.float64, 1e150), (np.float64, 1e308), (np.float32, 1e18)]
)
def test_a_model_grows_by_no_rows_that_a_fit_refuses(name, dtype, far):
    model = MODELS[name]().fit(ROWS.astype(dtype))
    before = model.embedding_.copy()
    rows = ROWS[:3] + 0.01
    rows[1, 2] = far
    with pytest.raises(ValueError, match=r"1 row\(s\) have entries beyond .*first: row 1"):
        model.partial_fit(rows.astype(dtype))
    np.testing.assert_array_equal(model.embedding_, before)


def test_scaled_models_grow_by_rows_of_the_size_that_they_are_fitted_to():
    model = Scaled(UKR(init="pca", max_iter=0)).fit(ROWS * 1e135)
    with pytest.raises(ValueError, match=r"entries beyond 1e\+140 \(first: row 0\)"):
        model.partial_fit(ROWS[:1] * 1e142)


@pytest.mark.parametrize("scale", [2.0**-700, 2.0**400])
def test_scaled_columns_do_not_depend_on_their_unit(scale):
    plain = Scaled(UKR(init="pca", max_iter=3)).fit(ROWS)
    scaled = Scaled(UKR(init="pca", max_iter=3)).fit(ROWS * scale)
    np.testing.assert_allclose(scaled.spread_, plain.spread_ * scale, rtol=1e-14)
    np.testing.assert_allclose(scaled.embedding_, plain.embedding_, rtol=1e-6, atol=1e-8)


def test_magnification_of_large_data_is_a_number():
    model = UKR(init="pca", max_iter=3).fit(ROWS)
    large = UKR(init="pca", max_iter=3).fit(ROWS * 2.0**400)
    np.testing.assert_allclose(
        large.magnification(large.embedding_),
        model.magnification(model.embedding_) * 2.0**800,
        rtol=1e-6,  # some are nearly 0 and lose digits
    )


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e100, 1e160, 1e300])
def test_regression_of_any_size(scale):
    X, Y = ROWS[:, :1], ROWS[:, 1:]
    outcome(lambda: NadarayaWatson().fit(X * scale, Y).predict(X * scale))
    outcome(lambda: NadarayaWatson().fit(X, Y * scale).predict(X))
    assert outcome(lambda: NadarayaWatson().fit(X, Y).predict(X * scale)) == "finite"


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e100, 1e160, 1e300])
def test_classes_of_any_size(scale):
    classes = (ANGLE > 1.5).astype(int)
    classes[:2] = 2  # too few for a manifold: a mean stands for it
    model = ManifoldClassifier(UKR(1, init="pca", max_iter=2))
    outcome(lambda: model.fit(ROWS * scale, classes).decision_function(ROWS[:3] * scale))
    assert outcome(lambda: model.fit(ROWS, classes).thresholds_[:0]) == "finite"
    found = outcome(lambda: model.decision_function(ROWS[:3] * scale))
    assert found == ("refused" if scale > 1e150 else "finite")


@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e100, 1e160, 1e300])
def test_comparisons_of_any_size(scale):
    def scores():
        found = compare(ROWS * scale, {"first": ROWS[:, :2], "last": ROWS[:, 2:]})
        return [len(found.embeddings)]

    outcome(scores)


def test_integers_too_large_for_floats_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match="one of these integers is too large"):
        UKR().fit([[10**400, 1], [2, 3], [4, 5]])


def test_a_start_beyond_squares_is_refused():
    Y = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match="`init` must lie within"):
        UKR(init=1e200 * Y[:, :2]).fit(Y)


def test_a_picture_below_squares_is_refused():
    Y = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match="squares of values below"):
        upgrade(1e-200 * Y[:, :2], Y)


def test_a_dimension_is_not_chosen_from_rows_below_squares():
    Y = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match="squares of values below"):
        choose_dimension(1e-200 * Y)

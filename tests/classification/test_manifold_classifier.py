"""One manifold for each class: labels, rejection, errors, files and scikit-learn's habits."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from twofold import UKR
from twofold.classification import ManifoldClassifier
from twofold.classification.manifold_classifier import ClassMean
from twofold.model_files import ModelFileError, read_model_file
from twofold.regularization import LeaveOneOut

NOISE = 0.12


STRAIGHT = LeaveOneOut("none")  # a half circle needs no homotopy


def quick_model(q: int = 1, **settings) -> UKR:
    quick = {"init": "pca", "max_iter": 20, "random_state": 0, "regularization": STRAIGHT}
    return UKR(q, **quick | settings)


def half_moons(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two half circles, each reaching into the other, n rows in all, with noise."""
    rng = np.random.default_rng(seed)
    angle, y = rng.uniform(0, np.pi, n), np.arange(n) % 2
    upper = np.column_stack([np.cos(angle), np.sin(angle)])
    lower = np.column_stack([1 - np.cos(angle), 0.5 - np.sin(angle)])
    curves = np.where(y[:, None] == 0, upper, lower)
    return curves + rng.normal(scale=NOISE, size=curves.shape), y


TRAIN, LABELS = half_moons(160, seed=0)
NEW, TRUTH = half_moons(1000, seed=1)
FAR = np.array([[5.0, 5.0], [-4.0, 0.0], [0.5, -3.0]])


@pytest.fixture(scope="module")
def plain() -> ManifoldClassifier:
    return ManifoldClassifier(quick_model()).fit(TRAIN, LABELS)


@pytest.fixture(scope="module")
def rejecting() -> ManifoldClassifier:
    return ManifoldClassifier(quick_model(), reject=0.1).fit(TRAIN, LABELS)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:Class .* Their mean stands for the class:UserWarning")
@parametrize_with_checks([ManifoldClassifier(quick_model(max_iter=3))])
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_interleaved_curves_are_told_apart_better_than_by_a_line(plain):
    linear = LinearDiscriminantAnalysis().fit(TRAIN, LABELS).score(NEW, TRUTH)
    assert linear < 0.92
    assert plain.score(NEW, TRUTH) > 0.98


@pytest.mark.slow
def test_errors_are_those_of_the_models_and_decide(plain):
    errors = plain.errors(NEW)
    assert errors.shape == (len(NEW), 2)
    for column, model in enumerate(plain.models_):
        residual = NEW - model.reconstruct(NEW)
        np.testing.assert_allclose(errors[:, column], (residual**2).sum(axis=1), rtol=1e-10)
    np.testing.assert_array_equal(plain.predict(NEW), errors.argmin(axis=1))
    np.testing.assert_array_equal(plain.decision_function(NEW), errors[:, 0] - errors[:, 1])
    assert not plain.is_rejected(FAR).any()
    assert np.isinf(plain.thresholds_).all()


@pytest.mark.slow
def test_three_classes_have_a_column_each():
    X, y = np.vstack([TRAIN, TRAIN[:40] + 10]), np.append(LABELS, np.full(40, 7))
    classifier = ManifoldClassifier(quick_model()).fit(X, y)
    assert classifier.decision_function(NEW).shape == (len(NEW), 3)
    np.testing.assert_array_equal(classifier.decision_function(NEW), -classifier.errors(NEW))
    assert classifier.predict(NEW[:3] + 10).tolist() == [7, 7, 7]


def test_one_class_finds_outliers():
    curve = TRAIN[LABELS == 0]
    classifier = ManifoldClassifier(quick_model(), reject=0.1).fit(curve, np.zeros(len(curve)))
    assert classifier.predict(FAR).tolist() == [-1, -1, -1]
    assert (classifier.predict(NEW[TRUTH == 0]) == 0).mean() > 0.8


def test_the_default_model_is_a_two_dimensional_ukr():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(24, 3))
    classifier = ManifoldClassifier().fit(X, np.arange(24) % 2)
    assert [type(model) for model in classifier.models_] == [UKR, UKR]
    assert classifier.models_[0].embedding_.shape == (12, 2)


def test_every_class_gets_the_same_seed_and_the_template_stays_unfitted(plain):
    assert [model.random_state for model in plain.models_] == [0, 0]
    assert not hasattr(plain.model, "latent_")


# ---- rejection ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("share", [pytest.param(0.05, marks=pytest.mark.slow), 0.2])
def test_share_of_rejected_members_is_about_the_one_asked_for(share):
    rejected = []
    for seed in range(5):
        X, y = half_moons(160, seed=10 + seed)
        classifier = ManifoldClassifier(quick_model(), reject=share).fit(X, y)
        rejected.append(classifier.is_rejected(NEW).mean())
    # 5 · 160 held-out errors leave a standard error of sqrt(α (1 - α) / 800) = 0.008 and 0.014.
    assert abs(np.mean(rejected) - share) < 0.2 * share + 0.03


@pytest.mark.slow
def test_errors_of_training_rows_would_reject_too_many(rejecting):
    errors, new = rejecting.errors(TRAIN), rejecting.errors(NEW)
    naive = np.array([np.quantile(errors[c == LABELS, c], 0.9) for c in (0, 1)])
    assert (rejecting.thresholds_ > 1.3 * naive).all()
    assert (new.min(axis=1) > naive[new.argmin(axis=1)]).mean() > 0.15


@pytest.mark.slow
def test_far_rows_are_rejected(rejecting):
    assert rejecting.is_rejected(FAR).all()
    assert rejecting.predict(FAR).tolist() == [-1, -1, -1]
    predicted = rejecting.predict(NEW)
    np.testing.assert_array_equal(predicted == -1, rejecting.is_rejected(NEW))


def test_incomplete_rows_are_judged_by_what_is_observed(rejecting):
    row = TRAIN[:1] + 0.01
    threshold = rejecting.thresholds_[rejecting.errors(row).argmin()]
    partial = np.array([[5.0, np.nan]])
    error = rejecting.errors(partial).min()
    assert rejecting.is_rejected(partial)[0] == (2 * error > threshold)
    assert not rejecting.is_rejected(np.array([[np.nan, 0.0]]))[0]


@pytest.mark.slow
def test_folds_hold_out_copies_together_and_forget_the_order():
    twice, labels = np.vstack([TRAIN, TRAIN]), np.append(LABELS, LABELS)
    shuffled = np.random.default_rng(0).permutation(len(twice))
    weights = np.full(len(TRAIN), 2.0)
    models = [
        ManifoldClassifier(quick_model(max_iter=5), reject=0.1).fit(*given)
        for given in ((TRAIN, LABELS, weights), (twice[shuffled], labels[shuffled]))
    ]
    np.testing.assert_array_equal(models[0].thresholds_, models[1].thresholds_)


# ---- labels -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["U5", object])
def test_text_labels(dtype):
    names = np.array(["upper", "low"], dtype=dtype)
    classifier = ManifoldClassifier(quick_model(), reject=0.1).fit(TRAIN, names[LABELS])
    assert classifier.classes_.tolist() == ["low", "upper"]
    predicted = classifier.predict(np.vstack([FAR, NEW]))
    assert predicted.dtype.kind == np.dtype(dtype).kind
    assert predicted[:3].tolist() == ["rejected"] * 3
    assert set(predicted) == {"low", "upper", "rejected"}


@pytest.mark.slow
def test_unsigned_labels_make_room_for_minus_one():
    classifier = ManifoldClassifier(quick_model(), reject=0.1).fit(TRAIN, LABELS.astype(np.uint8))
    predicted = classifier.predict(np.vstack([FAR, NEW]))
    assert predicted.dtype.kind == "i"
    assert set(predicted.tolist()) == {-1, 0, 1}


def test_a_label_of_another_kind_changes_no_class():
    model = ManifoldClassifier(quick_model(), reject=0.1, reject_label="none").fit(TRAIN, LABELS)
    assert set(model.predict(np.vstack([FAR, NEW])).tolist()) == {0, 1, "none"}


def test_a_label_that_is_a_class_is_refused():
    with pytest.raises(ValueError, match="-1, is one of the classes; choose another"):
        ManifoldClassifier(quick_model(), reject=0.1).fit(TRAIN, 2 * LABELS - 1)


# ---- scikit-learn -------------------------------------------------------------------------------


def test_clone_pickle_and_failed_fits(rejecting):
    assert not hasattr(clone(rejecting), "models_")
    expected = rejecting.predict(NEW)
    again = pickle.loads(pickle.dumps(rejecting))
    np.testing.assert_array_equal(again.predict(NEW), expected)
    with pytest.raises(ValueError, match="inconsistent"):
        again.fit(TRAIN, LABELS[:5])
    np.testing.assert_array_equal(again.predict(NEW), expected)


@pytest.mark.slow
def test_grid_search_reaches_the_model():
    X = np.column_stack([TRAIN, 0.1 * TRAIN[:, 0] ** 2])
    search = GridSearchCV(
        ManifoldClassifier(quick_model(max_iter=5)), {"model__n_components": [1, 2]}, cv=2
    )
    search.fit(X, LABELS)
    assert search.best_estimator_.models_[0].embedding_.shape[1] in (1, 2)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.slow
def test_data_frames_keep_their_names(plain):
    frame = pd.DataFrame(TRAIN, columns=["width", "height"])
    classifier = ManifoldClassifier(quick_model()).fit(frame, pd.Series(LABELS))
    assert classifier.feature_names_in_.tolist() == ["width", "height"]
    np.testing.assert_array_equal(
        classifier.predict(pd.DataFrame(NEW, columns=frame.columns)), plain.predict(NEW)
    )
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(pd.DataFrame(NEW, columns=["height", "width"]))


def test_missing_entries_are_allowed():
    X = np.column_stack([TRAIN, TRAIN[:, 0] + TRAIN[:, 1]])
    rng = np.random.default_rng(5)
    X[np.arange(len(X)), rng.integers(0, 3, len(X))] = np.nan
    classifier = ManifoldClassifier(quick_model()).fit(X, LABELS)
    whole = np.column_stack([NEW, NEW[:, 0] + NEW[:, 1]])
    assert classifier.score(whole, TRUTH) > 0.9
    whole[:, 2] = np.nan
    assert classifier.score(whole, TRUTH) > 0.9
    masked = np.ma.masked_invalid(X)
    np.testing.assert_array_equal(
        ManifoldClassifier(quick_model()).fit(masked, LABELS).predict(whole),
        classifier.predict(whole),
    )


@pytest.mark.slow
def test_rows_without_weight_take_no_part(plain):
    X, y = np.vstack([TRAIN, FAR]), np.append(LABELS, [5, 0, 1])
    weighted = ManifoldClassifier(quick_model()).fit(X, y, np.append(np.ones(len(TRAIN)), [0] * 3))
    assert weighted.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(weighted.predict(NEW), plain.predict(NEW))


# ---- files --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("labels", ["numbers", "text"])
def test_a_file_brings_the_same_classifier_back(tmp_path, labels):
    y = LABELS if labels == "numbers" else np.array(["a", "b"], dtype=object)[LABELS]
    frame = pd.DataFrame(TRAIN, columns=["width", "height"])
    model = quick_model(callbacks=(lambda event: None,))
    classifier = ManifoldClassifier(model, reject=0.1).fit(frame, y)
    path = tmp_path / "moons.twofold"
    classifier.save(path)
    again = ManifoldClassifier.from_file(read_model_file(path))
    new = pd.DataFrame(NEW, columns=frame.columns)
    np.testing.assert_array_equal(again.errors(new), classifier.errors(new))
    np.testing.assert_array_equal(again.predict(new), classifier.predict(new))
    assert again.predict(new).dtype == classifier.predict(new).dtype
    assert again.model.get_params() == clone(model).set_params(callbacks=()).get_params()
    assert again.feature_names_in_.tolist() == ["width", "height"]


def test_a_file_keeps_small_classes_and_the_default_model(tmp_path):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(14, 3)), np.repeat([0, 1], [12, 2])
    with pytest.warns(UserWarning, match="Class 1 has 2 row"):
        classifier = ManifoldClassifier().fit(X, y)
    classifier.save(tmp_path / "small.twofold")
    again = ManifoldClassifier.from_file(read_model_file(tmp_path / "small.twofold"))
    assert again.model is None
    np.testing.assert_array_equal(again.errors(X + 0.1), classifier.errors(X + 0.1))


def test_files_with_unknown_models_are_refused(plain, tmp_path):
    plain.save(tmp_path / "moons.twofold")
    stored = read_model_file(tmp_path / "moons.twofold")
    with pytest.raises(ModelFileError, match="'UKR'; expected one of Other"):
        ManifoldClassifier.from_file(stored, {"Other": UKR})
    with pytest.raises(NotFittedError):
        ManifoldClassifier().save(tmp_path / "nothing.twofold")


# ---- what goes wrong ----------------------------------------------------------------------------


def test_a_class_of_few_rows_is_a_point():
    X = np.vstack([TRAIN, [[3.0, 3.0], [3.0, 5.0], [np.nan, 4.0]]])
    y, weights = np.append(LABELS, [2, 2, 2]), np.append(np.ones(len(LABELS)), [3, 1, 1])
    with pytest.warns(UserWarning, match=r"Class 2 has 3 row\(s\): A 2-dim.*Pass more rows"):
        classifier = ManifoldClassifier(quick_model(2)).fit(X, y, weights)
    assert isinstance(classifier.models_[2], ClassMean)
    # (3·3 + 5 + 4) / 5 = 3.6 for the second feature, where all three are observed.
    np.testing.assert_allclose(classifier.errors([[4.0, 3.6], [3.0, 1.6]])[:, 2], [1, 4])
    assert classifier.predict([[3.0, 4.0]]).tolist() == [2]


def test_errors_name_the_class():
    X = TRAIN.copy()
    X[LABELS == 1, 0] = np.nan
    with pytest.raises(ValueError, match=r"Class 1 with its 80 row\(s\).*column 0"):
        ManifoldClassifier(quick_model()).fit(X, LABELS)
    with pytest.raises(ValueError, match=r"Class 0.*`n_components` = 3 is more than the 2 feature"):
        ManifoldClassifier(quick_model(3)).fit(TRAIN, LABELS)


BAD_PARAMETERS = {
    "reject text": ({"reject": "some"}, "`reject` must be None.*'some'"),
    "reject all": ({"reject": 1.0}, "between 0 and 1"),
    "reject too few": ({"reject": 0.01}, "less than one row of class 0, which has 80"),
    "two labels": ({"reject": 0.1, "reject_label": [1, 2]}, "`reject_label` must be one label"),
    "bad model": ({"model": UKR(1, max_iter=-1)}, "^`max_iter` must be 'auto' or an integer"),
}


@pytest.mark.parametrize("case", BAD_PARAMETERS)
def test_bad_parameters_are_explained(case):
    parameters, message = BAD_PARAMETERS[case]
    with pytest.raises(ValueError, match=message):
        ManifoldClassifier(**{"model": quick_model()} | parameters).fit(TRAIN, LABELS)


def test_models_without_a_way_back_are_refused():
    with pytest.raises(TypeError, match=r"two-way model.*PCA\(\)"):
        ManifoldClassifier(PCA()).fit(TRAIN, LABELS)


def test_rows_without_entries_are_refused():
    X = TRAIN.copy()
    X[7] = np.nan
    with pytest.raises(ValueError, match="first: row 7"):
        ManifoldClassifier(quick_model()).fit(X, LABELS)


def test_precomputed_kernels_are_refused():
    with pytest.raises(ValueError, match="precomputed `data_kernel` only"):
        ManifoldClassifier(UKR(1, data_kernel="precomputed")).fit(np.eye(6), [0, 0, 0, 1, 1, 1])


def test_an_interrupt_stops_all_classes():
    calls = []

    def interrupt(event):
        calls.append(event)
        if len(calls) == 3:
            raise KeyboardInterrupt

    Y = np.random.default_rng(0).normal(size=(60, 3))
    model = UKR(1, init="pca", max_iter=20, callbacks=[interrupt])
    with pytest.warns(ConvergenceWarning), pytest.raises(KeyboardInterrupt):
        ManifoldClassifier(model).fit(Y, np.repeat([0, 1, 2], 20))
    assert len(calls) < 10

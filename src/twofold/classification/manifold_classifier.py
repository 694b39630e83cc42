"""One manifold for each class; a row belongs to the one that reconstructs it best.

label(y) = argmin_c E_c(y),  E_c(y) = min_x ||y - f_c(x)||²      (Klanke 2007, section 4.6.3)

A row that no manifold reconstructs well can be rejected: E of the winning class c is above a
threshold t_c that a share α of the *unseen* rows of c exceeds. The errors of training rows do not
tell t_c, for f_c is drawn through them. So each class is cut into five folds and each fold
projected onto a manifold fitted to the other four; t_c is the (1 - α)(1 + 1/n) quantile of these n
held-out errors, as in conformal prediction. On noisy half moons, 80 rows a class, α = 5 %, training
errors turn 18 % of fresh members away, held-out errors 4.6 %. A single held-out part would cost a
fifth of the refits and rest on a fifth of the errors, too few for a small α. Folds are dealt in the
order in which distinct rows are kept, that of a hash: as good as a shuffle, without a seed, and
never with equal rows in different folds.

A class of too few rows for a manifold gets one of no dimension, the mean of its rows.
"""

import os
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.checks import rows as checks
from twofold.checks.parameters import is_number
from twofold.contract import TwoWayModel, nested_models
from twofold.contract.distinct_rows import merge_duplicates
from twofold.contract.fitted_state import Array, FittedState, Size, Value, check_state
from twofold.contract.left_open import LeftOpenWarning
from twofold.model_files import ModelFile, write_model_file
from twofold.process_settings import warn, without_warnings

Labels = npt.NDArray[Any]
N_FOLDS = 5
INSTEAD = "Categories and dates become numbers by `Mixed().fit(table).features(table)`."


class ManifoldClassifier(ClassifierMixin, BaseEstimator):
    """Classify rows by the manifold that reconstructs them with the smallest error.

    Parameters
    ----------
    model : TwoWayModel, default=None
        What is fitted to the rows of each class, as a clone; None means ``UKR()``. An integer
        ``random_state`` is the same for all classes.
    reject : float, default=None
        Share α of true members that may be rejected, between 0 and 1. A row is rejected if its
        smallest error is larger than that of all but a share α of the unseen rows of the class. To
        find that threshold, the manifold of every class is fitted five more times, each time to
        four fifths of its rows. None gives every row a label.
    reject_label : label, default=None
        What ``predict`` returns for a rejected row; None means -1 where classes are numbers and
        "rejected" where they are text.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    models_ : list of TwoWayModel
        The manifold of each class, in the order of ``classes_``; a :class:`ClassMean` for a class
        of too few rows.
    thresholds_ : ndarray of shape (n_classes,)
        The largest squared error that is not rejected; infinite without ``reject``.
    reject_label_ : label
        The label of rejected rows; None without ``reject``.
    n_features_in_, feature_names_in_ : int, ndarray

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from twofold import UKR
    >>> from twofold.classification import ManifoldClassifier
    >>> Y, y = make_moons(100, noise=0.1, random_state=0)
    >>> classifier = ManifoldClassifier(UKR(1, init="pca", max_iter=20), reject=0.05).fit(Y, y)
    >>> classifier.predict([[0.0, 1.0], [1.0, -0.5], [9.0, 9.0]]).tolist()
    [0, 1, -1]
    """

    fitted_state: ClassVar[FittedState] = {
        "n_features_in_": Size("D"),
        "feature_names_in_": Array(("D",), "U", is_optional=True),
        "models_": Value((list,)),
        "classes_": Value((np.ndarray,)),
        "thresholds_": Value((np.ndarray,)),
        "reject_label_": Value((object,)),
    }

    def __init__(
        self,
        model: TwoWayModel | None = None,
        *,
        reject: float | None = None,
        reject_label: Any = None,
    ) -> None:
        self.model = model
        self.reject = reject
        self.reject_label = reject_label

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit a manifold to the rows X (n_samples, n_features) of each class in y (n_samples,).

        NaN marks missing entries; a row whose ``sample_weight`` (n_samples,) is 0 takes no part.
        """
        template = self._template()
        _check_share(self.reject)
        if template.__sklearn_tags__().input_tags.pairwise:
            raise ValueError(
                "One manifold per class needs the rows themselves; a precomputed `data_kernel` "
                "only has their similarities. Pass the kernel as a function of rows."
            )
        if getattr(template, "checkpoint", None) is not None:
            raise ValueError(
                "One `checkpoint` cannot keep the fits of several classes; leave it out of `model`."
            )
        before = dict(self.__dict__)
        try:
            return self._fit_classes(template, X, y, sample_weight)
        except BaseException:
            self.__dict__ = before
            raise

    def _fit_classes(self, template: TwoWayModel, X: Any, y: Any, sample_weight: Any) -> Self:
        y = validate_data(self, X="no_validation", y=y)
        Y = checks.validate_rows(self, X, reset=True, instead=INSTEAD)
        check_consistent_length(Y, y)
        checks.check_entries(Y)
        check_classification_targets(y)
        weights = checks.checked_weights(sample_weight, Y)
        counted = weights > 0
        Y, y, weights = Y[counted], y[counted], weights[counted]
        checks.check_missing(Y, columns=False)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.thresholds_ = np.full(len(self.classes_), np.inf)
        self.reject_label_ = None
        if self.reject is not None:
            self.reject_label_ = _chosen_label(self.reject_label, self.classes_)
        self.models_: list[TwoWayModel | ClassMean] = []
        for code, label in enumerate(self.classes_.tolist()):
            rows, share = Y[codes == code], weights[codes == code]
            if self.reject is not None:
                self.thresholds_[code] = _threshold(template, rows, share, self.reject, label)
            self.models_.append(_fitted(template, rows, share, f"Class {label!r}"))
        return self

    def _template(self) -> TwoWayModel:
        if self.model is None:
            from twofold.ukr.estimator import UKR  # other models need no UKR

            return UKR()
        if not isinstance(self.model, TwoWayModel):
            wanted = "a two-way model of this library, e.g. UKR(n_components=2)"
            raise TypeError(f"`model` must be {wanted}; got {self.model!r}.")
        self.model.check_parameters()
        return self.model

    def errors(self, X: Any) -> FloatArray:
        """Return the squared reconstruction error (n_samples, n_classes) on each manifold.

        Missing entries, NaN, carry no error.
        """
        return self._errors(self._rows(X))

    def decision_function(self, X: Any) -> FloatArray:
        """Return negative errors (n_samples, n_classes).

        For two classes it is how much smaller the second one's error is (n_samples,).
        """
        errors = self.errors(X)
        return errors[:, 0] - errors[:, 1] if errors.shape[1] == 2 else -errors

    def predict(self, X: Any) -> Labels:
        """Return the class (n_samples,) of each row, or ``reject_label_``."""
        best, is_rejected = self._judge(X)
        if self.reject_label_ is None:
            return self.classes_[best]
        answers = _with_label(self.classes_, self.reject_label_)
        return answers[np.where(is_rejected, len(self.classes_), best)]

    def is_rejected(self, X: Any) -> BoolArray:
        """Say which rows (n_samples,) lie too far from the manifold that is nearest to them."""
        return self._judge(X)[1]

    def _judge(self, X: Any) -> tuple[IntArray, BoolArray]:
        """Return the number of the nearest manifold, and whether it is too far away."""
        Y = self._rows(X)
        errors = self._errors(Y)
        best = errors.argmin(axis=1)
        return best, _for_whole_rows(errors.min(axis=1), Y) > self.thresholds_[best]

    def _rows(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return checks.validate_rows(self, X, reset=False)

    def _errors(self, Y: FloatArray) -> FloatArray:
        return np.column_stack([-model.score_samples(Y) for model in self.models_])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted classifier to a file that runs no code when opened."""
        check_is_fitted(self)
        parameters = self.get_params(deep=False)
        parameters["model"] = nested_models.template_of(self.model)
        fitted = {name: value for name, value in vars(self).items() if name.endswith("_")}
        fitted["models_"] = [
            {"class_name": ClassMean.__name__, "mean": model.mean_}
            if isinstance(model, ClassMean)
            else nested_models.fitted_part(model)
            for model in self.models_
        ]
        write_model_file(path, ModelFile(type(self).__name__, parameters, fitted, {}))

    @classmethod
    def from_file(cls, stored: ModelFile, families: nested_models.Families | None = None) -> Self:
        """Return the fitted classifier of a file that was read.

        ``families`` holds the classes that its manifolds may have, by name; None means only UKR.
        """
        if families is None:
            from twofold.ukr.estimator import UKR

            families = {"UKR": UKR}
        parameters, fitted = dict(stored.params), dict(stored.attributes)
        parameters["model"] = nested_models.from_template(parameters["model"], families)
        fitted["models_"] = [
            ClassMean(part["mean"])
            if part["class_name"] == ClassMean.__name__
            else nested_models.from_fitted_part(part, families)
            for part in fitted["models_"]
        ]
        _check_restored(fitted, check_state(fitted, cls.fitted_state)["D"])
        classifier = cls(**parameters)
        _check_share(classifier.reject)
        classifier.__dict__.update(fitted)
        return classifier


class ClassMean:
    """Stands for a class of too few rows: the mean of its rows, a manifold of no dimension."""

    def __init__(self, mean: FloatArray) -> None:
        self.mean_ = mean

    def score_samples(self, X: FloatArray) -> FloatArray:
        """Return the negative squared distance of rows (n, D) from the mean."""
        with np.errstate(over="ignore"):
            return -checks.check_errors(np.nansum((X - self.mean_) ** 2, axis=1))


def _check_share(reject: Any) -> None:
    if reject is not None and not (is_number(reject) and 0 < float(reject) < 1):
        raise ValueError(
            "`reject` must be None or the share of true members that may be rejected, between 0 "
            f"and 1, e.g. 0.05; got {reject!r}."
        )


def _chosen_label(reject_label: Any, classes: Labels) -> Any:
    """Return the label of rejected rows, which is none of the classes."""
    if reject_label is None:
        is_text = all(isinstance(label, str) for label in classes)
        reject_label = "rejected" if is_text else -1
    if np.ndim(reject_label) != 0:
        raise ValueError(
            f"`reject_label` must be one label, such as -1 or 'rejected'; got {reject_label!r}."
        )
    if any(label == reject_label for label in classes.tolist()):
        raise ValueError(
            f"The label of rejected rows, {reject_label!r}, is one of the classes; choose another "
            "`reject_label`."
        )
    return reject_label


def _with_label(classes: Labels, label: Any) -> Labels:
    """Return the classes and one more label, in a dtype that changes none of them."""
    last = np.array([label])
    kinds = {classes.dtype.kind, last.dtype.kind}
    if kinds <= set("iuf") or kinds == {"U"}:
        return np.concatenate([classes, last])
    mixed = np.empty(len(classes) + 1, dtype=object)
    mixed[:-1], mixed[-1] = classes, label
    return mixed


def _fitted(
    template: TwoWayModel, Y: FloatArray, weights: FloatArray, name: str
) -> TwoWayModel | ClassMean:
    """Return a clone fitted to some rows, or their mean; errors say whose rows they were."""
    try:
        checks.check_missing(Y)
        if reason := _too_small(template, Y, weights):
            advice = "Their mean stands for the class. (Or leave it out.)"
            warn(f"{name} has {len(Y)} row(s): {reason} {advice}")
            observed = np.ma.masked_invalid(Y)
            return ClassMean(np.asarray(np.ma.average(observed, axis=0, weights=weights)))
        with without_warnings(LeftOpenWarning):  # of a class, where it is no news
            model = clone(template).fit(Y, sample_weight=weights)
        if getattr(model, "stop_reason_", "") == "interrupted":
            # The model kept its best; who interrupts a classifier wants all of it to stop.
            raise KeyboardInterrupt
        return model
    except ValueError as error:
        raise ValueError(f"{name} with its {len(Y)} row(s) has no manifold: {error}") from error


def _too_small(template: TwoWayModel, Y: FloatArray, weights: FloatArray) -> str:
    """Return why rows are too few for a manifold, or nothing if they are enough."""
    q = min(template.wanted_dimensions(), Y.shape[1])  # more than that is not for want of rows
    try:
        checks.check_size(merge_duplicates(Y, weights).Y, q, len(Y))
    except ValueError as error:
        return str(error)
    return ""


def _threshold(
    template: TwoWayModel, Y: FloatArray, weights: FloatArray, reject: float, label: Any
) -> float:
    """Return the error that a share ``reject`` of the unseen rows of a class exceeds."""
    distinct = merge_duplicates(Y, weights)
    n = len(distinct.Y)
    if reject * (n + 1) < 1 - 1e-9:
        raise ValueError(
            f"`reject` = {reject} is less than one row of class {label!r}, which has {n} distinct "
            f"rows, so no threshold can be found. Raise it to at least {1 / (n + 1):.3g}, or pass "
            "more rows."
        )
    errors, weights = np.empty(n), distinct.weights
    name = f"Class {label!r}, less a fold held out for `reject`,"
    for fold in range(min(N_FOLDS, n)):
        outside = np.arange(n) % N_FOLDS == fold
        model = _fitted(template, distinct.Y[~outside], weights[~outside], name)
        held_out = distinct.Y[outside]
        errors[outside] = _for_whole_rows(-model.score_samples(held_out), held_out)
    # Rounding must not push the quantile one row up.
    share = min((1 - reject) * (n + 1) / n, 1) * (1 - 1e-12)
    return float(np.quantile(errors, share, weights=weights, method="inverted_cdf"))


def _for_whole_rows(errors: FloatArray, Y: FloatArray) -> FloatArray:
    """Return errors as if missing entries erred like the observed ones of their row."""
    return errors * (Y.shape[1] / np.maximum((~np.isnan(Y)).sum(axis=1), 1))


def _check_restored(fitted: dict[str, Any], n_features: int) -> None:
    """Raise unless there is a class and a threshold for each manifold out of a file."""
    models, classes, thresholds = (fitted[name] for name in ("models_", "classes_", "thresholds_"))
    if classes.dtype.kind not in "biufUO" or classes.shape != (len(models),) or not len(models):
        raise ValueError("`classes_` has no label for each of the `models_`")
    if len(set(classes.tolist())) != len(models):
        raise ValueError("`classes_` has a label twice")
    if thresholds.shape != classes.shape or not (thresholds >= 0).all():
        raise ValueError("`thresholds_` has no error of at least 0 for each class")
    for model in models:
        if isinstance(model, ClassMean):
            Array((n_features,)).check(model.mean_, {})
        elif model.n_features_in_ != n_features:
            raise ValueError(f"a manifold has {model.n_features_in_} features, not {n_features}")

"""Nadaraya-Watson kernel regression: the supervised base of UKR.

    f(x; h) = Σ_i y_i K((x - x_i)/h) / Σ_j K((x - x_j)/h)        (Klanke 2007, eqs. 4.9, 4.12)

with the bandwidth, one for all or one a dimension, from the leave-one-out error (4.10, 4.11).
"""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from twofold.array_types import FloatArray
from twofold.checks.parameters import NARROWEST, WIDEST
from twofold.checks.rows import check_entries, checked_weights
from twofold.contract.distinct_rows import merge_duplicates
from twofold.engine import KernelSums, check_cutoff
from twofold.engine.threads import single_threaded_blas
from twofold.kernels import Kernel, get_kernel
from twofold.losses import Squared
from twofold.regularization import LeaveOneOut
from twofold.ukr.objective import Problem, common_scale, scale_each_dimension


class NadarayaWatson(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Kernel regression with bandwidths from leave-one-out cross-validation.

    Samples that are equal in inputs and outputs count as one whose weight is the sum of theirs, and
    are left out together.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        "gaussian", "epanechnikov", "quartic", "triweight" or a
        :class:`twofold.kernels.Kernel`.
    bandwidth : float, array of shape (n_features,), "loo" or "loo_common", default="loo"
        Given, or found by leave-one-out error: one per feature, or one for all.
    cutoff : float, default=1e-6
        Kernel weights below this, relative to the largest of a row, are left out.
    n_jobs : int or None, default=-1
        Threads: -1 for every core, None for one. The result does not depend on it.

    Attributes
    ----------
    bandwidth_ : ndarray of shape (n_features,)
    loo_error_ : float
        Mean squared leave-one-out error at ``bandwidth_``.
    inputs_, outputs_, weights_ : ndarrays
        The distinct samples.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold import NadarayaWatson
    >>> x = np.linspace(0, 6, 60)[:, None]
    >>> bool(NadarayaWatson().fit(x, np.sin(x[:, 0])).score(x, np.sin(x[:, 0])) > 0.99)
    True
    """

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        *,
        bandwidth: Any = "loo",
        cutoff: float = 1e-6,
        n_jobs: int | None = -1,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.cutoff = cutoff
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Keep the samples and find the bandwidths.

        ``X`` is (n_samples, n_features), ``y`` (n_samples,) or (n_samples, n_outputs), and
        ``sample_weight`` (n_samples,), or None for equal weights.
        """
        check_cutoff(self.cutoff)
        X, y = validate_data(
            self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2
        )
        check_entries(X)
        check_entries(np.asarray(y, dtype=np.float64).reshape(len(X), -1))
        weights = checked_weights(sample_weight, X)
        self._keep(X, np.asarray(y, dtype=np.float64), weights)
        with single_threaded_blas():
            problem = self._problem()
            scales = self._scales(problem)
            self.bandwidth_ = 1 / scales
            error = problem.reconstruction(cross_validated=True)
            self.loo_error_ = error.value_and_grad(self.inputs_ * scales)[0] * problem.error_unit
            self._restore()
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return f(x), in the shape of y, for inputs ``X`` (n_samples, n_features)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        # From far away all samples are in the same place.
        with single_threaded_blas(), np.errstate(over="ignore"):
            predicted = self._surface.regress(X / self.bandwidth_)
        return predicted[:, 0] if self.outputs_.ndim == 1 else predicted

    def _keep(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> None:
        """Store the distinct samples that count, so that a weight is the same as repetition."""
        counted = np.flatnonzero(weights > 0)
        table = np.column_stack([X, y])[counted]
        distinct = merge_duplicates(table, weights[counted])
        if len(distinct.Y) < 2:
            raise ValueError(
                "At least 2 distinct samples with a positive `sample_weight` are needed; "
                f"got {len(distinct.Y)} among {len(X)} samples. Pass more of them."
            )
        self.weights_ = distinct.weights
        self.inputs_ = X[counted][distinct.first]
        self.outputs_ = y[counted][distinct.first]

    def _problem(self) -> Problem:
        targets = self.outputs_.reshape(len(self.outputs_), -1)
        engine = KernelSums(get_kernel(self.kernel), self.cutoff, self.n_jobs)
        return Problem.of_rows(targets, self.weights_, Squared(), LeaveOneOut(), engine)

    def _scales(self, problem: Problem) -> FloatArray:
        q = self.inputs_.shape[1]
        if isinstance(self.bandwidth, str) and self.bandwidth in ("loo", "loo_common"):
            return self._found_scales(problem)
        bandwidth = np.asarray(self.bandwidth)
        is_valid = bandwidth.dtype.kind in "fiu" and bandwidth.shape in ((), (q,))
        if is_valid:
            bandwidth = bandwidth.astype(np.float64)
        if not is_valid or not ((bandwidth >= NARROWEST) & (bandwidth <= WIDEST)).all():
            raise ValueError(
                f"`bandwidth` must be 'loo', 'loo_common', a number from {NARROWEST:g} to "
                f"{WIDEST:g}, or {q} of them, one per feature; got {self.bandwidth!r}."
            )
        return np.broadcast_to(1 / bandwidth, (q,)).copy()

    def _found_scales(self, problem: Problem) -> FloatArray:
        spread = self.inputs_.std(axis=0)
        spread = np.where(spread > 0, spread, 1)
        error = problem.reconstruction(cross_validated=True)
        # Features in different units are first brought to a common spread.
        unit = spread if self.bandwidth == "loo" else np.ones_like(spread)
        X, lowest = common_scale(self.inputs_ / unit, error)
        if self.bandwidth == "loo":
            X, lowest = scale_each_dimension(X, lowest, error)
        found = X.std(axis=0) / spread
        return np.where(found > 0, found, 1 / spread)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_surface"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "bandwidth_"):
            self._restore()

    def _restore(self) -> None:
        """Build what prediction needs from the fitted attributes."""
        self._surface = self._problem().surface(self.inputs_ / self.bandwidth_)

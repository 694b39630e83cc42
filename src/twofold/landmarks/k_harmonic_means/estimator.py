"""K-harmonic means: the estimator.

It checks what it is given, merges and scales the rows, chooses a start, goes down from there with
one power after the other until no centre is lost (`descent`), and labels rows by the nearest centre
(`distances`).
"""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.cluster import kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from twofold.array_types import FloatArray, IntArray
from twofold.checks.numbers import check_count
from twofold.checks.rows import check_entries, checked_weights
from twofold.engine.threads import single_threaded_blas
from twofold.landmarks.k_harmonic_means.descent import Problem, count_lost, descend, powers_to_try
from twofold.neighborhoods.distances import Units, map_distances, merge_equal_rows

# Distances of such rows are numbers.
LARGEST = 1e300


class KHarmonicMeans(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Clusters by K-harmonic means.

    Equal rows count as one with the sum of their weights; their order does not matter, nor does the
    number of threads.

    Parameters
    ----------
    n_clusters : int
        Number of centres. Where there are fewer distinct rows, several centres share a row.
    p : "auto" or float
        Power of the distances, at least 2. The more dimensions the rows spread in, the larger it
        must be, or centres gather in one place; the larger, the more do the start and far rows
        count. "auto" is the first of 3.5 (the usual power), 5, 7, 10, ... with which all centres
        are apart and have rows.
    max_iter : int
        Most updates to try.
    tol : float
        Stop when the squared moves of all centres add up to less than ``tol`` times the mean
        variance of the features.
    init : "k-means++" or array-like of shape (n_clusters, n_features)
        Where the centres start; no two in one place.
    random_state : int, RandomState instance or None
        Seed of the start.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,)
        The nearest centre of each row.
    p_ : float
        The power used.
    objective_ : float
        ``E`` at the centres; 0 or infinite where that is no floating-point number.
    n_iter_ : int
        Updates tried, with this power.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.landmarks.k_harmonic_means import KHarmonicMeans
    >>> Y = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> model = KHarmonicMeans(2, init=[[2.0], [3.0]]).fit(Y)
    >>> model.predict([[-1.0], [12.0]])
    array([0, 1])
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        p: float | Literal["auto"] = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        init: Any = "k-means++",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.p = p
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.random_state = random_state

    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Find the centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts; a row of weight 0 takes no part.

        Returns
        -------
        self
        """
        self._check_parameters()
        Y = validate_data(self, X, dtype=[np.float64, np.float32])
        check_entries(Y, LARGEST, LARGEST)
        weights = checked_weights(sample_weight, Y)
        rows, summed = merge_equal_rows(Y, weights)
        if len(Y) < self.n_clusters or len(rows) == 0:
            raise ValueError(
                f"`n_clusters` = {self.n_clusters} needs as many rows, not all of weight 0; got "
                f"n_samples = {len(Y)}. Lower `n_clusters` or pass more rows."
            )
        with single_threaded_blas():
            units = Units.of(rows, summed)
            Z = units.apply(rows)
            start = self._choose_start(Z, summed, units)
            for p in powers_to_try(Z, summed) if self.p == "auto" else [float(self.p)]:
                problem = Problem(Z, summed, p)
                found = descend(problem, start, self.max_iter, self.tol)
                C, log_value, self.n_iter_, is_still = found
                lost = count_lost(problem, C)
                if not any(lost) or len(rows) < self.n_clusters:
                    break
        self.cluster_centers_ = (C / units.factor + units.shift).astype(Y.dtype)
        with np.errstate(over="ignore", under="ignore"):
            self.objective_ = float(np.exp(log_value - p * np.log(units.factor)))
        self.p_ = p
        self.labels_ = self._label(Y)
        self._warn(is_still, *lost, len(rows))
        return self

    def predict(self, X: Any) -> IntArray:
        """Return the number of the nearest centre of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._label(self._check_rows(X))

    def transform(self, X: Any) -> FloatArray:
        """Return the distance of each row to each centre.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        Y = self._check_rows(X)
        return map_distances(lambda d: d.astype(Y.dtype), Y, self.cluster_centers_)

    def _label(self, Y: FloatArray) -> IntArray:
        return map_distances(lambda d: d.argmin(axis=1), Y, self.cluster_centers_)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _check_rows(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        Y: FloatArray = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        check_entries(Y, LARGEST, LARGEST)
        return Y

    def _check_parameters(self) -> None:
        for name in ("n_clusters", "max_iter"):
            check_count(name, getattr(self, name))
        for name, least, other in (("p", 2, "'auto' or "), ("tol", 0, "")):
            value = getattr(self, name)
            if other and isinstance(value, str) and value == "auto":
                continue
            if not isinstance(value, Real) or not least <= float(value) < np.inf:
                raise ValueError(
                    f"`{name}` must be {other}a number of at least {least}; got {value!r}."
                )
        if isinstance(self.init, str) and self.init != "k-means++":
            raise ValueError(
                f"`init` must be 'k-means++' or an array of n_clusters centres; got {self.init!r}."
            )

    def _choose_start(self, Z: FloatArray, weights: FloatArray, units: Units) -> FloatArray:
        """Return the centres (k, D) to start from, in the units of the rows Z."""
        if not isinstance(self.init, str):
            start = check_array(self.init, dtype=np.float64, input_name="init")
            if start.shape != (self.n_clusters, Z.shape[1]):
                raise ValueError(
                    "`init` must hold n_clusters centres of n_features values, shape "
                    f"({self.n_clusters}, {Z.shape[1]}); got {start.shape}."
                )
            if len(np.unique(start, axis=0)) < len(start):
                raise ValueError(
                    "`init` must hold distinct centres: equal ones get the same updates and stay "
                    "together. Move them apart or lower `n_clusters`."
                )
            return units.apply(start)
        if len(Z) <= self.n_clusters:
            return Z[np.arange(self.n_clusters) % len(Z)]
        rng = check_random_state(self.random_state)
        return kmeans_plusplus(Z, self.n_clusters, sample_weight=weights, random_state=rng)[0]

    def _warn(self, is_still: bool, n_doubled: int, n_empty: int, n_distinct: int) -> None:
        """Warn of an early end, and of centres that are none."""
        k, found = self.n_clusters, []
        if not is_still:
            found.append(
                f"K-harmonic means stopped at max_iter = {self.max_iter} with centres on the move. "
                "Raise `max_iter` or `tol`."
            )
        if n_doubled or n_empty:
            why, raise_p = f"p = {self.p_:g}", " or raise `p`"
            if n_distinct < k:
                why, raise_p = f"there are only {n_distinct} distinct rows", ""
            found.append(
                f"Of {k} centres {n_doubled} lie on another and {n_empty} are nearest to no row; "
                f"{why}. Lower `n_clusters`{raise_p}."
            )
        for message in found:
            warnings.warn(message, ConvergenceWarning, stacklevel=3)

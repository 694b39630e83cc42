"""What a family of models writes: the methods behind the two-way contract.

Five have to be written; the others have an answer that does for most families. All see what
:mod:`twofold.contract` has checked: ``Y`` (n, D) is data and ``X`` (n, q) is latent. What the
contract makes of them, such as the return trip of a row, a family may replace there, too.
"""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.checks.rows import check_entries, check_finite_entries

# The domain ends where the density is this share of the lowest one at a training point.
DOMAIN_SHARE = 0.5


class Family(ABC):
    """A way to find latent points, with its regression f and projection g."""

    n_components: Any
    data_: FloatArray
    latent_: FloatArray
    embedding_: FloatArray

    @abstractmethod
    def _fit_distinct(self, Y: FloatArray, weights: FloatArray, source: IntArray) -> FloatArray:
        """Return latent points (n, q) of distinct rows Y (n, D); missing entries are NaN.

        ``source`` (n,) is where each row stands in the table the user passed. Sets the family's
        own fitted attributes; public ones that end in an underscore are what a saved file holds.
        """

    def _check_range(self, Y: FloatArray, *, reset: bool) -> None:
        """Raise if rows Y, to be fitted (``reset``) or new, hold numbers too large to work with.

        Rows of a training set are squared; new ones may lie anywhere unless a family says no.
        """
        if reset:
            check_entries(Y)
        else:
            check_finite_entries(Y)

    def _check_gaps(self, Y: FloatArray) -> None:  # noqa: B027 - most families place them
        """Raise if entries of rows Y are missing and the family can fill such rows, not place."""

    def _check_parameters(self) -> None:  # noqa: B027 - there may be none
        """Raise if a constructor parameter has a value that no data could make right."""

    def _keep_weights(self, weights: FloatArray) -> None:  # noqa: B027 - most have them in `weights_`
        """Keep the weights (n,) of all rows that were passed, if they are needed later."""

    def _end_fit(self) -> None:  # noqa: B027 - most families have nothing to clear
        """Clear away what only a fit needed."""

    @abstractmethod
    def _restore(self) -> None:
        """Build what projection and regression need from the fitted attributes."""

    def _bound_domain(self) -> None:
        """Set ``domain_threshold_``, the density from which on the data supports a place."""
        self.domain_threshold_ = DOMAIN_SHARE * float(self._density(self.latent_).min())

    def _is_inside(self, X: FloatArray) -> BoolArray:
        """Say which latent places (m, q) the data supports."""
        return self._density(X) >= self.domain_threshold_

    @abstractmethod
    def _project(self, Y: FloatArray, observed: BoolArray | None) -> FloatArray:
        """Return the latent points (m, q) of rows that are not training rows."""

    def _answer_on_device(self, name: str, X: Any) -> Any:
        """Return what a method answers to a tensor where that is; None if it has to be sent."""
        return None

    @abstractmethod
    def _regress(self, X: FloatArray) -> FloatArray:
        """Return f(x) (m, D)."""

    def _fills_by_noise(self) -> bool:
        """Say whether `complete` uses the noise model unless it is told not to.

        It should not where observed entries are not trusted, or rows have to lie on the manifold.
        """
        return True

    def _regress_without(self, X: FloatArray, own: IntArray) -> FloatArray:
        """Return f(x) (m, D) made without the training rows ``own`` (m,), -1 for none.

        A family that cannot leave a row out gives f itself: residuals are then a little too small.
        """
        return self._regress(X)

    def _without(self, rows: IntArray) -> Self | None:
        """Return a model that has not seen some of its training rows, or None: fit one to the rest.

        It places and regresses as the model does. A model that hardly depends on single rows, or
        whose rows are where they are known to be, may return itself.
        """
        return None

    @abstractmethod
    def _density(self, X: FloatArray) -> FloatArray:
        """Return the latent density (m,), in units of one kernel at its own centre."""

    def _jacobian(self, X: FloatArray) -> FloatArray:
        """Return df/dx (m, D, q); by central differences unless a family knows better."""
        # A share of the map's own size: latent points have no unit that all families share.
        step = 1e-4 * max(float(self.embedding_.std()), np.finfo(float).tiny)
        columns = []
        for m in range(X.shape[1]):
            shift = np.zeros(X.shape[1], dtype=X.dtype)
            shift[m] = step
            columns.append((self._regress(X + shift) - self._regress(X - shift)) / (2 * step))
        return np.stack(columns, axis=2)

    def _wanted_dimensions(self, Y: FloatArray | None = None) -> int:
        """Return how many latent dimensions are wanted, of rows Y if that depends on them."""
        return int(self.n_components)

    def _most_rows(self, D: int) -> int | None:
        """Return how many of the distinct rows of D features a fit looks at, None for all of them.

        They are drawn to stand for all, which are placed afterwards.
        """
        return None

    def _latent_unit(self) -> FloatArray:
        """Return the bandwidth of the latent density along each coordinate (q,), never 0."""
        return np.ones(self.latent_.shape[1])

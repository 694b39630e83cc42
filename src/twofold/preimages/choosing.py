"""Which pre-image method goes with which kernel, and why.

==============  =========  =====================================================================
kernel          method     why
==============  =========  =====================================================================
linear, l1      Exact      weighted means and medians are the minimum
any other       Learned    the least squared error of rows given their coordinates
==============  =========  =====================================================================

The methods that minimise a distance in feature space (FixedPoint, Gradient and others) are for
those who want just that: with few components feature space holds little of what tells rows apart,
its distances have few minima, and many rows share a pre-image. A sinusoid in two components comes
back with an error of 0.95 by Gradient and of 0.09 by Learned, digits in 16 with 1.11 and 0.72.

Regression in feature space has no coordinates, only weights b that sum to one (those of local
polynomials may be negative). It leads back to the row whose feature lies nearest to the weighted
mean of the references' features, which minimises

    E(y) = k(y, y) - 2 Σ_i b_i k(y, y_i),

the squared distance up to a constant:

==============  ============================================================================
kernel          pre-image
==============  ============================================================================
linear, l1      Exact: weighted means and medians
rbf, poly       Gradient, from the weighted mean and from the nearest reference: no reference
                and no weighted mean is ever nearer
any other       the weighted mean of the rows, which regression in data space would give
==============  ============================================================================
"""

from typing import Any

import numpy as np

from twofold.array_types import FloatArray
from twofold.features import L1, RBF, DataKernel, Linear, Polynomial
from twofold.features.data_kernels import check_rows
from twofold.model_files import register_value_type
from twofold.preimages.closed_forms import (
    Direct,
    Exact,
    LinearCombination,
    Localise,
    PolynomialClosedForm,
)
from twofold.preimages.constrained import Constrained
from twofold.preimages.learned import Learned
from twofold.preimages.medians import Medians
from twofold.preimages.points import FeaturePoints, PreImageMethod
from twofold.preimages.searches import FixedPoint, Gradient
from twofold.rowwise import weighted_sums

_IN_CLOSED_FORM = (Exact, Localise, Direct, PolynomialClosedForm, LinearCombination, Learned)
_BY_SEARCH = (FixedPoint, Gradient, Medians, Constrained)
METHODS: dict[str, type[PreImageMethod]] = {
    method.name: register_value_type(method) for method in (*_IN_CLOSED_FORM, *_BY_SEARCH)
}

# Weights sum to one up to the rounding of float32 over many of them.
_SUM_TOLERANCE = 1e-3
# Derivatives of the way back are differences of pre-images, so these need many digits.
_DESCENT = Gradient(tol=1e-7)


def choose(kernel: Any) -> tuple[PreImageMethod, str]:
    """Return the method that suits a kernel, and why.

    Examples
    --------
    >>> from twofold.features import RBF
    >>> from twofold.preimages import choose
    >>> method, why = choose(RBF(0.5))
    >>> method.name
    'learned'
    """
    method = Exact() if isinstance(kernel, (Linear, L1)) else Learned()
    return method, f"{method.name}: {method.fits(kernel)}"


def get_method(spec: str | PreImageMethod, kernel: Any) -> tuple[PreImageMethod, str]:
    """Return the method of a name ("auto" to choose one), or the method itself, and why it fits.

    Examples
    --------
    >>> from twofold.features import RBF
    >>> from twofold.preimages import get_method
    >>> get_method("learned", RBF(1.0))[0]
    Learned(scale=None, ridge=None)
    """
    expected = f"`preimage` must be 'auto', one of {sorted(METHODS)}, or a method such as Learned()"
    if not isinstance(spec, (str, PreImageMethod)):
        raise TypeError(f"{expected}; got {spec!r}.")
    if spec == "auto":
        return choose(kernel)
    if isinstance(spec, str) and spec not in METHODS:
        raise ValueError(f"{expected}; got {spec!r}.")
    method = METHODS[spec]() if isinstance(spec, str) else spec
    method.check(kernel)
    return method, f"{method.name}: {method.fits(kernel)}"


def weighted_preimages(
    kernel: DataKernel, references: FloatArray, B: FloatArray, n_jobs: int | None = -1
) -> FloatArray:
    """Return rows whose features lie nearest to weighted means of the references' features.

    A row gets the same numbers, to the last bit, alone or among others. Pre-images come in the
    number type of the references; those of the RBF and polynomial kernels are local minima, those
    of a kernel of your own are weighted means of the rows.

    Parameters
    ----------
    kernel : DataKernel
        The kernel, with its parameters set; not a precomputed one, which has no rows.
    references : ndarray of shape (n, D)
        Rows that are averaged.
    B : ndarray of shape (m, n)
        Weights; every row sums to one, and single weights may be negative.
    n_jobs : int or None
        Number of threads, -1 for every core.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.features import L1
    >>> from twofold.preimages import weighted_preimages
    >>> Y = np.array([[0.0], [1.0], [10.0]])
    >>> float(weighted_preimages(L1(), Y, np.array([[0.3, 0.4, 0.3]]))[0, 0])
    1.0
    """
    if kernel.is_precomputed:
        raise ValueError(
            "A precomputed kernel has no pre-images: there are no data rows to go back to, only "
            "kernel values. Use a kernel of the rows, or apply the weights to rows of your own."
        )
    rows, weights = check_rows(references), check_rows(B)
    if weights.shape[1] != len(rows):
        raise ValueError(
            f"`B` must have a weight for each of the {len(rows)} references in every row; got "
            f"shape {weights.shape}."
        )
    off = np.abs(weights.sum(axis=1) - 1)
    if len(off) and off.max() > _SUM_TOLERANCE:
        worst = int(off.argmax())
        raise ValueError(
            f"Every row of `B` must sum to one; row {worst} sums to {weights[worst].sum():.6g}. "
            "Divide each row by its sum."
        )
    points = FeaturePoints(kernel, rows, weights, n_jobs=n_jobs)
    if isinstance(kernel, (Linear, L1)):
        found = Exact().rows_for(points)
    elif isinstance(kernel, (RBF, Polynomial)):
        found = _DESCENT.find(points).Y
    else:
        found = weighted_sums(weights, rows, points.n_threads)
    return found.astype(np.float32) if np.asarray(references).dtype == np.float32 else found

"""What a map leaves open of the rows it was trained on, and what to say about it."""

from dataclasses import dataclass

import numpy as np

from twofold.array_types import FloatArray

# The share of the variance above which a map leaves much open.
MUCH_OPEN = 0.5
# Rows that are looked at for it, and after a fit.
MOST_LOOKED_AT, MOST_GLANCED_AT = 500, 200


class LeftOpenWarning(UserWarning):
    """A map leaves most of the variance of its rows open."""


@dataclass(frozen=True, repr=False)
class LeftOpen:
    """How far training rows lie from what the others make of them.

    Attributes
    ----------
    share : float
        Squared residuals as a share of the variance, in the units in which the model measures
        distances: 0 is a perfect map, 1 no better than the mean of the rows.
    features : ndarray of shape (n_features,)
        Root mean square of the residuals of each feature, in its own units.
    rows : ndarray of shape (n_rows,)
        Of each row, the root mean square of its residuals in units of ``features``, rising.
    """

    share: float
    features: FloatArray
    rows: FloatArray

    def __str__(self) -> str:
        low, high = self.features.min(), self.features.max()
        least, usual, most = np.quantile(self.rows, [0, 0.5, 1])
        return (
            f"LeftOpen({self.in_words()}; {len(self.features)} features off by {low:.3g} to "
            f"{high:.3g}, {len(self.rows)} rows by {least:.2g} to {most:.2g} times that, half of "
            f"them by less than {usual:.2g})"
        )

    __repr__ = __str__

    def warning(self) -> str:
        """Return a warning about a map that leaves much open, "" for others."""
        return open_share_warning(self.share)

    def in_words(self) -> str:
        """Return the share in words."""
        return f"{100 * self.share:.3g} % of the variance"


def open_share_warning(share: float) -> str:
    """Return a warning about a map that leaves this share of the variance open, or ""."""
    if share >= 1:
        return (
            f"the map leaves {100 * share:.3g} % of the variance open: it predicts a row left out "
            "no better than the mean of the others does. Do not trust it: it needs more rows, or "
            "there is no manifold of this dimension"
        )
    if share >= MUCH_OPEN:
        return (
            f"the map leaves {100 * share:.3g} % of the variance open: what it generates is an "
            "average, and single rows lie far from it"
        )
    return ""


def left_open(Y: FloatArray, images: FloatArray, weights: FloatArray) -> LeftOpen:
    """Return what images (m, D) of rows Y (m, D) of weights (m,) leave open."""
    Y = Y.astype(np.float64)
    R = Y - images
    seen = weights[:, None] * ~np.isnan(Y)
    total = np.maximum(seen.sum(axis=0), 1)
    center = np.nansum(seen * Y, axis=0) / total
    open_, all_ = (float(np.nansum(seen * values**2)) for values in (R, Y - center))
    features = np.sqrt(np.nansum(seen * R**2, axis=0) / total)
    ratios = R / np.where(features > 0, features, 1)
    known = np.maximum((~np.isnan(Y)).sum(axis=1), 1)
    rows = np.sort(np.sqrt(np.nansum(ratios**2, axis=1) / known))
    return LeftOpen(open_ / all_ if all_ else 0.0, features, rows)

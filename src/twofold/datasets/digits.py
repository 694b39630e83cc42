"""Scikit-learn's handwritten digits, split once and for all into training and test rows.

1797 images of 8 x 8 pixels with values 0 to 16; they come with scikit-learn, so nothing has to be
fetched. The split is ``train_test_split(test_size=0.1)``: 1617 training and 180 test rows.
"""

from __future__ import annotations

from typing import NamedTuple

from twofold.array_types import FloatArray, IntArray

TEST_SHARE = 0.1


class DigitsSplit(NamedTuple):
    """Training and test rows (n, 64) with their labels (n,)."""

    Y_train: FloatArray
    Y_test: FloatArray
    labels_train: IntArray
    labels_test: IntArray


def load_digits_split(random_state: int | None = 0) -> DigitsSplit:
    """Load the digits and split off a tenth for testing.

    Parameters
    ----------
    random_state : int or None, default=0
        Seed of the split.

    Returns
    -------
    DigitsSplit
        ``Y_train, Y_test, labels_train, labels_test``.

    Examples
    --------
    >>> split = load_digits_split()
    >>> split.Y_train.shape, split.Y_test.shape
    ((1617, 64), (180, 64))
    """
    # Imported here: it takes most of a second, and only this function needs it.
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    Y, labels = load_digits(return_X_y=True)
    return DigitsSplit(
        *train_test_split(Y, labels, test_size=TEST_SHARE, random_state=random_state)
    )

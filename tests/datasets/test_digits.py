import numpy as np
from sklearn.datasets import load_digits

from twofold.datasets import load_digits_split


def test_split_holds_every_row_once_with_its_label():
    split = load_digits_split()
    assert split.Y_train.shape == (1617, 64)
    assert split.Y_test.shape == (180, 64)
    whole, labels = load_digits(return_X_y=True)
    ours = np.column_stack(
        [np.vstack([split.Y_train, split.Y_test]), [*split.labels_train, *split.labels_test]]
    )
    theirs = np.column_stack([whole, labels])
    np.testing.assert_array_equal(ours[np.lexsort(ours.T)], theirs[np.lexsort(theirs.T)])


def test_split_is_fixed_by_its_seed():
    first, again, other = load_digits_split(), load_digits_split(0), load_digits_split(1)
    np.testing.assert_array_equal(first.Y_test, again.Y_test)
    np.testing.assert_array_equal(first.labels_test, again.labels_test)
    assert not np.array_equal(first.Y_test, other.Y_test)

"""Real data: scikit-learn's handwritten digits, and files that are not part of the package.

The digits are 1797 images of 8 x 8 pixels with values 0 to 16; they come with scikit-learn, so
nothing has to be fetched. They are split once and for all by ``train_test_split(test_size=0.1)``:
1617 training and 180 test rows.

Files ``NAME.npz`` are looked for in the folder named by the environment variable ``TWOFOLD_DATA``,
then in ``shared/data`` under the current directory and under each of its parents.
"""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from twofold.array_types import FloatArray, IntArray

TEST_SHARE = 0.1
DATA_VARIABLE = "TWOFOLD_DATA"
DATA_FOLDER = Path("shared", "data")


class DigitsSplit(NamedTuple):
    """Training and test rows (n, 64) with their labels (n,).

    Examples
    --------
    >>> from twofold.datasets import load_digits_split
    >>> digits = load_digits_split()
    >>> digits.Y_train.shape, digits.Y_test.shape
    ((1617, 64), (180, 64))
    """

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


def data_file(name: str) -> Path:
    """Find the file ``NAME.npz`` of a real data set, given the name.

    If no folder holds it, the FileNotFoundError lists the folders.

    Examples
    --------
    >>> from twofold.datasets import data_file
    >>> try:
    ...     data_file("no_such_data")
    ... except FileNotFoundError:
    ...     print("not there")
    not there
    """
    here = Path.cwd()
    folders = [base / DATA_FOLDER for base in (here, *here.parents)]
    named = os.environ.get(DATA_VARIABLE)
    if named:
        folders.insert(0, Path(named).expanduser())
    for folder in folders:
        path = folder / f"{name}.npz"
        if path.is_file():
            return path
    places = "\n".join(f"  {folder}" for folder in folders)
    raise FileNotFoundError(
        f"expected a data file {name}.npz in one of these folders, and none has it:\n{places}\n"
        f"Set the environment variable {DATA_VARIABLE} to the folder that holds it."
    )


def load_npz(name: str) -> dict[str, npt.NDArray[Any]]:
    """Load every array of the real data set that `data_file` finds by its name.

    ``X`` holds the data rows (n, D) and ``y``, where known, the labels.

    Examples
    --------
    >>> from twofold.datasets import load_npz
    >>> try:
    ...     rows = load_npz("no_such_data")["X"]
    ... except FileNotFoundError:
    ...     print("not there")
    not there
    """
    # Without pickle the file cannot run code when it is opened.
    with np.load(data_file(name), allow_pickle=False) as archive:
        return dict(archive)

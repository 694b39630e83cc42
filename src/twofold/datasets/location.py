"""Where the real data sets lie: files ``NAME.npz`` that are not part of the package.

They are looked for in the folder named by the environment variable ``TWOFOLD_DATA``, then in
``shared/data`` under the current directory and under each of its parents.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

DATA_VARIABLE = "TWOFOLD_DATA"
DATA_FOLDER = Path("shared", "data")


def data_file(name: str) -> Path:
    """Find the file of a real data set.

    Parameters
    ----------
    name : str
        Name of the data set, without ``.npz``.

    Returns
    -------
    Path
        The file ``NAME.npz``.

    Raises
    ------
    FileNotFoundError
        If no folder holds the file; the message lists the folders.
    """
    folders = _data_folders()
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
    """Load every array of a real data set.

    Parameters
    ----------
    name : str
        Name of the data set, without ``.npz``.

    Returns
    -------
    dict of str to ndarray
        The arrays by name; ``X`` holds the data rows (n, D) and ``y``, where known, the labels.

    Raises
    ------
    FileNotFoundError
        If the file is not found, see `data_file`.
    """
    # Without pickle the file cannot run code when it is opened.
    with np.load(data_file(name), allow_pickle=False) as archive:
        return dict(archive)


def _data_folders() -> list[Path]:
    """Folders to look in, the first one first."""
    here = Path.cwd()
    folders = [base / DATA_FOLDER for base in (here, *here.parents)]
    named = os.environ.get(DATA_VARIABLE)
    return [Path(named).expanduser(), *folders] if named else folders

"""Opening saved models: the one place that knows every family by name."""

from __future__ import annotations

import os

from twofold.classification import ManifoldClassifier
from twofold.contract import TwoWayModel
from twofold.kernel_pca import DiffusionMap, KernelPCA
from twofold.scaled import Scaled
from twofold.tables import expect_class, read_model_file
from twofold.ukr import UKR

FAMILIES: dict[str, type[TwoWayModel]] = {
    "UKR": UKR,
    "KernelPCA": KernelPCA,
    "DiffusionMap": DiffusionMap,
    "Scaled": Scaled,
}


def load(path: str | os.PathLike[str]) -> TwoWayModel | ManifoldClassifier:
    """Open a model that was saved with ``model.save(path)``; no code in the file is run.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    The fitted model.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model file, or of a newer format.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> from twofold import UKR, load
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "iris.twofold"
    >>> UKR(init="pca", max_iter=5).fit(load_iris().data).save(path)
    >>> load(path).embedding_.shape
    (150, 2)
    """
    stored = read_model_file(path)
    expect_class(stored, [*FAMILIES, "ManifoldClassifier"])
    if stored.class_name == "ManifoldClassifier":
        return ManifoldClassifier.from_file(stored, FAMILIES)
    return FAMILIES[stored.class_name].from_file(stored, FAMILIES)

"""Opening saved models: the one place that knows every family by name."""

from __future__ import annotations

import os

from twofold.classification import ManifoldClassifier
from twofold.contract import TwoWayModel
from twofold.kernel_pca import DiffusionMap, KernelExtension, KernelPCA
from twofold.psom import PSOM
from twofold.scaled import Scaled
from twofold.tables import ModelFile, ModelFileError, expect_class, read_model_file
from twofold.ukr import UKR
from twofold.unn import UNN, SubmanifoldUNN

FAMILIES: dict[str, type[TwoWayModel]] = {
    "UKR": UKR,
    "UNN": UNN,
    "SubmanifoldUNN": SubmanifoldUNN,
    "PSOM": PSOM,
    "KernelPCA": KernelPCA,
    "DiffusionMap": DiffusionMap,
    "Scaled": Scaled,
}


def load(path: str | os.PathLike[str]) -> TwoWayModel | ManifoldClassifier | KernelExtension:
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
        If the file is damaged, not a model file, of a newer format, or holds what no fit leaves.

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
    expect_class(stored, [*FAMILIES, "ManifoldClassifier", "KernelExtension"])
    try:
        return _restored(stored)
    except Exception as error:  # what is wrong with a made-up file takes many forms
        raise ModelFileError(
            f"'{path}' is whole but holds no {stored.class_name} that a fit could have left: "
            f"{error}. It was saved with twofold {stored.versions.get('twofold', 'unknown')}: open "
            "it with that version or a newer one, or fit the model again."
        ) from error


def _restored(stored: ModelFile) -> TwoWayModel | ManifoldClassifier | KernelExtension:
    if stored.class_name == "ManifoldClassifier":
        return ManifoldClassifier.from_file(stored, FAMILIES)
    if stored.class_name == "KernelExtension":
        return KernelExtension.from_file(stored)
    return FAMILIES[stored.class_name].from_file(stored, FAMILIES)

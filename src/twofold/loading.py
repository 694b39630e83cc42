"""Families by name: opening saved models, and making new ones.

The one place that knows every family. It imports a family when it is first asked for, so that who
opens or makes a model waits for its own family only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from twofold.model_files import ModelFileError, expect_class, read_model_file

if TYPE_CHECKING:
    from twofold.classification import ManifoldClassifier
    from twofold.contract import TwoWayModel
    from twofold.kernel_pca import KernelExtension


class Classes(Mapping[str, Any]):
    """Classes by name, each imported from its home when it is looked up."""

    def __init__(self, homes: Mapping[str, str]) -> None:
        self._homes = dict(homes)

    def __getitem__(self, name: str) -> Any:
        return getattr(import_module(self._homes[name]), name)

    def __contains__(self, name: object) -> bool:
        return name in self._homes

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


# Two-way models, which others may hold inside.
FAMILIES = Classes(
    {
        "UKR": "twofold.ukr",
        "UNN": "twofold.unn",
        "SubmanifoldUNN": "twofold.unn",
        "PSOM": "twofold.psom",
        "KernelPCA": "twofold.kernel_pca",
        "DiffusionMap": "twofold.kernel_pca",
        "Scaled": "twofold.scaled",
        "Reduced": "twofold.reduced",
        "Mixed": "twofold.mixed",
    }
)
OTHERS = Classes(
    {"ManifoldClassifier": "twofold.classification", "KernelExtension": "twofold.kernel_pca"}
)
# Those that fit a plain table, by the names that people give.
TWO_WAY = {
    "ukr": "UKR",
    "unn": "UNN",
    "kernel_pca": "KernelPCA",
    "diffusion_map": "DiffusionMap",
    "psom": "PSOM",
}


def load(path: str | os.PathLike[str]) -> TwoWayModel | ManifoldClassifier | KernelExtension:
    """Open a model that was saved with ``model.save(path)``; no code in the file is run.

    A `ModelFileError` says that the file is damaged, not a model file, of a newer format, or holds
    something that no fit produces.

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
    # The classes a file holds are imported first: they name the types their parameters may have.
    stored = read_model_file(
        path, lambda names: [FAMILIES.get(name) or OTHERS.get(name) for name in names]
    )
    expect_class(stored, [*FAMILIES, *OTHERS])
    try:
        if stored.class_name == "KernelExtension":
            return OTHERS["KernelExtension"].from_file(stored)
        cls = FAMILIES.get(stored.class_name) or OTHERS[stored.class_name]
        return cls.from_file(stored, FAMILIES)
    except Exception as error:  # what is wrong with a made-up file takes many forms
        raise ModelFileError(
            f"'{path}' is intact, but no fit could have produced its {stored.class_name}: "
            f"{error}. It was saved with twofold {stored.versions.get('twofold', 'unknown')}: open "
            "it with that version or a newer one, or fit the model again."
        ) from error


def two_way_model(name: str, n_components: int, **common: Any) -> TwoWayModel:
    """Return an unfitted model of a family, named by a key of ``TWO_WAY``.

    Of the parameters ``common`` a family is told those that it has.
    """
    family = FAMILIES[TWO_WAY[name]]
    known = family().get_params(deep=False)
    told = {parameter: value for parameter, value in common.items() if parameter in known}
    return family(n_components, **told)

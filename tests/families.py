"""The one place where a family is listed to get every contract test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from twofold import PSOM, UKR, UNN, DiffusionMap, KernelPCA, Scaled, SubmanifoldUNN
from twofold.contract import TwoWayModel
from twofold.losses import EpsilonInsensitive, Huber
from twofold.regularization import Density, Extension, LeaveKOut


@dataclass(frozen=True)
class Family:
    """A way to make a model, quick enough to be fitted many times.

    Attributes
    ----------
    name : str
    make : function that returns an unfitted model
    scores_in_data_space : whether scores are squared distances of rows, not of their features
    smooth : whether the way back is differentiable
    can_grow : whether ``partial_fit`` takes new rows in; otherwise it says why not
    prefix : of the parameters of the model inside, where there is one
    fills_only : whether ``complete`` fills gaps although ``fit`` and ``transform`` refuse them
    tunable : a parameter and two values of it, for a grid search
    spectral : whether latent dimensions may be more than there are columns
    dimensions : gives the parameters that ask for so many latent dimensions
    """

    name: str
    make: Callable[[], TwoWayModel]
    scores_in_data_space: bool = True
    smooth: bool = True
    can_grow: bool = True
    prefix: str = ""
    fills_only: bool = False
    tunable: tuple[str, list[object]] = ("max_iter", [0, 5])
    spectral: bool = False
    dimensions: Callable[[int], dict[str, object]] = lambda q: {"n_components": q}

    @property
    def is_variant(self) -> bool:
        """Whether another configuration stands for this kind of model by default."""
        return self.name in VARIANTS

    @property
    def marks(self) -> list[pytest.MarkDecorator]:
        """What keeps a test of a variant for `make test-all`."""
        return [pytest.mark.slow] if self.is_variant else []

    def make_with(self, **parameters: object) -> TwoWayModel:
        """Return an unfitted model with other parameters."""
        return self.make().set_params(**{self.prefix + k: v for k, v in parameters.items()})


VARIANTS = (
    "UKR-1d",
    "UKR-quartic",
    "UKR-4d",
    "UKR-extension",
    "UKR-density",
    "UKR-degree-1",
    "UKR-degree-2",
    "UKR-huber",
    "UKR-leave-4-out",
    "UKR-smoothest",
    "Scaled-robust-1d",
    "KernelPCA-diffusion",
    "UNN-1d",
    "PSOM-1d",
)

FAMILIES = [
    Family("UKR", lambda: UKR(random_state=0, max_iter=30)),
    Family("UKR-1d", lambda: UKR(1, random_state=0, max_iter=30)),
    Family("UKR-quartic", lambda: UKR(kernel="quartic", init="pca", random_state=0, max_iter=30)),
    Family("UKR-4d", lambda: UKR(4, init="pca", random_state=0, max_iter=15)),
    Family(
        "UKR-extension",
        lambda: UKR(regularization=Extension(penalty=0.01), init="isomap", max_iter=30),
    ),
    Family(
        "UKR-density",
        lambda: UKR(regularization=Density(threshold=0.05), init="isomap", max_iter=15),
    ),
    Family("UKR-degree-1", lambda: UKR(degree=1, init="pca", random_state=0, max_iter=15)),
    Family("UKR-degree-2", lambda: UKR(degree=2, init="pca", random_state=0, max_iter=15)),
    Family("UKR-huber", lambda: UKR(loss=Huber(), init="isomap", random_state=0, max_iter=15)),
    Family(
        "UKR-leave-4-out",
        lambda: UKR(regularization=LeaveKOut(4), init="isomap", random_state=0, max_iter=15),
    ),
    Family(
        "UKR-smoothest",
        lambda: UKR(
            loss=EpsilonInsensitive(0.05), regularization="smoothest", init="isomap", max_iter=10
        ),
    ),
    Family(
        "UKR-landmarks",
        lambda: UKR(landmarks=25, init="isomap", random_state=0, max_iter=15),
    ),
    Family(
        "UKR-l1",
        lambda: UKR(data_kernel="l1", init="isomap", random_state=0, max_iter=15),
        scores_in_data_space=False,
        smooth=False,
        can_grow=False,
    ),
    Family(
        "Scaled",
        lambda: Scaled(UKR(init="isomap", random_state=0, max_iter=15)),
        scores_in_data_space=False,
        prefix="model__",
    ),
    Family(
        "Scaled-robust-1d",
        lambda: Scaled(UKR(1, init="isomap", degree=1, max_iter=10), how="robust"),
        scores_in_data_space=False,
        prefix="model__",
    ),
    *(
        Family(
            name,
            make,
            scores_in_data_space=False,
            can_grow=False,
            fills_only=True,
            tunable=tunable,
            spectral=True,
        )
        for name, make, tunable in (
            ("KernelPCA", lambda: KernelPCA(), ("kernel", ["rbf", "linear"])),
            ("KernelPCA-diffusion", lambda: KernelPCA(kernel="diffusion"), ("tol", [0, 1e-6])),
            ("DiffusionMap", lambda: DiffusionMap(), ("alpha", [0.0, 1.0])),
        )
    ),
    Family(
        "SubmanifoldUNN",
        lambda: SubmanifoldUNN(random_state=0),
        smooth=False,
        can_grow=False,
        tunable=("n_neighbors", [3, 5]),
    ),
    *(
        Family(name, make, smooth=False, tunable=("n_neighbors", [3, 5]))
        for name, make in (
            ("UNN-1d", lambda: UNN(random_state=0)),
            ("UNN", lambda: UNN(2, random_state=0)),
            ("UNN-lattice", lambda: UNN(2, search="greedy", random_state=0)),
        )
    ),
    *(
        Family(
            name,
            make,
            tunable=("smoothness", [None, 0.1]),
            dimensions=lambda q: {"n_components": q, "grid": (2,) * q},
        )
        for name, make in (
            ("PSOM", lambda: PSOM(2, grid=(6, 6), random_state=0)),
            ("PSOM-1d", lambda: PSOM(1, grid=(8,), random_state=0)),
        )
    ),
]

"""The one place where a family is listed to get every contract test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from twofold import UKR
from twofold.contract import TwoWayModel
from twofold.regularization import Density, Extension


@dataclass(frozen=True)
class Family:
    """A way to make a model, quick enough to be fitted many times."""

    name: str
    make: Callable[[], TwoWayModel]


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
]

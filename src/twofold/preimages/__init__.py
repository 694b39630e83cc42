"""Pre-images: rows whose features are nearest to points of feature space.

`points` says what goes in and comes out, `choosing` picks a method. Methods: `closed_forms`,
`searches`, `medians`, `learned`, `constrained`. Searches minimise `criteria` by `descent`, with
directions of `bfgs`; `coordinates` and `press` are the ridge regression that extends coordinates to
any row, and the leave-one-out error that chooses its numbers.

>>> from twofold.preimages import METHODS
>>> "learned" in METHODS
True
"""

from twofold.preimages.choosing import METHODS, choose, get_method, weighted_preimages
from twofold.preimages.closed_forms import (
    Direct,
    Exact,
    LinearCombination,
    Localise,
    PolynomialClosedForm,
)
from twofold.preimages.constrained import Constrained
from twofold.preimages.learned import Learned
from twofold.preimages.medians import Medians
from twofold.preimages.points import FeaturePoints, PreImageMethod, PreImages, Status
from twofold.preimages.searches import FixedPoint, Gradient

__all__ = [
    "METHODS",
    "Constrained",
    "Direct",
    "Exact",
    "FeaturePoints",
    "FixedPoint",
    "Gradient",
    "Learned",
    "LinearCombination",
    "Localise",
    "Medians",
    "PolynomialClosedForm",
    "PreImageMethod",
    "PreImages",
    "Status",
    "choose",
    "get_method",
    "weighted_preimages",
]

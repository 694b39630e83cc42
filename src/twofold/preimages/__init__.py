"""Pre-images: rows whose features are nearest to points of feature space.

`points` says what goes in and comes out, `choosing` picks a method. `criteria`, `sparse_weights`,
`bfgs`, `descent` and `searching` are shared by the methods that search, `weighted_medians` by those
of city-block distances, `tiles` and `coordinates` by all that multiply large matrices.
`weighted_features` is the way back of regression in feature space. Every other file is one method.
"""

from twofold.model_files import register_value_type
from twofold.preimages.choosing import METHODS, choose, get_method
from twofold.preimages.constrained import Constrained
from twofold.preimages.direct import Direct
from twofold.preimages.exact import Exact
from twofold.preimages.fixed_point import FixedPoint
from twofold.preimages.gradient import Gradient
from twofold.preimages.learned import Learned
from twofold.preimages.linear_combination import LinearCombination
from twofold.preimages.localise import Localise
from twofold.preimages.medians import Medians
from twofold.preimages.points import (
    FeaturePoints,
    PreImageMethod,
    PreImages,
    Status,
)
from twofold.preimages.polynomial import PolynomialClosedForm
from twofold.preimages.weighted_features import weighted_preimages

for _method in METHODS.values():
    register_value_type(_method)

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

"""Pre-images: rows whose features are nearest to points of feature space.

`points` says what goes in and comes out, `choosing` picks a method. `criteria`, `descent` and
`searching` are shared by the methods that search; `tiles` and `coordinate_tiles` by all that
multiply large matrices. Every other file is one method.
"""

from twofold.kernel_pca.preimages.choosing import METHODS, choose, get_method
from twofold.kernel_pca.preimages.constrained import Constrained
from twofold.kernel_pca.preimages.direct import Direct
from twofold.kernel_pca.preimages.exact import Exact
from twofold.kernel_pca.preimages.fixed_point import FixedPoint
from twofold.kernel_pca.preimages.gradient import Gradient
from twofold.kernel_pca.preimages.learned import Learned
from twofold.kernel_pca.preimages.linear_combination import LinearCombination
from twofold.kernel_pca.preimages.localise import Localise
from twofold.kernel_pca.preimages.medians import Medians
from twofold.kernel_pca.preimages.points import (
    FeaturePoints,
    PreImageMethod,
    PreImages,
    Status,
)
from twofold.kernel_pca.preimages.polynomial import PolynomialClosedForm
from twofold.tables import register_value_type

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
]

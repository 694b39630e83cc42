"""Names for the arrays that pass between the modules.

Throughout the library ``Y`` (n, D) is data and ``X`` (n, q) is latent.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]

"""Between which values trees expect an entry (quantile regression forests, Meinshausen 2006).

A row is seen as the rows that share its leaves. What these have in the column gives quantiles,
which know what a variance does not: that values pile up at one end, or are all the same.
"""

import numpy as np

from twofold.array_types import BoolArray, FloatArray
from twofold.filling.experts import ColumnForest

# A leaf is told by so many of its values, evenly among those that lie in it.
VALUES_OF_LEAF = 5
# Shares of values below the two ends.
ENDS = (0.05, 0.95)
ROWS_AT_A_TIME = 1024


class LeafQuantiles:
    """Ends of entries, from forests by column and the rows (n, D) they were grown on."""

    def __init__(
        self, forests: dict[int, ColumnForest], rows: FloatArray, observed: BoolArray
    ) -> None:
        self.forests = forests
        self.values = {
            d: leaf_values(forest, rows[observed[:, d]], d) for d, forest in self.forests.items()
        }

    def ends(self, rows: FloatArray, gaps: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return ends of the gaps of filled rows (m, D), NaN where no tree tells."""
        low, high = np.full(rows.shape, np.nan), np.full(rows.shape, np.nan)
        for d, forest in self.forests.items():
            asked = np.flatnonzero(gaps[:, d])
            for i in range(0, len(asked), ROWS_AT_A_TIME):
                part = asked[i : i + ROWS_AT_A_TIME]
                leaves = forest.leaves(rows[part])
                found = [values[here] for values, here in zip(self.values[d], leaves, strict=True)]
                near = np.sort(np.concatenate(found, axis=1), axis=1)
                at = [round(share * (near.shape[1] - 1)) for share in ENDS]
                low[part, d], high[part, d] = near[:, at].T
        return low, high


def leaf_values(forest: ColumnForest, rows: FloatArray, d: int) -> list[FloatArray]:
    """Return the values of column d in each node's rows, (nodes, VALUES_OF_LEAF) of each tree."""
    found = []
    shares = (np.arange(VALUES_OF_LEAF) + 0.5) / VALUES_OF_LEAF
    for tree, here in zip(forest.trees, forest.leaves(rows), strict=True):
        order = np.lexsort((rows[:, d], here))
        size = np.bincount(here, minlength=tree.node_count)
        start = np.cumsum(size) - size
        at = start[:, None] + (shares * size[:, None]).astype(np.int64)
        found.append(rows[order, d][np.minimum(at, len(rows) - 1)])
    return found

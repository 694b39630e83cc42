"""Ways to fill the gaps of rows, from a table that is filled already.

- stay: what the round before left;
- mean: the mean of the column, of which more is right the less the others know;
- Gaussian: the conditional mean under one Gaussian of the whole table;
- local, one for each number of neighbours: the conditional mean under the Gaussian of the rows
  around this one (:mod:`twofold.noise.local_gaussians`), which follows a curved manifold;
- trees: extremely randomised trees from the other columns (Geurts, Ernst & Wehenkel 2006), for
  columns that jump, as classes and counts do, where no smooth manifold is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import config_context

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.engine.threads import run_tasks
from twofold.noise import Conditional, FactorModel, LocalGaussians

# Where the mean of a column stands among the ways to fill it.
MEAN_WAY = 1
N_TREES = 30
# Rows of a leaf, at least: for columns that jump between few values, a tenth of the rows or less,
# and for others, where larger leaves take less time and tell as much.
LEAST_IN_LEAF, FEW_VALUES = (2, 3), 0.1
# Trees look at so many columns, those that go most with the one to be filled.
MOST_PREDICTORS = 32
# Trees see numbers of single precision.
MOST_SEEN = float(np.finfo(np.float32).max)
# Fewer rows teach trees nothing.
LEAST_ROWS = 20
# Of the rows of a table, at most this share are neighbours; else they are no neighbourhood.
LARGEST_SHARE = 0.6


@dataclass(frozen=True)
class Filled:
    """Rows (n, D) with every entry filled, and the variance of filled entries, 0 for others."""

    rows: FloatArray
    doubt: FloatArray

    @classmethod
    def told(cls, Y: FloatArray, found: Conditional) -> "Filled":
        """Return rows Y (n, D) with what is found about their gaps."""
        gaps = np.isnan(Y)
        return cls(np.where(gaps, found.means, Y), np.where(gaps, found.variances, 0))


def fill_by_gaussian(Y: FloatArray, model: FactorModel) -> Filled:
    """Return rows Y (n, D) filled by one Gaussian."""
    return Filled.told(Y, model.condition(Y))


class Experts:
    """All ways to fill rows from a filled table.

    Parameters
    ----------
    table : Filled
        The rows to fill from.
    prior : FactorModel
        The Gaussian of that table.
    sizes : numbers of neighbours
    forests : forests of columns, by column; none for those that need none
    """

    def __init__(
        self,
        table: Filled,
        prior: FactorModel,
        sizes: Sequence[int],
        forests: "dict[int, ColumnForest]",
    ) -> None:
        self.sizes = list(sizes)
        self.prior, self.forests = prior, forests
        farther = table.doubt.sum(axis=1)
        self.around = LocalGaussians(table.rows, table.doubt, table.rows, prior, farther)

    def guesses(
        self, Y: FloatArray, before: Filled, own: IntArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return what each way says of rows Y, (E, m, D), and the variance that goes with it.

        ``before`` are the rows as filled by now, ``own`` their numbers in the table, if they are
        of it: no row tells of itself.
        """
        gauss = fill_by_gaussian(Y, self.prior)
        local = self._local(Y, before, own)
        trees = before.rows.copy()
        for d, forest in self.forests.items():
            asked = np.isnan(Y[:, d])
            if asked.any():
                trees[asked, d] = forest.predict(before.rows[asked])
        mean = np.broadcast_to(self.prior.mean, Y.shape)
        means = [before.rows, mean, gauss.rows, *(found.rows for found in local), trees]
        # The variance of local Gaussians is that of a place; without neighbours, of the table.
        spread = np.mean([found.doubt for found in local or [gauss]], axis=0)
        return np.stack(means), spread

    def _local(self, Y: FloatArray, before: Filled, own: IntArray | None) -> list[Filled]:
        """Return rows filled by those around them, for each size; whole rows stay as they are."""
        some = np.isnan(Y).any(axis=1)
        without = None if own is None else own[some]
        told = []
        for found in self.around.conditionals(Y[some], before.rows[some], without, self.sizes):
            part, filled = Filled.told(Y[some], found), Filled(Y.copy(), np.zeros_like(Y))
            filled.rows[some], filled.doubt[some] = part.rows, part.doubt
            told.append(filled)
        return told


class ColumnForest:
    """Trees that tell one column of filled rows from others."""

    def __init__(
        self,
        rows: FloatArray,
        d: int,
        observed: BoolArray,
        correlation: FloatArray,
        seed: int,
    ) -> None:
        # Imported at first use: it takes a while.
        from sklearn.tree import ExtraTreeRegressor

        strength = np.abs(correlation[d])
        strength[d] = -1
        self.columns = np.sort(np.argsort(-strength, kind="stable")[:MOST_PREDICTORS])
        self.columns = self.columns[self.columns != d]
        known, told = self._seen(rows[observed]), np.ascontiguousarray(rows[observed, d])
        random = np.random.RandomState(seed)
        is_smooth = len(np.unique(told)) > FEW_VALUES * len(told)
        # One by one: on a few hundred rows a forest of scikit-learn takes longer to hand its
        # parameters to its trees, and each tree to check them, than they take to grow.
        with config_context(skip_parameter_validation=True):
            self.trees: list[Any] = [
                ExtraTreeRegressor(min_samples_leaf=LEAST_IN_LEAF[is_smooth], random_state=random)
                .fit(known, told, check_input=False)
                .tree_
                for _ in range(N_TREES)
            ]

    def _seen(self, rows: FloatArray) -> FloatArray:
        seen = np.clip(rows[:, self.columns], -MOST_SEEN, MOST_SEEN)
        return np.ascontiguousarray(seen, dtype=np.float32)

    def leaves(self, rows: FloatArray) -> IntArray:
        """Return in which node of each tree filled rows (m, D) end, (trees, m)."""
        seen = self._seen(rows)
        return np.stack([tree.apply(seen) for tree in self.trees])

    def predict(self, rows: FloatArray) -> FloatArray:
        """Return the column (m,) of filled rows (m, D)."""
        total = np.zeros(len(rows))
        for tree, here in zip(self.trees, self.leaves(rows), strict=True):
            total += tree.value[here, 0, 0]
        return total / len(self.trees)


def plant_forests(
    rows: FloatArray,
    observed: BoolArray,
    needed: IntArray,
    random: np.random.RandomState,
    n_threads: int,
) -> dict[int, ColumnForest]:
    """Return the forests of the columns that are needed, from filled rows (n, D)."""
    if rows.shape[1] < 2:
        return {}
    spread = rows.std(axis=0)
    standard = (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1)
    correlation = standard.T @ standard / len(rows)
    columns = [int(d) for d in needed if observed[:, d].sum() >= LEAST_ROWS]
    seeds = random.randint(2**31 - 1, size=len(columns)).tolist()

    def plant(task: tuple[int, int]) -> ColumnForest:
        d, seed = task
        return ColumnForest(rows, d, observed[:, d], correlation, seed)

    forests = run_tasks(plant, list(zip(columns, seeds, strict=True)), n_threads)
    return dict(zip(columns, forests, strict=True))

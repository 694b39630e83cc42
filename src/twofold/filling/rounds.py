"""Rounds that fill a table, and tables with hidden entries beside it that say how.

In each round every gap is filled by the mean of several ways (:mod:`twofold.filling.experts`), and
what comes out is filled from in the next. Weights of a column are those that do best on entries
that were observed and are hidden for this (:mod:`twofold.noise.hidden_entries`). They are hidden in
trial tables, which go through the same rounds. A trial table has more gaps than the table itself,
and what is filled from it is a little worse: so there are several, each with hidden entries in a
part of its rows only. The first one goes without some of the rows it hides nothing in. These come
to it as new rows do, without half of their entries or most: they tell how far off that is
(:mod:`twofold.noise.larger_gaps`).
"""

from dataclasses import dataclass, replace

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.filling.experts import (
    LARGEST_SHARE,
    MEAN_WAY,
    ColumnForest,
    Experts,
    Filled,
    fill_by_gaussian,
    plant_forests,
)
from twofold.filling.leaf_quantiles import LeafQuantiles
from twofold.noise import FactorModel, fit_factors
from twofold.noise.conformal import HiddenErrors, Scale, Sides, scale_of
from twofold.noise.hidden_entries import (
    entries_to_hide,
    errors_apart,
    likeness,
    stacking_weights,
)
from twofold.noise.larger_gaps import (
    LargerGaps,
    missing_shares,
    much_to_hide,
    usual_share,
)

# Hidden entries are looked for in so many rows at most.
MOST_TRIED = 3_000
# A trial table hides entries of one row in so many. There are as many such tables, or fewer if
# those hide enough.
TRIALS, ENOUGH_HIDDEN = 3, 1_000
# The share of the rows that the first of them goes without, and how often these come back, if few.
PROBED_SHARE, TIMES_PROBED, MOST_PROBED = 0.15, 4, 100
# Another round must lower the squared error of hidden entries by this share.
LEAST_GAIN = 0.01
# Rounds in which trees are grown; later ones keep those.
ROUNDS_OF_TREES = 2


@dataclass(frozen=True)
class Ways:
    """What the imputer was asked for: numbers of neighbours, trees or not, and threads."""

    sizes: tuple[int, ...]
    has_trees: bool
    n_threads: int


@dataclass(frozen=True)
class Round:
    """One round: from which table, and with which weights (D, E).

    ``scale`` says how far off what is filled may be.
    """

    experts: Experts
    weights: FloatArray
    scale: Scale

    def fill(self, Y: FloatArray, before: Filled, own: IntArray | None) -> Filled:
        """Return rows Y (m, D), filled ``before``, filled anew."""
        return self.mixed(Y, *self.experts.guesses(Y, before, own))

    def mixed(self, Y: FloatArray, guesses: FloatArray, spread: FloatArray) -> Filled:
        """Return rows Y (m, D) filled by the mean of guesses (E, m, D)."""
        means = np.einsum("emd,de->md", guesses, self.weights)
        gaps = np.isnan(Y)
        return Filled(np.where(gaps, means, Y), np.where(gaps, self.scale.variances(spread), 0))


class Filling:
    """A table (n, D) on its way through the rounds."""

    def __init__(self, Y: FloatArray, ways: Ways) -> None:
        self.Y, self.ways = Y, ways
        self.observed: BoolArray = ~np.isnan(Y)
        self.own = np.arange(len(Y))
        self.prior = fit_factors(Y)
        self.filled = fill_by_gaussian(Y, self.prior)
        self.grown: list[tuple[dict[int, ColumnForest], FloatArray]] = []

    def experts(self, needed: IntArray, seed: int, is_quick: bool) -> Experts:
        """Return the ways to fill from the table as it is now."""
        if is_quick:
            self.grown = [({}, self.filled.rows)]
            return Experts(self.filled, self.prior, (), {})
        if len(self.grown) < ROUNDS_OF_TREES:
            rows, forests, random = self.filled.rows, {}, np.random.RandomState(seed)
            if self.ways.has_trees:
                forests = plant_forests(rows, self.observed, needed, random, self.ways.n_threads)
            self.grown.append((forests, rows))
        forests, _ = self.grown[-1]
        return Experts(self.filled, self.prior, self.ways.sizes, forests)

    def leaves(self, rounds: int) -> LeafQuantiles:
        """Return what the leaves of the trees tell after so many rounds."""
        return LeafQuantiles(*self.grown[min(rounds, ROUNDS_OF_TREES) - 1], self.observed)


class Trial(Filling):
    """A table of which some entries are hidden; they count by ``counts`` (n, D)."""

    def __init__(self, Y: FloatArray, hidden: BoolArray, counts: FloatArray, ways: Ways) -> None:
        super().__init__(np.where(hidden, np.nan, Y), ways)
        self.hidden, self.truth, self.counts = hidden, Y[hidden], counts[hidden]
        self.columns = np.nonzero(hidden)[1]


class Probes:
    """Rows (m, D) that miss much, filled as new ones."""

    def __init__(self, Y: FloatArray, hidden: BoolArray, prior: FactorModel) -> None:
        self.hidden, self.truth, self.partial = hidden, Y[hidden], np.where(hidden, np.nan, Y)
        self.filled = fill_by_gaussian(self.partial, prior)
        self.spread = np.zeros_like(Y)

    def filled_by(self, step: Round) -> tuple[Filled, FloatArray]:
        """Return the rows after another round, and the variances that local Gaussians expect."""
        guesses, spread = step.experts.guesses(self.partial, self.filled, None)
        return step.mixed(self.partial, guesses, spread), spread

    def larger_gaps(self, usual: float) -> LargerGaps:
        """Return how far off hidden entries are; ``usual`` is the share that rows usually miss."""
        row, columns = np.nonzero(self.hidden)
        errors, missing = self.filled.rows[self.hidden] - self.truth, missing_shares(self.partial)
        D = self.hidden.shape[1]
        return LargerGaps(errors, self.spread[self.hidden], columns, missing[row], usual, D)


class Rounds:
    """A table (n, D), parts of it with hidden entries, and the rounds that fill all of them."""

    def __init__(self, Z: FloatArray, ways: Ways, random: np.random.RandomState) -> None:
        self.random, self.made, self.error = random, list[Round](), np.inf
        tried = Z
        if len(Z) > MOST_TRIED:
            tried = Z[np.sort(random.permutation(len(Z))[:MOST_TRIED])]
        observed = ~np.isnan(tried)
        hidden = entries_to_hide(observed, random)
        counts = np.zeros(hidden.shape)
        counts[hidden] = likeness(observed, hidden)
        sizes = tuple(k for k in ways.sizes if k <= LARGEST_SHARE * len(tried))
        ways = replace(ways, sizes=sizes)
        parts = parts_of(hidden, random)
        kept, probed, much = rows_to_probe(observed, parts[0])
        self.trials = [Trial(tried, part, counts, ways) for part in parts[1:]]
        self.trials.insert(0, Trial(tried[kept], parts[0][kept], counts[kept], ways))
        self.probes = Probes(tried[probed], much, self.trials[0].prior)
        self.table = Filling(Z, ways)
        self.columns = np.concatenate([trial.columns for trial in self.trials])
        self.counts = np.concatenate([trial.counts for trial in self.trials])

    def go_on(self, *, is_quick: bool = False) -> bool:
        """Make another round and keep it; say whether it lowered the error of hidden entries.

        A quick one has neither neighbourhoods nor trees.
        """
        needed = np.flatnonzero(np.any([np.isnan(t.Y).any(axis=0) for t in self.trials], axis=0))
        seed, D = int(self.random.randint(2**31 - 1)), self.table.Y.shape[1]
        asked = [(trial, trial.experts(needed, seed, is_quick)) for trial in self.trials]
        said = [experts.guesses(trial.Y, trial.filled, trial.own) for trial, experts in asked]
        found = self._hidden([guesses.transpose(1, 2, 0) for guesses, _ in said])
        found -= np.concatenate([trial.truth for trial in self.trials])[:, None]
        weights = stacking_weights(found, self.columns, D, self.counts, MEAN_WAY)
        left = errors_apart(found, self.columns, D, self.counts, MEAN_WAY)
        error = float((self.counts * left**2).mean()) if len(left) else 0.0
        if error > (1 - LEAST_GAIN) * self.error:
            return False
        spread = self._hidden([spread for _, spread in said])
        scale = scale_of(left, spread, self.columns, D, self.counts)
        tables = [
            Round(experts, weights, scale).mixed(trial.Y, *said_here)
            for (trial, experts), said_here in zip(asked, said, strict=True)
        ]
        probed = self.probes.filled_by(Round(asked[0][1], weights, scale))
        step = Round(self.table.experts(needed, seed, is_quick), weights, scale)
        filled = step.fill(self.table.Y, self.table.filled, self.table.own)
        # An interrupt leaves all of a round or none of it.
        self._keep(step, filled, tables, left)
        self.probes.filled, self.probes.spread = probed
        self.error = error
        return True

    def _keep(self, step: Round, filled: Filled, tables: list[Filled], left: FloatArray) -> None:
        ends = np.cumsum([len(trial.truth) for trial in self.trials])[:-1]
        for trial, table, errors in zip(self.trials, tables, np.split(left, ends), strict=True):
            # As weights of other entries fill them: their own have seen what they are.
            table.rows[trial.hidden] = trial.truth + errors
            trial.filled = table
        self.table.filled, self.left = filled, left
        self.made.append(step)

    def _hidden(self, tables: list[FloatArray]) -> FloatArray:
        """Return what tables (n, D, ...), one of each trial, have where entries are hidden."""
        return np.concatenate(
            [table[trial.hidden] for trial, table in zip(self.trials, tables, strict=True)]
        )

    def hidden_errors(self, least: FloatArray, most: FloatArray) -> HiddenErrors:
        """Return how far off hidden entries were, in columns that lie between least and most."""
        rounds = len(self.made)
        sides = Sides.joined(
            [sides_of(trial.filled, trial.hidden, trial.leaves(rounds)) for trial in self.trials]
        )
        at = self._hidden([trial.filled.rows for trial in self.trials])
        room = np.maximum(at - least[self.columns], 0), np.maximum(most[self.columns] - at, 0)
        return HiddenErrors(self.left, sides, room, self.columns, self.counts)

    def larger_gaps(self) -> tuple[LargerGaps, Sides]:
        """Return what rows tell that miss much, and how far their entries may lie off."""
        shares = [missing_shares(t.Y)[np.nonzero(t.hidden)[0]] for t in self.trials]
        leaves = self.trials[0].leaves(len(self.made))
        sides = sides_of(self.probes.filled, self.probes.hidden, leaves)
        return self.probes.larger_gaps(usual_share(np.concatenate(shares))), sides


def parts_of(hidden: BoolArray, random: np.random.RandomState) -> list[BoolArray]:
    """Return which entries trial tables hide: those of some of the rows each."""
    number = random.permutation(len(hidden)) % TRIALS
    parts = [hidden & (number == trial)[:, None] for trial in range(TRIALS)]
    enough = 1 + int(np.searchsorted(np.cumsum([part.sum() for part in parts]), ENOUGH_HIDDEN))
    return parts[:enough]


def rows_to_probe(observed: BoolArray, hidden: BoolArray) -> tuple[BoolArray, IntArray, BoolArray]:
    """Return which rows of a table (n, D) a trial keeps, the numbers of others, each some times.

    Last comes what to hide of these, another part each time.
    """
    random, n = np.random.RandomState(0), len(observed)
    free = random.permutation(np.flatnonzero(~hidden.any(axis=1)))
    out = free[: min(int(PROBED_SHARE * n), MOST_PROBED)]
    kept = np.ones(n, dtype=bool)
    kept[out] = False
    known = observed & ~hidden
    if (known[kept].sum(axis=0) < known.sum(axis=0) / 2).any():  # of a column too little is left
        out, kept = out[:0], np.ones(n, dtype=bool)
    probed = np.tile(out, min(TIMES_PROBED, MOST_PROBED // max(len(out), 1)))
    return kept, probed, much_to_hide(observed[probed], random)


def sides_of(filled: Filled, gaps: BoolArray, leaves: LeafQuantiles) -> Sides:
    """Return how far the gaps (h,) may lie below and above what they are filled with."""
    deviations = np.sqrt(filled.doubt[gaps])
    low, high = (end[gaps] for end in leaves.ends(filled.rows, gaps))
    below = np.where(np.isnan(low), deviations, filled.rows[gaps] - low)
    above = np.where(np.isnan(high), deviations, high - filled.rows[gaps])
    return Sides(deviations, below, above)

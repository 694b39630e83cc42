"""Which of several embeddings to trust: one rule, and its reason in words.

1. An embedding whose continuity loss ``1 - c`` is more than twice the least one plus 0.02 tears
   neighbours apart and is out. The other scores hardly notice a tear: each piece can still be
   led back to the data.
2. Of the rest, those count whose evidence is near the best: ``nlml ≤ b + 0.15 (w - b)`` per entry,
   with b the least and ``w = log(2πe) / 2`` that of white noise. Folds, shadows and noise
   end here: a place that means several things has no smooth way back.
3. Of these the one of the highest continuity is chosen.

Three things make the answer None, and the best of the list the least bad:

- There are fewer than 40 different rows: too few for their neighbourhoods to tell.
- The data is no manifold of that dimension: even nearest rows spread nearly alike in all
  directions (flatness below 0.3, :meth:`LocalScale.excess` at its best scale). Flexible methods
  draw a good-looking picture of a cloud nevertheless, by filling it with a crumpled sheet.
- Nothing unfolds it: the chosen embedding leaves more than 5 % of the variance open, and more than
  three times what flat pieces through the neighbourhoods do.

The numbers were set on the cases of ``experiments/recommendation.py``; for all of them a range of a
factor of two does as well. Labels and stability have no part in it.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from twofold.array_types import FloatArray
from twofold.metrics import local_dimension as local
from twofold.selection.scores import linear_error

TORN_FACTOR, TORN_MARGIN = 2.0, 0.02
NEAR_EVIDENCE = 0.15
WHITE_NOISE = 0.5 * math.log(2 * math.pi * math.e)
LEAST_FLATNESS, CLEAR_FLATNESS = 0.3, 0.5
WELL_EXPLAINED, UNFOLDED_FACTOR = 0.05, 3.0


@dataclass(frozen=True)
class Baseline:
    """What can be expected of embeddings of one dimension q; NaN where rows are too few to tell."""

    linear_error: float  # share of the variance that q principal components leave open
    local_error: float  # the same of flat q-dimensional pieces through neighbourhoods
    # How much more than isotropic rows those of a neighbourhood lie along q directions, at the
    # scale where they do so most: about 0 for a cloud, near 1 for a manifold.
    flatness: float


class Recommendation(NamedTuple):
    """The name of an embedding, or None, and why."""

    name: str | None
    reason: str


def baselines(Y: FloatArray, dimensions: list[int], seed: int | None) -> dict[int, Baseline]:
    """Return what can be expected of embeddings of data Y (n, D), by dimension."""
    rows = np.unique(Y, axis=0)
    rows = local.drawn_rows(rows, local.MOST_ROWS, np.random.default_rng(seed))
    is_enough = len(rows) >= local.FEWEST_ROWS
    scales = local.of_one_piece(local.local_scales(rows, seed)) if is_enough else []
    found = {}
    for q in dimensions:
        if q >= Y.shape[1]:
            found[q] = Baseline(0.0, 0.0, 1.0)  # nothing is reduced, so nothing is left open
        elif scales:
            flatness = max(scale.excess(q) for scale in scales)
            found[q] = Baseline(linear_error(Y, q), scales[0].left_open(q), flatness)
        else:
            found[q] = Baseline(linear_error(Y, q), float("nan"), float("nan"))
    return found


def ranking(table: pd.DataFrame) -> list[str]:
    """Return the names of a table of scores, best first."""
    torn = is_torn(table)
    kept = table[~torn]
    best = kept["nlml_per_entry"].min()
    near = kept["nlml_per_entry"] <= best + NEAR_EVIDENCE * max(WHITE_NOISE - best, 0.0)
    return [
        *kept[near].sort_values("continuity", ascending=False, kind="stable").index,
        *kept[~near].sort_values("nlml_per_entry", kind="stable").index,
        *table[torn].sort_values("nlml_per_entry", kind="stable").index,
    ]


def is_torn(table: pd.DataFrame) -> pd.Series:
    """Say which embeddings tear neighbours apart, compared with the best of them in that."""
    loss = 1 - table["continuity"]
    return loss > TORN_FACTOR * loss.min() + TORN_MARGIN


def recommend(table: pd.DataFrame, expected: dict[int, Baseline]) -> Recommendation:
    """Choose from a table with a row of scores for each embedding."""
    name = ranking(table)[0]
    row = table.loc[name]
    q, error = int(row["dimension"]), float(row["reconstruction_error"])
    base = expected[q]
    if math.isnan(base.flatness):
        why = (
            f"Too few rows to tell: whether data is a manifold of {_dimensions(q)} shows in the "
            f"neighbourhoods of at least {local.FEWEST_ROWS} different rows. The scores put {name} "
            "first."
        )
    elif base.flatness < LEAST_FLATNESS:
        why = (
            f"None can be trusted. The data is not a manifold of {_dimensions(q)}: even nearest "
            f"rows spread almost equally in all directions (flatness {base.flatness:.2g}; 0 is a "
            f"cloud, manifolds have {CLEAR_FLATNESS:g} or more), so every picture folds, tears or "
            f"crumples it. The least bad is {name}."
        )
    elif error > max(WELL_EXPLAINED, UNFOLDED_FACTOR * base.local_error):
        why = (
            f"None can be trusted. The best, {name}, leaves {_percent(error)} of the variance "
            f"open, but flat pieces of {_dimensions(q)} through the neighbourhoods leave only "
            f"{_percent(base.local_error)}: it does not unfold the data. Try another method, such "
            "as 'ukr', or more neighbours."
        )
    else:
        return Recommendation(name, _reason(table, name, base))
    return Recommendation(None, why)


def _reason(table: pd.DataFrame, name: str, base: Baseline) -> str:
    row = table.loc[name]
    parts = [
        f"{name} keeps neighbours together (continuity {row['continuity']:.3g}), and of those that "
        "do, the data is as good a smooth image of it as of any (evidence: nlml "
        f"{row['nlml_per_entry']:.3g} per entry, white noise has {WHITE_NOISE:.3g}). It leaves "
        f"{_percent(row['reconstruction_error'])} of the variance open; as many principal "
        f"components leave {_percent(base.linear_error)}."
    ]
    torn = [str(other) for other in table.index[is_torn(table)]]
    if torn:
        parts.append(f"Neighbours are torn apart by {', '.join(torn)}.")
    if base.flatness < CLEAR_FLATNESS:
        parts.append(
            f"Read it with care: the data is not clearly of {_dimensions(int(row['dimension']))} "
            f"(flatness {base.flatness:.2g}), so it shows who is near whom, not coordinates."
        )
    if table["dimension"].nunique() > 1:
        parts.append("Candidates of more dimensions explain more by that alone; compare like ones.")
    return " ".join(parts)


def _dimensions(q: int) -> str:
    return "1 dimension" if q == 1 else f"{q} dimensions"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"

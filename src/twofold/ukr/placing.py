"""From the start of some rows to that of all: the fine half of coarse to fine.

Each row goes to the mean of its nearest representatives, and t-SNE goes on with the neighbours of
all rows and, more weakly, with the representatives around each. What is here works for arrays of
numpy and for tensors on a device alike; `Tsne` brings the parts that differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

# Hears what is being done: words, and how many steps of how many.
Tell = Callable[[str, int, int], None]

# Representatives around a row, and how far apart they may lie: in typical latent distances between
# neighbours; for t-SNE 3 to 10 differ by a few per cent.
PLACING_NEIGHBORS, PLACING_REACH = 4, 4.0
# t-SNE of all rows: steps, perplexity, and neighbours of a row. A low perplexity keeps the nearest
# rows together, which lowers the error after training, and leaves the map at large to the
# representatives around a row: a share of the pull comes from them, with a perplexity of its own.
# In the first steps all pull harder. MNIST, 60,000 rows, two seeds (error of new rows, trust):
#   perplexity 13, share 0.15, 60 steps, twice as hard: 0.207, 0.954
#   perplexity 9, share 0.3, 120 steps, four times as hard: 0.202, 0.956
#   perplexity 6, share 0.4: 0.200, 0.955; share 0.6: 0.203, 0.957
# Fewer neighbours (15, not 30) lift the trust of the third line by 0.002; with 80 steps instead of
# 120 it falls by 0.001, for a second of seven.
# All held-out rows, one seed (error, trust), by the first steps and how much harder all pull there,
# before `twofold.ukr.training.FEWEST_RESCALED` and a bound on steps:
#            MNIST, 60,000  GloVe, 20,000  GloVe, 85,000  USPS, 7,749
#   20, 4    0.1816, 0.957  0.678, 0.676   0.636, 0.681   0.197, 0.958
#   40, 2    0.1813, 0.958  0.668, 0.674   0.621, 0.673   0.196, 0.958
#   40, 2.5  0.1809, 0.958  0.668, 0.677   0.627, 0.673   0.195, 0.959
#   40, 3    0.1815, 0.958  0.667, 0.682   0.620, 0.681   0.194, 0.959
#   40, 4    0.1814, 0.958  -              0.652, -       -
# Momentum 0.7 changes less than that; 0.9 costs MNIST 2 % and 0.008 of its trust.
# Training does little: 25 iterations instead of 40 cost MNIST 1 %, 60 gain 0.5 %, 120 gain 1.3 % at
# twice the computing of all.
# On 85,000 word vectors shares of 0.4 and 0.5 lead to 0.627 and 0.657; 0.623 with the first line.
ALL_ROWS_STEPS, ALL_ROWS_PERPLEXITY, ALL_ROWS_NEIGHBORS = 60, 6.0, 15
EXAGGERATED_STEPS, EXAGGERATION = 40, 3.0
WIDER_SHARE, WIDER_PERPLEXITY = 0.4, 3.0
# Squared distances below this are none: a row on a representative takes over its place.
TINY = 1e-30


@dataclass(frozen=True)
class Tsne:
    """t-SNE of all rows, by numpy or on a device; tables hold the neighbours of each row."""

    neighbors: Callable[[int], Any]  # a table of this many
    affinities: Callable[[Any, float], Any]  # P, from a table and a perplexity
    mixed: Callable[[Any, Any, float], Any]  # of two P, so much of the second
    descend: Callable[[Any, Any, int, Tell], Any]  # P, X, steps


def place(X: Any, distances: Any, nearest: Any, reach: float) -> Any:
    """Return (m, q) weighted means of the latent places of (m, k) nearest representatives.

    A plain mean of places that the embedding has torn apart would fall between them, so the
    weight falls off as well with the latent distance to the nearest representative.
    """
    sq_dists = (distances * distances).clip(min=TINY)
    places = X[nearest]
    sq_gaps = ((places - places[:, :1]) ** 2).sum(axis=2)
    weights = (sq_dists[:, :1] / sq_dists) / (1.0 + sq_gaps / max(reach**2, TINY))
    weights = weights / weights.sum(axis=1, keepdims=True)
    return (weights[:, :, None] * places).sum(axis=1)


def refine(X: Any, few: Any, around: Any, tsne: Tsne, tell: Tell) -> Any:
    """Return latent points X (n, q) of all rows after more steps of t-SNE.

    ``few`` (m, q) are the places of the representatives as t-SNE had left them, and ``around`` the
    table of those around each row.
    """
    # A map of many more rows is wider; t-SNE itself takes many steps to widen one.
    wider = (len(X) / len(few)) ** (0.5 / X.shape[1])
    X = X * (wider * float(few.std()) / float(X.std()))
    tell("neighbours of all rows", 0, 1)
    near = tsne.affinities(tsne.neighbors(ALL_ROWS_NEIGHBORS), ALL_ROWS_PERPLEXITY)
    P = tsne.mixed(near, tsne.affinities(around, WIDER_PERPLEXITY), WIDER_SHARE)
    done = 0
    for share, steps in ((EXAGGERATION, EXAGGERATED_STEPS), (1.0, ALL_ROWS_STEPS)):
        go_on = partial(_tell_on, tell, done, EXAGGERATED_STEPS + ALL_ROWS_STEPS)
        X = tsne.descend(P * share, X, steps, go_on)
        done += steps
    return X


def _tell_on(tell: Tell, done: int, total: int, words: str, step: int, _: int) -> None:
    """Tell of a step of a part as one of the whole, of which some have been done."""
    tell(words, done + step, total)

"""What an experiment finds, one line of JSON for each figure, read by `experiments.reproduction`.

Nothing is written unless the environment variable ``TWOFOLD_LEDGER`` names a file, so that an
experiment run by hand only prints its tables.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Literal

Better = Literal["lower", "higher"] | None


def _write(**entry: object) -> None:
    path = os.environ.get("TWOFOLD_LEDGER")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def figure(
    place: str,
    what: str,
    reported: float,
    measured: Iterable[float],
    *,
    deviation: float = 0.0,
    better: Better = None,
) -> None:
    """Note a number of a document beside what the runs gave.

    Parameters
    ----------
    place : str
        The table or figure, as `experiments.reproduction` names it: "Klanke, Table 3.1".
    what : str
        Which number of it.
    reported : float
        The number in the document.
    measured : iterable of float
        One value for each run.
    deviation : float
        The standard deviation that the document gives with its number.
    better : "lower", "higher" or None
        Which deviation from the reported number is an improvement.
    """
    values = [float(value) for value in measured]
    _write(
        kind="figure",
        place=place,
        what=what,
        reported=float(reported),
        measured=values,
        deviation=float(deviation),
        better=better,
    )


def claim(place: str, words: str, held: int, runs: int) -> None:
    """Note in how many runs something that a document says, or shows in a picture, held."""
    _write(kind="claim", place=place, words=words, held=int(held), runs=int(runs))


def default(place: str, words: str) -> None:
    """Note what the library does on the same problem with its default parameters."""
    _write(kind="default", place=place, words=words)

"""What counts as a refusal: an error that was raised on purpose, with a sentence in it."""

from __future__ import annotations

import linecache
import traceback
from pathlib import Path

import sklearn

import twofold
from twofold.checks.rows import RowError

OURS = str(Path(twofold.__file__).parent)
THEIRS = str(Path(sklearn.__file__).parent / "utils")


def is_refusal(error: BaseException) -> bool:
    """Say whether an error is one that says what was wrong with the input.

    It is, if it is a ValueError, a TypeError or a MemoryError that a ``raise`` of ours raised, or
    scikit-learn's checks, or a conversion that these asked for. A LinAlgError is a ValueError, too,
    and so is what numpy says of shapes; neither was meant.
    """
    if type(error) not in (ValueError, TypeError, RowError, MemoryError) or not str(error):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    known = [frame for frame in frames if frame.filename.startswith((OURS, THEIRS))]
    if known and known[-1].filename.startswith(THEIRS):
        return True
    line = linecache.getline(frames[-1].filename, frames[-1].lineno or 0).strip()
    return frames[-1].filename.startswith(OURS) and line.startswith("raise ")

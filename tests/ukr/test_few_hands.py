"""How many hands a fit goes through: the files whose functions it calls, and how deep calls go."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

import twofold
from twofold import UKR

ROOT = str(Path(twofold.__file__).parent)
DIGITS = load_digits().data[:200]


def hands_of(work: Callable[[], object]) -> tuple[set[str], int]:
    """Return the files of the library whose functions are called, and the most of them at once."""
    files: set[str] = set()
    deepest = 0

    def profile(frame, event, argument) -> None:
        nonlocal deepest
        if event != "call" or not frame.f_code.co_filename.startswith(ROOT):
            return
        files.add(frame.f_code.co_filename.removeprefix(ROOT + "/"))
        depth = 0
        while frame is not None:
            depth += frame.f_code.co_filename.startswith(ROOT)
            frame = frame.f_back
        deepest = max(deepest, depth)

    work()  # what is imported or compiled at first use is no part of the way
    before = sys.getprofile(), threading.getprofile()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before[0])
        threading.setprofile(before[1])
    return files, deepest


@pytest.fixture(scope="module")
def plain():
    return hands_of(lambda: UKR(max_iter=10, n_jobs=1, random_state=0).fit(DIGITS))


def test_a_fit_goes_through_few_files(plain):
    assert len(plain[0]) <= 34, sorted(plain[0])
    assert plain[1] <= 22


@pytest.mark.parametrize(
    "detour",
    ["trimming", "landmark_fitting", "adaptation", "smoothest", "projection", "feature_space"],
)
def test_only_those_who_ask_for_a_detour_take_it(plain, detour):
    assert f"ukr/{detour}.py" not in plain[0]


def test_opening_a_model_needs_no_training(tmp_path):
    UKR(max_iter=0, n_jobs=1, random_state=0).fit(DIGITS).save(tmp_path / "model.twofold")
    files, _ = hands_of(lambda: twofold.load(tmp_path / "model.twofold"))
    assert not {"ukr/training.py", "ukr/starts.py"} & files
    assert np.isfinite(twofold.load(tmp_path / "model.twofold").embedding_).all()

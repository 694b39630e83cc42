"""Tables whose squares leave the range of numbers are refused by all that looks at distances."""

from __future__ import annotations

import numpy as np
import pytest

from twofold import ManifoldClassifier, NadarayaWatson, upgrade
from twofold.metrics import dsre, neighborhood_hit, quantization_error, reconstruction_error
from twofold.selection import choose_dimension, compare, gp_evidence

ROWS = np.random.default_rng(0).normal(size=(30, 4))
FAR = np.where(np.arange(30)[:, None] == 7, 1e300, ROWS)
LABELS = np.arange(30) % 2

CALLS = {
    "dsre": lambda: dsre(FAR, ROWS),
    "neighborhood_hit": lambda: neighborhood_hit(FAR, LABELS),
    "quantization_error": lambda: quantization_error(FAR, ROWS[:3]),
    "reconstruction_error": lambda: reconstruction_error(FAR, ROWS),
    "compare": lambda: compare(FAR, ["pca"]),
    "choose_dimension": lambda: choose_dimension(FAR),
    "gp_evidence": lambda: gp_evidence(ROWS, FAR[:, :2]),
    "upgrade, picture": lambda: upgrade(FAR[:, :2], ROWS),
    "upgrade, rows": lambda: upgrade(ROWS[:, :2], FAR),
    "NadarayaWatson, rows": lambda: NadarayaWatson().fit(FAR, ROWS[:, 0]),
    "NadarayaWatson, targets": lambda: NadarayaWatson().fit(ROWS, FAR[:, 0]),
    "ManifoldClassifier": lambda: ManifoldClassifier().fit(FAR, LABELS),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_row_at_fault_is_named(name):
    with pytest.raises(ValueError, match=r"1 row\(s\) have entries beyond .*first: row 7"):
        CALLS[name]()

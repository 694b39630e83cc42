"""A file of a mixed table that was saved once opens for ever and answers as it did."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

import twofold

FILE = Path(__file__).parent.parent / "files" / "mixed" / "items_0_1.twofold"


def test_an_old_file_still_answers():
    model = twofold.load(FILE)
    found = model.inverse_transform(model.embedding_[:5])
    known = json.loads(FILE.with_suffix(".json").read_text())["data"]
    for name in ("length", "price", "visits"):
        np.testing.assert_allclose(found[name], [row[name] for row in known], rtol=1e-6)
    for name in ("colour", "size"):
        assert found[name].tolist() == [row[name] for row in known]
    assert [pd.Timestamp(row["when"]) for row in known] == found["when"].tolist()
    assert str(found["when"].dt.tz) == "Europe/Berlin"
    assert found["size"].dtype.ordered

"""Run every benchmark in one go: ``python -m benchmarks``."""

from __future__ import annotations

from benchmarks import (
    coranking,
    digits,
    engine_cells,
    engine_dense,
    evidence,
    startup,
    swiss_roll,
)
from benchmarks.report import show

for title, module in (
    ("Engine, dense", engine_dense),
    ("Engine, cells", engine_cells),
    ("Digits", digits),
    ("Swiss roll", swiss_roll),
    ("Evidence", evidence),
    ("Co-ranking", coranking),
    ("Start-up", startup),
):
    show(title, module.run())

"""Run every benchmark in one go: ``python -m benchmarks``."""

from __future__ import annotations

from benchmarks import digits, engine_cells, engine_dense, startup, swiss_roll
from benchmarks.report import show

for title, module in (
    ("Engine, dense", engine_dense),
    ("Engine, cells", engine_cells),
    ("Digits", digits),
    ("Swiss roll", swiss_roll),
    ("Start-up", startup),
):
    show(title, module.run())

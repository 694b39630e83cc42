"""Run every benchmark in one go: ``python -m benchmarks``."""

from __future__ import annotations

from benchmarks import (
    busy,
    coranking,
    digits,
    engine_cells,
    engine_dense,
    evidence,
    preimages,
    psom,
    psom_scattered,
    startup,
    swiss_roll,
    unn,
)
from benchmarks.report import show

for title, module in (
    ("Engine, dense", engine_dense),
    ("Engine, cells", engine_cells),
    ("Digits", digits),
    ("Swiss roll", swiss_roll),
    ("Evidence", evidence),
    ("Co-ranking", coranking),
    ("Pre-images", preimages),
    ("Latent sorting", unn),
    ("Inverse kinematics", psom),
    ("PSOM+ from scattered samples", psom_scattered),
    ("Start-up", startup),
    ("Busy machine", busy),
):
    show(title, module.run())

"""How much of the library its tests run: lines and branches, each with a target.

Read from the data that ``make coverage`` leaves: the default tests, and those of
``tests/interpreted.txt`` once more with compiled loops run as plain Python, since machine code
cannot be traced.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import coverage

TARGETS = {"lines": 95.0, "branches": 90.0}


def totals() -> dict[str, tuple[int, int]]:
    """Return how many lines and branches are run, and how many there are."""
    data = coverage.Coverage()
    data.load()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coverage.json"
        data.json_report(outfile=str(path))
        found = json.loads(path.read_text())["totals"]
    return {
        "lines": (found["covered_lines"], found["num_statements"]),
        "branches": (found["covered_branches"], found["num_branches"]),
    }


def main() -> int:
    """Print the shares; fail below a target."""
    missed = False
    for name, (run, there) in totals().items():
        share = 100 * run / there
        print(f"{name:9}{run:7} of {there:6}  {share:.1f} % (target {TARGETS[name]:.0f} %)")
        missed |= share < TARGETS[name]
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())

"""The main job, end to end: a map of handwritten digits that goes both ways.

The same as ``twofold demo``: see :mod:`twofold.cli.demo` for how it is done.

    python examples/digits_demo.py [folder]
"""

from __future__ import annotations

import sys
from pathlib import Path

from twofold.cli.demo import demo

if __name__ == "__main__":
    demo(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))

"""Small tables, and commands run inside the test's own process."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from twofold.cli.app import app

COLUMNS = ["length", "width", "height", "mass"]


def run(*words: object, stdin: str | None = None):
    """Run a command; the result has exit_code, stdout and stderr."""
    return CliRunner().invoke(app, [str(word) for word in words], input=stdin, prog_name="twofold")


def run_well(*words: object, stdin: str | None = None):
    """Run a command that must end well."""
    result = run(*words, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    return result


def run_json(*words: object) -> dict:
    """Run a command with --json and return its object."""
    lines = run_well(*words, "--json").stdout.splitlines()
    assert len(lines) == 1
    return json.loads(lines[0])


def refused(*words: object, code: int = 1) -> str:
    """Run a command that must fail, in the form errors have, and return what it says."""
    result = run(*words)
    assert result.exit_code == code, (result.stdout, result.stderr)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    body = result.stderr[result.stderr.index("error: ") :]
    assert body.count("error: ") == 1
    if "hint: " in body:
        assert "\n\nhint: " in body
    return result.stderr


def make_frame(n: int = 60) -> pd.DataFrame:
    """Return specimens on a curved sheet: an index, a text column, a label, four measurements."""
    rng = np.random.default_rng(0)
    u, v = rng.uniform(-1, 1, (2, n))
    noise = rng.normal(0, 0.02, (n, 4))
    Y = np.column_stack([u, v, u**2 - v, 1000 * np.sin(2 * u) + 500 * v]) + noise
    frame = pd.DataFrame(np.round(Y, 4), columns=COLUMNS)
    frame.insert(0, "species", np.where(u > 0, "long", "short"))
    frame.insert(1, "comment", [f"seen on day {2 * k // 3} of the year" for k in range(n)])
    frame.index = pd.Index([f"beetle{k:02d}" for k in range(n)], name="specimen")
    return frame


def write_csv(frame: pd.DataFrame, path: Path, **kwargs: object) -> Path:
    frame.to_csv(path, **kwargs)
    return path

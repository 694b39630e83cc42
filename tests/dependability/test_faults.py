"""Whatever happens to a command, the older file or the whole new one is there, and no litter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from dependability.faults import COMMANDS, KINDS, fault_of, try_faults
from dependability.report import findings

needs_root = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="faults need Linux and root, for mounts"
)


def cases_of(*commands: str) -> list[int]:
    """Return one case of every kind but the slow one for the commands."""
    numbers = range(len(KINDS) * len(COMMANDS))
    return [k for k in numbers if fault_of(k)[1] in commands and fault_of(k)[0] != "cache"]


def test_cases_go_through_every_kind_and_command():
    met = {fault_of(case) for case in range(len(KINDS) * len(COMMANDS))}
    assert met == {(kind, command) for kind in KINDS for command in COMMANDS}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of the process are Linux's")
def test_faults_that_need_no_root():
    cases = [k for k in cases_of("transform") if fault_of(k)[0] not in ("full disk", "folder")]
    script = (
        "import sys; from dependability.faults import try_faults; "
        "from dependability.report import conclude; "
        f"sys.exit(conclude('faults', try_faults({cases})))"
    )
    # A process of its own: it is forked, which wants one without threads.
    command, root = [sys.executable, "-c", script], Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"faults: {len(cases)} cases" in done.stdout


@pytest.mark.slow
@needs_root
def test_faults_of_every_kind():
    assert findings(try_faults(cases_of("transform", "explore"))) == []


@pytest.mark.slow
@needs_root
def test_every_fault_of_every_command():
    assert findings(try_faults(range(len(KINDS) * len(COMMANDS)))) == []

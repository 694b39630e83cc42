"""Whatever happens to a command, the older file or the whole new one is there, and no litter."""

from __future__ import annotations

import os
import sys

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
@needs_root
def test_faults_of_every_kind():
    assert findings(try_faults(cases_of("transform", "explore"))) == []


@pytest.mark.slow
@needs_root
def test_every_fault_of_every_command():
    assert findings(try_faults(range(len(KINDS) * len(COMMANDS)))) == []

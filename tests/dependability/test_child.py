"""Child processes find out what a case did to them."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
from dependability.child import CRASH, FINE, HANG, MEMORY, REFUSED, UNNAMED, try_cases
from dependability.report import conclude, findings

pytestmark = pytest.mark.slow


def misbehave(case: int) -> str:
    if case == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    if case == 2:
        time.sleep(60)
    if case == 6:
        while True:
            pass
    if case == 3:
        np.ones(2**29)
    if case == 4:
        raise KeyError("nobody expects this")
    return REFUSED if case == 5 else FINE


@pytest.fixture(scope="module")
def outcomes():
    cases = try_cases(misbehave, range(8), seconds=1.0, megabytes=512)
    return {outcome.case: outcome for outcome in cases}


def test_every_kind_of_end_is_told_apart(outcomes):
    verdicts = {case: outcome.verdict for case, outcome in outcomes.items()}
    assert verdicts == {
        0: FINE,
        1: CRASH,
        2: HANG,
        3: MEMORY,
        4: UNNAMED,
        5: REFUSED,
        6: HANG,
        7: FINE,
    }
    assert "SIGSEGV" in outcomes[1].detail
    assert "nobody expects this" in outcomes[4].detail


def test_findings_fail_the_command_and_are_printed(outcomes, capsys):
    assert [
        outcome.case for outcome in sorted(findings(outcomes.values()), key=lambda o: o.case)
    ] == [1, 2, 3, 4, 6]
    assert conclude("cases", outcomes.values()) == 1
    assert "case 1: crash signal SIGSEGV" in capsys.readouterr().out
    assert conclude("cases", [outcomes[0]]) == 0

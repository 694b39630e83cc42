"""Rounds of the same work leave nothing behind; `make soak` takes longer."""

from __future__ import annotations

import sys

import pytest
from dependability.soak import Growth, Sample, soak
from families import FAMILIES


def steady(n: int) -> list[Sample]:
    return [Sample(100.0 + (i % 3) / 10, 5, 9) for i in range(n)]


def test_what_grows_is_seen():
    assert Growth.of(steady(100)).is_flat()
    leaking = [Sample(s.megabytes + 0.02 * i, 5, 9) for i, s in enumerate(steady(100))]
    assert Growth.of(leaking).megabytes == pytest.approx(2.0, abs=0.1)
    assert not Growth.of(leaking).is_flat()
    assert not Growth.of([*steady(50), Sample(100.0, 6, 9)]).is_flat()
    assert not Growth.of([*steady(50), Sample(100.0, 5, 10)]).is_flat()


def test_warming_up_does_not_count():
    warming = [Sample(50.0 + 2 * i, i, i) for i in range(25)]
    assert Growth.of([*warming, *steady(60)]).is_flat()


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [6, 30])
@pytest.mark.skipif(sys.platform != "linux", reason="figures of the process come from /proc")
def test_rounds_leave_nothing_behind(rounds):
    quick = [family for family in FAMILIES if family.name in ("UKR-quartic", "UNN", "PSOM")]
    growth = Growth.of(list(soak(lambda number: number < rounds, quick)))
    assert growth.threads <= 0, growth
    assert growth.handles <= 0, growth
    assert growth.megabytes < 20 or rounds < 30, growth

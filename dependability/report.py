"""What a long run says at its end: how many cases, how they went, and every finding."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterable

from dependability.child import FINDINGS, Outcome


def numbers_from_command_line(description: str, count: int) -> list[int]:
    """Return the case numbers that a command asks for: ``--count`` from ``--first`` on."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--count", type=int, default=count, help=f"how many cases ({count})")
    parser.add_argument("--first", type=int, default=0, help="number of the first case (0)")
    given = parser.parse_args()
    return list(range(given.first, given.first + given.count))


def conclude(title: str, outcomes: Iterable[Outcome]) -> int:
    """Print the findings as they come and the counts at the end; return the exit status."""
    began, counts = time.monotonic(), Counter[str]()
    for outcome in outcomes:
        counts[outcome.verdict] += 1
        if outcome.verdict in FINDINGS:
            print(f"case {outcome.case}: {outcome.verdict} {outcome.detail}", flush=True)
    print(f"{title}: {sum(counts.values())} cases in {time.monotonic() - began:.0f} s")
    for verdict, count in sorted(counts.items()):
        print(f"  {count:7} {verdict}")
    return int(any(counts[verdict] for verdict in FINDINGS))


def findings(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the outcomes that should not be; for tests."""
    return [outcome for outcome in outcomes if outcome.verdict in FINDINGS]

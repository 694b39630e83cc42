"""A benchmark is a list of rows: what was measured, and what it has to reach."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table


@dataclass(frozen=True)
class Row:
    """One figure with its target; ``at_most`` False means larger is better."""

    name: str
    measured: float
    target: float | None = None
    at_most: bool = True

    @property
    def verdict(self) -> str:
        """Say whether the target is met."""
        if self.target is None:
            return ""
        met = self.measured <= self.target if self.at_most else self.measured >= self.target
        return "met" if met else "MISSED"


def best_time(work: Callable[[], object], repeats: int = 5) -> float:
    """Return the shortest of several wall times, in seconds, after one call to warm up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def show(title: str, rows: list[Row]) -> None:
    """Print a table of rows."""
    table = Table(title=title, title_justify="left")
    table.add_column("what")
    table.add_column("measured", justify="right")
    table.add_column("target", justify="right")
    table.add_column("")
    for row in rows:
        sign = "≤" if row.at_most else "≥"
        target = "" if row.target is None else f"{sign} {row.target:g}"
        table.add_row(escape(row.name), f"{row.measured:.4g}", target, row.verdict)
    Console(width=110).print(table)

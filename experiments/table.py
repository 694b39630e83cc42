"""Printing reported beside measured figures."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table


def spread(values: list[float], digits: int = 3) -> str:
    """Write values as mean ± standard deviation."""
    return f"{np.mean(values):.{digits}g} ± {np.std(values):.{digits - 1}g}"


def middle(values: list[float], digits: int = 3) -> str:
    """Write values as median with the smallest and the largest."""
    low, centre, high = np.quantile(values, [0, 0.5, 1])
    return f"{centre:.{digits}g} ({low:.{digits}g} to {high:.{digits}g})"


def show(title: str, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a table."""
    table = Table(title=title, title_justify="left")
    for name in header:
        table.add_column(name)
    for row in rows:
        table.add_row(*row)
    Console(width=110).print(table)

"""What stands along an axis whose values are no plain numbers.

Days since 1970 are written as dates, seconds as durations, and the logarithms and the like by which
a column of a mixed table is seen as the amounts of the table.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axis import Axis
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.ticker import FuncFormatter, Locator, MaxNLocator

from twofold.array_types import FloatArray

Ticks = Callable[[Axis], None]

UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))
# Shorter spans are written in seconds, too.
SPAN_OF_UNIT = 2.0
MOST_TICKS = 6
# An axis is halved so often to find the place of an amount.
HALVINGS = 50
# Of an axis, what is nearer to 0 is 0.
ROUNDING = 1e-9


def show_dates(axis: Axis) -> None:
    """Write dates along an axis of days since 1970."""
    locator = AutoDateLocator()
    axis.set_major_locator(locator)
    axis.set_major_formatter(ConciseDateFormatter(locator))


def show_durations(axis: Axis) -> None:
    """Write durations along an axis of seconds."""
    axis.set_major_locator(_Durations(MOST_TICKS, steps=[1, 2, 3, 5, 6, 10]))
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: _duration(value, _unit(np.ptp(axis.get_view_interval()))))
    )


def show_amounts(column: Any, axis: Axis) -> None:
    """Write the amounts of a column along an axis of its feature."""

    def text(value: float, _: Any) -> str:
        amount = float(column.numbers(np.array([[value]]))[0])
        if column.kind != "log":
            ends = column.numbers(np.array(axis.get_view_interval())[:, None])
            amount = 0.0 if abs(amount) < ROUNDING * np.ptp(ends) else amount
        if column.type.form == "duration":
            return _duration(amount, _unit(abs(amount)))
        return f"{float(f'{amount:.6g}'):.10g}"

    axis.set_major_locator(_Amounts(column))
    axis.set_major_formatter(FuncFormatter(text))


def ticks_of(column: Any) -> Ticks | None:
    """Return how the first feature of a column is written, None for plain numbers."""
    if column.kind == "date":
        return show_dates
    if not hasattr(column, "numbers"):
        return None
    if column.kind != "number":
        return partial(show_amounts, column)
    return show_durations if column.type.form == "duration" else None


def _unit(span: float) -> tuple[float, str]:
    """Return the unit in which durations over a span of seconds are read."""
    return next((unit for unit in UNITS if span >= SPAN_OF_UNIT * unit[0]), UNITS[-1])


def _duration(seconds: float, unit: tuple[float, str]) -> str:
    return f"{seconds / unit[0]:.4g} {unit[1]}"


class _Durations(MaxNLocator):
    """Round numbers of days, hours, minutes or seconds."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Return where ticks are between two ends."""
        size, _ = _unit(abs(vmax - vmin))
        return np.asarray(super().tick_values(vmin / size, vmax / size)) * size


class _Amounts(Locator):
    """Round amounts about evenly along the scale of a column."""

    def __init__(self, column: Any) -> None:
        self.column = column

    def __call__(self) -> Any:
        """Return where ticks are."""
        return self.tick_values(*self.axis.get_view_interval())  # type: ignore[union-attr]

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Return where ticks are between two ends."""
        low, high = min(vmin, vmax), max(vmin, vmax)
        even = self.column.numbers(np.linspace(low, high, MOST_TICKS)[:, None])
        rounded = _rounded(even, is_whole=self.column.is_whole)
        wanted = rounded[(rounded >= even[0]) & (rounded <= even[-1])]
        below, above = np.full(len(wanted), low), np.full(len(wanted), high)
        for _ in range(HALVINGS):
            middle = (below + above) / 2
            is_less = self.column.numbers(middle[:, None]) < wanted
            below, above = np.where(is_less, middle, below), np.where(is_less, above, middle)
        return (below + above) / 2


def _rounded(amounts: FloatArray, *, is_whole: bool) -> FloatArray:
    """Return rising amounts with as few digits as tell each from its neighbours."""
    gaps = np.diff(amounts)
    nearest = np.minimum(np.append(gaps, np.inf), np.insert(gaps, 0, np.inf))
    known = nearest > 0
    step = 10.0 ** np.floor(np.log10(nearest[known]))
    step = np.maximum(step, 1.0) if is_whole else step
    return np.asarray(np.unique(np.rint(amounts[known] / step) * step))

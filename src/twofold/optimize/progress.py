"""A progress bar for runs that last, as a callback.

Nothing is drawn, and nothing imported, before a run has lasted two seconds. In a terminal there is
then one line on standard error that goes away when the run ends; elsewhere (a log file, a batch
job) a plain line is written every ten seconds. The time left is what the recent pace would need for
the most iterations there can be, so it is announced as an upper bound: the run may end before.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from twofold.optimize.solution import Event

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

SECONDS_BEFORE_BAR = 2.0
SECONDS_BETWEEN_DRAWINGS = 0.1
SECONDS_BETWEEN_LINES = 10.0
# The pace is that of the last iterations: stages of a continuation need not be equally fast.
PACE_WINDOW = 20


class ProgressBar:
    """Draw the progress of a run on standard error once it has lasted two seconds.

    `minimize` and `continue_through` open and close it themselves. Used in a ``with`` statement it
    stays open for all runs within, and its two seconds are counted from there. It draws on
    ``console``, by default on standard error; ``clock()`` is the time in seconds.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.optimize import ProgressBar, minimize
    >>> class Bowl:
    ...     def value_and_grad(self, X):
    ...         return float((X**2).sum()), 2 * X
    >>> minimize(Bowl(), np.ones((1, 2)), callbacks=[ProgressBar()]).value < 1e-6
    True
    """

    def __init__(
        self, *, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._clock = clock
        self._depth = 0
        self._reset()

    def _reset(self) -> None:
        now = self._clock()
        self._started = now
        self._last_drawing = now
        self._pace: deque[tuple[float, int]] = deque([(now, 0)], maxlen=PACE_WINDOW + 1)
        self._bar: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> ProgressBar:
        if self._depth == 0:
            self._reset()
        self._depth += 1
        return self

    def __exit__(self, *raised: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._bar is not None:
            progress, _ = self._bar
            self._bar = None
            progress.stop()

    def __call__(self, event: Event) -> None:
        """Take note of an iteration and draw it if it is time to."""
        now = self._clock()
        if event.iteration <= self._pace[-1][1]:
            # A new run within the same ``with`` counts from one again.
            self._pace.clear()
        self._pace.append((now, event.iteration))
        if now - self._started < SECONDS_BEFORE_BAR:
            return
        console = self._opened_console()
        if console.is_terminal and not console.is_dumb_terminal:
            self._draw(console, event, now)
        elif now - self._last_drawing >= SECONDS_BETWEEN_LINES:
            self._last_drawing = now
            parts = (event.label, _count(event), self._note(event))
            console.print(
                "  ".join(part for part in parts if part),
                markup=False,
                highlight=False,
                soft_wrap=True,
            )

    def _opened_console(self) -> Console:
        if self._console is None:
            from rich.console import Console

            self._console = Console(stderr=True)
        return self._console

    def _draw(self, console: Console, event: Event, now: float) -> None:
        """Bring the line in the terminal up to date."""
        if self._bar is not None and now - self._last_drawing < SECONDS_BETWEEN_DRAWINGS:
            return
        self._last_drawing = now
        if self._bar is None:
            self._bar = _open_bar(console, self._clock)
        progress, task = self._bar
        progress.update(
            task,
            description=event.label or "fitting",
            total=event.max_iter,
            completed=event.iteration,
            count=_count(event),
            note=self._note(event),
        )
        progress.refresh()

    def _note(self, event: Event) -> str:
        """Say the value and the time left."""
        left = self._seconds_left(event)
        words = [] if math.isnan(event.value) else [f"value {event.value:.6g}"]
        if left is not None:
            words.append(f"at most {_minutes(left)} left")
        return "  ".join(words)

    def _seconds_left(self, event: Event) -> float | None:
        """Return what the recent pace needs for all iterations there can be, if that is known."""
        (earlier, first), (now, last) = self._pace[0], self._pace[-1]
        if event.max_iter is None or last <= first:
            return None
        return (now - earlier) / (last - first) * (event.max_iter - event.iteration)


def _open_bar(console: Console, clock: Callable[[], float]) -> tuple[Progress, TaskID]:
    """Start an empty bar; without a drawing thread, so that an interrupt leaves nothing behind."""
    from rich.progress import BarColumn, Progress, TextColumn

    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[count]}", markup=False),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        auto_refresh=False,
        transient=True,
        get_time=clock,
    )
    task = progress.add_task("", total=None, count="", note="")
    progress.start()
    return progress, task


def _count(event: Event) -> str:
    """Say how many iterations were made, or what else is counted, of how many at most."""
    most = "" if event.max_iter is None else f"/{event.max_iter}"
    return f"{event.unit} {event.iteration}{most}"


def _minutes(seconds: float) -> str:
    """Write seconds as ``m:ss`` or ``h:mm:ss``, rounded up: the bound must hold."""
    minutes, rest = divmod(-int(-seconds // 1), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"

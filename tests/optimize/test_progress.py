from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest
from optimize.problems import Rosenbrock, Spoilt, interrupt
from rich.console import Console

from twofold.optimize import Event, ProgressBar, Stage, continue_through, minimize


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def console(is_terminal, kind="xterm"):
    return Console(
        file=io.StringIO(),
        force_terminal=is_terminal,
        width=100,
        color_system=None,
        legacy_windows=False,
        _environ={"TERM": kind},
    )


def event(iteration, max_iter=100, label="spiral", value=0.123456789):
    return Event(iteration, max_iter, value, np.zeros((1, 1)), 0.0, label)


def play(bar, clock, seconds, n_events, first=1, **changes):
    """Send events at a steady pace."""
    for iteration in range(first, first + n_events):
        clock.now += seconds
        bar(event(iteration, **changes))


@pytest.fixture
def clock():
    return Clock()


def test_a_short_run_draws_nothing(clock):
    screen = console(True)
    with ProgressBar(console=screen, clock=clock) as bar:
        play(bar, clock, 0.19, 10)
    assert screen.file.getvalue() == ""


def test_a_longer_run_shows_label_iteration_value_and_time_left(clock):
    screen = console(True)
    with ProgressBar(console=screen, clock=clock) as bar:
        play(bar, clock, 0.5, 3)
        assert screen.file.getvalue() == ""
        play(bar, clock, 0.5, 1, first=4)
        # 96 iterations are left at 0.5 s each.
        text = screen.file.getvalue()
        for part in ("spiral", "iteration 4/100", "value 0.123457", "at most 0:48 left"):
            assert part in text


def test_the_time_left_follows_the_recent_pace(clock):
    screen = console(True)
    with ProgressBar(console=screen, clock=clock) as bar:
        play(bar, clock, 1.0, 30)
        play(bar, clock, 4.0, 20, first=31)
    # 50 iterations are left at 4 s each.
    assert screen.file.getvalue().rindex("at most 3:20 left") > screen.file.getvalue().rindex("49/")


def test_time_before_a_run_does_not_count(clock):
    bar = ProgressBar(console=(screen := console(True)), clock=clock)
    clock.now += 3600  # made long before it is used
    with bar:
        play(bar, clock, 0.1, 5)
    assert not screen.file.getvalue()


def test_hours_are_written_out(clock):
    screen = console(True)
    with ProgressBar(console=screen, clock=clock) as bar:
        play(bar, clock, 2.0, 1, max_iter=2001)
    assert "at most 1:06:40 left" in screen.file.getvalue()


def test_no_time_is_promised_where_nobody_can_know(clock):
    screen = console(True)
    with ProgressBar(console=screen, clock=clock) as bar:
        play(bar, clock, 1.0, 5, max_iter=None)
    assert "iteration 5 " in screen.file.getvalue()
    assert "left" not in screen.file.getvalue()


def test_drawing_is_not_done_more_than_ten_times_a_second(clock):
    screen = console(True)
    with ProgressBar(console=screen, clock=clock) as bar:
        play(bar, clock, 2.0, 1)
        play(bar, clock, 0.001, 90, first=2)
        assert "iteration 1/" in screen.file.getvalue()
        assert "iteration 80/" not in screen.file.getvalue()


def test_the_line_goes_away_and_the_cursor_comes_back(clock):
    screen = console(True)
    with ProgressBar(console=screen, clock=clock) as bar:
        play(bar, clock, 1.0, 5)
        assert "\x1b[?25l" in screen.file.getvalue()
        assert "\x1b[?25h" not in screen.file.getvalue()
    # Show the cursor; erase the line.
    assert "\x1b[?25h" in screen.file.getvalue()
    assert screen.file.getvalue().endswith("\x1b[2K")


def test_plain_lines_every_ten_seconds_where_there_is_no_terminal(clock):
    screen = console(False)
    with ProgressBar(console=screen, clock=clock) as bar:
        play(bar, clock, 1.0, 25)
    assert screen.file.getvalue().splitlines() == [
        "spiral  iteration 10/100  value 0.123457  at most 1:30 left",
        "spiral  iteration 20/100  value 0.123457  at most 1:20 left",
    ]


def test_labels_are_not_read_as_markup(clock):
    screen = console(False)
    with ProgressBar(console=screen, clock=clock) as bar:
        play(bar, clock, 10.0, 1, label="box [0.5]")
        play(bar, clock, 10.0, 1, label="")
    assert screen.file.getvalue().splitlines()[0].startswith("box [0.5]  iteration 1")
    assert screen.file.getvalue().splitlines()[1].startswith("iteration 1")


def test_an_outer_with_keeps_the_bar_open_over_several_runs(clock):
    screen = console(True)
    bar = ProgressBar(console=screen, clock=clock)
    with bar:
        for max_iter in (100, 200):
            with bar:
                play(bar, clock, 1.0, 3, max_iter=max_iter)
            assert "\x1b[?25h" not in screen.file.getvalue()
    assert "\x1b[?25h" in screen.file.getvalue()
    # The third iteration of the second run: the pace is still 1 s, and 197 are left.
    assert "at most 3:17 left" in screen.file.getvalue()


class Slow:
    """Rosenbrock's function at one second an evaluation."""

    def __init__(self, clock):
        self.clock = clock

    def value_and_grad(self, X):
        self.clock.now += 1.0
        return Rosenbrock().value_and_grad(X)


def test_minimize_opens_and_closes_the_bar_also_after_an_interrupt(clock):
    for act in (interrupt, None):
        screen = console(True)
        objective = Slow(clock) if act is None else Spoilt(Slow(clock), 7, act)
        bar = ProgressBar(console=screen, clock=clock)
        minimize(objective, np.array([[-1.2, 1.0]]), max_iter=10, callbacks=[bar], label="run")
        assert "run" in screen.file.getvalue()
        assert screen.file.getvalue().endswith("\x1b[2K")


def test_a_continuation_shows_its_stages_on_one_bar(clock):
    screen = console(True)
    stages = [Stage(Slow(clock), label=label, max_iter=5) for label in ("wide", "narrow")]
    bar = ProgressBar(console=screen, clock=clock)
    continue_through(stages, np.array([[-1.2, 1.0]]), method="rprop", callbacks=[bar])
    text = screen.file.getvalue()
    assert "wide" in text
    assert "iteration 10/10" in text
    assert text.count("\x1b[?25h") == 1


def test_rich_is_not_imported_before_it_is_needed():
    code = "import sys, twofold.optimize as o; o.ProgressBar(); sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_terminal_that_cannot_redraw_gets_lines(clock):
    screen = console(True, kind="dumb")
    with ProgressBar(console=screen, clock=clock) as bar:
        play(bar, clock, 1.0, 12)
    lines = screen.file.getvalue().splitlines()
    assert len(lines) == 1
    assert "iteration 10/100" in lines[0]

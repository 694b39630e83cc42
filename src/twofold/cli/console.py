"""What the command line says, where it says it, and what it says of errors.

Standard output carries data, the path of a result, or with ``--json`` one JSON object. Standard
error carries everything meant for a person: what is being done, progress, warnings, errors. So the
output of a command can always be piped on.
"""

from __future__ import annotations

import difflib
import errno
import json
import math
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from twofold.checks.harmless_text import for_terminal
from twofold.cli import INTERRUPTED

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

SECONDS_BEFORE_BAR, SECONDS_BETWEEN_LINES = 1.0, 10.0
NAMES_IN_A_LINE = 8
LONGEST_CELL = 40
TRACEBACK_VARIABLE = "TWOFOLD_TRACEBACK"

# Messages of the library speak of parameters; people at a terminal know the options.
OPTIONS = {
    "`n_components`": "--dimensions",
    "`landmarks`": "--landmarks",
    "`max_iter`": "--max-iter",
    "`degree`": "--degree",
    "`image_shape`": "--image-shape",
    "`n_samples`": "--samples",
    "max_mb": "--max-mb",
    "by `complete`": "with: twofold complete",
    "e.g. by twofold.Scaled": "with --scale standard",
}

# Which extra brings a package.
EXTRAS = {
    "matplotlib": "plot",
    "pyarrow": "tables",
    "dask": "distributed",
    "distributed": "distributed",
}


class CommandError(Exception):
    """What ends a command, in words for the user: what is wrong, and what to do about it."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class Interrupted(CommandError):  # noqa: N818 - no mistake of anybody
    """Ctrl-C, with what was being done."""

    exit_code = INTERRUPTED


class UsageError(CommandError):
    """A command line that no table and no model could make right."""

    exit_code = 2


class Console:
    """How one command talks: with nothing but errors, or with its result as one JSON object."""

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet, self.as_json = quiet, as_json

    def say(self, text: str = "") -> None:
        """Tell the user what is going on."""
        if not self.quiet:
            _print("", "", text)

    def warn(self, text: str) -> None:
        """Tell the user what looks wrong but does not stop the command."""
        if not self.quiet:
            _print("warning: ", "bold yellow", text)

    def finish(self, result: str, facts: dict[str, Any]) -> None:
        """Write the result to standard output, or the facts with --json; "" and "-" are silent."""
        if self.as_json:
            write_line(json.dumps(plain(facts), ensure_ascii=False, allow_nan=False))
        elif result not in ("", "-"):
            write_line(result)

    @contextmanager
    def warnings_shown(self) -> Iterator[None]:
        """Show Python's warnings as lines of this console, without file names and code."""
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: self.warn(str(message))
            yield

    @contextmanager
    def counting_rows(self, expected: Callable[[], int | None]) -> Iterator[Callable[[int], None]]:
        """Yield what draws the progress when told of rows; `expected()` is how many there are."""
        if self.quiet:
            yield lambda rows: None
            return
        stream, bar = _error_stream(), None
        if stream.is_terminal:
            from rich.progress import BarColumn, Progress, TextColumn

            count = TextColumn("{task.fields[count]}", markup=False)
            columns = (TextColumn("rows"), BarColumn(bar_width=20), count)
            bar = Progress(*columns, console=stream, transient=True, auto_refresh=False)
            task = bar.add_task("", total=None, count="")
        started = last = time.monotonic()
        done = 0

        def advance(rows: int) -> None:
            nonlocal done, last
            done += rows
            now, total = time.monotonic(), expected()
            words = _count(done, total, now - started)
            if bar is None:
                if now - last >= SECONDS_BETWEEN_LINES:  # for logs
                    last = now
                    self.say(words)
            elif now - started > SECONDS_BEFORE_BAR:
                bar.update(task, total=total, completed=done, count=words)
                bar.start()
                bar.refresh()

        try:
            yield advance
        finally:
            if bar is not None:
                bar.stop()


def show_error(message: str, hint: str | None = None) -> None:
    """Write an error, and what to do about it, to standard error."""
    _print("error: ", "bold red", message)
    if hint:
        _print("", "", "")
        _print("hint: ", "bold cyan", hint)


def write_line(text: str) -> None:
    """Write a line of the result."""
    sys.stdout.write(for_terminal(text) + "\n")


def plain(value: Any) -> Any:
    """Return a value as JSON knows it; a number that is not finite becomes None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def listed(names: Iterable[object], most: int = NAMES_IN_A_LINE) -> str:
    """Return names in quotes, the first few of many."""
    texts = [f"'{name}'" for name in names]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def did_you_mean(name: str, known: Iterable[str], most: int = 3) -> str:
    """Return a question with the known names most like a wrong one, '' if none is."""
    close = difflib.get_close_matches(name, list(known), n=most, cutoff=0.6)
    return f"Did you mean {listed(close)}?" if close else ""


def counted(number: int, noun: str) -> str:
    """Return "1 row", "2 rows", "1,617 rows"."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _error_stream() -> RichConsole:
    """Return a console for standard error as it is now; it honours NO_COLOR by itself."""
    from rich.console import Console as RichConsole

    return RichConsole(stderr=True)


def _print(lead: str, style: str, text: str) -> None:
    """Print text to standard error as it is: names may hold brackets, logs must not be wrapped."""
    from rich.text import Text

    line = Text.assemble((lead, style), for_terminal(text))
    _error_stream().print(line, soft_wrap=True, highlight=False)


def _count(done: int, total: int | None, elapsed: float) -> str:
    """Return the rows done, their rate, and what share of all they are and how long is left."""
    rate = done / max(elapsed, 1e-9)
    words = f"{done:,} rows, {rate:,.0f} a second"
    if not total:
        return words
    left = max(0, total - done) / max(rate, 1e-9)
    return f"{min(100, 100 * done // total)} %, {words}, {_duration(left)} left"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


# ---- errors -------------------------------------------------------------------------------------


def _was_interrupted(error: BaseException | None) -> bool:
    """Say whether Ctrl-C ended the command, if only by way of an error that it led to.

    Compiled code of others turns it into errors of its own, such as a SystemError.
    """
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
            return True  # an Abort is what the parser makes of it
        error = error.__cause__ or error.__context__
    return False


def explain(error: Exception) -> tuple[str, str | None, int]:
    """Return message, hint and exit code for an error."""
    if isinstance(error, CommandError):
        return str(error), error.hint, error.exit_code
    # What the parser of the command line raises has no public base class in common.
    format_message = getattr(error, "format_message", None)
    if format_message is not None:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "twofold"
        message = str(format_message()).replace("Value error, ", "")
        return message, f"{command} --help shows how.", getattr(error, "exit_code", 2)
    if _was_interrupted(error):
        return "Interrupted; nothing was changed.", None, INTERRUPTED
    hint: str | None
    if isinstance(error, ModuleNotFoundError):
        hint = f"pip install {error.name}"
        if extra := EXTRAS.get((error.name or "").split(".")[0]):
            from twofold.checks.installing import install_command

            hint = f"Install what this needs with: {install_command(extra)}"
        return f"The package {error.name} is needed for this, but not installed.", hint, 1
    if isinstance(error, ImportError):
        return (
            f"A part of the program cannot be loaded: {error}.",
            "There may be too little memory for it, or the installation may be damaged.",
            1,
        )
    if isinstance(error, OSError):
        return _explain_file_error(error)
    if isinstance(error, MemoryError) or str(error) == "can't start new thread":
        return (
            f"There is not enough memory for this{f' ({error})' if str(error) else ''}.",
            "Ask for less (rows, steps, nodes, columns), close other programs, or fit with "
            "--landmarks auto.",
            1,
        )
    if isinstance(error, ValueError | TypeError):
        hint = getattr(error, "hint", None)
        if hasattr(error, "cell"):  # of a number column
            hint = (
                f"If it stands for a missing value, say so with {missing_option(error.cell)}; "
                "otherwise correct the cell or leave the column out."
            )
        return in_options(str(error)), hint, 1
    return (
        f"Something unexpected happened ({type(error).__name__}: {error}).",
        f"This is a bug in twofold. Run the command again with {TRACEBACK_VARIABLE}=1 in the "
        "environment to see where, and report what it shows.",
        1,
    )


def _explain_file_error(error: OSError) -> tuple[str, str | None, int]:
    if error.strerror is None:  # raised by the library, with a sentence of its own
        return str(error), None, 1
    no_right = "Choose another place with -o, or get permission to read or write there."
    hints = {
        errno.EACCES: no_right,
        errno.EPERM: no_right,
        errno.EROFS: "Choose another place with -o.",
        errno.ENOSPC: "Free some space, or choose another place with -o.",
    }
    place = f"'{error.filename}': " if error.filename else ""
    return f"{place}{error.strerror}.", hints.get(error.errno or 0), 1


def missing_option(text: str) -> str:
    """Return the option that counts cells with a text as missing."""
    return f"--missing {shlex.quote(text[:LONGEST_CELL])}"


def in_options(message: str) -> str:
    """Return a message of the library with options in place of parameters."""
    for parameter, option in OPTIONS.items():
        message = message.replace(parameter, option)
    return message

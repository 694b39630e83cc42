"""Errors as sentences: what a command ends with, whatever was raised inside."""

from __future__ import annotations

import errno
import os
import sys
import traceback

from twofold.cli import INTERRUPTED
from twofold.cli.console import CommandError, show_error

TRACEBACK_VARIABLE = "TWOFOLD_TRACEBACK"
READER_LEFT = 141  # 128 + SIGPIPE

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
PLOT_HINT = "Install what draws pictures with: pip install 'twofold[plot]'"


def report(error: Exception) -> int:
    """Write an error for a person to standard error and return the exit code."""
    if os.environ.get(TRACEBACK_VARIABLE, "0") not in ("", "0"):
        traceback.print_exception(error, file=sys.stderr)
    message, hint, code = explain(error)
    show_error(message, hint)
    return code


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
    if type(error).__name__ == "Abort":  # what the parser makes of Ctrl-C
        return "Interrupted; nothing was changed.", None, INTERRUPTED
    if isinstance(error, ModuleNotFoundError):
        hint = PLOT_HINT if error.name == "matplotlib" else f"pip install {error.name}"
        return f"The package {error.name} is needed for this, but not installed.", hint, 1
    if isinstance(error, ImportError):
        return (
            f"A part of the program cannot be loaded: {error}.",
            "There may be too little memory for it, or the installation may be damaged.",
            1,
        )
    if isinstance(error, OSError):
        return _explain_file_error(error)
    if isinstance(error, MemoryError):
        return (
            f"There is not enough memory for this{f' ({error})' if str(error) else ''}.",
            "Ask for less (rows, steps, nodes, columns), close other programs, or fit with "
            "--landmarks auto.",
            1,
        )
    if isinstance(error, ValueError | TypeError):
        return in_options(str(error)), getattr(error, "hint", None), 1
    return (
        f"Something unexpected happened ({type(error).__name__}: {error}).",
        f"This is a mistake in twofold. Run the command again with {TRACEBACK_VARIABLE}=1 in the "
        "environment to see where, and report what it shows.",
        1,
    )


def _explain_file_error(error: OSError) -> tuple[str, str | None, int]:
    hints = {
        errno.EACCES: "Choose another place with -o, or ask for the right to read or write there.",
        errno.EPERM: "Choose another place with -o, or ask for the right to read or write there.",
        errno.EROFS: "Choose another place with -o.",
        errno.ENOSPC: "Free some space, or choose another place with -o.",
    }
    if error.strerror is None:  # raised by the library, with a sentence of its own
        return str(error), None, 1
    place = f"'{error.filename}': " if error.filename else ""
    return f"{place}{error.strerror}.", hints.get(error.errno or 0), 1


def in_options(message: str) -> str:
    """Return a message of the library with options in place of parameters."""
    for parameter, option in OPTIONS.items():
        message = message.replace(parameter, option)
    return message

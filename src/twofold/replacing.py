"""Files that appear whole or not at all: of models, tables, pages and fits that may be broken off.

A file, of a model or of a table, is written under another name in the folder of its target and then
moved into place, so that an interrupted save leaves an older file of that name as it was. A process
that is killed leaves the other name behind; the next save to the same target removes it. So that it
never removes what another save is writing at that moment, every save holds a shared lock on the
folder, and leftovers are removed only under an exclusive one; the system drops the locks of a
killed process.
"""

import contextlib
import importlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

_TOKEN_BYTES = 4
_MAX_NAME = 100  # characters of the target's name in the other name: file systems allow about 255


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of an empty file that takes the place of ``path`` when the block ends well.

    On any exception, an interrupt from the keyboard included, the new file is removed, and at the
    next save what a killed process left. A link stays a link, and the permissions of an older file
    are kept. An OSError says that there is no such folder, or that ``path`` is none of a file's: a
    folder, a device, a pipe or a link that leads to itself.
    """
    target = file_to_replace(path)
    start = _start_of_partial(target)
    with _lock_after_cleaning(target.parent, start):
        partial = target.parent / f"{start}{secrets.token_hex(_TOKEN_BYTES)}"
        try:
            partial.touch(exist_ok=False)
            # Taken before the writing: some writers make files that only their owner can read.
            mode = stat.S_IMODE((target if target.exists() else partial).stat().st_mode)
            yield partial
            with partial.open("rb+") as file:
                os.fsync(file.fileno())
            partial.chmod(mode)
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)


def file_to_replace(path: str | os.PathLike[str]) -> Path:
    """Return the file that `replacing` would replace; an OSError says why there can be none."""
    try:
        target = Path(path).resolve()  # a link stays a link: the file it points to is replaced
    except RuntimeError as error:  # what Python 3.11 and 3.12 say of links in a circle
        raise OSError(f"'{path}' is a link that leads to itself; name a file.") from error
    if target.parent.exists() and not target.parent.is_dir():
        raise NotADirectoryError(f"'{target.parent}' is a file, not a folder; name another.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"The folder '{target.parent}' does not exist; create it first.")
    if target.is_dir():
        raise IsADirectoryError(f"'{path}' is a folder; name a file in it.")
    if target.exists() and not target.is_file():
        raise OSError(f"'{path}' is a device or a pipe, which is not replaced; name a file.")
    return target


def _start_of_partial(target: Path) -> str:
    return f".{target.name[:_MAX_NAME]}.partial-"


def remove_file(path: str | os.PathLike[str]) -> None:
    """Remove a file that `replacing` wrote, if it is there, and what killed processes left."""
    target = Path(path).resolve()
    target.unlink(missing_ok=True)
    if target.parent.is_dir():
        with _lock_after_cleaning(target.parent, _start_of_partial(target)):
            pass


@contextlib.contextmanager
def _lock_after_cleaning(folder: Path, start: str) -> Iterator[None]:
    """Hold the lock of a save, having removed leftovers if no other save is under way."""
    with contextlib.ExitStack() as stack:
        # Not all systems have such locks, and not all folders can be read: then leftovers stay.
        with contextlib.suppress(OSError, ImportError):
            locks = importlib.import_module("fcntl")
            descriptor = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            with contextlib.suppress(BlockingIOError):
                locks.flock(descriptor, locks.LOCK_EX | locks.LOCK_NB)
                _remove_leftovers(folder, start)
            locks.flock(descriptor, locks.LOCK_SH)
        yield


def _remove_leftovers(folder: Path, start: str) -> None:
    leftover = re.compile(re.escape(start) + f"[0-9a-f]{{{2 * _TOKEN_BYTES}}}")
    for name in os.listdir(folder):
        if leftover.fullmatch(name):
            with contextlib.suppress(OSError):
                os.unlink(folder / name)

"""Files that appear whole or not at all.

A file is written under another name in the folder of its target and then moved into place, so
that an interrupted save leaves an older file of that name as it was.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

_MAX_NAME = 100  # characters of the target's name in the other name: file systems allow about 255


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of an empty file that takes the place of ``path`` when the block ends well.

    On any exception, an interrupt from the keyboard included, the new file is removed. A link
    stays a link, and the permissions of an older file are kept.

    Raises
    ------
    FileNotFoundError
        If the folder does not exist.
    IsADirectoryError
        If ``path`` is a folder.
    """
    target = Path(path).resolve()  # a link stays a link: the file it points to is replaced
    if not target.parent.is_dir():
        raise FileNotFoundError(f"The folder '{target.parent}' does not exist; create it first.")
    if target.is_dir():
        raise IsADirectoryError(f"'{path}' is a folder; name a file in it.")
    partial = target.parent / f".{target.name[:_MAX_NAME]}.partial-{secrets.token_hex(4)}"
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

"""Tables within a file: ``book.xlsx:Sheet2``, ``cells.h5ad:layers/counts``.

Of AnnData files also embeddings, ``cells.h5ad:obsm/X_pca``. Light, for
commands that only look at names of files.
"""

import re

_WITH_PART = re.compile(r"(?P<file>.+\.(?:h5ad|xlsx|xlsm)):(?P<part>[^:]+)", re.IGNORECASE)


def split_part(path: str) -> tuple[str, str | None]:
    """Return the path of a file, and which part of it is meant, None for the usual one."""
    found = _WITH_PART.fullmatch(path)
    return (path, None) if found is None else (found["file"], found["part"])

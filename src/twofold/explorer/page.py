"""One HTML file: template, style, scripts and payload joined.

The scripts are modules without a build step. They are joined in the order of their imports, less
the words ``import … from "./x.js"`` and ``export``: a file opened from disk may load no others.
"""

from __future__ import annotations

import html
import math
import os
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from twofold.explorer.budget import TooLargeError, fit_payload
from twofold.explorer.request import make_wanted, open_model
from twofold.explorer.sections import Payload
from twofold.tables import replacing

BYTES_PER_MB = 1_000_000
IMPORT = re.compile(r'^import\s*\{[^}]*\}\s*from\s*"\./([\w.-]+\.js)";[ \t]*\n?', re.MULTILINE)
EXPORT = re.compile(r"^export\s+(?=(?:async\s+)?(?:function|class|const|let)\b)", re.MULTILINE)
PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


def write(
    model: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    max_mb: float = 20.0,
    data: Any = None,
    image_shape: Any = None,
    view: str = "auto",
    labels: Any = None,
    names: Any = None,
) -> Path:
    """Write the map of a model as one HTML file that needs no server and no network.

    The model's regression runs in the page: move over the map and see the data that belongs to
    each place. If all of the model does not fit into ``max_mb``, rows are rounded more coarsely,
    then a stand-in is shown; the page says which, and by how much it differs.

    Parameters
    ----------
    model : fitted model, or path of a saved one
    path : str or path
        Where to write; an existing file is replaced.
    title : str, default=None
        Of the page; the file's or the model's name by default.
    max_mb : float, default=20.0
        The most that the file may have, in millions of bytes.
    data : array-like of shape (n_samples, n_features), default=None
        The table the model was fitted to. Only a model of landmarks needs it, to show single rows.
    image_shape : (height, width) or (height, width, 3), default=None
        How to draw a row as an image.
    view : {"auto", "image", "curve", "bars", "table"}, default="auto"
        How to draw a row. "auto" is an image if its shape is known, a curve for more than 30
        features, else a table if they have names and bars if not.
    labels : array-like of shape (n_samples,), mapping of such or data frame, default=None
        Classes or numbers to colour rows by.
    names : array-like of shape (n_samples,), default=None
        Names to find rows by.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ValueError
        If not even the positions of the rows and a small stand-in fit into ``max_mb``.

    Notes
    -----
    ``labels``, ``names`` and ``image_shape`` take the place of what ``model.annotate`` noted. The
    same model gives the same bytes.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> from twofold import UKR, explorer
    >>> iris = load_iris()
    >>> model = UKR(init="pca", max_iter=5).fit(iris.data)
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> explorer.write(model, folder / "iris.html", labels=iris.target_names[iris.target]).name
    'iris.html'
    """
    found = find_payload(model, title, max_mb, data, image_shape, view, labels, names)
    with replacing(path) as partial:
        partial.write_bytes(page_text(found).encode("utf-8"))
    return Path(path)


def find_payload(
    model: Any,
    title: str | None,
    max_mb: float,
    data: Any,
    image_shape: Any,
    view: str,
    labels: Any,
    names: Any,
) -> Payload:
    """Return the payload of a page of at most ``max_mb``."""
    opened, name = open_model(model)
    wanted = make_wanted(opened, title or name, data, image_shape, view, labels, names)
    empty = len(page_text(Payload({"title": wanted.title}, b"")).encode("utf-8"))
    try:
        return fit_payload(opened, wanted, int(max_mb * BYTES_PER_MB) - empty)
    except TooLargeError as error:
        needed = math.ceil(100 * (max_mb + error.excess / BYTES_PER_MB)) / 100
        raise ValueError(
            f"The page needs at least {needed:.2f} MB for the positions of "
            f"{len(opened.embedding_):,} rows and what is known about them; max_mb is {max_mb:g}. "
            "Raise it, or leave out `names` or `labels`."
        ) from error


def page_text(payload: Payload) -> str:
    """Return the page that shows a payload."""
    parts = {
        "title": html.escape(payload.header["title"].encode("utf-8", "replace").decode("utf-8")),
        "style": static_text("style.css"),
        "library": harmless(library_text()),
        "scripts": harmless(joined_scripts("main.js")),
        "header": payload.header_text,
        "data": payload.data_text,
    }
    # In one pass: what is put in may itself hold braces.
    return PLACEHOLDER.sub(lambda found: parts[found.group(1)], static_text("page.html"))


def static_text(name: str) -> str:
    """Return the text of a file that the page is made of."""
    return (files("twofold.explorer") / "static" / name).read_text(encoding="utf-8")


def library_text() -> str:
    """Return the library that draws the points, below its licence, which no copy may lack."""
    licence = static_text("vendor/twgl.LICENSE.txt").strip()
    return f"/*!\n{licence}\n*/\n{static_text('vendor/twgl.js')}"


@cache
def joined_scripts(start: str) -> str:
    """Return a script and all it imports as one text, what is imported first."""
    found: dict[str, str] = {}

    def visit(name: str) -> None:
        if name in found:
            return
        text = static_text(name)
        found[name] = ""  # keeps its place from being taken while its imports are visited
        for imported in IMPORT.findall(text):
            visit(imported)
        del found[name]
        found[name] = EXPORT.sub("", IMPORT.sub("", text))

    visit(start)
    return "\n".join(found.values())


def harmless(script: str) -> str:
    """Return a script that cannot end the HTML element it stands in."""
    return re.sub(r"<(?=/script|!--)", r"\\x3c", script, flags=re.IGNORECASE)

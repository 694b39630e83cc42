"""The front doors: one HTML file of template, style, scripts and payload, and a widget of the same.

The scripts are modules without a build step. They are joined in the order of their imports, less
the words ``import … from "./x.js"`` and ``export``: a file opened from disk may load no others.
"""

import base64
import html
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from twofold.array_types import FloatArray
from twofold.checks.installing import install_command
from twofold.checks.rows import check_places_in_memory, validate_rows
from twofold.classification import ManifoldClassifier
from twofold.contract import TwoWayModel
from twofold.contract.row_notes import RowNotes
from twofold.explorer.budget import TooLargeError, fit_payload
from twofold.explorer.mixed_page import page_columns, single_features, training_features
from twofold.explorer.payload import Payload, Wanted
from twofold.explorer.row_facts import row_facts
from twofold.explorer.usual_rows import PLACES, have_order, usual_rows
from twofold.loading import load
from twofold.mixed import Mixed
from twofold.mixed.columns import DateColumn, NumberColumn
from twofold.replacing import replacing
from twofold.scaled import Scaled

BYTES_PER_MB = 1_000_000
IMPORT = re.compile(r'^import\s*\{[^}]*\}\s*from\s*"\./([\w.-]+\.js)";[ \t]*\n?', re.MULTILINE)
EXPORT = re.compile(r"^export\s+(?=(?:async\s+)?(?:function|class|const|let)\b)", re.MULTILINE)
PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
VIEWS = ("auto", "image", "special", "curve", "bars", "table", "columns")
# So many features or columns are more than can be seen at once.
MANY_FEATURES = 20


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
    beside: Any = None,
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
    view : {"auto", "image", "special", "curve", "bars", "table", "columns"}, default="auto"
        How to draw a row. "auto" is an image if its shape is known. From 20 features on it is
        a curve if neighbouring ones are alike, as in a spectrum, else "special": the features that
        stand out. For fewer it is a table if they have names and bars if not. A
        :class:`twofold.Mixed` model shows its columns: amounts, dates, and levels with their
        probabilities; from 20 columns on it is "special".
    labels : array-like of shape (n_samples,), mapping of such or data frame, default=None
        Classes or numbers to colour rows by.
    names : array-like of shape (n_samples,), default=None
        Names to find rows by.
    beside : mapping, default=None
        A second picture of the same rows, with its title: ``{"UMAP": embedding}``, an array of
        shape (n_samples, 2) or a fitted model. Colours, filters and selections are shared.

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
    asked = {"image_shape": image_shape, "view": view, "labels": labels, "names": names}
    asked["beside"] = beside
    found = find_payload(model, title, max_mb, data=data, **asked)
    with replacing(path) as partial:
        partial.write_bytes(page_text(found).encode("utf-8"))
    return Path(path)


def show(
    model: Any,
    *,
    title: str | None = None,
    max_mb: float = 20.0,
    data: Any = None,
    image_shape: Any = None,
    view: str = "auto",
    labels: Any = None,
    names: Any = None,
    beside: Any = None,
) -> Any:
    """Return the map of a model as a widget for a notebook.

    Parameters are as in :func:`twofold.explorer.write`; the package anywidget is needed. Of the
    widget, ``probe`` is the latent place that is looked at and may be set; ``generated`` the data
    that belongs to it, of a :class:`twofold.Mixed` model a table of one row; ``selection`` the
    numbers of the selected rows, which may be set; ``picked`` the number of the row clicked last,
    -1 for none.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold import UKR, explorer
    >>> model = UKR(init="pca", max_iter=5).fit(load_iris().data)
    >>> widget = explorer.show(model)
    >>> widget.probe = model.embedding_[0]
    """
    kind = explorer_widget()
    model, title = _opened(model, title)
    asked = {"image_shape": image_shape, "view": view, "labels": labels, "names": names}
    asked["beside"] = beside
    payload = find_payload(model, title, max_mb, data=data, **asked)
    widget = kind(header=payload.header, data=payload.data)
    if isinstance(model, Mixed):
        widget.as_row = lambda values: model.from_features([values])
    return widget


def _opened(model: Any, title: str | None) -> tuple[Any, str | None]:
    """Return a model, out of its file if it is the path of one, and the title of its page."""
    if isinstance(model, str | os.PathLike):
        return load(model), title or Path(model).stem
    return model, title


def find_payload(model: Any, title: str | None, max_mb: float, **asked: Any) -> Payload:
    """Return the payload of a page of at most ``max_mb`` for a model or the path of one."""
    model, title = _opened(model, title)
    if isinstance(model, ManifoldClassifier):
        raise TypeError(
            "The explorer shows one map, and a ManifoldClassifier has one for each class. Pass one "
            "of them, e.g. `classifier.models_[0]`."
        )
    if not isinstance(model, TwoWayModel):
        raise TypeError(
            "The explorer shows a fitted model, e.g. `UKR().fit(Y)`, or the path of a saved one; "
            f"got {type(model).__name__}. (`upgrade(picture, Y)` makes a model of any picture.)"
        )
    check_is_fitted(model)
    check_places_in_memory(model)
    columns = amounts = None
    if isinstance(model, Mixed):
        columns, amounts = page_columns(model), single_features(model)
        asked["data"] = training_features(model, asked["data"])
        if asked["view"] == "auto":
            asked["view"] = "special" if len(columns["columns"]) >= MANY_FEATURES else "columns"
        title = title or f"{type(model.model_).__name__} of {len(model.embedding_):,} rows"
        model = model.as_numbers()
    wanted = make_wanted(model, title or None, columns=columns, amounts=amounts, **asked)
    empty = len(page_text(Payload({"title": wanted.title}, b"")).encode("utf-8"))
    try:
        return fit_payload(model, wanted, int(max_mb * BYTES_PER_MB) - empty, empty)
    except TooLargeError as error:
        needed = math.ceil(100 * (max_mb + error.excess / BYTES_PER_MB)) / 100
        raise ValueError(
            f"The page needs at least {needed:.2f} MB for the positions of "
            f"{len(model.embedding_):,} rows and what is known about them; max_mb is {max_mb:g}. "
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
        "data": base64.b64encode(payload.data).decode("ascii"),
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


@cache
def explorer_widget() -> Any:
    """Return the class of the widget; it exists only where anywidget does."""
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise ImportError(
            f"The explorer in a notebook needs anywidget: {install_command('notebook')}. "
            "`explorer.write` makes a file without it."
        ) from error

    class Numbers(traitlets.List):
        """A list of numbers that may be set from an array or a column, too."""

        def validate(self, obj: Any, value: Any) -> list[Any]:
            checked: list[Any] = super().validate(
                obj, value.tolist() if hasattr(value, "tolist") else value
            )
            return checked

    class ExplorerWidget(anywidget.AnyWidget):
        """The map of a model in a notebook."""

        # In one module: its scripts see the library, and the notebook gets no global name.
        _esm = library_text() + joined_scripts("widget.js")
        _css = static_text("style.css")
        header = traitlets.Dict().tag(sync=True)
        data = traitlets.Bytes().tag(sync=True)
        probe = Numbers(traitlets.Float()).tag(sync=True)
        generated = traitlets.Any([]).tag(
            sync=True,
            from_json=lambda values, widget: widget.row_of(values),
            to_json=lambda _, widget: list(widget.values),
        )
        selection = Numbers(traitlets.Int()).tag(sync=True)
        picked = traitlets.Int(-1).tag(sync=True)

        # What the page says of the generated row, and how that is a row of the user's table.
        values: Sequence[float] = ()
        as_row: Callable[[Sequence[float]], Any] | None = None

        def row_of(self, values: Sequence[float]) -> Any:
            """Return the generated row as the user's table has it."""
            self.values = values
            return values if self.as_row is None or not values else self.as_row(values)

        @traitlets.validate("probe")  # type: ignore[untyped-decorator]
        def _check_probe(self, proposal: Any) -> list[float]:
            wrong = _wrong_probe(proposal.value, self.header["model"]["n_components"])
            if wrong:
                raise traitlets.TraitError(wrong)
            return list(proposal.value)

        @traitlets.validate("selection")  # type: ignore[untyped-decorator]
        def _check_selection(self, proposal: Any) -> list[int]:
            wrong = _wrong_selection(proposal.value, self.header["model"]["n_rows"])
            if wrong:
                raise traitlets.TraitError(wrong)
            return sorted(set(proposal.value))

    return ExplorerWidget


def _wrong_probe(place: list[float], q: int) -> str:
    """Say what is wrong with a place of q coordinates; "" if nothing is."""
    if len(place) not in (0, q):
        return f"`probe` is a latent place of {q} numbers; got {len(place)}."
    return "" if np.isfinite(place).all() else f"`probe` must be finite; got {place}."


def _wrong_selection(rows: list[int], n: int) -> str:
    """Say what is wrong with a selection of n rows; "" if nothing is."""
    # To Python, True is a whole number.
    if any(isinstance(row, bool) for row in rows):
        return "`selection` holds numbers of rows, no mask; `np.flatnonzero(mask)` has them."
    if rows and not 0 <= min(rows) <= max(rows) < n:
        return (
            f"`selection` holds numbers of rows from 0 to {n - 1}; got {min(rows)} to {max(rows)}."
        )
    return ""


def make_wanted(
    model: TwoWayModel,
    title: str | None = None,
    data: Any = None,
    image_shape: Any = None,
    view: str = "auto",
    labels: Any = None,
    names: Any = None,
    beside: Any = None,
    columns: dict[str, Any] | None = None,
    amounts: dict[int, NumberColumn | DateColumn] | None = None,
) -> Wanted:
    """Return what is to be shown; what the caller leaves out comes from the model's notes."""
    n, D = len(model.embedding_), model.n_features_in_
    notes = getattr(model, "notes_", RowNotes()).for_rows(n)
    notes = notes.updated(names, labels, image_shape, n, D)
    features = getattr(model, "feature_names_in_", None)
    named, mixed = features is not None, columns is not None
    if features is None:
        noun = "feature" if notes.image_shape is None else "pixel"
        features = [f"{noun} {number + 1}" for number in range(D)]
    if data is not None:
        data = validate_rows(model, data, reset=False)
        if len(data) != n:
            raise ValueError(
                f"`data` must be the table the model was fitted to, with {n} rows; got {len(data)}."
            )
    view = _view(view, notes, model, is_named=named, is_mixed=mixed)
    facts, n_measured = row_facts(model)
    # Models may be scaled more than once: what each divides by comes together.
    inside, spread = model, None
    while isinstance(inside, Scaled):
        spread = inside.spread_ if spread is None else spread * inside.spread_
        inside = inside.model_
    family = type(inside).__name__
    return Wanted(
        title=f"{family} of {n:,} rows" if title is None else str(title),
        family=family if spread is None else f"{family}, scaled",
        notes=notes,
        view=view,
        features=[str(name) for name in features],
        facts=facts,
        n_measured=n_measured,
        data=data,
        left_open=model.left_open() if model.has_noise() else None,
        spread=spread,
        columns=columns,
        usual=usual_rows(model, data),
        beside=_second_picture(beside, n),
        amounts=amounts,
    )


def _second_picture(beside: Any, n: int) -> tuple[str, FloatArray] | None:
    """Return the title and the places (n, 2) of a second picture of the rows."""
    if beside is None:
        return None
    if not isinstance(beside, Mapping) or len(beside) != 1:
        raise TypeError(
            "`beside` is one picture with its title, e.g. {'UMAP': embedding}; got "
            f"{type(beside).__name__}."
        )
    ((title, picture),) = beside.items()
    X = np.asarray(getattr(picture, "embedding_", picture), dtype=np.float32)
    if X.ndim != 2 or X.shape[0] != n or X.shape[1] < 2 or not np.isfinite(X[:, :2]).all():
        raise ValueError(
            f"`beside` needs two finite coordinates for each of the {n} rows; got an array of "
            f"shape {X.shape}."
        )
    return str(title), X[:, :2]


def _view(view: str, notes: RowNotes, model: TwoWayModel, *, is_named: bool, is_mixed: bool) -> str:
    D = model.n_features_in_
    if view not in VIEWS:
        raise ValueError(f"`view` must be one of {VIEWS}; got {view!r}.")
    if view == "image" and notes.image_shape is None:
        raise ValueError(
            f"view='image' needs `image_shape`: the (height, width) that {D} features fill."
        )
    if view == "columns" and not is_mixed:
        raise ValueError("view='columns' is for a model of a mixed table, twofold.Mixed.")
    if view != "auto":
        return view
    if notes.image_shape is not None:
        return "image"
    if D >= MANY_FEATURES:
        rows = getattr(model, "data_", None)
        if rows is None:
            rows = model.inverse_transform(model.embedding_[:PLACES])
        return "curve" if have_order(rows) else "special"
    return "table" if is_named else "bars"

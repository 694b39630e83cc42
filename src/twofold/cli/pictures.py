"""Pictures for ``twofold plot``, drawn by `twofold.plots` without a window."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twofold.cli.columns import label_names, match_columns, shown_feature_names
from twofold.cli.console import CommandError, Console, UsageError, listed
from twofold.cli.places import find_place
from twofold.cli.streaming import as_rows

if TYPE_CHECKING:
    from twofold.contract import TwoWayModel

FORMATS = (".pdf", ".png", ".svg", ".eps", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")
DOTS_PER_INCH = 200
COLORS = ("density", "magnification", "error")


@dataclass(frozen=True)
class Picture:
    """What the options of ``plot`` ask for."""

    kind: str
    color: str | None = None
    path: tuple[str, str] | None = None
    steps: int = 10
    table: str | None = None


def check_format(path: str) -> None:
    """Raise unless the ending of a file name says a format of pictures."""
    if Path(path).suffix.lower() not in FORMATS:
        raise UsageError(
            f"The ending of a picture says its format; got '{path}'.",
            "Use .pdf or .svg for papers, .png for screens.",
        )


def draw(model: TwoWayModel, picture: Picture, path: str, console: Console) -> None:
    """Draw a picture of a model into a file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from twofold.tables import replacing

    drawn = _draw(model, picture, console)
    figure = getattr(drawn, "figure", drawn)
    try:
        with replacing(path) as partial:
            figure.savefig(
                partial,
                format=Path(path).suffix[1:].lower(),
                dpi=DOTS_PER_INCH,
                bbox_inches="tight",
            )
    finally:
        pyplot.close(figure)


def _draw(model: TwoWayModel, picture: Picture, console: Console) -> Any:
    """Return the axes or the figure of a picture."""
    from twofold import plots

    match picture.kind:
        case "map":
            return plots.latent_map(model, color=_known_color(model, picture.color))
        case "grid":
            return plots.grid(model)
        case "path" if picture.path is not None:
            start, stop = (find_place(text, model) for text in picture.path)
            ax = plots.path(model, start, stop, steps=picture.steps)
            ax.set_xticks([0, picture.steps - 1], list(picture.path))
            return ax
        case "magnification":
            return plots.magnification(model)
        case "sensitivity" if picture.color is not None:
            return plots.sensitivity(model, _known_feature(model, picture.color))
        case "sensitivity":
            return plots.sensitivities(model)
        case "history":
            return plots.history(model)
        case _:
            return plots.errors(model, _rows_to_look_at(model, picture.table, console))


def _known_color(model: TwoWayModel, color: str | None) -> str | int | None:
    """Return what `plots.latent_map` colours by; raise if the model knows no such thing."""
    if color in label_names(model):
        return color
    if color == "error":
        _check_keeps_rows(model)
    if color is None or color in COLORS:
        return color
    return _known_feature(model, color)


def _known_feature(model: TwoWayModel, name: str) -> str | int:
    """Return a feature's name, or its place for a model whose columns have no names."""
    names = shown_feature_names(model)
    if name in names:
        is_named = hasattr(model, "feature_names_in_")
        return name if is_named else names.index(name)
    known = [*label_names(model), *COLORS, *names]
    close = difflib.get_close_matches(name, known, n=3)
    raise CommandError(
        f"The model has no label and no column called '{name}'.",
        f"Did you mean {listed(close)}?" if close else f"It has {listed(known, 12)}.",
    )


def _rows_to_look_at(model: TwoWayModel, table: str | None, console: Console) -> Any:
    if table is None:
        _check_keeps_rows(model)
        return None
    from twofold.tables import open_table

    source = open_table(table)
    match = match_columns(model, source.columns, table, source.companions)
    if match.unused:
        console.say(f"not used: {listed(match.unused)}")
    Y = source.read(numbers=match.features)[match.features].dropna(how="all").to_numpy(float)
    return as_rows(model, Y)


def _check_keeps_rows(model: TwoWayModel) -> None:
    if (model.member_ < 0).all():
        raise CommandError(
            "A model of landmarks does not keep its rows, so their errors are not known.",
            "Give the rows: --kind errors --table TABLE",
        )

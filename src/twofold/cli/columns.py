"""Which columns of a table belong to a model, and which one names the rows.

Columns are found by name, and errors name names. A table without an index whose text columns have
exactly one with a different text in each row has its names there. Dates are no names, and neither
are numbers that could not be read as such, for a thousands mark or another decimal mark.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twofold.cli.arguments import shown
from twofold.cli.console import CommandError, UsageError, counted, listed

if TYPE_CHECKING:
    import pandas as pd

    from twofold.contract import TwoWayModel
    from twofold.tables.reading import TableSource
    from twofold.tables.table import CellRules


@dataclass(frozen=True)
class Match:
    """Columns of a table seen from a model."""

    features: list[str]  # in the model's order
    labels: list[str]  # with the names of the model's labels
    unused: list[str]


# Judged by the first rows: names are carried along, and nothing breaks if one comes again later.
ROWS_TO_LOOK_AT = 4096
# What columns without names are called; coordinates of the map must not be mixed up with them.
_LIKE_DEFAULT = re.compile(r"x[0-9]+")
# Comparing letter by letter takes its time: of a table with very many columns the first will do.
_NAMES_TO_GUESS, _NAMES_TO_COMPARE = 20, 5000


def numbered(stem: str, n: int) -> list[str]:
    """Return names that count from 1; with the stem x those of a table without names."""
    return [f"{stem}{k}" for k in range(1, n + 1)]


def are_default(names: Sequence[str]) -> bool:
    """Say whether columns have no names of their own."""
    return list(names) == numbered("x", len(names))


def feature_names(model: TwoWayModel) -> list[str] | None:
    """Return the names of a model's features, None for a model of nameless columns."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def shown_feature_names(model: TwoWayModel) -> list[str]:
    """Return names for a model's columns: its own, or x1, x2, ... as tables call them."""
    return feature_names(model) or numbered("x", model.n_features_in_)


def label_names(model: TwoWayModel) -> list[str]:
    """Return the names of a model's label columns."""
    return list(getattr(getattr(model, "notes_", None), "labels", ()))


def latent_names(model: TwoWayModel, taken: Iterable[str] = ()) -> list[str]:
    """Return names of the latent coordinates, x1, x2, ... unless data or `taken` has such names."""
    # They depend on the model's columns and labels, so that all commands choose the same ones.
    q = model.embedding_.shape[1]
    others = {*shown_feature_names(model), *label_names(model), *taken}
    stems = ["latent", "twofold_latent"]
    if not any(_LIKE_DEFAULT.fullmatch(name) for name in others):
        stems.insert(0, "x")
    for stem in stems:
        names = numbered(stem, q)
        if not others & set(names):
            return names
    raise CommandError(
        f"The table already has columns named like the latent coordinates: {listed(names)}.",
        "Rename them.",
    )


def match_columns(
    model: TwoWayModel, columns: Sequence[str], path: str, companions: Sequence[str] = ()
) -> Match:
    """Find a model's columns in a table by name if both have names, else by position."""
    wanted = feature_names(model)
    there, beside = set(columns), set(companions)
    labels = [name for name in label_names(model) if name in there]
    proper = [name for name in columns if name not in beside]
    default = numbered("x", model.n_features_in_)
    if wanted is None and not are_default(proper) and set(default) <= there:
        wanted = default  # a table made for this model, with the names it was shown under
    if wanted is None or (are_default(proper) and not set(wanted) & there):
        features = [name for name in proper if name not in labels]
        if len(features) != model.n_features_in_:
            raise CommandError(
                f"{shown(path)} has {counted(len(features), 'column')}, but the model was fitted "
                f"to {model.n_features_in_}: columns without names are matched by position.",
                "Pass a table with the same columns in the same order, or with their names in the "
                "first line.",
            )
    else:
        # What tells nothing, a constant column of a mixed table, is not asked for.
        idle = {column.name for column in model._mixed_columns() if not column.features}
        needed = [name for name in wanted if name not in idle]
        features = find_columns(needed, columns, path, "the model needs")
    used = {*features, *labels}
    return Match(features, labels, [name for name in columns if name not in used])


def find_columns(wanted: Sequence[str], columns: Sequence[str], path: str, who: str) -> list[str]:
    """Return the wanted columns; raise if some are not in the table, and say what is close."""
    there, asked = set(columns), set(wanted)
    missing = [name for name in wanted if name not in there]
    if not missing:
        return list(wanted)
    noun = "a column" if len(missing) == 1 else f"{len(missing)} columns"
    raise CommandError(
        f"{shown(path)} lacks {noun} that {who}: {listed(missing)}.",
        _what_is_close(missing, [name for name in columns if name not in asked]),
    )


def split_names(given: Iterable[str] | None, columns: Sequence[str]) -> list[str]:
    """Return the names in options such as ``a,b,c``; a column may have a comma in its name."""
    names: list[str] = []
    for text in given or ():
        parts = [text] if text in columns else [part.strip() for part in text.split(",")]
        names += [part for part in parts if part]
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise UsageError(f"{listed(twice)} is named twice.", "Name every column once.")
    return names


def _what_is_close(missing: Sequence[str], others: Sequence[str]) -> str:
    """Say which other columns are nearly called like the missing ones."""
    by_letters = {"".join(name.lower().split()): name for name in others[:_NAMES_TO_COMPARE]}
    pairs = []
    for name in missing[:_NAMES_TO_GUESS]:
        letters = "".join(name.lower().split())
        close = difflib.get_close_matches(letters, by_letters, n=1, cutoff=0.6)
        if close:
            pairs.append(f"'{by_letters[close[0]]}' for '{name}'")
    if pairs:
        more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
        return f"Did you mean {', '.join(pairs[:3])}{more}? Names must agree letter by letter."
    if not others:
        return "The table has no other columns."
    return f"The table's other columns are {listed(others)}."


def naming_column(text: pd.DataFrame, rules: CellRules) -> str | None:
    """Return the only column without gaps whose cells all differ and are no dates."""
    from twofold.tables.text_types import is_date_column

    found = [
        name
        for name in text
        if text[name].notna().all()
        and text[name].is_unique
        and not is_date_column(text[name], rules)
    ]
    return str(found[0]) if len(found) == 1 else None


def find_row_names(source: TableSource, others: list[str]) -> str | None:
    """Return the column among ``others`` that names the rows of a table without an index."""
    from pandas.api import types

    if source.has_index or not others:
        return None
    rules, frame = source.rules, next(source.chunks(ROWS_TO_LOOK_AT))[others]

    def has_numbers(column: pd.Series) -> bool:
        first = column.dropna().head(20)
        return any(rules.is_number(cell) or rules.is_other_number(cell) for cell in first)

    text = [n for n in others if not types.is_numeric_dtype(frame[n]) and not has_numbers(frame[n])]
    return naming_column(frame[text], rules)

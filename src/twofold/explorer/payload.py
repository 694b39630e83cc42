"""What the page needs of a model: a header and a few arrays; format 1.

The header is JSON. Its ``sections`` name the arrays in the data: references of the regression
(``reg.x``, ``reg.y``, ``reg.w``, ``reg.h``, ``reg.group``), rows (``rows.x``, ``rows.y``,
``rows.ref``) and what is known about them (``rows.names``, ``rows.label.*``, ``rows.density``,
``rows.magnification``, ``rows.own``). Nothing in it depends on time or machine.

Data of rows are whole numbers in 8 or 16 bits (:mod:`twofold.explorer.scale`); the values of the
table are beside them where there is room (:mod:`twofold.explorer.own_values`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.contract import TwoWayModel
from twofold.contract.kernel_description import KernelDescription, NearestMeans
from twofold.contract.left_open import LeftOpen
from twofold.contract.row_notes import RowNotes
from twofold.explorer.label_columns import add_labels
from twofold.explorer.scale import Scale, short
from twofold.explorer.sections import Sections, add_fact
from twofold.explorer.stand_in import DomainBox, cover
from twofold.explorer.table_feature import TableFeature, certain, roundings_of
from twofold.mixed.columns import DateColumn, NumberColumn

FORMAT = 1
# From this many rows on, their positions are written in 16 bits: finer than any screen.
MANY_ROWS = 200_000
# Without data of rows, the range of a feature is that of f at this many rows.
RANGE_PLACES = 2_000


@dataclass(frozen=True, eq=False)
class Wanted:
    """What is to be shown of a model beside its regression."""

    title: str  # of the page
    family: str  # what the model is called
    notes: RowNotes  # names, labels and image shape of the rows
    view: str  # "image", "special", "curve", "bars", "table" or "columns"
    features: list[str]  # names of the D features
    facts: dict[str, FloatArray]  # numbers to colour rows by, (n,) each
    data: FloatArray | None = None  # (n, D) the training table, None if only the model's is known
    n_measured: int | None = None  # places the magnification comes from, None if of each row itself
    left_open: LeftOpen | None = None  # how far rows lie from the map, None if not known
    spread: FloatArray | None = None  # (D,) what the model divides each feature by, None if nothing
    columns: dict[str, Any] | None = None  # which features are which column of a mixed table
    usual: dict[str, Any] | None = None  # mean and deviation of each feature over all rows
    beside: tuple[str, FloatArray] | None = None  # title and places (n, 2) of a second picture
    # of a mixed table: the columns whose values one feature stands for, by the feature's number
    amounts: Mapping[int, NumberColumn | DateColumn] | None = None

    def single_features(self) -> list[int]:
        """Return the features that stand for a column of the table each."""
        return list(range(len(self.features)) if self.amounts is None else self.amounts)

    def feature(self, values: FloatArray, j: int) -> TableFeature:
        """Return a feature that stands for a column, with some of its values."""
        column = (self.amounts or {}).get(j)
        return TableFeature(values, column, in_other_units=self.spread is not None)

    def title_of(self, j: int) -> str:
        """Return the name of the column that a feature stands for."""
        return self.features[j] if self.amounts is None else self.amounts[j].name


@dataclass(frozen=True, eq=False)
class Shown:
    """One way to show a model: a regression, and the data of rows."""

    regression: KernelDescription  # what the page evaluates
    total_weight: float  # its density's divisor
    threshold: float  # where its domain ends
    rows: FloatArray | None  # (k, D) data of rows that the references do not hold
    ref: IntArray  # (n,) which of these, else which reference, holds the data of each row; or -1
    bits: int  # 8 or 16, of the codes
    difference: float | None = None  # of a stand-in; None for the model's own regression
    box: DomainBox | None = None  # the domain where it is one; there is no density to show then

    @property
    def tables(self) -> list[FloatArray]:
        """The tables that become codes; what is known best about rows comes last."""
        return [self.regression.data] if self.rows is None else [self.regression.data, self.rows]

    @cached_property
    def scale(self) -> Scale:
        """How the tables become codes."""
        return Scale.of(self.tables, self.bits)

    @property
    def has_data(self) -> bool:
        """Whether the data of some row is known."""
        return bool((self.ref >= 0).any())


def compose(model: TwoWayModel, wanted: Wanted, shown: Shown) -> Payload:
    """Return header and sections of one way to show a model."""
    scale, box = shown.scale, shown.box
    sections = Sections()
    _add_regression(sections, shown.regression, scale)
    _add_rows(sections, model.embedding_, shown, scale)
    labels = add_labels(sections, wanted.notes.labels, wanted.notes.orders)
    for name, values in wanted.facts.items():
        if name != "density" or box is None:
            add_fact(sections, f"rows.{name}", values, log=name == "magnification")
    if wanted.notes.names is not None:
        # A list as JSON takes far less room here than in the header.
        text = _json_text(wanted.notes.names.tolist()).encode("utf-8")
        sections.add("rows.names", np.frombuffer(text, dtype=np.uint8))
    if wanted.beside is not None:
        sections.add("rows.beside", wanted.beside[1])
    header = {
        "format": FORMAT,
        **_about(model, wanted, _ends(model, wanted, shown)),
        "shows": [
            *sentences(len(model.embedding_), shown, scale, wanted.n_measured),
            *open_sentences(wanted.left_open),
        ],
        # What nobody should overlook stands where it can be seen, too.
        "warning": (wanted.left_open and wanted.left_open.warning()) or None,
        "regression": _described(shown),
        "domain_threshold": shown.threshold,
        "domain_box": box and {"low": box.low.tolist(), "high": box.high.tolist()},
        "rows": {
            "n": len(model.embedding_),
            "has_data": shown.has_data,
            "labels": labels,
            "beside": wanted.beside and wanted.beside[0],
            "image": None,
        },
        "quantised": {
            "low": scale.low.tolist(),
            "step": scale.step.tolist(),
            "missing": scale.missing,
        },
        "sections": sections.entries,
    }
    return Payload(header, sections.compressed(), sections)


def _typical_rows(model: TwoWayModel, shown: Shown) -> FloatArray:
    """Return rows that have the range of each feature."""
    if shown.has_data or shown.difference is not None:
        return shown.tables[-1]
    # Landmarks may carry values that f is nowhere near.
    X = model.embedding_
    return model.inverse_transform(X[cover(X * shown.regression.latent_scale, RANGE_PLACES)])


def _ends(model: TwoWayModel, wanted: Wanted, shown: Shown) -> FloatArray:
    """Return the lowest and the highest value (2, D) of each feature."""
    Y = _typical_rows(model, shown)
    ends = np.array([np.nanmin(Y, axis=0), np.nanmax(Y, axis=0)])
    if not shown.has_data or wanted.spread is None:
        return short(ends)
    found = short(certain(ends, roundings_of(ends)))
    for j in wanted.amounts or ():
        found[:, j] = wanted.feature(ends[:, j], j).as_in_table()
    return found


def _about(model: TwoWayModel, wanted: Wanted, ends: FloatArray) -> dict[str, Any]:
    n, q = model.embedding_.shape
    shape = wanted.notes.image_shape
    return {
        "title": wanted.title,
        "model": {
            "family": wanted.family,
            "n_rows": n,
            "n_features": len(wanted.features),
            "n_components": q,
        },
        "features": wanted.features,
        "view": wanted.view,
        "image_shape": None if shape is None else list(shape),
        "feature_low": ends[0].tolist(),
        "feature_high": ends[1].tolist(),
        "left_open": _left_open(wanted.left_open),
        "feature_spread": None if wanted.spread is None else wanted.spread.tolist(),
        "usual": _usual(wanted.usual),
        **(wanted.columns or {}),
    }


def _usual(usual: dict[str, Any] | None) -> dict[str, Any] | None:
    if usual is None:
        return None
    lists = {name: short(usual[name]).tolist() for name in ("mean", "deviation")}
    return {**lists, "of": usual["of"]}


def _left_open(left: LeftOpen | None) -> dict[str, Any] | None:
    """Return how far rows lie from the map: for each feature, and hundredths of the rows."""
    if left is None:
        return None
    rows = np.quantile(left.rows, np.linspace(0, 1, 101))
    return {
        "share": float(f"{left.share:.4g}"),
        "features": short(left.features).tolist(),
        "rows": short(rows).tolist(),
    }


def _described(shown: Shown) -> dict[str, Any]:
    found = shown.regression
    of_means = {"neighbors": found.n_neighbors} if isinstance(found, NearestMeans) else {}
    return {
        **of_means,
        "kernel": found.kernel,
        "degree": found.degree if isinstance(found.degree, str) else int(found.degree),
        "cutoff": float(found.cutoff),
        "latent_scale": np.asarray(found.latent_scale, dtype=np.float64).tolist(),
        "n": len(found.latent),
        "mean": short(_weighted_mean(found.data, found.weights)).tolist(),
        "total_weight": shown.total_weight,
        "exact": shown.difference is None,
        "difference": None if shown.difference is None else float(f"{shown.difference:.3g}"),
    }


def _weighted_mean(Y: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the mean of each column over its known entries, 0 where none is known."""
    means = np.zeros(Y.shape[1])
    for column, values in enumerate(Y.T):
        known = ~np.isnan(values)
        total = weights[known].sum(dtype=np.float64)
        if total > 0:
            means[column] = np.dot(weights[known], values[known].astype(np.float64)) / total
    return means


def _add_regression(sections: Sections, found: KernelDescription, scale: Scale) -> None:
    sections.add("reg.x", found.latent.astype(np.float32))
    sections.add("reg.y", scale.codes(found.data))
    if (found.weights != 1).any():
        sections.add("reg.w", found.weights.astype(np.float32))
    if found.widths is not None:
        sections.add("reg.h", found.widths.astype(np.float32))
    if isinstance(found, NearestMeans) and found.groups is not None:
        sections.add("reg.group", found.groups.astype(np.int32))


def _add_rows(sections: Sections, X: FloatArray, shown: Shown, scale: Scale) -> None:
    if len(X) > MANY_ROWS and not np.array_equal(X, shown.regression.latent):
        low = X.min(axis=0).astype(np.float64)
        step = (X.max(axis=0) - low) / 65_535
        codes = np.rint((X - low) / np.where(step > 0, step, 1)).astype(np.uint16)
        sections.add("rows.x", codes, low=low.tolist(), step=step.tolist())
    # With one reference a row the places are there already.
    elif not np.array_equal(X, shown.regression.latent):
        sections.add("rows.x", X.astype(np.float32))
    if shown.rows is not None:
        sections.add("rows.y", scale.codes(shown.rows))
    if not np.array_equal(shown.ref, np.arange(len(shown.tables[-1]))):
        sections.add("rows.ref", shown.ref.astype(np.int32))


def sentences(n: int, shown: Shown, scale: Scale, n_measured: int | None = None) -> list[str]:
    """Say what the page shows, and how it differs from the model."""
    rounded = f"quantised to 1/{2**scale.bits - 1:,} of each feature's range"
    if shown.difference is None:
        kept = "as they are" if scale.is_exact else rounded
        regression = f"the model's own regression, rows {kept}"
    else:
        regression = (
            f"a stand-in of {len(shown.regression.latent):,} landmarks: differs by "
            f"{100 * shown.difference:.2g} % of the spread from the model"
        )
    n_known = int((shown.ref >= 0).sum())
    if n_known == 0:
        rows = f"where all {n:,} rows are, without their data"
    elif n_known < n:
        rows = f"where all {n:,} rows are, and the data of {n_known:,} of them"
    else:
        rows = f"all {n:,} rows"
    if n_measured is None:
        return [rows, regression]
    measured = f"magnification measured at {n_measured:,} places, for the rows between them a mean"
    return [rows, regression, measured]


def open_sentences(left: LeftOpen | None) -> list[str]:
    """Say what the map leaves open, and whether that is much."""
    if left is None:
        return []
    return [left.warning() or f"the map leaves open {left.in_words()}"]


@dataclass(frozen=True, eq=False)
class Payload:
    """A header, and its sections joined and compressed."""

    header: dict[str, Any]
    data: bytes
    sections: Sections | None = None  # what `data` is made of, to add to it

    @property
    def header_text(self) -> str:
        """The header as JSON that neither ends nor opens an HTML element."""
        return _json_text(self.header).replace("<", "\\u003c")

    def size(self) -> int:
        """Return how many bytes both take in a page."""
        return len(self.header_text.encode("utf-8")) + 4 * -(-len(self.data) // 3)


def _json_text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Half of a surrogate pair has no place in a file.
    return text.encode("utf-8", "replace").decode("utf-8")

"""What the page needs of a model: a header and a few arrays; format 1.

The header is JSON. Its ``sections`` name the arrays in the data: references of the regression
(``reg.x``, ``reg.y``, ``reg.w``, ``reg.h``, ``reg.group``), rows (``rows.x``, ``rows.y``,
``rows.ref``) and what is known about them (``rows.names``, ``rows.label.*``, ``rows.density``,
``rows.magnification``). Nothing in it depends on time or machine.

Data of rows are whole numbers in 8 or 16 bits: ``value = low + code * step``, with a low and a step
for each feature. Columns of whole numbers keep them as they are where the bits suffice; the largest
code stands for a missing entry.
"""

from __future__ import annotations

import json
import math
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from twofold.array_types import FloatArray, IntArray
from twofold.contract import TwoWayModel
from twofold.contract.kernel_description import KernelDescription, NearestMeans
from twofold.contract.left_open import LeftOpen
from twofold.contract.row_notes import NoteArray, RowNotes
from twofold.explorer.stand_in import DomainBox, cover

FORMAT = 1
# From this many rows on, their positions are written in 16 bits: finer than any screen.
MANY_ROWS = 200_000
# Without data of rows, the range of a feature is that of f at this many rows.
RANGE_PLACES = 2_000
# Rows that become codes at a time, so that their doubles take little memory.
ROWS_AT_A_TIME = 4096
ALIGNMENT = 8
# Level 6 takes a third of the time of level 9 for 1 to 2 % more bytes.
COMPRESSION = 6
GZIP_WINDOW = 31
# A label of whole numbers names classes if it has at most this many values.
MOST_NUMBERED_CLASSES = 30
MOST_CLASSES = 65_535
# Facts about rows have the codes from 0 to this.
MOST_FACT = 254


@dataclass(frozen=True, eq=False)
class Wanted:
    """What is to be shown of a model beside its regression."""

    title: str  # of the page
    family: str  # what the model is called
    notes: RowNotes  # names, labels and image shape of the rows
    view: str  # "image", "curve", "bars" or "table"
    features: list[str]  # names of the D features
    facts: dict[str, FloatArray]  # numbers to colour rows by, (n,) each
    data: FloatArray | None = None  # (n, D) the training table, None if only the model's is known
    n_measured: int | None = None  # places the magnification comes from, None if of each row itself
    left_open: LeftOpen | None = None  # how far rows lie from the map, None if not known
    spread: FloatArray | None = None  # (D,) what the model divides each feature by, None if nothing
    columns: dict[str, Any] | None = None  # which features are which column of a mixed table


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


def compose(model: TwoWayModel, wanted: Wanted, shown: Shown) -> Payload:
    """Return header and sections of one way to show a model."""
    scale, box = Scale.of(shown.tables, shown.bits), shown.box
    sections = Sections()
    _add_regression(sections, shown.regression, scale)
    _add_rows(sections, model.embedding_, shown, scale)
    labels = add_labels(sections, wanted.notes.labels)
    for name, values in wanted.facts.items():
        if name != "density" or box is None:
            add_fact(sections, f"rows.{name}", values, log=name == "magnification")
    if wanted.notes.names is not None:
        # A list as JSON takes far less room here than in the header.
        text = _json_text(wanted.notes.names.tolist()).encode("utf-8")
        sections.add("rows.names", np.frombuffer(text, dtype=np.uint8))
    header = {
        "format": FORMAT,
        **_about(model, wanted, _typical_rows(model, shown)),
        "shows": [
            *sentences(len(model.embedding_), shown, scale, wanted.n_measured),
            *open_sentences(wanted.left_open),
        ],
        "regression": _described(shown),
        "domain_threshold": shown.threshold,
        "domain_box": box and {"low": box.low.tolist(), "high": box.high.tolist()},
        "rows": {
            "n": len(model.embedding_),
            "has_data": bool((shown.ref >= 0).any()),
            "labels": labels,
            "image": None,
        },
        "quantised": {
            "low": scale.low.tolist(),
            "step": scale.step.tolist(),
            "missing": scale.missing,
        },
        "sections": sections.entries,
    }
    return Payload(header, sections.compressed())


def _typical_rows(model: TwoWayModel, shown: Shown) -> FloatArray:
    """Return rows that have the range of each feature."""
    if (shown.ref >= 0).any() or shown.difference is not None:
        return shown.tables[-1]
    # Landmarks may carry values that f is nowhere near.
    X = model.embedding_
    return model.inverse_transform(X[cover(X * shown.regression.latent_scale, RANGE_PLACES)])


def _about(model: TwoWayModel, wanted: Wanted, Y: FloatArray) -> dict[str, Any]:
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
        "feature_low": short(np.nanmin(Y, axis=0)).tolist(),
        "feature_high": short(np.nanmax(Y, axis=0)).tolist(),
        "left_open": _left_open(wanted.left_open),
        "feature_spread": None if wanted.spread is None else wanted.spread.tolist(),
        **(wanted.columns or {}),
    }


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
    return [left.warning() or f"the map leaves {100 * left.share:.3g} % of the variance open"]


# ---- sections -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Payload:
    """A header, and its sections joined and compressed."""

    header: dict[str, Any]
    data: bytes

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


@dataclass
class Sections:
    """Arrays one after another, and where each begins."""

    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)
    length: int = 0

    def add(self, name: str, array: NoteArray, **more: Any) -> None:
        """Append an array; ``more`` goes into its entry."""
        raw = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
        place = {"offset": self.length, "dtype": array.dtype.name, "shape": list(array.shape)}
        self.entries[name] = {**place, **more}
        self.parts += [raw, bytes(-len(raw) % ALIGNMENT)]
        self.length += len(raw) + len(self.parts[-1])

    def compressed(self) -> bytes:
        """Return all of them as gzip, without a date: the same bytes for the same arrays."""
        packer = zlib.compressobj(COMPRESSION, zlib.DEFLATED, GZIP_WINDOW)
        return b"".join([*(packer.compress(part) for part in self.parts), packer.flush()])


def add_fact(sections: Sections, name: str, values: FloatArray, *, log: bool = False) -> None:
    """Add one number a row in 8 bits, evenly between lowest and highest or by its logarithm."""
    values = np.where(np.isfinite(values), values, 0).astype(np.float64)
    if log:
        positive = values[values > 0]
        values = np.maximum(values, positive.min() if len(positive) else 1.0)
    low, high = float(values.min()), float(values.max())
    of_scale = np.log(values / low) if log else values - low
    reach = of_scale.max() or 1.0
    codes = np.rint(MOST_FACT * of_scale / reach).astype(np.uint8)
    sections.add(name, codes, low=low, high=high, **({"log": True} if log else {}))


def add_labels(sections: Sections, labels: dict[str, NoteArray]) -> dict[str, dict[str, Any]]:
    """Add columns of labels; return what the header says about them."""
    about: dict[str, dict[str, Any]] = {}
    for name, column in labels.items():
        is_text = column.dtype.kind == "U"
        known = np.empty(0) if is_text else np.unique(column[np.isfinite(column)])
        # Whole numbers may name classes; a quantity has others, or too many for that.
        if len(known) > MOST_NUMBERED_CLASSES or (known != np.rint(known)).any():
            about[name] = {"kind": "number"}
            sections.add(f"rows.label.{name}", column.astype(np.float32))
            continue
        codes, values = _classes(name, column)
        about[name] = {"kind": "category", "values": values}
        sections.add(f"rows.label.{name}", codes)
    return about


def _classes(name: str, column: NoteArray) -> tuple[NoteArray, list[str]]:
    """Return the code of each row's class, the largest code for none, and the classes."""
    is_text = column.dtype.kind == "U"
    has_none = column == "" if is_text else ~np.isfinite(column)
    found, code = np.unique(column[~has_none], return_inverse=True)
    if len(found) > MOST_CLASSES:
        raise ValueError(
            f"The label {name!r} has {len(found):,} different values, more than the "
            f"{MOST_CLASSES:,} classes that can be shown. If it tells rows apart, pass it as "
            "`names`."
        )
    values = [str(value) if is_text else str(int(value)) for value in found]
    order = sorted(range(len(values)), key=lambda number: _reading_order(values[number]))
    place = np.argsort(order)
    dtype = np.uint8 if len(found) <= np.iinfo(np.uint8).max else np.uint16
    codes = np.full(len(column), np.iinfo(dtype).max, dtype=dtype)
    codes[~has_none] = place[code] if len(found) else code
    return codes, [values[number] for number in order]


def _reading_order(value: str) -> tuple[bool, float, str]:
    """Return a key that sorts numbers by size and before other text."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    return (True, 0.0, value) if math.isnan(number) else (False, number, value)


# ---- rows as codes ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scale:
    """How values of each feature become codes and codes values."""

    low: FloatArray  # (D,)
    step: FloatArray  # (D,)
    missing: int | None  # the code of a missing entry, None if none is missing
    bits: int  # 8 or 16
    is_exact: bool  # whether every value is kept as it is

    @classmethod
    def of(cls, tables: list[FloatArray], bits: int) -> Scale:
        """Return the scale that covers the tables."""
        low = np.nanmin([np.nanmin(table, axis=0) for table in tables], axis=0)
        high = np.nanmax([np.nanmax(table, axis=0) for table in tables], axis=0)
        has_gaps = any(bool(np.isnan(table).any()) for table in tables)
        top = 2**bits - 1
        # The largest code marks a gap, which leaves one step fewer for values.
        n_steps = top - 1 if has_gaps else top
        is_whole = [((np.rint(table) == table) | np.isnan(table)).all(axis=0) for table in tables]
        whole = np.all(is_whole, axis=0) & (high - low <= n_steps)
        step = np.where(whole, 1.0, short((high.astype(float) - low) / n_steps))
        exact = whole | (high == low)
        return cls(short(low), step, top if has_gaps else None, bits, bool(exact.all()))

    def codes(self, Y: FloatArray) -> npt.NDArray[np.unsignedinteger[Any]]:
        """Return the codes of rows Y (n, D)."""
        top = 2**self.bits - (1 if self.missing is None else 2)
        found = np.empty(Y.shape, dtype=f"<u{self.bits // 8}")
        step = np.where(self.step > 0, self.step, 1)
        for start in range(0, len(Y), ROWS_AT_A_TIME):
            part = Y[start : start + ROWS_AT_A_TIME].astype(np.float64)
            code = np.clip(np.rint((part - self.low) / step), 0, top)
            code = np.where(np.isnan(code), self.missing or 0, code)
            found[start : start + ROWS_AT_A_TIME] = code
        return found

    def rounded(self, Y: FloatArray) -> FloatArray:
        """Return rows as they come out of their codes."""
        codes = self.codes(Y)
        values = self.low + codes * self.step
        return values if self.missing is None else np.where(codes == self.missing, np.nan, values)


def bits_for(tables: list[FloatArray]) -> tuple[int, ...]:
    """Return the bits to try for tables, finest first; more than needed are none the finer."""
    return (8,) if Scale.of(tables, 8).is_exact else (16, 8)


def short(values: Any) -> FloatArray:
    """Return numbers rounded to nine digits: half the text, and finer than any code."""
    flat = np.asarray(values, dtype=np.float64)
    return np.array([float(f"{value:.9g}") for value in flat.ravel()]).reshape(flat.shape)

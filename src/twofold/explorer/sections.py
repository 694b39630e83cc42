"""The arrays of a page, one after another, and the header that says where each begins.

Rows are whole numbers in 8 or 16 bits: ``value = low + code * step``, with a low and a step for
each feature. Columns of whole numbers keep them as they are where the bits suffice; the largest
code stands for a missing entry.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from twofold.array_types import FloatArray
from twofold.contract.row_notes import NoteArray

CodeArray = npt.NDArray[np.unsignedinteger[Any]]
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
class Payload:
    """A header, and its sections joined and compressed."""

    header: dict[str, Any]
    data: bytes

    @property
    def header_text(self) -> str:
        """The header as JSON that neither ends nor opens an HTML element."""
        text = json.dumps(self.header, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        # Half of a surrogate pair has no place in a file.
        return text.encode("utf-8", "replace").decode("utf-8").replace("<", "\\u003c")

    @property
    def data_text(self) -> str:
        """The sections as text."""
        return base64.b64encode(self.data).decode("ascii")

    def size(self) -> int:
        """Return how many bytes both take in a page."""
        return len(self.header_text.encode("utf-8")) + 4 * -(-len(self.data) // 3)


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


def add_positions(sections: Sections, X: FloatArray, *, coarse: bool) -> None:
    """Add the latent points of all rows, in 16 bits if ``coarse``."""
    if not coarse:
        sections.add("rows.x", X.astype(np.float32))
        return
    low = X.min(axis=0).astype(np.float64)
    step = (X.max(axis=0) - low) / 65_535
    codes = np.rint((X - low) / np.where(step > 0, step, 1)).astype(np.uint16)
    sections.add("rows.x", codes, low=low.tolist(), step=step.tolist())


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


def add_names(sections: Sections, names: NoteArray) -> None:
    """Add the names of rows: a list as JSON, which takes far less room here than in the header."""
    # Half of a surrogate pair has no place in a file.
    text = json.dumps(names.tolist(), ensure_ascii=False, separators=(",", ":"))
    sections.add("rows.names", np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8))


def add_labels(sections: Sections, labels: dict[str, NoteArray]) -> dict[str, dict[str, Any]]:
    """Add columns of labels; return what the header says about them."""
    about: dict[str, dict[str, Any]] = {}
    for name, column in labels.items():
        if _is_number(column):
            about[name] = {"kind": "number"}
            sections.add(f"rows.label.{name}", column.astype(np.float32))
            continue
        codes, values = _classes(name, column)
        about[name] = {"kind": "category", "values": values}
        sections.add(f"rows.label.{name}", codes)
    return about


def _is_number(column: NoteArray) -> bool:
    """Say whether a column is a quantity rather than a few numbered classes."""
    if column.dtype.kind == "U":
        return False
    known = column[np.isfinite(column)]
    return bool((known != np.rint(known)).any()) or len(np.unique(known)) > MOST_NUMBERED_CLASSES


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
        n_steps = top - 1 if has_gaps else top
        is_whole = [((np.rint(table) == table) | np.isnan(table)).all(axis=0) for table in tables]
        whole = np.all(is_whole, axis=0) & (high - low <= n_steps)
        step = np.where(whole, 1.0, short((high.astype(float) - low) / n_steps))
        exact = whole | (high == low)
        return cls(short(low), step, top if has_gaps else None, bits, bool(exact.all()))

    def codes(self, Y: FloatArray) -> CodeArray:
        """Return the codes of rows Y (n, D)."""
        top = 2**self.bits - (1 if self.missing is None else 2)
        found = np.empty(Y.shape, dtype=f"<u{self.bits // 8}")
        step = np.where(self.step > 0, self.step, 1)
        for start in range(0, len(Y), ROWS_AT_A_TIME):
            part = Y[start : start + ROWS_AT_A_TIME].astype(np.float64)
            code = np.clip(np.rint((part - self.low) / step), 0, top)
            found[start : start + ROWS_AT_A_TIME] = np.where(
                np.isnan(code), self.missing or 0, code
            )
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

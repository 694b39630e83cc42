"""The arrays of a page, one after another, and the header that says where each begins."""

from __future__ import annotations

import base64
import json
import math
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from twofold.array_types import FloatArray
from twofold.row_notes import NoteArray

ALIGNMENT = 8
# Level 6 takes a third of the time of level 9 for 1 to 2 % more bytes.
COMPRESSION = 6
GZIP_WINDOW = 31
# A label of whole numbers with at most so many different ones names classes.
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

"""Arrays of a page one after another, as one piece of gzip."""

import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from twofold.array_types import FloatArray
from twofold.contract.row_notes import NoteArray

ALIGNMENT = 8
# Level 6 takes a third of the time of level 9 for 1 to 2 % more bytes.
COMPRESSION = 6
GZIP_WINDOW = 31
# Facts about rows have the codes from 0 to this.
MOST_FACT = 254


@dataclass
class Sections:
    """Arrays one after another, and where each begins."""

    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    length: int = 0
    _parts: list[bytes] = field(default_factory=list)  # not packed yet
    _packed: list[bytes] = field(default_factory=list)
    _packer: Any = field(
        default_factory=lambda: zlib.compressobj(COMPRESSION, zlib.DEFLATED, GZIP_WINDOW)
    )

    def add(self, name: str, array: NoteArray, **more: Any) -> None:
        """Append an array; ``more`` goes into its entry."""
        raw = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
        place = {"offset": self.length, "dtype": array.dtype.name, "shape": list(array.shape)}
        self.entries[name] = {**place, **more}
        self._parts += [raw, bytes(-len(raw) % ALIGNMENT)]
        self.length += len(raw) + len(self._parts[-1])

    def compressed(self) -> bytes:
        """Return all of them as gzip, without a date: the same bytes for the same arrays."""
        self._packed += [self._packer.compress(part) for part in self._parts]
        self._parts.clear()
        # The end of a copy: more may follow what is packed.
        return b"".join([*self._packed, self._packer.copy().flush()])


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

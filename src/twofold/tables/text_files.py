"""Text tables: cut into blocks of whole lines, and parsed as text or as numbers.

Working on blocks of bytes keeps memory bounded, and a block that cannot be parsed can be looked
at again, so an error says its line without reading the file from the start. A block without
quotes is cut at its last line end and checked by counting separators; only quoted blocks, where
line ends and separators may be content, go through the csv reader.

Numbers are read to the nearest float, so that a written table reads back equal. The parser of
pandas does that only in a slow mode; pyarrow, where it is installed, does it at full speed and
takes all blocks that it can read. What it refuses goes to pandas, and what pandas refuses is
looked at cell by cell, so both give the same result. Very many columns go neither way: the parsers
set up each of them, with a table of markers of its own, which takes gigabytes.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import importlib
import io
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from twofold.tables import dialect as dialects
from twofold.tables.dialect import Dialect, csv_records, is_blank
from twofold.tables.table import Table, TableError, cell_rules, with_numbers

# The first block is small, so that a look at the first rows is cheap. Parsing a block costs time
# for every column, so the blocks of a wide table are larger: this many bytes per column.
_FIRST_BYTES, _FIRST_COLUMN_BYTES = 1 << 18, 32
_BLOCK_BYTES, _COLUMN_BYTES = 1 << 23, 640
_MAX_OPEN_BYTES = 1 << 26  # a quoted cell longer than this was never closed
_ARROW_PIECE_BYTES, _ARROW_COLUMN_BYTES = 1 << 20, 2000
_MANY_COLUMNS = 5000
UNCLOSED = "Look for a quote that is opened and never closed."
_INDEX_NAMES = ("", "Unnamed: 0")  # the latter is what pandas makes of the former


class TextTable(Table):
    """A csv, tsv or txt file."""

    dialect: Dialect

    def __init__(self, path: Path, name: str, missing: Sequence[str]) -> None:
        self.dialect, head = dialects.examine(path, name)
        super().__init__(name, cell_rules(missing, self.dialect.decimal))
        self.notes += self.dialect.notes
        self._path = path
        fields, header_lines = self._fields(head)
        self._fields_in_file = fields  # None for a column that is only a trailing separator
        self.names = tuple(field for field in fields if field is not None)
        self.own_index = next((n for n in self.names[:1] if n in _INDEX_NAMES), None)
        self._head_lines = self.dialect.skip_lines + header_lines

    def blocks(self, numbers: frozenset[str], rows: int | None) -> Iterator[pd.DataFrame]:
        """Yield frames; see `Table`."""
        width = len(self._fields_in_file)
        reader = BlockReader(self._path, self._name, self.dialect, width, self._head_lines)
        for block in reader.blocks():
            frame = self._parse(block, numbers, reader)
            self.share_read = reader.share_read
            self.notes += [note for note in reader.notes if note not in self.notes]
            if len(frame):
                yield frame

    def _fields(self, head: str) -> tuple[list[str | None], int]:
        """Return the names of the columns in the file, and the lines that the header takes."""
        if self.dialect.separator == " ":
            head = _single_blanks(head.encode()).decode()
        reader = csv_records(io.StringIO(head), self.dialect)
        records = (record for record in reader if not is_blank(record))
        first, header_lines = next(records), 0
        if not self.dialect.has_header:
            return [f"x{i + 1}" for i in range(len(first))], 0
        header_lines = reader.line_num  # type: ignore[attr-defined]
        rows: list[list[str]] = []
        with contextlib.suppress(csv.Error):  # reading the rows says where and what
            rows.extend(itertools.islice(records, 100))
        if not rows and not head.split("\n", header_lines)[-1].strip():
            raise TableError(
                f"'{self._name}' has column names but no rows.", "Check that the file is complete."
            )
        names = [cell.strip() for cell in first]
        is_empty_last = all(not row[-1].strip() for row in rows)
        if rows and len(rows[0]) == len(names) + 1:
            # Either a separator ends each row, or the names of the rows have no name (as from R).
            return ([*names, None] if is_empty_last else ["", *names]), header_lines
        fields: list[str | None] = list(names)
        if len(names) > 1 and names[-1] == "" and is_empty_last:
            fields[-1] = None
        for i, field in enumerate(fields):
            if i > 0 and field == "":
                fields[i] = f"column_{i + 1}"
                self.notes.append(f"Column {i + 1} of '{self._name}' has no name: {fields[i]}.")
        return fields, header_lines

    def _parse(self, block: Block, numbers: frozenset[str], reader: BlockReader) -> pd.DataFrame:
        """Return a block as a frame, by the fastest parser that takes it."""
        is_number = [field in numbers for field in self._fields_in_file]
        frame = None
        if len(is_number) > _MANY_COLUMNS and b'"' not in block.data:
            frame = self._parse_wide(block, numbers, reader)
        elif not self.dialect.blank_after_separator:  # which pyarrow has no option for
            frame = self._parse_by_arrow(block, is_number)
        if frame is None:
            frame = self._parse_by_pandas(block, is_number, reader)
        if self._fields_in_file[-1] is None:
            if frame.iloc[:, -1].notna().any():
                line = next(line for line, cells in reader.records(block) if cells[-1])
                raise TableError(
                    f"'{self._name}', line {line} has a cell in the last column, which has no "
                    "name.",
                    "Give each column a name in the first line.",
                )
            frame = frame.iloc[:, :-1].copy()
        frame.columns = list(self.names)
        if any(is_number) and self.rules.numbers:
            frame = with_numbers(frame, numbers, self.rules, str)
        return frame

    def _parse_wide(
        self, block: Block, numbers: frozenset[str], reader: BlockReader
    ) -> pd.DataFrame:
        """Return a block without quotes as a frame, cut at its separators."""
        rows = [record for _, record in reader.records(block)]
        cells = np.array(rows, dtype=object).reshape(len(rows), len(self._fields_in_file))
        cells[cells == ""] = None
        frame = pd.DataFrame(cells, columns=self._labels(), dtype=object)
        return with_numbers(frame, numbers, self.rules, self._place(block, reader))

    def _parse_by_arrow(self, block: Block, is_number: Sequence[bool]) -> pd.DataFrame | None:
        """Return a block as a frame, or None if pyarrow is not there or does not take it."""
        if (parser := _arrow("pyarrow.csv")) is None:
            return None
        arrow, compute = _arrow("pyarrow"), _arrow("pyarrow.compute")
        kinds = (arrow.string(), arrow.float64())
        types = {str(i): kinds[wanted] for i, wanted in enumerate(is_number)}
        try:
            options = (
                parser.ReadOptions(
                    column_names=list(types),
                    # Its pieces are shared out to threads, but each costs time for every column.
                    block_size=max(_ARROW_PIECE_BYTES, _ARROW_COLUMN_BYTES * len(types)),
                ),
                parser.ParseOptions(
                    delimiter=self.dialect.separator, newlines_in_values=b'"' in block.data
                ),
                parser.ConvertOptions(
                    column_types=types,
                    null_values=self.rules.spellings() if any(is_number) else [""],
                    strings_can_be_null=not any(is_number),
                    decimal_point=self.dialect.decimal,
                ),
            )
            # Not to take Ctrl-C for itself: what comes as it ends would be lost.
            arrow.enable_signal_handlers(False)
            table = parser.read_csv(arrow.BufferReader(block.data), *options)
        except arrow.ArrowException:
            return None
        finally:
            arrow.enable_signal_handlers(True)
        if not any(is_number):
            return table.to_pandas()
        # The markers hold for all columns alike, so among numbers the gaps of text come here.
        columns = [
            column if wanted else compute.if_else(compute.equal(column, ""), None, column)
            for column, wanted in zip(table.columns, is_number, strict=True)
        ]
        return arrow.Table.from_arrays(columns, names=list(types)).to_pandas()

    def _parse_by_pandas(
        self, block: Block, is_number: Sequence[bool], reader: BlockReader
    ) -> pd.DataFrame:
        """Return a block as a frame, by pandas and if need be cell by cell."""
        markers = self.rules.spellings()
        options: dict[str, Any] = {
            "sep": self.dialect.separator,
            "decimal": self.dialect.decimal,
            "skipinitialspace": self.dialect.blank_after_separator,
            "names": [str(i) for i in range(len(is_number))],
            "header": None,
            "index_col": False,
            "keep_default_na": False,
            "float_precision": "high" if _is_short(block.data, self.dialect) else "round_trip",
            "low_memory": False,
        }
        types = {str(i): np.float64 if wanted else str for i, wanted in enumerate(is_number)}
        gaps = {str(i): markers if wanted else [""] for i, wanted in enumerate(is_number)}
        # A cell that is no number raises, as do lines that cannot be cut into cells.
        with contextlib.suppress(ValueError):
            return pd.read_csv(io.BytesIO(block.data), dtype=types, na_values=gaps, **options)
        try:
            frame = pd.read_csv(io.BytesIO(block.data), dtype=str, na_values=[""], **options)
        except ValueError as error:
            reader.find_ragged(block)
            reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
            where = f"'{self._name}', from line {block.first_line}"
            raise TableError(f"{where}: {reason}.", UNCLOSED) from error
        frame.columns = self._labels()
        numbers = list(itertools.compress(self._labels(), is_number))
        return with_numbers(frame, numbers, self.rules, self._place(block, reader))

    def _labels(self) -> list[str]:
        """Return a label for each column of the file, those without a name included."""
        return [str(i) if f is None else f for i, f in enumerate(self._fields_in_file)]

    def _place(self, block: Block, reader: BlockReader) -> Callable[[int], str]:
        """Return what says where a row of a block stands in the file."""

        def place(row: int) -> str:
            line = next(line for i, (line, _) in enumerate(reader.records(block)) if i == row)
            return f"'{self._name}', line {line}"

        return place


def _arrow(module: str) -> Any:
    """Return a module of pyarrow, or None if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def _is_short(data: bytes, dialect: Dialect) -> bool:
    """Whether no number has more than 15 digits or an exponent."""
    # Such a number is a quotient of two whole numbers that floats hold exactly, and then the quick
    # mode of pandas is exact as well (Clinger, 1990, How to read floating point numbers
    # accurately).
    digits = b"0123456789" + dialect.decimal.encode()
    table = bytes.maketrans(digits + b"E+", b"0" * len(digits) + b"e-")
    shape = data.translate(table)
    return b"0" * 17 not in shape and b"0e0" not in shape and b"0e-" not in shape


class Block(NamedTuple):
    """Whole lines in UTF-8 and the number of the first one in the file, from 1."""

    data: bytes
    first_line: int


class BlockReader:
    """Yield the blocks of a text table below its first ``head_lines``, ``width`` cells a line."""

    def __init__(
        self, path: Path, name: str, dialect: Dialect, width: int, head_lines: int
    ) -> None:
        self.path, self.name, self.dialect = path, name, dialect
        self.width, self.head_lines = width, head_lines
        self.notes: list[str] = []
        self.share_read = 0.0

    def records(self, block: Block) -> Iterator[tuple[int, list[str]]]:
        """Yield the line in the file and the cells of each row of a block."""
        reader = csv_records(io.StringIO(block.data.decode(), newline=""), self.dialect)
        line = block.first_line
        try:
            for record in reader:
                if not is_blank(record):
                    yield line, record
                line = block.first_line + reader.line_num  # type: ignore[attr-defined]
        except csv.Error as error:
            raise TableError(f"'{self.name}', after line {line - 1}: {error}.", UNCLOSED) from error

    def find_ragged(self, block: Block) -> None:
        """Raise for the first line of a block with more or fewer cells than there are names."""
        for line, record in self.records(block):
            if len(record) == self.width:
                continue
            hint = "Correct the line: fewer cells than columns."
            if len(record) > self.width:
                hint = (
                    "Correct the line: more cells than columns; a cell that contains the separator "
                    "must be in double quotes."
                )
            raise TableError(
                f"'{self.name}', line {line} has {len(record)} cells; expected {self.width}, one "
                "per column.",
                hint,
            )

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks in UTF-8, each with its lines counted and checked."""
        line = self.head_lines + 1
        seen_utf8, western = False, ""
        for data in self._cut():
            if not data.isascii():
                at_fault = None if western else _first_not_utf8(data)
                if at_fault is not None:
                    if seen_utf8:
                        line += data.count(b"\n", 0, at_fault)
                        raise TableError(
                            f"'{self.name}', line {line} is not valid UTF-8, though lines above "
                            "are.",
                            "Save the table again in one encoding, best in UTF-8.",
                        )
                    western = dialects.western_encoding(data)
                    self.notes.append(dialects.western_note(self.name, western))
                if western:
                    data = data.decode(western, errors="replace").encode()
                seen_utf8 = not western
            block = Block(_single_blanks(data) if self.dialect.separator == " " else data, line)
            self._check_width(block)
            yield block
            line += data.count(b"\n")

    def _check_width(self, block: Block) -> None:
        """Compare the number of separators with that of the lines, and look closer if needed."""
        data, separator = block.data, self.dialect.separator.encode()
        n_lines = data.count(b"\n") + (not data.endswith(b"\n"))
        first = data[: data.find(b"\n") + 1] or data
        counts = [first.count(separator), data.count(separator)]
        if b'"' in data or counts != [self.width - 1, n_lines * (self.width - 1)]:
            self.find_ragged(block)

    def _cut(self) -> Iterator[bytes]:
        """Yield runs of whole lines, without those above the first row."""
        rest, to_skip, line = b"", self.head_lines, self.head_lines + 1
        for piece in self._pieces():
            rest += piece
            while to_skip and (end := rest.find(b"\n")) >= 0:
                rest, to_skip = rest[end + 1 :], to_skip - 1
            if to_skip:
                continue
            cut = self._last_line_end(rest)
            if not cut and len(rest) > _MAX_OPEN_BYTES:
                raise dialects.line_too_long(self.name, line, len(rest))
            if cut:
                yield rest[:cut]
                line += rest.count(b"\n", 0, cut)
                rest = rest[cut:]
        if rest and not to_skip:
            self._check_quotes(rest)
            yield rest

    def _pieces(self) -> Iterator[bytes]:
        """Yield the bytes of the file in UTF-8 (or not, where the encoding was misjudged)."""
        size = max(_FIRST_BYTES, min(_BLOCK_BYTES, _FIRST_COLUMN_BYTES * self.width))
        later = max(_BLOCK_BYTES, min(_MAX_OPEN_BYTES, _COLUMN_BYTES * self.width))
        encoding = self.dialect.encoding
        size_of_file = max(1, self.path.stat().st_size)
        with dialects.decompressing(self.name), dialects.open_bytes(self.path) as file:
            # What is compressed counts as it lies on the disk: its whole length is not known.
            raw: Any = getattr(file, "fileobj", None) or file
            source: Any = file
            if encoding not in ("utf-8", "utf-8-sig") or self.dialect.line_end == "\r":
                source = io.TextIOWrapper(file, encoding=encoding, errors="replace", newline=None)
            elif encoding == "utf-8-sig":
                file.read(len(codecs.BOM_UTF8))
            while piece := source.read(size):
                self.share_read = min(1.0, raw.tell() / size_of_file)
                yield piece.encode() if isinstance(piece, str) else piece
                size = later

    def _last_line_end(self, data: bytes) -> int:
        """Return the length of the complete records at the start, 0 if there is none."""
        if b'"' not in data:
            return data.rfind(b"\n") + 1
        if len(data) > _MAX_OPEN_BYTES:
            size = f"{len(data) >> 20} MB"
            raise TableError(f"'{self.name}' has a quoted cell of more than {size}.", UNCLOSED)
        lines = data.decode("latin-1").split("\n")[:-1]  # one character per byte
        asked_for_more = False

        def feed() -> Iterator[str]:
            nonlocal asked_for_more
            for line in lines:
                yield line + "\n"
            asked_for_more = True

        reader, complete = csv_records(feed(), self.dialect), 0
        try:
            for _ in reader:
                if asked_for_more:  # within a record: its end is not here yet
                    break
                complete = reader.line_num  # type: ignore[attr-defined]
        except csv.Error:  # the check of the width says where
            return data.rfind(b"\n") + 1
        return sum(len(line) + 1 for line in lines[:complete])

    def _check_quotes(self, data: bytes) -> None:
        """Refuse an end of the file within quotes, which some parsers pass over."""
        ended = data if data.endswith(b"\n") else data + b"\n"
        complete = self._last_line_end(ended)
        if complete < len(ended):
            start = ended[complete:].split(b"\n", 1)[0].decode(errors="replace")
            raise TableError(
                f"'{self.name}' ends within a quoted cell that begins at {start[:40]!r}.",
                "Close the quote, or double it if it is content.",
            )


def _first_not_utf8(data: bytes) -> int | None:
    """Return the place of the first byte that is not UTF-8, None if all are."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None


def _single_blanks(data: bytes) -> bytes:
    """Return lines whose cells are parted by exactly one blank."""
    return re.sub(rb"(?m)^ | (?=\r?$)", b"", re.sub(rb"[ \t]+", b" ", data))

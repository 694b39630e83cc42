"""A text table cut into blocks of whole lines, each checked to have as many cells as names.

Working on blocks of bytes keeps memory bounded, and a block that cannot be parsed can be looked
at again, so an error says its line without reading the file from the start. A block without
quotes is cut at its last line end and checked by counting separators; only quoted blocks, where
line ends and separators may be content, go through the csv reader.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from twofold.tables.dialect import (
    Dialect,
    csv_records,
    damaged_gzip,
    is_blank,
    line_too_long,
    open_bytes,
    western_encoding,
    western_note,
)
from twofold.tables.table_error import TableError

# The first block is small, so that a look at the first rows is cheap. Parsing a block costs time
# for every column, so the blocks of a wide table are larger: so many bytes a column.
_FIRST_BYTES, _FIRST_COLUMN_BYTES = 1 << 18, 32
_BLOCK_BYTES, _COLUMN_BYTES = 1 << 23, 640
_MAX_OPEN_BYTES = 1 << 26  # a quoted cell longer than this was never closed


class Block(NamedTuple):
    """Whole lines in UTF-8 and the number of the first one in the file, from 1."""

    data: bytes
    first_line: int


class BlockReader:
    """Yield the blocks of a text table below its header.

    Parameters
    ----------
    path : Path
        The file, perhaps compressed by gzip.
    name : str
        Its name in messages.
    dialect : Dialect
        How it is written.
    width : int
        Cells of each line.
    head_lines : int
        Lines above the first row.
    """

    def __init__(
        self, path: Path, name: str, dialect: Dialect, width: int, head_lines: int
    ) -> None:
        self.path = path
        self.name = name
        self.dialect = dialect
        self.width = width
        self.head_lines = head_lines
        self.notes: list[str] = []
        self.share_read = 0.0

    def __iter__(self) -> Iterator[Block]:
        try:
            yield from self._checked()
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise damaged_gzip(self.name) from error

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
            raise TableError(
                f"'{self.name}', after line {line - 1}: {error}.",
                "Look for a quote that is opened and never closed.",
            ) from error

    def find_ragged(self, block: Block) -> None:
        """Raise for the first line of a block with more or fewer cells than there are names."""
        for line, record in self.records(block):
            if len(record) != self.width:
                raise self._ragged(line, record)

    def _checked(self) -> Iterator[Block]:
        """Yield the blocks in UTF-8, each with its lines counted and checked."""
        line = self.head_lines + 1
        seen_utf8, western = False, ""
        for data in self._cut():
            if not data.isascii():
                if not western and not _is_utf8(data):
                    if seen_utf8:
                        raise self._mixed(data, line)
                    western = western_encoding(data)
                    self.notes.append(western_note(self.name, western))
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
        is_even = (
            b'"' not in data
            and first.count(separator) == self.width - 1
            and data.count(separator) == n_lines * (self.width - 1)
        )
        if not is_even:
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
                raise line_too_long(self.name, line, len(rest))
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
        with open_bytes(self.path) as file:
            # What is compressed counts as it lies on the disk: its whole length is not known.
            raw: Any = getattr(file, "fileobj", None) or file
            if encoding in ("utf-8", "utf-8-sig") and self.dialect.line_end != "\r":
                if encoding == "utf-8-sig":
                    file.read(len(codecs.BOM_UTF8))
                while piece := file.read(size):
                    self.share_read = min(1.0, raw.tell() / size_of_file)
                    yield piece
                    size = later
                return
            text = io.TextIOWrapper(file, encoding=encoding, errors="replace", newline=None)
            while characters := text.read(size):
                self.share_read = min(1.0, raw.tell() / size_of_file)
                yield characters.encode()
                size = later

    def _last_line_end(self, data: bytes) -> int:
        """Return the length of the complete records at the start, 0 if there is none."""
        if b'"' not in data:
            return data.rfind(b"\n") + 1
        if len(data) > _MAX_OPEN_BYTES:
            raise TableError(
                f"'{self.name}' has a quoted cell of more than {len(data) >> 20} MB.",
                "Look for a quote that is opened and never closed.",
            )
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

    def _ragged(self, line: int, record: list[str]) -> TableError:
        n_cells = len(record)
        more = "more" if n_cells > self.width else "fewer"
        message = (
            f"'{self.name}', line {line} has {n_cells} cells; expected {self.width}, one per column"
        )
        hint = f"Correct the line: {more} cells than columns"
        if n_cells > self.width:
            hint += "; a cell that contains the separator must be in double quotes"
        return TableError(f"{message}.", f"{hint}.")

    def _mixed(self, data: bytes, line: int) -> TableError:
        """Say where UTF-8 ends to be UTF-8."""
        try:
            data.decode()
        except UnicodeDecodeError as error:
            line += data.count(b"\n", 0, error.start)
        return TableError(
            f"'{self.name}', line {line} is not valid UTF-8, though lines above are.",
            "Save the table again in one encoding, best in UTF-8.",
        )


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _single_blanks(data: bytes) -> bytes:
    """Return lines whose cells are parted by exactly one blank."""
    data = re.sub(rb"[ \t]+", b" ", data)
    return re.sub(rb"(?m)^ | (?=\r?$)", b"", data)

"""How a text table is written: separator, decimal comma, encoding, and whether it has a header.

All of it is found in the first lines. The separator is the one that cuts the lines into equally
many cells; between several such one that cuts the first line, of names, like the others, and then
the one that leaves the most numbers, so that ``1,5;2,3`` is two numbers with a decimal comma and
not three cells. Nothing is guessed that a wrong guess would
spoil silently: thousands marks and comments are left as they are.
"""

import codecs
import contextlib
import csv
import dataclasses
import gzip
import io
import itertools
import math
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import IO

from twofold.model_files import FIRST_BYTES
from twofold.tables.table import BLANK_MARKS, CellRules, TableError, cell_rules

SEPARATORS = (",", ";", "\t", "|")
_SAMPLE_BYTES = 256_000
_MAX_SAMPLE_BYTES = 64_000_000  # a wide table may need more for its first lines
_MIN_LINES = 20
_MAX_RECORDS = 200
_MAX_CELLS = 100_000
# Fewer lines below do not tell whether a first line of numbers alone is unlike them.
_ROWS_TO_JUDGE = 3
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)  # what Excel writes and reads
_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_POINT_NUMBER = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
# What may be a thousands mark as well as a decimal one.
_MAYBE_GROUP = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
# Thousands marks without a doubt: several commas, or one mark before a decimal one.
_GROUPS_BEFORE_POINT = re.compile(
    rf"[+-]?\d{{1,3}}(,\d{{3}}){{2,}}|[+-]?\d{{1,3}}([,{BLANK_MARKS}]\d{{3}})+\.\d*"
)
_GROUPS_BEFORE_COMMA = re.compile(rf"[+-]?\d{{1,3}}([.{BLANK_MARKS}]\d{{3}})+,\d*")
# Two points alone tell only where nothing else does: parts of a version are parted by points, too.
_GROUPS_OF_POINTS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3}){2}")


@dataclasses.dataclass(frozen=True)
class Dialect:
    """How a text table is written."""

    separator: str = ","  # , ; tab | or a blank for cells parted by any number of blanks
    decimal: str = "."  # or a comma
    encoding: str = "utf-8"  # "utf-8-sig" and "utf-16" begin with a byte order mark
    has_header: bool = True  # whether the first line that is not skipped names the columns
    skip_lines: int = 0  # before the header: blank ones, and Excel's ``sep=;``
    blank_after_separator: bool = False  # as in ``1, 2, 3``; it is no part of the cells
    line_end: str = "\n"
    has_separator_line: bool = False  # whether Excel's ``sep=;`` stands above all others
    notes: tuple[str, ...] = ()  # sentences worth telling the user


def examine(path: str | os.PathLike[str], name: str) -> tuple[Dialect, str]:
    """Return how a text table is written, and its first lines with plain line ends."""
    raw, is_whole = _first_bytes(path, name)
    encoding, notes = _encoding(raw, name, is_whole)
    text = codecs.getincrementaldecoder(encoding)("replace").decode(raw, final=is_whole)
    text = text.removeprefix("\ufeff")
    first_end = re.search(r"\r\n|\n|\r", text)
    line_end = first_end[0] if first_end else "\n"
    if line_end == "\r" and "\n" in text:  # a stray one within a first line
        line_end = "\n"
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not is_whole and "\n" in text:
        text = text[: text.rindex("\n") + 1]  # the last line is cut off
    lines = text.split("\n", _MAX_RECORDS)
    skip = _leading_blank(lines)
    told = _SEPARATOR_LINE.fullmatch(lines[skip].strip(" ")) if skip < len(lines) else None
    if told:
        skip += 1 + _leading_blank(lines[skip + 1 :])
    body = "\n".join(text.split("\n")[skip:])
    if not body.strip():
        raise TableError(f"'{name}' holds no table: it is empty.", "Check how it was written.")
    separator = told[1] if told else _separator(body)
    if told and (not separator.isascii() or separator.isalnum() or separator in "\"'\0+-."):
        raise TableError(
            f"'{name}' says in its first line that {separator!r} separates cells, which is not "
            "possible.",
            "Write sep=; or another mark there, or leave the line out.",
        )
    records = _first_records(body, separator)
    if not records:
        raise TableError(
            f"'{name}' holds no table: its first line cannot be cut into cells.",
            "Look for a quote that is opened and never closed, and check how it was written.",
        )
    decimal = _decimal(records, separator)
    has_header, more = _has_header(body, separator, records, cell_rules(decimal=decimal))
    has_blanks, is_told = _has_blanks(body, separator), told is not None
    found = (separator, decimal, encoding, has_header, skip, has_blanks, line_end, is_told)
    return Dialect(*found, notes=(*notes, *more)), body


def open_bytes(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file for reading, decompressed if it is compressed by gzip."""
    with open(path, "rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if is_gzip else open(path, "rb")  # type: ignore[return-value]


@contextlib.contextmanager
def decompressing(name: str) -> Iterator[None]:
    """Let errors of a compressed file that does not end as it should say that it is damaged."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TableError(
            f"'{name}' is damaged or cut off: it does not decompress.", "Copy or download it again."
        ) from error


def line_too_long(name: str, line: int, size: int) -> TableError:
    """Say that a line does not end."""
    return TableError(
        f"'{name}', line {line} has more than {size // 10**6} MB.", "Check how it was written."
    )


def csv_records(lines: Iterator[str], dialect: Dialect) -> Iterator[list[str]]:
    """Return the reader that cuts lines of this dialect into cells; it counts ``line_num``."""
    return csv.reader(
        lines,
        delimiter=dialect.separator,
        skipinitialspace=dialect.blank_after_separator or dialect.separator == " ",
    )


def is_blank(record: Sequence[str]) -> bool:
    """Whether a record comes from a line without content, which pandas skips too."""
    return not record or (len(record) == 1 and record[0] != "" and not record[0].strip(" \t"))


def _first_bytes(path: str | os.PathLike[str], name: str) -> tuple[bytes, bool]:
    """Return the start of the file and whether it is all of it."""
    size = _SAMPLE_BYTES
    with decompressing(name), open_bytes(path) as file:
        raw = file.read(size)
        while len(raw) == size < _MAX_SAMPLE_BYTES and raw.count(b"\n") < _MIN_LINES:
            size *= 4
            raw += file.read(size - len(raw))
    if not raw:
        raise TableError(f"'{name}' is empty (0 bytes).", "Check how it was written.")
    for start, kind, hint in FIRST_BYTES:
        if raw.startswith(start):
            raise TableError(f"'{name}' is not a text file: it looks like {kind}.", hint)
    is_whole = len(raw) < size
    if not is_whole and b"\n" not in raw and b"\r" not in raw:
        raise line_too_long(name, 1, size)
    return raw, is_whole


def _encoding(raw: bytes, name: str, is_whole: bool) -> tuple[str, tuple[str, ...]]:
    """Return the encoding of the start of a file, and a note if it had to be guessed."""
    if raw.startswith(codecs.BOM_UTF8):
        return "utf-8-sig", ()
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16", ()
    if b"\0" in raw:
        # Latin letters in UTF-16: every second byte is zero, but not the others.
        has_even, has_odd = any(raw[0:2000:2]), any(raw[1:2000:2])
        if has_even != has_odd:
            return f"utf-16-{'le' if has_even else 'be'}", (f"'{name}' was read as UTF-16.",)
        raise TableError(
            f"'{name}' is not a text file: it contains zero bytes.", "Save the table as CSV."
        )
    try:
        codecs.getincrementaldecoder("utf-8")().decode(raw, final=is_whole)
    except UnicodeDecodeError:
        encoding = western_encoding(raw)
        return encoding, (western_note(name, encoding),)
    return "utf-8", ()


def western_encoding(raw: bytes) -> str:
    """Return which of the two Western encodings can be meant by bytes that are not UTF-8."""
    try:
        raw.decode("cp1252")
    except UnicodeDecodeError:  # five bytes have no meaning there, and any has in Latin-1
        return "latin-1"
    return "cp1252"


def western_note(name: str, encoding: str) -> str:
    """Say that a file is not UTF-8 and what it was taken for."""
    label = "Windows-1252" if encoding == "cp1252" else "Latin-1"
    return f"'{name}' is not valid UTF-8; it was read as {label}, so check names with accents."


def _leading_blank(lines: Sequence[str]) -> int:
    """Return how many lines at the start have no content."""
    return next((i for i, line in enumerate(lines) if line.strip()), len(lines))


def _first_records(body: str, separator: str) -> list[list[str]]:
    """Return the cells of the first lines, those without content left out."""
    if separator == " ":
        lines = body[:_SAMPLE_BYTES].split("\n")[:_MAX_RECORDS]
        return [line.split() for line in lines if line.strip()]
    dialect = Dialect(separator, blank_after_separator=_has_blanks(body, separator))
    records: list[list[str]] = []
    n_cells = 0
    try:
        for record in csv_records(io.StringIO(body), dialect):
            if not is_blank(record):
                records.append(record)
                n_cells += len(record)
            if len(records) >= _MAX_RECORDS or (n_cells > _MAX_CELLS and len(records) > 4):
                break
    except csv.Error:  # such as a quote that is never closed; reading says where
        pass
    return records


def _separator(body: str) -> str:
    """Return the separator that cuts the lines, names too, evenly and leaves the most numbers."""
    best, best_score = "", (0.0, False, 0.0, 0)
    for separator in SEPARATORS:
        records = _first_records(body, separator)
        widths = Counter(len(record) for record in records)
        width, n_even = widths.most_common(1)[0] if widths else (0, 0)
        if width > 1:
            share = _number_share(records, _decimal(records, separator))
            cuts_names = len(records[0]) == width
            score = (round(n_even / len(records), 1), cuts_names, round(share, 2), width)
            if score > best_score:
                best, best_score = separator, score
    return best or (" " if _is_blank_separated(body) else ",")


def _is_blank_separated(body: str) -> bool:
    """Whether all first lines are equally many numbers parted by blanks, names in line one."""
    if any(mark in body[:_SAMPLE_BYTES] for mark in '";|'):
        return False
    records = _first_records(body, " ")
    widths = {len(record) for record in records}
    return len(widths) == 1 and widths.pop() > 1 and _number_share(records) > 0.5


def _number_share(records: Sequence[Sequence[str]], decimal: str = ".") -> float:
    """Return the share of the cells below the first line that are numbers or missing."""
    below = itertools.chain.from_iterable(records[1:] or records)
    cells = list(itertools.islice(below, _MAX_CELLS))
    return sum(map(cell_rules(decimal=decimal).is_number, cells)) / max(1, len(cells))


def _decimal(records: Sequence[Sequence[str]], separator: str) -> str:
    """Return the decimal character; a comma only where it cannot be the separator."""
    if separator == ",":
        return "."
    cells = [cell.strip().rstrip("%").rstrip() for record in records for cell in record]
    clear = [cell for cell in cells if not _MAYBE_GROUP.fullmatch(cell)]
    # Marks that may part thousands decide where no others do.
    for comma, point, told in (
        (_GROUPS_BEFORE_COMMA, _GROUPS_BEFORE_POINT, cells),
        (_COMMA_NUMBER, _POINT_NUMBER, clear),
        (_GROUPS_OF_POINTS, _GROUPS_BEFORE_POINT, cells),
        (_COMMA_NUMBER, _POINT_NUMBER, cells),
    ):
        n_comma = sum(comma.fullmatch(cell) is not None for cell in told)
        n_point = sum(point.fullmatch(cell) is not None for cell in told)
        if n_comma != n_point:
            return "," if n_comma > n_point else "."
    return "."


def _has_blanks(body: str, separator: str) -> bool:
    """Whether a blank follows nearly every separator."""
    start = body[:_SAMPLE_BYTES]
    n_all = start.count(separator)
    return separator != " " and n_all > 0 and start.count(separator + " ") > 0.9 * n_all


def _has_header(
    body: str, separator: str, records: Sequence[Sequence[str]], rules: CellRules
) -> tuple[bool, tuple[str, ...]]:
    """Whether the first record holds names, and a note if that is not plain."""
    # Names may look like numbers: pandas numbers unnamed columns from 0, and spectra have
    # wavelengths. They are names if they count up from 0 or 1, or if only they are quoted.
    first, others = records[0], records[1:]
    is_number = [bool(cell.strip()) and rules.is_number(cell) for cell in first]
    texts = [i for i, cell in enumerate(first) if cell.strip() and not is_number[i]]
    if not any(is_number) or _is_quoted_header(body, separator) or _counts_up(first):
        return True, ()
    numbers = [i for i, is_one in enumerate(is_number) if is_one]
    is_short = len(others) < _ROWS_TO_JUDGE
    if not texts and (is_short or not _are_other_numbers(numbers, first, others, rules)):
        names = f"x1 to x{len(first)}" if len(first) > 1 else "x1"
        return False, (
            f"The first line holds only numbers, so the columns are named {names}. If they are "
            'names, put each of them in double quotes: "2020","2021".',
        )
    # A word that comes again further down in its column is a value and no name, unless numbers
    # beside it are names, such as years.
    comes_again = any(record[i : i + 1] == [first[i]] for i in texts for record in others)
    if comes_again and not _are_other_numbers(numbers, first, others, rules):
        return False, (
            "The first line was taken for data and not for names, because its text comes again "
            'below. If it holds names, put each of them in double quotes: "a","b".',
        )
    return True, ()


def _are_other_numbers(
    places: Sequence[int], first: Sequence[str], others: Sequence[Sequence[str]], rules: CellRules
) -> bool:
    """Whether cells of the first line are whole numbers unlike all others in their columns.

    They are if there are two or more, none twice, and each is either farther from the others than
    these are from each other, or the only whole one.
    """
    names = [rules.number(first[i]) for i in places]
    if len(names) < 2 or len(set(names)) < len(names) or not all(map(float.is_integer, names)):
        return False
    for i, name in zip(places, names, strict=True):
        cells = [record[i] for record in others if i < len(record)]
        values = [rules.number(cell) for cell in cells if rules.is_number(cell)]
        below = [value for value in values if math.isfinite(value)]
        if not below:
            return False
        low, high = min(below), max(below)
        is_far = max(low - name, name - high) > high - low
        if not is_far and any(map(float.is_integer, below)):
            return False
    return True


def _counts_up(first: Sequence[str]) -> bool:
    """Whether the cells are 0, 1, 2, … or 1, 2, 3, …, perhaps after an empty one."""
    cells = [cell.strip() for cell in first]
    least = 3
    if cells[0] == "":  # above the names of rows
        cells, least = cells[1:], 1
    counts = ([str(i + start) for i in range(len(cells))] for start in (0, 1))
    return len(cells) >= least and cells in counts


def _is_quoted_header(body: str, separator: str) -> bool:
    """Whether all cells of the first line are quoted and those of the second are not."""
    first, second = [*body.split("\n", 2), ""][:2]
    mark = re.escape(separator)
    quoted = re.compile(rf'"[^"]*"({mark}"[^"]*")*')
    return quoted.fullmatch(first) is not None and quoted.fullmatch(second) is None

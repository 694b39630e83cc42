"""How a text table is written is found from its first lines."""

from __future__ import annotations

import codecs
import gzip

import pytest

from twofold.tables.dialect import Dialect, examine
from twofold.tables.table import TableError


def sniff(path) -> Dialect:
    return examine(path, str(path))[0]


@pytest.fixture
def found(tmp_path):
    def write_and_sniff(content: str | bytes) -> Dialect:
        path = tmp_path / "table.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return sniff(path)

    return write_and_sniff


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_separators_and_line_ends(found, separator, line_end):
    lines = [separator.join(cells) for cells in ("abc", "123", "456")]
    dialect = found(line_end.join(lines) + line_end)
    assert dialect == Dialect(separator, ".", "utf-8", True, 0, line_end=line_end)


@pytest.mark.parametrize(
    ("content", "separator", "decimal"),
    [
        ("a;b\n1,5;2,3\n2,5;4,1\n", ";", ","),
        ("a\tb\n1,5\t2,3\n2,5\t4,1\n", "\t", ","),
        ("1,5;2,3\n2,5;4,1\n", ";", ","),  # without names the comma would cut evenly too
        ("a;b\n1.5;2.3\n", ";", "."),
        ("a;b\n1,234;5.67\n2,345;8.90\n1.5;2.5\n", ";", "."),  # thousands marks are not guessed
        ("a;b\n1,234;16.0 %\n2,345;8.9 %\n3,456;7.1 %\n4,567;-\n", ";", "."),  # percents tell
        ("a;b\n1.234;16,0 %\n2.345;8,9 %\n3.456;7,1 %\n4.567;-\n", ";", ","),
        ("a;b\n1,234;5\n2,345;8\n", ";", ","),  # nothing else tells
        ("id;revenue;n\nk0;1.000,50;0\nk1;2.345,25;1\n", ";", ","),
        ("id;a;b;c\nk0;1.000,00;;01.03.2021\nk1;;;02.03.2021\n", ";", ","),
        ("a;b\n1 000,50;0\n2'345,25;1\n", ";", ","),
        ("a;b\n1'000.50;0\n2 345.25;1\n", ";", "."),
        ("a;b\n1.234.567;0\n2.345.678;1\n", ";", ","),
        ("a;b\n123.456.789;0.5\n1.100.200;1.5\n", ";", "."),  # versions beside decimal points
        ("a;b;c\n" + "0,5;v;q\n1,5;u;p\n" * 20, ";", ","),  # the comma cuts all but the names
        ("a\n" + "r,0.5\ns,1.5\n" * 20, ",", "."),  # names of rows may have no name
        ("a;b\n1;2\n", ";", "."),
        ("a,b\n1.5,2\n", ",", "."),
        ('a,b\n"1,5","2,5"\n', ",", "."),
        ("name,text\n1,x; y\n2,u; v; w\n", ",", "."),
        ('"a;b","c;d"\n"e;f",1\n', ",", "."),
        ("only\n1\n2\n", ",", "."),
        ("a b\n 1.5   2\n 3     4 \n", " ", "."),
        ("a b\tc\n1\t2\n", "\t", "."),
        ("words in a row\nwords with no table\n", ",", "."),
    ],
)
def test_separator_and_decimal_comma(found, content, separator, decimal):
    dialect = found(content)
    assert (dialect.separator, dialect.decimal) == (separator, decimal)


@pytest.mark.parametrize(
    ("content", "has_header"),
    [
        ("a,b\n1,2\n", True),
        ("1,2\n3,4\n", False),
        ("1,NA\n3,4\n", False),
        ("id,2019,2020\nx,1,2\n", True),
        ("5.1,setosa\n4.9,setosa\n", False),  # the word comes again below
        ("5.1,setosa\n4.9,other\n", True),
        ("id,2020,2021,north\nr,0.5,0.7,south\ns,0.6,0.1,north\n", True),  # years
        ("id,2020,2021,north\nr,5,1971,south\ns,2000,2020,north\n", False),
        ("1,2,north\n2,3,south\n3,4,north\n", False),
        (",0,1\nr,5,6\n", True),  # as pandas writes columns without names
        ("0,1,2\n5,6,7\n", True),
        ("0,1\n5,6\n", False),  # too short to be sure
        ('"400.5","401"\n1,2\n', True),  # only names are quoted
        ('"400.5","401"\n"1","2"\n', False),
        ("2019,2020,2021\n5.1,4.9,5\n5.3,4.7,5.2\n5,5,6\n", True),  # unlike all below
        ("100,4.9,300\n5.1,4.9,5\n5.3,4.7,5.2\n5,5,6\n", False),
        ("a,b\nc,d\n", True),
        ("1;5\n", False),
    ],
)
def test_header(found, content, has_header):
    assert found(content).has_header is has_header


def test_numbers_in_the_first_line_are_told(found):
    assert "x1 to x2" in found("1,2\n3,4\n").notes[0]
    assert found("a,b\n3,4\n").notes == ()


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;", "\n  \nsep=;\n"])
def test_the_separator_line_of_excel(found, first):
    dialect = found(f"{first}\na,x;b,y\n1,1;2,2\n")
    assert dialect.separator == ";"
    assert dialect.skip_lines == first.count("\n") + 1


@pytest.mark.parametrize(
    ("encoding", "start"),
    [("utf-8", b""), ("utf-8-sig", b""), ("utf-16", b""), ("utf-16", codecs.BOM_UTF16_BE)],
)
def test_unicode(found, encoding, start):
    content = "größe,名\n1,2\n"
    raw = start + content.encode("utf-16-be") if start else content.encode(encoding)
    dialect = found(raw)
    assert dialect.encoding == encoding
    assert dialect.notes == ()


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_mark(found, encoding):
    assert found("a,b\n1,2\n".encode(encoding)).encoding == encoding


def test_western_encodings_are_told(found):
    dialect = found("größe,b\n1,2\n".encode("latin-1"))
    assert dialect.encoding == "cp1252"
    assert "not valid UTF-8" in dialect.notes[0]
    assert found(b"gr\x81\xf6,b\n1,2\n").encoding == "latin-1"  # 0x81 means nothing in Windows


def test_a_character_cut_by_the_end_of_the_sample_is_no_error(found):
    for shift in range(3):
        content = "n,t\n" + "x" * shift + "1,é\n" * 60_000
        assert found(content).encoding == "utf-8"


def test_blanks_after_separators(found):
    assert found("a, b, c\n1, 2, 3\n").blank_after_separator
    assert not found("a,b b,c\n1,2 2,3\n").blank_after_separator


def test_compressed(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"a;b\n1,5;2\n"))
    assert sniff(path).separator == ";"
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(TableError, match="cut off"):
        sniff(path)


def test_a_header_longer_than_the_sample(found):
    names = ";".join(f"a rather long name {i}" for i in range(30_000))
    dialect = found(f"{names}\n{';'.join(['1,5'] * 30_000)}\n")
    assert (dialect.separator, dialect.decimal) == (";", ",")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n \r\n\n", "holds no table"),
        (b"sep=;\n", "holds no table"),
        (b"PK\x03\x04rest", "zip archive"),
        (b"PAR1rest", "Parquet"),
        (b"\x93NUMPY\x01\x00", "numpy array"),
        (b"a,b\n\x00\x01\x02\x03,4\n", "zero bytes"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
    ],
)
def test_what_is_no_text_table(found, content, message):
    with pytest.raises(TableError, match=message) as caught:
        found(content)
    assert caught.value.hint


@pytest.mark.parametrize("content", [b"\0" * 1000, b"\0" * 300_000, b"\0\0\0" + b"a,b\n" * 9])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_zeros_are_no_table(content, suffix, tmp_path):
    path = tmp_path / f"t{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    with pytest.raises(TableError, match="is not a text file: it contains zero bytes"):
        sniff(path)


def test_a_first_line_that_cannot_be_cut_is_no_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"' + "x" * 300_000)
    with pytest.raises(TableError, match="first line cannot be cut into cells"):
        sniff(path)

"""Tables of all kinds: names, index, text, numbers, gaps, chunks and errors."""

from __future__ import annotations

import gzip
import io
import re
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from twofold.tables import text_files
from twofold.tables.reading import open_table
from twofold.tables.table import NotANumberError, TableError

nan = float("nan")


@pytest.fixture
def table(tmp_path):
    def write(content: str | bytes, name: str = "table.csv", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return open_table(path, **options)

    return write


@pytest.fixture(params=["pyarrow", "pandas"])
def parser(request, monkeypatch):
    """Run with the fast parser, and as if pyarrow were not installed."""
    if request.param == "pandas":
        monkeypatch.setattr(text_files, "_arrow", lambda module: None)
    return request.param


def cells(frame: pd.DataFrame) -> list[list[object]]:
    """Return the rows with None for missing cells, whatever pandas calls them."""
    rows = frame.astype(object).to_numpy().tolist()
    return [[None if pd.isna(cell) else cell for cell in row] for row in rows]


def test_cells_are_text_exactly_as_in_the_file(table, parser):
    source = table('a,b,c\n007,1.50,NA\n,"x, ""y""\nz", t\n')
    frame = source.read()
    assert cells(frame) == [["007", "1.50", "NA"], [None, 'x, "y"\nz', " t"]]
    assert source.columns == ("a", "b", "c")
    assert list(frame.index) == [0, 1]
    assert (source.has_index, source.index_name, source.n_rows) == (False, None, 2)


def test_numbers_where_asked(table, parser):
    frame = table("a,b,c\n1,2,x\nNA,-3e-1,\n").read(["a", "b"])
    assert cells(frame) == [[1.0, 2.0, "x"], [None, -0.3, None]]
    assert [str(frame[name].dtype) for name in "ab"] == ["float64"] * 2


@pytest.mark.parametrize(
    "marker",
    [
        "",
        "NA",
        "N/A",
        "NaN",
        "nan",
        "null",
        "NULL",
        "None",
        "#N/A",
        "?",
        "-",
        "n/a",
        " NA ",
        "nUll",
    ],
)
def test_missing_markers(table, parser, marker):
    frame = table(f"a,b\n1,2\n{marker},3\n").read(["a"])
    np.testing.assert_array_equal(frame["a"], [1.0, nan])


def test_further_missing_markers(table, parser):
    source = table("a,b\n1,n.d.\n-999.0,2\n-999,3\n", missing=["-999", "n.d."])
    np.testing.assert_array_equal(source.read(["a", "b"]), [[1, nan], [nan, 2], [nan, 3]])
    assert source.read()["a"].tolist() == ["1", "-999.0", "-999"]


@pytest.mark.parametrize("text", [" 7", "8 ", "+4", ".5", "5.", "1E5", "inf", "\u22125", "1e400"])
def test_spellings_of_numbers(table, parser, text):
    expected = float(text.replace("\u2212", "-"))
    assert table(f"a,b\n1,2\n{text},3\n").read(["a"])["a"].tolist() == [1.0, expected]


def test_numbers_are_the_nearest_floats(table, parser):
    rng = np.random.default_rng(0)
    values = rng.normal(size=2000) * 10.0 ** rng.integers(-200, 200, size=2000)
    short = np.array([float(f"{value:.8g}") for value in rng.normal(size=2000)])
    lines = "\n".join(f"{a!r},{b!r}" for a, b in zip(values.tolist(), short.tolist(), strict=True))
    frame = table(f"a,b\n{lines}\n").read(["a", "b"])
    np.testing.assert_array_equal(frame, np.column_stack([values, short]))
    only_short = "\n".join(repr(value) for value in short.tolist())
    np.testing.assert_array_equal(table(f"b\n{only_short}\n").read(["b"])["b"], short)


@pytest.mark.parametrize(
    "cell", ["1 2", "0x1F", "1_000", "true", "1e", "--1", "1.2.3", "٣", "%", "5 kg"]
)
def test_what_is_no_number(table, parser, cell):
    source = table(f'id,a\n"two\nlines",1\n\nx,{cell}\n')
    with pytest.raises(NotANumberError, match=r"table.csv', line 5, column 'a'") as caught:
        source.read(["a"])
    assert repr(cell) in str(caught.value)
    assert caught.value.cell == cell
    assert "missing" in caught.value.hint


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1,234.5", "-1,234,567", "12"], [1234.5, -1234567, 12]),
        (["1 234", "1\u00a0234", "1’234"], [1234, 1234, 1234]),
        (["5%", "-2.5 %", "1,200%", ""], [5, -2.5, 1200, np.nan]),
    ],
)
def test_thousands_marks_and_percent_signs(table, parser, cells, expected):
    lines = "".join(f'"{cell}",x\n' for cell in cells)
    source = table(f"a,b\n{lines}")
    np.testing.assert_array_equal(source.read("detect")["a"], expected)
    assert source.rules.marked["a"] == (cells[0], expected[0])  # so that it can be said


@pytest.mark.parametrize("cell", ["0,123", "1,2345", "12,34", "1234,567", "1,234 567", "1.234.567"])
def test_digits_that_are_no_groups_of_thousands(table, parser, cell):
    with pytest.raises(NotANumberError):
        table(f'a,b\n"{cell}",1\n').read(["a"])


def test_groups_of_commas_tell_a_decimal_point(table):
    source = table("a;b\n1,234,567;2\n2,345;3\n")
    assert source.read(["a"])["a"].tolist() == [1234567, 2345]


def test_decimal_comma(table, parser):
    source = table("sep=;\r\na;b\r\n1,5;x\r\n-2,25;y\r\n")
    assert cells(source.read(["a"])) == [[1.5, "x"], [-2.25, "y"]]
    assert source.read()["a"].tolist() == ["1,5", "-2,25"]
    assert table("a;b\n1,5;2\n1.234,5;3\n").read(["a"])["a"].tolist() == [1.5, 1234.5]


def test_detected_numbers(table, parser):
    content = "a,b,c,d,e\n1,x,true,,2\n2,3,false,NA,\n"
    source = table(content)
    frame = source.read("detect")
    assert frame["a"].tolist() == [1.0, 2.0]
    np.testing.assert_array_equal(frame["e"], [2.0, nan])
    assert frame["b"].tolist() == ["x", "3"]
    assert [name for name, _ in source.left_out] == ["b", "c", "d"]
    assert [reason for _, reason in source.left_out] == [
        "'x' is not a number",
        "'true' is not a number; to use true and false, write 1 and 0",
        "all its cells are missing",
    ]


def test_text_far_below_is_detected(table, parser):
    rows = ["1,2,3"] * 60_000
    rows[50_000] = "1,late,3"
    rows[-1] = "1,2,later"
    source = table("a,b,c\n" + "\n".join(rows))
    frame = source.read("detect")
    assert source.left_out == [
        ("b", "1 of 60,000 cells is not a number, first 'late' in row 50001"),
        ("c", "1 of 60,000 cells is not a number, first 'later' in row 60000"),
    ]
    assert source.nearly_numbers["c"].texts == ("later",)
    assert source.nearly_numbers["c"].advice == ""
    assert frame["b"].iloc[0] == "2"
    assert frame["a"].sum() == 60_000
    with pytest.raises(TableError, match="line 50002, column 'b'"):
        source.read(["a", "b"])


def test_rows_to_expect_from_the_bytes_read(table):
    lines = [f"{k % 9},{k % 7}" for k in range(400_000)]
    source = table("a,b\n" + "\n".join(lines) + "\n")
    assert source.expected_rows() is None
    next(source.chunks(1000))
    assert abs(source.expected_rows() - 400_000) < 8000
    sum(len(frame) for frame in source.chunks(100_000))
    assert source.expected_rows() == 400_000


@pytest.mark.parametrize(
    ("content", "index", "columns"),
    [
        (",a\nr1,1\nr2,2\n", ["r1", "r2"], ("a",)),
        ('"","a"\n"01",1\n"02",2\n', ["01", "02"], ("a",)),
        ("Unnamed: 0,a\n0,1\n1,2\n", ["0", "1"], ("a",)),
        ("a,b\nr1,1,2\nr2,3,4\n", ["r1", "r2"], ("a", "b")),  # the names of rows have no name
        (",0,1\n0,5,6\n,7,8\n", ["0", ""], ("0", "1")),
    ],
)
def test_an_unnamed_first_column_is_the_index(table, parser, content, index, columns):
    source = table(content)
    frame = source.read(source.columns)
    assert source.has_index
    assert source.columns == columns == tuple(frame.columns)
    assert frame.index.tolist() == index


def test_the_index_by_name(table, parser):
    source = table("a,id,b\n1,007,x\n2,008,y\n", index="id")
    assert source.columns == ("a", "b")
    frame = source.read(["a"])
    assert (frame.index.name, frame.index.tolist()) == ("id", ["007", "008"])
    with pytest.raises(TableError, match="no column 'idd'") as caught:
        table("a,id\n1,2\n", index="idd")
    assert caught.value.hint == "Did you mean 'id'?"


@pytest.mark.parametrize("content", ["a,b,\n1,2,\n3,4,\n", "a,b\n1,2,\n3,4,\n"])
def test_separators_at_the_end_of_lines(table, parser, content):
    source = table(content)
    assert source.columns == ("a", "b")
    np.testing.assert_array_equal(source.read(["a", "b"]), [[1, 2], [3, 4]])


def test_names(table):
    source = table("a , b,,c\n1,2,3,4\n")
    assert source.columns == ("a", "b", "column_3", "c")
    assert "Column 3" in source.notes[0]
    assert table("1,2\n3,4\n").columns == ("x1", "x2")
    with pytest.raises(TableError, match="same name: 'a', 'c'"):
        table("a,b,a,c,c\n1,2,3,4,5\n")
    with pytest.raises(TableError, match="no column 'lenght'") as caught:
        table("length,b\n1,2\n").read(["lenght"])
    assert caught.value.hint == "Did you mean 'length'?"


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize(("bad", "count"), [("5", 1), ("5,6,7", 3)])
@pytest.mark.parametrize("first", [True, False])
def test_ragged_lines(table, parser, quote, bad, count, first):
    rows = [bad, "1,2"] if first else ["1,2", "", bad, f"{quote}3{quote},4"]
    content = "\n".join(["a,b", *(["8,9"] if first else []), *rows])
    line = 3 if first else 4
    with pytest.raises(TableError, match=f"line {line} has {count} cells; expected 2") as caught:
        table(content).read()
    assert caught.value.hint


def test_a_short_and_a_long_line_do_not_make_up_for_each_other(table, parser):
    with pytest.raises(TableError, match="line 3 has 3 cells"):
        table("a,b\n1,2\n1,2,3\n1\n").read()


def test_quotes_never_closed(table, parser):
    with pytest.raises(TableError, match="ends within a quoted cell"):
        table('a,b\n1,"x\n2,3\n').read()
    with pytest.raises(TableError, match="line 1"):
        table('a,b\n1,"x\n' + "2,3\n" * 200_000).read()


def test_blank_lines_and_quotes_inside_cells(table, parser):
    frame = table('\n\na,b\n1,5" disk\n\n  \n2,"\'"\n\n').read(["a"])
    assert cells(frame) == [[1.0, '5" disk'], [2.0, "'"]]


def test_blanks_around_separators(table, parser):
    frame = table('a, b, c\n1, NA, "x, y"\n2, 3, z\n').read(["a", "b"])
    assert cells(frame) == [[1.0, None, "x, y"], [2.0, 3.0, "z"]]
    frame = table("a b\n  1.5   2\n 3 \t  -4e-1  \n", "table.txt").read(["a", "b"])
    np.testing.assert_array_equal(frame, [[1.5, 2], [3, -0.4]])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends(table, parser, encoding, line_end):
    content = line_end.join(["größe,name", "1,é", "2,ü", ""])
    source = table(content.encode(encoding))
    assert cells(source.read(["größe"])) == [[1.0, "é"], [2.0, "ü"]]


def test_western_letters_below_the_sample(table, parser):
    plain = b"name,a\n" + b"abc,1\n" * 200_000
    source = table(plain + "é,2\n".encode("cp1252"))
    assert source.read(["a"])["name"].iloc[-1] == "é"
    assert "Windows-1252" in source.notes[0]
    mixed = plain + "é,2\n".encode() + plain[7:] * 8 + "é,2\n".encode("cp1252")
    with pytest.raises(TableError, match="line 1800003 is not valid UTF-8"):
        table(mixed).read()


@pytest.mark.parametrize("rows", [None, 1, 130, 7000, 30_000, 50_000])
def test_chunks_are_the_table_in_pieces(table, parser, rows):
    n_rows = 300 if rows == 1 else 30_000
    content = "id,a,t\n" + "".join(f"r{i},{i / 7!r},t{i % 3}\n" for i in range(n_rows))
    source = table(content, index="id")
    frames = list(source.chunks(rows, numbers=["a"]))
    pd.testing.assert_frame_equal(pd.concat(frames), source.read(["a"]))
    if rows:
        assert [len(frame) for frame in frames[:-1]] == [rows] * (-(-n_rows // rows) - 1)
    assert pd.concat(frames).index.tolist() == [f"r{i}" for i in range(n_rows)]
    with pytest.raises(ValueError, match="at least 1"):
        source.chunks(0)


def test_row_numbers_go_on_from_chunk_to_chunk(table):
    source = table("a\n" + "1\n" * 10)
    assert [frame.index[0] for frame in source.chunks(4)] == [0, 4, 8]


@pytest.mark.slow
def test_memory_of_chunks_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", 1 << 20)
    path = tmp_path / "large.csv"
    with path.open("w") as file:
        file.write("a,b,c,d\n")
        file.writelines(f"{i},{i:a>40},{i:b>40},{i:c>40}\n" for i in range(200_000))
    source = open_table(path)
    next(source.chunks())  # imports and caches
    tracemalloc.start()
    n_rows = sum(len(frame) for frame in source.chunks(5000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_rows == 200_000
    assert peak < 15e6 < 0.6 * path.stat().st_size


def test_compressed_text(table, tmp_path):
    raw = gzip.compress(b"a,b\n1,2\n" * 1)
    np.testing.assert_array_equal(table(raw, "t.csv.gz").read(["a", "b"]), [[1, 2]])
    large = gzip.compress(b"a,b\n" + b"".join(b"%d,2\n" % i for i in range(200_000)))
    source = table(large[:-1000], "t.csv.gz")
    with pytest.raises(TableError, match="cut off"):
        source.read()


def test_standard_input(monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(b"a;b\n1,5;x\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    source = open_table("-")
    assert cells(source.read(["a"])) == [[1.5, "x"]]
    assert cells(source.read(["a"])) == [[1.5, "x"]]  # more than once
    assert source.path == "-"
    spooled = source._table._path
    assert spooled.exists()
    del source
    assert not spooled.exists()


def test_missing_files_and_folders(tmp_path):
    (tmp_path / "Measurements.csv").write_text("a\n1\n")
    with pytest.raises(TableError, match="no file") as caught:
        open_table(tmp_path / "measurments.csv")
    assert caught.value.hint == "Did you mean 'Measurements.csv'?"
    with pytest.raises(TableError, match="is a folder"):
        open_table(tmp_path)
    with pytest.raises(TableError, match=r"folder .* does not exist"):
        open_table(tmp_path / "no" / "such.csv")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("t.xls", "as .xlsx or CSV"),
        ("t.json", "Known kinds are"),
        ("t", "Known kinds are"),
        ("t.npy.gz", "Known kinds are"),
    ],
)
def test_unknown_suffixes(table, name, hint):
    with pytest.raises(TableError, match="not a known kind of table") as caught:
        table("a,b\n1,2\n", name)
    assert hint in caught.value.hint


def test_names_without_rows(table):
    with pytest.raises(TableError, match="no rows"):
        table("a,b\n")
    with pytest.raises(TableError, match="no rows"):
        table("a,b\n\n  \n")


def test_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame(
        {
            "f": np.array([1.5, nan, -999], dtype=np.float32),
            "i": pd.array([1, None, 3], dtype="Int64"),
            "b": [True, False, True],
            "t": ["x", None, "NA"],
            "c": pd.Categorical(["u", "v", "u"]),
        },
        index=["r1", "r2", "r3"],
    )
    frame.to_parquet(path)
    source = open_table(path, missing=["-999"])
    assert (source.columns, source.index_name, source.n_rows) == (tuple("fibtc"), None, 3)
    found = source.read(["f"])
    assert found.index.tolist() == ["r1", "r2", "r3"]
    np.testing.assert_array_equal(found["f"], [1.5, nan, nan])
    assert str(found["i"].dtype) == "Int64"
    assert cells(found[["t", "c"]]) == [["x", "u"], [None, "v"], ["NA", "u"]]
    source.read("detect")
    assert [name for name, _ in source.left_out] == ["b", "t", "c"]
    assert [len(part) for part in source.chunks(2)] == [2, 1]
    with pytest.raises(TableError, match=r"row 1, column 't': 'x' is not a number"):
        source.read(["t"])
    assert open_table(path, index="t").read().index.tolist() == ["x", "", "NA"]


def test_parquet_types_do_not_change_from_chunk_to_chunk(tmp_path):
    path = tmp_path / "t.parquet"
    whole = pd.DataFrame({"i": pd.array([1, 2, None, 4], dtype="Int32"), "j": [1, 2, 3, 4]})
    whole.set_index(pd.Index(list("abcd"), name="id")).to_parquet(path)
    source = open_table(path)
    assert source.index_name == "id"
    for frame in source.chunks(2):
        assert [str(dtype) for dtype in frame.dtypes] == ["Int32", "int64"]


def test_parquet_keeps_the_order_of_levels_in_every_chunk(tmp_path):
    path, levels = tmp_path / "t.parquet", ["tiny", "small", "large", "huge"]
    size = pd.Categorical(["large", "small", None, "small", "tiny"], levels, ordered=True)
    step = pd.Categorical(list("32123"), list("321"), ordered=True)
    whole = pd.DataFrame({"x": np.arange(5.0), "size": size, "step": step})
    whole.to_parquet(path, row_group_size=2)
    source = open_table(path)
    for frame in source.chunks(2):
        pd.testing.assert_frame_equal(frame, whole.loc[frame.index])
    pd.testing.assert_frame_equal(source.read("detect"), whole)
    reason = "its levels have an order"
    assert source.left_out == [("size", reason), ("step", reason)]
    assert source.read(["step"])["step"].tolist() == [3, 2, 1, 2, 3]


def test_parquet_joins_the_levels_of_its_parts(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parts = [
        pa.table({"s": pa.DictionaryArray.from_arrays(codes, levels, ordered=True)})
        for codes, levels in (([1, 0], ["low", "high"]), ([2, 0, 1], ["low", "middle", "high"]))
    ]
    with pa.parquet.ParquetWriter(tmp_path / "t.parquet", parts[0].schema) as file:
        for part in parts:
            file.write_table(part)
    expected = pd.read_parquet(tmp_path / "t.parquet")
    for frame in open_table(tmp_path / "t.parquet").chunks(2):
        assert frame["s"].dtype == expected["s"].dtype
        assert frame["s"].tolist() == expected["s"].loc[frame.index].tolist()


def test_damaged_files(table):
    for name in ("t.parquet", "t.npy", "t.npz", "t.h5ad"):
        with pytest.raises(TableError, match="damaged or no"):
            table(b"not at all what the suffix says", name)


def test_npy(tmp_path):
    path = tmp_path / "t.npy"
    matrix = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.save(path, np.asfortranarray(matrix))
    source = open_table(path, missing=["5"])
    assert (source.columns, source.n_rows) == (("x1", "x2", "x3"), 4)
    assert {str(dtype) for dtype in source.read().dtypes} == {"float32"}
    found = source.read("detect")
    assert (source.left_out, found.isna().to_numpy().sum()) == ([], 1)
    assert [len(part) for part in source.chunks(3, numbers=["x1"])] == [3, 1]
    np.save(path, matrix > 4)
    assert open_table(path).read("detect").to_numpy().sum() == 7
    for array, message in [
        (np.zeros((2, 3, 4)), r"shape \(2, 3, 4\)"),
        (np.array([["a"]]), "expected numbers"),
        (np.zeros((0, 3)), "no rows"),
    ]:
        np.save(path, array)
        with pytest.raises(TableError, match=message):
            open_table(path)
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(TableError, match="never loaded"):
        open_table(path)


def test_npz(tmp_path):
    path = tmp_path / "t.npz"
    X, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 1])
    np.savez(path, X=X, y=y, labels=np.array(["u", "v", "w"]), feature_names=["a", "b"])
    source = open_table(path)
    assert source.columns == ("a", "b", "y", "labels")
    assert source.companions == ("y", "labels")
    assert cells(source.read(["a", "b"])) == [[0, 1, 0, "u"], [2, 3, 1, "v"], [4, 5, 1, "w"]]
    np.savez(path, images=X, other=np.zeros(7))
    assert open_table(path).columns == ("x1", "x2")
    np.savez(path, a=X, b=X)
    with pytest.raises(TableError, match=r"a \(3, 2\), b \(3, 2\)"):
        open_table(path)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("dtype", [float, int, bool])
def test_sparse_npz(tmp_path, kind, dtype):
    X = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]], dtype=dtype)
    scipy.sparse.save_npz(tmp_path / "t.npz", scipy.sparse.csr_matrix(X).asformat(kind))
    source = open_table(tmp_path / "t.npz")
    assert (source.columns, source.n_rows) == (("x1", "x2", "x3"), 4)
    parts = list(source.chunks(3, numbers=["x1", "x2", "x3"]))
    assert [len(part) for part in parts] == [3, 1]
    np.testing.assert_array_equal(pd.concat(parts), X)


def test_sparse_npz_that_cannot_be(tmp_path):
    path, X = tmp_path / "t.npz", scipy.sparse.csr_matrix(np.eye(3))
    scipy.sparse.save_npz(path, X.tobsr())
    with pytest.raises(TableError, match=r"format 'bsr'; expected csr, csc or coo"):
        open_table(path)
    X.indices[0] = 7
    scipy.sparse.save_npz(path, X)
    with pytest.raises(TableError, match="damaged"):
        open_table(path)
    scipy.sparse.save_npz(path, scipy.sparse.csr_matrix((0, 3)))
    with pytest.raises(TableError, match="no rows"):
        open_table(path)


@pytest.mark.filterwarnings("ignore")  # what anndata warns of is not ours
@pytest.mark.parametrize("sparse", [True, False])
def test_h5ad(tmp_path, sparse):
    anndata = pytest.importorskip("anndata")
    from scipy.sparse import csr_matrix

    X = np.array([[0, 1.5], [2, 0], [0, 3]], dtype=np.float32)
    kinds = pd.Categorical.from_codes([0, 1, 0], pd.Index(["u", "v"], dtype=object))
    obs = pd.DataFrame({"kind": kinds}, index=pd.Index(["c1", "c2", "c3"], dtype=object))
    var = pd.DataFrame(index=pd.Index(["g1", "g2"], dtype=object))
    data = anndata.AnnData(csr_matrix(X) if sparse else X, obs=obs, var=var)
    data.write_h5ad(tmp_path / "t.h5ad")
    source = open_table(tmp_path / "t.h5ad")
    assert (source.columns, source.n_rows) == (("g1", "g2", "kind"), 3)
    parts = list(source.chunks(2, numbers=["g1", "g2"]))
    assert [len(part) for part in parts] == [2, 1]
    whole = pd.concat(parts)
    np.testing.assert_array_equal(whole[["g1", "g2"]], X)
    assert whole["kind"].tolist() == ["u", "v", "u"]
    assert whole.index.tolist() == ["c1", "c2", "c3"]


@pytest.mark.parametrize(("name", "package"), [("t.parquet", "pyarrow"), ("t.h5ad", "anndata")])
def test_packages_that_are_not_installed(table, monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(TableError, match=f"needs the package {package}") as caught:
        table(b"any", name)
    assert re.fullmatch(r'pip install ".*\[tables\].*"', caught.value.hint)


def test_pandas_and_pyarrow_are_loaded_at_first_use():
    statements = "import twofold, twofold.model_files, twofold.tables"
    code = f"import sys; {statements}; sys.exit(bool({{'pandas', 'pyarrow'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_estimators_load_without_pandas_and_pyarrow():
    # scikit-learn imports pandas where it is installed, so it is hidden here.
    code = "import sys; sys.modules.update(pandas=None, pyarrow=None); from twofold import UKR"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_parquet_file_does_not_stay_in_memory_while_it_is_read(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    rng = np.random.default_rng(0)
    with parquet.ParquetWriter(path, arrow.schema([("a", arrow.float64())])) as writer:
        for _ in range(20):
            writer.write_table(arrow.table({"a": rng.normal(size=50_000)}))
    held = []
    for _ in open_table(path).chunks(50_000):
        held.append(arrow.total_allocated_bytes())
    assert max(held) < path.stat().st_size / 2

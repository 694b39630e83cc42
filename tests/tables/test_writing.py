"""Written tables read back equal, and an interrupted write leaves the old file whole."""

from __future__ import annotations

import gzip
import io
import os
import sys

import numpy as np
import pandas as pd
import pytest

from twofold.tables.reading import open_table
from twofold.tables.table import TableError
from twofold.tables.writing import open_writer

nan = float("nan")


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=50) * 10.0 ** rng.integers(-30, 30, size=50),
            "400": rng.normal(size=50),
            "text": ["x, y", 'q"q', "two\nlines", "NA", None] * 10,
            "whole": rng.integers(-5, 5, size=50),
            "single": rng.normal(size=50).astype(np.float32),
        },
        index=[f"row {i}" for i in range(50)],
    )
    frame.iloc[3, 0] = nan
    return frame


def written(path, *frames, **options):
    with open_writer(path, **options) as out:
        for frame in frames:
            out.write(frame)
    return out


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt", "t.csv.gz", "t.parquet", "t.npz"])
@pytest.mark.parametrize("index_name", [None, "id"])
def test_round_trip(tmp_path, frame, name, index_name):
    frame.index.name = index_name
    out = written(tmp_path / name, frame.iloc[:20], frame.iloc[20:])
    assert (out.n_rows, out.notes) == (50, [])
    source = open_table(tmp_path / name, index=index_name)
    found = source.read(["a", "400", "whole", "single"])
    assert source.index_name == index_name
    assert list(found.columns) == list(frame.columns)
    assert found.index.tolist() == frame.index.tolist()
    for column in ("a", "400", "whole"):
        np.testing.assert_array_equal(found[column], frame[column])
    np.testing.assert_array_equal(found["single"].astype(np.float32), frame["single"])
    texts = [None if pd.isna(cell) or cell == "" else cell for cell in found["text"]]
    assert texts == [None if pd.isna(cell) else cell for cell in frame["text"]]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (5.0, "5"),
        (-0.0, "-0"),
        (1e22, "1e+22"),
        (123456789.125, "123456789.125"),
        (1 / 3, "0.3333333333333333"),
        (nan, ""),
        (np.inf, "inf"),
        (np.float32(0.1), "0.1"),
        (np.float32(1 / 3), "0.33333334"),
    ],
)
@pytest.mark.parametrize("beside", [1.0, 0.5])  # alone among whole numbers, or not
def test_shortest_numbers(tmp_path, value, text, beside):
    dtype = np.float32 if isinstance(value, np.float32) else np.float64
    values = np.array([value, beside], dtype=dtype)
    written(tmp_path / "t.csv", pd.DataFrame({"a": values, "b": ["x", "y"]}))
    assert (tmp_path / "t.csv").read_text() == f"a,b\n{text},x\n{beside:g},y\n"


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffid;a;b\r\nx;1,5;u\r\ny;;v\r\n",
        "id;a;b\nx;1.5;u\ny;2.25;v\n",
        'id|a|b\nx|1,5|"u|w"\ny|2|v\n',
        ",a,b\nx,1.5,NA\ny,,-\n",
        '"","1.5","b"\nx,1.5,u\ny,2,v\n',
    ],
)
def test_the_dialect_is_kept(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode())
    source = open_table(path)
    with open_writer(path, like=source) as out:  # over the table that is being read
        for part in source.chunks(1, numbers=[source.columns[-2]]):
            out.write(part)
    assert path.read_bytes().decode() == content


def test_the_usual_dialects(tmp_path, frame):
    (tmp_path / "t.csv").write_text("a;b\n1,5;2\n")
    source = open_table(tmp_path / "t.csv")
    plain = pd.DataFrame({"a": [1.5], "b": ["x"]})
    for name, expected in [("o.tsv", "a\tb\n1.5\tx\n"), ("o.csv", "a;b\n1,5;x\n")]:
        written(tmp_path / name, plain, like=source)
        assert (tmp_path / name).read_text() == expected
    (tmp_path / "t.csv").write_text("größe,b\n1,2\n", encoding="cp1252")
    written(tmp_path / "o.csv", plain, like=open_table(tmp_path / "t.csv"))
    assert (tmp_path / "o.csv").read_bytes() == b"\xef\xbb\xbfa,b\n1.5,x\n"
    (tmp_path / "t.csv").write_text("sep=;\na;b\n1,5;2\n")
    written(tmp_path / "o.csv", plain, like=open_table(tmp_path / "t.csv"))
    assert (tmp_path / "o.csv").read_text() == "sep=;\na;b\n1,5;x\n"
    (tmp_path / "t.txt").write_text("a b\n1 2\n")
    written(tmp_path / "o.txt", plain, like=open_table(tmp_path / "t.txt"))
    assert (tmp_path / "o.txt").read_text() == "a\tb\n1.5\tx\n"


def test_awkward_text(tmp_path):
    cells = ["a\rb", "\r\n", '"', ",", " lead", "sep=;", "é", "'", "\u2028"]
    written(tmp_path / "t.csv", pd.DataFrame({"a": cells, "b": range(len(cells))}))
    assert open_table(tmp_path / "t.csv").read()["a"].tolist() == cells
    written(tmp_path / "t.csv", pd.DataFrame({"only": ["x", None, "y"]}))
    assert open_table(tmp_path / "t.csv").read()["only"].isna().tolist() == [False, True, False]


def test_other_types(tmp_path):
    frame = pd.DataFrame(
        {
            "flag": [True, False],
            "gap": pd.array([1, None], dtype="Int64"),
            "part": pd.array([0.5, None], dtype="Float64"),
            "kind": pd.Categorical(["u", None]),
            "day": pd.to_datetime(["2024-01-31", "2024-02-01"]),
        }
    )
    written(tmp_path / "t.csv", frame)
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines[1:] == ["True,1,0.5,u,2024-01-31", "False,,,,2024-02-01"]


def test_row_numbers_are_no_names(tmp_path):
    frame = pd.DataFrame({"a": [1, 2, 3]})
    written(tmp_path / "t.csv", frame, frame[frame["a"] > 1])
    assert (tmp_path / "t.csv").read_text() == "a\n1\n2\n3\n2\n3\n"


def test_compressed_files_are_the_same_each_time(tmp_path, frame):
    for name in ("1.csv.gz", "2.csv.gz"):
        written(tmp_path / name, frame)
    assert (tmp_path / "1.csv.gz").read_bytes() == (tmp_path / "2.csv.gz").read_bytes()
    written(tmp_path / "plain.csv", frame)
    unpacked = gzip.decompress((tmp_path / "1.csv.gz").read_bytes())
    assert unpacked == (tmp_path / "plain.csv").read_bytes()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_npy_in_pieces(tmp_path, dtype):
    values = np.arange(30).reshape(10, 3).astype(dtype)
    frames = [pd.DataFrame(values[part]) for part in (slice(0, 4), slice(4, 5), slice(5, 10))]
    written(tmp_path / "t.npy", *frames)
    found = np.load(tmp_path / "t.npy")
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, values)
    np.testing.assert_array_equal(open_table(tmp_path / "t.npy").read(), values)


def test_npy_holds_numbers_only(tmp_path, frame):
    with pytest.raises(TableError, match="'text'") as caught:
        written(tmp_path / "t.npy", frame)
    assert ".npz" in caught.value.hint
    out = written(tmp_path / "t.npy", frame[["a", "whole"]])
    assert "names of rows" in out.notes[0]


def test_parquet_keeps_types_and_late_text(tmp_path, frame):
    first = frame.assign(text=[None] * 50)
    written(tmp_path / "t.parquet", first, frame)
    found = open_table(tmp_path / "t.parquet").read()
    assert [str(found[name].dtype) for name in ("a", "whole", "single")] == [
        "float64",
        "int64",
        "float32",
    ]
    assert found["text"].iloc[50] == "x, y"


def test_npz_arrays(tmp_path, frame):
    written(tmp_path / "t.npz", frame)
    with np.load(tmp_path / "t.npz", allow_pickle=False) as arrays:
        assert arrays["X"].shape == (50, 4)
        assert arrays["feature_names"].tolist() == ["a", "400", "whole", "single"]
        assert arrays["text"][0] == "x, y"
    with pytest.raises(TableError, match="'X' cannot be kept"):
        written(tmp_path / "t.npz", frame.rename(columns={"a": "X"}))


def test_standard_output(monkeypatch, frame):
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stdout)
    written("-", pd.DataFrame({"a": [1.5, nan], "b": ["é", "y"]}))
    assert stdout.buffer.getvalue().decode() == "a,b\n1.5,é\n,y\n"
    monkeypatch.setattr(sys, "stdout", io.StringIO())  # as in a notebook
    written("-", pd.DataFrame({"a": [1]}))
    assert sys.stdout.getvalue() == "a\n1\n"


def test_devices_are_written_to_and_not_replaced(tmp_path):
    written("/dev/null", pd.DataFrame({"a": [1]}))
    assert not os.path.isfile("/dev/null")


@pytest.mark.cover(2)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.npy", "t.npz"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, OSError])
@pytest.mark.parametrize("is_there", [True, False])
def test_an_interrupted_write_leaves_the_old_file(tmp_path, frame, name, error, is_there):
    path = tmp_path / name
    numbers = frame[["a", "400"]]
    if is_there:
        path.write_bytes(b"old")
    with pytest.raises(error), open_writer(path) as out:  # noqa: PT012
        out.write(numbers)
        raise error("stopped")
    assert [file.name for file in tmp_path.iterdir()] == ([name] if is_there else [])
    assert not is_there or path.read_bytes() == b"old"


def test_a_failed_end_leaves_the_old_file(tmp_path, frame, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TableError, match="No space left"):
        written(path, frame)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_file_is_there_until_the_end(tmp_path, frame):
    path = tmp_path / "t.csv"
    path.write_text("old")
    with open_writer(path) as out:
        out.write(frame)
        assert path.read_text() == "old"
        assert [p.name.startswith(".t.csv.partial-") for p in tmp_path.iterdir() if p != path]
    assert path.read_text() != "old"
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_and_links_are_kept(tmp_path, frame):
    path = tmp_path / "t.csv"
    path.touch()
    path.chmod(0o640)
    (tmp_path / "link.csv").symlink_to(path)
    written(tmp_path / "link.csv", frame)
    assert (tmp_path / "link.csv").is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.stat().st_size > 0


def test_what_cannot_be_written(tmp_path, frame):
    for name in ("t.xls", "t", "t.parquet.gz"):
        with pytest.raises(TableError, match="cannot be written") as caught:
            open_writer(tmp_path / name)
        assert "Writable are" in caught.value.hint
    with pytest.raises(TableError, match="does not exist"):
        written(tmp_path / "no" / "t.csv", frame)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match="is a folder"):
        written(tmp_path / "folder.csv", frame)
    with pytest.raises(TableError, match="Nothing was written"):
        written(tmp_path / "t.csv")
    assert not (tmp_path / "t.csv").exists()


def test_frames_must_agree(tmp_path, frame):
    with pytest.raises(ValueError, match="Expected the columns"):
        written(tmp_path / "t.csv", frame, frame[["a"]])
    with pytest.raises(ValueError, match="without one"):
        written(tmp_path / "t.csv", frame, frame.reset_index(drop=True))
    with pytest.raises(RuntimeError, match="with block"):
        open_writer(tmp_path / "t.csv").write(frame)
    with pytest.raises(TableError, match="several levels"):
        written(tmp_path / "t.csv", frame.set_index("a", append=True))


def test_no_rows_are_a_header(tmp_path, frame):
    written(tmp_path / "t.csv", frame.iloc[:0])
    assert (tmp_path / "t.csv").read_text().count("\n") == 1

"""Workbooks of Excel, and parts of AnnData files."""

from __future__ import annotations

import datetime

import anndata
import numpy as np
import openpyxl
import pandas as pd
import pytest
import scipy.sparse as sp

from twofold.tables.parts import split_part
from twofold.tables.reading import open_table
from twofold.tables.table import TableError
from twofold.tables.writing import open_writer

DAY = datetime.datetime(2024, 2, 29)


def workbook(path, *sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, lines in sheets:
        sheet = book.create_sheet(name)
        for line in lines:
            sheet.append(line)
    book.save(path)
    return path


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a/cells.h5ad:obsm/X_pca", ("a/cells.h5ad", "obsm/X_pca")),
        ("Book.XLSX:My sheet", ("Book.XLSX", "My sheet")),
        (r"C:\data\cells.h5ad", (r"C:\data\cells.h5ad", None)),
        ("t.csv:part", ("t.csv:part", None)),
    ],
)
def test_parts_of_paths(path, found):
    assert split_part(path) == found


def test_types_of_cells(tmp_path):
    lines = [
        [],
        ["", "size", "n", "sold", "when", "colour"],
        ["a", 1.5, 3, True, DAY, "red"],
        ["b", None, 4, False, DAY + datetime.timedelta(hours=3), None],
        [None] * 6,
        ["c", 2, None, True, None, "=1+1"],
    ]
    source = open_table(workbook(tmp_path / "t.xlsx", ("s", lines)))
    assert source.has_index
    frame = source.read("detect")
    assert frame.index.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(frame["size"], [1.5, np.nan, 2])
    np.testing.assert_array_equal(frame["n"], [3, 4, np.nan])
    assert frame["sold"].tolist() == [True, False, True]
    assert frame["when"][:1].tolist() == [pd.Timestamp(DAY)]
    assert frame["colour"].tolist()[0] == "red"
    assert [name for name, _ in source.left_out] == ["sold", "when", "colour"]


def test_sheets(tmp_path):
    one, two = [["a", "b"], [1, 2]], [["c", "d"], [3, 4], [5, 6]]
    path = workbook(tmp_path / "t.xlsx", ("first", one), ("second", two))
    source = open_table(path)
    assert source.columns == ("a", "b")
    assert "the first, 'first', is read" in source.notes[0]
    assert open_table(f"{path}:second").read()["d"].tolist() == [4, 6]
    with pytest.raises(TableError, match="no sheet 'secund'") as caught:
        open_table(f"{path}:secund")
    assert "'second'" in caught.value.hint


def test_names_and_their_lack(tmp_path):
    bare = open_table(workbook(tmp_path / "b.xlsx", ("s", [[1, 2], [3, 4]])))
    assert bare.columns == ("x1", "x2")
    assert bare.has_default_names
    odd = open_table(
        workbook(tmp_path / "o.xlsx", ("s", [["a", None, "c", None], [1, 2, 3, None]]))
    )
    assert odd.columns == ("a", "column_2", "c")
    with pytest.raises(TableError, match="several columns of the same name: 'a'"):
        open_table(workbook(tmp_path / "d.xlsx", ("s", [["a", "a"], [1, 2]])))
    with pytest.raises(TableError, match="no rows"):
        open_table(workbook(tmp_path / "e.xlsx", ("s", [["a", "b"]])))
    with pytest.raises(TableError, match="no cells"):
        open_table(workbook(tmp_path / "n.xlsx", ("s", [])))


def test_damage_is_told(tmp_path):
    path = workbook(tmp_path / "t.xlsx", ("s", [["a"], [1]]))
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(TableError, match="damaged or not a xlsx file"):
        open_table(path)


def test_round_trip_through_a_workbook(tmp_path):
    frame = pd.DataFrame(
        {
            "size": [1.25, np.nan, 1e-7],
            "n": [1, 2, 3],
            "when": pd.to_datetime(["2024-01-01", None, "2024-01-03 04:05:06"], format="ISO8601"),
            "there": pd.to_datetime(["2024-01-01"] * 3).tz_localize("Europe/Berlin"),
            "colour": pd.Categorical(["red", "=cmd()", None]),
        },
        index=pd.Index(["r1", "r2", "r3"], name="row"),
    )
    with open_writer(tmp_path / "t.xlsx") as out:
        out.write(frame[:2])
        out.write(frame[2:])
    sheet = openpyxl.load_workbook(tmp_path / "t.xlsx").active
    assert sheet["F3"].data_type == "s"  # text, though it looks like a formula
    back = open_table(tmp_path / "t.xlsx", index="row").read()
    for name in ("size", "n", "when"):
        pd.testing.assert_series_equal(back[name], frame[name], check_dtype=False)
    assert back["there"].tolist()[0].startswith("2024-01-01 00:00:00+01:00")
    assert back["colour"].tolist()[:2] == ["red", "=cmd()"]
    with (
        pytest.raises(TableError, match="An Excel file cannot hold a cell"),
        open_writer(tmp_path / "bad.xlsx") as out,
    ):
        out.write(pd.DataFrame({"a": ["bell\x07"]}))


def cells(path):
    data = anndata.AnnData(np.arange(12.0).reshape(4, 3))
    data.var_names = ["g1", "g2", "g3"]
    data.layers["counts"] = sp.csr_matrix(10 * data.X)
    data.obsm["X_pca"] = data.X[:, :2] - 5
    data.obs["kind"] = list("aabb")
    data.write_h5ad(path)
    return path


def test_layers_and_embeddings_of_anndata(tmp_path):
    path = cells(tmp_path / "c.h5ad")
    layer = open_table(f"{path}:layers/counts")
    assert layer.columns == ("g1", "g2", "g3", "kind")
    assert layer.read()["g2"].tolist() == [10, 40, 70, 100]
    embedding = open_table(f"{path}:obsm/X_pca")
    assert embedding.columns == ("pca1", "pca2", "kind")
    assert embedding.read()["pca1"].tolist() == [-5, -2, 1, 4]
    with pytest.raises(TableError, match="has no 'layers/raw'") as caught:
        open_table(f"{path}:layers/raw")
    assert "layers/counts, obsm/X_pca" in caught.value.hint


def test_anndata_is_written(tmp_path):
    path = cells(tmp_path / "c.h5ad")
    frame = open_table(path).read()
    with open_writer(tmp_path / "out.h5ad") as out:
        out.write(frame[:2])
        out.write(frame[2:])
    back = anndata.read_h5ad(tmp_path / "out.h5ad")
    np.testing.assert_array_equal(back.X, np.arange(12.0).reshape(4, 3))
    assert back.var_names.tolist() == ["g1", "g2", "g3"]
    assert back.obs["kind"].tolist() == list("aabb")
    frame["n_counts"] = [3.0, 12.0, 21.0, 30.0]
    source = open_table(path)
    source.companions = (*source.companions, "n_counts")
    with open_writer(tmp_path / "out.h5ad", like=source) as out:
        out.write(frame)
    back = anndata.read_h5ad(tmp_path / "out.h5ad")
    assert back.var_names.tolist() == ["g1", "g2", "g3"]
    assert back.obs["n_counts"].tolist() == [3, 12, 21, 30]
    with (
        pytest.raises(TableError, match="needs columns of numbers"),
        open_writer(tmp_path / "none.h5ad") as out,
    ):
        out.write(pd.DataFrame({"a": ["x"]}))

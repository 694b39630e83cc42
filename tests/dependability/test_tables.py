"""Odd tables end in a result or in a sentence."""

from __future__ import annotations

import gzip
import io
import zipfile

import numpy as np
import pytest
from dependability.child import REFUSED
from dependability.report import findings
from dependability.table_mutations import Canary, canary_mark, valid_files
from dependability.tables import check_table, try_tables

from twofold.tables.reading import open_table
from twofold.tables.table import TableError


def test_a_few_odd_tables():
    assert findings(try_tables(range(12))) == []


@pytest.mark.slow
def test_many_odd_tables():
    assert findings(try_tables(range(12, 1500))) == []


def read(path) -> None:
    source = open_table(path)
    source.read("detect")


def refused(path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(TableError) as caught:
        read(path)
    return str(caught.value)


def saved(save, *arrays, **named) -> bytes:
    buffer = io.BytesIO()
    save(buffer, *arrays, **named)
    return buffer.getvalue()


def archive(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, content)
    return buffer.getvalue()


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path):
    packed = 100 * gzip.compress(b"1," * (10 << 20), compresslevel=1)
    assert "line 1 has more than" in refused(tmp_path / "t.csv.gz", packed)
    above = gzip.compress(b"a,b\n1,2\n") + packed
    assert "line 3 has more than" in refused(tmp_path / "t.csv.gz", above)


@pytest.mark.parametrize("mark", ["é", "a", '"', "5"])
def test_a_separator_line_that_cannot_be(mark, tmp_path):
    assert "separates cells" in refused(tmp_path / "t.csv", f"sep={mark}\n1,2\n3,4\n".encode())


def test_a_cell_beyond_the_limit_of_the_csv_reader(tmp_path):
    (tmp_path / "t.csv").write_text(f"a,b\n1,2\n3,{'x' * 200_000}\n")
    with pytest.raises(TableError, match="after line 2: field larger than field limit"):
        open_table(tmp_path / "t.csv").read(["b"])


@pytest.mark.parametrize("damage", [b"\xff" * 40, b""])
def test_damaged_files_are_refused_where_they_are_read(damage, tmp_path):
    for suffix in (".parquet", ".h5ad", ".npz"):
        whole = valid_files()[suffix]
        for place in range(8, len(whole) - 40, len(whole) // 25):
            path = tmp_path / f"t{suffix}"
            path.write_bytes(whole[:place] + damage + whole[place + 40 :])
            try:
                read(path)
            except TableError as error:
                assert str(error).endswith((".", ".)"))  # noqa: PT017 - it may also be read


def test_parquet_notes_that_are_no_text():
    assert check_table(20851) == REFUSED


def test_an_array_that_promises_more_than_the_archive_holds(tmp_path):
    array = saved(np.save, np.ones((3, 2)))
    lying = array.replace(b"(3, 2), }       ", b"(3000000000, 2),}")
    assert lying != array
    assert "is damaged" in refused(tmp_path / "t.npz", archive("X.npy", lying))


@pytest.mark.slow
def test_an_archive_of_zeros_is_not_unpacked(tmp_path):
    zeros = archive("X.npy", saved(np.save, np.zeros((130, 1 << 20))))
    assert "more than real data would" in refused(tmp_path / "t.npz", zeros)


def test_members_that_are_no_arrays_are_passed_over(tmp_path):
    assert "no arrays" in refused(tmp_path / "t.npz", archive("readme.txt", b"hello"))


def test_pickles_are_never_opened(tmp_path):
    objects = np.array([[Canary()] * 2] * 3, dtype=object)
    refused(tmp_path / "t.npy", saved(np.save, objects))
    refused(tmp_path / "t.npz", saved(np.savez, X=objects))
    numbers = saved(np.savez, X=np.ones((3, 2)), y=objects[:, 0])
    (tmp_path / "t.npz").write_bytes(numbers)
    read(tmp_path / "t.npz")
    assert not canary_mark().exists()


def test_an_h5ad_file_that_claims_to_be_huge(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "t.h5ad"
    path.write_bytes(valid_files()[".h5ad"])
    with h5py.File(path, "r+") as file:
        del file["obs/species"]
        file.create_dataset("obs/species", (14, 10**9), dtype="f8", chunks=True)
    with pytest.raises(TableError, match="far more than it stores"):
        read(path)

"""Small tables of every kind that can be read, and ways to spoil them.

Every mutation is a function of a random generator and bytes; what it makes need not be wrong, only
odd. Pickles among them write a file if they are ever opened, which `tables` looks for.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import pickle
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Mutation = Callable[[np.random.Generator, bytes], bytes]

COLUMNS = ["length", "width", "height", "mass"]
ODD_CELLS = [
    "", " ", '"', '""', '"a', 'a"b', '"a,b"', '"a\nb"', '"' * 1001, "'", "\0", "\ufeff", "NA", "-",
    "1e400", "-1e400", "1e-400", "1e308", "-1.7e308", "5e-324", "nan", "-nan", "inf", "-inf",
    "1,5", "1.234,5", "1 000", "1_000", "0x10", "1e", "+", ".", "9" * 400, "0." + "0" * 400 + "1",
    "x" * 200_000, "\u0663", "\u22125", "\U0001f600", "\x1b[31m", "\x07", "\r", "\n", "\t", "#",
    "\\", "=1+1", "=cmd|' /C calc'!A0", "@SUM(A1)", "[red]", "</script>", "TRUE", "2020-01-01",
    "\x1a", "\u2028", "\x0b", "\x85", "\ud800",
]  # fmt: skip
ENCODINGS = ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252"]
NUMPY_TYPES = ["f2", "f4", ">f8", "i1", "u8", "?", "c16", "U5", "S3", "M8[s]", "f8"]


def sample_frame(n: int = 14) -> pd.DataFrame:
    """Return rows on a curved sheet with names, a label and four measurements."""
    rng = np.random.default_rng(0)
    u, v = rng.uniform(-1, 1, (2, n))
    Y = np.column_stack([u, v, u**2 - v, 100 * np.sin(2 * u) + 50 * v])
    frame = pd.DataFrame(np.round(Y, 3), columns=COLUMNS)
    frame.insert(0, "species", np.where(u > 0, "long", "short"))
    frame.index = pd.Index([f"beetle{k:02d}" for k in range(n)], name="specimen")
    return frame


class Canary:
    """An object whose pickle leaves a mark when it is opened."""

    def __reduce__(self) -> Any:
        return (Path.touch, (canary_mark(),))


@cache
def canary_mark() -> Path:
    """Return the file that exists once a pickle was opened."""
    return Path(tempfile.mkdtemp(prefix="canary-")) / "sung"


@cache
def valid_files() -> dict[str, bytes]:
    """Return a file of each kind by its suffix."""
    frame = sample_frame()
    gapped = frame.copy()
    gapped.iloc[3, 2] = np.nan
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        frame.to_parquet(path, compression="gzip")
        parquet = path.read_bytes()
        h5ad = _h5ad(frame, path)
    return {
        ".csv": gapped.to_csv().encode(),
        ".tsv": frame.to_csv(sep="\t", quoting=1).encode(),
        ".txt": frame.to_csv(sep=";", decimal=",", lineterminator="\r\n").encode(),
        ".dat": frame[COLUMNS].to_csv(sep=" ", header=False, index=False).encode(),
        ".parquet": parquet,
        ".npy": _saved(np.save, frame[COLUMNS].to_numpy()),
        ".npz": _saved(
            np.savez_compressed,
            X=frame[COLUMNS].to_numpy(),
            feature_names=np.array(COLUMNS),
            y=frame["species"].to_numpy(dtype=str),
        ),
        ".h5ad": h5ad,
    }


def _h5ad(frame: pd.DataFrame, path: Path) -> bytes:
    import anndata

    data = anndata.AnnData(frame[COLUMNS].to_numpy(), obs=frame[["species"]])
    data.var_names = COLUMNS
    data.write_h5ad(path)
    return path.read_bytes()


def _saved(save: Callable[..., Any], *arrays: Any, **named: Any) -> bytes:
    buffer = io.BytesIO()
    save(buffer, *arrays, **named)
    return buffer.getvalue()


def mutations_of(suffix: str) -> list[Mutation]:
    """Return what can be done to a file of a kind; bytes can be changed in any."""
    if suffix in (".npy", ".npz"):
        return [*ON_BYTES, odd_array, odd_array]
    if suffix in (".parquet", ".h5ad"):
        return [*ON_BYTES, ODD_TYPED[suffix], ODD_TYPED[suffix]]
    return [*ON_BYTES, *ON_TEXT, *ON_TEXT]


def flip_bytes(rng: np.random.Generator, data: bytes) -> bytes:
    """Change a few bytes."""
    changed = bytearray(data)
    for place in rng.integers(0, max(1, len(data)), rng.integers(1, 6)):
        if place < len(changed):
            changed[place] = rng.integers(256)
    return bytes(changed)


def cut(rng: np.random.Generator, data: bytes) -> bytes:
    """Leave the end away."""
    return data[: rng.integers(0, len(data) + 1)]


def remove_span(rng: np.random.Generator, data: bytes) -> bytes:
    """Leave out some bytes in the middle."""
    start = int(rng.integers(0, len(data) + 1))
    return data[:start] + data[start + int(rng.integers(1, 60)) :]


def repeat_span(rng: np.random.Generator, data: bytes) -> bytes:
    """Write some bytes many times."""
    start = int(rng.integers(0, len(data) + 1))
    span = data[start : start + int(rng.integers(1, 30))]
    return data[:start] + span * int(rng.choice([2, 50, 5000])) + data[start:]


def compress(rng: np.random.Generator, data: bytes) -> bytes:
    """Pack the file, whatever its suffix says."""
    return [gzip.compress, bz2.compress, lzma.compress, _zipped][rng.integers(4)](data)


def _zipped(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("table.csv", data)
    return buffer.getvalue()


def bomb(rng: np.random.Generator, data: bytes) -> bytes:
    """Unpack to much more than this: zeros, one line, one quoted cell."""
    return bombs()[rng.integers(len(bombs()))]


@cache
def bombs() -> list[bytes]:
    """Return small files that unpack to two gigabytes: gzip files one after the other are one."""
    made = []
    for start, piece in (
        (b"", b"\0"),
        (b"", b"1,"),
        (b'a,b\n1,"', b"x"),
        (b"a,b\n", b"1,"),
        (b"", b"\n"),
    ):
        packed = gzip.compress(piece * ((20 << 20) // len(piece)), compresslevel=1, mtime=0)
        made.append(gzip.compress(start, mtime=0) + 100 * packed)
    return made


def odd_cell(rng: np.random.Generator, data: bytes) -> bytes:
    """Put something odd into one to three cells."""
    text = data.decode(errors="replace")
    mark = max(",;\t| ", key=text.count)
    lines = [line.split(mark) for line in text.split("\n")]
    for _ in range(rng.integers(1, 4)):
        cells = lines[rng.integers(len(lines))]
        cells[rng.integers(len(cells))] = str(rng.choice(ODD_CELLS))
    return "\n".join(mark.join(cells) for cells in lines).encode(errors="surrogatepass")


def odd_lines(rng: np.random.Generator, data: bytes) -> bytes:
    """Make lines longer, shorter, empty, equal, or put some above the table."""
    lines = data.split(b"\n")
    k = int(rng.integers(len(lines)))
    changes: list[Callable[[], list[bytes]]] = [
        lambda: [*lines[:k], lines[k] + b",1", *lines[k + 1 :]],
        lambda: [*lines[:k], lines[k].rpartition(b",")[0], *lines[k + 1 :]],
        lambda: [*lines[:k], b"", b"  ", *lines[k:]],
        lambda: [b"sep=" + bytes([rng.integers(256)]), *lines],
        lambda: [b"# comment", *lines],
        lambda: lines[1:],
        lambda: lines[:1],
        lambda: [lines[0], *[lines[-2]] * 20],
        lambda: [lines[0].replace(b"width", b"length"), *lines[1:]],
        lambda: [line + b"," for line in lines],
        lambda: [b",".join([line] * 40) for line in lines],
    ]
    return b"\n".join(changes[rng.integers(len(changes))]())


def other_writing(rng: np.random.Generator, data: bytes) -> bytes:
    """Use another separator, line end, decimal mark, quote or encoding."""
    text = data.decode(errors="replace")
    pairs = [
        (",", ";"),
        (",", "\t"),
        (",", " "),
        (",", ", "),
        (".", ","),
        ("\n", "\r"),
        ("\n", "\r\n"),
    ]
    pairs += [
        ('"', "'"),
        (",", "\x1f"),
        ("\n", "\n\r"),
        ("long", '"lo""ng"'),
        ("e", "é"),
        (",", ",,"),
    ]
    for k in rng.integers(0, len(pairs), rng.integers(0, 3)):
        text = text.replace(*pairs[k])
    return text.encode(str(rng.choice(ENCODINGS)), errors="replace")


def odd_array(rng: np.random.Generator, data: bytes) -> bytes:
    """Save arrays of odd types and shapes, objects that are pickles, and headers that lie."""
    is_archive = data[:2] == b"PK"
    shape = [(14, 4), (0, 4), (4, 0), (14,), (), (2, 3, 4), (1, 4), (14, 1), (3, 6000)][
        rng.integers(9)
    ]
    numbers = rng.normal(size=shape) * rng.choice([1, 1e300, np.nan, np.inf])
    with np.errstate(all="ignore"):
        array = np.asarray(numbers).astype(str(rng.choice(NUMPY_TYPES)))
    if rng.random() < 0.25:
        array = np.array([[Canary()] * 4] * 14, dtype=object)
    if not is_archive:
        saved = _saved(np.save, array)
        return _lying_header(rng, saved) if rng.random() < 0.3 else saved
    key = str(rng.choice(["X", "data", "other", "index", "../X", "", "feature_names"]))
    others = {"index": array, "y": np.array([Canary()] * 14)} if rng.random() < 0.3 else {}
    if rng.random() < 0.3:
        return _archive({f"{key}.npy": _lying_header(rng, _saved(np.save, array))})
    return _saved(np.savez_compressed, **{**others, key: array})


def _lying_header(rng: np.random.Generator, saved: bytes) -> bytes:
    """Return an npy file whose header promises more, less or nonsense."""
    shapes = [b"(10000000000, 4)", b"(3000000, 400)", b"(-1, 4)", b"(14, 4, )", b"(2**62, 8)"]
    fields = (
        b"{'descr': '<f8', 'fortran_order': False, 'shape': " + shapes[rng.integers(5)] + b", }"
    )
    body = fields.ljust(117) + b"\n"
    return saved[:8] + len(body).to_bytes(2, "little") + body + saved[128:]


def _archive(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def odd_parquet(rng: np.random.Generator, data: bytes) -> bytes:
    """Save columns of odd types."""
    frame = sample_frame()
    odd: list[Any] = [
        [[1.0, 2.0]] * 14,
        [{"a": 1}] * 14,
        [None] * 14,
        pd.date_range("2020", periods=14),
        [b"\xff\0"] * 14,
        [True, None] * 7,
        pd.array([2**63 - 1, None] * 7, dtype="Int64"),
        pd.Categorical(["a", None] * 7),
        [np.inf, np.nan] * 7,
        ["x" * 100_000] * 14,
        pd.to_timedelta(range(14)),
    ]
    for _ in range(rng.integers(1, 3)):
        frame[str(rng.choice([*COLUMNS, "species", "", "=x"]))] = odd[rng.integers(len(odd))]
    frame.index = [frame.index, pd.RangeIndex(14), pd.Index([0.5] * 14)][rng.integers(3)]
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return buffer.getvalue()


def odd_h5ad(rng: np.random.Generator, data: bytes) -> bytes:
    """Take out, replace or blow up a part of an AnnData file."""
    import h5py

    if not data.startswith(b"\x89HDF"):
        return data
    with (
        contextlib.suppress(OSError, KeyError, RuntimeError),
        tempfile.TemporaryDirectory() as folder,
    ):
        path = Path(folder) / "t.h5ad"
        path.write_bytes(data)
        with h5py.File(path, "r+") as file:
            names: list[str] = []
            file.visit(names.append)
            name = str(rng.choice(names))
            change = int(rng.integers(5))
            if change < 4:
                del file[name]
            if change == 1:
                file[name] = rng.normal(size=(3, 2))
            elif change == 2:
                file[name] = "text"
            elif change == 3:
                shape = [(10**9, 10**6), (14, 10**9), (14, 4), (0, 0)][rng.integers(4)]
                file.create_dataset(name, shape, dtype="f8", chunks=True)
            elif change == 4:
                for key in list(file[name].attrs):
                    file[name].attrs[key] = ["", "csr_matrix", "9.9.9", 3.5][rng.integers(4)]
        return path.read_bytes()
    return data  # spoiled already


def pickled(rng: np.random.Generator, data: bytes) -> bytes:
    """Put a pickle in place of the table."""
    return pickle.dumps(Canary())


ON_BYTES: list[Mutation] = [flip_bytes, cut, remove_span, repeat_span, compress, bomb, pickled]
ON_TEXT: list[Mutation] = [odd_cell, odd_cell, odd_lines, other_writing, other_writing]
ODD_TYPED: dict[str, Mutation] = {".parquet": odd_parquet, ".h5ad": odd_h5ad}

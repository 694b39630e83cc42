"""Faults while commands run: signals, full disks, folders and caches that cannot be written to.

A case runs one command in a folder of its own, over an older file of the name of its result, and
does something to it. Afterwards the file is the older one, bit by bit, or whole and new; the exit
status says which; a sentence says why; nothing is left in the folder (what kill -9 leaves goes at
the next save). Everything else is a finding. Needs Linux and root, for mounts and capabilities.

``python -m dependability.faults --count 330`` tries so many.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from resource import RLIMIT_AS, RLIMIT_FSIZE, setrlimit

import numpy as np

import twofold
import twofold.cli
from dependability.child import FINE, REFUSED, Outcome, computing_seconds, try_cases
from dependability.report import conclude, numbers_from_command_line
from dependability.table_mutations import sample_frame
from twofold.replacing import replacing

OLD = b"the older file\n"
COMMANDS = {
    "fit": ["fit", "table.csv", "-o", "out/result.twofold", "--max-iter", "20"],
    "transform": ["transform", "m.twofold", "table.csv", "-o", "out/result.csv"],
    "complete": ["complete", "m.twofold", "table.csv", "-o", "out/result.parquet"],
    "denoise": ["denoise", "m.twofold", "table.csv", "-o", "out/result.npz"],
    "score": ["score", "m.twofold", "table.csv", "-o", "out/result.csv"],
    "generate": ["generate", "m.twofold", "--grid", "20", "-o", "out/result.csv.gz"],
    "info": ["info", "m.twofold"],
    "plot": ["plot", "m.twofold", "-o", "out/result.png"],
    "explore": ["explore", "m.twofold", "-o", "out/result.html"],
    "compare": ["compare", "table.csv", "-o", "out/result.csv", "--with", "pca"],
    "demo": ["demo", "-o", "out"],
}
SIGNALS = {"kill": signal.SIGKILL, "interrupt": signal.SIGINT, "terminate": signal.SIGTERM}
# What a command may end with, beside 0 if it was done before.
CODES = {"kill": {-9}, "interrupt": {130, -2}, "terminate": {143, -15}, "reader gone": {141}}
KINDS = (
    *SIGNALS,
    "reader gone",
    "full disk",
    "file size",
    "folder",
    "cache",
    "deleted",
    "memory",
)
MODULES = (
    "twofold.cli.app", "twofold.ukr", "twofold.plots", "twofold.explorer", "twofold.selection",
    "twofold.datasets", "pandas", "pyarrow.parquet", "pyarrow.csv", "matplotlib.pyplot",
    "sklearn.manifold", "sklearn.decomposition", "sklearn.datasets", "rich.console",
)  # fmt: skip
LOST = "Exception ignored on calling ctypes callback"
# Last words of C++ libraries, of linear algebra in a thread and of the C library itself.
OUT_OF_MEMORY = (
    "OpenBLAS error: Memory allocation still failed",
    "std::bad_alloc",
    "cannot allocate memory for thread-local data",
    "LLVM ERROR: out of memory",
)
SECONDS = 240.0


def try_faults(cases: Sequence[int]) -> Iterator[Outcome]:
    """Yield how the cases went."""
    prepare()
    return try_cases(check_fault, cases, seconds=2 * SECONDS, megabytes=1 << 20)


def fault_of(case: int) -> tuple[str, str]:
    """Return the kind of fault and the command of a case."""
    commands = list(COMMANDS)
    return KINDS[case % len(KINDS)], commands[(case // len(KINDS)) % len(commands)]


@cache
def inputs() -> dict[str, bytes]:
    """Return the table and the model that commands work on, by their names."""
    with tempfile.TemporaryDirectory() as folder:
        table, model = Path(folder) / "table.csv", Path(folder) / "m.twofold"
        frame = sample_frame(200)
        frame.iloc[5, 2] = np.nan
        frame.to_csv(table)
        subprocess.run(_twofold("fit", str(table), "-o", str(model), "--max-iter", "3"), check=True)
        return {path.name: path.read_bytes() for path in (table, model)}


def prepare() -> None:
    """Load all that commands load, so that faults come while they work."""
    inputs()
    for module in MODULES:
        importlib.import_module(module)


def check_fault(case: int) -> str:
    """Run a command, do something to it, and look at what is left."""
    kind, command = fault_of(case)
    rng = np.random.default_rng(case)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name, content in inputs().items():
            (place / name).write_bytes(content)
        out = place / "out"
        out.mkdir()
        mounted = kind in ("full disk", "folder")
        if mounted:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", out], check=True)
        try:
            return _tried(kind, command, place, rng)
        finally:
            if mounted:
                subprocess.run(["umount", "-l", out], check=True)


def _tried(kind: str, command: str, place: Path, rng: np.random.Generator) -> str:
    target = next((word for word in COMMANDS[command] if word.startswith("out/")), None)
    result = place / (target or "out/digits.twofold")
    result.write_bytes(OLD)
    code, said = RUN[kind](kind, command, place, rng)
    if kind in SIGNALS and LOST in said:  # the compiler passes over an interrupt in its callbacks
        return FINE
    assert "Traceback" not in said, said
    assert "Something unexpected" not in said, said
    if kind == "memory" and any(words in said for words in OUT_OF_MEMORY):
        assert code in (-signal.SIGABRT, 127, 1), (code, said)
        code, kind = -signal.SIGABRT, "kill"  # ended from below Python: all that a kill leaves
    elif kind in CODES:
        assert code in CODES[kind] | {0}, (code, said)
    else:
        assert code in (0, 1), (code, said)
    if code > 0 and kind != "reader gone":
        assert "error: " in said, said
    if result.exists() and kind == "kill":
        with replacing(result) as other:
            other.write_bytes(result.read_bytes())
        for name in ("digits.png", "digits.html") if command == "demo" else ():
            with replacing(result.parent / name) as other:
                other.write_bytes(b"")
    litter = [name for name in os.listdir(result.parent) if ".partial-" in name]
    assert not litter, litter
    if code != 0 and command != "demo":
        assert result.read_bytes() == OLD or is_whole(result), "the older file is spoiled"
    if code == 0 and target is not None and command != "info":
        assert is_whole(result), "the new file is not whole"
    return FINE if code == 0 else REFUSED


def is_whole(path: Path) -> bool:
    """Say whether a file is complete, by its end or by opening it."""
    content = path.read_bytes()
    ends = {".html": b"</html>", ".png": b"IEND", ".parquet": b"PAR1"}
    if path.suffix in ends:
        return ends[path.suffix] in content[-16:]
    if path.suffix == ".twofold":
        return hasattr(twofold.load(path), "embedding_")
    from twofold.tables.reading import open_table

    return len(open_table(path).read()) > 0


def _twofold(*words: str) -> list[str]:
    return [sys.executable, "-m", "twofold", *words, "--quiet"]


def _start(words: Sequence[str], place: Path, before: Callable[[], None] | None = None) -> int:
    """Run a command in a copy of this process, which has all modules; return its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(place)
        os.dup2(os.open("said", os.O_WRONLY | os.O_CREAT), 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        sys.argv = ["twofold", *words, "--quiet"]
        if before is not None:
            before()
        twofold.cli.main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(code)


def _ended(child: int, place: Path) -> tuple[int, str]:
    number = 0
    while not number:
        number, status = os.waitpid(child, os.WNOHANG)
        if computing_seconds(child) > SECONDS:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError(f"not done after {SECONDS:g} s of computing")
        time.sleep(0.02)
    return os.waitstatus_to_exitcode(status), (place / "said").read_text(errors="replace")


def _signalled(kind: str, command: str, place: Path, rng: np.random.Generator) -> tuple[int, str]:
    child = _start(COMMANDS[command], place)
    time.sleep(rng.uniform(0.02, 4.0 if command in ("demo", "compare") else 1.5))
    os.kill(child, SIGNALS[kind])
    return _ended(child, place)


def _reader_gone(kind: str, command: str, place: Path, rng: np.random.Generator) -> tuple[int, str]:
    words = COMMANDS[command]
    if command in ("transform", "complete", "denoise", "generate", "score", "compare"):
        words = [word if not word.startswith("out/") else "-" for word in words]

    def close_reader() -> None:
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 1)

    return _ended(_start(words, place, close_reader), place)


def _file_size(kind: str, command: str, place: Path, rng: np.random.Generator) -> tuple[int, str]:
    limit = int(rng.integers(16, 3000))
    child = _start(COMMANDS[command], place, lambda: setrlimit(RLIMIT_FSIZE, (limit, limit)))
    return _ended(child, place)


def _plain(kind: str, command: str, place: Path, rng: np.random.Generator) -> tuple[int, str]:
    return _ended(_start(COMMANDS[command], place), place)


def _folder(kind: str, command: str, place: Path, rng: np.random.Generator) -> tuple[int, str]:
    subprocess.run(["mount", "-o", "remount,ro", place / "out"], check=True)
    return _ended(_start(COMMANDS[command], place), place)


def _memory(kind: str, command: str, place: Path, rng: np.random.Generator) -> tuple[int, str]:
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * 4096
    limit = used + (int(rng.integers(1, 300)) << 20)
    child = _start(COMMANDS[command], place, lambda: setrlimit(RLIMIT_AS, (limit, limit)))
    return _ended(child, place)


def _deleted(kind: str, command: str, place: Path, rng: np.random.Generator) -> tuple[int, str]:
    """Take the inputs away while a command runs."""
    child = _start(COMMANDS[command], place)
    time.sleep(rng.uniform(0.0, 1.0))
    for name in inputs():
        (place / name).unlink()
    return _ended(child, place)


def _cache(kind: str, command: str, place: Path, rng: np.random.Generator) -> tuple[int, str]:
    """Run a new process where nothing that Python and numba keep can be written."""
    names = ("HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR")
    nowhere = {
        **os.environ,
        **dict.fromkeys(names, "/proc/nowhere"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    source = str(Path(twofold.__file__).parent)
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, source, *_twofold(*COMMANDS[command])],
        cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=nowhere,
    )  # fmt: skip
    return done.returncode, done.stderr


RUN: dict[str, Callable[..., tuple[int, str]]] = {
    **dict.fromkeys(SIGNALS, _signalled),
    "reader gone": _reader_gone,
    "full disk": _plain,
    "file size": _file_size,
    "folder": _folder,
    "cache": _cache,
    "deleted": _deleted,
    "memory": _memory,
}


def main() -> int:
    """Try the faults that the command line asks for; return the exit status."""
    cases = numbers_from_command_line("Faults while commands run.", 330)
    counts = Counter(fault_of(case)[0] for case in cases)
    status = conclude("faults", try_faults(cases))
    print("  " + ", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return status


if __name__ == "__main__":
    sys.exit(main())

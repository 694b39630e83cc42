"""Large tables: UKR beside UMAP, PaCMAP, openTSNE and scikit-learn's KernelPCA, in one run.

60,000 MNIST images as 50 principal components (10,000 held out), 5,000 to 336,000 word vectors of
GloVe (100 columns, 5,000 held out) and, on request, a made-up surface of 1,000,000 × 50; all in
single precision. The data are the files mnist.npz and glove_341k.npz; see
twofold.datasets.load_npz. What is missing, file or package, is named and left out.

    python -m benchmarks.large                        # all but the made-up surface; hours
    python -m benchmarks.large ukr umap mnist         # some methods, some data
    python -m benchmarks.large glove 5000 20000       # some sizes
    python -m benchmarks.large made-up --limit 3600   # more time for each step than 600 s
    python -m benchmarks.large --extend pacmap        # what the last run has not measured yet
    python -m benchmarks.large --draw                 # the last run's table and picture, from file
    python -m benchmarks.large --quick                # 5,000 rows, to see that everything works

Every method and size has a process of its own, one after the other, so that its memory is its own;
a small fit comes first, so that compilation is not counted. A step that takes longer than the
limit, or more than 85 % of the machine's memory, is stopped, and what came before it is kept.
Figures are kept, a line each, in benchmarks/results.
"""

from __future__ import annotations

import argparse
import fcntl
import importlib.util
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.large_steps import FOLDER, METHODS
from twofold.datasets import data_file

PEERS = ("ukr", "umap", "umap-seeded", "pacmap", "opentsne", "kernel-pca")
# Of each data set: its sizes, in earnest and quick.
SIZES = {
    "mnist": ((60_000,), (5_000,)),
    "glove": ((5_000, 20_000, 85_000, 336_000), (5_000,)),
    "mnist-8": ((10_000,), (500,)),
    "made-up": ((1_000_000,), (20_000,)),
}
FILES = {"mnist": "mnist", "glove": "glove_341k"}
MOST_OF_KERNEL_PCA = 5_000  # its matrices have a row and a column for each row of the data
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "large_tables.png"
PACKAGES = ("twofold", "umap-learn", "pacmap", "openTSNE", "scikit-learn", "numba", "numpy")
MOST_MEMORY = 0.85
WARM_UP_LIMIT = 600  # compilation is not what the limit is about


class Case(NamedTuple):
    """What one process measures."""

    data: str
    n: int
    q: int
    method: str

    def __str__(self) -> str:
        return f"{self.data} {self.n:,}, q = {self.q}, {METHODS[self.method].label}"


def all_cases(quick: bool, words: list[str]) -> list[Case]:
    """Return the cases that are asked for: of every kind of word those named, or all."""
    sizes = {int(word) for word in words if word.isdigit()}
    tables = [name for name in SIZES if name in words] or [s for s in SIZES if s != "made-up"]
    methods = [name for name in METHODS if name in words] or list(METHODS)
    cases = []
    for table in tables:
        for n in SIZES[table][quick]:
            cases += [case for case in cases_of(table, n) if case.method in methods]
    return [case for case in cases if not sizes or case.n in sizes]


def cases_of(table: str, n: int) -> list[Case]:
    """Return the cases of one table."""
    if table == "mnist-8":
        some = (("ukr", 2), ("ukr", 8), ("umap", 8), ("pca", 8))
        return [Case("mnist", n, q, method) for method, q in some]
    names = [name for name in PEERS if name != "kernel-pca" or n <= MOST_OF_KERNEL_PCA]
    if table == "mnist":
        names.insert(1, "ukr-landmarks")
    return [Case(table, n, 2, name) for name in names]


def at_hand(cases: list[Case]) -> list[Case]:
    """Return the cases whose data and packages are there; say what is not."""
    missing: dict[str, str] = {}
    for data, file in FILES.items():
        try:
            data_file(file)
        except FileNotFoundError as error:
            missing[data] = f"{data} is left out: {error}"
    for name, method in METHODS.items():
        if importlib.util.find_spec(method.package) is None:
            missing[name] = f"{method.label} is left out: pip install 'twofold[peers]'"
    gone = {word for case in cases for word in (case.data, case.method) if word in missing}
    for word in sorted(gone):
        print(missing[word])
    return [case for case in cases if not gone & {case.data, case.method}]


def start(asked: dict[str, Any], log: Any) -> subprocess.Popen[str]:
    """Start the process of one case."""
    command = [sys.executable, "-m", "benchmarks.large_steps", json.dumps(asked)]
    home = Path(__file__).parent.parent
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=home)


def measure(case: Case, limit: float) -> dict[str, Any]:
    """Run one case and return its figures, with the step and the reason where it was stopped."""
    with (FOLDER / "large.log").open("a") as log:
        log.write(f"\n== {case}\n")
        log.flush()
        process = start(case._asdict(), log)
        try:
            found, step, why = follow(process, limit)
        finally:
            process.kill()
            status = process.wait()
    if step != "done":
        found |= {"stopped": step, "why": why or f"failed ({status})"}
    return found


def follow(process: subprocess.Popen[str], limit: float) -> tuple[dict[str, Any], str, str]:
    """Collect what a process reports until it ends or takes too much; return the last step, too."""
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=pass_on, args=(process.stdout, lines), daemon=True).start()
    found: dict[str, Any] = {}
    step, began = "start", time.monotonic()
    most = MOST_MEMORY * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    while True:
        try:
            line = lines.get(timeout=0.2)
        except queue.Empty:
            allowed = limit if step not in ("start", "warm-up") else max(limit, WARM_UP_LIMIT)
            if time.monotonic() - began > allowed:
                return found, step, f"not within {allowed:g} s"
            if memory_of(process.pid) > most:
                return found, step, "no memory"
            continue
        if line is None:
            return found, step, ""
        if line.startswith("@"):
            found |= json.loads(line[1:])
            new = found.pop("step", None)
            if new:
                step, began = new, time.monotonic()


def pass_on(stream: Any, lines: queue.Queue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def memory_of(pid: int) -> int:
    """Return the memory a process holds now, in bytes; 0 where there is no /proc."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def busy_cores(seconds: float = 1.0) -> float:
    """Return how many cores others keep busy, 0 where there is no /proc/stat."""

    def idle_ticks() -> int:
        ticks = Path("/proc/stat").read_text().split(maxsplit=6)[1:6]
        return int(ticks[3]) + int(ticks[4])

    try:
        before = idle_ticks()
        time.sleep(seconds)
        idle = (idle_ticks() - before) / os.sysconf("SC_CLK_TCK") / seconds
    except OSError:
        return 0.0
    return max(0.0, (os.cpu_count() or 1) - idle)


def prepare(cases: list[Case]) -> None:
    """Write the rows of all data sets, each in a process of its own."""
    for data, n in sorted({(case.data, case.n) for case in cases}):
        done = start({"data": data, "n": n, "method": "prepare"}, None)
        if done.wait():
            raise SystemExit(f"the rows of {data} could not be prepared; see above")


def kept(file: Path) -> tuple[str, dict[Case, dict[str, Any]]]:
    """Return the name of the last run and its figures; of a case measured twice the later ones."""
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    if not lines:
        return "", {}
    last = lines[-1]["run"]
    found = {}
    for line in lines:
        if line["run"] == last:
            found[Case(*(line[name] for name in Case._fields))] = line
    return last, found


def versions() -> dict[str, str]:
    """Return the versions of what is compared."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def measure_all(cases: list[Case], file: Path, limit: float, extend: bool) -> None:
    """Measure cases one by one and keep the figures of each at once."""
    name, done = kept(file)
    if not (extend and name):
        name, done = time.strftime("%Y-%m-%d %H:%M:%S"), {}
    cases = [case for case in cases if "fit_s" not in done.get(case, {})]
    prepare(cases)
    about = {"run": name, "cores": os.cpu_count(), "versions": versions(), "limit": limit}
    for number, case in enumerate(cases, 1):
        print(f"{number}/{len(cases)}  {case} ...", end=" ", flush=True)
        busy = busy_cores()
        figures = measure(case, limit)
        with file.open("a") as stream:
            line = about | {"busy": busy} | case._asdict() | figures
            stream.write(json.dumps(line) + "\n")
        what = f"{figures['fit_s']:.1f} s" if "fit_s" in figures else ""
        print(what, f"{figures['stopped']}: {figures['why']}" if "why" in figures else "")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.large",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = f"{', '.join(METHODS)}; {', '.join(SIZES)}; a number of rows"
    parser.add_argument("words", nargs="*", metavar="WHAT", help=names)
    parser.add_argument("--quick", action="store_true", help="few rows; kept apart from the rest")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for each step")
    parser.add_argument("--extend", action="store_true", help="add to the last run")
    parser.add_argument("--draw", action="store_true", help="measure nothing, draw the last run")
    given = parser.parse_args()
    for word in given.words:
        if word not in METHODS and word not in SIZES and not word.isdigit():
            parser.error(f"{word!r} is no method, no data and no size")
    return given


def main() -> None:
    """Measure what is asked for, and print the table of the run."""
    from benchmarks.large_table import show_run

    given = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # no process is left behind
    FOLDER.mkdir(exist_ok=True)
    file = FOLDER / ("large_quick.jsonl" if given.quick else "large.jsonl")
    if not given.draw:
        cases = at_hand(all_cases(given.quick, given.words))
        with (FOLDER / "large.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SystemExit("another run is under way: two would slow each other") from None
            measure_all(cases, file, given.limit, given.extend)
    name, found = kept(file)
    if not found:
        raise SystemExit(f"nothing is kept in {file}: measure first, without --draw")
    show_run(name, found)
    if given.draw:
        from benchmarks.large_figure import draw

        picture = FOLDER / PICTURE.name if given.quick else PICTURE
        draw(found, picture)
        print(picture)


if __name__ == "__main__":
    main()

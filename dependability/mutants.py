"""Mutation testing: whether a test fails when a line is wrong.

A mutant is the library with one small change, made by the operators of cosmic-ray: another operator
or comparison, a number one up or down, a condition turned round, a loop that never runs. It is
killed if a test fails or does not end. Only changes that could matter are counted: not those in
annotations, in messages of exceptions, in decorators that change speed alone and in `strict` of
`zip`, nor arithmetic turned into operations on bits, which floats refuse by themselves.

A sample is drawn evenly over the places where something can be changed, one change a place. First
the tests run once on the library as it is, which tells which test runs which line; a mutant then
meets only the tests that run its line, the quickest first. Each mutant lives in a copy of ``src``
and in a process of its own, forked from one that has imported everything but the library.

Compiled loops leave no trace, and compiling them for each mutant takes long: groups that have any
run as plain Python. All limits are of processor time, so that a busy machine kills no mutant.

Survivors that no test can kill are listed with the reason in `equivalent_mutants`.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib
import json
import math
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import parso
from cosmic_ray.operators.provider import OperatorProvider

from dependability.equivalent_mutants import EQUIVALENT

ROOT = Path(__file__).parent.parent
PACKAGE = Path("src/twofold")
# Imported once and shared by all mutants.
SHARED = ("coverage", "joblib", "numba", "numpy", "pandas", "polars", "pytest", "sklearn.pipeline")
SHARED += ("sklearn.model_selection", "sklearn.manifold", "scipy.optimize", "scipy.stats")
BITS = ("RShift", "LShift", "BitOr", "BitAnd", "BitXor", "Invert")
NEVER_CHANGED = ("name", "string", "newline", "endmarker", "trailer", "arglist", "simple_stmt")
OF_SPEED_ALONE = ("compiled", "compiled_in_order", "compiled_into_callers", "cache")
KILLED, SURVIVED, TIMEOUT, HARMLESS = "killed", "survived", "timeout", "equivalent"
TARGET = 0.85
# Seconds after which even a process that only waits is given up.
PATIENCE = 1800.0


@dataclass(frozen=True)
class Group:
    """Modules and the tests that are theirs.

    Attributes
    ----------
    modules : files below ``src/twofold``
    tests : files and folders below ``tests``
    compiled : whether there are compiled loops among the modules
    """

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    compiled: bool = False


# Tests of the engine that do not take minutes without compilation.
OF_FEW_POINTS = (
    "engine/test_backends.py::test_gradient_equals_central_differences",
    "engine/test_backends.py::test_gradients_by_queries_and_by_references_are_told_apart",
    "engine/test_backends.py::test_inputs_are_left_alone",
    "engine/test_backends.py::test_isolated_points_see_their_nearest_neighbour",
    "engine/test_backends.py::test_no_gradient_is_made_where_none_is_asked_for",
    "engine/test_backends.py::test_rows_out_of_reach_have_no_sums_and_no_gradient",
    "engine/test_cell_grid.py",
    "engine/test_hard_places.py",
    "engine/test_hidden.py",
    "engine/test_local_fit.py::test_a_query_out_of_reach_leaves_those_after_it_alone",
    "engine/test_local_fit.py::test_an_isolated_reference_is_finite",
    "engine/test_local_fit.py::test_columns_in_no_group_are_plain_sums",
    "engine/test_local_fit.py::test_fewer_references_than_terms",
    "engine/test_local_fit.py::test_gradients_of_a_few_points_in_several_chunks",
    "engine/test_local_fit.py::test_slopes_of_a_query_that_sees_no_weight_are_zero",
    "engine/test_local_fit.py::test_slopes_with_widths_equal_differences",
    "engine/test_local_fit.py::test_terms_are_the_columns_of_the_design",
    "engine/test_plan.py",
    "engine/test_prepared_references.py",
    "engine/test_threads.py",
)
GROUPS = {
    "engine": Group(("engine/*.py",), OF_FEW_POINTS, compiled=True),
    "kernels": Group(("kernels.py",), ("test_kernels.py", "engine/test_backends.py")),
    "losses": Group(("losses/*.py",), ("test_losses.py", "ukr/test_objective.py")),
    "optimize": Group(("optimize/*.py",), ("optimize",), compiled=True),
    "contract": Group(
        ("contract/model.py", "contract/family.py"),
        ("contract/test_contract.py", "test_ukr_estimator.py"),
    ),
}


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    Attributes
    ----------
    path : of the file, from the root
    line : where the change begins
    before, after : the lines that differ
    code : the whole file with the change
    """

    path: Path
    line: int
    before: str
    after: str
    code: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before}  ->  {self.after}"

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what names this change in the list of equivalent ones."""
        return str(self.path.relative_to(PACKAGE)), self.before, self.after

    def statement(self) -> range:
        """Return the lines of the smallest statement around the change, without its body."""
        around = range(self.line, self.line + 1)
        for node in ast.walk(ast.parse((ROOT / self.path).read_text())):
            if isinstance(node, ast.stmt) and node.lineno <= self.line <= node.end_lineno:
                body = getattr(node, "body", None)
                end = body[0].lineno - 1 if body else node.end_lineno
                if self.line <= end:
                    around = range(node.lineno, end + 1)
        return around


# ---- which mutants there are --------------------------------------------------------------------


class _WhatMatters(ast.NodeTransformer):
    """Takes away what a change to makes no mutant."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        node.decorator_list = [
            d for d in node.decorator_list if getattr(d, "id", "") not in OF_SPEED_ALONE
        ]
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        if isinstance(node.exc, ast.Call):
            node.exc.args = []
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if getattr(node.value, "id", "") in ("Callable", "Literal"):
            node.slice = ast.Constant(None)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.keywords = [k for k in node.keywords if k.arg != "strict"]
        return self.generic_visit(node)


def _essence(code: str) -> str:
    return ast.dump(_WhatMatters().visit(ast.parse(code)))


@cache
def _operators() -> dict[str, Any]:
    """Return the operators that need no arguments, without those of bits."""
    provider = OperatorProvider()
    found = {name: provider[name] for name in provider if not provider[name].arguments()}
    return {name: kind() for name, kind in found.items() if not name.endswith(BITS)}


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in getattr(node, "children", ()):
        yield from _nodes(child)


def changes_of(code: str) -> dict[tuple[int, int], list[tuple[str, int, int]]]:
    """Return for every place what can be done there: operator, number of the node, and which."""
    found: dict[tuple[int, int], list[tuple[str, int, int]]] = {}
    operators = _operators()
    for number, node in enumerate(_nodes(parso.parse(code))):
        if node.type in NEVER_CHANGED or getattr(node.parent, "type", "") == "parameters":
            continue  # the star of a signature is no product
        for name, operator in operators.items():
            for which, (start, _) in enumerate(operator.mutation_positions(node)):
                found.setdefault(start, []).append((name, number, which))
    return found


def changed(code: str, name: str, number: int, which: int) -> str | None:
    """Return the code after a change, or None if nothing that matters differs."""
    tree = parso.parse(code)
    node = next(n for k, n in enumerate(_nodes(tree)) if k == number)
    parent, operator = node.parent, _operators()[name]
    result = operator.mutate(node, which)
    if result is None:
        parent.children.remove(node)
    elif result is not node:
        parent.children[parent.children.index(node)] = result
    after = tree.get_code()
    try:
        return None if _essence(after) == _essence(code) else after
    except SyntaxError:
        return None


def _mutant(path: Path, code: str, after: str) -> Mutant:
    before_lines, after_lines = code.splitlines(), after.splitlines()
    blocks = difflib.SequenceMatcher(None, before_lines, after_lines, autojunk=False).get_opcodes()
    _, a, b, c, d = next(block for block in blocks if block[0] != "equal")
    while not before_lines[a].strip():  # a decorator goes with the empty lines above it
        a += 1
    before, now = (" ".join(map(str.strip, x)) for x in (before_lines[a:b], after_lines[c:d]))
    return Mutant(path, a + 1, before.strip(), now.strip(), after)


def drawn_mutants(paths: Sequence[Path], count: int, seed: int) -> tuple[list[Mutant], int]:
    """Return mutants of some files at places drawn at random, and how many places there are.

    A place gives a second one only after every place has given its first.
    """
    rng = random.Random(seed)
    codes = {path: (ROOT / path).read_text() for path in paths}
    places = [(path, some) for path in paths for some in changes_of(codes[path]).values()]
    rng.shuffle(places)
    left = [(path, iter(rng.sample(some, len(some)))) for path, some in places]
    mutants, n_places = list[Mutant](), len(left)
    while left and len(mutants) < count:
        for path, changes in left[:]:
            if len(mutants) == count:
                break
            found = (changed(codes[path], *change) for change in changes)
            after = next((code for code in found if code is not None), None)
            if after is None:
                left.remove((path, changes))
            else:
                mutants.append(_mutant(path, codes[path], after))
    return mutants, n_places


# ---- running tests on one -----------------------------------------------------------------------


class _Chosen:
    """A plugin of pytest that keeps some tests, in a given order of files."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        kept = [item for item in items if item.nodeid in self.seconds]
        of_file: dict[str, list[float]] = {}
        for item in kept:
            of_file.setdefault(item.location[0], []).append(self.seconds[item.nodeid])
        quickest = {name: sum(some) / len(some) for name, some in of_file.items()}
        kept.sort(key=lambda i: (quickest[i.location[0]], i.location[0], self.seconds[i.nodeid]))
        items[:] = kept


class _Recorder:
    """A plugin of pytest that notes the time of each test that passes, and the lines it runs."""

    def __init__(self, tracer: Any, limit: float) -> None:
        self.tracer, self.limit = tracer, limit
        self.seconds: dict[str, float] = {}
        signal.signal(signal.SIGPROF, self._stop)

    def _stop(self, *_: object) -> None:
        raise TimeoutError(f"a test of more than {self.limit} s is of no use for mutants")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.tracer.switch_context(nodeid)
        self.began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, self.limit)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call":
            signal.setitimer(signal.ITIMER_PROF, 0)
            if report.passed:
                self.seconds[report.nodeid] = time.process_time() - self.began


def _pytest(source: Path, tests: Sequence[str], plugin: object, options: Sequence[str]) -> int:
    """Run tests on a copy of the library in this process, which nobody uses afterwards."""
    import pytest

    os.chdir(ROOT)
    sys.path.insert(0, str(source))
    os.environ["PYTHONPATH"] = str(source)
    places = [f"tests/{name}" for name in tests]
    quiet = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"]
    return int(pytest.main([*quiet, *options, *places], plugins=[plugin]))


def _learn(source: Path, group: Group, limit: float, notes: Path) -> int:
    """Run all tests of a group; write down their times and which test runs which line."""
    import coverage

    tracer = coverage.Coverage(data_file=None, source=[str(source)], config_file=False)
    recorder = _Recorder(tracer, limit)
    tracer.start()
    _pytest(source, group.tests, recorder, [])
    tracer.stop()
    data = tracer.get_data()
    lines = {
        str(Path(name).relative_to(source.parent)): data.contexts_by_lineno(name)
        for name in data.measured_files()
    }
    notes.write_text(json.dumps({"seconds": recorder.seconds, "lines": lines}))
    return 0


def _forked(work: Callable[[], int], log: Path, seconds: float) -> int:
    """Start some work in a process group of its own and return its number.

    It is stopped after ``seconds`` of processor time.
    """
    child = os.fork()
    if child:
        return child
    os.setsid()
    if math.isfinite(seconds):
        limit = math.ceil(seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    status = 70
    try:
        status = work()
    finally:
        os._exit(status)


@dataclass(frozen=True)
class _Job:
    """A process at work on a mutant, in a folder of its own."""

    mutant: Mutant
    child: int
    deadline: float
    scratch: Path

    def verdict(self) -> str | None:
        """Return what became of the mutant, None while its tests run."""
        child, status = os.waitpid(self.child, os.WNOHANG)
        if not child and time.monotonic() < self.deadline:
            return None
        with suppress(ProcessLookupError):  # and whatever it has started
            os.killpg(self.child, signal.SIGKILL)
        shutil.rmtree(self.scratch, ignore_errors=True)
        if not child:
            os.waitpid(self.child, 0)
            return TIMEOUT
        code = os.waitstatus_to_exitcode(status)
        if -code in (signal.SIGXCPU, signal.SIGKILL):
            return TIMEOUT
        return SURVIVED if code == 0 else KILLED


def _in_processes(
    mutants: Sequence[Mutant], start: Callable[[Mutant, Path], int], patience: float, count: int
) -> Iterator[tuple[Mutant, str]]:
    """Try mutants side by side; yield them with their verdicts as they end."""
    waiting, jobs = list(reversed(mutants)), list[_Job]()
    while waiting or jobs:
        while waiting and len(jobs) < count:
            mutant, scratch = waiting.pop(), Path(tempfile.mkdtemp(prefix="mutant-"))
            child = start(mutant, scratch)
            jobs.append(_Job(mutant, child, time.monotonic() + patience, scratch))
        time.sleep(0.05)
        for job in list(jobs):
            verdict = job.verdict()
            if verdict is not None:
                jobs.remove(job)
                yield job.mutant, verdict


# ---- a group ------------------------------------------------------------------------------------


def _put(mutant: Mutant, scratch: Path) -> None:
    """Write the changed file into a copy; an old byte code must not stand in for it."""
    path = scratch / mutant.path
    path.write_text(mutant.code)
    for old in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        old.unlink()


@dataclass(frozen=True)
class Trial:
    """How the tests of a group are run.

    Attributes
    ----------
    group : Group
    seconds : of tests that a mutant may meet, as long as they take on the unchanged library
    processes : side by side
    """

    group: Group
    seconds: float
    processes: int

    def verdicts(self, mutants: Sequence[Mutant]) -> list[tuple[Mutant, str]]:
        """Return what became of each mutant; in a process that is used for nothing else."""
        os.environ["NUMBA_DISABLE_JIT"] = str(int(self.group.compiled))
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ[name] = "1"
        for name in SHARED:
            importlib.import_module(name)
        known = self._learned()
        start = partial(self._start, known)
        found = []
        for mutant, verdict in _in_processes(mutants, start, PATIENCE, self.processes):
            if verdict == SURVIVED and mutant.key in EQUIVALENT:
                verdict = HARMLESS
            found.append((mutant, verdict))
            print(f"{verdict:10} {mutant}", flush=True)
        return found

    def _learned(self) -> Known:
        with tempfile.TemporaryDirectory() as name:
            scratch = Path(name)
            source, notes = scratch / "src", scratch / "notes.json"
            shutil.copytree(ROOT / "src", source)
            work = partial(_learn, source, self.group, self.seconds / 4, notes)
            os.waitpid(_forked(work, scratch / "log", math.inf), 0)
            if not notes.exists():
                raise SystemExit((scratch / "log").read_text())
            return Known(**json.loads(notes.read_text()))

    def _start(self, known: Known, mutant: Mutant, scratch: Path) -> int:
        source = Path(shutil.copytree(ROOT / "src", scratch / "src"))
        _put(mutant, scratch)
        chosen = known.tests_for(mutant, self.seconds)
        files = sorted({name.split("::")[0].removeprefix("tests/") for name in chosen})
        work = partial(_pytest, source, files, _Chosen(chosen), ["-x"]) if files else int
        return _forked(work, scratch / "log", 30 + 3 * self.seconds)


@dataclass(frozen=True)
class Known:
    """What a run on the unchanged library taught.

    Attributes
    ----------
    seconds : of each test that passed
    lines : the tests that ran each line of each file
    """

    seconds: dict[str, float]
    lines: dict[str, dict[str, list[str]]]

    def tests_for(self, mutant: Mutant, seconds: float) -> dict[str, float]:
        """Return tests that run a mutant's statement, with their times, as many as there is time.

        Of every test function the quickest case first, then the second of each, and so on.
        Statements that run as the module is imported concern every test.
        """
        lines = self.lines.get(str(mutant.path), {})
        names = {name for k in mutant.statement() for name in lines.get(str(k), ())}
        if "" in names:
            names = set(self.seconds)
        rank, cases = dict[str, int](), Counter[str]()
        for name in sorted(names & set(self.seconds), key=self.seconds.__getitem__):
            function = name.split("[")[0]
            rank[name] = cases[function]
            cases[function] += 1
        chosen, left = dict[str, float](), seconds
        for name in sorted(rank, key=lambda name: (rank[name], self.seconds[name])):
            left -= self.seconds[name]
            if left < 0:
                break
            chosen[name] = self.seconds[name]
        return chosen


def verdicts_of(
    group: Group, mutants: Sequence[Mutant], *, seconds: float, processes: int
) -> list[tuple[Mutant, str]]:
    """Return what became of each mutant of a group.

    In a fresh process, since how numba runs is settled when it is imported.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(Trial(group, seconds, processes).verdicts, mutants).result()


# ---- the command --------------------------------------------------------------------------------


def _paths(group: Group) -> list[Path]:
    found = chain.from_iterable((ROOT / PACKAGE).glob(pattern) for pattern in group.modules)
    return sorted(path.relative_to(ROOT) for path in found if path.name != "__main__.py")


def _row(name: str, places: int, verdicts: Sequence[str]) -> str:
    counts = [verdicts.count(kind) for kind in (KILLED, TIMEOUT, SURVIVED, HARMLESS)]
    killed, timeouts, survived, _ = counts
    rate = (killed + timeouts) / max(killed + timeouts + survived, 1)
    return (
        f"{name:10}{places:8}{len(verdicts):9}"
        + "".join(f"{c:11}" for c in counts)
        + (f"{rate:9.1%}")
    )


def main() -> int:
    """Draw mutants, try them out, print how many were killed; fail below the target."""
    parser = argparse.ArgumentParser(description="Mutation testing of the parts that all rest on.")
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], help="which (all)")
    parser.add_argument("--sample", type=int, default=80, help="mutants a group (80)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (0)")
    parser.add_argument("--seconds", type=float, default=30.0, help="of tests a mutant (30)")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="side by side")
    given = parser.parse_args()
    rows, everything, survivors = [], list[str](), list[Mutant]()
    for name in given.groups or GROUPS:
        group = GROUPS[name]
        mutants, places = drawn_mutants(_paths(group), given.sample, given.seed)
        verdicts = verdicts_of(group, mutants, seconds=given.seconds, processes=given.processes)
        survivors += [mutant for mutant, verdict in verdicts if verdict == SURVIVED]
        rows.append(_row(name, places, [verdict for _, verdict in verdicts]))
        everything += [verdict for _, verdict in verdicts]
    head = "".join(f"{word:>11}" for word in (KILLED, TIMEOUT, SURVIVED, HARMLESS))
    print(f"\n{'group':10}{'places':>8}{'mutants':>9}{head}{'rate':>9}")
    print("\n".join(rows))
    killed = sum(verdict in (KILLED, TIMEOUT) for verdict in everything)
    counted = sum(verdict != HARMLESS for verdict in everything)
    print(f"{killed} of {counted} killed, {killed / max(counted, 1):.1%} (target {TARGET:.0%})")
    for mutant in sorted(survivors, key=str):
        print(f"survived  {mutant}")
    return int(killed < TARGET * counted)


if __name__ == "__main__":
    sys.exit(main())

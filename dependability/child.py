"""Cases tried in child processes, where a crash, a hang or a greedy allocation is a finding.

A check is a function of a case number that returns how the case went, `FINE` or `REFUSED`; whatever
else happens is found out from outside: an exception that escapes, a signal, silence beyond the time
limit, more memory than allowed. A case depends on nothing but its number, so that a finding can be
tried again alone.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

FINE, REFUSED = "fine", "refused"
UNNAMED, CRASH, HANG, MEMORY = "unnamed error", "crash", "hang", "too much memory"
FINDINGS = (UNNAMED, CRASH, HANG, MEMORY)

Check = Callable[[int], str]

# How many times its seconds of computing a case may take by the clock.
PATIENCE = 10

_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Outcome:
    """How one case went."""

    case: int
    verdict: str
    detail: str = ""


def try_cases(
    check: Check,
    cases: Sequence[int],
    *,
    seconds: float = 10.0,
    megabytes: int = 1024,
    processes: int | None = None,
) -> Iterator[Outcome]:
    """Run a check on every case, in child processes, and yield the outcomes as they come.

    ``seconds`` of computing and ``megabytes`` limit one case; memory counts beyond what this
    process has.
    """
    waiting = list(reversed(cases))
    count = min(processes or os.cpu_count() or 1, len(waiting))
    workers = [_Worker(check, megabytes) for _ in range(count)]
    try:
        for worker in workers:
            worker.give(waiting.pop())
        while busy := [worker for worker in workers if worker.case is not None]:
            wait([worker.pipe for worker in busy], timeout=0.2)
            for worker in busy:
                outcome = worker.outcome(seconds)
                if outcome is not None:
                    yield outcome
                    if waiting:
                        worker.give(waiting.pop())
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A child process that runs one case after the other, and is replaced when it dies."""

    def __init__(self, check: Check, megabytes: int) -> None:
        self.check, self.megabytes = check, megabytes
        self.case: int | None = None
        self.began = self.computed = 0.0
        self._start()

    def _start(self) -> None:
        self.pipe, theirs = _FORK.Pipe()
        arguments = (self.check, self.megabytes, theirs)
        self.process = _FORK.Process(target=_work, args=arguments, daemon=True)
        self.process.start()
        theirs.close()

    def give(self, case: int) -> None:
        """Hand over a case."""
        self.case, self.began = case, time.monotonic()
        self.computed = computing_seconds(self.process.pid)
        self.pipe.send(case)

    def outcome(self, seconds: float) -> Outcome | None:
        """Return how the case went, or None while it runs."""
        assert self.case is not None
        if self.pipe.poll():
            try:
                verdict, detail = self.pipe.recv()
            except EOFError:
                return self._replaced(CRASH)
            case, self.case = self.case, None
            return Outcome(case, verdict, detail)
        # On a busy machine a case waits for its turn: computing counts, and only long silence.
        is_over = computing_seconds(self.process.pid) - self.computed > seconds
        if is_over or time.monotonic() - self.began > PATIENCE * seconds:
            return self._replaced(HANG)
        return None

    def _replaced(self, verdict: str) -> Outcome:
        self.process.join(timeout=1.0 if verdict == CRASH else 0.0)
        code = self.process.exitcode
        self.end()
        assert self.case is not None
        outcome = Outcome(self.case, verdict, _say_exit(code))
        self.case = None
        self._start()
        return outcome

    def end(self) -> None:
        """Stop the child process."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _say_exit(code: int | None) -> str:
    if code is None:
        return "no answer"
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"


def _work(check: Check, megabytes: int, pipe: Connection[Any, Any]) -> None:
    """Answer case numbers until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.disable()  # a crash is told by its outcome, not by a page on standard error
    limit = _address_space() + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    while True:
        try:
            case = pipe.recv()
        except EOFError:
            return
        pipe.send(_verdict(check, case))


def _verdict(check: Check, case: int) -> tuple[str, str]:
    try:
        return check(case), ""
    except MemoryError as error:
        return MEMORY, str(error)
    except BaseException:
        return UNNAMED, traceback.format_exc(limit=-4)


def computing_seconds(pid: int | None) -> float:
    """Return the processor time that a process has used."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
    except OSError:  # it is gone, which its pipe tells
        return 0.0
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()

"""How much of the five documents is reproduced: runs the experiments and writes one page.

Every run is a process of its own and writes what it finds into a ledger (`experiments.ledger`).
A number agrees if it is within 10 % of the reported one, or within two standard deviations (the
document's and the runs' together); it is better if it lies on the good side of that. A statement
holds if it holds in more than half of the runs. A table or figure is

- *better* if four fifths of its entries agree or are better, and most of them are better;
- *reproduced* if four fifths agree or are better;
- *differs* if not; then `experiments.documents` has the reason;
- *not possible* if the document lacks what it takes to run it.

    python -m experiments.reproduction [--full] [--jobs 2] [--only TEXT] [--no-run]

Results are kept in ``experiments/results``, each with the version of the code that it is from, so
that ``--only`` can run some of them again and the page says how old the others are. A row whose run
has no results there stays as the page has it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.documents import FURTHER_RUNS, PLACES, Place, Run
from experiments.table import middle

RESULTS = Path(__file__).parent / "results"
CLOSE = 0.1
ENOUGH = 0.8
WORDS = ("better", "reproduced", "differs", "not possible", "not run")


@dataclass(frozen=True)
class Verdict:
    """What came of a table or figure: a word, the entries behind it, and the defaults' result."""

    word: str
    n_agree: int = 0
    n_better: int = 0
    n_entries: int = 0
    example: str = ""
    n_runs: int = 0
    worst: list[str] = field(default_factory=list)
    defaults: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """The cells of the row in an earlier page, where there are no results."""


def judge_figure(entry: dict[str, Any]) -> str:
    """Say whether one number is "better", "agrees" or "differs"."""
    values, reported = np.array(entry["measured"]), entry["reported"]
    centre, spread = float(np.median(values)), float(values.std())
    off = centre - reported
    within = max(CLOSE * abs(reported), 2 * float(np.hypot(spread, entry["deviation"])))
    if abs(off) <= within:
        return "agrees"
    is_better = {"lower": off < 0, "higher": off > 0}.get(entry["better"], False)
    return "better" if is_better else "differs"


def judge_entry(entry: dict[str, Any]) -> str:
    """Judge a number or a statement."""
    if entry["kind"] == "figure":
        return judge_figure(entry)
    return "agrees" if 2 * entry["held"] > entry["runs"] else "differs"


def describe(entry: dict[str, Any]) -> str:
    """Write an entry as reported beside measured."""
    if entry["kind"] == "claim":
        return f"{entry['words']}: held in {entry['held']} of {entry['runs']}"
    values = entry["measured"]
    found = middle(values) if len(values) > 1 else f"{values[0]:.3g}"
    return f"{entry['what']}: {entry['reported']:g} → {found}"


def judge(place: Place, entries: list[dict[str, Any]]) -> Verdict:
    """Judge a table or figure by all of its entries."""
    if place.run is None:
        return Verdict("not possible")
    defaults = [entry["words"] for entry in entries if entry["kind"] == "default"]
    facts = [entry for entry in entries if entry["kind"] != "default"]
    versions = list(dict.fromkeys(entry["version"] for entry in facts if "version" in entry))
    if not facts:
        return Verdict("not run", defaults=defaults)
    found = [judge_entry(entry) for entry in facts]
    n_agree, n_better = found.count("agrees"), found.count("better")
    enough = n_agree + n_better >= ENOUGH * len(found)
    word = "differs" if not enough else "better" if 2 * n_better > len(found) else "reproduced"
    runs = [e["runs"] if e["kind"] == "claim" else len(e["measured"]) for e in facts]
    worst = [describe(e) for e, verdict in zip(facts, found, strict=True) if verdict == "differs"]
    return Verdict(
        word,
        n_agree,
        n_better,
        len(found),
        describe(facts[0]),
        max(runs),
        worst,
        defaults,
        versions,
    )


def as_before(place: Place, verdict: Verdict, page_text: str) -> Verdict:
    """Return what an earlier page says of a place without results; the same verdict if nothing."""
    section = page_text.partition(f"\n## {place.document}\n")[2].partition("\n## ")[0]
    for line in section.splitlines():
        cells = line.strip("| ").split(" | ")
        if cells[0].partition("]")[0].strip("[") == place.name and "not run" not in cells[2]:
            differing = page_text.partition(f"\n**{place.key}**\n\n")[2].partition("\n\n")[0]
            worst = [words.removeprefix("- ") for words in differing.splitlines()]
            return replace(verdict, word=cells[2].strip("*"), worst=worst, kept=cells)
    return verdict


def ledger_path(run: Run, *, is_full: bool) -> Path:
    """Return the file of a run."""
    name = "_".join([run.module, *run.arguments(is_full=is_full)]).replace("--", "")
    return RESULTS / ("full" if is_full else "quick") / f"{name}.jsonl"


def execute(run: Run, *, is_full: bool) -> tuple[Run, float, str]:
    """Run an experiment; return its seconds and, if it failed, the end of what it printed."""
    path = ledger_path(run, is_full=is_full)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.unlink(missing_ok=True)
    command = [sys.executable, "-m", f"experiments.{run.module}", *run.arguments(is_full=is_full)]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    environment = {**os.environ, **threads, "TWOFOLD_LEDGER": str(unfinished)}
    began = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    if done.returncode == 0 and unfinished.exists():
        stamp(unfinished, path)
        path.with_suffix(".txt").write_text(done.stdout, encoding="utf-8")
        return run, seconds, ""
    last = (done.stderr or done.stdout).strip().splitlines()[-1:]
    return run, seconds, last[0] if last else "nothing was found"


def stamp(unfinished: Path, path: Path) -> None:
    """Keep the entries of a run that ended, each with the version of the code."""
    entries = map(json.loads, unfinished.read_text(encoding="utf-8").splitlines())
    version = code_version()
    lines = [json.dumps({**entry, "version": version}) + "\n" for entry in entries]
    path.write_text("".join(lines), encoding="utf-8")
    unfinished.unlink()


def execute_all(runs: Iterable[Run], jobs: int, *, is_full: bool) -> None:
    """Run experiments side by side and say how each went."""
    with ThreadPoolExecutor(jobs) as pool:
        for run, seconds, failure in pool.map(lambda run: execute(run, is_full=is_full), runs):
            words = " ".join([run.module, *run.arguments(is_full=is_full)])
            print(f"{seconds:7.0f} s  {words}  {failure}", flush=True)


def read_entries(*, is_full: bool) -> dict[str, list[dict[str, Any]]]:
    """Return all entries by the name of their table or figure."""
    entries: dict[str, list[dict[str, Any]]] = {}
    for run in every_run():
        path = ledger_path(run, is_full=is_full)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for entry in map(json.loads, lines):
            entries.setdefault(entry["place"], []).append(entry)
    return entries


def every_run() -> list[Run]:
    """Return every run once, in the order of the documents."""
    named = [place.run for place in PLACES if place.run is not None]
    return list(dict.fromkeys([*named, *FURTHER_RUNS]))


def code_version() -> str:
    """Return the version of the code, as git names it; results and pages are not code."""
    words = ["git", "log", "-1", "--format=%h", "--", ":/src", ":/experiments/*.py"]
    found = subprocess.run(words, capture_output=True, text=True, check=False, cwd=RESULTS.parent)
    return found.stdout.strip() or "unknown"


def score_table(verdicts: dict[Place, Verdict]) -> list[str]:
    """Return the table at the top: how many of each document have which verdict."""
    lines = [f"| document | {' | '.join(WORDS)} | reproduced or better |", "|---" * 7 + "|"]
    documents = list(dict.fromkeys(place.document for place in PLACES))
    for document in [*documents, "all"]:
        words = [v.word for p, v in verdicts.items() if document in (p.document, "all")]
        counts = [words.count(word) for word in WORDS]
        measured = sum(counts[:3])
        share = f"{(counts[0] + counts[1]) / measured:.0%} of {measured}" if measured else "-"
        lines.append(f"| {document} | {' | '.join(map(str, counts))} | {share} |")
    return lines


def place_lines(place: Place, verdict: Verdict, *, is_full: bool) -> list[str]:
    """Return the row of a place and what is folded behind it."""
    command = "-"
    if place.run is not None:
        words = " ".join([place.run.module, *place.run.arguments(is_full=is_full)])
        command = f"`python -m experiments.{words}`"
    entries = "-"
    if verdict.n_entries:
        entries = f"{verdict.n_agree} agree, {verdict.n_better} better, of {verdict.n_entries}"
    reason = place.reason if verdict.word in ("differs", "not possible") else ""
    cells = (
        f"[{place.name}](experiments.md#{place.details})" if place.details else place.name,
        place.what,
        f"**{verdict.word}**",
        entries,
        str(verdict.n_runs or "-"),
        verdict.example,
        "; ".join(verdict.defaults[:2]) or "-",
        " ".join(filter(None, (place.reading, reason))) or "-",
        command,
        ", ".join(verdict.versions) or "-",
    )
    if verdict.kept:
        cells = (*cells[:3], *verdict.kept[3:6], *cells[6:8], *verdict.kept[8:])
    return ["| " + " | ".join(cell.replace("|", "¦") for cell in cells) + " |"]


def detail_lines(verdicts: dict[Place, Verdict]) -> list[str]:
    """Return, for each place, the entries that differ."""
    lines = ["## Entries that differ", ""]
    for place, verdict in verdicts.items():
        if verdict.worst:
            lines += [f"**{place.key}**", ""]
            lines += [f"- {words}" for words in verdict.worst]
            lines.append("")
    return lines


def page(verdicts: dict[Place, Verdict], *, is_full: bool) -> str:
    """Return the page."""
    kind = "full" if is_full else "quick"
    text = [
        "---\nhide: [navigation, toc]\n---",  # the tables need the width
        "",
        "# Reproduction",
        "",
        f"Every table and every quantitative figure of the five documents, run again with the "
        f"{kind} settings. `make reproduce` writes this page (`FULL=1` for all runs). The name of "
        "a table leads to its details: all figures, with more runs, and what else was tried. The "
        f"last column is the commit of the code that was run; this page is from {code_version()}.",
        "",
        "A number *agrees* within 10 % or two standard deviations. A table is *reproduced* if "
        "four fifths of its numbers agree or are better, *better* if most are better.",
        "",
        *score_table(verdicts),
        "",
    ]
    header = (
        "where | what | verdict | entries | runs | first entry: reported → measured | "
        "the library's default | how it was read, why it differs | command | code"
    )
    for document in dict.fromkeys(place.document for place in PLACES):
        text += [f"## {document}", "", f"| {header} |", "|---" * 10 + "|"]
        for place, verdict in verdicts.items():
            if place.document == document:
                text += place_lines(place, verdict, is_full=is_full)
        text.append("")
    return "\n".join([*text, *detail_lines(verdicts)]).rstrip() + "\n"


def main() -> None:
    """Run what is asked for and write the page."""
    parser = argparse.ArgumentParser(description="How much of the documents is reproduced.")
    parser.add_argument("--full", action="store_true", help="all runs (hours)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="runs whose command has this text")
    parser.add_argument("--page", type=Path, default=Path("docs/reproduction.md"))
    parser.add_argument("--no-run", action="store_true", help="only write the page again")
    given = parser.parse_args()
    chosen = [
        run
        for run in every_run()
        if given.only in " ".join([run.module, *run.arguments(is_full=given.full)])
    ]
    if not given.no_run:
        execute_all(chosen, given.jobs, is_full=given.full)
    entries = read_entries(is_full=given.full)
    unknown = set(entries) - {place.key for place in PLACES}
    if unknown:
        raise SystemExit(f"entries without a row in experiments/documents.py: {sorted(unknown)}")
    verdicts = {place: judge(place, entries.get(place.key, [])) for place in PLACES}
    earlier = given.page.read_text(encoding="utf-8") if given.page.exists() else ""
    for place, verdict in verdicts.items():
        if verdict.word == "not run":
            verdicts[place] = as_before(place, verdict, earlier)
    given.page.write_text(page(verdicts, is_full=given.full), encoding="utf-8")
    print("\n".join(score_table(verdicts)))
    print(f"written to {given.page}")


if __name__ == "__main__":
    main()

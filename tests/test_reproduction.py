"""The page of reproduced tables: how entries are judged, and that every row has its run."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest
from experiments import ledger
from experiments.defaults import DEFAULTS
from experiments.documents import PLACES, Place, Run
from experiments.reproduction import (
    as_before,
    every_run,
    judge,
    judge_figure,
    page,
    score_table,
    stamp,
)


def figure(reported: float, measured: list[float], **rest: object) -> dict[str, object]:
    entry = {"kind": "figure", "what": "x", "deviation": 0.0, "better": None, **rest}
    return {**entry, "reported": reported, "measured": measured}


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        (figure(10.0, [10.9]), "agrees"),  # within 10 %
        (figure(10.0, [12.0]), "differs"),
        (figure(10.0, [12.0], deviation=1.1), "agrees"),  # within 2 x 1.1
        (figure(10.0, [11.0, 13.0]), "agrees"),  # 12 ± 1: two deviations are 2
        (figure(10.0, [8.0], better="lower"), "better"),
        (figure(10.0, [8.0], better="higher"), "differs"),
        (figure(10.0, [12.0], better="higher"), "better"),
        (figure(-10.0, [-12.0]), "differs"),
    ],
)
def test_figures_are_judged(entry: dict[str, object], word: str) -> None:
    assert judge_figure(entry) == word


A_RUN = Run("press", "1", "3")


def test_a_table_needs_four_fifths() -> None:
    place = Place("Klanke 2007 (thesis)", "Table 0", "nothing", A_RUN)
    good, bad = figure(1.0, [1.0]), figure(1.0, [2.0])
    lower = figure(1.0, [0.5], better="lower")
    assert judge(place, [good] * 4 + [bad]).word == "reproduced"
    assert judge(place, [good] * 3 + [bad]).word == "differs"
    assert judge(place, [lower] * 3 + [good] * 2).word == "better"
    assert judge(place, []).word == "not run"
    claim = {"kind": "claim", "words": "it holds", "held": 1, "runs": 2}
    assert judge(place, [claim]).word == "differs"  # half is not more than half
    assert judge(place, [{**claim, "held": 2}]).word == "reproduced"


def test_what_cannot_be_run_has_a_reason() -> None:
    for place in PLACES:
        assert place.run is not None or place.reason, place.key


def test_rows_are_named_once_and_have_a_module() -> None:
    keys = [place.key for place in PLACES]
    assert len(set(keys)) == len(keys)
    for run in every_run():
        assert importlib.util.find_spec(f"experiments.{run.module}") is not None


def test_every_row_that_is_run_says_what_the_defaults_do() -> None:
    for place in PLACES:
        if place.run is not None and place.key not in DEFAULTS:
            module = importlib.util.find_spec(f"experiments.{place.run.module}")
            assert "ledger.default(" in Path(module.origin).read_text("utf-8"), place.key
    assert set(DEFAULTS) <= {place.key for place in PLACES}


def test_the_ledger_is_written_only_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.jsonl"
    monkeypatch.delenv("TWOFOLD_LEDGER", raising=False)
    ledger.claim("Klanke, Table 0", "nothing", 1, 1)
    assert not path.exists()
    monkeypatch.setenv("TWOFOLD_LEDGER", str(path))
    ledger.figure("Klanke, Table 0", "x", 1, [2, 3], better="lower")
    ledger.default("Klanke, Table 0", "the same")
    first, second = map(json.loads, path.read_text().splitlines())
    assert first["measured"] == [2.0, 3.0]
    assert second["kind"] == "default"


def test_the_page_counts_what_was_measured() -> None:
    good = figure(1.0, [1.0])
    verdicts = {place: judge(place, [good] if place.run else []) for place in PLACES}
    *_, last = score_table(verdicts)
    n_run = sum(place.run is not None for place in PLACES)
    assert f"100% of {n_run}" in last
    text = page(verdicts, is_full=False)
    assert all(place.name in text for place in PLACES)
    assert "`python -m experiments.press 3`" in text


def test_every_row_with_a_run_leads_to_a_heading_of_the_details() -> None:
    details = Path(__file__).parent.parent / "docs" / "experiments.md"
    headings = [line for line in details.read_text("utf-8").splitlines() if line.startswith("#")]
    anchors = {slug(heading.lstrip("# ")) for heading in headings}
    for place in PLACES:
        assert place.run is None or place.details in anchors, place.key


def slug(heading: str) -> str:
    """Return the anchor that the site makes of a heading."""
    words = re.sub(r"[^\w\s-]", "", heading).strip().lower()
    return re.sub(r"[-\s]+", "-", words)


def test_results_keep_the_version_of_the_code(tmp_path: Path) -> None:
    found, kept = tmp_path / "run.part", tmp_path / "run.jsonl"
    found.write_text(json.dumps({**figure(1.0, [1.0]), "place": "Klanke, Table 0"}) + "\n")
    stamp(found, kept)
    assert not found.exists()
    (entry,) = map(json.loads, kept.read_text().splitlines())
    place = Place("Klanke 2007 (thesis)", "Table 0", "nothing", A_RUN)
    assert judge(place, [entry]).versions == [entry["version"]]


def test_rows_without_results_stay_as_they_were() -> None:
    good, bad = figure(1.0, [1.0]), {**figure(1.0, [2.0]), "version": "abc1234"}
    first = {place: judge(place, [good, bad] if place.run else []) for place in PLACES}
    earlier = page(first, is_full=False)
    nothing = {place: judge(place, []) for place in PLACES}
    later = {place: as_before(place, verdict, earlier) for place, verdict in nothing.items()}
    assert [verdict.word for verdict in later.values()] == [one.word for one in first.values()]
    assert page(later, is_full=False) == earlier

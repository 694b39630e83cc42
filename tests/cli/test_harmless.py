"""Names of strangers come out harmless in terminal and tables; own cells stay as they are."""

from __future__ import annotations

import io
import sys

import pandas as pd
import pytest
from cli.running import make_frame, run, run_well

from twofold.checks.harmless_text import for_spreadsheet, for_terminal
from twofold.tables.writing import open_writer

RED, FORMULA, MARKUP = "\x1b[31mred\x07", "=cmd|' /C calc'!A0", "[red]tick[/red]"


@pytest.fixture
def odd_table(tmp_path):
    """A table whose column, label and row names try to be obeyed."""
    frame = make_frame(30).rename(columns={"length": RED, "width": FORMULA, "species": MARKUP})
    frame.index = pd.Index([f"={k}+1" for k in range(len(frame))], name="@specimen")
    path = tmp_path / "odd.csv"
    frame.to_csv(path)
    return path


@pytest.fixture
def odd_model(odd_table, tmp_path):
    path = tmp_path / "odd.twofold"
    words = ["fit", odd_table, "-o", path, "--label", MARKUP, "--index", "@specimen"]
    result = run_well(*words, "--max-iter", 1)
    assert "\x1b" not in result.stderr
    assert "\x07" not in result.stderr
    assert "\\u001b[31mred\\u0007" in result.stderr
    assert MARKUP in result.stderr
    return path


def test_the_terminal_obeys_nothing(odd_model, odd_table):
    for words in (
        ["info", odd_model],
        ["score", odd_model, odd_table],
        ["info", "\x1b[2J.twofold"],
    ):
        result = run(*words)
        assert "\x1b" not in result.stdout + result.stderr
    assert "\\u001b[2J" in result.stderr


@pytest.mark.parametrize("mark", ["\x1b", "\x9b", "\r", "\0", "\x7f", "\u202e", "\ud800"])
def test_what_a_terminal_obeys_is_spelled_out(mark):
    assert for_terminal(f"a{mark}b\tc\n") == f"a\\u{ord(mark):04x}b\tc\n"


def test_a_table_shown_in_a_terminal_obeys_nothing_either(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdout", Terminal())
    with open_writer("-") as out:
        out.write(pd.DataFrame({"a": [RED, "é"]}))
    assert sys.stdout.getvalue() == "a\n\\u001b[31mred\\u0007\né\n"


def test_own_cells_survive(odd_model, odd_table, tmp_path):
    output = tmp_path / "whole.csv"
    run_well("complete", odd_model, odd_table, "-o", output)
    assert output.read_bytes() == odd_table.read_bytes()


def test_names_from_a_model_are_no_formulas_in_a_table(odd_model, tmp_path):
    done = run_well("generate", odd_model, "--grid", 2, "-o", tmp_path / "made.csv")
    columns = list(pd.read_csv(tmp_path / "made.csv").columns)
    assert f"'{FORMULA}" in columns
    assert FORMULA not in columns
    assert "spreadsheet would run them" in done.stderr
    run_well("generate", odd_model, "--grid", 2, "-o", tmp_path / "made.parquet")
    assert FORMULA in pd.read_parquet(tmp_path / "made.parquet").columns


@pytest.mark.parametrize("name", ["=1", "@A", "\t=1", "\r=1", "+cmd|' /C calc'!A0", "-2+3!A1"])
def test_formulas_get_a_mark(name):
    assert for_spreadsheet(name) == f"'{for_terminal(name)}"


def test_codes_in_names_are_spelled_out_in_tables():
    assert for_spreadsheet(RED) == "\\u001b[31mred\\u0007"


@pytest.mark.parametrize("name", ["-1", "+1.5e3", "-log10(p)", "a=b", "", "x1", "'=1"])
def test_other_names_stay(name):
    assert for_spreadsheet(name) == name

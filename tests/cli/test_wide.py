"""Tables of very many columns take time and memory in proportion to their cells."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from cli.running import refused, run_well

from twofold.cli.columns import find_columns
from twofold.cli.console import CommandError
from twofold.tables.reading import open_table


def wide_frame(n: int, D: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    Y = np.tanh(rng.uniform(-1, 1, (n, 2)) @ rng.normal(size=(2, D)))
    names = [f"c{k}" for k in range(D)]
    return pd.DataFrame(np.round(Y + 0.01 * rng.normal(size=(n, D)), 4), columns=names)


def run_all(folder, n: int, D: int) -> float:
    """Run the commands that read a table; return their seconds of computing."""
    frame = wide_frame(n, D)
    table, model = folder / "wide.csv", folder / "wide.twofold"
    frame.to_csv(table, index=False)
    gaps = frame.head(3).copy()
    gaps.loc[1, "c5"] = np.nan
    gaps.to_csv(folder / "gaps.csv", index=False)
    began = time.process_time()
    done = run_well("fit", table, "-o", model, "--max-iter", 1)
    assert (f"{D:,} columns\n" in done.stderr) == (D > 10_000)
    for command in ("transform", "complete", "denoise"):
        run_well(command, model, folder / "gaps.csv", "-o", folder / f"{command}.csv")
    seconds = time.process_time() - began
    completed = pd.read_csv(folder / "complete.csv")
    assert completed.notna().all(axis=None)
    pd.testing.assert_frame_equal(completed.drop(columns="c5"), gaps.drop(columns="c5"))
    assert list(pd.read_csv(folder / "denoise.csv").columns) == list(frame.columns)
    assert "infinite value" in refused_infinity(folder, gaps, model)
    return seconds


def refused_infinity(folder, gaps: pd.DataFrame, model) -> str:
    gaps.loc[0, "c1"] = np.inf
    gaps.to_csv(folder / "infinite.csv", index=False)
    return refused("transform", model, folder / "infinite.csv")


@pytest.mark.slow
def test_commands_on_a_wide_table(tmp_path):
    run_all(tmp_path, n=8, D=6000)


@pytest.mark.slow
def test_commands_on_a_very_wide_table_take_less_than_two_minutes(tmp_path):
    assert run_all(tmp_path, n=50, D=100_000) < 120


@pytest.mark.slow
def test_cells_of_a_wide_table_are_read_as_those_of_any_other(tmp_path):
    narrow = "a,b,c,d,e\n1,NA,x, 3 ,1e3\n2,,y,4,−5\n\n-0.5,?,,inf,7\n"
    filler = [f"f{k}" for k in range(6000)]
    lines = narrow.split("\n")
    wide = [",".join([lines[0], *filler])]
    wide += [",".join([line, *("0" for _ in filler)]) if line else "" for line in lines[1:]]
    for name, text in (("narrow.csv", narrow), ("wide.csv", "\n".join(wide))):
        (tmp_path / name).write_text(text)
    expected, found = open_table(tmp_path / "narrow.csv"), open_table(tmp_path / "wide.csv")
    for numbers in ("detect", ()):
        same_cells(found.read(numbers)[list("abcde")], expected.read(numbers))
    assert found.left_out == expected.left_out


def same_cells(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    plain = [frame.astype(object).where(frame.notna(), None) for frame in (found, expected)]
    pd.testing.assert_frame_equal(*plain)
    assert list(found.dtypes) == list(expected.dtypes)


@pytest.mark.parametrize("cell", ["1_000", "١", "x"])
def test_what_is_no_number_elsewhere_is_none_in_a_wide_table(cell, tmp_path):
    names = [f"c{k}" for k in range(6000)]
    rows = [["1"] * 6000, ["2"] * 6000]
    rows[1][77] = cell
    lines = [",".join(cells) for cells in (names, *rows)]
    (tmp_path / "wide.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"line 3, column 'c77'.*is not a number"):
        open_table(tmp_path / "wide.csv").read(names)


def test_columns_are_found_among_very_many_at_once():
    names = [f"c{k}" for k in range(100_000)]
    began = time.process_time()
    assert find_columns(names, names, "t.csv", "the model needs") == names
    with pytest.raises(CommandError, match=r"lacks 100000 columns"):
        find_columns([f"C {k}" for k in range(100_000)], names, "t.csv", "the model needs")
    assert time.process_time() - began < 20

"""Tables that nobody meant well with, sent through the reader and through every command.

A case takes a small table of one kind, spoils it once or twice (see `table_mutations`) and reads it
or gives it to a command. Fine is a result, and a refusal with a sentence; a crash, more than ten
seconds, more than a gigabyte, an error without a name and a pickle that was opened are findings.

``python -m dependability.tables --count 3000`` tries so many.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from dependability.child import FINE, REFUSED, Outcome, try_cases
from dependability.report import conclude, numbers_from_command_line
from dependability.table_mutations import (
    bombs,
    canary_mark,
    mutations_of,
    sample_frame,
    valid_files,
)
from twofold.cli.app import app
from twofold.tables.reading import open_table
from twofold.tables.table import TableError

UNEXPECTED, NO_MEMORY = "Something unexpected happened", "There is not enough memory"
LONGEST_SENTENCE = 2000
COMMANDS = ("read", "fit", "transform", "complete", "denoise", "score", "info", "points")


def try_tables(cases: Sequence[int]) -> Iterator[Outcome]:
    """Yield how the cases went."""
    canary_mark(), valid_files(), bombs(), model_file()  # made once, before processes part
    compile_all()
    return try_cases(check_table, cases)


@cache
def model_file() -> Path:
    """Return the file of a small model of the table that all others are made from."""
    folder = Path(tempfile.mkdtemp(prefix="twofold-tables-"))
    sample_frame().to_csv(folder / "table.csv")
    words = ["fit", "table.csv", "-o", "m.twofold", "--label", "species", "--max-iter", "3"]
    in_folder = [str(folder / word) if "." in word else word for word in words]
    result = CliRunner().invoke(app, in_folder, prog_name="twofold")
    assert result.exit_code == 0, result.stderr
    return folder / "m.twofold"


def compile_all() -> None:
    """Run every command once, so that no case waits for the compiler."""
    for command in COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "odd.csv"
            path.write_bytes(valid_files()[".csv"])
            _ = run_command(command, path) if command != "read" else read_whole(path)


def check_table(case: int) -> str:
    """Spoil a table and use it; return how that went."""
    rng = np.random.default_rng(case)
    suffix = str(rng.choice(list(valid_files())))
    data = valid_files()[suffix]
    for _ in range(rng.choice([1, 1, 2])):
        possible = mutations_of(suffix)
        data = possible[rng.integers(len(possible))](rng, data)
    is_text = suffix in (".csv", ".tsv", ".txt", ".dat")
    name = f"odd{suffix}{'.gz' if is_text and rng.random() < 0.1 else ''}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        command = str(rng.choice(COMMANDS))
        verdict = read_whole(path) if command == "read" else run_command(command, path)
    assert not canary_mark().exists(), "a pickle was opened"
    return verdict


def read_whole(path: Path) -> str:
    """Read a table in the ways that commands do."""
    try:
        source = open_table(path)
        frame = source.read("detect")
        pieces = list(open_table(path).chunks(5))
    except TableError as error:
        if len(str(error)) > LONGEST_SENTENCE or not str(error).endswith((".", ".)")):
            raise ValueError(f"no sentence: {str(error)[:LONGEST_SENTENCE]}") from error
        return REFUSED
    assert len(frame) == sum(len(piece) for piece in pieces)
    return FINE


def run_command(command: str, path: Path) -> str:
    """Give a table to a command and look at how it ends."""
    output = path.parent / "result.csv"
    model = str(model_file())
    words = {
        "fit": ["fit", str(path), "-o", str(path.parent / "m.twofold"), "--max-iter", "2"],
        "info": ["info", str(path)],
        "points": ["generate", model, "--points", str(path), "-o", str(output)],
        "score": ["score", model, str(path)],
    }.get(command, [command, model, str(path), "-o", str(output)])
    if command == "info":  # as if it were a model
        path = path.rename(path.with_suffix(".twofold"))
        words = ["info", str(path)]
    result = CliRunner().invoke(app, words, prog_name="twofold")
    said = result.stderr
    if NO_MEMORY in said:
        raise MemoryError(said)
    assert UNEXPECTED not in said, said
    assert "Traceback" not in said, said
    assert len(said) < 20 * LONGEST_SENTENCE, said[:LONGEST_SENTENCE]
    left = {file.name for file in path.parent.iterdir()} - {path.name, "m.twofold", "result.csv"}
    assert not left, f"left behind: {left}"
    if result.exit_code:
        assert "error: " in said, said
        assert not output.exists(), "an error, and a result all the same"
        return REFUSED
    if command == "transform":
        places = open_table(output).read(["x1", "x2"])[["x1", "x2"]].to_numpy()
        assert np.all(np.isfinite(places) | np.isnan(places)), "not finite"
    return FINE


if __name__ == "__main__":
    numbers = numbers_from_command_line("Odd tables, read and given to commands.", 3000)
    sys.exit(conclude("odd tables", try_tables(numbers)))

"""The command as other programs see it: exit codes, streams, signals, time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from cli.running import COLUMNS, make_frame, refused, run, run_well, write_csv

import twofold
from twofold.cli.console import explain, plain

COMMAND = [sys.executable, "-m", "twofold"]


def execute(*words: object, **kwargs: object) -> subprocess.CompletedProcess:
    kwargs = {"capture_output": True, "text": True, "timeout": 120, **kwargs}
    return subprocess.run([*COMMAND, *map(str, words)], **kwargs)


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom twofold.cli.app import app\n"
        "try:\n    app(['--help'], prog_name='twofold')\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "heavy = {'numpy', 'pandas', 'sklearn', 'scipy', 'numba', 'matplotlib'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for command in ("fit", "transform", "complete", "generate", "explore", "demo"):
        assert command in done.stdout


def test_version_and_no_command():
    assert run_well("--version").stdout == f"twofold {twofold.__version__}\n"
    bare = run()
    assert bare.exit_code == 2
    assert "transform" in bare.output


@pytest.mark.parametrize(
    "command",
    ["fit", "transform", "complete", "denoise", "score", "generate", "info", "plot", "explore"],
)
def test_every_command_has_help_and_says_what_it_lacks(command):
    assert "Usage: twofold" in run_well(command, "--help").stdout
    said = refused(command, code=2)
    assert "Missing argument" in said
    assert f"hint: twofold {command} --help" in said


def test_unknown_commands():
    said = refused("transfrom", code=2)
    assert "transform" in said


def test_streams_and_exit_codes_of_the_real_command(model_file, table, tmp_path):
    done = execute("transform", model_file, table)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "specimen,x1,x2,species"
    assert len(done.stdout.splitlines()) == 61
    assert "not used" in done.stderr
    failed = execute("info", tmp_path / "none.twofold")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith("error: ")
    wrong = execute("transform", "--what")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "\x1b" not in failed.stderr + wrong.stderr


@pytest.mark.slow
def test_no_color_is_honoured(tmp_path):
    loud = {**os.environ, "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    loud.pop("NO_COLOR", None)
    colours = ("\x1b[1;31m", "\x1b[31m")
    failed = execute("info", tmp_path / "none.twofold", env=loud)
    assert any(code in failed.stderr for code in colours)
    plain_text = execute("info", tmp_path / "none.twofold", env={**loud, "NO_COLOR": "1"})
    assert not any(code in plain_text.stderr for code in colours)


@pytest.mark.slow
def test_tracebacks_only_on_request(tmp_path):
    asked = execute("info", tmp_path / "none.twofold", env={**os.environ, "TWOFOLD_TRACEBACK": "1"})
    assert asked.returncode == 1
    assert "Traceback" in asked.stderr
    assert "error: There is no model file" in asked.stderr


@pytest.mark.slow
def test_a_reader_that_leaves_ends_the_command_quietly(model_file, tmp_path):
    long = pd.concat([make_frame()] * 100)
    path = write_csv(long, tmp_path / "long.csv")
    process = subprocess.Popen(
        [*COMMAND, "denoise", model_file, path, "--quiet"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.readline()
    process.stdout.close()
    said = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(timeout=120) == 141
    assert said == ""


@pytest.mark.slow
def test_interrupted_write_leaves_the_old_file(model_file, tmp_path):
    rng = np.random.default_rng(0)
    many = make_frame().iloc[rng.integers(0, 60, 20_000)].copy()
    many[COLUMNS] += rng.normal(0, 0.05, (20_000, 4))  # new rows, each to be projected
    path, out = write_csv(many, tmp_path / "many.csv"), tmp_path / "out.csv"
    out.write_text("old\n")
    process = subprocess.Popen(
        [*COMMAND, "transform", model_file, path, "-o", out],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    _wait_for(lambda: any(".partial-" in file.name for file in tmp_path.iterdir()))
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert stdout == b""
    assert b"Traceback" not in stderr
    assert b"error: Interrupted" in stderr
    assert out.read_text() == "old\n"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["many.csv", "out.csv"]


def _wait_for(happened, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_unexpected_errors_are_owned_up_to(model_file, monkeypatch):
    def broken(*args):
        raise KeyError("latent")

    monkeypatch.setattr("twofold.cli.describing.describe", broken)
    said = refused("info", model_file)
    assert "KeyError: 'latent'" in said
    assert "TWOFOLD_TRACEBACK=1" in said


def test_errors_in_words():
    message, hint, code = explain(PermissionError(13, "Permission denied", "/data/t.csv"))
    assert message == "'/data/t.csv': Permission denied."
    assert "-o" in hint
    assert code == 1
    assert explain(ValueError("`n_components` must be more"))[0] == "--dimensions must be more"
    assert "[plot]" in explain(ModuleNotFoundError("no", name="matplotlib"))[1]
    assert "[distributed]" in explain(ModuleNotFoundError("no", name="dask.dataframe"))[1]
    assert explain(ModuleNotFoundError("no", name="other"))[1] == "pip install other"
    assert "--landmarks auto" in explain(MemoryError())[1]
    assert explain(RuntimeError("can't start new thread"))[0].startswith("There is not enough mem")


def test_json_knows_no_nan():
    facts = {"a": np.float64("nan"), "b": np.arange(2), "c": (1, None), 3: float("inf")}
    assert plain(facts) == {"a": None, "b": [0, 1], "c": [1, None], "3": None}

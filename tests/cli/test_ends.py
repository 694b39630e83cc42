"""How a command ends when it is told to."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from twofold.cli.console import explain

SLOW_SAVE = """
import sys, time
import twofold.cli.app
from twofold.replacing import replacing

def save(*args, **options):
    with replacing(sys.argv[1]) as partial:
        partial.write_text("half")
        print("writing", flush=True)
        time.sleep(60)

twofold.cli.app.Commands.invoke = save
from twofold.cli import main
sys.argv = ["twofold", sys.argv[1]]
main()
"""


@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGTERM, 143, "Terminated"), (signal.SIGINT, 130, "Inter")]
)
def test_signals_clean_up_and_say_so(number, code, word, tmp_path):
    target = tmp_path / "m.twofold"
    target.write_text("old")
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_SAVE, str(target)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "writing\n"
        time.sleep(0.2)
        process.send_signal(number)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == code
    assert word in said
    assert "Traceback" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["m.twofold"]
    assert target.read_text() == "old"


def test_a_library_that_cannot_be_loaded_is_told():
    message, hint, code = explain(ImportError("failed to map segment from shared object"))
    assert "cannot be loaded" in message
    assert "memory" in hint
    assert code == 1


def test_an_error_that_ctrl_c_led_to_is_an_interruption():
    error = SystemError("returned a result with an exception set")
    error.__cause__ = KeyboardInterrupt()
    assert explain(error)[::2] == ("Interrupted; nothing was changed.", 130)

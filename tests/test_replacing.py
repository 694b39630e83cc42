"""What a killed save leaves is removed by the next one, and never what another is writing."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys

import pytest

from twofold.replacing import replacing

SAVE_AND_DIE = """
import os, signal, sys
from twofold.replacing import replacing
with replacing(sys.argv[1]) as partial:
    partial.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
SAVE_AND_WAIT = """
import sys

import pytest
from twofold.replacing import replacing
with replacing(sys.argv[1]) as partial:
    partial.write_text("from the other process")
    print("writing", flush=True)
    sys.stdin.read()
"""


def save(path, text="new"):
    with replacing(path) as partial:
        partial.write_text(text)


def test_what_a_killed_save_left_goes_at_the_next_save_to_that_target(tmp_path):
    target = tmp_path / "m.twofold"
    target.write_text("old")
    killed = subprocess.run([sys.executable, "-c", SAVE_AND_DIE, str(target)])
    assert killed.returncode == -signal.SIGKILL
    assert target.read_text() == "old"
    assert len(os.listdir(tmp_path)) == 2
    save(tmp_path / "other.twofold")
    assert len(os.listdir(tmp_path)) == 3
    save(target)
    assert sorted(os.listdir(tmp_path)) == ["m.twofold", "other.twofold"]


def test_what_another_process_is_writing_stays(tmp_path):
    target = tmp_path / "m.twofold"
    other = subprocess.Popen(
        [sys.executable, "-c", SAVE_AND_WAIT, str(target)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout.readline() == "writing\n"
    save(target)
    assert target.read_text() == "new"
    other.communicate()
    assert other.returncode == 0
    assert target.read_text() == "from the other process"
    assert os.listdir(tmp_path) == ["m.twofold"]


def test_what_another_save_of_this_process_is_writing_stays(tmp_path):
    target = tmp_path / "m.twofold"
    with replacing(target) as first:
        first.write_text("first")
        save(target)
        assert first.read_text() == "first"
    assert target.read_text() == "first"
    assert os.listdir(tmp_path) == ["m.twofold"]


def test_names_that_only_look_alike_stay(tmp_path):
    target = tmp_path / "m.twofold"
    alike = [".m.twofold.partial-notes", "m.twofold.partial-0123abcd", ".m.twofold.partial-0123"]
    for name in alike:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".m.twofold.partial-0123abcd").mkdir()
    save(target)
    assert sorted(os.listdir(tmp_path)) == sorted(
        [*alike, ".m.twofold.partial-0123abcd", "m.twofold"]
    )


def test_a_pipe_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="is a device or a pipe"), replacing(pipe):
        pass
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_links_in_a_circle_and_files_as_folders_are_named(tmp_path):
    loop, file = tmp_path / "loop", tmp_path / "file"
    loop.symlink_to(loop)
    file.write_text("")
    with pytest.raises(OSError, match=r"loop"), replacing(loop):
        pass
    with pytest.raises(NotADirectoryError, match="is a file, not a folder"), replacing(file / "x"):
        pass

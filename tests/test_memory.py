"""How much memory is found to be there."""

from __future__ import annotations

import pytest

from twofold import memory


def test_memory_of_this_machine_is_found_one_way_or_another(monkeypatch):
    def missing(*arguments):
        raise ImportError

    monkeypatch.setattr(memory, "_of_container", lambda: None)
    assert memory.available() > 2**20
    monkeypatch.setattr(memory, "_entries", lambda path: {})
    monkeypatch.setattr(memory.importlib, "import_module", missing)
    physical = memory.available()
    assert physical is None or physical > 2**20
    monkeypatch.delattr(memory.os, "sysconf", raising=False)
    assert memory.available() is None


@pytest.mark.parametrize("old", [False, True])
def test_a_container_has_what_its_limit_leaves_without_cached_files(tmp_path, old):
    limit, used, cached = memory.CONTROL_GROUPS[old]
    assert memory._of_container(tmp_path) is None
    (tmp_path / "memory").mkdir()
    (tmp_path / limit).write_text("1000\n")
    (tmp_path / used).write_text("700\n")
    (tmp_path / limit).with_name("memory.stat").write_text(f"anon 5\n{cached} 300\n")
    assert memory._of_container(tmp_path) == 600
    (tmp_path / limit).write_text("max\n")
    assert memory._of_container(tmp_path) is None


@pytest.mark.parametrize(
    ("size", "words"), [(1_500, "1.5 kB"), (2_000_000, "2.0 MB"), (12_340_000_000, "12.3 GB")]
)
def test_sizes_in_words(size, words):
    assert memory.readable(size) == words

from __future__ import annotations

import importlib.metadata
import json

import pytest

from twofold.checks.installing import install_command


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, 'pip install "twofold[plot]"'),
        (
            {"url": "file:///home/me/my%20code", "dir_info": {"editable": True}},
            'pip install "/home/me/my code[plot]"',
        ),
        (
            {"url": "https://host/twofold.git", "vcs_info": {"vcs": "git", "commit_id": "1"}},
            'pip install "twofold[plot] @ git+https://host/twofold.git"',
        ),
        (
            {"url": "https://host/twofold-0.1.tar.gz", "archive_info": {}},
            'pip install "twofold[plot] @ https://host/twofold-0.1.tar.gz"',
        ),
    ],
)
def test_the_command_works_from_where_the_package_came(monkeypatch, origin, command):
    class Installed:
        def read_text(self, name):
            assert name == "direct_url.json"
            return None if origin is None else json.dumps(origin)

    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Installed())
    assert install_command("plot") == command

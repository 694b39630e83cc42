from __future__ import annotations

import json

import pytest
from cli.running import run_well

import twofold
from twofold.datasets.real_data import DigitsSplit, load_digits_split


@pytest.fixture
def few_digits(monkeypatch):
    """A demo of a few seconds: fewer digits, the same way through the library."""
    whole = load_digits_split()
    sizes = (200, 30, 200, 30)
    few = DigitsSplit(*(part[:size] for part, size in zip(whole, sizes, strict=True)))
    monkeypatch.setattr("twofold.datasets.load_digits_split", lambda: few)


@pytest.mark.usefixtures("few_digits")
def test_demo_compares_saves_draws_and_writes_the_page(tmp_path):
    folder = tmp_path / "new" / "folder"
    done = run_well("demo", "--output", folder)
    names = ["digits.twofold", "digits.png", "digits.html"]
    assert done.stdout.splitlines() == [str(folder / name) for name in names]
    assert all((folder / name).stat().st_size > 10_000 for name in names)
    assert "30 held-out digits" in done.stderr
    assert "same answers: yes" in done.stderr
    model = twofold.load(folder / "digits.twofold")
    assert model.notes_.image_shape == (8, 8)
    assert len(set(model.notes_.labels["digit"])) == 10


@pytest.mark.usefixtures("few_digits")
def test_the_map_of_digits_is_better_than_pca(tmp_path):
    facts = json.loads(run_well("demo", "-o", tmp_path, "--json", "--quiet").stdout)
    assert facts["error_share"] < 0.9 * facts["error_share_pca"]
    assert facts["filling_error"] < 0.9
    assert facts["same_after_loading"] is True

"""A table and a model that most tests of commands start from."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.running import make_frame, run_well, write_csv

import twofold


@pytest.fixture(scope="session")
def table(tmp_path_factory) -> Path:
    return write_csv(make_frame(), tmp_path_factory.mktemp("tables") / "beetles.csv")


@pytest.fixture(scope="session")
def model_file(table, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("models") / "beetles.twofold"
    options = ["--index", "specimen", "--label", "species", "--max-iter", "10"]
    run_well("fit", table, "-o", path, *options)
    return path


@pytest.fixture(scope="session")
def model(model_file):
    return twofold.load(model_file)

"""What fits to walked and to spread tables have in common."""

from __future__ import annotations

import pytest

import twofold.ukr.estimator as estimator


@pytest.fixture(params=[65_536, 300], ids=["all rows", "some rows"])
def most(request, monkeypatch):
    """Let a fit with landmarks look at all rows, or at some of them."""
    monkeypatch.setattr(estimator, "MOST_ROWS", request.param)
    monkeypatch.setattr("twofold.ukr.landmark_fitting.ROWS_PER_LANDMARK", 5)

"""Titles broken and shortened."""

from __future__ import annotations

import doctest

import pytest

from twofold.plots import names
from twofold.plots.names import in_lines, shortened


@pytest.mark.parametrize("most", [3, 6, 11, 19, 20])
def test_both_ends_of_a_long_text_stay(most):
    text = "abcdefghijklmnopqrs"
    found = shortened(text, most)
    assert len(found) == min(most, len(text))
    assert (found[0], found[-1]) == ("a", "s")
    assert ("…" in found) is (most < len(text))


def test_lines_break_between_words():
    assert in_lines("an_identifier_of_three parts", 14, 2) == "an_identifier_\nof_three parts"
    assert in_lines("short", 14, 2) == "short"


@pytest.mark.parametrize("width", [3, 7, 12])
def test_no_line_is_longer_than_told(width):
    lines = in_lines("some rather long name_with everything-in it", width, 2).split("\n")
    assert len(lines) <= 2
    assert max(map(len, lines)) <= width


def test_docstring_examples_run():
    results = doctest.testmod(names)
    assert results.attempted > 0
    assert results.failed == 0

"""Checks of parameters, and functions that once let through what they could not use."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from twofold.checks.parameters import (
    check_at_least,
    check_choice,
    check_count,
    check_positive,
    check_width,
)
from twofold.datasets import make_swiss_roll
from twofold.selection import choose_dimension, gp_evidence, refine, stability

Y = np.random.default_rng(0).normal(size=(20, 3))


@pytest.mark.parametrize("value", [3, np.int64(7)])
def test_counts_are_integers(value):
    check_count("n", value, 3)


@pytest.mark.parametrize("value", [2, 3.0, "3", True, None, np.nan, np.arange(3), "auto"])
def test_other_counts_are_refused(value):
    with pytest.raises(ValueError, match="`n` must be an integer of at least 3; got"):
        check_count("n", value, 3)


def test_auto_is_no_number_unless_it_may_be_one():
    check_count("n", "auto", may_be_auto=True)
    check_at_least("p", "auto", may_be_auto=True)
    check_width("h", "auto")
    for check in (check_count, check_at_least, check_positive):
        with pytest.raises(ValueError, match="got 'auto'"):
            check("n", "auto")
    with pytest.raises(ValueError, match="'auto' or an integer of at least 2"):
        check_count("n", np.array(["auto", "auto"]), 2, may_be_auto=True)
    with pytest.raises(ValueError, match="'auto' or a finite number of at least 2"):
        check_at_least("p", "best", 2, may_be_auto=True)


@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf, "1", None, True, 10**400])
def test_numbers_are_finite_and_large_enough(value):
    check_at_least("p", 0)
    check_positive("p", 1e-300)
    with pytest.raises(ValueError, match="`p` must be a finite number of at least 0; got"):
        check_at_least("p", value)
    with pytest.raises(ValueError, match="`p` must be a finite number above 0; got"):
        check_positive("p", value)


@pytest.mark.parametrize("value", ["c", 0, 1, None, np.array(["a", "b"])])
def test_a_choice_is_one_of_those_there_are(value):
    check_choice("which", np.str_("a"), ("a", "b", True))
    with pytest.raises(ValueError, match=r"`which` must be one of .*; got"):
        check_choice("which", value, ("a", "b", True))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: refine(Y, Y[:, :2], max_iter=2.5), "max_iter"),
        (lambda: choose_dimension(Y, max_dimension="two"), "max_dimension"),
        (lambda: stability(PCA(1), Y, repeats=2.5), "repeats"),
        (lambda: gp_evidence(Y, Y[:, :2], n_starts="many"), "n_starts"),
        (lambda: make_swiss_roll(10.5), "n"),
    ],
)
def test_what_is_no_count_is_refused_with_a_sentence(call, name):
    with pytest.raises(ValueError, match=f"`{name}` must be an integer of at least"):
        call()

from __future__ import annotations

import numpy as np
import pytest

from twofold.table_checks import check_missing, describe_values

NAN = np.nan


def test_partly_observed_tables_pass():
    check_missing(np.array([[1.0, NAN], [NAN, 2.0]]))
    check_missing(np.ones((3, 2)))


def test_rows_without_entries_are_counted_and_named():
    Y = np.array([[1.0, 2.0], [NAN, NAN], [3.0, 4.0], [NAN, NAN]])
    with pytest.raises(ValueError, match=r"2 row\(s\).*first: row 1.*Leave them out"):
        check_missing(Y)


def test_columns_without_entries_are_named_by_number_or_name():
    Y = np.array([[1.0, NAN], [3.0, NAN]])
    with pytest.raises(ValueError, match=r"1 column\(s\).*first: column 1"):
        check_missing(Y)
    with pytest.raises(ValueError, match="first: column 'age'"):
        check_missing(Y, np.array(["height", "age"]))


def test_columns_matter_only_where_something_is_learned():
    check_missing(np.array([[1.0, NAN]]), columns=False)


def test_rows_are_described_by_their_first_values():
    assert describe_values(np.arange(20.0).reshape(2, 10), limit=3) == "[0. 1. 2.]"

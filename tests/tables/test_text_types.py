from __future__ import annotations

import pandas as pd
import pytest

from twofold.tables.table import cell_rules
from twofold.tables.text_types import date_format, date_texts, truth_words, typed_column, with_gaps


@pytest.mark.parametrize(
    ("cells", "form"),
    [
        (["2020-01-31", "2020-02-01"], "ISO8601"),
        (["2020-01-31 12:30:00", "2020-02-01 00:00:00"], "ISO8601"),
        (["2020-01-31T12:30:00+01:00"], "ISO8601"),
        (["31.01.2020", "01.02.2020"], "%d.%m.%Y"),
        (["2020/01/31", "2020/02/01"], "%Y/%m/%d"),
        (["01/31/2020", "02/01/2020"], "%m/%d/%Y"),
        (["31/01/2020", "02/01/2020"], "%d/%m/%Y"),
        (["3 Mar 2020"], "%d %b %Y"),
        (["03/05/2020", "04/06/2020"], None),  # March or May
        (["2020", "2021"], None),
        (["2020-01-31", "later"], None),
        (["1.5.2", "x"], None),
        ([], None),
    ],
)
def test_formats_of_dates(cells, form):
    assert date_format(pd.Series(cells, dtype=object)) == form


def test_markers_are_gaps():
    found = with_gaps(pd.Series([" a", "NA", "", "?", None, "b "]), cell_rules())
    assert found.tolist() == ["a", None, None, None, None, "b"]


def test_dates_there_and_back():
    cells = pd.Series(["31.01.2020", "NA", "01.02.2020"])
    times = typed_column(cells, cell_rules())
    assert times.dtype.kind == "M"
    assert date_texts(times, "%d.%m.%Y") == ["31.01.2020", "", "01.02.2020"]
    assert date_texts(times) == ["2020-01-31", "", "2020-02-01"]
    assert date_texts(times + pd.Timedelta(hours=2))[0] == "2020-01-31 02:00:00"
    aware = times.dt.tz_localize("Europe/Berlin")
    assert date_texts(aware)[0] == "2020-01-31+0100"
    again = typed_column(pd.Series(date_texts(aware + pd.Timedelta(hours=1))), cell_rules())
    assert again[0] == aware[0] + pd.Timedelta(hours=1)


@pytest.mark.parametrize(
    "cell", ["2020-01-13T01:58:04+00:00", "2020-01-13T00:00:00Z", "2020-01-13 01:58:04"]
)
def test_iso_dates_are_written_as_they_came(cell):
    times = typed_column(pd.Series([cell]), cell_rules())
    assert date_texts(times, "ISO8601", cell) == [cell]


@pytest.mark.parametrize("words", ["true false", "TRUE FALSE", "Wahr Falsch", "VRAI FAUX"])
def test_truth_values_there_and_back(words):
    cells = pd.Series([*words.split(), "NA"])
    truths = typed_column(cells, cell_rules())
    assert truths.dtype == "boolean"
    assert truths[:2].tolist() == [True, False]
    assert truth_words(cells[:2]) == dict(zip([True, False], words.split(), strict=True))
    assert typed_column(pd.Series(["true", "maybe"]), cell_rules()).dtype == object


def test_other_types_stay():
    column = pd.Series([True, False])
    assert typed_column(column, cell_rules()) is column

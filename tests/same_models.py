"""Fitted models of which a file would hold the same bits."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from twofold.contract import TwoWayModel


def assert_same(one: TwoWayModel, other: TwoWayModel, apart_from: Collection[str] = ()) -> None:
    one, other = one.to_file(), other.to_file()
    assert one.arrays.keys() - set(apart_from) == other.arrays.keys() - set(apart_from)
    for name in one.arrays.keys() - set(apart_from):
        array, same = one.arrays[name], other.arrays[name]
        assert array.dtype == same.dtype, name
        is_text = array.dtype.kind == "O"  # names
        assert np.array_equal(array, same) if is_text else array.tobytes() == same.tobytes(), name
    assert repr(one.attributes) == repr(other.attributes)

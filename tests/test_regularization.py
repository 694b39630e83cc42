from __future__ import annotations

import math

import pytest

from twofold.regularization import Density, Extension, LeaveOneOut, get_regularization


def test_loo_is_a_name():
    assert get_regularization("loo") == LeaveOneOut(homotopy="auto")


@pytest.mark.parametrize(
    "regularization", [LeaveOneOut("box"), Extension(penalty=0.1), Density(threshold=0.2)]
)
def test_objects_pass_through(regularization):
    assert get_regularization(regularization) is regularization


@pytest.mark.parametrize("regularization", ["lko", None, 0.1, LeaveOneOut])
def test_anything_else_is_refused(regularization):
    with pytest.raises(ValueError, match=r"'loo', 'smoothest', or a LeaveOneOut.*got"):
        get_regularization(regularization)


def test_unknown_homotopies_are_refused():
    with pytest.raises(ValueError, match="got 'ball'"):
        LeaveOneOut(homotopy="ball")


@pytest.mark.parametrize(
    ("family", "options"),
    [
        (Extension, {}),
        (Density, {}),
        (Extension, {"penalty": 1.0, "radius": 1.0}),
        (Extension, {"radius": 1.0, "box": 1.0}),
        (Density, {"penalty": 1.0, "threshold": 0.1}),
    ],
)
def test_exactly_one_option_is_needed(family, options):
    with pytest.raises(ValueError, match="exactly one of"):
        family(**options)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize(
    ("family", "name"),
    [
        (Extension, "penalty"),
        (Extension, "radius"),
        (Extension, "box"),
        (Density, "penalty"),
        (Density, "threshold"),
    ],
)
def test_options_are_positive(family, name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be a finite number above 0"):
        family(**{name: value})


@pytest.mark.parametrize("family", [Extension, Density])
def test_schedules_make_sense(family):
    family(penalty=0.1, start=0.1)
    with pytest.raises(ValueError, match="`start` must be a finite number of at least "):
        family(penalty=0.1, start=0.05)
    with pytest.raises(ValueError, match="`decay` must be a number between 0 and 1; got 1"):
        family(penalty=0.1, start=1.0, decay=1)


@pytest.mark.parametrize("option", ["start", "target"])
def test_schedules_belong_to_penalties(option):
    with pytest.raises(ValueError, match="belong to `penalty`"):
        Extension(radius=1.0, **{option: 1.0})
    with pytest.raises(ValueError, match="belong to `penalty`"):
        Density(threshold=0.1, **{option: 1.0})

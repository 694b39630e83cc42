"""Any input, however odd, is answered with finite results of the right shape or with a sentence.

What is drawn and what is checked is in the package `dependability`; here hypothesis draws it, which
finds the simplest recipe of a failure: a few by default, which begin with the ordinary, and many in
``make test-all``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from dependability.child import FINE, REFUSED
from dependability.inputs import NAMES, try_inputs, verdict
from dependability.odd_tables import CHOICES, Recipe
from dependability.parameters import CASES, try_parameters, verdict_on
from dependability.report import findings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ALWAYS: dict = {
    "derandomize": True,
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}
FEW, MANY = settings(max_examples=2, **ALWAYS), settings(max_examples=100, **ALWAYS)

ORDINARY = Recipe(**{name: options[0] for name, options in CHOICES.items()})


def options(name: str):
    """Return a strategy for a field of a recipe: the ordinary choice, and every other."""
    first, *others = CHOICES[name]
    return st.one_of(st.just(first), st.sampled_from(others))


recipes = st.builds(Recipe, **{name: options(name) for name in CHOICES})


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(recipe=recipes)
def test_any_input_is_answered_or_refused(name, recipe):
    assert verdict(name, recipe) == FINE or recipe != ORDINARY


# Inputs that once led to something else than an answer or a refusal.
FOUND = [
    ("UKR-degree-2", {}),
    ("UKR-degree-2", {"pattern": "one far row"}),
    ("KHarmonicMeans", {"new_rows": "farthest"}),
    ("PSOM.fit_scattered", {"gaps": "one column"}),
    ("upgrade", {"weights": "tiny and huge"}),
    ("ConstructiveKMeans", {"weights": "tiny and huge"}),
    ("Scaled-UNN", {"size": "1e200"}),
    ("UKR-leave-4-out", {"size": "one row at 1e300", "gaps": "many"}),
    ("NadarayaWatson", {"size": "1.7e308"}),
    ("compare", {"seed": 3}),
    ("metrics", {"seed": 3}),
    ("upgrade", {"seed": 3}),
]


@pytest.mark.parametrize(("name", "odd"), FOUND)
def test_what_was_found_is_answered_or_refused(name, odd):
    verdict(name, replace(ORDINARY, **odd))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@MANY
@given(recipe=recipes)
def test_many_inputs_are_answered_or_refused(name, recipe):
    verdict(name, recipe)


def test_cases_by_number_in_child_processes():
    outcomes = try_inputs(list(range(10)), processes=1)
    assert [outcome.case for outcome in outcomes] == list(range(10))
    assert not findings(outcomes)


# One parameter of each kind that was once answered by something else than a sentence.
ODD_PARAMETERS = [
    ("UKR", "callbacks", np.array(3)),
    ("UKR", "verbose", np.zeros((2, 2))),
    ("Scaled", "how", np.zeros((2, 2))),
    ("DiffusionMap", "bandwidth", 1e200),
    ("DiffusionMap", "bandwidth", 1e-200),
    ("KernelExtension", "bandwidth", 1e200),
    ("KernelExtension", "bandwidth", 1e-200),
]


@pytest.mark.parametrize(("estimator", "parameter", "value"), ODD_PARAMETERS)
def test_odd_parameters_are_refused(estimator, parameter, value):
    assert verdict_on(estimator, parameter, value) == REFUSED


@pytest.mark.slow
def test_every_odd_value_of_every_parameter():
    assert not findings(try_parameters(range(len(CASES))))

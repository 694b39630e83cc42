"""One vocabulary: a parameter of one name has one meaning and one default, whoever takes it."""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import twofold
from twofold.engine.threads import count_threads
from twofold.unn.point_errors import NAMED_LOSSES, get_point_error, row_error

MODULES = ("neighbors",)


def public_estimators() -> dict[str, type]:
    homes = [twofold, *(importlib.import_module(f"twofold.{name}") for name in MODULES)]
    found = {name: getattr(home, name) for home in homes for name in home.__all__}
    return {
        name: thing
        for name, thing in found.items()
        if inspect.isclass(thing) and issubclass(thing, BaseEstimator)
    }


ESTIMATORS = public_estimators()
each_estimator = pytest.mark.parametrize("name", ESTIMATORS)

# What a name stands for everywhere, and so its default.
DEFAULTS = {
    "n_jobs": -1,
    "random_state": None,
    "verbose": "auto",
    "callbacks": (),
    "checkpoint": None,
    "landmarks": None,
    "data_kernel": None,
    "cutoff": 1e-6,
    "shuffle": True,
}
# Names that mean what another one says already.
OTHER_NAMES = {
    "tolerance": "tol (when to stop) or cutoff (which weights count)",
    "n_landmarks": "landmarks",
    "scale": "bandwidth",
    "width": "bandwidth",
    "gamma": "bandwidth",
    "seed": "random_state",
    "n_threads": "n_jobs",
    "progress": "verbose",
    "dimensions": "n_components",
}
# `kernel` weighs latent distances. KernelPCA has no latent kernel, and its kernel between rows
# has the name it has in scikit-learn's KernelPCA, whose place it takes.
OF_A_LATENT_KERNEL = {"UKR", "NadarayaWatson"}
AS_IN_SCIKIT_LEARN = {"KernelPCA"}


def parameters_of(name: str) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(ESTIMATORS[name]).parameters)


def test_the_estimators_are_found():
    assert {"UKR", "UNN", "PSOM", "KernelPCA", "ManifoldClassifier", "ModelBasedKNN"} <= set(
        ESTIMATORS
    )


@each_estimator
def test_a_name_has_one_default(name):
    given = {key: value.default for key, value in parameters_of(name).items()}
    assert {key: given[key] for key in DEFAULTS if key in given} == {
        key: DEFAULTS[key] for key in DEFAULTS if key in given
    }


@each_estimator
def test_a_meaning_has_one_name(name):
    assert {key: OTHER_NAMES[key] for key in parameters_of(name) if key in OTHER_NAMES} == {}


@each_estimator
def test_kernel_is_between_latent_points(name):
    assert ("kernel" in parameters_of(name)) == (name in OF_A_LATENT_KERNEL | AS_IN_SCIKIT_LEARN)


@each_estimator
def test_the_docstring_lists_the_parameters_in_their_order(name):
    text = inspect.getdoc(ESTIMATORS[name])
    block = text.split("Parameters\n----------\n")[1].split("\n\n")[0]
    heads = re.findall(r"^(\w[\w, ]*) : ", block, flags=re.MULTILINE)
    assert [key for head in heads for key in head.split(", ")] == list(parameters_of(name))


def test_n_jobs_means_what_it_means_in_scikit_learn():
    everything = count_threads(-1)
    assert count_threads(None) == 1
    assert count_threads(3) == 3
    assert count_threads(-2) == max(1, everything - 1)
    for wrong in (0, 1.5, True, "all"):
        with pytest.raises(ValueError, match="`n_jobs` must be"):
            count_threads(wrong)


@pytest.mark.parametrize("name", NAMED_LOSSES)
def test_a_loss_of_one_name_is_one_loss(name):
    Y = np.random.default_rng(0).normal(size=(30, 2))
    point_error = get_point_error(name, Y=Y)
    loss = twofold.losses.get_loss(name)
    if isinstance(loss, twofold.losses.Huber):
        loss = replace(loss, delta=point_error.number)
    elsewhere = loss.value_and_slope(Y)[0]
    here = [row_error(np.zeros(2), y, point_error) for y in Y]
    np.testing.assert_allclose(here, elsewhere, rtol=1e-12)

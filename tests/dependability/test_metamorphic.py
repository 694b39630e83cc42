"""What must stay the same when the data change in a way that means nothing.

Rows in another order and rows of weight 2 instead of copies change no bit in any family; that is in
`test_contract.py`, and here for what is no family. Columns in another order or with another sign,
another origin, other axes and another unit change the order in which sums are rounded and the
pseudo-random numbers that rows get. So families fall into three groups:

- those in `EXACTLY` come to the same embedding, up to its own unit and rounding;
- those in `ROUGHLY` stop after a few steps of a descent that magnifies rounding, or draw numbers by
  the order of the rows; they come to an embedding that is as good;
- a change means something to some families, which `NOT_FOR` names with the reason.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from dependability.answers import LABELS, NEW, TRAIN
from dependability.uses import seeded
from families import FAMILIES
from scipy.spatial.distance import pdist

import twofold

pytestmark = pytest.mark.filterwarnings("ignore")

AXES = np.linalg.qr(np.random.default_rng(3).normal(size=(5, 5)))[0]
SIGNS = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
ORIGIN = np.arange(5) / 2

# Each with its way back.
CHANGES = {
    "columns in another order": (lambda Y: Y[:, ::-1].copy(), lambda Y: Y[:, ::-1]),
    "other signs": (lambda Y: Y * SIGNS, lambda Y: Y * SIGNS),
    "another origin": (lambda Y: Y + ORIGIN, lambda Y: Y - ORIGIN),
    "other axes": (lambda Y: Y @ AXES, lambda Y: Y @ AXES.T),
    "a unit of 1/8": (lambda Y: Y * 8, lambda Y: Y / 8),
    "a unit of 1/3": (lambda Y: Y * 3, lambda Y: Y / 3),
}
EXACTLY = {
    "UKR-extension": 1e-8,
    "UKR-degree-1": 1e-8,
    "UKR-degree-2": 1e-8,
    "UKR-huber": 1e-8,
    "UKR-leave-4-out": 1e-8,
    "UKR-smoothest": 1e-5,
    "UKR-l1": 1e-8,
    "Scaled": 1e-8,
    "Scaled-robust-1d": 1e-8,
    "KernelPCA": 1e-8,
    "KernelPCA-diffusion": 1e-8,
    "DiffusionMap": 1e-8,
    "PSOM": 1e-6,
    "PSOM-1d": 1e-6,
}
# How many times as large the error of new rows may be, or as small.
ROUGHLY = {
    "UKR": 1.5,
    "UKR-1d": 2.0,
    "UKR-quartic": 1.5,
    "UKR-4d": 2.0,
    "UKR-density": 1.5,
    "UKR-landmarks": 2.0,
    "SubmanifoldUNN": 3.0,
    "UNN-1d": 3.0,
    "UNN": 3.0,
    "UNN-lattice": 3.0,
}
PENALTY = "the penalty is a number in squared units of the data"
NOT_FOR = {
    ("UKR-extension", "a unit of 1/8"): PENALTY,
    ("UKR-extension", "a unit of 1/3"): PENALTY,
    ("UKR-smoothest", "a unit of 1/8"): "the tolerance is a number in units of the data",
    ("UKR-smoothest", "a unit of 1/3"): "the tolerance is a number in units of the data",
    ("UKR-smoothest", "other axes"): "the tolerance is that of each column",
    ("UKR-huber", "other axes"): "the loss is that of each column",
    ("UKR-l1", "other axes"): "distances are sums over columns",
    ("Scaled", "other axes"): "each column has a unit of its own",
    ("Scaled-robust-1d", "other axes"): "each column has a unit of its own",
}
# The way back of these is chosen by leaving out rows in the order of their hashes.
EMBEDDING_ONLY = ("KernelPCA-diffusion", "DiffusionMap")


def make(name: str):
    return seeded(next(family for family in FAMILIES if family.name == name).make())


@cache
def fitted(name: str):
    return make(name).fit(TRAIN)


# Without any rounding: "other axes" and "a unit of 1/3" ask for more.
EXACT = ("other signs", "a unit of 1/8")


def pairs():
    for family in FAMILIES:
        for change in CHANGES:
            if (family.name, change) not in NOT_FOR:
                marks = pytest.mark.slow if family.is_variant or change in EXACT else ()
                yield pytest.param(family.name, change, marks=marks)


def error(rows: np.ndarray) -> float:
    return float(((rows - NEW) ** 2).sum(axis=1).mean())


def test_every_family_is_in_one_group():
    assert sorted([*EXACTLY, *ROUGHLY]) == sorted(family.name for family in FAMILIES)


@pytest.mark.parametrize(("name", "change"), list(pairs()))
def test_a_change_that_means_nothing_changes_nothing(name, change):
    there, back = CHANGES[change]
    model, changed = fitted(name), make(name).fit(there(TRAIN))
    rows = back(changed.reconstruct(there(NEW)))
    if name in ROUGHLY:
        ratio = error(rows) / error(model.reconstruct(NEW))
        assert 1 / ROUGHLY[name] < ratio < ROUGHLY[name]
        return
    expected, found = pdist(model.embedding_), pdist(changed.embedding_)
    unit = (found @ expected) / (expected @ expected)
    np.testing.assert_allclose(found / unit, expected, rtol=0, atol=EXACTLY[name] * expected.max())
    if name not in EMBEDDING_ONLY:
        np.testing.assert_allclose(rows, model.reconstruct(NEW), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "name",
    [pytest.param(family.name, marks=family.marks) for family in FAMILIES],
)
def test_round_trips_end_where_they_began(name):
    model = fitted(name)
    np.testing.assert_array_equal(model.transform(TRAIN), model.embedding_)
    np.testing.assert_array_equal(model.complete(NEW), NEW)
    images = model.inverse_transform(model.transform(NEW))
    if name not in ("KernelPCA", "KernelPCA-diffusion", "DiffusionMap"):
        # Rows of the manifold are their own reconstruction: nothing is left to take away.
        again = model.reconstruct(images)
        assert ((again - images) ** 2).sum() <= 0.5 * ((images - NEW) ** 2).sum()


ORDER = np.random.default_rng(1).permutation(len(TRAIN))
WHAT_IS_NO_FAMILY = {
    "KernelExtension": lambda Y, _: twofold.KernelExtension().fit(Y).transform(NEW),
    "NadarayaWatson": lambda Y, _: twofold.NadarayaWatson().fit(Y, Y[:, :2]).predict(NEW),
    "KHarmonicMeans": lambda Y, _: (
        twofold.KHarmonicMeans(3, random_state=0).fit(Y).cluster_centers_
    ),
    "ConstructiveKMeans": lambda Y, _: twofold.ConstructiveKMeans().fit(Y).cluster_centers_,
    "ManifoldClassifier": lambda Y, labels: (
        twofold.ManifoldClassifier(twofold.UKR(1, init="pca", max_iter=3, random_state=0))
        .fit(Y, labels)
        .errors(NEW)
    ),
    "upgrade": lambda Y, _: twofold.upgrade(Y[:, :2], Y).inverse_transform(NEW[:, :2]),
}


@pytest.mark.parametrize("name", WHAT_IS_NO_FAMILY)
def test_the_order_of_rows_does_not_matter(name):
    use = WHAT_IS_NO_FAMILY[name]
    found, expected = use(TRAIN[ORDER], LABELS[ORDER]), use(TRAIN, LABELS)
    if name == "KernelExtension":  # axes have a sign of their own
        found, expected = np.abs(found), np.abs(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)

"""Every option of UKR with every other: what makes sense works, what does not is refused.

The whole cross product runs with the slow tests. By default a cover does: every pair of values of
two factors that can work together occurs in a combination that works, and every pair that cannot
in one that is refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from covers import cover, parts_of

import twofold
from twofold import UKR
from twofold.engine import KernelSums
from twofold.kernels import GAUSSIAN
from twofold.losses import EpsilonInsensitive, Huber, Squared
from twofold.model_files import register_value_type
from twofold.regularization import Density, Extension, LeaveKOut
from twofold.ukr.objective import Reconstruction, nearest_rows
from twofold.ukr.surface import CarriedRows

# Few iterations leave rows outside of their tubes, which a fit says.
pytestmark = pytest.mark.filterwarnings("ignore:Some rows are still up to")

N, D, M = 40, 3, 5


@register_value_type
@dataclass(frozen=True)
class LogCoshOfTests:
    """A user's loss, component by component."""

    width: float = 0.2

    def value_and_slope(self, R):
        scaled = R / self.width
        return np.log(np.cosh(scaled)).sum(axis=1), np.tanh(scaled) / self.width


EPS_OF_ROWS = np.random.default_rng(1).uniform(0.02, 0.2, size=N)
LOSSES = {
    "squared": "squared",
    "huber": "huber",
    "huber with delta": Huber(0.1),
    "eps a component": EpsilonInsensitive(0.05),
    "eps a vector": EpsilonInsensitive(0.1, per="vector"),
    "eps a row": EpsilonInsensitive(EPS_OF_ROWS, per="vector"),
    "user's": LogCoshOfTests(),
}
REGULARIZATIONS = {
    "loo": "loo",
    "leave 3 out": LeaveKOut(3),
    "leave 3 out, border": LeaveKOut(3, border=1e-4),
    "extension penalty": Extension(penalty=0.01),
    "extension radius": Extension(radius=3.0),
    "density penalty": Density(penalty=0.05),
    "density threshold": Density(threshold=0.2),
    "smoothest": "smoothest",
}
TUBES = ("eps a component", "eps a vector", "eps a row")
CROSS_VALIDATIONS = ("loo", "leave 3 out", "leave 3 out, border")
OF_LENGTHS = ("squared", "eps a vector", "eps a row")

FACTORS = {
    "q": (1, 2),
    "degree": (0, 1, 2, "2-axes"),
    "loss": tuple(LOSSES),
    "regularization": tuple(REGULARIZATIONS),
    "landmarks": (None, 12),
    "data_kernel": (None, "rbf", "precomputed"),
    "missing": (False, True),
}


def senseless(*, loss, regularization, landmarks, data_kernel, missing, **_):
    """Return a part of the message that refuses a combination, None if it makes sense."""
    if loss in TUBES and regularization in CROSS_VALIDATIONS:
        # Within ε nothing tells a wiggly manifold from a smooth one.
        return "does not go with cross-validation"
    if regularization == "smoothest" and loss not in TUBES:
        # The smoothest manifold within which tolerance?
        return "needs loss=EpsilonInsensitive"
    if data_kernel is not None and loss not in OF_LENGTHS:
        # Coordinates in feature space are an accident of the basis.
        return "looks at single components"
    if data_kernel == "precomputed" and landmarks is not None:
        # Landmarks are not among the rows of the matrix.
        return "a precomputed matrix does not hold"
    if data_kernel is not None and missing:
        # A kernel has no value for half a row.
        is_matrix = data_kernel == "precomputed"
        return "matrix must be complete" if is_matrix else "compares whole rows"
    return None


def all_combinations() -> Iterator[dict]:
    for values in itertools.product(*FACTORS.values()):
        yield dict(zip(FACTORS, values, strict=True))


WORKING = [c for c in all_combinations() if senseless(**c) is None]
REFUSED = [c for c in all_combinations() if senseless(**c) is not None]


COVER = [WORKING[k] for k in cover(WORKING)]
COVER_OF_REFUSED = [REFUSED[k] for k in cover(REFUSED)]


def pairs_of(combinations):
    return set().union(*(parts_of(combination, 2) for combination in combinations))


def name_of(combination):
    return ", ".join(f"{name}={value}" for name, value in combination.items())


@pytest.fixture(scope="module")
def table():
    """Return rows on a bent sheet and a few new ones beside them."""
    rng = np.random.default_rng(0)
    u, v = rng.uniform(-1, 1, size=(2, N + M))
    Y = np.column_stack([u, 0.4 * v, u**2 - 0.3 * v]) + 0.03 * rng.normal(size=(N + M, D))
    return Y[:N], Y[N:]


def rows_for(table, data_kernel, missing):
    """Return training rows and new rows as a model with that kernel takes them."""
    Y, new = (rows.copy() for rows in table)
    if data_kernel == "precomputed":
        s = ((np.concatenate(table)[:, None] - Y[None]) ** 2).sum(axis=2)
        Y, new = np.exp(-s[:N]), np.exp(-s[N:])
    if missing:
        gaps = np.random.default_rng(2).random(Y.shape) < 0.1
        gaps[:, 0] = False
        Y[gaps], new[0, 1] = np.nan, np.nan
    return Y, new


def model_for(*, q, degree, loss, regularization, landmarks, data_kernel, missing):
    return UKR(
        q,
        degree=degree,
        loss=LOSSES[loss],
        regularization=REGULARIZATIONS[regularization],
        landmarks=landmarks,
        data_kernel=data_kernel,
        init="pca",
        max_iter=3,
        n_jobs=1,
        random_state=0,
        verbose=False,
    )


def check_works(combination, table, path):
    """Fit, go there and back, save and open; everything finite and of the right shape."""
    q, data_kernel = combination["q"], combination["data_kernel"]
    Y, new = rows_for(table, data_kernel, combination["missing"])
    model = model_for(**combination).fit(Y)
    X = model.transform(new)
    back = model.inverse_transform(X)
    scores = model.score_samples(new)
    shapes = {"embedding": (N, q), "transform": (M, q), "inverse": new.shape, "scores": (M,)}
    found = {"embedding": model.embedding_, "transform": X, "inverse": back, "scores": scores}
    for name, values in found.items():
        assert values.shape == shapes[name], name
        assert np.isfinite(values).all(), name
    assert np.isfinite(model.objective_)
    assert (scores <= 0).all()
    assert np.ptp(model.embedding_, axis=0).min() > 0
    model.save(path)
    again = twofold.load(path)
    np.testing.assert_array_equal(again.transform(new), X)
    np.testing.assert_array_equal(again.inverse_transform(X), back)


def check_refused(combination, table):
    Y, _ = rows_for(table, combination["data_kernel"], combination["missing"])
    with pytest.raises(ValueError, match=senseless(**combination)):
        model_for(**combination).fit(Y)


def test_both_kinds_occur():
    assert len(WORKING) + len(REFUSED) == np.prod([len(values) for values in FACTORS.values()])
    assert len(WORKING) > 500
    reasons = {senseless(**combination) for combination in REFUSED}
    assert len(reasons) == 6


def test_the_covers_have_every_pair():
    assert pairs_of(COVER + COVER_OF_REFUSED) == pairs_of(all_combinations())
    assert pairs_of(COVER) == pairs_of(WORKING)
    # Each value works with something.
    values = {(name, value) for name, some in FACTORS.items() for value in some}
    assert set().union(*(set(combination.items()) for combination in COVER)) == values


@pytest.mark.parametrize("combination", COVER, ids=name_of)
def test_what_makes_sense_works(combination, table, tmp_path):
    check_works(combination, table, tmp_path / "model.twofold")


@pytest.mark.parametrize("combination", COVER_OF_REFUSED, ids=name_of)
def test_what_makes_no_sense_is_refused(combination, table):
    check_refused(combination, table)


@pytest.mark.slow
@pytest.mark.parametrize("degree", FACTORS["degree"])
@pytest.mark.parametrize("regularization", FACTORS["regularization"])
def test_everything(degree, regularization, table, tmp_path):
    wrong = []
    for combination in all_combinations():
        if (combination["degree"], combination["regularization"]) != (degree, regularization):
            continue
        try:
            if senseless(**combination) is None:
                check_works(combination, table, tmp_path / "model.twofold")
            else:
                check_refused(combination, table)
        except (Exception, pytest.fail.Exception) as error:
            said = str(error).strip().splitlines() or [""]
            wrong.append(f"{name_of(combination)}: {type(error).__name__}: {said[0]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.cover(2)
@pytest.mark.parametrize("kernel", ["gaussian", "quartic"])
@pytest.mark.parametrize("data_kernel", FACTORS["data_kernel"])
@pytest.mark.parametrize("degree", FACTORS["degree"])
def test_every_latent_place_has_an_image(kernel, data_kernel, degree, table):
    """Where nothing is in reach of a compact kernel the mean of the data stands in."""
    Y, _ = rows_for(table, data_kernel, missing=False)
    model = UKR(
        2, kernel=kernel, degree=degree, data_kernel=data_kernel, init="pca", max_iter=2, n_jobs=1
    ).fit(Y)
    images = model.inverse_transform([[5.0, 1.0], [1e3, -300.0]])
    assert np.isfinite(images).all()
    if kernel == "quartic" and data_kernel != "rbf":
        np.testing.assert_allclose(images[1], Y.mean(axis=0), rtol=1e-6)


# ---- the training gradient ----------------------------------------------------------------------

ROWS, LANDMARKS = 20, 12
# Without δ from residuals; sizes at which some residuals are inside and some outside.
TRAINED = {
    "squared": Squared(),
    "huber": Huber(0.4),
    "eps a component": EpsilonInsensitive(0.3),
    "eps a vector": EpsilonInsensitive(0.5, per="vector"),
    "eps a row": EpsilonInsensitive(np.linspace(0.1, 0.8, ROWS), per="vector"),
    "user's": LogCoshOfTests(0.5),
}
OBJECTIVES = [
    parts
    for parts in itertools.product(
        FACTORS["degree"], TRAINED, ("loo", "3", "none"), (False, True), (False, True)
    )
    if parts[2] == "none" or parts[1] not in TUBES
]


def reconstruction(degree, loss, hidden, with_landmarks, missing):
    """Return latent points and the objective over them, well inside of each other's reach."""
    rng = np.random.default_rng(7)
    Y, Z = rng.normal(size=(ROWS, D)), rng.normal(size=(LANDMARKS, D))
    X = rng.uniform(-1.8, 1.8, size=(ROWS + LANDMARKS * with_landmarks, 2))
    weights = rng.uniform(0.5, 2, size=ROWS)
    observed = rng.random((ROWS, D)) < 0.85 if missing else None
    rows = CarriedRows(Y, weights, observed, 1.0, degree)
    landmarks, lists = None, nearest_rows(Y, 3)
    if with_landmarks:
        landmarks = CarriedRows(Z, np.ones(LANDMARKS), None, 1.0, degree, rows.mean)
        s = ((Y[:, None] - Z[None]) ** 2).sum(axis=2)
        lists = s.argsort(axis=1)[:, :3]
    seen = {"loo": lists[:, :1], "3": lists, "none": None}[hidden]
    engine = KernelSums(GAUSSIAN, cutoff=1e-15, n_jobs=1)
    return X, Reconstruction(rows, TRAINED[loss], engine, seen, landmarks)


def differences(function, X, step):
    """Return the gradient from two central differences, the error of order step² taken away.

    Local quadratics bend so much that a single difference of 1e-6 accuracy would need a step at
    which rounding shows; a larger one would meet the kinks in the slopes of the losses.
    """
    grad = np.empty(X.shape)
    for place in np.ndindex(X.shape):
        move = np.zeros(X.shape)
        move[place] = step
        one, two = (function(X + k * move) - function(X - k * move) for k in (1, 2))
        grad[place] = (8 * one - two) / (12 * step)
    return grad


@pytest.mark.cover(2)
@pytest.mark.parametrize(
    ("degree", "loss", "hidden", "with_landmarks", "missing"),
    OBJECTIVES,
    ids=lambda value: str(value),
)
def test_the_training_gradient(degree, loss, hidden, with_landmarks, missing):
    X, objective = reconstruction(degree, loss, hidden, with_landmarks, missing)
    value, found = objective.value_and_grad(X)
    everyone = np.arange(ROWS)
    # Quadratics through few landmarks make 1e-12 of the rounding of X, at worst.
    assert objective.value_on(X, everyone) == pytest.approx(value, rel=1e-10)
    expected = differences(lambda Z: objective.value_on(Z, everyone), X, 3e-5)
    assert np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()

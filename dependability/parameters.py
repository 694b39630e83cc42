"""Odd values for every parameter of every estimator: ``python -m dependability.parameters``.

A case sets one parameter to one odd value, fits ordinary rows and uses the model. It is fine if the
results are finite, refused if a sentence says what the parameter may be.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from tests.families import FAMILIES

import twofold
from dependability.child import FINE, REFUSED, Outcome, try_cases
from dependability.refusals import is_refusal
from dependability.report import conclude
from dependability.uses import check_result
from twofold import neighbors

SECONDS = 60.0  # the first use of a form of input compiles loops for it

ENDLESS = 10**30
ODD_VALUES: tuple[Any, ...] = (
    *(0, 1, 2, 7, -1, ENDLESS, 10**400, True, np.int8(2), np.array(3)),
    *(0.5, -0.5, 1e-310, 1e-200, 1e200, 1e308, np.nan, np.inf, -np.inf, np.float32(0.5), 1j),
    *(None, "", "auto", "no such", b"x", object()),
    *([], {}, (2, 3), [1.0, np.nan], np.zeros((2, 2))),
)

OTHERS: dict[str, Callable[[], Any]] = {
    "KernelExtension": lambda: twofold.KernelExtension("diffusion"),
    "ManifoldClassifier": lambda: twofold.ManifoldClassifier(
        twofold.UKR(1, init="pca", max_iter=3, random_state=0)
    ),
    "ManifoldImputer": lambda: twofold.ManifoldImputer(max_iter=1, n_jobs=1, random_state=0),
    "ManifoldOutlierDetector": twofold.ManifoldOutlierDetector,
    "NadarayaWatson": twofold.NadarayaWatson,
    "KHarmonicMeans": lambda: twofold.KHarmonicMeans(2, random_state=0),
    "ConstructiveKMeans": twofold.ConstructiveKMeans,
    "SelectEmbedding": lambda: twofold.SelectEmbedding(["pca", "isomap"], n_neighbors=5),
    **{name: getattr(neighbors, name) for name in neighbors.__all__ if name[0].isupper()},
}
ESTIMATORS = {**{family.name: family.make for family in FAMILIES}, **OTHERS}

CASES = [
    (estimator, parameter, value)
    for estimator, make in ESTIMATORS.items()
    for parameter in make().get_params()
    for value in ODD_VALUES
    # UNN draws new candidates in every sweep, so that it has as many as it is asked for.
    if not (parameter == "refine" and isinstance(value, int) and value >= ENDLESS)
]

RNG = np.random.default_rng(0)
PLACES = RNG.uniform(size=(30, 2))
ROWS = np.column_stack([PLACES, np.sin(3 * PLACES), PLACES.sum(axis=1)])
LABELS = (PLACES[:, 0] > 0.5).astype(int)


def use(model: Any) -> None:
    """Fit ordinary rows and ask for everything that most models can be asked for."""
    model.fit(ROWS, LABELS)
    if hasattr(model, "predict"):
        check_result("predict", model.predict(ROWS[:5]))
    if hasattr(model, "transform"):
        check_result("transform", model.transform(ROWS[:5] + 0.01))
    if hasattr(model, "inverse_transform"):
        X = np.asarray(model.embedding_)
        check_result("embedding_", X)
        check_result("inverse_transform", model.inverse_transform(X[:5]))
        check_result("density", model.density(X[:5]))
        check_result("jacobian", model.jacobian(X[:5]))
        check_result("score", model.score(ROWS))


def verdict_on(estimator: str, parameter: str, value: object) -> str:
    """Return how a model with that parameter goes; raise if that is a finding."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            use(ESTIMATORS[estimator]().set_params(**{parameter: value}))
        except Exception as error:
            if is_refusal(error):
                return REFUSED
            raise RuntimeError(f"{estimator}({parameter}={value!r})") from error
    return FINE


def check(case: int) -> str:
    """Return how a case went; see :func:`dependability.child.try_cases`."""
    return verdict_on(*CASES[case])


def try_parameters(cases: Sequence[int], processes: int | None = None) -> Iterator[Outcome]:
    """Yield how the cases went."""
    return try_cases(check, cases, seconds=SECONDS, processes=processes)


if __name__ == "__main__":
    sys.exit(conclude("odd parameters", try_parameters(range(len(CASES)))))

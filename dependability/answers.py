"""What every estimator says of one small table, for comparing one way to run it with another.

``python -m dependability.answers NAME...`` prints a digest of the bits of each answer, so that a
fresh process can be compared; ``python -m dependability.answers --renew`` writes the file that
tells drift: a few numbers of each answer, which another machine gets to four digits, too.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import get_tags
from tests.families import FAMILIES

import twofold
from dependability.uses import seeded
from twofold import neighbors, selection
from twofold.contract import TwoWayModel
from twofold.datasets import make_random_manifold

Answers = dict[str, np.ndarray[Any, Any]]

# Rounded: the last bits of a sine differ between processors, and rows are kept in the order of a
# hash of their bits.
TABLE = make_random_manifold(60, 2, 5, noise=0.02, random_state=0).Y.round(6)
TRAIN, NEW = TABLE[:50], TABLE[50:]
# Linear algebra shares work among threads only where there is enough of it.
MANY = make_random_manifold(200, 2, 8, noise=0.02, random_state=0).Y.round(6)
LABELS = (TRAIN[:, 0] > np.median(TRAIN[:, 0])).astype(int)
FINGERPRINTS = Path(__file__).parents[1] / "tests" / "dependability" / "fingerprints.json"
AGREEMENT = 1e-4


def of_model(model: TwoWayModel) -> Answers:
    """Return what a fitted model says of rows it knows and of new ones."""
    X = model.transform(NEW)
    partial = np.where(np.arange(NEW.size).reshape(NEW.shape) % 7 == 0, np.nan, NEW)
    return {
        "embedding": model.embedding_,
        "transform": X,
        "inverse_transform": model.inverse_transform(X),
        "reconstruct": model.reconstruct(NEW),
        "complete": model.complete(partial if _fills_gaps(model) else NEW),
        "score_samples": model.score_samples(NEW),
        "density": model.density(X),
        "jacobian": model.jacobian(X[:3]),
        "sample": model.sample(5, random_state=0),
    }


def _fills_gaps(model: TwoWayModel) -> bool:
    is_spectral = isinstance(model, twofold.KernelPCA | twofold.DiffusionMap)
    return is_spectral or bool(get_tags(model).input_tags.allow_nan)


def fitted(name: str, n_jobs: int | None = None, rows: Any = TRAIN) -> TwoWayModel:
    """Return a fitted model of a family; with so many threads if it takes such a number."""
    family = next(family for family in FAMILIES if family.name == name)
    model = seeded(family.make())
    jobs = [key for key in model.get_params() if key.endswith("n_jobs")]
    return model.set_params(**dict.fromkeys(jobs, n_jobs)).fit(rows)


def _of_compare() -> Answers:
    found = selection.compare(TRAIN, ["pca", "isomap"], n_neighbors=8)
    scores = found.table.drop(columns="seconds").select_dtypes("number")
    return {"scores": scores.to_numpy(dtype=np.float64)}


def _of_clusters(model: Any) -> Answers:
    return {"centres": model.fit(TRAIN).cluster_centers_, "predict": model.predict(NEW)}


def _of_prediction(model: Any, targets: Any) -> Answers:
    return {"predict": model.fit(TRAIN, targets).predict(NEW)}


def _of_classes() -> Answers:
    template = twofold.UKR(1, init="pca", max_iter=5, random_state=0)
    model = twofold.ManifoldClassifier(template).fit(TRAIN, LABELS)
    return {"decision": np.asarray(model.decision_function(NEW)), "predict": model.predict(NEW)}


OTHERS: dict[str, Callable[[], Answers]] = {
    "SelectEmbedding": lambda: of_model(
        twofold.SelectEmbedding(["pca", "isomap"], n_neighbors=8, random_state=0).fit(TRAIN)
    ),
    "PSOM.fit_grid": lambda: of_model(
        twofold.PSOM(2, grid=(10, 5), random_state=0).fit_grid(TRAIN)
    ),
    "PSOM.fit_scattered": lambda: of_model(
        twofold.PSOM(2, grid=(4, 4), smoothness=0.1, random_state=0).fit_scattered(
            TRAIN[:, :2], TRAIN
        )
    ),
    "upgrade": lambda: of_model(twofold.upgrade(TRAIN[:, :2], TRAIN)),
    "KernelExtension": lambda: {"transform": twofold.KernelExtension().fit(TRAIN).transform(NEW)},
    "ManifoldClassifier": _of_classes,
    "NadarayaWatson": lambda: _of_prediction(twofold.NadarayaWatson(), TRAIN[:, :2]),
    "KHarmonicMeans": lambda: _of_clusters(twofold.KHarmonicMeans(3, random_state=0)),
    "ConstructiveKMeans": lambda: _of_clusters(twofold.ConstructiveKMeans()),
    "DistanceWeightedKNNRegressor": lambda: _of_prediction(
        neighbors.DistanceWeightedKNNRegressor(3), TRAIN[:, 0]
    ),
    "compare": _of_compare,
    "choose_dimension": lambda: {
        "dimension": np.array([selection.choose_dimension(TRAIN).dimension or 0])
    },
}
NAMES = (*(family.name for family in FAMILIES), *OTHERS)


def answers(name: str) -> Answers:
    """Return all answers of that name."""
    return OTHERS[name]() if name in OTHERS else of_model(fitted(name))


def digest(found: Answers) -> str:
    """Return a hash of the bits of answers."""
    hashed = hashlib.sha256()
    for key, values in found.items():
        hashed.update(key.encode())
        hashed.update(np.ascontiguousarray(values).tobytes())
    return hashed.hexdigest()


def fingerprint(found: Answers) -> dict[str, float]:
    """Return one number of each answer that no rotation of latent space changes."""
    return {key: float(f"{_size(key, values):.8g}") for key, values in found.items()}


def _size(key: str, values: np.ndarray[Any, Any]) -> float:
    values = values.astype(np.float64)
    if key in ("embedding", "transform"):
        values = values - values.mean(axis=0)
    return float(np.sqrt(np.mean(values**2)))


def drift(name: str, found: Answers) -> str:
    """Say what differs from the stored fingerprint, or return an empty text."""
    stored, now = json.loads(FINGERPRINTS.read_text()).get(name, {}), fingerprint(found)
    changed = [
        f"{key}: {stored.get(key)} is now {now.get(key)}"
        for key in sorted({*stored, *now})
        if key not in stored
        or key not in now
        or abs(stored[key] - now[key]) > AGREEMENT * abs(stored[key])
    ]
    return f"{name} drifted: {'; '.join(changed)}." if changed else ""


def renew() -> None:
    """Write the fingerprints of all that there is."""
    known = {name: fingerprint(answers(name)) for name in NAMES}
    FINGERPRINTS.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--renew"]:
        renew()
    else:
        print(json.dumps({name: digest(answers(name)) for name in sys.argv[1:]}))

"""Model files of every family with one to three things changed in them, the checksum made right.

Whoever rewrites a file can recompute its checksum, so what a stranger's file holds is checked when
it is opened. A case takes the file of a small fitted model, changes parts of its header or of its
arrays, opens it, and uses the model in every way. Fine is a model that works, and a refusal with a
sentence; a crash, a hang, more than a gigabyte and any other error are findings.

``python -m dependability.model_files --count 1000`` tries so many.
"""

from __future__ import annotations

import copy
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

import twofold
from dependability.child import FINE, REFUSED, Outcome, try_cases
from dependability.report import conclude, numbers_from_command_line
from twofold import PSOM, UKR, UNN, DiffusionMap, KernelExtension, KernelPCA, Scaled
from twofold import model_files as format_of_files
from twofold.classification import ManifoldClassifier
from twofold.contract import TwoWayModel
from twofold.losses import Huber
from twofold.model_files import ModelFileError, read_model_file
from twofold.unn import SubmanifoldUNN

N_ROWS = 24
CUTS = (0, -1, 1, 3, 10**6, 10**12, -(10**12), 2**63, 0.5, -0.5, 1e-310, 1e300, True)
WORDS = (None, "", "auto", "nan", "exhaustive", "rbf", "∞" * 50, [], {}, [[]], ["a"] * 9, [1, 2, 3])
ODD_FLOATS = [
    {"__type__": "float", "value": value} for value in ("nan", "inf", "-inf", "1e400", "0x1")
]
ODD_OBJECTS = [
    {"__type__": "Squared"},
    {"__type__": "RowNotes", "names": None, "labels": {}, "image_shape": [1, 1]},
    {"__type__": "RBF", "gamma": -1.0},
    {"__type__": "Landmarks", "count": 10**9},
    {"__type__": "text_array", "dtype": "<U9", "shape": [2], "values": ["a", "b"]},
    {"__type__": "text_array", "dtype": "<U2000000000", "shape": [1], "values": ["a"]},
    {"__type__": "tuple", "items": [1] * 1000},
    {"__type__": "os.system", "command": "true"},
]
ODD_VALUES: tuple[Any, ...] = (*CUTS, *WORDS, *ODD_FLOATS, *ODD_OBJECTS)
ODD_NUMBERS = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e160, 1e-310, 0.0, -1.0, 2.0**63, 1e9)
NEW_NAMES = ("transform", "_surface", "__class__", "latent_", "widths_", "carried_", "columns_")


def sample_table() -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return rows on a curved surface."""
    t = np.random.default_rng(5).uniform(size=(N_ROWS, 2))
    return np.column_stack([t, np.sin(3 * t[:, 0]), t[:, 0] * t[:, 1]])


@cache
def _rows() -> dict[str, Any]:
    Y = sample_table()
    gaps = Y.copy()
    gaps[::5, 1] = np.nan
    return {"Y": Y, "gaps": gaps, "K": np.exp(-((Y[:, None] - Y) ** 2).sum(axis=2))}


def _few_steps(*args: Any, **options: Any) -> UKR:
    return UKR(*args, init="pca", max_iter=3, random_state=0, **options)


def _annotated(Y: Any) -> UKR:
    return _few_steps(2).fit(Y).annotate(labels=[str(i % 3) for i in range(N_ROWS)])


# Which model, of which rows.
MODELS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "UKR": ("gaps", _annotated),
    "UKR-1d": ("Y", _few_steps(1, kernel="quartic", degree=1).fit),
    "UKR-huber": ("Y", lambda Y: _few_steps(2, loss=Huber(trim=4)).fit(Y.astype(np.float32))),
    "UKR-landmarks": ("Y", _few_steps(2, landmarks=8).fit),
    "UKR-rbf": ("Y", _few_steps(2, data_kernel="rbf").fit),
    "UKR-precomputed": ("K", _few_steps(2, data_kernel="precomputed").fit),
    "upgrade": ("Y", lambda Y: twofold.upgrade(Y[:, :2], Y)),
    "Scaled": ("Y", Scaled(_few_steps(2)).fit),
    "UNN": ("gaps", UNN(2, random_state=0).fit),
    "UNN-line": ("Y", UNN(1, random_state=0).fit),
    "UNN-lattice": ("Y", UNN(2, search="greedy", random_state=0).fit),
    "SubmanifoldUNN": ("Y", SubmanifoldUNN(threshold=0.6, random_state=0).fit),
    "PSOM": ("Y", PSOM(2, grid=(3, 3), random_state=0).fit),
    "PSOM-grid": ("Y", PSOM(2, grid=(4, 6), local=3).fit_grid),
    "KernelPCA": ("Y", KernelPCA(2).fit),
    "KernelPCA-isomap": ("Y", KernelPCA(2, kernel="isomap").fit),
    "KernelPCA-precomputed": ("K", KernelPCA(2, kernel="precomputed").fit),
    "DiffusionMap": ("Y", DiffusionMap(2).fit),
    "DiffusionMap-neighbors": ("Y", DiffusionMap(2, n_neighbors=8).fit),
    "KernelExtension": ("Y", KernelExtension().fit),
    "ManifoldClassifier": (
        "Y",
        lambda Y: ManifoldClassifier(_few_steps(1)).fit(Y, np.arange(N_ROWS) % 2),
    ),
}
NAMES = tuple(MODELS)


@cache
def content(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and arrays of the file of a model."""
    rows, fit = MODELS[name]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.twofold"
        fit(_rows()[rows]).save(path)
        text, tensors = format_of_files._encode_model(read_model_file(path))
        use(twofold.load(path), path)  # whatever it needs is compiled now, not in a child
    return json.loads(text), tensors


def changed_file(case: int, path: Path) -> str:
    """Write the file of a case; return what was changed in which model."""
    rng = np.random.default_rng(case)
    name = NAMES[rng.integers(len(NAMES))]
    header, tensors = copy.deepcopy(content(name))
    changes = []
    for _ in range(rng.integers(1, 4)):
        change = _change_array if rng.random() < 0.5 and tensors else _change_header
        changes.append(change(rng, header, tensors))
    header["sha256"] = ""
    header["sha256"] = format_of_files._checksum(header, tensors)
    save_file(tensors, path, metadata={"twofold": format_of_files._to_json(header)})
    return f"{name}: {'; '.join(changes)}"


def _change_array(rng: np.random.Generator, header: Any, tensors: dict[str, Any]) -> str:
    name = sorted(tensors)[rng.integers(len(tensors))]
    how = ARRAY_CHANGES[rng.integers(len(ARRAY_CHANGES))]
    with np.errstate(all="ignore"):
        tensors[name] = np.require(how(rng, tensors[name]), requirements=["C", "W", "O"])
    return f"{name} by {how.__name__}"


def _one_number(rng: np.random.Generator, array: Any) -> Any:
    array = array.copy()
    if array.size:
        _put(array, rng.integers(array.size), ODD_NUMBERS[rng.integers(len(ODD_NUMBERS))])
    return array


def _put(array: Any, place: int, number: float) -> None:
    if array.dtype.kind in "iu" and not abs(number) < 2**62:
        number = 2**31
    array.reshape(-1)[place] = number


def _all_numbers(rng: np.random.Generator, array: Any) -> Any:
    array = array.copy()
    number = ODD_NUMBERS[rng.integers(len(ODD_NUMBERS))]
    for place in range(array.size):
        _put(array, place, number)
    return array


def _scaled(rng: np.random.Generator, array: Any) -> Any:
    factor = 10.0 ** rng.integers(-300, 300)
    return (array * factor).astype(array.dtype)


def _shuffled(rng: np.random.Generator, array: Any) -> Any:
    return rng.permutation(array) if array.ndim else array


def _other_shape(rng: np.random.Generator, array: Any) -> Any:
    rows = array[:-1] if array.ndim else array
    shapes = (
        array.T,
        rows,
        np.concatenate([array, array]) if array.ndim else array,
        array[..., :-1] if array.ndim else array,
        array[:0] if array.ndim else array,
        array.ravel(),
        array[None],
        array.reshape(-1)[:1],
    )
    return shapes[rng.integers(len(shapes))]


def _other_type(rng: np.random.Generator, array: Any) -> Any:
    types = (np.float16, np.float32, np.float64, np.int8, np.int32, np.int64, np.uint64, np.bool_)
    return array.astype(types[rng.integers(len(types))])


ArrayChange = Callable[[np.random.Generator, Any], Any]
ARRAY_CHANGES: tuple[ArrayChange, ...] = (
    _one_number,
    _one_number,
    _all_numbers,
    _scaled,
    _shuffled,
    _other_shape,
    _other_type,
)


def _change_header(rng: np.random.Generator, header: Any, tensors: Any) -> str:
    """Change, remove or add one value anywhere in the header."""
    places = [place for place in _places(header) if place[0][0] != "sha256"]
    path, owner, key = places[rng.integers(len(places))]
    where = ".".join(map(str, path))
    act = rng.random()
    if act < 0.15 and isinstance(owner, dict):
        del owner[key]
        return f"{where} removed"
    value = copy.deepcopy(ODD_VALUES[rng.integers(len(ODD_VALUES))])
    if act < 0.25 and isinstance(owner, dict):
        key = NEW_NAMES[rng.integers(len(NEW_NAMES))]
        owner[key] = value
        return f"{where} beside it {key} = {value!r:.60}"
    if act < 0.5:  # what stands elsewhere in the same file
        value = copy.deepcopy(places[rng.integers(len(places))][1:][0])
        value = value if isinstance(value, dict | list) else None
    owner[key] = value
    return f"{where} = {value!r:.60}"


def _places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in list(items):
        yield (*path, key), node, key
        if isinstance(value, dict | list) and len(path) < 8:
            yield from _places(value, (*path, key))


def open_and_use(case: int) -> str:
    """Open the file of a case and use the model; say how it went."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.twofold"
        try:
            changed_file(case, path)
        except (ValueError, OverflowError, RecursionError):
            return FINE  # nothing that could stand in a file
        try:
            model = twofold.load(path)
        except ModelFileError:
            return REFUSED
        refused = use(model, Path(folder) / "again.twofold")
        return REFUSED if refused else FINE


def use(model: Any, path: Path) -> int:
    """Call everything that a fitted model can do; return how many calls were refused."""
    D = int(model.n_features_in_)
    rows = np.resize(sample_table()[:3], (3, D)) + 0.01
    rows = np.concatenate([rows, np.zeros((1, D)), np.full((1, D), 1e6)])
    if isinstance(model, ManifoldClassifier):
        calls = [(model.predict, rows), (model.decision_function, rows)]
    elif isinstance(model, KernelExtension):
        calls = [(model.transform, rows), (model.kernel_values, rows)]
    else:
        calls = _both_ways(model, rows)
    refused = 0
    for call, argument in [*calls, (model.save, path)]:
        try:
            call(argument)
        except (ValueError, NotImplementedError):
            refused += 1
    return refused


def _both_ways(model: TwoWayModel, rows: Any) -> list[tuple[Callable[[Any], object], Any]]:
    X = np.asarray(model.embedding_)
    places = np.concatenate([X[:3], X[:1] + 1e3])
    partial = rows.copy()
    partial[0, 0] = np.nan
    onto = (model.inverse_transform, model.density, model.in_domain, model.jacobian)
    back = (model.transform, model.reconstruct, model.score_samples)
    calls: list[tuple[Callable[[Any], object], Any]] = [
        *((call, places) for call in (*onto, model.magnification)),
        (lambda n: model.sample(n, random_state=0), 3),
        (lambda _: model.kernel_regression(), None),
        *((call, rows) for call in back),
        (model.complete, partial),
    ]
    if hasattr(model, "partial_fit"):
        calls.append((model.partial_fit, rows[:2]))
    return calls


def try_files(cases: range | list[int], seconds: float = 10.0) -> Iterator[Outcome]:
    """Try the files of some cases, so many seconds each."""
    for name in NAMES:
        content(name)  # before children are made, so that they all have it
    for outcome in try_cases(open_and_use, list(cases), seconds=seconds):
        detail = outcome.detail
        if outcome.verdict not in (FINE, REFUSED):
            with tempfile.TemporaryDirectory() as folder:
                detail = f"{changed_file(outcome.case, Path(folder) / 'x')}\n{detail}"
        yield Outcome(outcome.case, outcome.verdict, detail)


if __name__ == "__main__":
    numbers = numbers_from_command_line("model files with parts changed", 3000)
    sys.exit(conclude("model files", try_files(numbers)))

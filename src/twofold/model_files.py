"""The file of a saved model: arrays and one JSON header, no code.

A model file is a safetensors file: eight bytes with the length of a JSON table of tensors, that
table, then the raw bytes of the tensors (https://github.com/huggingface/safetensors, "Format").
Its metadata has a single entry, ``twofold``, whose text is the header of the model: a JSON object
with `ModelFile` spelled out, the version of the format and a checksum.

A value that JSON has no word for is an object with the key ``__type__``: a float that is not
finite, a tuple, a numpy scalar, an array (a reference to a tensor), an array of strings, or a
frozen dataclass named to `register_value_type`. Reading looks names up in fixed tables and
imports, evaluates and unpickles nothing, so opening a file from a stranger runs no code of theirs.

The checksum is SHA-256 (FIPS 180-4) over the header, its own place left empty, and the name, type,
shape and bytes of each tensor in order of name. It finds damage; it is no signature, for whoever
rewrites a file can recompute it. The same model gives the same bytes: keys are sorted, nothing
depends on time, and several metadata entries would be written in an order that changes each run.
"""

import dataclasses
import hashlib
import importlib.metadata
import json
import math
import os
import platform
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from twofold.replacing import replacing

FORMAT_VERSION = 1
AnyArray: TypeAlias = npt.NDArray[Any]
JSONValue: TypeAlias = "bool | int | float | str | list[JSONValue] | dict[str, JSONValue] | None"
_ValueType = TypeVar("_ValueType", bound=type)

# What files of other kinds begin with, what they are, and what to do if a table was meant.
FIRST_BYTES = (
    (
        b"PK\x03\x04",
        "a zip archive, such as an Excel workbook or .npz",
        "Give a workbook the suffix .xlsx.",
    ),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook", "Save the sheet as CSV."),
    (b"PAR1", "a Parquet table", "Give the file the suffix .parquet."),
    (b"\x93NUMPY", "a numpy array (.npy)", "Give the file the suffix .npy."),
    (b"\x89HDF", "an HDF5 file", "Give the file the suffix .h5ad if it is from AnnData."),
    (b"version https://git-lfs", "a Git LFS pointer", "Download its file with `git lfs pull`."),
)

_METADATA_KEY = "twofold"
_TYPE_KEY = "__type__"
_VALUE_PREFIX = "__value__/"  # of the tensors that belong to parameters and attributes
_MAX_TABLE_BYTES = 100_000_000  # the limit that safetensors sets itself
_MOST_CHARACTERS = 10_000_000  # that an array of text may have room for beyond its strings
_DTYPES = {"bool", "float16", "float32", "float64"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_BUILT_IN_TYPES = {"float", "tuple", "numpy", "array", "text_array"}
_VALUE_TYPES: dict[str, type] = {}


class ModelFileError(ValueError):
    """A file that cannot be read or written as a model file; the message says why.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from twofold import load
    >>> from twofold.model_files import ModelFileError
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "no_model.twofold"
    >>> _ = path.write_text("something else")
    >>> try:
    ...     load(path)
    ... except ModelFileError:
    ...     print("refused")
    refused
    """


def current_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that shape a fitted model."""
    versions = {"python": platform.python_version()}
    for package in ("twofold", "numpy", "scikit-learn"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:  # used from a source tree
            versions[package] = "unknown"
    return versions


# What parameters and attributes were called in earlier files.
EARLIER_NAMES = {
    "UKR": {"tolerance": "cutoff"},
    "KernelPCA": {"n_landmarks": "landmarks"},
    "DiffusionMap": {"scale": "bandwidth", "scale_": "bandwidth_"},
    "KernelExtension": {"scale": "bandwidth", "scale_": "bandwidth_"},
}


@dataclasses.dataclass(frozen=True, eq=False)
class ModelFile:
    """The content of a model file.

    Parameters and attributes are None, bool, int, float, str, lists, tuples, dicts with text keys,
    numpy scalars and arrays, and instances of the classes given to `register_value_type`.
    """

    class_name: str  # only ever looked up among names the caller knows
    params: dict[str, Any]
    attributes: dict[str, Any]  # fitted ones that are not arrays
    arrays: dict[str, AnyArray]  # of bool, integers, float16 to float64, or strings
    versions: dict[str, str] = dataclasses.field(default_factory=current_versions)

    def __post_init__(self) -> None:
        """Call what an earlier version saved by its present name."""
        renamed = EARLIER_NAMES.get(self.class_name, {})
        for part in ("params", "attributes", "arrays"):
            values = {renamed.get(name, name): value for name, value in getattr(self, part).items()}
            object.__setattr__(self, part, values)
        if self.class_name == "PSOM" and "grid" in self.params:
            self.params.setdefault("n_components", _axes_of(self.params))


def _axes_of(params: dict[str, Any]) -> int:
    """Return how many axes an earlier PSOM had: its nodes or its grid said so."""
    given = params.get("nodes")
    axes = params["grid"] if given is None or isinstance(given, str) else given
    return len(axes) if isinstance(axes, list | tuple | np.ndarray) else 1


def register_value_type(cls: _ValueType) -> _ValueType:
    """Let instances of a frozen dataclass be kept in model files; usable as a decorator.

    The name of the class goes into the file, and its fields are restored by calling it.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from twofold.model_files import register_value_type
    >>> @register_value_type
    ... @dataclass(frozen=True)
    ... class Tripled:
    ...     factor: float = 3.0
    >>> Tripled().factor
    3.0
    """
    settings = getattr(cls, "__dataclass_params__", None)
    if settings is None or not settings.frozen:
        raise TypeError(f"Expected a frozen dataclass; got {cls!r}. Add @dataclass(frozen=True).")
    known = _VALUE_TYPES.get(cls.__name__, cls)
    is_same = (known.__module__, known.__qualname__) == (cls.__module__, cls.__qualname__)
    if cls.__name__ in _BUILT_IN_TYPES or not is_same:
        raise ValueError(f"The name {cls.__name__!r} is taken in model files; rename {cls!r}.")
    _VALUE_TYPES[cls.__name__] = cls
    return cls


def state_of(estimator: Any, run_only: Mapping[str, Any]) -> ModelFile:
    """Return the content of a file; of parameters in ``run_only`` the value there is kept."""
    fitted = {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_")
    }
    arrays = {name: value for name, value in fitted.items() if isinstance(value, np.ndarray)}
    rest = {name: value for name, value in fitted.items() if name not in arrays}
    parameters = estimator.get_params(deep=False)
    parameters.update({name: run_only[name] for name in run_only if name in parameters})
    return ModelFile(type(estimator).__name__, parameters, rest, arrays)


def expect_class(model: ModelFile, known: Collection[str]) -> None:
    """Raise a `ModelFileError` unless the class of the model is among the known names."""
    if model.class_name not in known:
        raise ModelFileError(
            f"The file holds a model of class {model.class_name!r}; expected one of "
            f"{', '.join(sorted(known))}. It was saved with twofold "
            f"{model.versions.get('twofold', 'unknown')}: load it with that version or a newer one."
        )


def write_model_file(path: str | os.PathLike[str], model: ModelFile) -> None:
    """Write a model file, whole or not at all; a TypeError names a value that it cannot hold."""
    try:
        with replacing(path) as partial:
            text, tensors = _encode_model(model)
            save_file(tensors, partial, metadata={_METADATA_KEY: text})
    except SafetensorError as error:
        raise ModelFileError(f"Could not write the model to '{path}': {error}.") from error


def read_model_file(
    path: str | os.PathLike[str], prepare: Callable[[Collection[str]], object] | None = None
) -> ModelFile:
    """Read a model file, check it, and run no code from it; the arrays are writable.

    ``prepare`` is called with the names of all classes in the file before a value is made, so that
    the types their parameters may have can be registered by then. A `ModelFileError` says that the
    file is empty, truncated, of another kind, too new, or altered.
    """
    path = Path(path)
    text, header = _read_header(path, _read_table(path))
    tensors = _read_tensors(path)
    try:
        is_intact = _to_json(header) == text and header["sha256"] == _checksum(header, tensors)
    except (LookupError, RecursionError, ValueError):  # such as a number turned infinite
        is_intact = False
    if not is_intact:
        raise _altered(path, "its checksum does not match its content")
    try:
        if prepare is not None:
            prepare(_class_names(header))
        return _decode_model(header, tensors)
    except Exception as error:  # a made-up header, or a class that has changed since
        raise ModelFileError(
            f"'{path}' is whole but cannot be restored: {error}. Load it with the version of "
            "twofold that wrote it, or fit the model again."
        ) from error


def _encode_model(model: ModelFile) -> tuple[str, dict[str, AnyArray]]:
    """Return the header text, checksum included, and the tensors of a model."""
    encoder = _Encoder()
    header: dict[str, JSONValue] = {
        "format": FORMAT_VERSION,
        "class_name": model.class_name,
        "params": encoder.named("parameter", model.params),
        "attributes": encoder.named("attribute", model.attributes),
        "arrays": encoder.named_arrays(model.arrays),
        "versions": dict(model.versions),
    }
    header["sha256"] = _checksum(header, encoder.tensors)
    return _to_json(header), encoder.tensors


def _decode_model(header: dict[str, Any], tensors: Mapping[str, AnyArray]) -> ModelFile:
    """Rebuild the model from a header whose checksum holds."""
    parts = {
        part: {name: _decode(value, tensors) for name, value in header[part].items()}
        for part in ("params", "attributes", "arrays", "versions")
    }
    for name, array in parts["arrays"].items():
        if not isinstance(array, np.ndarray):
            raise ModelFileError(f"`{name}` is not an array")
    return ModelFile(class_name=str(header["class_name"]), **parts)


def _class_names(value: JSONValue) -> set[str]:
    """Return the names of the model in a header and of all models within it."""
    if isinstance(value, list):
        return {name for item in value for name in _class_names(item)}
    if not isinstance(value, dict):
        return set()
    own = value.get("class_name")
    names = _class_names(list(value.values()))
    return names | {own} if isinstance(own, str) else names


class _Encoder:
    """Turn values into JSON, collecting their arrays in ``tensors``."""

    def __init__(self) -> None:
        self.tensors: dict[str, AnyArray] = {}

    def named(self, kind: str, values: Mapping[str, Any]) -> dict[str, JSONValue]:
        """Encode parameters or attributes; ``kind`` is the word for them in messages."""
        return {name: self.value(values[name], f"{kind} {name!r}") for name in sorted(values)}

    def named_arrays(self, arrays: Mapping[str, AnyArray]) -> dict[str, JSONValue]:
        """Encode the fitted arrays, which keep their names as tensors."""
        if reserved := [n for n in arrays if n.startswith(("__metadata__", _VALUE_PREFIX))]:
            raise ValueError(f"The array names {reserved} are reserved; choose others.")
        return {name: self.array(arrays[name], f"array {name!r}", name) for name in sorted(arrays)}

    def value(self, value: Any, where: str) -> JSONValue:
        """Encode one value; exact types, so that no subclass comes back as its parent."""
        kind = type(value)
        if kind is float and not math.isfinite(value):
            return {_TYPE_KEY: "float", "value": repr(value)}
        if kind in (type(None), bool, int, float, str, np.str_):
            return value
        if kind is list or kind is tuple:
            items = [self.value(item, f"{where}[{i}]") for i, item in enumerate(value)]
            return items if kind is list else {_TYPE_KEY: "tuple", "items": items}
        if kind is dict:
            return self.mapping(value, where)
        if isinstance(value, np.generic) and value.dtype.name in _DTYPES:
            item = self.value(value.item(), where)
            return {_TYPE_KEY: "numpy", "dtype": value.dtype.name, "value": item}
        if isinstance(value, np.ndarray):
            return self.array(value, where, f"{_VALUE_PREFIX}{len(self.tensors)}")
        if _VALUE_TYPES.get(kind.__name__) is kind:
            names = [f.name for f in dataclasses.fields(value) if f.init]
            fields = {name: self.value(getattr(value, name), f"{where}.{name}") for name in names}
            return {_TYPE_KEY: kind.__name__, **fields}
        raise _cannot_keep(where, value)

    def mapping(self, value: dict[Any, Any], where: str) -> dict[str, JSONValue]:
        """Encode a dict, whose keys must be plain text."""
        for key in value:
            if type(key) is not str or key == _TYPE_KEY:  # the latter marks our own objects
                raise _cannot_keep(f"key {key!r} of the {where}", key)
        return {key: self.value(value[key], f"{where}[{key!r}]") for key in sorted(value)}

    def array(self, array: AnyArray, where: str, tensor: str) -> dict[str, JSONValue]:
        """Encode an array: numbers as a tensor, strings as a list."""
        if type(array) not in (np.ndarray, np.memmap):  # the mask of a subclass would be lost
            raise _cannot_keep(where, array)
        texts = array.ravel().tolist() if array.dtype.kind in "OU" else [None]
        if all(isinstance(text, str) for text in texts):
            shape, dtype = list(array.shape), array.dtype.str
            return {_TYPE_KEY: "text_array", "dtype": dtype, "shape": shape, "values": texts}
        if array.dtype.name not in _DTYPES:
            raise _cannot_keep(where, array)
        little_endian = array.dtype.newbyteorder("<")
        self.tensors[tensor] = np.asarray(array, dtype=little_endian, order="C")
        # Sums depend on the order in memory in the last digit, so a loaded model keeps it too.
        return {_TYPE_KEY: "array", "tensor": tensor, "order": "F" if array.flags.fnc else "C"}


def _decode(value: Any, tensors: Mapping[str, AnyArray]) -> Any:
    """Undo `_Encoder.value`; any unknown name or missing part raises."""
    if isinstance(value, list):
        return [_decode(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    if _TYPE_KEY not in value:
        return {key: _decode(item, tensors) for key, item in value.items()}
    match value[_TYPE_KEY]:
        case "float":
            return float(value["value"])
        case "tuple":
            return tuple(_decode(value["items"], tensors))
        case "numpy" if value["dtype"] in _DTYPES:
            return np.dtype(value["dtype"]).type(_decode(value["value"], tensors))
        case "array":
            return np.asarray(tensors[value["tensor"]], order=value["order"])
        case "text_array" if value["dtype"][1:2] in "OU":
            return _text_array(**value)
        case name if name in _VALUE_TYPES:
            fields = {key: _decode(value[key], tensors) for key in value if key != _TYPE_KEY}
            return _VALUE_TYPES[name](**fields)
        case name:
            raise ModelFileError(f"it holds a value of type {name!r}, which is not known here")


def _text_array(values: Any, shape: Any, dtype: str, **_: Any) -> AnyArray:
    """Return an array of strings; one that asks for absurd room gets what its strings need."""
    if not all(isinstance(text, str) for text in values):
        raise ModelFileError("an array of text holds something else")
    if dtype[1:2] == "U" and int(dtype[2:]) * len(values) > _MOST_CHARACTERS:
        dtype = "<U"
    return np.array(values, dtype=dtype).reshape(shape)


def _cannot_keep(where: str, value: object) -> TypeError:
    """Say which value cannot be saved and what to do instead."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    dtype = f" and dtype {value.dtype}" if isinstance(value, np.ndarray) else ""
    return TypeError(
        f"The {where} is of type {kind}{dtype}, which a model file cannot keep: expected None, "
        "text, numbers, arrays of numbers or text, lists, tuples or text-keyed dicts of these, or "
        "a small object of this library. If the fitted model does not need it, replace it with "
        "`set_params` before saving; otherwise pickle the model."
    )


def _to_json(value: JSONValue) -> str:
    """Write JSON in the one form that the checksum is taken of."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _checksum(header: Mapping[str, JSONValue], tensors: Mapping[str, AnyArray]) -> str:
    """Return the SHA-256 of a header, its own checksum left empty, and of the tensors."""
    digest = hashlib.sha256(_to_json({**header, "sha256": ""}).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(_to_json([name, tensor.dtype.name, list(tensor.shape)]).encode())
        digest.update(tensor.data)
    return digest.hexdigest()


def _read_table(path: Path) -> dict[str, Any]:
    """Read the JSON table at the start, having checked that the whole file is there."""
    if not path.exists():
        raise FileNotFoundError(f"There is no file '{path.absolute()}'.")
    if path.is_dir():
        raise IsADirectoryError(f"'{path.absolute()}' is a folder; pass the file of a model in it.")
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(64)
        length = int.from_bytes(start[:8], "little")
        if size == 0:
            raise ModelFileError(f"'{path}' is empty (0 bytes). Save the model again.")
        if size > 8 and (start[8:9] != b"{" or length > _MAX_TABLE_BYTES):
            raise _foreign(path, start)
        file.seek(8)
        raw = file.read(min(length, size))
    table, expected = {}, max(9, 8 + length)
    try:
        if size >= expected:
            table = json.loads(raw)
            if not raw.rstrip(b" ").endswith(b"}"):  # the only bytes that no checksum covers
                raise ValueError("padded with other bytes than blanks")
            tensors = (entry for name, entry in table.items() if name != "__metadata__")
            expected += max((int(tensor["data_offsets"][1]) for tensor in tensors), default=0)
    except Exception as error:  # damage takes many forms, and all mean the same
        raise _altered(path, f"its table of arrays cannot be read ({error})") from error
    if size < expected:
        raise ModelFileError(
            f"'{path}' is truncated: it has {size} of at least {expected} bytes. Copy or download "
            "it again, or save the model again."
        )
    return table


def _read_header(path: Path, table: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the header as text and parsed; refuse one that is not ours or newer than we are."""
    try:
        text = table["__metadata__"][_METADATA_KEY]
    except (LookupError, TypeError) as error:
        raise ModelFileError(
            f"'{path}' is a safetensors file but holds no twofold model: its metadata has no entry "
            f"{_METADATA_KEY!r}. Expected a file written by save()."
        ) from error
    try:
        header = json.loads(text)
        version = int(header["format"])
    except Exception as error:  # as above
        raise _altered(path, f"its header cannot be read ({error})") from error
    if version > FORMAT_VERSION:  # asked first, for a newer format may have other rules
        raise ModelFileError(
            f"'{path}' has format version {version}, written by a newer twofold; this one reads "
            f"up to version {FORMAT_VERSION}. Upgrade twofold to load it."
        )
    return text, header


def _read_tensors(path: Path) -> dict[str, AnyArray]:
    """Read all tensors as writable arrays."""
    try:
        with safe_open(path, framework="np") as file:
            return {n: np.require(file.get_tensor(n), None, "W") for n in sorted(file.keys())}
    except OSError:
        raise
    except Exception as error:  # as above
        raise _altered(path, f"its arrays cannot be read ({error})") from error


def _altered(path: Path, finding: str) -> ModelFileError:
    return ModelFileError(
        f"'{path}' was damaged or altered after saving: {finding}. Copy it or save it again."
    )


def _foreign(path: Path, start: bytes) -> ModelFileError:
    """Say what a file that is not safetensors looks like."""
    kind = next((kind for prefix, kind, _ in FIRST_BYTES if start.startswith(prefix)), None)
    if start[:1] == b"\x80" and start[1] < 6:
        kind = "a Python pickle, which is never opened"
    elif kind is None and b"\0" not in start:
        kind = "a text table, such as CSV" if set(b",;\t") & set(start) else "text"
    return ModelFileError(
        f"'{path}' is not a model file: from its first bytes {start[:8]!r} it looks like "
        f"{kind or 'binary data of an unknown kind'}. Expected a file written by save()."
    )

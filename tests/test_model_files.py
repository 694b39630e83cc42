"""Model files: what goes in comes out, and nothing else ever comes out."""

from __future__ import annotations

import math
import os
import pickle
import stat
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from twofold import model_files
from twofold.model_files import (
    ModelFile,
    ModelFileError,
    current_versions,
    expect_class,
    read_model_file,
    register_value_type,
    write_model_file,
)


@register_value_type
@dataclass(frozen=True)
class Ridge:
    penalty: float
    axes: tuple[int, ...] = ()
    inner: object = None
    derived: float = field(init=False, default=0.0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.twofold"


@pytest.fixture
def model():
    rng = np.random.default_rng(7)
    return ModelFile(
        class_name="UKR",
        params={"n_components": 2, "init": rng.normal(size=(3, 2)), "loss": Ridge(0.5)},
        attributes={"n_features_in_": 4, "stop_reason_": "converged", "objective_": 0.25},
        arrays={
            "embedding_": rng.normal(size=(5, 2)),
            "weights_": rng.normal(size=4).astype(np.float32),
            "feature_names_in_": np.array(["größe", "重さ", "a\nb", ""], dtype=object),
        },
    )


def round_trip(path, *, params=None, attributes=None, arrays=None):
    write_model_file(path, ModelFile("UKR", params or {}, attributes or {}, arrays or {}))
    return read_model_file(path)


def forge(path, **changes):
    """Write a file whose header was changed but whose checksum holds."""
    write_model_file(path, ModelFile("UKR", {}, {}, {"a": np.arange(3.0)}))
    tensors = load_file(path)
    header = {**model_files._read_header(path, model_files._read_table(path))[1], **changes}
    header["sha256"] = model_files._checksum(header, tensors)
    save_file(tensors, path, metadata={"twofold": model_files._to_json(header)})


def assert_refused(path, match):
    with pytest.raises(ModelFileError, match=match):
        read_model_file(path)


def assert_identical(actual, expected):
    assert type(actual) is type(expected)
    if isinstance(expected, np.ndarray):
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        assert actual.tolist() == expected.tolist()
    elif isinstance(expected, dict):
        assert actual.keys() == expected.keys()
        for key in expected:
            assert_identical(actual[key], expected[key])
    elif isinstance(expected, list | tuple):
        for one, other in zip(actual, expected, strict=True):
            assert_identical(one, other)
    elif isinstance(expected, Ridge | ModelFile):
        assert_identical(vars(actual), vars(expected))
    else:
        assert repr(actual) == repr(expected)  # tells -0.0 from 0.0, and NaN is NaN


def test_whole_model_comes_back(path, model):
    write_model_file(str(path), model)
    write_model_file(path, read_model_file(str(path)))
    assert_identical(read_model_file(path), model)


@pytest.mark.parametrize("dtype", sorted(model_files._DTYPES))
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (7,), (2, 3, 4)])
def test_arrays_of_every_kind(path, dtype, shape):
    array = np.asarray(np.random.default_rng(0).integers(-99, 99, shape)).astype(dtype)
    assert_identical(round_trip(path, arrays={"a": array}).arrays["a"], array)
    assert_identical(round_trip(path, params={"a": [array]}).params["a"], [array])


@pytest.mark.parametrize(
    "layout",
    [
        *[np.asfortranarray, lambda a: np.asfortranarray(a.reshape(2, 3, 4))],
        *[lambda a: a[::2, ::-1], lambda a: a[:, 1], lambda a: np.broadcast_to(a[0], (3, 4))],
    ],
)
def test_memory_layouts_and_special_floats(path, layout):
    special = [-0.0, np.inf, -np.inf, np.nan, 5e-324, 1.7976931348623157e308]
    array = layout(np.concatenate([special, np.arange(18.0)]).reshape(6, 4))
    restored = round_trip(path, arrays={"a": array}).arrays["a"]
    assert restored.tobytes() == array.tobytes()
    assert restored.shape == array.shape
    assert restored.flags.fnc == array.flags.fnc


def test_read_only_big_endian_and_mapped_arrays(path, tmp_path):
    frozen = np.random.default_rng(0).normal(size=(4, 3))
    frozen.flags.writeable = False
    frozen.tofile(tmp_path / "raw")
    mapped = np.memmap(tmp_path / "raw", float, "r", shape=(4, 3))
    arrays = {"frozen": frozen, "mapped": mapped, "swapped": frozen.astype(">f8")}
    for array in round_trip(path, arrays=arrays).arrays.values():
        assert_identical(array, frozen)
        array += 1.0  # belongs to the caller


@pytest.mark.parametrize(
    "names",
    [
        np.array(["x", "größe", "重さ", "😀", 'q"\\', "\x00\x1f", "\ud800"], dtype=object),
        *[np.array([["a", "bcd"], ["", "é"]]), np.array(["narrow"], dtype="<U20")],
        *[np.array([], dtype=object), np.empty((0, 3), dtype="<U4"), np.array("0-d", dtype=object)],
    ],
)
def test_arrays_of_strings_are_json_not_tensors(path, names):
    restored = round_trip(path, attributes={"names": names}, arrays={"names": names})
    assert_identical(restored.arrays["names"], names)
    assert_identical(restored.attributes["names"], names)
    assert load_file(path) == {}
    assert_identical(round_trip(path, params={"p": np.str_("é")}).params["p"], "é")


@pytest.mark.parametrize(
    "value",
    [
        [None, True, 0, -(10**30), 0.1, -0.0, 5e-324, "", [], ()],
        [math.inf, -math.inf, math.nan, (math.nan, [math.inf])],
        *["größe 重さ 😀 \x00 \ud800", (1, [2.5, None], (3, ("a",))), {"b": {"a": (1,)}, "": 2}],
        [np.float64(0.1), np.float32(0.1), np.float16(np.inf), np.float32(np.nan)],
        [np.int64(-5), np.uint8(255), np.bool_(True), np.uint64(2**64 - 1)],
        {"nodes": [np.arange(3), (np.eye(2), np.array(["a"]))]},
        [Ridge(0.5, (1, 2), Ridge(math.inf, inner=[np.int32(3)])), Ridge(1, (), np.eye(2))],
    ],
)
def test_parameters_and_attributes(path, value):
    restored = round_trip(path, params={"p": value, "__type__": 1}, attributes={"a": value})
    assert_identical(restored.params, {"p": value, "__type__": 1})
    assert_identical(restored.attributes, {"a": value})


def test_versions_are_those_of_now_unless_given(path, model):
    assert set(model.versions) == {"twofold", "numpy", "scikit-learn", "python"}
    assert current_versions()["numpy"] == np.__version__
    write_model_file(path, replace(model, versions={"twofold": "0.0.1"}))
    assert read_model_file(path).versions == {"twofold": "0.0.1"}


def test_same_bytes_from_any_process_and_order_of_keys(tmp_path):
    script = (
        "import sys, numpy as np; from twofold.model_files import *\n"
        "turn = lambda d: dict(sorted(d.items(), reverse=sys.argv[1].endswith('1')))\n"
        "write_model_file(sys.argv[1], ModelFile('UKR', turn({'b': np.ones(3), 'a': np.eye(2)}),"
        " {'c': turn({'d': 1, 'e': 2})}, turn({'y': np.eye(2)}), turn(current_versions())))"
    )
    files = [tmp_path / "0", tmp_path / "1"]
    for file in files:
        environment = {**os.environ, "PYTHONHASHSEED": file.name}
        subprocess.run([sys.executable, "-c", script, str(file)], check=True, env=environment)
    assert files[0].read_bytes() == files[1].read_bytes()


STRANGER = dataclass(frozen=True)(type("Stranger", (), {}))  # but not registered
REFUSED = [
    *[print, lambda x: x, object(), Ridge, STRANGER(), np.random.default_rng(0), {1}, b"b", 1j],
    *[np.complex128(1), np.datetime64("2020-01-01"), np.array([1, "a"], dtype=object)],
    *[np.zeros(2, dtype=complex), np.zeros(2, dtype="S3"), np.zeros(2, dtype=[("a", float)])],
    np.ma.masked_array([1.0, 2.0], mask=[True, False]),
]


@pytest.mark.parametrize("value", REFUSED, ids=lambda value: type(value).__name__)
def test_other_values_are_refused_by_name(path, value):
    places = {
        "parameter 'kernel' is": value,
        "parameter 'kernel'[1]['k'] is": [0, {"k": value}],
        "parameter 'kernel'.inner is": Ridge(1.0, inner=value),
    }
    for place, param in places.items():
        with pytest.raises(TypeError) as caught:
            round_trip(path, params={"kernel": param})
        for part in (place, type(value).__qualname__, "set_params", "pickle"):
            assert part in str(caught.value)
    assert not list(path.parent.iterdir())


def test_refused_attributes_arrays_and_keys_are_named(path):
    with pytest.raises(TypeError, match="attribute 'tree_'"):
        round_trip(path, attributes={"tree_": object()})
    with pytest.raises(TypeError, match=r"array 'a'.*builtins\.list"):
        round_trip(path, arrays={"a": [1, 2]})
    for key in (1, "__type__"):
        with pytest.raises(TypeError, match=f"key {key!r} of the parameter 'p'"):
            round_trip(path, params={"p": {key: 0.5}})
    for name in ("__metadata__", "__value__/0"):
        with pytest.raises(ValueError, match="reserved"):
            round_trip(path, arrays={name: np.zeros(2)})


def test_registration_wants_frozen_dataclasses_with_free_names():
    for cls in (dataclass(type("Thawed", (), {})), int):
        with pytest.raises(TypeError, match="frozen dataclass"):
            register_value_type(cls)
    for name in ("Ridge", "tuple"):
        with pytest.raises(ValueError, match="taken"):
            register_value_type(dataclass(frozen=True)(type(name, (), {"__module__": "elsewhere"})))
    assert register_value_type(Ridge) is Ridge


def test_missing_and_empty_files(path, model):
    with pytest.raises(FileNotFoundError):
        read_model_file(path)
    with pytest.raises(FileNotFoundError, match="create it"):
        write_model_file(path / "model", model)
    path.touch()
    assert_refused(path, "is empty")


def test_truncated_file(path, model):
    write_model_file(path, model)
    whole = path.read_bytes()
    lengths = [*range(1, 40), *range(40, len(whole), 37), len(whole) - 1]
    for content in [*(whole[:length] for length in lengths), bytes(8), b"\xff" * 8]:
        path.write_bytes(content)
        assert_refused(path, f"truncated: it has {len(content)} of at least ")


@pytest.mark.parametrize(
    ("words", "content"),
    [
        *[("zip", b"PK\x03\x04\x14\x00\x00\x00\x00\x00"), ("npy", b"\x93NUMPY\x01\x00v\x00{'d")],
        *[("HDF5", b"\x89HDF\r\n\x1a\n\x00\x00"), ("Parquet", b"PAR1\x15\x04\x15\x00\x00")],
        *[("CSV", b"height,weight\n1.0,2.0\n"), ("CSV", "größe;重さ\n1;2\n".encode())],
        *[("text", b'{"class_name": "UKR"}'), ("unknown kind", bytes(100))],
        ("Git LFS", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a"),
    ],
)
def test_foreign_files_are_recognised(path, words, content):
    path.write_bytes(content)
    assert_refused(path, f"not a model file.*looks like .*{words}")


class Malicious(str):
    def __reduce__(self):
        return (Path.touch, (Path("".join(self)),))  # a plain str, which Path may keep


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_is_recognised_and_not_executed(path, tmp_path, protocol):
    mark = tmp_path / "executed"
    path.write_bytes(pickle.dumps(Malicious(mark), protocol))
    assert_refused(path, "a Python pickle" if protocol >= 2 else "not a model file")
    assert not mark.exists()
    pickle.loads(path.read_bytes())
    assert mark.exists()  # the bait works


@pytest.mark.parametrize("name", ["bait_module.Evil", "bait_module", "builtins.eval", "Stranger"])
def test_names_in_a_file_are_not_imported(path, tmp_path, monkeypatch, name):
    (tmp_path / "bait_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    forge(path, params={"p": {"__type__": name}})
    assert_refused(path, f"value of type '{name}', which is not known")


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"Twofold": "{}"}])
def test_safetensors_of_others(path, metadata):
    save_file({"a": np.zeros(3)}, path, metadata=metadata)
    assert_refused(path, "safetensors file but holds no twofold model")


def test_newer_format_and_bottomless_header(path):
    forge(path, format=2, params="said in a new way")
    assert_refused(path, "format version 2.*Upgrade")
    save_file({}, path, metadata={"twofold": "[" * 100_000 + "]" * 100_000})
    assert_refused(path, "header cannot be read")


def test_made_up_headers_are_refused(path):
    forge(path)
    assert_identical(read_model_file(path).arrays["a"], np.arange(3.0))  # the forgery is good
    values = [
        *[{"__type__": []}, {"__type__": "tuple"}, {"__type__": "float", "value": "x"}],
        {"__type__": "array", "tensor": "missing", "order": "C"},
        {"__type__": "numpy", "dtype": "object", "value": 1},
        {"__type__": "numpy", "dtype": "int8", "value": 999},
        {"__type__": "text_array", "dtype": "V8", "shape": [0], "values": []},
        *[{"__type__": "Ridge"}, {"__type__": "Ridge", "penalty": 1, "other": 2}],
    ]
    for part in ({"versions": 1}, {"params": [1]}, *({"params": {"p": v}} for v in values)):
        forge(path, **part)
        assert_refused(path, "whole but cannot be restored")


@pytest.mark.parametrize(
    "change", ["UKR UNN", "[5,2] [2,5]", '"F32" "I32"', "1.5e+308 9.5e+308", "u00f6 u00F6"]
)
def test_altered_header_fails_the_checksum(path, model, change):
    write_model_file(path, replace(model, params={"p": 1.5e308}))
    old, new = change.encode().split()
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new))
    assert_refused(path, "checksum does not match")


def test_added_removed_or_renamed_tensor_fails_the_checksum(path, model):
    write_model_file(path, model)
    tensors, metadata = load_file(path), model_files._read_table(path)["__metadata__"]
    fewer = {name: array for name, array in tensors.items() if name != "weights_"}
    for changed in (fewer, {**fewer, "w": tensors["weights_"]}, {**tensors, "w": np.zeros(2)}):
        save_file(changed, path, metadata=metadata)
        assert_refused(path, "checksum does not match")
    save_file(tensors, path, metadata=metadata)
    assert_identical(read_model_file(path), model)


@pytest.mark.parametrize("region", ["length", "header", "data", "anywhere"])
def test_one_altered_byte_is_always_found(path, model, region):
    rng = np.random.default_rng(0)
    write_model_file(path, model)
    whole = path.read_bytes()
    end, size = 8 + int.from_bytes(whole[:8], "little"), len(whole)
    regions = {"length": (0, 8), "header": (8, end), "data": (end, size), "anywhere": (0, size)}
    for position in rng.integers(*regions[region], size=50):
        altered = bytearray(whole)
        altered[position] ^= rng.integers(1, 256)
        path.write_bytes(altered)
        assert_refused(path, path.name)


def test_other_padding_and_trailing_bytes_are_found(path, model):
    write_model_file(path, model)
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    longer = (length + 8).to_bytes(8, "little") + whole[8 : 8 + length]
    path.write_bytes(longer + b" " * 8 + whole[8 + length :])
    assert_identical(read_model_file(path), model)
    for blank in (b"\t", b"\n", b"\r"):  # as good as a space to a JSON parser
        path.write_bytes(longer + b" " * 7 + blank + whole[8 + length :])
        assert_refused(path, "padded with other bytes")
    path.write_bytes(whole + b"\0")
    assert_refused(path, "damaged or altered")


def test_unknown_class(model):
    expect_class(model, {"UKR", "UNN"})
    with pytest.raises(ModelFileError, match=r"class 'UKR'; expected one of PSOM, UNN\."):
        expect_class(model, ["UNN", "PSOM"])


@pytest.mark.parametrize("step", ["save_file", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt("C"), SafetensorError("big")])
def test_interrupted_save_keeps_the_old_file(path, model, monkeypatch, step, error):
    def fail(*args, **kwargs):
        if step == "save_file":
            Path(args[1]).write_bytes(b"half a file")
        raise error

    write_model_file(path, model)
    monkeypatch.setattr(model_files if step == "save_file" else os, step, fail)
    with pytest.raises((OSError, KeyboardInterrupt, ModelFileError), match=str(error)):
        write_model_file(path, replace(model, class_name="UNN"))
    monkeypatch.undo()
    assert list(path.parent.iterdir()) == [path]
    assert_identical(read_model_file(path), model)


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")
def test_permissions_and_links_are_kept(path, tmp_path, model):
    (tmp_path / "ordinary").touch()
    write_model_file(path, model)
    assert path.stat().st_mode == (tmp_path / "ordinary").stat().st_mode
    path.chmod(0o640)
    (tmp_path / "link").symlink_to(path)
    write_model_file(tmp_path / "link", replace(model, class_name="UNN"))
    assert (tmp_path / "link").is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert read_model_file(path).class_name == "UNN"


def test_a_file_that_is_not_there_is_named_in_full(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=f"There is no file '{tmp_path}/none.twofold'"):
        read_model_file("none.twofold")

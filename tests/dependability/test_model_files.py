"""Files of strangers: whatever stands in them, opening and using them ends well."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from dependability.model_files import NAMES, content, sample_table, try_files
from dependability.report import findings
from safetensors.numpy import save_file

import twofold
from twofold import model_files
from twofold.model_files import ModelFileError


@pytest.fixture
def forge(tmp_path):
    """Write the file of a model of `MODELS`, changed by a function, its checksum made right."""

    def write(name, change):
        header, tensors = copy.deepcopy(content(name))
        change(header, tensors)
        header["sha256"] = ""
        header["sha256"] = model_files._checksum(header, tensors)
        path = tmp_path / "forged.twofold"
        save_file(tensors, path, metadata={"twofold": model_files._to_json(header)})
        return path

    return write


def set_tensor(name, place, value):
    def change(header, tensors):
        tensors[name][place] = value

    return change


def set_header(*path, value):
    def change(header, tensors):
        for key in path[:-1]:
            header = header[key]
        header[path[-1]] = value

    return change


@pytest.mark.parametrize("name", NAMES)
def test_every_file_as_it_was_written_opens(forge, name):
    assert twofold.load(forge(name, lambda header, tensors: None)).n_features_in_ in (4, 24)


NAN = {"__type__": "float", "value": "nan"}


@pytest.mark.parametrize(
    ("name", "change", "complaint"),
    [
        ("UKR", set_tensor("latent_", (3, 0), np.nan), "`latent_` holds NaN or infinity"),
        ("UKR-landmarks", set_tensor("latent_", (0, 0), np.inf), "`latent_` holds NaN"),
        ("PSOM", set_tensor("latent_", (3, 0), np.nan), "`latent_` holds NaN"),
        ("SubmanifoldUNN", set_tensor("latent_", (3, 0), np.nan), "`latent_` holds NaN"),
        ("KernelPCA", set_tensor("dual_coef_", (3, 0), np.nan), "`dual_coef_` holds NaN"),
        ("DiffusionMap", set_tensor("eigenvalues_", 1, 0.0), "`eigenvalues_` goes from"),
        (
            "UKR",
            set_tensor("member_", 0, 24),
            r"0 to 24, outside of \[-1, 23\]",
        ),
        ("UKR", set_tensor("latent_scale_", 0, 0.0), "`latent_scale_` goes from 0"),
        ("UKR", set_tensor("latent_scale_", 0, 1e-310), "`latent_scale_` goes from 1e-310"),
        ("Scaled", set_tensor("spread_", 0, 0.0), "`spread_` goes from 0"),
        ("SubmanifoldUNN", set_tensor("clusters_", slice(None), 0), "a cluster without rows"),
        ("UNN-line", set_tensor("latent_", (0, 0), 1e9), "no sites of a line or lattice"),
        ("UNN", set_header("params", "n_neighbors", value=0), "`n_neighbors` must be an integer"),
        ("UKR", set_header("params", "cutoff", value=NAN), "`cutoff`"),
        ("PSOM", set_header("params", "n_starts", value=10**6), "`n_starts` must be at most 1000"),
        ("UKR", set_header("params", "n_components", value=3), "2 column.s. for 3 latent"),
        ("UKR", set_header("attributes", "domain_threshold_", value=1e9), "outside of the domain"),
        ("UKR", set_tensor("embedding_", (0, 0), 1e300), "`embedding_` has points far from all"),
        (
            "DiffusionMap",
            set_header("attributes", "preimage_method_", "scale", value=1e-300),
            "`scale` must lie between",
        ),
        ("UKR", set_header("attributes", "transform", value=1), "`transform` is not an attribute"),
        ("UKR", set_header("attributes", "n_features_in_", value=7), r"shape \(24, 4\)"),
        ("PSOM", set_header("params", "grid", value=[4, 4]), "the parameters ask for"),
        (
            "KernelExtension",
            set_header("attributes", "bandwidth_", value=1e300),
            "not a finite number",
        ),
        ("UNN-line", set_header("arrays", "history_", value={"a": 1}), "`history_` is not an"),
        (
            "UKR-precomputed",
            set_header("attributes", "feature_mean_", value=2**63),
            "not a finite number",
        ),
        ("UKR-huber", set_header("attributes", "loss_", "delta", value=None), "no `delta` yet"),
        ("ManifoldClassifier", set_header("attributes", "models_", value=[]), "no label for each"),
    ],
)
def test_what_no_fit_leaves_is_refused_by_name(forge, name, change, complaint):
    with pytest.raises(ModelFileError, match=complaint):
        twofold.load(forge(name, change))


def test_text_cannot_ask_for_memory(forge):
    names = {
        "__type__": "text_array",
        "dtype": "<U2000000000",
        "shape": [4],
        "values": list("abcd"),
    }
    path = forge("UKR", set_header("arrays", "feature_names_in_", value=names))
    assert twofold.load(path).feature_names_in_.tolist() == list("abcd")


def test_an_array_that_is_missing_is_named(forge):
    def change(header, tensors):
        del header["arrays"]["weights_"], tensors["weights_"]

    with pytest.raises(ModelFileError, match="`weights_` is missing"):
        twofold.load(forge("UKR", change))


def test_some_changed_files():
    assert findings(try_files(range(60), seconds=60)) == []


@pytest.mark.slow
def test_many_changed_files():
    assert findings(try_files(range(10_000, 16_000))) == []


def test_a_file_as_it_was_written_gives_the_same_bits(forge):
    Y = sample_table() + 0.01
    one = twofold.load(forge("UKR", lambda header, tensors: None))
    other = twofold.load(forge("UKR", lambda header, tensors: None))
    assert (one.transform(Y) == other.transform(Y)).all()

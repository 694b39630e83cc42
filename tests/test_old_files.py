"""Files that were saved once open for ever and answer as they did."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

import twofold
from twofold.loading import FAMILIES

FILES = sorted((Path(__file__).parent / "files").glob("*.twofold"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_old_file_still_answers(path: Path):
    model = twofold.load(path)
    expected = json.loads(path.with_suffix(".json").read_text())
    frame = load_iris(as_frame=True).data
    if "predict" in expected:
        assert model.predict(frame[1:6:2]).tolist() == expected["predict"]
    if "transform" in expected:
        X, scale = model.transform(frame[1:6:2]), np.std(model.embedding_)
        known = np.array(expected["transform"])
        # Searches have become better since: rows lie where they did, or come back closer.
        away = np.abs(X - known).max(axis=1) > 3e-3 * scale
        if away.any():
            errors, before = (
                ((frame[1:6:2][away] - model.inverse_transform(places[away])) ** 2).sum(axis=1)
                for places in (X, known)
            )
            assert (errors < before).all()
    if "inverse_transform" in expected:
        Y = model.inverse_transform(np.array(expected["transform"]))
        np.testing.assert_allclose(Y, expected["inverse_transform"], rtol=1e-6)
    if hasattr(model, "partial_fit"):
        model.partial_fit(frame[2:4])
    assert list(model.feature_names_in_) == list(frame.columns)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_noise_of_old_files_is_made_at_first_use(path: Path):
    model = twofold.load(path)
    if not hasattr(model, "has_noise"):
        assert type(model).__name__ in ("KernelExtension", "ManifoldClassifier")
        return
    frame = load_iris(as_frame=True).data
    if not model.has_noise():
        why = r"landmarks and none of the rows|those of a kernel|noise of components"
        with pytest.raises(ValueError, match=why):
            _ = model.noise_
        return
    assert "noise_" not in vars(getattr(model, "model_", model))
    p = model.p_values(frame[1:50:2])
    assert ((p > 0) & (p <= 1)).all()


def test_every_family_has_a_file():
    classes = {type(twofold.load(path)).__name__ for path in FILES}
    assert classes == {*FAMILIES, "KernelExtension", "ManifoldClassifier"}


def test_damaged_and_foreign_files_are_refused(tmp_path):
    whole = FILES[0].read_bytes()
    broken = tmp_path / "broken.twofold"
    for content in (
        b"",
        whole[: len(whole) // 2],
        b"a,b\n1,2\n",
        whole[:-1] + bytes([whole[-1] ^ 1]),
    ):
        broken.write_bytes(content)
        with pytest.raises(ValueError, match=r"broken\.twofold"):
            twofold.load(broken)
    with pytest.raises(FileNotFoundError):
        twofold.load(tmp_path / "nothing.twofold")

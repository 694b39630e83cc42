"""A fit that was broken off goes on from its checkpoint, to the bits of one that never was."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from same_models import assert_same

import twofold
from twofold import UKR, ManifoldClassifier, Scaled
from twofold.losses import EpsilonInsensitive, Huber
from twofold.model_files import ModelFile, ModelFileError, write_model_file
from twofold.optimize import minimize
from twofold.regularization import Extension, LeaveOneOut
from twofold.replacing import replacing
from twofold.ukr import checkpoint as checkpoints
from twofold.ukr.checkpoint import Checkpoint


def ribbon(n: int = 150) -> np.ndarray:
    rng = np.random.default_rng(0)
    t = rng.uniform(0, 3, n)
    noise = rng.normal(scale=0.05, size=(n, 3))
    return np.c_[np.cos(t), np.sin(t), rng.uniform(0, 1, n)] + noise


class Killed(BaseException):
    """Not even an interrupt: nothing is wound up."""


class Killer:
    """A callback that breaks a fit off at some iteration, counted over all runs."""

    def __init__(self, at: int | None, error: type[BaseException] = Killed) -> None:
        self.at, self.error, self.seen = at, error, 0

    def __call__(self, event: object) -> None:
        self.seen += 1
        if self.seen == self.at:
            raise self.error


@pytest.fixture
def path(tmp_path, monkeypatch) -> Path:
    """Where a checkpoint goes that is written at every iteration."""
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", np.inf)
    return tmp_path / "fit.checkpoint"


def settings(**given: object) -> dict[str, object]:
    return {"random_state": 0, "max_iter": 12, "init": "pca", **given}


def break_off(path: Path, at: int, **given: object) -> None:
    model = UKR(checkpoint=path, callbacks=[Killer(at)], **settings(**given))
    with pytest.raises(Killed):
        model.fit(ribbon())
    assert path.exists()
    assert not hasattr(model, "latent_")


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"init": "auto", "max_iter": 5},
        {"optimizer": "rprop"},
        {"landmarks": 30},
        {"regularization": Extension(penalty=0.01, start=1.0)},
        pytest.param({"regularization": LeaveOneOut(homotopy="box")}, marks=pytest.mark.slow),
        pytest.param(
            {"regularization": "smoothest", "loss": EpsilonInsensitive(0.05)},
            marks=pytest.mark.slow,
        ),
        pytest.param({"loss": Huber(trim=3.0)}, marks=pytest.mark.slow),
        pytest.param({"data_kernel": "rbf"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_fit_that_goes_on_ends_with_the_same_bits(path, given):
    counter = Killer(None)
    whole = UKR(callbacks=[counter], **settings(**given)).fit(ribbon())
    for at in {2, counter.seen // 2, counter.seen}:
        break_off(path, at, **given)
        left = Killer(None)
        resumed = UKR(checkpoint=path, callbacks=[left], **settings(**given)).fit(ribbon())
        assert_same(whole, resumed)
        assert left.seen <= counter.seen - at + 1  # it did not begin anew
        assert not path.exists()


def test_it_may_be_broken_off_again_and_again(path):
    whole = UKR(**settings()).fit(ribbon())
    for _ in range(4):
        break_off(path, 3)
    assert_same(whole, UKR(checkpoint=path, **settings()).fit(ribbon()))


def test_the_start_is_kept(path, monkeypatch):
    break_off(path, 2, init="auto")

    def seek(*arguments: object) -> None:
        raise AssertionError("the start was sought again")

    monkeypatch.setattr("twofold.ukr.starts.choose_start", seek)
    UKR(checkpoint=path, **settings(init="auto")).fit(ribbon())


def test_without_a_seed_the_rows_give_one(path):
    given = settings(random_state=None, n_components="auto")
    with pytest.raises(Killed):
        UKR(checkpoint=path, callbacks=[Killer(4)], **given).fit(ribbon())
    resumed = UKR(checkpoint=path, **given).fit(ribbon())
    assert_same(UKR(checkpoint=path, **given).fit(ribbon()), resumed)


def test_the_order_of_rows_and_threads_may_be_another(path):
    break_off(path, 5)
    model = UKR(checkpoint=path, n_jobs=1, **settings()).fit(ribbon()[::-1])
    assert np.array_equal(model.embedding_[::-1], UKR(**settings()).fit_transform(ribbon()))


def test_scaled_models_go_on_too(path):
    whole = Scaled(UKR(**settings())).fit(ribbon())
    with pytest.raises(Killed):
        Scaled(UKR(checkpoint=path, callbacks=[Killer(5)], **settings())).fit(ribbon())
    resumed = Scaled(UKR(checkpoint=path, **settings())).fit(ribbon())
    assert np.array_equal(whole.embedding_, resumed.embedding_)
    assert not path.exists()


@pytest.mark.parametrize(
    ("given", "rows", "said"),
    [
        ({"max_iter": 13}, 150, "differs in `max_iter`"),
        ({"random_state": 1}, 150, "differs in `random_state`"),
        ({"tol": 1e-3, "degree": 1}, 150, "differs in `degree`, `tol`"),
        ({}, 149, "differs in the rows"),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused(path, given, rows, said):
    break_off(path, 5)
    content = path.read_bytes()
    model = UKR(**settings()).fit(ribbon())
    old = model.embedding_
    with pytest.raises(ValueError, match=said) as raised:
        model.set_params(checkpoint=path, **given).fit(ribbon()[:rows])
    assert "remove the file, or name another" in str(raised.value)
    assert model.embedding_ is old
    assert path.read_bytes() == content


def test_one_of_another_version_is_refused(path, monkeypatch):
    break_off(path, 5)
    versions = {**checkpoints.current_versions(), "numpy": "1.0"}
    monkeypatch.setattr(checkpoints, "current_versions", lambda: versions)
    with pytest.raises(ValueError, match="differs in the version of numpy"):
        UKR(checkpoint=path, **settings()).fit(ribbon())


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "text"])
def test_a_damaged_checkpoint_is_refused(path, damage):
    break_off(path, 5)
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    kinds = {"cut": content[:-50], "changed": content, "empty": b"", "text": b"one, two, three\n"}
    path.write_bytes(kinds[damage])
    with pytest.raises(ModelFileError, match=r"checkpoint cannot be used.*Remove the file"):
        UKR(checkpoint=path, **settings()).fit(ribbon())


def test_a_model_file_is_no_checkpoint_and_the_other_way_round(path):
    UKR(**settings()).fit(ribbon()).save(path)
    with pytest.raises(ModelFileError, match="holds a model, not a checkpoint"):
        UKR(checkpoint=path, **settings()).fit(ribbon())
    path.unlink()
    break_off(path, 5)
    with pytest.raises(ModelFileError, match="'Checkpoint'"):
        twofold.load(path)


def test_an_interrupted_fit_leaves_its_checkpoint(path):
    whole = UKR(**settings()).fit(ribbon())
    model = UKR(checkpoint=path, callbacks=[Killer(6, KeyboardInterrupt)], **settings())
    with pytest.warns(UserWarning, match="the same call goes on"):
        model.fit(ribbon())
    assert model.stop_reason_ == "interrupted"
    assert_same(whole, UKR(checkpoint=path, **settings()).fit(ribbon()))
    assert not path.exists()


def test_it_is_written_every_so_often_only(tmp_path):
    path = tmp_path / "rare"
    seen = []
    UKR(checkpoint=path, callbacks=[lambda event: seen.append(path.exists())], **settings()).fit(
        ribbon()
    )
    assert not any(seen)


def test_a_full_disk_does_not_end_the_fit(path, monkeypatch):
    def fail(*arguments: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(checkpoints, "write_model_file", fail)
    with pytest.warns(UserWarning, match="could not be written, so the fit goes on: No space"):
        model = UKR(checkpoint=path, **settings()).fit(ribbon())
    assert_same(UKR(**settings()).fit(ribbon()), model)


@pytest.mark.parametrize(
    ("where", "error", "said"),
    [
        ("none/there", FileNotFoundError, "does not exist"),
        (".", IsADirectoryError, "is a folder"),
        (7, TypeError, "must be a path or None; got 7"),
    ],
)
def test_a_place_where_nothing_can_be_written_is_refused_at_once(tmp_path, where, error, said):
    place = tmp_path / where if isinstance(where, str) else where
    with pytest.raises(error, match=said):
        UKR(checkpoint=place, **settings()).fit(ribbon())


class Mine:
    """A loss that no other process knows by its name."""

    def __init__(self) -> None:
        self.function = lambda r: r

    def value_and_slope(self, residuals):
        return (residuals**2).sum(axis=1), 2 * self.function(residuals)


def test_parameters_that_cannot_be_known_again_are_refused(path):
    with pytest.raises(ValueError, match=r"`loss` = .* cannot be pickled"):
        UKR(checkpoint=path, **settings(loss=Mine())).fit(ribbon())


def test_one_checkpoint_is_not_for_the_models_of_several_classes(path):
    classifier = ManifoldClassifier(UKR(checkpoint=path, **settings()))
    with pytest.raises(ValueError, match="cannot keep the fits of several classes"):
        classifier.fit(ribbon(), np.arange(150) % 2)


def test_files_of_models_do_not_keep_it(tmp_path):
    model = UKR(checkpoint=tmp_path / "checkpoint", **settings()).fit(ribbon())
    model.save(tmp_path / "model")
    assert twofold.load(tmp_path / "model").checkpoint is None
    forged = model.to_file()
    forged.params["checkpoint"] = "elsewhere"
    write_model_file(tmp_path / "model", forged)
    assert twofold.load(tmp_path / "model").checkpoint is None


def test_what_a_killed_write_left_goes_with_the_checkpoint(path):
    with replacing(path) as partial:
        leftover = partial.with_name(partial.name[:-8] + "0" * 8)
    leftover.write_bytes(b"half")
    path.unlink()
    Checkpoint(path, {}).remove()
    assert not leftover.exists()


class Bowl:
    def value_and_grad(self, X):
        return float((X**4).sum() + (X**2).sum()), 4 * X**3 + 2 * X


def test_what_was_kept_of_a_run_of_other_points_is_refused(path):
    minimize(Bowl(), np.ones((3, 1)), journal=Checkpoint(path, {}), max_iter=3)
    with pytest.raises(ValueError, match="of another run"):
        minimize(Bowl(), np.ones((4, 1)), journal=Checkpoint(path, {}))


def test_a_start_without_a_value_is_kept_as_ended(path):
    class Wall:
        def value_and_grad(self, X):
            return np.inf, X

    write_model_file(path, ModelFile("Checkpoint", {}, {"steps": []}, {}))
    journal = Checkpoint(path, {})
    assert minimize(Wall(), np.ones((3, 1)), journal=journal).stop_reason == "non_finite"
    minimize(Bowl(), np.ones((3, 1)), journal=journal, max_iter=3)
    again = Checkpoint(path, {})
    assert minimize(Wall(), np.ones((3, 1)), journal=again).stop_reason == "non_finite"


CHILD = """
import sys, time
import numpy as np
from twofold import UKR
from twofold.ukr import checkpoint

checkpoint.SECONDS, checkpoint.SHARE = 0.0, 1e9
Y = np.load(sys.argv[1])
given = {} if sys.argv[4] == "rows" else {"landmarks": 30}
if sys.argv[4] == "path":
    from twofold.contract import chunked_model
    from twofold.tables import chunks

    chunked_model.ROWS_AT_A_TIME, chunks.CELLS_AT_A_TIME, Y = 10, 90, sys.argv[1]
pause = lambda event: time.sleep(0.02)
model = UKR(random_state=0, max_iter=30, checkpoint=sys.argv[2], callbacks=[pause], **given)
print("begun", flush=True)
model.fit(Y)
model.save(sys.argv[3])
model.fit(Y)  # from the beginning: a fit that has ended leaves no checkpoint
model.save(sys.argv[3] + "-whole")
"""


def assert_same_after_kills(folder: Path, kind: str, kills: int, moments: random.Random) -> None:
    """Fit in processes that are killed so many times, then in one that also fits anew."""
    files = [str(folder / name) for name in ("rows.npy", "checkpoint", "model")]
    command = [sys.executable, "-c", CHILD, *files, kind]
    done = 0
    while done < kills:
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            child.stdout.readline()
            time.sleep(moments.uniform(0, 1.5))
            child.send_signal(signal.SIGKILL)
        # One that was done by then counts for nothing.
        done += child.returncode == -signal.SIGKILL
    subprocess.run(command, check=True, capture_output=True)
    assert sorted(file.name for file in folder.iterdir()) == ["model", "model-whole", "rows.npy"]
    assert (folder / "model").read_bytes() == (folder / "model-whole").read_bytes()


@pytest.mark.slow  # processes of their own; `Killed` winds up as little as a signal does
@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGKILL")
@pytest.mark.parametrize(
    ("kind", "fits", "kills"),
    [
        ("rows", 1, 3),
        ("rows", 10, 1),
        ("landmarks", 5, 1),
        ("path", 5, 1),
    ],
)
def test_killed_at_random_moments_it_goes_on_to_the_same_bits(tmp_path, kind, fits, kills):
    np.save(tmp_path / "rows.npy", ribbon())
    moments = random.Random(0)
    for _ in range(fits):
        assert_same_after_kills(tmp_path, kind, kills, moments)

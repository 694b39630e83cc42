import numpy as np
import pytest

from twofold.datasets import data_file, load_npz


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with shared/data beside it, entered in one of its inner folders."""
    inner = tmp_path / "checkout" / "experiments"
    inner.mkdir(parents=True)
    (tmp_path / "shared" / "data").mkdir(parents=True)
    monkeypatch.chdir(inner)
    monkeypatch.delenv("TWOFOLD_DATA", raising=False)
    return tmp_path


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, X=np.full((2, 3), value), y=np.array([0, 1]))


def test_found_beside_the_checkout(checkout):
    write(checkout / "shared" / "data" / "toy.npz", 1.0)
    assert data_file("toy") == checkout / "shared" / "data" / "toy.npz"


def test_nearer_folder_wins(checkout):
    write(checkout / "shared" / "data" / "toy.npz", 1.0)
    write(checkout / "checkout" / "shared" / "data" / "toy.npz", 2.0)
    assert load_npz("toy")["X"][0, 0] == 2.0


def test_variable_comes_first(checkout, monkeypatch):
    write(checkout / "shared" / "data" / "toy.npz", 1.0)
    write(checkout / "elsewhere" / "toy.npz", 3.0)
    monkeypatch.setenv("TWOFOLD_DATA", str(checkout / "elsewhere"))
    assert load_npz("toy")["X"][0, 0] == 3.0


def test_file_missing_under_the_variable_is_sought_further(checkout, monkeypatch):
    write(checkout / "shared" / "data" / "toy.npz", 1.0)
    monkeypatch.setenv("TWOFOLD_DATA", str(checkout / "empty"))
    assert data_file("toy") == checkout / "shared" / "data" / "toy.npz"


def test_load_returns_every_array(checkout):
    write(checkout / "shared" / "data" / "toy.npz", 1.0)
    arrays = load_npz("toy")
    assert sorted(arrays) == ["X", "y"]
    np.testing.assert_array_equal(arrays["X"], np.ones((2, 3)))
    np.testing.assert_array_equal(arrays["y"], [0, 1])


def test_pickled_arrays_are_not_opened(checkout):
    np.savez(checkout / "shared" / "data" / "toy.npz", X=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        load_npz("toy")


def test_missing_file_names_the_places_and_the_variable(checkout, monkeypatch):
    monkeypatch.setenv("TWOFOLD_DATA", str(checkout / "named"))
    with pytest.raises(FileNotFoundError) as caught:
        data_file("no_such_data")
    message = str(caught.value)
    assert "no_such_data.npz" in message
    assert "TWOFOLD_DATA" in message
    for folder in ("named", "checkout/experiments/shared/data", "checkout/shared/data"):
        assert str(checkout / folder) in message

import numpy as np
import pytest
from sklearn.datasets import load_digits

from twofold.datasets import data_file, load_digits_split, load_npz


def test_split_holds_every_row_once_with_its_label():
    split = load_digits_split()
    assert split.Y_train.shape == (1617, 64)
    assert split.Y_test.shape == (180, 64)
    whole, labels = load_digits(return_X_y=True)
    ours = np.column_stack(
        [np.vstack([split.Y_train, split.Y_test]), [*split.labels_train, *split.labels_test]]
    )
    theirs = np.column_stack([whole, labels])
    np.testing.assert_array_equal(ours[np.lexsort(ours.T)], theirs[np.lexsort(theirs.T)])


def test_split_is_fixed_by_its_seed():
    first, again, other = load_digits_split(), load_digits_split(0), load_digits_split(1)
    np.testing.assert_array_equal(first.Y_test, again.Y_test)
    np.testing.assert_array_equal(first.labels_test, again.labels_test)
    assert not np.array_equal(first.Y_test, other.Y_test)


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

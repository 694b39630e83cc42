from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from twofold import UKR, Mixed, Scaled, load, upgrade
from twofold.contract.fitted_state import COMMON, Notes, check_state
from twofold.contract.row_notes import RowNotes
from twofold.explorer.page import find_payload
from twofold.plots.row_colors import row_colors, row_name


@pytest.fixture(scope="module")
def model() -> UKR:
    Y = np.random.default_rng(0).normal(size=(40, 6))
    return UKR(init="pca", max_iter=3).fit(Y)


def fresh(model: UKR) -> UKR:
    vars(model).pop("notes_", None)
    return model


def test_a_model_has_no_notes_unless_given(model):
    assert not hasattr(fresh(model), "notes_")


def test_notes_are_kept_in_files(model, tmp_path):
    labels = {"kind": np.repeat(["a", "b"], 20), "age": np.arange(40.0)}
    names = [f"row {i}" for i in range(40)]
    fresh(model).annotate(names=names, labels=labels, image_shape=(2, 3)).save(tmp_path / "m")
    notes = load(tmp_path / "m").notes_
    assert notes.names.tolist() == names
    assert list(notes.labels) == ["age", "kind"]
    np.testing.assert_array_equal(notes.labels["kind"], labels["kind"])
    np.testing.assert_array_equal(notes.labels["age"], labels["age"])
    assert notes.image_shape == (2, 3)


def test_what_is_not_given_stays(model):
    fresh(model).annotate(image_shape=(3, 2)).annotate(labels=np.arange(40))
    assert model.notes_.image_shape == (3, 2)
    assert list(model.notes_.labels) == ["label"]


def test_labels_of_many_kinds():
    frame = pd.DataFrame({"a": ["x", None, "y"], "b": pd.Categorical(["u", "v", "u"])})
    notes = RowNotes().with_labels(frame, 3)
    assert notes.labels["a"].tolist() == ["x", "", "y"]
    assert notes.labels["b"].tolist() == ["u", "v", "u"]
    named = RowNotes().with_labels(pd.Series([1, 2, 3], name="size"), 3)
    assert named.labels["size"].dtype.kind == "i"
    assert RowNotes().with_labels([True, False, True], 3).labels["label"].tolist() == [
        "True",
        "False",
        "True",
    ]


def test_ordered_levels_keep_their_order_in_files_pictures_and_pages(model, tmp_path):
    levels = ["mild", "grave", "all gone"]
    grades = pd.Categorical([["grave", "mild", None, "all gone"][k % 4] for k in range(40)], levels)
    labels = {
        "grade": grades.as_ordered(),
        "step": pd.Series(np.arange(40) % 3).astype(pd.CategoricalDtype([2, 0, 1], ordered=True)),
        "kind": grades,
    }
    fresh(model).annotate(labels=pd.DataFrame(labels)).save(tmp_path / "m.twofold")
    found = load(tmp_path / "m.twofold")
    assert found.notes_.orders == {"grade": levels, "step": ["2", "0", "1"]}
    colors = row_colors(found, "grade")
    assert colors.names == levels
    assert colors.codes[:4].tolist() == [1, 0, -1, 2]
    assert row_colors(found, "kind").names == ["all gone", "grave", "mild"]
    assert row_colors(found, labels["step"]).names == ["2", "0", "1"]
    header = find_payload(
        found, None, 20, data=None, view="auto", labels=None, names=None, image_shape=None
    ).header
    assert header["rows"]["labels"]["grade"]["values"] == levels
    assert header["rows"]["labels"]["step"]["values"] == ["2", "0", "1"]
    # Other labels take the place of these, with their orders.
    assert found.annotate(labels={"grade": np.arange(40)}).notes_.orders == {}


def test_a_files_order_is_of_its_labels(model):
    fresh(model)
    sizes = {"N": 40, "D": 6}
    for orders in ({"other": ["a"]}, {"kind": "ab"}, {"kind": [1, 2]}, ["kind"]):
        notes = RowNotes(labels={"kind": np.repeat(["a", "b"], 20)}, orders=orders)
        with pytest.raises(ValueError, match="orders that are no levels of its labels"):
            Notes().check(notes, sizes)


def test_na_is_no_label(model):
    labels = pd.array([True, None] * 20, dtype="boolean")
    fresh(model).annotate(labels=labels)
    assert model.notes_.labels["label"].tolist() == ["True", ""] * 20


@pytest.mark.parametrize("dtype", ["Int64", "Float64"])
def test_numbers_with_na_stay_numbers(dtype):
    notes = RowNotes().with_labels(pd.Series([1, None, 3], dtype=dtype), 3)
    np.testing.assert_array_equal(notes.labels["label"], [1, np.nan, 3])
    assert notes.labels["label"].dtype == np.float64


def test_infinite_labels_are_kept_in_files(model, tmp_path):
    labels = np.array([1.0] * 37 + [np.inf, -np.inf, np.nan])
    fresh(model).annotate(labels=labels).save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").notes_.labels["label"], labels)


@pytest.mark.parametrize("column", [np.ones(3), np.ones((40, 1)), np.ones(40, dtype=complex)])
def test_labels_that_are_none_of_the_rows_are_refused_in_files(model, column):
    state = {"embedding_": model.embedding_, "notes_": RowNotes(labels={"a": column})}
    expected = {"embedding_": COMMON["embedding_"], "notes_": COMMON["notes_"]}
    with pytest.raises(ValueError, match=r"`notes_` (has shape|holds labels that are neither)"):
        check_state(state, expected)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"names": ["a", "b"]}, "each of the 40 rows"),
        ({"labels": {"kind": np.arange(3)}}, r"labels\['kind'\].*got 3"),
        ({"labels": np.ones((40, 2))}, "array of shape"),
        ({"image_shape": (2, 2)}, "6 features.*fills 4"),
        ({"image_shape": (1, 3, 2)}, "height, width, 3"),
    ],
)
def test_notes_that_do_not_fit_are_refused(model, wrong, message):
    with pytest.raises(ValueError, match=message):
        fresh(model).annotate(**wrong)
    assert not hasattr(model, "notes_")


def test_notes_grow_with_the_model():
    rng = np.random.default_rng(1)
    for make in (UKR, lambda **kw: Scaled(UKR(**kw))):
        model = make(init="pca", max_iter=3).fit(rng.normal(size=(30, 4)))
        model.annotate(names=[str(i) for i in range(30)], labels=np.arange(30))
        model.partial_fit(rng.normal(size=(5, 4)))
        assert model.notes_.names[-6:].tolist() == ["29", "", "", "", "", ""]
        assert np.isnan(model.notes_.labels["label"][-5:]).all()


def test_a_new_fit_forgets_notes():
    rng = np.random.default_rng(2)
    model = UKR(init="pca", max_iter=3).fit(rng.normal(size=(30, 4)))
    model.annotate(labels=np.arange(30)).fit(rng.normal(size=(20, 4)))
    assert not hasattr(model, "notes_")


@pytest.mark.parametrize("shape", ["x", 5, ("a", 2)])
def test_shapes_of_images_are_whole_numbers(model, shape):
    with pytest.raises(ValueError, match=r"`image_shape` must be .* whole numbers; got"):
        fresh(model).annotate(image_shape=shape)


def test_an_index_of_texts_or_dates_names_the_rows(tmp_path):
    rng = np.random.default_rng(0)
    texts = [f"item {row}" for row in range(20)]
    frame = pd.DataFrame(rng.normal(size=(20, 3)), columns=list("abc"), index=texts)
    frame.iloc[7] = frame.iloc[3]  # equal rows keep their names
    plain = UKR(init="pca", max_iter=2)
    for model in (clone(plain), Scaled(plain), Mixed(plain)):
        assert model.fit(frame).notes_.names.tolist() == texts
        assert row_name(model, 7) == "item 7"
        assert "rows.names" in find_payload(model, None, 20, data=None, view="auto").header_text
        model.save(tmp_path / "m")
        assert row_name(load(tmp_path / "m"), 3) == "item 3"
        assert model.annotate(names=range(20)).notes_.names[3] == "3"
        assert not hasattr(model.fit(frame.reset_index(drop=True)), "notes_")
    dated = frame.set_axis(pd.date_range("2020-01-01", periods=20))
    assert row_name(UKR(init="pca", max_iter=2).fit(dated), 1) == "2020-01-02"
    assert row_name(upgrade(rng.normal(size=(20, 2)), frame), 5) == "item 5"
    numbered = frame.set_axis(rng.permutation(20))
    assert not hasattr(UKR(init="pca", max_iter=2).fit(numbered), "notes_")


def test_rows_that_come_later_have_the_names_of_their_frame():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(12, 3)), columns=list("abc"))
    model = UKR(1, init="pca", max_iter=2).fit(frame[:10])
    model.partial_fit(frame[10:].set_axis(["x", "y"]))
    assert model.notes_.names.tolist() == [*[""] * 10, "x", "y"]
    model.partial_fit(frame[:1] + 1)
    assert model.notes_.names.tolist()[9:] == ["", "x", "y", ""]
    assert row_name(model, 12) == "row 13"

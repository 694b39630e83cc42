from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from oracles import page_regression as oracle

from twofold import UKR, upgrade
from twofold.contract.left_open import LeftOpenWarning
from twofold.explorer.budget import TooLargeError, fit_payload, in_order_of_rows
from twofold.explorer.label_columns import add_labels
from twofold.explorer.page import make_wanted
from twofold.explorer.payload import Payload, Shown, compose
from twofold.explorer.row_facts import row_facts
from twofold.explorer.scale import Scale, bits_for
from twofold.explorer.sections import Sections, add_fact
from twofold.explorer.stand_in import cover, evaluate, make_stand_in, make_trial

OPTIONS = {"n_jobs": 1, "verbose": False}


def sheet(n=120, D=5, q=2, seed=0):
    """Return a picture with its own units, and rows that belong to it."""
    rng = np.random.default_rng(seed)
    T = rng.uniform(-1, 1, size=(n, q))
    A = rng.normal(size=(q, D))
    Y = np.sin(T @ A) + 0.5 * T[:, :1] + 0.02 * rng.normal(size=(n, D))
    return T * 30 + 100, 10 * Y


def drawn(model, **changes):
    asked = {
        "title": None,
        "data": None,
        "image_shape": None,
        "view": "auto",
        "labels": None,
        "names": None,
    } | changes
    return make_wanted(model, **asked)


def payload_of(model, room=10**7, **changes):
    found = fit_payload(model, drawn(model, **changes), room)
    assert found.size() <= room
    return found.header, oracle.sections(found.header, found.data)


def in_domain(model, n=50, seed=0):
    rng = np.random.default_rng(seed)
    X = model.embedding_
    drawn = rng.uniform(X.min(axis=0), X.max(axis=0), (20 * n, X.shape[1]))
    return drawn[model.in_domain(drawn)][:n]


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"degree": 1},
        {"degree": 2},
        {"degree": "2-axes"},
        {"kernel": "quartic"},
        {"kernel": "triweight"},
    ],
    ids=str,
)
def test_the_page_has_all_it_needs_for_the_regression(parameters):
    X, Y = sheet()
    model = upgrade(X, Y, **OPTIONS, **parameters)
    header, arrays = payload_of(model)
    places = in_domain(model)
    step = np.array(header["quantised"]["step"])
    difference = np.abs(oracle.regress(header, arrays, places) - model.inverse_transform(places))
    # Weights of local polynomials may be negative, so that rounding errors add up to a little more.
    assert (difference <= (0.51 if not parameters.get("degree") else 2) * step + 1e-4).all()
    assert header["regression"]["exact"]
    np.testing.assert_allclose(
        oracle.density(header, arrays, places), model.density(places), rtol=1e-3
    )
    assert header["domain_threshold"] == model.domain_threshold_


def test_local_widths_weights_and_gaps():
    X, Y = sheet()
    rng = np.random.default_rng(1)
    Y[rng.random(Y.shape) < 0.1] = np.nan
    weights = rng.uniform(0.5, 2, len(Y))
    model = upgrade(X, Y, bandwidth="local", sample_weight=weights, **OPTIONS)
    header, arrays = payload_of(model)
    assert {"reg.w", "reg.h"} <= set(arrays)
    places = in_domain(model)
    np.testing.assert_allclose(
        oracle.regress(header, arrays, places),
        model.inverse_transform(places),
        atol=2 * max(header["quantised"]["step"]),
    )
    np.testing.assert_array_equal(np.isnan(oracle.values(header, arrays["reg.y"])), np.isnan(Y))


def test_equal_and_left_out_rows_find_their_data():
    _, Y = sheet(60)
    Y[7] = Y[3]
    weights = np.ones(60)
    weights[[5, 20]] = 0
    model = UKR(init="pca", max_iter=3, **OPTIONS).fit(Y, sample_weight=weights)
    header, arrays = payload_of(model)
    ref = arrays["rows.ref"]
    assert ref[7] == ref[3]
    assert ref[[5, 20]].tolist() == [-1, -1]
    np.testing.assert_allclose(arrays["rows.x"], model.embedding_, rtol=1e-6)
    found = oracle.values(header, arrays["reg.y"])[ref]
    known = ref >= 0
    np.testing.assert_allclose(found[known], Y[known], atol=max(header["quantised"]["step"]))


def test_rows_in_order_are_written_once():
    _, Y = sheet(60)
    model = UKR(init="pca", max_iter=3, **OPTIONS).fit(Y)
    description, member = in_order_of_rows(model)
    np.testing.assert_array_equal(member, np.arange(60))
    np.testing.assert_array_equal(description.data, Y)
    _, arrays = payload_of(model)
    assert not {"rows.x", "rows.ref", "rows.y"} & set(arrays)


def test_landmark_models_show_rows_with_their_table():
    _, Y = sheet(200)
    model = UKR(landmarks=30, init="pca", max_iter=3, **OPTIONS).fit(Y)
    header, arrays = payload_of(model)
    assert not header["rows"]["has_data"]
    assert (arrays["rows.ref"] == -1).all()
    assert header["shows"][0] == "where all 200 rows are, without their data"
    header, arrays = payload_of(model, data=Y)
    assert header["rows"]["has_data"]
    assert arrays["reg.y"].shape == (30, 5)
    np.testing.assert_allclose(
        oracle.values(header, arrays["rows.y"]), Y, atol=max(header["quantised"]["step"])
    )
    assert "rows.ref" not in arrays
    with pytest.raises(ValueError, match="with 200 rows; got 100"):
        payload_of(model, data=Y[:100])


def test_features_of_landmark_models_range_over_f_at_the_rows():
    _, Y = sheet(200)
    model = UKR(landmarks=30, init="pca", max_iter=3, **OPTIONS).fit(Y)
    # Landmarks may carry anything: here f is smooth, and they are not.
    model.data_ = model.data_ + 50 * np.random.default_rng(0).normal(size=model.data_.shape)
    model._wake()
    header, _ = payload_of(model)
    F = model.inverse_transform(model.embedding_)
    np.testing.assert_allclose(header["feature_low"], F.min(axis=0), rtol=1e-6)
    np.testing.assert_allclose(header["feature_high"], F.max(axis=0), rtol=1e-6)


def test_landmark_models_show_some_rows_where_room_is_short():
    _, Y = sheet(2_000, D=40)
    model = UKR(landmarks=30, init="pca", max_iter=2, **OPTIONS).fit(Y)
    header, arrays = payload_of(model, room=70_000, data=Y)
    ref = arrays["rows.ref"]
    shown = np.flatnonzero(ref >= 0)
    assert 100 < len(shown) < 1_900
    assert header["regression"]["exact"]
    np.testing.assert_allclose(
        oracle.values(header, arrays["rows.y"])[ref[shown]],
        Y[shown],
        atol=max(header["quantised"]["step"]),
    )


def test_whole_numbers_are_kept():
    rng = np.random.default_rng(0)
    Y = rng.integers(-3, 200, size=(50, 4)).astype(float)
    assert bits_for([Y]) == (8,)
    scale = Scale.of([Y], 8)
    assert scale.is_exact
    np.testing.assert_array_equal(scale.rounded(Y), Y)
    assert bits_for([Y + 0.5]) == (16, 8)
    assert bits_for([2 * Y]) == (16, 8)


@pytest.mark.parametrize("bits", [8, 16])
def test_codes_are_within_half_a_step(bits):
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(5_000, 6)) * 10.0 ** np.arange(-3, 3)
    Y[:, 2] = 7.5
    Y[rng.random(Y.shape) < 0.05] = np.nan
    scale = Scale.of([Y], bits)
    found = scale.rounded(Y)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(Y))
    assert np.nanmax(np.abs(found - Y) / np.where(scale.step > 0, scale.step, 1)) < 0.51
    assert scale.missing == 2**bits - 1
    assert Scale.of([np.nan_to_num(Y)], bits).missing is None


@pytest.mark.parametrize("room", [150_000, 80_000, 50_000, 25_000, 18_000])
def test_every_budget_is_kept(room):
    X, Y = sheet(600, D=60)
    header, arrays = payload_of(upgrade(X, Y, **OPTIONS), room=room)
    expected = "uint16" if room == 150_000 else "uint8"
    assert header["sections"]["reg.y"]["dtype"] == expected
    assert header["regression"]["exact"] == (room >= 80_000)
    assert len(arrays.get("rows.x", arrays["reg.x"])) == 600


def test_what_cannot_fit_says_by_how_much():
    X, Y = sheet(600, D=60)
    model = upgrade(X, Y, **OPTIONS)
    with pytest.raises(TooLargeError) as caught:
        payload_of(model, room=5_000)
    payload_of(model, room=5_000 + caught.value.excess)


@pytest.mark.slow
def test_a_stand_in_is_near_the_model_and_says_how_near():
    X, Y = sheet(600, D=60)
    model = upgrade(X, Y, **OPTIONS)
    header, arrays = payload_of(model, room=40_000)
    about = header["regression"]
    places = in_domain(model, 200, seed=5)
    gaps = oracle.regress(header, arrays, places) - model.inverse_transform(places)
    spread = np.sqrt(Y.var(axis=0).sum())
    found = np.sqrt(np.square(gaps).sum(axis=1).mean()) / spread
    assert found < 0.15
    assert about["difference"] == pytest.approx(found, rel=0.4)
    assert header["shows"][1].startswith(f"a stand-in of {about['n']:,} landmarks: differs by ")
    # Density and domain are those of the model, nearly.
    ratio = oracle.density(header, arrays, places) / model.density(places)
    assert np.median(np.abs(np.log(ratio))) < 0.3
    rng = np.random.default_rng(1)
    around = rng.uniform(X.min(axis=0) - 10, X.max(axis=0) + 10, (500, 2))
    inside = oracle.density(header, arrays, around) >= header["domain_threshold"]
    assert (inside == model.in_domain(around)).mean() > 0.9


def test_more_references_make_a_better_stand_in():
    X, Y = sheet(800)
    model = upgrade(X, Y, **OPTIONS)
    trial = make_trial(model, model.latent_scale_, 1.0)
    made = [make_stand_in(model, model.latent_scale_, n, trial) for n in (50, 200, 2_000)]
    differences = [found.difference for found in made]
    assert differences[1] < 0.6 * differences[0]
    assert differences[2] < 0.5 * differences[1]


@pytest.mark.slow
def test_models_of_another_kind_get_a_stand_in():
    _, Y = sheet(80)
    model = UKR(data_kernel="rbf", init="pca", max_iter=3, **OPTIONS).fit(Y)
    assert model.kernel_regression() is None
    header, arrays = payload_of(model)
    assert not header["regression"]["exact"]
    assert header["regression"]["difference"] < 0.1
    np.testing.assert_allclose(
        oracle.values(header, arrays["rows.y"])[arrays.get("rows.ref", np.arange(80))],
        Y,
        atol=max(header["quantised"]["step"]),
    )


def test_the_stand_in_is_evaluated_as_the_page_does():
    X, Y = sheet(300)
    model = upgrade(X, Y, **OPTIONS)
    made = make_stand_in(model, model.latent_scale_, 80, make_trial(model, model.latent_scale_, 1))
    own = np.full(300, -1)
    shown = Shown(made.description, made.total_weight, made.threshold, None, own, 16, 0.0)
    found = compose(model, drawn(model), shown)
    header, arrays = found.header, oracle.sections(found.header, found.data)
    places = in_domain(model, 20)
    f, summed = evaluate(made.description, places)
    np.testing.assert_allclose(f, oracle.regress(header, arrays, places), atol=5e-3)
    np.testing.assert_allclose(
        summed / made.total_weight, oracle.density(header, arrays, places), rtol=1e-3
    )


@pytest.mark.parametrize("q", [1, 2, 3])
def test_a_cover_leaves_no_holes(q):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(3_000, q)), rng.normal(size=(50, q)) + 20])
    chosen = X[cover(X, 200)]
    assert 60 < len(chosen) <= 200
    assert len(np.unique(chosen, axis=0)) == len(chosen)
    gaps = np.sqrt(((X[:, None] - chosen[None]) ** 2).sum(axis=2)).min(axis=1)
    assert gaps.max() < 8 * np.median(gaps[gaps > 0])
    np.testing.assert_array_equal(cover(X, 10**6), np.arange(len(X)))


def test_many_rows_have_coarse_positions(monkeypatch):
    monkeypatch.setattr("twofold.explorer.payload.MANY_ROWS", 100)
    _, Y = sheet(200)
    model = UKR(landmarks=30, init="pca", max_iter=3, **OPTIONS).fit(Y)
    header, arrays = payload_of(model)
    assert header["sections"]["rows.x"]["dtype"] == "uint16"
    reach = np.ptp(model.embedding_, axis=0)
    assert (np.abs(arrays["rows.x"] - model.embedding_) <= 0.51 * reach / 65_535).all()


def test_labels():
    sections = Sections()
    about = add_labels(
        sections,
        {
            "class": np.array(["b", "a", "", "b"]),
            "digit": np.array([10, 2, 2, 0]),
            "age": np.array([1.5, np.nan, 2, 3]),
            "text": np.array(["10", "9", "x", "nan"]),
            "no": np.array(["", "", "", ""]),
            "took": np.array(["0 days 00:01:00", "", "1 days 00:00:01", "0 days 00:00:00"]),
        },
    )
    assert about == {
        "class": {"kind": "category", "values": ["a", "b"]},
        "digit": {"kind": "category", "values": ["0", "2", "10"]},
        "age": {"kind": "number"},
        "text": {"kind": "category", "values": ["9", "10", "nan", "x"]},
        "no": {"kind": "category", "values": []},
        "took": {"kind": "number"},
    }
    arrays = oracle.sections(
        {"sections": sections.entries}, Payload({}, sections.compressed()).data
    )
    assert arrays["rows.label.class"].tolist() == [1, 0, 255, 1]
    assert arrays["rows.label.digit"].tolist() == [2, 1, 1, 0]
    assert arrays["rows.label.text"].tolist() == [1, 0, 3, 2]
    np.testing.assert_array_equal(arrays["rows.label.age"], [1.5, np.nan, 2, 3])
    np.testing.assert_array_equal(arrays["rows.label.took"], [60, np.nan, 86_401, 0])
    many = Sections()
    add_labels(many, {"id": np.array([f"r{i}" for i in range(300)])})
    assert many.entries["rows.label.id"]["dtype"] == "uint16"
    with pytest.raises(ValueError, match="70,000 different values"):
        add_labels(Sections(), {"id": np.array([f"r{i}" for i in range(70_000)])})


def test_facts_come_back_to_a_step():
    values = np.geomspace(1e-4, 1e4, 100)
    values[3] = 0
    sections = Sections()
    add_fact(sections, "rows.magnification", values, log=True)
    add_fact(sections, "rows.density", np.linspace(2, 3, 100))
    add_fact(sections, "rows.flat", np.ones(100))
    arrays = oracle.sections({"sections": sections.entries}, sections.compressed())
    entry = sections.entries["rows.magnification"]
    code = arrays["rows.magnification"] / 254
    found = entry["low"] * (entry["high"] / entry["low"]) ** code
    np.testing.assert_allclose(found[4:], values[4:], rtol=0.05)
    entry = sections.entries["rows.density"]
    found = entry["low"] + (entry["high"] - entry["low"]) * arrays["rows.density"] / 254
    np.testing.assert_allclose(found, np.linspace(2, 3, 100), atol=0.003)
    assert (arrays["rows.flat"] == 0).all()


def test_facts_are_those_of_the_model():
    X, Y = sheet(100)
    model = upgrade(X, Y, **OPTIONS)
    header, arrays = payload_of(model)
    entry = header["sections"]["rows.density"]
    found = entry["low"] + (entry["high"] - entry["low"]) * arrays["rows.density"] / 254
    np.testing.assert_allclose(found, model.density(X), atol=(entry["high"] - entry["low"]) / 500)
    order = np.argsort(model.magnification(X))
    assert (np.diff(arrays["rows.magnification"][order].astype(int)) >= 0).all()


def test_three_dimensions_and_one():
    for q in (1, 3):
        X, Y = sheet(100, q=q)
        model = upgrade(X, Y, **OPTIONS)
        header, arrays = payload_of(model)
        assert header["model"]["n_components"] == q
        assert arrays["reg.x"].shape == (100, q)


def test_the_header_may_stand_in_a_page():
    nasty = Payload({"title": "</script><!--\ud800 😀 \u2028 \"'"}, b"")
    text = nasty.header_text
    assert "<" not in text
    assert "😀" in text
    text.encode("utf-8")


# ---- facts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{}, {"bandwidth": "local"}], ids=str)
def test_the_density_of_rows_is_that_of_the_model(more):
    X, Y = sheet(150)
    weights = np.random.default_rng(1).uniform(0.5, 2, 150)
    model = upgrade(X, Y, sample_weight=weights, **OPTIONS, **more)
    found, n_places = row_facts(model)
    assert n_places is None
    np.testing.assert_allclose(found["density"], model.density(X), rtol=1e-9)
    np.testing.assert_allclose(found["magnification"], model.magnification(X))


def test_the_magnification_of_wide_tables_is_interpolated(monkeypatch):
    X, Y = sheet(3_000, D=30)
    model = upgrade(X, Y, **OPTIONS)
    monkeypatch.setattr("twofold.explorer.row_facts.PRODUCTS", 1.0)
    monkeypatch.setattr("twofold.explorer.row_facts.LEAST_PLACES", 800)
    found, n_places = row_facts(model)
    assert 200 < n_places <= 800
    exact = np.log(model.magnification(X))
    error = np.log(found["magnification"]) - exact
    assert np.sqrt(np.mean(error**2)) < 0.5 * exact.std()
    header, _ = payload_of(model)
    assert header["shows"][2].startswith(f"magnification measured at {n_places:,} places")


def test_own_values_take_a_quarter_of_the_page_and_what_is_rounded_is_named():
    T, Y = sheet(n=300, D=8)
    names = [*"abcdefg", "h"]
    Y[:, 7] = np.round(Y[:, 7], 1)  # its codes give it back
    model = upgrade(T, pd.DataFrame(Y, columns=names), n_jobs=1, verbose=False)
    wanted, room = drawn(model), 10**7
    without = fit_payload(model, wanted, room)
    sizes = {}
    for page in (0, 20_000, 10**6):
        found = fit_payload(model, wanted, room, page)
        arrays = oracle.sections(found.header, found.data)
        own = found.header["rows"]["own"]
        sizes[page] = len(own)
        bare = {name: array for name, array in arrays.items() if name != "rows.own"}
        assert list(bare) == [n for n in without.header["sections"] if n != "rows.own"]
        for values, j in zip(arrays.get("rows.own", ()), own, strict=True):
            np.testing.assert_array_equal(values, model.data_[:, j])
        rounded = [name for j, name in enumerate(names[:7]) if j not in own]
        said = found.header["shows"][-1]
        if rounded:
            assert "rounded values of" in said
            assert rounded[0] in said
            assert (f"{len(rounded) - 3} others" in said) == (len(rounded) > 4)
        else:
            assert said == "CSV files have the values of the table"
        added = found.size() - without.size()
        if page:
            assert added <= (page + found.size()) / 4 + 200
    assert sizes[0] < sizes[20_000] < sizes[10**6] == 7


def test_a_map_that_leaves_much_open_says_so_where_it_is_seen():
    _, Y = sheet()
    header, _ = payload_of(UKR(init="pca", max_iter=3, **OPTIONS).fit(Y))
    assert header["warning"] is None
    noise = np.random.default_rng(0).normal(size=(60, 20))
    with pytest.warns(LeftOpenWarning):
        model = UKR(1, init="pca", max_iter=3, **OPTIONS).fit(noise)
    header, _ = payload_of(model)
    assert header["warning"] == model.left_open().warning() != ""

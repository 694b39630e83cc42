"""The scripts of the page compute what the model computes, up to the quantisation of its rows."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import twofold
from twofold import UKR, upgrade
from twofold.contract.kernel_description import KernelDescription
from twofold.engine import KernelSums
from twofold.kernels import get_kernel
from twofold.ukr.surface import CarriedRows, Surface

SCRIPTS = Path(twofold.__file__).parent / "explorer" / "static"
DRIVER = Path(__file__).parent / "numbers_driver.mjs"
NODE = shutil.which("node")
DEGREES = (0, 1, 2, "2-axes")
OPTIONS = {"n_jobs": 1, "verbose": False, "random_state": 0, "init": "pca", "max_iter": 3}

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


def quantise(Y, bits):
    """Return codes (n, D), low and step (D,), and the code for missing entries."""
    top = 2**bits - 1
    missing = top if np.isnan(Y).any() else None
    low, high = np.nanmin(Y, axis=0), np.nanmax(Y, axis=0)
    step = (high - low) / (top if missing is None else top - 1)
    codes = np.rint((Y - low) / np.where(step > 0, step, 1))
    codes = np.where(np.isnan(codes), 0 if missing is None else missing, codes)
    return codes.astype(f"<u{bits // 8}"), low, step, missing


def payload(description, *, threshold=0.0, bits=16, rows=None, entries=(), has_data=True):
    """Return header and data of a regression, with further sections ``(name, array, more)``."""
    Y, m = description["data"], len(description["data"])
    codes, low, step, missing = quantise(Y, bits)
    sections = [("reg.x", description["latent"].astype("<f4"), {}), ("reg.y", codes, {}), *entries]
    if (description["weights"] != 1).any():
        sections.append(("reg.w", description["weights"].astype("<f4"), {}))
    if description["widths"] is not None:
        sections.append(("reg.h", description["widths"].astype("<f4"), {}))
    mass = np.where(np.isnan(Y), 0, description["weights"][:, None])
    mean = (mass * np.nan_to_num(Y)).sum(axis=0) / mass.sum(axis=0)
    header = {
        "format": 1,
        "model": {"n_features": Y.shape[1], "n_components": description["latent"].shape[1]},
        "regression": {
            **{name: description[name] for name in ("kernel", "degree", "cutoff")},
            "latent_scale": np.asarray(description["latent_scale"], dtype=float).tolist(),
            "n": m,
            "mean": mean.tolist(),
            "total_weight": float(description["weights"].sum()),
        },
        "domain_threshold": float(threshold),
        "rows": {"n": m, "has_data": has_data, "labels": {}, **(rows or {})},
        "quantised": {"low": low.tolist(), "step": step.tolist(), "missing": missing},
        "feature_low": low.tolist(),
        "feature_high": np.nanmax(Y, axis=0).tolist(),
        "sections": {},
    }
    data = b""
    for name, array, more in sections:
        place = {"offset": len(data), "dtype": array.dtype.name, "shape": list(array.shape)}
        header["sections"][name] = {**place, **more}
        data += array.tobytes() + bytes(-array.nbytes % 8)
    return header, data


def description_of(model):
    return vars(model.kernel_regression())


@pytest.fixture(scope="module")
def ask_all(tmp_path_factory):
    """Return a function that passes on jobs ``(header, data, questions)`` and returns answers.

    Questions are lists of arguments, by the name of what is asked.
    """
    scripts = tmp_path_factory.mktemp("scripts")
    for script in SCRIPTS.glob("*.js"):
        shutil.copy(script, scripts)
    (scripts / "package.json").write_text('{"type": "module"}')

    def ask_all(jobs):
        plain = []
        for header, data, questions in jobs:
            text = base64.b64encode(gzip.compress(data)).decode()
            plain.append({"header": header, "data": text, "questions": _plain(questions)})
        (scripts / "jobs.json").write_text(json.dumps(plain))
        command = [NODE, str(DRIVER), str(scripts), str(scripts / "jobs.json")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return ask_all


@pytest.fixture
def ask(ask_all):
    """Return a function for a single job."""
    return lambda header, data, **questions: ask_all([(header, data, questions)])[0]


def _plain(value):
    """Return something that JSON knows, None for NaN."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and np.isnan(value) else value


def sheet(n=50, q=2, *, seed=0, missing=0.0):
    """Return noisy rows of a bent sheet; entries are missing in three patterns of columns."""
    rng = np.random.default_rng(seed)
    T = rng.uniform(-1, 1, size=(n, q))
    Y = np.column_stack([T, T[:, 0] ** 2, np.sin(2 * T[:, -1]), 100 * T[:, 0], np.ones(n)])
    Y[:, :-1] += 0.02 * rng.normal(size=(n, Y.shape[1] - 1)) * np.std(Y[:, :-1], axis=0)
    if missing:
        Y[rng.random(n) < missing, 0] = np.nan
        Y[np.ix_(rng.random(n) < missing, [2, 3])] = np.nan
    return Y


def places(X, *, n=40):
    """Return latent places on the map, beside it, and far away."""
    low, extent = X.min(axis=0), np.ptp(X, axis=0)
    share = np.random.default_rng(1).uniform(-0.3, 1.3, size=(n, X.shape[1]))
    around, far = low + share * extent, low + np.array([[4.0], [41.0]]) * extent
    return np.concatenate([X[:10], around, far]).astype(np.float64)


def steepness(surface, X):
    """Return Σ|b| (m, 1): by how much rounding errors of rows are amplified, 1 at degree 0."""
    return np.abs(surface.basis(X)).sum(axis=1, keepdims=True)


def assert_same(answers, f, density, step, amplified):
    # Half a step for the rows, as much again for latent points in single precision: far away a
    # small shift of them matters.
    scale = np.abs(f).max(axis=0)
    bound = step * (1.0 + 0.5 * (amplified > 1.001) * amplified) + 1e-6 * scale
    for name in ("at", "featureAt"):
        found = np.array(answers[name], dtype=float)
        assert np.isfinite(found).all()
        assert (np.abs(found - f) <= bound).all(), (np.abs(found - f) / bound).max()
    np.testing.assert_allclose(answers["density"], density, rtol=2e-4, atol=1e-9)


def check(ask_all, cases, *, bits=16):
    """Compare cases ``(description, surface, scale, places)`` with what the scripts say."""
    jobs, expected = [], []
    for description, surface, scale, P in cases:
        header, data = payload(description, threshold=surface.threshold, bits=bits)
        jobs.append((header, data, dict.fromkeys(("at", "featureAt", "density", "inDomain"), P)))
        expected.append((surface, P * scale, np.array(header["quantised"]["step"])))
    for answers, (surface, P, step) in zip(ask_all(jobs), expected, strict=True):
        density = surface.density(P)
        assert_same(answers, surface.regress(P), density, step, steepness(surface, P))
        assert answers["inDomain"] == (density >= surface.threshold).tolist()


def case_of(model):
    """Return a fitted model as a case; its surface is what its methods go through."""
    P = places(model.embedding_)
    found = model._surface.regress(P * model.latent_scale_)
    np.testing.assert_array_equal(found, model.inverse_transform(P))
    return description_of(model), model._surface, model.latent_scale_, P


@pytest.mark.slow
@pytest.mark.cover(1)
@pytest.mark.parametrize("missing", [0.0, 0.25])
@pytest.mark.parametrize("kernel", ["gaussian", "quartic", "triweight"])
def test_regression_and_density_are_the_models(ask_all, kernel, missing):
    Y = sheet(missing=missing)
    models = [UKR(kernel=kernel, degree=degree, **OPTIONS).fit(Y) for degree in DEGREES]
    check(ask_all, [case_of(model) for model in models])


@pytest.mark.slow
@pytest.mark.parametrize("q", [1, 3, 4])
def test_other_numbers_of_latent_dimensions(ask_all, q):
    Y = sheet(q=q, missing=0.1)
    check(ask_all, [case_of(UKR(q, degree=degree, **OPTIONS).fit(Y)) for degree in (0, 2)])


@pytest.mark.parametrize("degree", [0, 1])
def test_columns_that_half_of_the_map_never_observes(ask_all, degree):
    Y = sheet(120)
    Y[Y[:, 0] > -0.7, 2:4] = np.nan  # only a strip at the border observes them
    model = UKR(degree=degree, init=Y[:, :2] * 8, max_iter=0, n_jobs=1, verbose=False).fit(Y)
    far = model.embedding_[Y[:, 0] > 0.8]
    description, surface, scale, _ = case_of(model)
    check(ask_all, [(description, surface, scale, far)])


def test_weights_and_eight_bits(ask_all):
    weights = np.random.default_rng(3).uniform(0.1, 4, size=50)
    model = UKR(degree=1, **OPTIONS).fit(sheet(), sample_weight=weights)
    check(ask_all, [case_of(model)], bits=8)


@pytest.mark.slow
def test_widths_of_references(ask_all):
    rng = np.random.default_rng(4)
    t = np.sort(rng.normal(size=120))
    picture = np.column_stack([np.exp(t), 0.1 * np.exp(t) * rng.normal(size=120)])
    Y = np.column_stack([t, np.sin(3 * t), np.cos(3 * t)]) + 0.02 * rng.normal(size=(120, 3))
    options = {"bandwidth": "local", "n_jobs": 1, "verbose": False}
    models = [upgrade(picture, Y, degree=degree, **options) for degree in DEGREES]
    assert np.ptp(models[0].widths_) > 0.1
    check(ask_all, [case_of(model) for model in models])


def case_by_hand(X, Y, kernel, degree, P):
    """Return a surface that no model was trained for as a case."""
    weights, observed = np.ones(len(X)), np.isfinite(Y)
    rows = CarriedRows(Y, weights, None if observed.all() else observed, degree=degree)
    surface = Surface(X, rows, KernelSums(get_kernel(kernel), n_jobs=1))
    scale = np.ones(X.shape[1])
    description = KernelDescription(X, Y, weights, None, kernel, degree, 1e-6, scale)
    return vars(description), surface, scale, P


def test_epanechnikov_kernel(ask_all):
    X = np.random.default_rng(2).uniform(-2, 2, size=(50, 2))
    cases = [case_by_hand(X, sheet(), "epanechnikov", degree, places(X)) for degree in DEGREES]
    check(ask_all, cases)


@pytest.mark.slow
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_large_tables(ask_all, missing):
    # From a million codes on, sums go through vectors; 131 features do not fill them.
    rng = np.random.default_rng(6)
    X = rng.uniform(-2, 2, size=(8000, 2))
    Y = np.sin(X @ rng.normal(size=(2, 131))) + 0.1 * rng.normal(size=(8000, 131))
    if missing:
        Y[rng.random(Y.shape) < missing] = np.nan
    P = places(X, n=3)[8:]
    check(ask_all, [case_by_hand(X, Y, "quartic", degree, P) for degree in (0, 1)])


def test_features_that_only_faint_references_have(ask_all):
    # The first has all the weight but a trace; one feature is missing there, another everywhere
    # in reach.
    X = np.array([[0.0, 0.0], [1 - 1e-7, 0.0], [5.0, 5.0]])
    Y = np.array([[np.nan, np.nan, 1.0], [3.0, np.nan, 2.0], [1.0, 7.0, 5.0]])
    check(ask_all, [case_by_hand(X, Y, "triweight", 0, np.zeros((1, 2)))])


def test_a_place_that_is_no_number_is_the_mean(ask):
    model = UKR(**OPTIONS).fit(sheet())
    header, data = payload(description_of(model))
    answers = ask(header, data, at=[[np.nan, 0.0]], density=[[np.nan, 0.0]])
    np.testing.assert_allclose(answers["at"][0], header["regression"]["mean"])
    assert answers["density"] == [0]


def nodes(low, high, size, rest=()):
    x, y = (np.linspace(low[axis], high[axis], size) for axis in (0, 1))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    return np.concatenate([grid, np.tile(rest, (len(grid), 1))], axis=1) if len(rest) else grid


def check_grid(ask, model, size, atol, rest=()):
    low, high = model.embedding_.min(axis=0)[:2] - 0.5, model.embedding_.max(axis=0)[:2] + 0.5
    question = [(low, high, size, rest)]
    header, data = payload(description_of(model))
    answers = ask(header, data, densityGrid=question, densityGridSlowly=question)
    expected = model.density(nodes(low, high, size, rest))
    np.testing.assert_allclose(answers["densityGrid"][0], expected, atol=atol)
    assert answers["densityGridSlowly"] == answers["densityGrid"]


@pytest.mark.parametrize("size", [16, 128])
@pytest.mark.parametrize("kernel", ["gaussian", "quartic", "triweight"])
def test_density_grid(ask, kernel, size):
    # 128 nodes over a few kernel widths go through the coarser grids, 16 do not.
    weights = np.random.default_rng(3).uniform(0.1, 4, size=50)
    model = UKR(kernel=kernel, **OPTIONS).fit(sheet(), sample_weight=weights)
    check_grid(ask, model, size, atol=3e-3 * weights.max() / weights.sum())


def test_density_grid_of_a_slice(ask):
    model = UKR(3, **OPTIONS).fit(sheet(q=3))
    check_grid(ask, model, 40, 1e-3 / 50, rest=[float(np.median(model.embedding_[:, 2]))])


def test_density_grid_with_widths(ask):
    picture = np.random.default_rng(5).normal(size=(100, 2)) ** 3
    model = upgrade(picture, sheet(100), bandwidth="local", n_jobs=1, verbose=False)
    check_grid(ask, model, 64, atol=1e-5)


def test_nearest_rows_and_references(ask):
    Y = sheet(300, missing=0.2)
    model = UKR(**OPTIONS).fit(Y)
    header, data = payload(description_of(model))
    y = np.where(np.arange(Y.shape[1]) == 1, np.nan, np.nan_to_num(Y[7]) + 0.3)
    X = places(model.embedding_)
    answers = ask(header, data, nearestRows=[(x, 9) for x in X], nearestRefs=[(y, 5)])
    distance = np.linalg.norm(X[:, None] - model.latent_.astype(np.float32), axis=2)
    for found, expected in zip(answers["nearestRows"], distance, strict=True):
        np.testing.assert_allclose([one["distance"] for one in found], np.sort(expected)[:9])
        np.testing.assert_allclose([expected[one["row"]] for one in found], np.sort(expected)[:9])
    # The mean over common entries, times the number of those that y has.
    scaled = np.nanmean((model.data_ - y) ** 2, axis=1) * np.isfinite(y).sum()
    order = np.argsort(scaled)[:5]
    assert [one["ref"] for one in answers["nearestRefs"][0]] == order.tolist()
    distances = [one["distance"] for one in answers["nearestRefs"][0]]
    np.testing.assert_allclose(distances, np.sqrt(scaled[order]), rtol=1e-3)


@pytest.mark.slow
@pytest.mark.cover(1)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("kernel", ["gaussian", "quartic"])
def test_projection_is_as_good_as_the_models(ask, kernel, degree, missing):
    model = UKR(kernel=kernel, degree=degree, **OPTIONS).fit(sheet(100))
    new = sheet(30, seed=9)
    if missing:
        new[::2, [1, 4]] = np.nan
    header, data = payload(description_of(model), threshold=model.domain_threshold_)
    answers = ask(header, data, project=new)["project"]
    X = np.array([answer["x"] for answer in answers])
    found = np.nansum((model.inverse_transform(X) - new) ** 2, axis=1) ** 0.5
    best = np.nansum((model.inverse_transform(model.transform(new)) - new) ** 2, axis=1) ** 0.5
    assert model.in_domain(X).mean() > 0.9
    assert found.mean() <= 1.02 * best.mean()
    assert (found <= 1.01 * best + 1e-3).mean() >= 0.8
    np.testing.assert_allclose([answer["error"] for answer in answers], found, atol=0.02)


def test_projection_of_nothing(ask):
    model = UKR(**OPTIONS).fit(sheet())
    header, data = payload(description_of(model))
    answers = ask(header, data, project=[np.full(6, np.nan)])
    middle = (model.latent_.min(axis=0) + model.latent_.max(axis=0)) / 2
    np.testing.assert_allclose(answers["project"][0]["x"], middle, rtol=1e-6)
    assert answers["project"][0]["error"] is None


def test_rows_that_share_references(ask):
    model = UKR(**OPTIONS).fit(sheet(missing=0.3))
    low, step = model.latent_.min(axis=0), np.ptp(model.latent_, axis=0) / 65535
    ref = np.array([5, -1, 5, 0], dtype="<i4")
    codes = np.array([[0, 65535], [65535, 0], [7, 9], [3, 4]], dtype="<u2")
    log_scale = {"low": 0.1, "high": 10.0, "log": True}
    entries = [
        ("rows.x", codes, {"low": low.tolist(), "step": step.tolist()}),
        ("rows.ref", ref, {}),
        ("rows.label.class", np.array([1, 0, 255, 1], dtype="u1"), {}),
        ("rows.label.age", np.array([1.5, np.nan, 3, 4], dtype="<f4"), {}),
        ("rows.density", np.array([0, 127, 254, 255], dtype="u1"), {"low": 1.0, "high": 3.0}),
        ("rows.magnification", np.array([0, 127, 254, 0], dtype="u1"), log_scale),
    ]
    labels = {"class": {"kind": "category", "values": ["a", "b"]}, "age": {"kind": "number"}}
    header, data = payload(description_of(model), rows={"n": 4, "labels": labels}, entries=entries)
    answers = ask(header, data, rowData=[0, 1, 3], feature=[0, 3], atlas=[[]])
    steps = np.array(header["quantised"]["step"])
    assert answers["rowData"][1] is None
    for found, source in zip(answers["rowData"][::2], (5, 0), strict=True):
        off = np.array(found, dtype=float) - model.data_[source]
        assert (np.isnan(off) == np.isnan(model.data_[source])).all()
        assert (np.abs(np.nan_to_num(off)) <= 0.51 * steps).all()
    expected = np.where(ref >= 0, model.data_[ref, 0], np.nan)
    found = np.array(answers["feature"][0], dtype=float)
    np.testing.assert_allclose(found, expected, atol=steps[0])
    atlas = answers["atlas"][0]
    X = low + codes * step
    np.testing.assert_allclose(np.reshape(atlas["rowX"], (4, 2)), X, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(atlas["high"], X.max(axis=0), rtol=1e-5)
    np.testing.assert_allclose(np.array(atlas["density"], dtype=float), [1, 2, 3, np.nan])
    np.testing.assert_allclose(atlas["magnification"], [0.1, 1, 10, 0.1], rtol=1e-5)
    assert atlas["labels"]["class"]["codes"] == [1, 0, 255, 1]
    assert atlas["labels"]["class"]["values"] == ["a", "b"]
    assert atlas["labels"]["age"]["numbers"] == [1.5, None, 3, 4]


def test_rows_with_a_table_of_their_own(ask):
    model = UKR(**OPTIONS).fit(sheet())
    codes = np.array([[1, 2, 3, 4, 5, 0], [0, 0, 1, 1, 2, 0]], dtype="<u2")
    entries = [("rows.x", np.zeros((2, 2), dtype="<f4"), {}), ("rows.y", codes, {})]
    header, data = payload(description_of(model), rows={"n": 2}, entries=entries)
    answers = ask(header, data, rowData=[1], feature=[4])
    low, step = (np.array(header["quantised"][name]) for name in ("low", "step"))
    np.testing.assert_allclose(answers["rowData"][0], low + codes[1] * step)
    np.testing.assert_allclose(answers["feature"][0], (low + codes * step)[:, 4], rtol=1e-6)


def test_features_of_rows_without_data_come_from_the_regression(ask):
    model = UKR(**OPTIONS).fit(sheet())
    header, data = payload(description_of(model), has_data=False)
    answers = ask(header, data, rowData=[0], feature=[2, 4])
    f = model.inverse_transform(model.latent_)
    assert answers["rowData"] == [None]
    for found, expected in zip(answers["feature"], f.T[[2, 4]], strict=True):
        assert np.abs(found - expected).max() < 0.1 * np.ptp(expected)


def test_another_format_is_refused(ask):
    header, data = payload(description_of(UKR(**OPTIONS).fit(sheet())))
    with pytest.raises(AssertionError, match="format 1; this one is of format 2"):
        ask({**header, "format": 2}, data)

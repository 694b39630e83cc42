"""Models whose way back is a mean of nearest latent points are exactly themselves in a page."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from explorer.browsing import generated_at
from explorer.test_numbers_scripts import NODE, ask, ask_all  # noqa: F401 - fixtures
from explorer.test_payload import payload_of
from oracles import page_regression as oracle
from sklearn.datasets import load_digits, load_wine

from twofold import UNN, Scaled, explorer
from twofold.contract.kernel_description import NearestMeans
from twofold.explorer.budget import fit_payload
from twofold.explorer.page import make_wanted
from twofold.explorer.row_facts import latent_scale
from twofold.explorer.stand_in import evaluate, make_stand_in, make_trial
from twofold.unn.submanifold import SubmanifoldUNN

OPTIONS = {"random_state": 0, "n_jobs": 1}


def digits(n=150):
    return load_digits().data[:n]


def gappy_digits():
    Y = digits()
    Y[np.random.default_rng(0).random(Y.shape) < 0.1] = np.nan
    return Y


def weighted():
    weights = np.random.default_rng(1).uniform(0.5, 3, 150)
    return UNN(2, **OPTIONS).fit(digits(), sample_weight=weights)


MODELS = {
    "gaussian": lambda: UNN(2, **OPTIONS).fit(digits()),
    "lattice": lambda: UNN(2, search="greedy", n_neighbors=4, **OPTIONS).fit(digits()),
    "lattice of three": lambda: UNN(3, search="greedy", **OPTIONS).fit(digits()),
    "line": lambda: UNN(1, n_neighbors=4, **OPTIONS).fit(digits()),
    "scaled": lambda: Scaled(UNN(2, **OPTIONS)).fit(load_wine().data),
    "weights": weighted,
    "equal rows": lambda: UNN(2, **OPTIONS).fit(np.repeat(digits(80), 2, axis=0)),
    "filled gaps": lambda: Scaled(UNN(2, **OPTIONS)).fit(gappy_digits()[:, 18:46]),
    "gaps": lambda: UNN(2, missing="distances", **OPTIONS).fit(gappy_digits()),
    "single precision": lambda: UNN(2, **OPTIONS).fit(digits().astype(np.float32)),
    "submanifolds": lambda: SubmanifoldUNN(**OPTIONS).fit(digits()),
}
# To the scripts these are like others; what the page holds of them is tested for all.
ALIKE = ("lattice of three", "equal rows", "filled gaps", "single precision")
# Made once: several tests look at them.
_made = {}


def model_of(kind):
    if kind not in _made:
        _made[kind] = MODELS[kind]()
    return _made[kind]


def over_the_map(model, n=150, seed=2):
    """Return places on the rows, all over the domain, and beyond it."""
    X = model.embedding_.astype(np.float64)
    margin = 0.15 * np.ptp(X, axis=0)
    rng = np.random.default_rng(seed)
    found = rng.uniform(X.min(axis=0) - margin, X.max(axis=0) + margin, (n, X.shape[1]))
    return np.concatenate([X[:50], found.astype(model.embedding_.dtype)])


def nearest_means(header, arrays, X):
    """Return the mean (m, D) of the K nearest references, of the group of the nearest one."""
    Y, places = oracle.values(header, arrays["reg.y"]), arrays["reg.x"].astype(float)
    w = arrays.get("reg.w", np.ones(len(places)))
    group = arrays.get("reg.group", np.zeros(len(places)))
    f = np.empty((len(X), Y.shape[1]))
    for j, x in enumerate(X):
        square = ((places - x) ** 2).sum(axis=1)
        # Equally far ones in the order of their coordinates.
        order = np.lexsort((*places.T[::-1], square))
        near = order[group[order] == group[order[0]]][: header["regression"]["neighbors"]]
        mass = w[near, None] * ~np.isnan(Y[near])
        total = mass.sum(axis=0)
        summed = (mass * np.nan_to_num(Y[near])).sum(axis=0)
        f[j] = np.where(
            total > 0, summed / np.where(total > 0, total, 1), header["regression"]["mean"]
        )
    return f


def assert_is_the_model(model, header, X, f, density, inside):
    step = np.array(header["quantised"]["step"])
    expected = model.inverse_transform(X)
    close = np.abs(f - expected) <= 0.51 * step + 1e-5 * np.abs(expected) + 1e-9
    # Latent points are in single precision: two may change their order where they are equally far.
    assert close.all(axis=1).mean() > 0.98
    assert close[:50].all()
    p = model.density(X)
    supported = p > 0.1 * model.domain_threshold_
    np.testing.assert_allclose(density[supported], p[supported], rtol=1e-3)
    clear = np.abs(p / model.domain_threshold_ - 1) > 1e-3
    np.testing.assert_array_equal(inside[clear], model.in_domain(X)[clear])
    assert inside.any()


@pytest.mark.parametrize("kind", MODELS)
def test_the_payload_has_the_model_itself(kind):
    model = model_of(kind)
    header, arrays = payload_of(model)
    assert header["regression"]["exact"]
    assert header["shows"][1].startswith("the model's own regression")
    X = over_the_map(model)
    density = oracle.density(header, arrays, X)
    inside = density >= header["domain_threshold"]
    assert_is_the_model(model, header, X, nearest_means(header, arrays, X), density, inside)


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.slow] if kind in ALIKE else []) for kind in MODELS],
)
def test_the_scripts_answer_as_the_model(kind, ask):  # noqa: F811
    model = model_of(kind)
    found = fit_payload(model, make_wanted(model, None, None, None, "auto", None, None), 10**7)
    X = over_the_map(model)
    questions = dict.fromkeys(("at", "featureAt", "density", "inDomain"), X)
    answers = ask(found.header, gzip.decompress(found.data), **questions)
    for name in ("at", "featureAt"):
        assert_is_the_model(
            model,
            found.header,
            X,
            np.array(answers[name], dtype=float),
            np.array(answers["density"]),
            np.array(answers["inDomain"]),
        )


@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.parametrize("kind", ["gaussian", "lattice", "scaled", "gaps"])
def test_a_pasted_row_goes_where_the_model_puts_it(kind, ask):  # noqa: F811
    model = model_of(kind)
    wanted = make_wanted(model, None, None, None, "auto", None, None)
    found = fit_payload(model, wanted, 10**7)
    if kind == "scaled":
        rng = np.random.default_rng(4)
        wine = load_wine().data
        new = wine[::6] + 0.3 * wine.std(axis=0) * rng.normal(size=wine[::6].shape)
    else:
        new = load_digits().data[150:190]
    new[::3, :4] = np.nan
    answers = ask(found.header, gzip.decompress(found.data), project=new)["project"]
    X = np.array([answer["x"] for answer in answers])
    # Places with the same neighbours are equally good: which one is found does not matter.
    expected = np.sqrt(-model.score_samples(new))
    same = np.isclose([answer["error"] for answer in answers], expected, rtol=1e-3)
    assert same.mean() > 0.97
    assert (model.in_domain(X) | ~same).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gaussian", "lattice", "scaled"])
def test_the_browser_shows_the_model(kind, open_page, tmp_path):
    model = model_of(kind)
    page = open_page(explorer.write(model, tmp_path / "a.html"))
    X = over_the_map(model)
    asked = "(X) => X.map((x) => [twofold.regression.density(x), twofold.regression.inDomain(x)])"
    density, inside = np.array(page.evaluate(asked, X.tolist()), dtype=float).T
    header = page.evaluate("() => ({ quantised: twofold.atlas.header.quantised })")
    assert_is_the_model(model, header, X, generated_at(page, X), density, inside.astype(bool))


def test_rows_with_filled_gaps_are_shown_with_their_gaps():
    model = model_of("filled gaps")
    header, arrays = payload_of(model)
    found = oracle.values(header, arrays["rows.y"])[arrays.get("rows.ref", np.arange(150))]
    Y = gappy_digits()[:, 18:46]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(Y))
    np.testing.assert_allclose(found, Y, atol=max(header["quantised"]["step"]))


@pytest.mark.parametrize("kind", MODELS)
def test_models_describe_themselves(kind):
    found = model_of(kind).kernel_regression()
    assert isinstance(found, NearestMeans)
    turned = found.in_order(np.arange(len(found.latent))[::-1])
    np.testing.assert_array_equal(turned.latent, found.latent[::-1])
    np.testing.assert_array_equal(turned.rows, found.rows[::-1])
    assert (found.groups is not None) == (kind == "submanifolds")
    assert (found.observed is not None) == (kind == "filled gaps")


def over_the_domain(model, n=2_000):
    X = over_the_map(model, n, seed=8)[50:]
    return X[model.in_domain(X)]


@pytest.mark.parametrize("count", [100, 1_000])
def test_a_stand_in_says_how_far_off_it_is_all_over_the_domain(count):
    # Of a map ten thousand wide: places within 1 of the rows would tell nothing.
    model = model_of("gaussian")
    scale, spread = latent_scale(model, None), np.sqrt(model.data_.var(axis=0).sum())
    made = make_stand_in(model, scale, count, make_trial(model, scale, spread))
    X = over_the_domain(model)
    f, summed = evaluate(made.description, X)
    gaps = np.linalg.norm(f - model.inverse_transform(X), axis=1)
    found = np.sqrt(np.mean(gaps**2)) / spread
    assert made.difference == pytest.approx(found, rel=0.25)
    ratio = summed / made.total_weight / model.density(X)
    assert np.median(np.abs(np.log(ratio))) < 0.2
    around = over_the_map(model, 2_000, seed=9)[50:]
    inside = evaluate(made.description, around)[1] / made.total_weight >= made.threshold
    assert (inside == model.in_domain(around)).mean() > 0.93


@pytest.mark.slow
def test_a_table_that_does_not_fit_has_a_stand_in():
    model = UNN(2, **OPTIONS).fit(digits(600))
    header, arrays = payload_of(model, room=25_000)
    assert not header["regression"]["exact"]
    assert "neighbors" not in header["regression"]
    X = over_the_domain(model, 500)
    gaps = oracle.regress(header, arrays, X) - model.inverse_transform(X)
    found = np.sqrt(np.square(gaps).sum(axis=1).mean() / model.data_.var(axis=0).sum())
    assert header["regression"]["difference"] == pytest.approx(found, rel=0.25)


@pytest.mark.slow
def test_trial_places_lie_all_over_the_domain():
    model = model_of("gaussian")
    trial = make_trial(model, latent_scale(model, None), 1.0)
    gaps = np.linalg.norm(trial.inside[:, None] - model.latent_[None], axis=2).min(axis=1)
    X = over_the_map(model, 2_000)[50:]
    expected = np.linalg.norm(X[:, None] - model.latent_[None], axis=2).min(axis=1)
    expected = expected[model.in_domain(X)]
    assert np.median(gaps) == pytest.approx(np.median(expected), rel=0.2)

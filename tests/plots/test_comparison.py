"""Pictures of compared embeddings and of the choice of dimension."""

from __future__ import annotations

import doctest
import importlib

import numpy as np
import pytest
from matplotlib.figure import Figure

from twofold import metrics, plots
from twofold.datasets import make_random_manifold, make_s_triangle, make_spiral
from twofold.selection import choose_dimension, compare

BENT = make_s_triangle(80, noise=0.03, random_state=0)


@pytest.fixture(scope="module")
def found():
    labels = np.where(BENT.latent[:, 0] > 0.5, "far", "near")
    candidates = {"pca": "pca", "isomap": "isomap", "true": BENT.latent, "shadow": BENT.Y[:, :2]}
    return compare(BENT.Y, candidates, labels=labels, n_neighbors=6)


def all_axes(figure):
    maps, sides = figure.subfigs
    return maps.axes, sides.axes


def test_every_embedding_is_drawn_best_first(found):
    figure = plots.comparison(found)
    maps, _ = all_axes(figure)
    titles = [ax.get_title() for ax in maps[:4]]
    for place, name in enumerate(found.table.index):
        assert titles[place].startswith(f"{place + 1}. {name}")
        drawn = np.vstack([dots.get_offsets() for dots in maps[place].collections])
        X = found.embeddings[name]
        np.testing.assert_allclose(np.sort(drawn[:, 0]), np.sort(X[:, 0]))
    assert titles[list(found.table.index).index(found.recommended)].endswith("(recommended)")
    assert sum(title.endswith("(recommended)") for title in titles) == 1
    assert not any(ax.axison for ax in maps[4:])


def test_labels_get_a_legend(found):
    maps, _ = all_axes(plots.comparison(found))
    texts = [text.get_text() for ax in maps if ax.get_legend() for text in ax.get_legend().texts]
    assert texts == ["far", "near"]


def test_the_decision_shows_evidence_and_continuity(found):
    _, (decision, ranks) = all_axes(found.plot())
    assert [text.get_text() for text in decision.texts] == list(found.table.index)
    first = found.table.iloc[0]
    x, y = decision.lines[0].get_data()
    assert (x[0], y[0]) == (first["nlml_per_entry"], pytest.approx(1 - first["continuity"]))
    assert len(ranks.get_legend().texts) == len(found.table)


def test_draws_into_a_given_figure(found):
    figure = Figure()
    assert plots.comparison(found, figure) is figure
    assert len(figure.subfigs) == 2


def test_lines_and_rows_without_labels():
    found = compare(make_spiral(60, random_state=0).Y, ["pca", "isomap"], n_components=1)
    maps, _ = all_axes(found.plot())
    dots = maps[0].collections[0]
    np.testing.assert_array_equal(
        dots.get_offsets()[:, 0], found.embeddings[found.table.index[0]][:, 0]
    )
    assert len(np.unique(dots.get_array())) == 60


def test_coranking_curves():
    ranks = {name: metrics.coranking(BENT.Y, BENT.Y[:, cols]) for name, cols in
             {"a": [0, 1], "b": [0, 2]}.items()}  # fmt: skip
    ax = plots.coranking(ranks)
    sizes, values = ax.lines[0].get_data()
    assert (sizes[0], sizes[-1]) == (1, 78)
    np.testing.assert_array_equal(values, ranks["a"].r_nx(sizes))
    assert ax.get_legend().texts[1].get_text() == f"b  {ranks['b'].auc:.2f}"
    single = plots.coranking(ranks["a"], ax=Figure().subplots())
    assert f"{ranks['a'].auc:.2f}" in single.get_legend().texts[0].get_text()
    with pytest.raises(ValueError, match="at least one"):
        plots.coranking({})


def test_the_chosen_dimension_stands_out():
    choice = choose_dimension(make_random_manifold(200, 2, 6, noise=0.02, random_state=0).Y)
    ax = choice.plot()
    colors = [bar.get_facecolor() for bar in ax.patches]
    assert colors[1] not in (colors[0], colors[2])
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], choice.scores["gap"])
    assert ax.get_title() == "2"


def test_no_dimension_is_drawn_as_such():
    cloud = np.random.default_rng(0).normal(size=(100, 4))
    ax = plots.dimension_choice(choose_dimension(cloud), ax=Figure().subplots())
    assert ax.get_title() == "no answer (not confident)"
    assert len({bar.get_facecolor() for bar in ax.patches}) == 1
    with pytest.raises(ValueError, match="nothing to draw"):
        plots.dimension_choice(choose_dimension(cloud[:10]))


@pytest.mark.slow
def test_docstring_examples_run():
    results = doctest.testmod(importlib.import_module("twofold.plots.comparison"))
    assert results.attempted > 0
    assert results.failed == 0

"""Embeddings side by side: scores, the rule, and honest refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.manifold import Isomap
from threadpoolctl import threadpool_info

from twofold import UNN
from twofold.datasets import make_s_triangle, make_spiral, make_swiss_roll
from twofold.loading import TWO_WAY
from twofold.metrics import coranking, neighborhood_hit
from twofold.selection import compare, gp_evidence, procrustes_distance, whiten
from twofold.selection.embedders import EMBEDDERS, Request, named_candidates
from twofold.selection.recommending import (
    WHITE_NOISE,
    Baseline,
    baselines,
    is_torn,
    ranking,
    recommend,
)
from twofold.ukr import upgrade

BENT = make_s_triangle(160, noise=0.05, random_state=0)


def spoilt(X: np.ndarray) -> dict[str, np.ndarray]:
    """Return the true coordinates, a little warped, and useless versions of them."""
    X = whiten(X)
    first, rest = X[:, :1], X[:, 1:]
    middle, spread = np.median(first), np.ptp(first)
    return {
        "good": np.hstack([first + 0.1 * np.sin(2 * first), rest]),
        "folded": np.hstack([np.abs(first - middle), rest]),
        "torn": np.hstack([np.where(first > middle, first - 1.3 * spread, first), rest]),
        "shuffled": X[np.random.default_rng(0).permutation(len(X))],
    }


@pytest.fixture(scope="module")
def found():
    labels = np.where(BENT.latent[:, 0] > 0.5, "far", "near")
    candidates = {**spoilt(BENT.latent), "flat": PCA(2), "graph": "isomap"}
    return compare(BENT.Y, candidates, labels=labels, n_neighbors=8)


@pytest.mark.slow
def test_scores_are_those_of_the_functions_they_are_named_after(found):
    X = found.embeddings["good"]
    row = found.table.loc["good"]
    ranks = coranking(BENT.Y, X)
    assert row["continuity"] == ranks.continuity(8)
    assert row["auc"] == ranks.auc
    assert row["nlml_per_entry"] == gp_evidence(BENT.Y, X).nlml_per_entry
    variance = ((BENT.Y - BENT.Y.mean(axis=0)) ** 2).sum(axis=1).mean()
    assert row["reconstruction_error"] == pytest.approx(upgrade(X, BENT.Y).objective_ / variance)
    labels = np.where(BENT.latent[:, 0] > 0.5, "far", "near")
    assert row["neighborhood_hit"] == neighborhood_hit(X, labels, 8)
    assert row["dimension"] == 2
    assert found.table.loc["flat", "seconds"] > 0
    assert np.isnan(row["seconds"])  # nothing was fitted


def test_the_recommendation_is_close_to_the_truth(found):
    distances = {name: procrustes_distance(X, BENT.latent) for name, X in found.embeddings.items()}
    assert found.recommended in ("good", "graph")
    assert distances[found.recommended] <= min(distances.values()) + 0.1
    assert list(found.table.index)[-1] in ("torn", "shuffled")
    assert "continuity" in found.reason
    assert "torn" in found.reason


def test_text_and_html_hold_table_and_reason(found):
    assert found.reason in str(found)
    assert "reconstruction_error" in repr(found)
    html = found._repr_html_()
    assert "<table" in html
    assert found.recommended in html


def test_models_go_both_ways(found):
    model = found.models["good"]
    np.testing.assert_array_equal(model.embedding_, found.embeddings["good"])
    assert model.inverse_transform(model.embedding_[:2]).shape == (2, 3)


@pytest.mark.slow
def test_labels_never_decide(found):
    candidates = {name: found.embeddings[name] for name in found.table.index}
    rng = np.random.default_rng(1)
    other = compare(BENT.Y, candidates, labels=rng.integers(3, size=len(BENT.Y)), n_neighbors=8)
    assert other.recommended == found.recommended
    assert list(other.table.index) == list(found.table.index)


@pytest.mark.slow
def test_a_cloud_gets_no_recommendation():
    cloud = np.random.default_rng(0).normal(size=(150, 3))
    found = compare(cloud, ["pca", "tsne"], n_neighbors=8)
    assert found.recommended is None
    assert "no manifold of 2 dimensions" in found.reason
    assert found.expected[2].flatness < 0.2
    assert len(found.table) == 2


@pytest.mark.slow
def test_a_shadow_of_a_roll_gets_no_recommendation():
    roll = make_swiss_roll(300, noise=0.2, random_state=0)
    found = compare(roll.Y, ["pca"], n_neighbors=8)
    assert found.expected[2].flatness > 0.5
    assert found.recommended is None
    assert "does not unfold" in found.reason
    unrolled = compare(roll.Y, {"pca": "pca", "true": roll.latent}, n_neighbors=8)
    assert unrolled.recommended == "true"


class Refusing(BaseEstimator):
    def fit_transform(self, Y, y=None):
        raise ValueError("not today")


def test_failures_are_told_and_do_not_stop_the_others():
    line = np.zeros((len(BENT.Y), 2))
    line[:, 0] = BENT.latent[:, 0]
    found = compare(BENT.Y, {"flat": "pca", "no": Refusing(), "line": line}, n_neighbors=8)
    assert found.failures["no"] == "not today"
    assert "rank 1" in found.failures["line"]
    assert list(found.table.index) == ["flat"]
    assert "not today" in str(found)
    with pytest.raises(ValueError, match="not today"):
        compare(BENT.Y, {"no": Refusing()})


def test_warnings_of_methods_are_kept_as_notes():
    rng = np.random.default_rng(0)
    apart = np.vstack([rng.normal(size=(30, 3)), rng.normal(size=(30, 3)) + 100])
    found = compare(apart, {"graph": Isomap(n_neighbors=4), "flat": "pca"}, n_neighbors=8)
    assert "connected components" in " ".join(found.notes["graph"])
    assert "flat" not in found.notes


def test_stability_on_request():
    found = compare(BENT.Y, {"flat": "pca", "own": BENT.latent}, n_neighbors=8, stability=True)
    assert 0 <= found.table.loc["flat", "instability"] < 0.2
    assert np.isnan(found.table.loc["own", "instability"])


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    wide = make_spiral(60, noise=0.02, random_state=0).Y @ rng.normal(size=(2, 90))
    found = compare(wide + 0.01 * rng.normal(size=wide.shape), ["pca"], n_neighbors=5)
    assert found.scored["pca"].evidence.n_kept == 15


@pytest.mark.slow
def test_same_seed_same_table():
    tables = [compare(BENT.Y, ["tsne"], n_neighbors=8).table.drop(columns="seconds") for _ in "ab"]
    pd.testing.assert_frame_equal(*tables)


@pytest.mark.parametrize(
    ("candidates", "error", "message"),
    [
        ("pka", ValueError, "Known methods are pca"),
        ([PCA(2)], TypeError, "names of their own"),
        ({"a": PCA}, TypeError, "is a class"),
        ({}, ValueError, "empty"),
        (np.zeros((5, 2)), TypeError, "dict of names"),
    ],
)
def test_candidates_are_checked(candidates, error, message):
    with pytest.raises(error, match=message):
        named_candidates(candidates)


def test_rows_are_checked():
    with pytest.raises(ValueError, match="at least 4 different rows"):
        compare(np.eye(3), ["pca"])
    with pytest.raises(ValueError, match="one label for each of 160"):
        compare(BENT.Y, ["pca"], labels=[1, 2])
    with pytest.raises(ValueError, match="missing entries"):
        compare([[np.nan, 1.0]] * 9, ["pca"])


@pytest.mark.parametrize("name", [name for name in EMBEDDERS if name != "umap"])
def test_every_named_method_embeds(name):
    X = EMBEDDERS[name](Request(60, 2, 8, 0, 1)).fit_transform(BENT.Y[:60])
    assert X.shape == (60, 2)
    assert np.isfinite(X).all()


def test_families_of_the_library_go_by_their_names():
    for name, family in TWO_WAY.items():
        model = EMBEDDERS[name](Request(60, 2, 8, 5, 1))
        assert type(model).__name__ == family
        assert model._wanted_dimensions() == 2
        assert getattr(model, "random_state", 5) == 5
    found = compare(BENT.Y, ["pca", "unn"], n_neighbors=8)
    assert set(found.table.index) == {"pca", "unn"}
    assert not found.failures
    model = UNN(2, random_state=0).fit(BENT.Y)
    np.testing.assert_array_equal(found.embeddings["unn"], model.embedding_)


def test_tsne_says_how_many_dimensions_it_has():
    with pytest.raises(ValueError, match="up to 3"):
        EMBEDDERS["tsne"](Request(60, 4, 8, 0, None))


# ---- the rule, on made-up scores ----------------------------------------------------------------


def scores(**rows: tuple[float, float]) -> pd.DataFrame:
    """Return a table of nlml and continuity."""
    table = pd.DataFrame.from_dict(rows, "index", columns=["nlml_per_entry", "continuity"])
    return table.assign(dimension=2, reconstruction_error=0.01)


FLAT = {2: Baseline(linear_error=0.3, local_error=0.01, flatness=0.9)}


def test_a_torn_embedding_loses_whatever_its_evidence():
    table = scores(torn=(-2.0, 0.90), whole=(-1.0, 0.99))
    assert is_torn(table).to_dict() == {"torn": True, "whole": False}
    assert ranking(table) == ["whole", "torn"]


def test_continuity_decides_where_evidence_hardly_differs():
    assert ranking(scores(a=(-1.0, 0.97), b=(-0.9, 0.98))) == ["b", "a"]
    assert ranking(scores(a=(-1.0, 0.97), b=(0.0, 0.98))) == ["a", "b"]


def test_near_is_a_share_of_what_was_gained_over_white_noise():
    # 0.05 is nothing beside a gain of 2.4, but more than half of a gain of 0.08.
    gained = WHITE_NOISE - 0.08
    assert ranking(scores(a=(gained, 0.97), b=(gained + 0.05, 0.98))) == ["a", "b"]
    assert ranking(scores(a=(-1.0, 0.97), b=(-0.95, 0.98))) == ["b", "a"]


def test_what_makes_the_answer_none():
    table = scores(a=(-1.0, 0.99))
    assert recommend(table, FLAT).name == "a"
    assert recommend(table, {2: Baseline(0.3, 0.01, 0.1)}).name is None
    folded = table.assign(reconstruction_error=0.2)
    assert recommend(folded, FLAT).name is None
    # In noisy data even flat local pieces leave much open.
    assert recommend(folded, {2: Baseline(0.5, 0.1, 0.9)}).name == "a"
    unknown = recommend(table, {2: Baseline(0.3, float("nan"), float("nan"))})
    assert unknown.name is None
    assert unknown.reason.startswith("Too few rows to tell")


def test_doubts_are_told():
    reason = recommend(scores(a=(-1.0, 0.99)), {2: Baseline(0.3, 0.01, 0.4)}).reason
    assert "with care" in reason
    mixed = scores(a=(-1.0, 0.99), b=(-1.0, 0.99)).assign(dimension=[2, 1])
    assert "more dimensions" in recommend(mixed, FLAT).reason


def test_baselines_of_few_rows_are_unknown_and_of_full_dimension_leave_nothing():
    rng = np.random.default_rng(0)
    few = baselines(rng.normal(size=(20, 3)), [2], 0)[2]
    assert np.isnan(few.flatness)
    full = baselines(rng.normal(size=(60, 2)), [2], 0)[2]
    assert full.local_error == 0
    assert full.flatness == 1
    assert full.linear_error == pytest.approx(0, abs=1e-12)


# ---- rows and arguments that are not as they should be ------------------------------------------


@pytest.mark.parametrize("rows", [np.ones((50, 3)), np.repeat(np.eye(3), 20, axis=0)])
def test_hardly_any_different_rows_are_refused_before_methods_see_them(rows):
    with pytest.raises(ValueError, match="at least 4 different rows"):
        compare(rows, ["tsne"])


def test_few_rows_are_too_few_to_tell():
    few = compare(BENT.Y[:12], ["pca"])
    assert few.recommended is None
    assert few.reason.startswith("Too few rows")
    assert "scores look at 5" in few.notes["data"][0]
    assert "scores look at 5" in str(few)


def test_copies_are_scored_once():
    once = compare(BENT.Y, ["pca"], n_neighbors=10)
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(160), 2))
    twice = compare(BENT.Y[order], {"pca": "pca", "given": once.embeddings["pca"][order]})
    for name in ("pca", "given"):
        assert twice.table.loc[name, "reconstruction_error"] == pytest.approx(
            once.table.loc["pca", "reconstruction_error"], rel=1e-3
        )
    assert twice.embeddings["pca"].shape == (320, 2)
    assert len(twice.models["pca"].embedding_) == 320
    assert "160 rows are copies" in twice.notes["data"][0]
    assert "data" not in once.notes


@pytest.mark.parametrize("missing", [None, np.nan, ""])
def test_rows_without_a_label_are_left_out_of_the_hit(missing):
    classes = np.where(BENT.Y[:, 0] > np.median(BENT.Y[:, 0]), "a", "b").astype(object)
    classes[::4] = missing
    found = compare(BENT.Y, ["pca"], labels=classes, n_neighbors=10)
    known = np.arange(160) % 4 > 0
    expected = neighborhood_hit(found.embeddings["pca"][known], classes[known].astype(str), 10)
    assert found.table["neighborhood_hit"]["pca"] == expected
    assert "40 rows have no label" in found.notes["data"][0]


def test_no_label_at_all_is_no_hit():
    found = compare(BENT.Y, ["pca"], labels=[""] * 160)
    assert np.isnan(found.table["neighborhood_hit"]["pca"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_isotropic_blobs_get_no_recommendation(seed):
    rows, _ = make_blobs(200, 10, centers=4, cluster_std=0.5, random_state=seed)
    assert compare(rows, ["pca", "isomap"]).recommended is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors.* at least 1; got 0"),
        ({"n_neighbors": 2.5}, "n_neighbors.* whole number"),
        ({"n_components": "auto"}, r"within \[1, 3\]; got 'auto'.*choose_dimension"),
        ({"n_components": 4}, r"within \[1, 3\]; got 4"),
        ({"candidates": {"line": BENT.Y[:, 0]}}, r"reshape\(embedding, \(-1, 1\)\)\.$"),
    ],
)
def test_arguments_are_checked(wrong, message):
    with pytest.raises(ValueError, match=message):
        compare(BENT.Y, **{"candidates": ["pca"], **wrong})


def test_names_in_any_case():
    assert named_candidates(["PCA", "Isomap"]) == {"pca": "pca", "isomap": "isomap"}
    assert named_candidates({"Mine": "PCA"}) == {"Mine": "pca"}


def test_what_cannot_be_cloned_is_used_as_it_is():
    class FirstTwo:
        def fit_transform(self, Y):
            return Y[:, :2]

    found = compare(BENT.Y, {"first": FirstTwo()})
    np.testing.assert_array_equal(found.embeddings["first"], BENT.Y[:, :2])


@pytest.mark.slow
def test_constant_and_single_columns():
    wide = compare(np.hstack([BENT.Y, np.ones((160, 1))]), ["pca"])
    assert np.isfinite(wide.table["nlml_per_entry"]["pca"])
    assert compare(BENT.Y[:, :1], ["pca"], n_components=1).recommended == "pca"


def test_one_column_that_decides_alone_is_told():
    assert "scale the columns" in compare(BENT.Y * [1, 100, 1], ["pca"]).notes["data"][0]


def test_libraries_have_one_thread_while_methods_are_fitted():
    seen = []

    class Watching(PCA):
        def fit_transform(self, X, y=None):
            seen.extend(library["num_threads"] for library in threadpool_info())
            return super().fit_transform(X)

    compare(BENT.Y, {"watching": Watching(2)})
    assert set(seen) == {1}

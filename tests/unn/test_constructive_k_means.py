import numpy as np
import pytest
from oracles import neighbors as oracle
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from twofold.datasets import make_s_structure
from twofold.unn import constructive_k_means
from twofold.unn.constructive_k_means import ConstructiveKMeans


def digits_of(wanted):
    Y, y = load_digits(return_X_y=True)
    return Y[np.isin(y, wanted)], y[np.isin(y, wanted)]


def shuffles(n, count):
    rng = np.random.default_rng(0)
    return [rng.permutation(n) for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "threshold", "expected"),
    [
        # Kramer (2013), section 7.5, on the digits in the order of the data set.
        (range(6), 47, 2),
        (range(6), 45, 4),
        (range(6), 43, 6),
        (range(6), 35, 25),
        ((0, 3, 7), 60, 1),
        ((0, 3, 7), 50, 2),
        ((0, 3, 7), 47, 3),
        ((0, 3, 7), 35, 13),  # the book has 14, of one row less
    ],
)
def test_one_pass_finds_as_many_clusters_as_the_book(wanted, threshold, expected):
    Y, _ = digits_of(wanted)
    assert len(ConstructiveKMeans(threshold, order="given").fit(Y).cluster_centers_) == expected


@pytest.mark.parametrize("threshold", [0.5, 1.5, 3.0])
def test_one_pass_is_that_of_the_definition(threshold):
    Y = np.random.default_rng(0).normal(size=(80, 3))
    centers, labels = oracle.one_pass(Y, threshold)
    model = ConstructiveKMeans(threshold, order="given").fit(Y)
    np.testing.assert_allclose(model.cluster_centers_, centers, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_array_equal(model.counts_, np.bincount(labels))


def test_pass_in_parts_is_the_whole_pass():
    Y = np.random.default_rng(0).normal(size=(80, 3))
    whole = ConstructiveKMeans(1.5, order="given").fit(Y)
    parts = ConstructiveKMeans(1.5, order="given").fit(Y[:30])
    labels = [parts.labels_, parts.partial_fit(Y[30:31]).labels_, parts.partial_fit(Y[31:]).labels_]
    np.testing.assert_array_equal(np.concatenate(labels), whole.labels_)
    np.testing.assert_allclose(parts.cluster_centers_, whole.cluster_centers_, rtol=1e-12)


def test_threshold_below_all_distances_leaves_rows_alone():
    Y = np.arange(40.0)[:, None]
    for order in ("given", "farthest"):
        assert len(ConstructiveKMeans(0.4, order=order).fit(Y).cluster_centers_) == 40


def test_one_pass_depends_on_the_order_and_farthest_rows_do_not():
    Y, _ = digits_of(range(6))
    counts, agreement = {}, {}
    for order in ("given", "farthest"):
        found = []
        for shuffle in shuffles(len(Y), 6):
            labels = ConstructiveKMeans(43, order=order).fit(Y[shuffle]).labels_
            found.append(labels[np.argsort(shuffle)])
        counts[order] = {labels.max() + 1 for labels in found}
        agreement[order] = min(adjusted_rand_score(found[0], other) for other in found[1:])
    assert len(counts["given"]) > 1
    assert agreement["given"] < 0.7
    assert len(counts["farthest"]) == 1
    assert agreement["farthest"] == 1


@pytest.mark.parametrize("threshold", [3.0, 5.0])
def test_farthest_leaves_no_row_beyond_the_threshold(threshold):
    Y, _ = make_blobs(300, n_features=4, centers=5, random_state=0)
    model = ConstructiveKMeans(threshold).fit(Y)
    gaps = np.linalg.norm(Y - model.cluster_centers_[model.labels_], axis=1)
    assert gaps.max() <= threshold
    np.testing.assert_array_equal(model.predict(Y), model.labels_)


@pytest.mark.slow
@pytest.mark.parametrize("n_clusters", [2, 4, 7])
def test_auto_finds_clear_clusters(n_clusters):
    Y, y = make_blobs(400, n_features=5, centers=n_clusters, random_state=1)
    model = ConstructiveKMeans().fit(Y)
    assert len(model.cluster_centers_) == n_clusters
    assert adjusted_rand_score(y, model.labels_) == 1
    scaled = ConstructiveKMeans().fit(1e-6 * Y)
    assert scaled.threshold_ == pytest.approx(1e-6 * model.threshold_, rel=1e-6)


@pytest.mark.slow
def test_auto_on_digits():
    Y, y = digits_of(range(6))
    model = ConstructiveKMeans().fit(Y)
    assert 5 <= len(model.cluster_centers_) <= 8
    assert adjusted_rand_score(y, model.labels_) > 0.75


def test_equal_rows_are_one_cluster():
    model = ConstructiveKMeans().fit(np.ones((10, 2)))
    assert len(model.cluster_centers_) == 1
    assert model.labels_.tolist() == [0] * 10


def test_weights_count_like_copies():
    rng = np.random.default_rng(0)
    Y, weights = rng.normal(size=(60, 2)), rng.integers(0, 4, 60)
    weighted = ConstructiveKMeans(1.0).fit(Y, sample_weight=weights)
    copied = ConstructiveKMeans(1.0).fit(np.repeat(Y, weights, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, copied.cluster_centers_, atol=1e-9)
    np.testing.assert_allclose(weighted.counts_, copied.counts_)
    first = ConstructiveKMeans(9.0, order="given").fit([[0.0], [3.0]], sample_weight=[1, 2])
    assert first.cluster_centers_.tolist() == [[2.0]]


def test_single_precision_stays():
    Y = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    assert ConstructiveKMeans().fit(Y).cluster_centers_.dtype == np.float32


def test_many_clusters_open_in_few_rounds(monkeypatch):
    rounds = []
    original = constructive_k_means.KMeans
    monkeypatch.setattr(
        constructive_k_means,
        "KMeans",
        lambda *args, **kwargs: rounds.append(1) or original(*args, **kwargs),
    )
    Y = np.random.default_rng(0).normal(size=(600, 2))
    found = len(ConstructiveKMeans(0.15).fit(Y).cluster_centers_)
    assert found > 100
    assert len(rounds) < found / 2


@pytest.mark.parametrize(
    "wrong", [{"threshold": 0}, {"threshold": "large"}, {"threshold": True}, {"order": "random"}]
)
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        ConstructiveKMeans(**wrong).fit([[0.0], [1.0]])


def expected_failures(estimator):
    if estimator.order == "given":
        reason = "one pass depends on the order of the rows, which the check changes"
        return {"check_sample_weight_equivalence_on_dense_data": reason}
    return {}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [ConstructiveKMeans(threshold=1.0)], expected_failed_checks=expected_failures
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [ConstructiveKMeans(), ConstructiveKMeans(order="given")],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_check_of_a_variant(estimator, check):
    check(estimator)


ONE_PIECE = {
    **{f"normal {n}": np.random.default_rng(n).normal(size=(n, 5)) for n in (20, 50, 100, 500)},
    "sheet": make_s_structure(300, random_state=0).Y,
    "twenty flowers": load_iris().data[:20],
    "line": np.random.default_rng(0).random((100, 1)),
}


@pytest.mark.parametrize("name", ONE_PIECE)
def test_auto_leaves_one_piece_whole(name):
    assert len(ConstructiveKMeans().fit(ONE_PIECE[name]).cluster_centers_) == 1


@pytest.mark.slow
def test_auto_makes_no_cluster_of_a_single_row():
    Y, _ = make_blobs(200, n_features=4, centers=3, random_state=3)
    Y = np.vstack([Y, [[60.0, 0, 0, 0]]])
    for rows in (Y, load_digits().data[:500]):
        assert ConstructiveKMeans().fit(rows).counts_.min() > 1


@pytest.mark.slow
def test_rows_far_from_zero():
    Y = load_iris().data
    near, far = ConstructiveKMeans().fit(Y), ConstructiveKMeans().fit(Y + 1e9)
    np.testing.assert_array_equal(near.labels_, far.labels_)
    np.testing.assert_array_equal(far.predict(Y + 1e9), near.labels_)
    assert len(far.cluster_centers_) == 2


@pytest.mark.parametrize(("scale", "words"), [(1e200, "entries beyond"), (1e-200, "underflow")])
def test_rows_beyond_the_range_of_squares_are_refused(scale, words):
    with pytest.raises(ValueError, match=words):
        ConstructiveKMeans().fit(load_iris().data * scale)

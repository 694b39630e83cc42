from __future__ import annotations

import numpy as np
import pytest
from oracles import coranking as oracle
from sklearn.datasets import make_swiss_roll

from twofold.metrics import co_ranking, coranking

CURVES = ("q_nx", "r_nx", "lcmc", "trustworthiness", "continuity")
NUMBERS = ("auc", "k_max", "q_local", "q_global")


def line(n=30, D=5, q=2, seed=0):
    """Return data of which the embedding knows something."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, q))
    Y = np.column_stack([X, rng.normal(size=(n, D - q))])
    return Y, X


def grid_with_copies():
    """Return whole numbers with many equal distances and some equal points."""
    rng = np.random.default_rng(3)
    Y = rng.integers(0, 3, size=(25, 3)).astype(float)
    return Y, Y[:, :2].copy()


def collapsed():
    Y, X = line(20)
    return Y, np.zeros_like(X)


@pytest.mark.parametrize(
    "case", [line, grid_with_copies, collapsed, lambda: line(4), lambda: line(3)]
)
def test_everything_equals_the_definitions(case):
    Y, X = case()
    found, Q = coranking(Y, X), oracle.matrix(Y, X)
    np.testing.assert_array_equal(found.Q, Q)
    for name in CURVES:
        curve = getattr(found, name)()
        expected = [getattr(oracle, name)(Q, K) for K in range(1, len(curve) + 1)]
        np.testing.assert_allclose(curve, expected, atol=1e-12, err_msg=name)
    for name in NUMBERS:
        np.testing.assert_allclose(getattr(found, name), getattr(oracle, name)(Q), atol=1e-12)
    for K in range(1, len(Y)):
        assert found.intrusions(K) == pytest.approx(oracle.q_nx(Q, K, "closer"))
        assert found.extrusions(K) == pytest.approx(oracle.q_nx(Q, K, "farther"))
    np.testing.assert_allclose(found.e_nx(), oracle.e_nx(Y, X, range(1, len(Y))), atol=1e-12)
    np.testing.assert_allclose(found.b_nx(), found.extrusions() - found.intrusions(), atol=1e-12)


def test_lengths_of_the_curves():
    n = 12
    found = coranking(*line(n))
    for name in ("q_nx", "lcmc", "b_nx", "e_nx", "intrusions", "extrusions"):
        assert len(getattr(found, name)()) == n - 1
    assert len(found.r_nx()) == n - 2
    assert len(found.trustworthiness()) == len(found.continuity()) == 5  # K < n / 2


def test_two_points_exchanged_by_hand():
    # On the line 0, 1, 3, 7 points 1 and 2 change places. Seen from any point, that exchanges the
    # two nearest others and leaves the third: (1, 2), (2, 1), (3, 3).
    Y = np.array([[0.0], [1.0], [3.0], [7.0]])
    found = coranking(Y, Y[[0, 2, 1, 3]])
    np.testing.assert_array_equal(found.Q, [[0, 4, 0], [4, 0, 0], [0, 0, 4]])
    np.testing.assert_allclose(found.q_nx(), [0, 1, 1])
    np.testing.assert_allclose(found.lcmc(), [-1 / 3, 1 / 3, 0])
    np.testing.assert_allclose(found.r_nx(), [-0.5, 1])  # (0 - 1) / 2, (3 - 2) / 1
    np.testing.assert_allclose(found.e_nx(), [1, 0.5, 1])
    np.testing.assert_allclose(found.intrusions(), [0, 0.5, 1 / 3])
    np.testing.assert_allclose(found.b_nx(), 0)
    assert found.k_max == 2
    assert (found.q_local, found.q_global) == (0.5, 1)
    assert found.auc == pytest.approx(0)  # (-0.5 / 1 + 1 / 2) / (1 + 1 / 2)
    assert found.trustworthiness(1) == 0.5  # 1 - 2 · 4 / (4 · 1 · (8 - 3 - 1))
    assert found.continuity(1) == 0.5


def test_a_rotated_and_scaled_copy_is_perfect():
    Y, _ = line(50, 3)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    found = coranking(Y, 7 * Y @ turn + 5)
    assert found.q_nx().min() == found.trustworthiness().min() == found.auc == 1


def test_a_random_embedding_is_chance():
    rng = np.random.default_rng(0)
    found = coranking(rng.normal(size=(400, 3)), rng.normal(size=(400, 2)))
    assert abs(found.auc) < 0.02
    assert found.trustworthiness(10) == pytest.approx(0.5, abs=0.02)


def test_exchanging_data_and_embedding():
    Y, X = line(40)
    there, back = coranking(Y, X), coranking(X, Y)
    np.testing.assert_array_equal(there.Q, back.Q.T)
    np.testing.assert_allclose(there.trustworthiness(), back.continuity())
    np.testing.assert_allclose(there.intrusions(), back.extrusions())


def test_b_nx_tells_flattening_from_tearing():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 300)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    assert coranking(circle, circle[:, :1]).b_nx(20) > 0.02
    assert coranking(circle, angle[:, None]).b_nx(100) < -0.02


def test_ties_do_not_depend_on_the_width_of_the_data():
    # The same distances in 2 and in 2 + 5 columns (constant ones, and ones that the vector loop
    # takes at a different place).
    Y, X = grid_with_copies()
    wide = np.column_stack([np.full(len(Y), 0.1), Y, np.zeros((len(Y), 4))])
    np.testing.assert_array_equal(coranking(Y, X).Q, coranking(wide, X).Q)


@pytest.mark.parametrize("factor", [1e-160, 1e160, 1e300])
def test_units_do_not_matter(factor):
    Y, X = line(30)
    np.testing.assert_array_equal(coranking(Y, X).Q, coranking(factor * Y, X / factor).Q)


def test_a_large_offset_changes_nothing():
    Y, X = line(30)
    moved = np.round(Y * 2**20) / 2**20 + 2.0**30  # exact, so only cancellation could hurt
    np.testing.assert_array_equal(coranking(moved - 2.0**30, X).Q, coranking(moved, X).Q)


def test_unrolling_is_better_near_and_worse_far():
    # Euclidean ranks know nothing of the way along the roll, so far neighbours favour the shadow.
    Y, t = make_swiss_roll(600, random_state=0)
    along = (t * np.sqrt(1 + t**2) + np.arcsinh(t)) / 2
    unrolled = coranking(Y, np.column_stack([along, Y[:, 1]]))
    shadow = coranking(Y, Y[:, [0, 2]])
    assert unrolled.q_nx(10) > 0.3 + shadow.q_nx(10)
    assert unrolled.q_nx(300) < shadow.q_nx(300)
    assert unrolled.k_max < shadow.k_max


def test_block_of_the_matrix():
    Y, X = line(40)
    whole, block = coranking(Y, X), coranking(Y, X, n_neighbors_max=7)
    np.testing.assert_array_equal(block.Q, whole.Q[:7, :7])
    np.testing.assert_allclose(block.q_nx(), whole.q_nx())


def test_more_points_than_a_tile():
    # 700 points in 100 columns are several tiles of distances; compared with plain numpy.
    Y, X = line(700, 100)
    queries = coranking(Y, X, sample=40, random_state=1).queries
    kept = 0
    for i in queries:
        near = [np.argsort(np.linalg.norm(A - A[i], axis=1))[1:16] for A in (Y, X)]
        kept += len(np.intersect1d(*near))
    assert coranking(Y, X, sample=40, random_state=1).q_nx(15) == pytest.approx(kept / (15 * 40))


def test_a_sample_is_exact_for_its_queries():
    Y, X = line(30)
    found = coranking(Y, X, sample=11, random_state=0)
    Q = oracle.matrix(Y, X, found.queries)
    np.testing.assert_array_equal(found.Q, Q)
    assert not found.is_exact
    assert len(found.queries) == len(set(found.queries)) == 11
    assert found.trustworthiness(4) == pytest.approx(oracle.trustworthiness(Q, 4))
    assert found.continuity(4) == pytest.approx(oracle.continuity(Q, 4))


@pytest.mark.slow
@pytest.mark.parametrize("score", ["q_nx", "trustworthiness", "auc", "q_local"])
def test_standard_error_is_the_spread_of_samples(score):
    # More than half of the points are drawn, so the draws overlap and spread less.
    Y, X = line(300, 5)
    draws = [coranking(Y, X, sample=180, random_state=seed) for seed in range(60)]
    K = 10 if score in co_ranking.CURVES else None

    def value(draw):
        number = getattr(draw, score)
        return number(K) if K else number

    spread = np.std([value(draw) for draw in draws])
    claimed = np.mean([draw.standard_error(score, K) for draw in draws])
    # q_local moves with k_max, an argmax: there the claim is too large (seen: by 1.4).
    most = 1.8 if score == "q_local" else 1.3
    assert 0.75 * spread < claimed < most * spread
    exact = coranking(Y, X)
    assert np.mean([value(draw) for draw in draws]) == pytest.approx(value(exact), abs=3 * spread)


def test_standard_error_without_sampling_is_zero():
    found = coranking(*line(20))
    assert found.is_exact
    assert found.standard_error("auc") == 0
    np.testing.assert_array_equal(found.standard_error("q_nx"), np.zeros(19))
    np.testing.assert_array_equal(found.standard_error("q_nx", [1, 5]), [0, 0])


def test_same_seed_same_queries_on_any_number_of_threads(monkeypatch):
    Y, X = line(80)
    many = coranking(Y, X, sample=30, random_state=4)
    monkeypatch.setattr(co_ranking, "MOST_THREADS", 1)
    one = coranking(Y, X, sample=30, random_state=4)
    np.testing.assert_array_equal(many.queries, one.queries)
    np.testing.assert_array_equal(many.Q, one.Q)
    assert many.standard_error("auc") == one.standard_error("auc")


def test_many_points_are_sampled_by_themselves(monkeypatch):
    monkeypatch.setattr(co_ranking, "MOST_EXACT", 100)
    monkeypatch.setattr(co_ranking, "FEWEST_QUERIES", 50)
    monkeypatch.setattr(co_ranking, "BUDGET_NS", 120 * 90 * 75.0)
    found = coranking(*line(120), random_state=0)
    assert 50 < len(found.queries) < 91
    assert found.standard_error("auc") > 0
    assert coranking(*line(120), sample=120).is_exact


def test_asking_for_sizes():
    found = coranking(*line(20))
    np.testing.assert_array_equal(found.q_nx([1, 3]), found.q_nx()[[0, 2]])
    assert isinstance(found.q_nx(3), float)
    for wrong in (0, 20, 2.5, True):
        with pytest.raises(ValueError, match=r"within \[1, 19\]"):
            found.q_nx(wrong)
    with pytest.raises(ValueError, match=r"must be one of .'q_nx'"):
        found.standard_error("stress")


def test_inputs_are_left_alone_and_read_only_ones_do():
    Y, X = line(20)
    Y.setflags(write=False)
    X.setflags(write=False)
    before = Y.copy()
    coranking(Y, X)
    np.testing.assert_array_equal(Y, before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda Y, X: (Y[:-1], X), "got 19 and 20 rows"),
        (lambda Y, X: (Y[:2], X[:2]), "at least 3 points; got 2"),
        (lambda Y, X: (np.where(Y > 1e9, Y, np.nan), X), "row 0, column 0 .and 99 more. is NaN"),
        (
            lambda Y, X: (Y, np.where(X[3, 1] == X, np.inf, X)),
            "`X` must be finite; row 3, column 1",
        ),
    ],
)
def test_refusals(change, message):
    with pytest.raises(ValueError, match=message):
        coranking(*change(*line(20)))


@pytest.mark.parametrize("sample", [1, 21, 0.5])
def test_wrong_samples(sample):
    with pytest.raises(ValueError, match=r"`sample` must be None or .* \[2, n_samples = 20\]"):
        coranking(*line(20), sample=sample)


def test_wrong_matrix_size():
    with pytest.raises(ValueError, match=r"within \[1, 19\].*n_neighbors_max"):
        coranking(*line(20), n_neighbors_max=20)


def test_says_what_it_is():
    assert "of 20 points seen from all: auc" in repr(coranking(*line(20)))
    assert "seen from 5 of them" in repr(coranking(*line(20), sample=5))

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from twofold.landmarks import Landmarks, get_landmarks
from twofold.landmarks import choice as module
from twofold.landmarks.choice import choose_landmarks

CHOICES = ["kmeans", "kharmonic", "random"]


def draw(n=400, D=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)), rng.uniform(0.5, 2, size=n)


def quantization_error(Y, C):
    return ((Y[:, None] - C) ** 2).sum(axis=2).min(axis=1).mean()


class TestLandmarks:
    @pytest.mark.parametrize(
        ("n", "expected"),
        # 10 sqrt(n) within [100, 2000], at most n // 2 and at least 3.
        [
            (4, 3),
            (6, 3),
            (50, 25),
            (199, 99),
            (200, 100),
            (900, 300),
            (10_000, 1000),
            (10**6, 2000),
        ],
    )
    def test_auto_follows_its_rule(self, n, expected):
        assert Landmarks().number(n) == expected

    def test_a_number_is_taken_as_it_is(self):
        assert Landmarks(7).number(8) == 7
        assert type(Landmarks(np.int64(7)).number(8)) is int

    @pytest.mark.parametrize(("count", "n"), [(8, 8), (9, 8), ("auto", 3)])
    def test_too_few_rows(self, count, n):
        with pytest.raises(ValueError, match=f"less than the number of different rows, {n}"):
            Landmarks(count).number(n)

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"count": 2}, "`count` must be 'auto' or an integer of at least 3; got 2"),
            ({"count": 10.0}, "`count` must be"),
            ({"count": True}, "`count` must be"),
            ({"count": "all"}, "`count` must be"),
            (
                {"choice": "som"},
                "`choice` must be one of .'kmeans', 'kharmonic', 'random'.; got 'som'",
            ),
            ({"adapt": -0.1}, "`adapt` must be True, False or the smoothness"),
            ({"adapt": np.nan}, "`adapt` must be"),
            ({"adapt": "auto"}, "`adapt` must be"),
            ({"adapt": None}, "`adapt` must be"),
        ],
    )
    def test_fields_are_checked(self, fields, message):
        with pytest.raises(ValueError, match=message):
            Landmarks(**fields)

    @pytest.mark.parametrize("adapt", [True, False, 0, 0.5, np.float32(2)])
    def test_what_adapt_may_be(self, adapt):
        assert Landmarks(adapt=adapt).adapt == adapt


def test_get_landmarks():
    assert get_landmarks(None) is None
    assert get_landmarks("auto") == Landmarks()
    assert get_landmarks(30) == get_landmarks(np.int32(30)) == Landmarks(30)
    mine = Landmarks(10, "random", 0.1)
    assert get_landmarks(mine) is mine


@pytest.mark.parametrize("wrong", [True, "kmeans", 10.5, [1, 2, 3], np.zeros((5, 2))])
def test_get_landmarks_errors(wrong):
    with pytest.raises(ValueError, match="`landmarks` must be None, 'auto', a number"):
        get_landmarks(wrong)


@pytest.mark.parametrize("choice", CHOICES)
class TestChoice:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_as_many_distinct_vectors_as_asked_for(self, choice, dtype):
        Y, weights = draw()
        C = choose_landmarks(Y.astype(dtype), weights, Landmarks(40, choice), 0)
        assert C.dtype == dtype
        assert C.shape == (40, 3)
        assert len(np.unique(C, axis=0)) == 40

    def test_they_stand_for_the_rows(self, choice):
        Y, weights = draw()
        C = choose_landmarks(Y, weights, Landmarks(40, choice), 0)
        rows = choose_landmarks(Y, weights, Landmarks(40, "random"), 1)
        limit = 1.5 if choice == "random" else 0.8
        assert quantization_error(Y, C) < limit * quantization_error(Y, rows)
        assert quantization_error(Y, C) < 0.3 * Y.var(axis=0).sum()

    def test_seeds(self, choice):
        Y, weights = draw()
        first = choose_landmarks(Y, weights, Landmarks(20, choice), 5)
        np.testing.assert_array_equal(choose_landmarks(Y, weights, Landmarks(20, choice), 5), first)
        other = choose_landmarks(Y, weights, Landmarks(20, choice), 6)
        assert not np.array_equal(other, first)

    def test_the_order_of_the_rows_does_not_matter(self, choice):
        Y, weights = draw()
        order = np.random.default_rng(3).permutation(len(Y))
        np.testing.assert_array_equal(
            choose_landmarks(Y[order], weights[order], Landmarks(20, choice), 0),
            choose_landmarks(Y, weights, Landmarks(20, choice), 0),
        )

    def test_copies_of_rows(self, choice):
        # 30 distinct rows among 300, of which one has no weight.
        Y = np.repeat(draw(n=30)[0], 10, axis=0)
        weights = np.repeat(np.r_[0.0, np.ones(29)], 10)
        C = choose_landmarks(Y, weights, Landmarks(25, choice), 0)
        assert len(np.unique(C, axis=0)) == len(C) == 25
        everything = choose_landmarks(Y, weights, Landmarks(100, choice), 0)
        np.testing.assert_array_equal(everything, np.unique(Y[10:], axis=0))

    def test_weights_draw_landmarks(self, choice):
        Y = np.concatenate([draw(n=300)[0], draw(n=300, seed=1)[0] + 20])
        heavy = np.repeat([1.0, 1000.0], 300)
        counts = [
            (choose_landmarks(Y, weights, Landmarks(30, choice), 0)[:, 0] > 10).sum()
            for weights in (np.ones(600), heavy)
        ]
        assert counts[1] > counts[0] + 4

    def test_one_column(self, choice):
        Y, weights = draw(D=1)
        C = choose_landmarks(Y, weights, Landmarks(12, choice), 0)
        assert C.shape == (12, 1)
        assert quantization_error(Y, C) < 0.1

    def test_threads_do_not_matter(self, choice):
        Y, weights = draw(n=5000, D=10)
        found = []
        for n_threads in (1, 4):
            with threadpool_limits(n_threads):
                found.append(choose_landmarks(Y, weights, Landmarks(60, choice), 0))
        np.testing.assert_array_equal(found[0], found[1])

    def test_count_at_least_the_rows(self, choice):
        Y, weights = draw(n=10)
        with pytest.raises(ValueError, match="less than the number of different rows, 10; got 10"):
            choose_landmarks(Y, weights, Landmarks(10, choice), 0)


def test_means_are_weighted():
    rng = np.random.default_rng(0)
    blobs = [rng.normal(size=(20, 2)) + 50 * place for place in range(5)]
    weights = [rng.uniform(0, 5, size=20) for _ in blobs]
    C = choose_landmarks(np.concatenate(blobs), np.concatenate(weights), Landmarks(5), 0)
    expected = [np.average(Y, axis=0, weights=w) for Y, w in zip(blobs, weights, strict=True)]
    np.testing.assert_allclose(C[C[:, 0].argsort()], expected)


def test_random_landmarks_are_rows():
    Y, weights = draw()
    C = choose_landmarks(Y, weights, Landmarks(30, "random"), 0)
    assert {tuple(row) for row in C} <= {tuple(row) for row in Y}


@pytest.mark.parametrize("choice", ["kmeans", "kharmonic"])
def test_a_part_of_the_rows_is_enough(choice, monkeypatch):
    Y, weights = draw(n=3000)
    whole = choose_landmarks(Y, weights, Landmarks(20, choice), 0)
    monkeypatch.setattr(module, "COARSE_ROWS", 5)
    monkeypatch.setattr(module, "FINE_ROWS", 50)
    monkeypatch.setattr(module, "HARMONIC_ROWS", 50)
    part = choose_landmarks(Y, weights, Landmarks(20, choice), 0)
    assert not np.array_equal(part, whole)
    assert quantization_error(Y, part) < 1.15 * quantization_error(Y, whole)


def test_harmonic_landmarks_in_many_dimensions():
    # With the usual power of 3.5 they gather in the middle and are worse than random rows.
    Y, weights = draw(n=2000, D=20)
    rows = choose_landmarks(Y, weights, Landmarks(100, "random"), 0)
    harmonic = choose_landmarks(Y, weights, Landmarks(100, "kharmonic"), 0)
    assert quantization_error(Y, harmonic) < 0.8 * quantization_error(Y, rows)


def test_idle_and_equal_centres_are_replaced_by_far_rows():
    Y = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [5.0, 0.0]])
    centres = np.array([[0.0, 0.5], [0.0, 0.5], [-50.0, 0.0]])
    np.testing.assert_array_equal(
        module._replace_idle(centres, Y, 1), [[0.0, 0.5], [9.0, 0.0], [5.0, 0.0]]
    )

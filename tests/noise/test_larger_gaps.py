"""Rows that miss much: how much farther off they are is told by rows of which much is hidden."""

from __future__ import annotations

import numpy as np
import pytest

from twofold import UKR, ManifoldImputer, Scaled, load
from twofold.noise.larger_gaps import LargerGaps, much_to_hide


def instruments(n, seed):
    """Return rows of three instruments, whose four columns each go together."""
    random = np.random.default_rng(seed)
    shared = np.repeat(random.normal(size=(n, 3)), 4, axis=1)
    drift = random.normal(size=(n, 1))
    return drift + 0.6 * shared + 0.4 * random.normal(size=(n, 12))


TRAIN, NEW = instruments(260, 0), instruments(300, 1)


def patterns():
    random = np.random.default_rng(2)
    few = random.random(NEW.shape) < 0.1
    half = random.random(NEW.shape) < 0.5
    half[half.all(axis=1), 0] = False
    block = np.zeros(NEW.shape, dtype=bool)
    block[:, :8] = True
    return {"few": few, "half": half, "two of three instruments": block}


@pytest.fixture(scope="module", params=["map", "imputer"])
def told(request):
    if request.param == "map":
        model = Scaled(UKR(1, random_state=0, max_iter=10)).fit(TRAIN)
        return lambda rows: (
            *model.intervals(rows),
            *(model.complete(rows), model.complete(rows, n_draws=8, random_state=0)),
        )
    imputer = ManifoldImputer(trees=False, random_state=0).fit(TRAIN)
    return lambda rows: (
        *imputer.intervals(rows),
        *(imputer.transform(rows), imputer.draws(rows, 8, random_state=0)),
    )


@pytest.mark.parametrize(
    ("pattern", "least", "least_of_draws"),
    [("few", 0.85, 0.8), ("half", 0.87, 0.8), ("two of three instruments", 0.75, 0.5)],
)
def test_intervals_and_draws_know_how_much_a_row_misses(told, pattern, least, least_of_draws):
    # As of usual gaps, two of three instruments had 0.72, and draws 0.4 of the squared error.
    gaps = patterns()[pattern]
    low, high, filled, draws = told(np.where(gaps, np.nan, NEW))
    assert least < ((low <= NEW) & (high >= NEW))[gaps].mean() < 0.97
    open_ = ((filled - NEW)[gaps] ** 2).mean()
    assert least_of_draws < draws.var(axis=0, ddof=1)[gaps].mean() / open_ < 1.6


def test_much_is_hidden_at_random_and_side_by_side():
    observed = np.random.default_rng(0).random((80, 12)) < 0.9
    observed[0] = np.arange(12) == 3
    hidden = much_to_hide(observed, np.random.RandomState(0))
    assert not (hidden & ~observed).any()
    assert (observed & ~hidden).any(axis=1).all()
    assert not hidden[0].any()
    share = hidden.sum(axis=1) / observed.sum(axis=1)
    np.testing.assert_allclose(share[2::2], 0.5, atol=0.06)
    np.testing.assert_allclose(share[1::2], 0.8, atol=0.06)
    whole = much_to_hide(np.ones((8, 12), dtype=bool), np.random.RandomState(0))
    ends = (whole != np.roll(whole, 1, axis=1)).sum(axis=1)
    np.testing.assert_array_equal(ends[[2, 3, 6, 7]], 2)  # one run, also across the last column
    assert (ends[[0, 1, 4, 5]] > 2).any()
    groups = np.array([0, 0, 0, 1, 2, 2, 3, 4])
    together = much_to_hide(np.ones((20, 8), dtype=bool), np.random.RandomState(0), groups)
    assert (together[:, 0] == together[:, 2]).all()
    assert (together[:, 4] == together[:, 5]).all()


def test_between_sizes_deviations_are_interpolated():
    n = 400
    errors = np.where(np.arange(n) % 2 == 0, 2.0, 4.0) * np.where(np.arange(n) % 4 < 2, 1, -1)
    shares = np.where(np.arange(n) % 2 == 0, 0.5, 0.8)
    gaps = LargerGaps(errors, np.ones(n), np.arange(n) % 3, shares, 0.2, 3)
    missing = np.array([0.0, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95])
    found = gaps.deviations(np.ones((7, 3)), np.ones((7, 3)), missing)[:, 0]
    np.testing.assert_allclose(found, [1, 1, 2**0.5, 2, 8**0.5, 4, 4], rtol=1e-6)
    reach = gaps.reach(np.full(3, 3.0), gaps.ratios(), 0.9, missing)
    np.testing.assert_allclose(reach[[0, 3, 5], 0], [3, 1, 1], rtol=1e-6)
    none = LargerGaps(*np.zeros((4, 0)), 1.0, 3)
    np.testing.assert_array_equal(none.deviations(np.ones((7, 3)), np.ones((7, 3)), missing), 1)


def test_a_file_keeps_what_larger_gaps_told(tmp_path):
    model = Scaled(UKR(1, init="pca", max_iter=5)).fit(TRAIN[:80])
    partial = np.where(patterns()["half"], np.nan, NEW)[:20]
    low, high = model.intervals(partial)
    assert len(model.model_.noise_.larger_errors) > 100
    model.save(tmp_path / "model.twofold")
    again = load(tmp_path / "model.twofold").intervals(partial)
    np.testing.assert_array_equal(again, (low, high))

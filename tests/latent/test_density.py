from __future__ import annotations

import numpy as np
import pytest

from twofold.latent.density import scott_widths


def test_widths_are_deviations_by_the_rule_of_scott():
    X = np.random.default_rng(0).normal(size=(50, 2)) * [1.0, 1e-5]
    weights = np.random.default_rng(1).uniform(0.5, 2, 50)
    mean = np.average(X, axis=0, weights=weights)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    np.testing.assert_allclose(scott_widths(X, weights), deviation * 50 ** (-1 / 6))
    wide = scott_widths(X, weights, least_share=1e-3)
    assert wide[1] == pytest.approx(1e-3 * wide[0])


def test_no_width_is_zero():
    X = np.column_stack([np.arange(9.0), np.ones(9)])
    assert scott_widths(X, np.ones(9))[1] == pytest.approx(9 ** (-1 / 6))
    np.testing.assert_allclose(scott_widths(np.ones((9, 2)), np.ones(9), 1e-3), 9 ** (-1 / 6))

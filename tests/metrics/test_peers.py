"""Against other packages of such scores, where they are installed."""

from __future__ import annotations

import numpy as np
import pytest

from twofold.metrics import coranking, neighborhood_hit


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(120, 5)) * [4, 2, 1, 1, 1]
    return Y, Y[:, :2] + 0.1 * rng.normal(size=(120, 2))


@pytest.mark.parametrize("k", [3, 10, 40])
def test_zadu(pair, k):
    ranked, local, hit = (
        pytest.importorskip(f"zadu.measures.{name}")
        for name in (
            "trustworthiness_continuity",
            "local_continuity_meta_criteria",
            "neighborhood_hit",
        )
    )
    found = coranking(*pair)
    theirs = ranked.measure(*pair, k=k)
    assert found.trustworthiness(k) == pytest.approx(theirs["trustworthiness"], abs=1e-12)
    assert found.continuity(k) == pytest.approx(theirs["continuity"], abs=1e-12)
    theirs = local.measure(*pair, k=k)
    assert found.lcmc(k) == pytest.approx(theirs["lcmc"], abs=1e-12)
    labels = (pair[0][:, 0] > 0).astype(int)
    theirs = hit.measure(pair[1], labels, k=k)
    assert neighborhood_hit(pair[1], labels, k) == pytest.approx(theirs["neighborhood_hit"])


def test_py_dr_metrics(pair):
    theirs = pytest.importorskip("pyDRMetrics.coranking_matrix")
    gaps = [np.linalg.norm(A[:, None] - A, axis=2) for A in pair]
    Q = theirs.coranking_matrix(*[theirs.ranking_matrix(gap) for gap in gaps])
    found = coranking(*pair)
    np.testing.assert_array_equal(found.Q, Q[1:, 1:])
    shares = theirs.coranking_matrix_metrics(Q)[2]
    # It divides by n - 1 points where there are n, so its shares are larger by n / (n - 1).
    np.testing.assert_allclose(found.q_nx(), shares * 119 / 120)

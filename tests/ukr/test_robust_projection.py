"""Projection by a loss other than the squared one: single corrupted entries count for less."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize
from ukr.problems import make_surface, sheet

from twofold import UKR, load
from twofold.kernels import GAUSSIAN, QUARTIC
from twofold.losses import EpsilonInsensitive, Huber, Squared
from twofold.ukr.projection import project

D = 12
rng = np.random.default_rng(0)
X, THREE = sheet()
Y = THREE @ rng.normal(size=(3, D))
PLACES = rng.uniform(-3, 3, size=(40, 2))


@dataclass(frozen=True)
class LogCosh:
    """A loss of a user's: ``Σ log cosh(r / s)``, quadratic near zero and linear far off."""

    scale: float = 0.05

    def value_and_slope(self, R):
        size = np.abs(R) / self.scale
        values = size + np.log1p(np.exp(-2 * size)) - np.log(2)
        return values.sum(axis=1).astype(R.dtype), (np.tanh(R / self.scale) / self.scale).astype(
            R.dtype
        )


class PerRow:
    """A loss of a user's with a number for each row of the table."""

    def __init__(self, factors):
        self.factors = factors

    def at(self, numbers):
        return PerRow(self.factors[numbers])

    def value_and_slope(self, R):
        factors = self.factors[:, None]
        return (factors * R * R).sum(axis=1), 2 * factors * R


LOSSES = {"huber": Huber(0.05), "log cosh": LogCosh()}
losses = pytest.mark.parametrize("name", LOSSES)


def surface(kernel=GAUSSIAN, dtype=np.float64):
    return make_surface(kernel, X, Y.astype(dtype))


def corrupted(Y, n_entries=3, size=3.0):
    """Return rows with a few entries far off."""
    wild = np.random.default_rng(1)
    bad = Y.copy()
    for row in bad:
        places = wild.choice(D, n_entries, replace=False)
        row[places] += size * wild.choice([-1, 1], n_entries)
    return bad


@losses
@pytest.mark.parametrize("kernel", [GAUSSIAN, QUARTIC], ids=["gaussian", "quartic"])
def test_corrupted_rows_land_near_their_clean_place(name, kernel):
    manifold = surface(kernel)
    clean = manifold.regress(PLACES)
    bad = corrupted(clean)
    robust = np.linalg.norm(project(manifold, bad, None, LOSSES[name]).X - PLACES, axis=1)
    squared = np.linalg.norm(project(manifold, bad, None).X - PLACES, axis=1)
    assert np.median(robust) < 0.1
    assert np.median(robust) < 0.2 * np.median(squared)
    assert (robust < squared).mean() > 0.8


@losses
def test_rows_on_the_manifold_are_found(name):
    manifold = surface()
    found = project(manifold, manifold.regress(PLACES), None, LOSSES[name])
    np.testing.assert_allclose(found.X, PLACES, atol=1e-2)
    assert found.error.max() < 1e-3


@losses
def test_the_error_is_the_loss_at_the_place_found(name):
    manifold, bad = surface(), corrupted(surface().regress(PLACES))
    found = project(manifold, bad, None, LOSSES[name])
    expected = LOSSES[name].value_and_slope(manifold.regress(found.X) - bad)[0]
    np.testing.assert_allclose(found.error, expected, rtol=1e-9)


@pytest.mark.slow
@losses
def test_no_start_leads_to_a_lower_error(name):
    manifold, loss = surface(), LOSSES[name]
    bad = corrupted(manifold.regress(PLACES[:6]), size=1.0)
    found = project(manifold, bad, None, loss)
    for j, y in enumerate(bad):

        def error(x, y=y):
            outside = 1e3 * (manifold.density(x[None])[0] < manifold.threshold)
            return loss.value_and_slope(manifold.regress(x[None]) - y)[0][0] + outside

        best = min(
            minimize(error, start, method="Nelder-Mead", options={"xatol": 1e-6}).fun
            for start in manifold.X[::29]
        )
        assert found.error[j] <= best * (1 + 1e-2)


@losses
@pytest.mark.parametrize("size", [0.0, 1.0, 1e6, 1e160])
def test_everything_stays_finite(name, size):
    manifold = surface()
    rows = manifold.regress(PLACES) + size * np.eye(D)[np.arange(40) % D]
    found = project(manifold, rows, None, LOSSES[name])
    assert np.isfinite(found.X).all()
    assert (manifold.density(found.X) >= manifold.threshold).all()


@losses
def test_rows_met_exactly_stay(name):
    """Where every residual is zero the weights of the entries must not be 0/0."""
    manifold = surface()
    rows = manifold.regress(manifold.X[:10])
    found = project(manifold, rows, None, LOSSES[name])
    np.testing.assert_allclose(found.X, manifold.X[:10], atol=1e-3)


@losses
def test_a_row_gives_the_same_bits_alone_or_among_others(name):
    manifold, bad = surface(), corrupted(surface().regress(PLACES))
    observed = np.random.default_rng(2).random(bad.shape) < 0.8
    observed[:, 0] = True
    for mask in (None, observed):
        together = project(manifold, bad, mask, LOSSES[name])
        for rows in ([0], [3, 4], [39]):
            alone = project(manifold, bad[rows], None if mask is None else mask[rows], LOSSES[name])
            np.testing.assert_array_equal(alone.X, together.X[rows])
            np.testing.assert_array_equal(alone.error, together.error[rows])


@losses
def test_missing_entries_cost_nothing(name):
    manifold, bad = surface(), corrupted(surface().regress(PLACES))
    clean = manifold.regress(PLACES)
    observed = bad == clean
    found = project(manifold, np.where(observed, bad, np.nan), observed, LOSSES[name])
    np.testing.assert_allclose(found.X, PLACES, atol=1e-2)
    other = project(manifold, np.where(observed, bad, 1e9), observed, LOSSES[name])
    np.testing.assert_array_equal(found.X, other.X)


@losses
def test_single_precision(name):
    manifold, bad = surface(dtype=np.float32), corrupted(surface().regress(PLACES))
    found = project(manifold, bad.astype(np.float32), None, LOSSES[name])
    assert found.X.dtype == np.float32
    apart = np.linalg.norm(found.X - PLACES, axis=1)
    assert np.median(apart) < 0.15


def test_a_wide_huber_is_the_squared_loss():
    manifold = surface()
    rows = manifold.regress(PLACES) + 0.1 * np.random.default_rng(4).normal(size=(40, D))
    wide, squared = project(manifold, rows, None, Huber(1e4)), project(manifold, rows, None)
    np.testing.assert_allclose(wide.X, squared.X, atol=1e-3)
    np.testing.assert_allclose(wide.error * 2e4, squared.error, rtol=1e-4)


# ---- as users meet it ----------------------------------------------------------------------------


NOISY = Y + 0.02 * np.random.default_rng(3).normal(size=Y.shape)
QUICK = {"init": X, "max_iter": 15, "random_state": 0}


def fit(loss):
    return UKR(loss=loss, **QUICK).fit(NOISY)


def moved_by_corruption(model):
    clean = surface().regress(PLACES)
    gap = model.transform(corrupted(clean)) - model.transform(clean)
    return np.linalg.norm(gap, axis=1)


def test_the_model_projects_by_the_loss_it_was_trained_with():
    robust, squared = fit("huber"), fit("squared")
    assert robust.loss_.delta > 0
    assert np.median(moved_by_corruption(robust)) < 0.2 * np.median(moved_by_corruption(squared))


def test_a_loss_of_the_users_is_used_in_projection():
    model, squared = fit(LogCosh(0.05)), fit("squared")
    assert np.median(moved_by_corruption(model)) < 0.5 * np.median(moved_by_corruption(squared))
    bad = corrupted(surface().regress(PLACES))
    direct = project(model._surface, bad, None, LogCosh(0.05)).X / model.latent_scale_
    np.testing.assert_array_equal(model.transform(bad), direct)


def test_a_tube_is_projected_by_squares():
    """Within ε every place is as good; the nearest one is meant."""
    model = UKR(loss=EpsilonInsensitive(0.3), regularization="smoothest", **QUICK).fit(NOISY)
    rows = surface().regress(PLACES)
    direct = project(model._surface, rows, None, Squared()).X / model.latent_scale_
    np.testing.assert_array_equal(model.transform(rows), direct)


@pytest.mark.parametrize("factor", [2.0**-30, 2.0**30])
def test_units_do_not_matter(factor):
    plain = fit(Huber(0.05))
    scaled = UKR(loss=Huber(0.05 * factor), **QUICK).fit(factor * NOISY)
    bad = corrupted(surface().regress(PLACES))
    np.testing.assert_allclose(scaled.transform(factor * bad), plain.transform(bad), atol=1e-3)
    assert scaled.objective_ == pytest.approx(factor * plain.objective_, rel=1e-6)


def test_a_saved_model_projects_alike(tmp_path):
    model = fit("huber")
    model.save(tmp_path / "model.twofold")
    bad = corrupted(surface().regress(PLACES))
    again = load(tmp_path / "model.twofold")
    assert again.loss_ == model.loss_
    np.testing.assert_array_equal(again.transform(bad), model.transform(bad))


def test_completion_withstands_a_corrupted_entry():
    clean = surface().regress(PLACES)
    bad = corrupted(clean, n_entries=1)
    holes = np.zeros(clean.shape, dtype=bool)
    holes[np.arange(40), (np.abs(bad - clean).argmax(axis=1) + 5) % D] = True
    partial = np.where(holes, np.nan, bad)
    errors = [np.abs(fit(loss).complete(partial) - clean)[holes] for loss in ("huber", "squared")]
    assert np.median(errors[0]) < 0.3 * np.median(errors[1])


class TestLossesWithANumberForEachRow:
    factors = np.where(X[:, 0] > 0, 20.0, 1.0)

    def test_numbers_belong_to_rows_in_the_users_order(self):
        model = fit(PerRow(self.factors))
        references = model.embedding_ * model.latent_scale_
        kernel = GAUSSIAN.value(((references[:, None] - references[None]) ** 2).sum(axis=2))
        np.fill_diagonal(kernel, 0)
        residual = kernel @ NOISY / kernel.sum(axis=1, keepdims=True) - NOISY
        expected = (self.factors * (residual**2).sum(axis=1)).mean()
        assert model.objective_ == pytest.approx(expected, rel=1e-3)

    def test_new_rows_have_no_number(self):
        """They are projected by some loss; that of the table's rows does not fit them."""
        model = fit(PerRow(self.factors))
        found = model.transform(surface().regress(PLACES))
        assert np.isfinite(found).all()

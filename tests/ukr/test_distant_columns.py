"""Columns that no near row observes: CPU, GPU and the module of torch agree with all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from on_device import DEVICE, torch

from twofold import UKR
from twofold.engine import KernelSums
from twofold.kernels import GAUSSIAN
from twofold.losses import Squared
from twofold.regularization import LeaveOneOut
from twofold.ukr.objective import Problem
from twofold.ukr.torch_module import KernelRegression

# Of what a column spans, as docs/gpu.md promises it.
PROMISED = 1e-4


@pytest.fixture(scope="module")
def table():
    """Rows whose third column is observed at one side only, and latent places near the rows'."""
    rng = np.random.default_rng(0)
    t = rng.uniform(-2, 2, size=(90, 2))
    Y = np.column_stack([t, np.sin(2 * t)])
    Y[t[:, 0] > -1, 2] = np.nan
    Y[rng.random(90) < 0.8, 3] = np.nan
    X = (4 * t).astype(np.float32).astype(np.float64)
    # On the sheet, and bandwidths away from it.
    places = np.concatenate([rng.uniform(-8, 8, size=(60, 2)), [[30.0, 0.0], [-60.0, 40.0]]])
    return Y, X, places


def surface_of(Y, X, *, cutoff=1e-6, degree=0, device="cpu"):
    engine = KernelSums(GAUSSIAN, cutoff, 1, device=device)
    weights = np.linspace(1, 2, len(Y))
    return Problem.of_rows(Y, weights, Squared(), LeaveOneOut(), engine, degree).surface(X)


def off(found, expected, Y):
    return (np.abs(found - expected) / (np.nanmax(Y, axis=0) - np.nanmin(Y, axis=0))).max()


def weighted_means(Y, X, places, own=None):
    """The regression written out, in the logarithm of the weights."""
    s = ((places[:, None] - X) ** 2).sum(axis=2)
    if own is not None:
        s[np.arange(len(places)), own] = np.inf
    out = np.empty((len(places), Y.shape[1]))
    for d, column in enumerate(Y.T):
        known = np.flatnonzero(~np.isnan(column))
        far = s[:, known]
        w = np.exp(-0.5 * (far - far.min(axis=1, keepdims=True))) * np.linspace(1, 2, len(Y))[known]
        out[:, d] = (w @ column[known]) / w.sum(axis=1)
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_means_are_those_of_all_pairs(table, dtype):
    Y, X, places = table
    found = surface_of(Y.astype(dtype), X).regress(places)
    assert off(found, weighted_means(Y, X, places), Y) < PROMISED


def test_a_row_that_is_left_out_is_left_out_of_far_columns_too(table):
    Y, X, _ = table
    own = np.arange(len(Y))
    found = surface_of(Y, X).regress_without(X, own)
    assert off(found, weighted_means(Y, X, X, own), Y) < PROMISED


def test_the_derivative_is_that_of_the_means(table):
    Y, X, places = table
    surface, step = surface_of(Y, X), np.array([1e-5, 0.0])
    J = surface.look(places)[1][:, 0] * surface.rows.unit
    up, down = (weighted_means(Y, X, places + sign * step) for sign in (1, -1))
    assert np.abs(J - (up - down) / 2e-5).max() < 1e-3


@pytest.mark.parametrize("degree", [1, 2])
def test_local_fits_are_those_of_all_pairs(table, degree):
    Y, X, places = table
    expected = surface_of(Y, X, cutoff=1e-30, degree=degree).regress(places[:60])
    found = surface_of(Y, X, degree=degree).regress(places[:60])
    assert off(found, expected, Y) < PROMISED


# The interpreter takes seconds for the slopes of local fits, which tests/engine has on less.
@pytest.mark.parametrize("degree", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_device_agrees(table, degree, monkeypatch):
    monkeypatch.setattr("twofold.engine.sums.MANY_QUERIES", 1)
    Y, X, places = table
    places = places[:12] if degree else places
    here, there = (surface_of(Y, X, degree=degree, device=name) for name in ("cpu", DEVICE))
    expected = here.regress(places)
    assert off(there.regress(places), expected, Y) < PROMISED
    tensor = torch.as_tensor(places, dtype=torch.float32, device=DEVICE)
    assert off(there.regress_tensor(tensor).cpu().numpy(), expected, Y) < PROMISED
    # Slopes of some places, of a size that local fits at the edge do not reach.
    J, wanted = there.look(places)[1], here.look(places)[1]
    assert np.abs(J - wanted).max() < 1e-3 * max(1.0, np.abs(wanted).max())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_module_of_torch_agrees(table, dtype):
    Y, X, places = table
    model = UKR(random_state=0, max_iter=2).fit(Y)
    model.latent_, model.latent_scale_ = X, np.ones(2)
    model.weights_ = np.linspace(1, 2, len(Y))
    module = KernelRegression(model.kernel_regression()).to(dtype)
    found = module(torch.as_tensor(places, dtype=dtype)).double().numpy()
    expected = weighted_means(model.data_, X, places)
    assert off(found, expected, Y) < PROMISED
    x = torch.as_tensor(places[:8]).requires_grad_()
    assert torch.autograd.gradcheck(module.double(), (x,), atol=1e-6)

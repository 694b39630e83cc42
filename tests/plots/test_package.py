"""The package as a whole: imports, examples, and every picture of every kind of model."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from sklearn.metrics import pairwise_distances

from twofold import UKR, Mixed, Scaled, plots
from twofold.losses import Huber


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_without_matplotlib_the_error_says_what_to_install():
    done = run("import sys; sys.modules['matplotlib'] = None; import twofold.plots")
    assert done.returncode != 0
    assert 'pip install "' in done.stderr
    assert '[plot]"' in done.stderr


@pytest.mark.slow
def test_pyplot_is_loaded_only_for_a_new_figure():
    done = run("import sys, twofold.plots; print('matplotlib.pyplot' in sys.modules)")
    assert done.stdout.strip() == "False"


def test_public_names_are_functions_with_examples():
    for name in plots.__all__:
        assert "Examples" in getattr(plots, name).__doc__


def small() -> Axes:
    return Figure(figsize=(3, 3), dpi=40).subplots()


def with_holes(Y: np.ndarray) -> np.ndarray:
    holes = np.random.default_rng(0).random(Y.shape) < 0.05
    return np.where(holes, np.nan, Y)


MODELS = {
    "one dimension": lambda Y: UKR(1, init="pca", max_iter=3).fit(Y),
    "four dimensions": lambda Y: UKR(4, init="pca", max_iter=3).fit(Y),
    "compact kernel": lambda Y: UKR(kernel="quartic", init="pca", max_iter=3).fit(Y),
    "landmarks": lambda Y: UKR(landmarks=20, init="isomap", random_state=0, max_iter=3).fit(Y),
    "data kernel": lambda Y: UKR(data_kernel="rbf", init="isomap", max_iter=3).fit(Y),
    "missing entries": lambda Y: UKR(init="pca", max_iter=3).fit(with_holes(Y)),
    "trimmed": lambda Y: UKR(loss=Huber(trim=1.2), init="isomap", max_iter=3).fit(Y),
    "float32": lambda Y: UKR(init="pca", max_iter=3).fit(Y.astype(np.float32)),
    "scaled": lambda Y: Scaled(UKR(init="pca", max_iter=3)).fit(Y),
    "equal rows": lambda Y: UKR(init="pca", max_iter=3).fit(np.repeat(Y[:40], 2, axis=0)),
}


FIRST = ("one dimension", "landmarks")


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind in FIRST else [pytest.mark.slow]) for kind in MODELS],
)
def test_every_picture_of_every_kind_of_model(kind: str, table):
    Y = table[0][:80]
    model = MODELS[kind](Y)
    last = (model.embedding_.shape[1] - 1, 0)
    drawn = [
        plots.latent_map(model, dims=last, color=36, ax=small()),
        plots.latent_map(model, color="magnification", names=True, contours=True, ax=small()),
        plots.grid(model, shape=4, dims=last, image_shape=(8, 8), ax=small()),
        plots.path(model, 0, 5, steps=3, ax=small()),
        plots.magnification(model, dims=last, ax=small()),
        plots.sensitivity(model, 36, dims=last, ax=small()),
        plots.important_features(model, 4, ax=small()),
        plots.history(model, ax=small()),
        plots.errors(model, Y, ax=small()),
    ]
    if kind != "landmarks":
        drawn += [
            plots.errors(model, ax=small()),
            plots.latent_map(model, color="error", ax=small()),
        ]
    for ax in drawn:
        FigureCanvasAgg(ax.figure).draw()


@pytest.mark.slow
def test_a_precomputed_matrix_has_a_map(table):
    D = pairwise_distances(table[0][:60])
    model = UKR(data_kernel="precomputed_distance", init="isomap", max_iter=3).fit(D)
    plots.latent_map(model, color="error").figure.canvas.draw()


def test_names_are_no_formulas():
    t = np.random.default_rng(0).random((60, 2))
    table = pd.DataFrame({"price ($) a $_item": t[:, 0], "$^ $": t[:, 1], "sum $": t.sum(axis=1)})
    model = Scaled(UKR(init="pca", max_iter=2)).fit(table)
    kind = np.where(t[:, 0] > 0.5, "$x_$^", "$5-$10")
    model.annotate(names=[f"$_{k}$^" for k in range(60)], labels={"$_ $^": kind})
    mixed = Mixed(UKR(init="pca", max_iter=2)).fit(table.assign(**{"kind $_ $^": kind}))
    figures = [
        plots.latent_map(model, names=True).figure,
        plots.latent_map(model, color="$^ $").figure,
        plots.sensitivity(model, 0).figure,
        plots.sensitivities(model),
        plots.important_features(model).figure,
        plots.path(model, 0, 3).figure,
        plots.path(mixed, 0, 3).figure,
        plots.odd_rows(model).figure,
        plots.intervals(model, table.iloc[:1]).figure,
        plots.what_stands_out(model, t[:, 0] > 0.7).figure,
        plots.errors(model).figure,
    ]
    for figure in figures:
        figure.canvas.draw()
        written = [text for text in figure.findobj(Text) if "$" in text.get_text()]
        assert written
        # The ticks of an axis of logarithms are formulas by intent.
        formulas = {text.get_text() for text in written if text.get_parse_math()}
        assert not [text for text in formulas if "mathdefault" not in text]

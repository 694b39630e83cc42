"""Every picture of the concept pages, drawn and saved.

python examples/concept_pictures.py [folder]
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from twofold import PSOM, UKR, DiffusionMap, KernelPCA, datasets
from twofold.features import RBF

GREY, BLUE, RED = "#b0b0b0", "#3056d3", "#d9480f"


def two_ways() -> plt.Figure:
    """Draw rows in the plane, their places on a line, and both directions."""
    bow = datasets.make_half_circle(150, noise=0.6, random_state=1)
    model = UKR(1, degree=1, random_state=0).fit(bow.Y)
    figure, (data, line) = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
    ends = np.quantile(model.embedding_, [0.01, 0.99])
    curve = model.inverse_transform(np.linspace(*ends, 200)[:, None])
    colors = model.embedding_[:, 0]
    data.plot(*curve.T, color=GREY, lw=2)
    data.scatter(*bow.Y.T, c=colors, cmap="viridis", s=16)
    row = np.array([[3.0, 6.0]])
    foot = model.reconstruct(row)
    data.annotate("", foot[0], row[0], arrowprops={"arrowstyle": "->", "color": RED})
    data.scatter(*row.T, color=RED, marker="x")
    data.set(title="data space: rows y, and the curve f(x)", aspect="equal")
    line.scatter(colors, np.zeros(150), c=colors, cmap="viridis", s=30)
    line.scatter(model.transform(row), [0], color=RED, marker="x", s=60, zorder=3)
    line.set(title="latent space: places x", yticks=[], ylim=(-1, 1))
    line.text(0.02, 0.75, "there: g(y) →", transform=line.transAxes, color=RED)
    line.text(0.02, 0.15, "← back: f(x)", transform=line.transAxes, color=BLUE)
    return figure


def kernel_regression() -> plt.Figure:
    """Draw three scales of the latent points: too close, right, too far apart."""
    bow = datasets.make_half_circle(60, noise=0.8, random_state=3)
    scales = 2.0 ** np.arange(-1, 7, 0.25)
    best = scales[
        np.argmin([predict(bow, scale, bow.latent, leave_out=True)[1] for scale in scales])
    ]
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained", sharey=True)
    names = "too close: too smooth", "in between", "too far apart: too rough"
    for axis, scale, name in zip(axes, (best / 8, best, best * 12), names, strict=True):
        curve = predict(bow, scale, np.linspace(0, np.pi, 600)[:, None])[0]
        error = predict(bow, scale, bow.latent, leave_out=True)[1]
        axis.scatter(*bow.Y.T, s=10, color=GREY)
        axis.plot(*curve.T, color=BLUE)
        axis.set_title(f"{name}\nleave-one-out error {error:.2f}", size=9)
        axis.set_aspect("equal")
    return figure


def predict(
    bow: datasets.Sample, scale: float, latent: np.ndarray, leave_out: bool = False
) -> tuple[np.ndarray, float]:
    """Return a kernel regression at some places, and its mean squared error at the rows."""
    weights = np.exp(-((scale * (latent - bow.latent.T)) ** 2) / 2)
    if leave_out:
        np.fill_diagonal(weights, 0)
    found = weights @ bow.Y / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    error = ((found - bow.Y) ** 2).sum(axis=1).mean() if len(found) == len(bow.Y) else np.nan
    return found, float(error)


def grid_of_nodes() -> plt.Figure:
    """Draw nodes of a latent square and where they are in data space."""
    bowl = datasets.make_fish_bowl(300, noise=0.3, random_state=0)
    model = PSOM(grid=(6, 6), random_state=0).fit(bowl.Y)
    nodes = model.grid_.places()
    figure = plt.figure(figsize=(8, 3.6), layout="constrained")
    flat = figure.add_subplot(1, 2, 1)
    flat.scatter(*model.embedding_.T, s=4, color=GREY)
    flat.scatter(*nodes.T, color=RED, s=25)
    flat.set(title="latent square with its nodes", aspect="equal")
    space = figure.add_subplot(1, 2, 2, projection="3d")
    u = np.linspace(-1, 1, 25)
    places = np.array([(a, b) for a in u for b in u])
    surface = model.inverse_transform(places).reshape(25, 25, 3)
    space.plot_wireframe(*np.moveaxis(surface, 2, 0), color=BLUE, lw=0.5)
    space.scatter(*model.node_values_.T, color=RED, s=25)
    space.set_title("the same in data space")
    space.set_axis_off()
    return figure


def axes_in_feature_space() -> plt.Figure:
    """Draw lines of equal coordinate on the first two axes, and rows led back."""
    Y, _ = make_moons(200, noise=0.12, random_state=0)
    model = KernelPCA(4, kernel=RBF(2.0)).fit(Y)
    across, up = np.meshgrid(np.linspace(-1.6, 2.6, 80), np.linspace(-1.1, 1.6, 60))
    values = model.transform(np.column_stack([across.ravel(), up.ravel()]))
    figure, panels = plt.subplots(1, 3, figsize=(9, 2.5), layout="constrained")
    for q, axis in enumerate(panels[:2]):
        axis.contourf(across, up, values[:, q].reshape(across.shape), 12, cmap="PuOr")
        axis.scatter(*Y.T, s=4, color="black")
        axis.set_title(f"coordinate {q + 1}", size=9)
    back = model.reconstruct(Y)
    panels[2].quiver(*Y.T, *(back - Y).T, angles="xy", scale_units="xy", scale=1, width=0.004)
    panels[2].scatter(*back.T, s=6, color=BLUE)
    panels[2].set_title("rows, and where four coordinates lead back", size=9)
    for axis in panels:
        axis.set(xticks=[], yticks=[])
    return figure


def random_walk() -> plt.Figure:
    """Draw a walk along a spiral, and the coordinates it gives."""
    spiral = datasets.make_spiral(200, noise=0.03, random_state=0)
    walk = DiffusionMap(2, bandwidth=0.08).fit(spiral.Y)
    figure, (data, latent) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
    rng = np.random.default_rng(0)
    at, steps = 20, [20]
    for _ in range(60):
        step = np.exp(-((spiral.Y - spiral.Y[at]) ** 2).sum(axis=1) / 0.02)
        at = rng.choice(200, p=step / step.sum())
        steps.append(at)
    data.scatter(*spiral.Y.T, c=spiral.latent[:, 0], cmap="viridis", s=12)
    data.plot(*spiral.Y[steps].T, color=RED, lw=1)
    data.set(title="60 steps of a walk over the rows", aspect="equal")
    latent.scatter(*walk.embedding_.T, c=spiral.latent[:, 0], cmap="viridis", s=12)
    latent.set(title="diffusion coordinates")
    return figure


def band_of_noise() -> plt.Figure:
    """Draw a curve with what the rows leave open around it."""
    bow = datasets.make_half_circle(150, noise=0.6, random_state=1)
    model = UKR(1, degree=1, random_state=0).fit(bow.Y)
    x = np.linspace(*np.quantile(model.embedding_, [0.02, 0.98]), 40)[:, None]
    mean, std = model.inverse_transform(x, return_std=True)
    figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
    axis.scatter(*bow.Y.T, s=10, color=GREY)
    axis.plot(*mean.T, color=BLUE)
    axis.errorbar(*mean.T, xerr=std[:, 0], yerr=std[:, 1], fmt="none", ecolor=BLUE, alpha=0.4)
    axis.set(title="the map, and one standard deviation of each column", aspect="equal")
    return figure


PICTURES = (
    two_ways,
    kernel_regression,
    grid_of_nodes,
    axes_in_feature_space,
    random_walk,
    band_of_noise,
)


def main(folder: Path) -> None:
    """Draw and save them all."""
    folder.mkdir(parents=True, exist_ok=True)
    for draw in PICTURES:
        file = folder / f"{draw.__name__}.png"
        draw().savefig(file, dpi=80)
        print(file)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/concepts"))

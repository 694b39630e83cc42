"""Every picture of docs/guides/pictures.md and docs/mixed_tables.md, drawn and saved.

python examples/plots_gallery.py [folder]
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from PIL import Image
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import KFold, cross_val_score

from twofold import UKR, Mixed, Scaled, plots

DOTS_PER_INCH = 72
COLORS = 96


def main(folder: Path) -> None:
    """Fit three models and draw them in every way."""
    folder.mkdir(parents=True, exist_ok=True)
    draw_digits(folder)
    draw_wine(folder)
    draw_items(folder)


def draw_digits(folder: Path) -> None:
    """Draw images of handwritten digits."""
    Y, digits = load_digits(return_X_y=True)
    model = UKR(random_state=0).fit(Y[:500])
    model.annotate(labels={"digit": digits[:500]}, image_shape=(8, 8))
    keep(plots.latent_map(model), folder / "map.png")
    keep(plots.latent_map(model, color="error", contours=True), folder / "map_error.png")
    keep(plots.grid(model, shape=16), folder / "grid.png")
    keep(plots.path(model, 0, 9), folder / "path.png")
    keep(plots.magnification(model), folder / "magnification.png")
    keep(plots.history(model), folder / "history.png")
    keep(plots.errors(model, Y[500:700]), folder / "errors.png")


def draw_wine(folder: Path) -> None:
    """Draw a table whose columns have names."""
    wine = load_wine(as_frame=True)
    model = Scaled(UKR(random_state=0)).fit(wine.data)
    keep(plots.sensitivity(model, "alcohol"), folder / "sensitivity.png")
    keep(plots.sensitivities(model), folder / "sensitivities.png")
    keep(plots.important_features(model), folder / "important_features.png")
    folds = KFold(3, shuffle=True, random_state=0)
    trials = {q: Scaled(UKR(q, init="pca", max_iter=50)) for q in (1, 2, 3, 4)}
    scores = {q: -cross_val_score(trial, wine.data, cv=folds) for q, trial in trials.items()}
    keep(plots.dimension_curve(scores), folder / "dimension_curve.png")


def draw_items(folder: Path) -> None:
    """Draw a table of words, dates and numbers."""
    rng = np.random.default_rng(0)
    t, u = rng.random((2, 200))  # where an item lies on its sheet
    sizes = ["small", "medium", "large"]
    items = pd.DataFrame(
        {
            "item": [f"item {k}" for k in range(200)],
            "price": np.exp(4 * t + 0.2 * rng.normal(size=200)),
            "visits": rng.poisson(6 * u**3),
            "colour": np.array(["blue", "green", "red"])[(3 * t).astype(int)],
            "size": pd.Categorical(np.array(sizes)[(3 * u).astype(int)], sizes, ordered=True),
            "sold": t > u,
            "bought": pd.Timestamp("2021-03-01") + pd.to_timedelta(np.round(900 * t), unit="D"),
        }
    )
    kinds = {"visits": "number", "colour": ["blue", "green", "red"], "item": "out"}
    model = Mixed(UKR(random_state=0, max_iter=10), kinds=kinds, weights={"price": 3}).fit(items)
    ends = items["price"].argmin(), items["price"].argmax()
    keep(plots.path(model, *ends), folder / "path_of_columns.png")


def keep(drawn: plt.Axes | plt.Figure, file: Path) -> None:
    """Save a picture and say where."""
    figure = drawn if isinstance(drawn, plt.Figure) else drawn.figure
    figure.savefig(file, dpi=DOTS_PER_INCH)
    plt.close(figure)
    # A page of docs loads faster with few colours.
    with Image.open(file) as image:
        image.convert("RGB").quantize(COLORS, kmeans=3).save(file, optimize=True)
    print(file)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/plots"))

"""Every picture of docs/plots.md, drawn and saved.

python examples/plots_gallery.py [folder]
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from PIL import Image
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import KFold, cross_val_score

from twofold import UKR, Scaled, plots

DOTS_PER_INCH = 72
COLORS = 96


def main(folder: Path) -> None:
    """Fit two models and draw them in every way."""
    folder.mkdir(parents=True, exist_ok=True)
    draw_digits(folder)
    draw_wine(folder)


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

"""The main job, end to end: a map of handwritten digits that goes both ways.

Fits UKR to scikit-learn's digits, holds a tenth back, draws the map and the digits that lie on a
path through it, and compares the round trip of the held-out digits with PCA's.

    python examples/digits_demo.py [folder]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from twofold import UKR, load
from twofold.datasets import load_digits_split

STEPS = 12


def main(folder: Path) -> None:
    """Fit, look, compare, save."""
    folder.mkdir(parents=True, exist_ok=True)
    digits = load_digits_split()
    say("fitting a two-way map of 1,617 digits, 64 pixels each, to 2 latent dimensions ...")
    start = time.perf_counter()
    model = UKR(random_state=0).fit(digits.Y_train)
    say(
        f"done in {time.perf_counter() - start:.1f} s; start: {model.start_}, {model.n_iter_} steps"
    )
    path = path_between(model, digits.labels_train, 0, 9)
    draw(model, digits, path, folder / "digits.png")
    model.save(folder / "digits.twofold")
    again = load(folder / "digits.twofold")
    same = np.array_equal(again.transform(digits.Y_test), model.transform(digits.Y_test))
    report(model, digits, same)
    say(f"\npicture: {folder / 'digits.png'}\nmodel:   {folder / 'digits.twofold'}")


def say(text: str) -> None:
    """Print at once."""
    print(text, flush=True)


def report(model: UKR, digits: object, same: bool) -> None:
    """Print what the model can do with digits it has never seen."""
    train, test = digits.Y_train, digits.Y_test
    missing = np.random.default_rng(0).random(test.shape) < 0.3
    partial = np.where(missing, np.nan, test)
    say("\n180 held-out digits                                  UKR     PCA")
    pca = PCA(2).fit(train)
    back = pca.inverse_transform(pca.transform(test))
    say(
        "round-trip error, as a fraction of the variance:   "
        f"{share(test, model.reconstruct(test), train):.3f}   {share(test, back, train):.3f}"
    )
    guess = np.where(missing, train.mean(axis=0), test)
    filled = ((model.complete(partial) - test) ** 2).sum() / ((guess - test) ** 2).sum()
    say(f"30 % of the pixels missing, error of filling them: {filled:.3f}   (1 = by the mean)")
    say(f"saved, opened again, same answers: {'yes' if same else 'NO'}")


def share(truth: np.ndarray, found: np.ndarray, train: np.ndarray) -> float:
    """Return a squared error as a fraction of the variance around the training mean."""
    return float(((truth - found) ** 2).sum() / ((truth - train.mean(axis=0)) ** 2).sum())


def path_between(model: UKR, labels: np.ndarray, a: int, b: int) -> np.ndarray:
    """Return latent points on the way between the centres of two digits."""
    ends = [np.median(model.embedding_[labels == label], axis=0) for label in (a, b)]
    t = np.linspace(0, 1, STEPS)[:, None]
    return (1 - t) * ends[0] + t * ends[1]


def draw(model: UKR, digits: object, path: np.ndarray, file: Path) -> None:
    """Draw the map with its domain, the path, and the digits generated along it."""
    figure = plt.figure(figsize=(10, 10.6), layout="constrained")
    grid = figure.add_gridspec(2, STEPS, height_ratios=[9, 1.1])
    draw_map(figure.add_subplot(grid[0, :]), model, digits, path)
    for k, image in enumerate(model.inverse_transform(path)):
        ax = figure.add_subplot(grid[1, k])
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.set_axis_off()
        if k == 0:
            ax.set_title("generated along the path:", loc="left", fontsize=9)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def draw_map(ax: plt.Axes, model: UKR, digits: object, path: np.ndarray) -> None:
    """Draw training rows, the border of the domain, held-out rows and the path."""
    X, labels = model.embedding_, digits.labels_train
    colours = plt.get_cmap("tab10")
    low, high = X.min(axis=0) - 1.5, X.max(axis=0) + 1.5
    axes = [np.linspace(low[m], high[m], 240) for m in range(2)]
    places = np.stack(np.meshgrid(*axes), axis=-1)
    inside = model.in_domain(places.reshape(-1, 2)).reshape(places.shape[:2])
    ax.contourf(*axes, inside, levels=[0.5, 1.5], colors=["#eef1f5"])
    ax.scatter(*X.T, c=labels, cmap=colours, s=7, linewidths=0)
    new = model.transform(digits.Y_test)
    ax.scatter(*new.T, c=digits.labels_test, cmap=colours, s=26, edgecolors="k", linewidths=0.7)
    for label in range(10):
        place = np.median(X[labels == label], axis=0)
        ax.text(*place, str(label), fontsize=20, weight="bold", ha="center", va="center",
                bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.5})  # fmt: skip
    ax.plot(*path.T, "k-", lw=1.2)
    ax.plot(*path.T, "ko", ms=4)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set_title(
        "1,617 digits (dots) and 180 held-out ones (circled); grey: where data supports it"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))

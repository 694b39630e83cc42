"""The moving picture of the README: a walk over the map of digits, and the digits generated there.

python examples/moving_picture.py [walk.gif]
"""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("Agg")

import itertools

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from PIL import Image, ImageSequence

from twofold import UKR
from twofold.datasets import load_digits_split

STOPS = (0, 6, 4, 9, 3, 2, 8, 1, 7, 9, 5, 0)
STEPS = 6
COLORS = 128


def main(path: str) -> None:
    """Fit, walk from class to class, and save every step."""
    digits = load_digits_split()
    model = UKR(random_state=0).fit(digits.Y_train)
    X, labels = model.embedding_, digits.labels_train
    centres = [np.median(X[labels == stop], axis=0) for stop in STOPS]
    stops = [X[((X - centre) ** 2).sum(axis=1).argmin()] for centre in centres]
    t = np.linspace(0, 1, STEPS, endpoint=False)[:, None]
    pairs = itertools.pairwise(stops)
    way = np.vstack([(1 - t) * here + t * there for here, there in pairs])
    images, inside = model.inverse_transform(way), model.in_domain(way)

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(6.4, 3.2), width_ratios=[2, 1], layout="constrained"
    )
    left.scatter(*X.T, c=labels, cmap="tab10", s=4)
    left.plot(*way.T, color="black", lw=0.6, alpha=0.5)
    (probe,) = left.plot([], [], "o", ms=11, mec="black", mfc="white", mew=2)
    left.set_axis_off()
    shown = right.imshow(images[0].reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
    right.set(xticks=[], yticks=[])
    said = right.set_title("", size=10)

    def draw(step: int) -> None:
        probe.set_data(*way[step][:, None])
        shown.set_data(images[step].reshape(8, 8))
        said.set_text("generated here" if inside[step] else "no data here: a guess")

    film = FuncAnimation(figure, draw, frames=len(way))
    film.save(path, writer=PillowWriter(fps=8), dpi=75)
    make_small(path)
    print(path)


def make_small(path: str) -> None:
    """Save a moving picture again with few colours, without dots in between."""
    with Image.open(path) as film:
        frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(film)]
    palette = frames[0].quantize(COLORS, dither=Image.Dither.NONE)
    small = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    small[0].save(path, save_all=True, append_images=small[1:], duration=125, loop=0, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/images/walk.gif")

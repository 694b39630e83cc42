"""Colours and markers that keep categories apart in colour, for the colour-blind and in grey.

The twelve colours were found by starting from a blue and an orange and exchanging the others on a
grid of sRGB, neither pale nor too dark, until no exchange raised the smallest distance between any
two in CIELAB, as seen by normal eyes and with protanopia, deuteranopia and tritanopia (Machado,
Oliveira & Fernandes 2009). They are ordered so that the first few are far apart in lightness too.
Markers cycle with a period that has no divisor in common with twelve: a category shares its colour
and marker with another one only after sixty.
"""

from __future__ import annotations

from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap

COLORS = (
    "#005ab4",  # blue
    "#f0871e",  # orange
    "#780f5a",  # plum
    "#87d278",  # light green
    "#1e693c",  # dark green
    "#b487ff",  # lilac
    "#96782d",  # ochre
    "#870000",  # dark red
    "#4bd2c3",  # turquoise
    "#0087a5",  # petrol
    "#c37878",  # rose
    "#b4b4f0",  # periwinkle
)
ACCENT = "#870000"
# Each with the factor by which its area has to change to look as large as the disc.
MARKERS = (("o", 1.0), ("^", 1.15), ("s", 0.85), ("D", 0.75), ("v", 1.15))

INK = "#333333"
QUIET = "#8a8a8a"
MISSING = "#c4c4c4"
OUTSIDE = "#f0f0f0"

# Viridis ends in a yellow that is lost on white paper.
SEQUENTIAL_END = 0.94


@dataclass(frozen=True)
class CategoryStyle:
    """How the rows of one category are drawn."""

    color: str
    marker: str
    area: float


def category_style(number: int) -> CategoryStyle:
    """Return the colour and marker of a category, counted from 0.

    >>> category_style(0).color, category_style(12).color, category_style(12).marker
    ('#005ab4', '#005ab4', 's')
    """
    marker, area = MARKERS[number % len(MARKERS)]
    return CategoryStyle(COLORS[number % len(COLORS)], marker, area)


def sequential() -> Colormap:
    """Return the colour map of numbers: viridis, without its last, nearly white yellow."""
    colors = matplotlib.colormaps["viridis"](np.linspace(0, SEQUENTIAL_END, 256))
    return LinearSegmentedColormap.from_list("twofold", colors)

"""Colours stay apart for everybody, and on grey paper."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from twofold.plots.drawing import COLORS, category_style, sequential

# Machado, Oliveira & Fernandes 2009, severity 1, on linear RGB.
SEEN_WITH = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def linear(rgb: np.ndarray) -> np.ndarray:
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(linear_rgb: np.ndarray) -> np.ndarray:
    """CIELAB of linear RGB under D65."""
    t = np.clip(linear_rgb, 0, 1) @ TO_XYZ.T / np.array([0.95047, 1, 1.08883])
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.stack(
        [116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1
    )


def own_colors() -> np.ndarray:
    return linear(np.array([to_rgb(color) for color in COLORS]))


@pytest.mark.parametrize("eyes", SEEN_WITH)
def test_any_two_colors_can_be_told_apart(eyes: str):
    seen = lab(own_colors() @ SEEN_WITH[eyes].T)
    gaps = np.sqrt(((seen[:, None] - seen[None]) ** 2).sum(axis=2))
    gaps[np.diag_indices(len(gaps))] = np.inf
    # Matplotlib's own tab10 gets down to 4.6 here; a difference of 2 is just seen side by side.
    assert gaps.min() > 14


def test_few_categories_differ_in_grey():
    lightness = lab(own_colors())[:4, 0]
    assert np.diff(np.sort(lightness)).min() > 10


def test_colors_are_seen_on_white():
    assert lab(own_colors())[:, 0].max() < 80


def test_sixty_categories_differ():
    styles = {(style.color, style.marker) for style in map(category_style, range(60))}
    assert len(styles) == 60
    assert len({category_style(number).color for number in range(36)}) == 36
    assert category_style(180) == category_style(0)


def test_colors_of_many_categories_are_seen_on_white():
    colors = [to_rgb(category_style(number).color) for number in range(36)]
    assert lab(linear(np.array(colors)))[:, 0].max() < 85


def test_numbers_grow_lighter_and_stay_off_white():
    lightness = lab(linear(sequential()(np.linspace(0, 1, 50))[:, :3]))[:, 0]
    assert (np.diff(lightness) > 0).all()
    assert lightness[-1] < 88

"""Run one script of the gallery as its reader would, and keep the pictures it draws.

python -m docsite.run_script script.py folder
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from PIL import Image, ImageChops

DOTS_PER_INCH = 96
THUMBNAIL = (480, 360)


def main(script: Path, folder: Path) -> None:
    """Save every open figure once the script has ended, and the last one small."""
    plt.show = lambda *_, **__: None  # figures stay open
    runpy.run_path(str(script), run_name="__main__")
    numbers = plt.get_fignums()
    if not numbers:
        raise SystemExit(f"{script.name} draws nothing")
    for number in numbers:
        plt.figure(number).savefig(folder / f"{script.stem}_{number}.png", dpi=DOTS_PER_INCH)
    with Image.open(folder / f"{script.stem}_{numbers[-1]}.png") as picture:
        whole = picture.convert("RGB")
        drawn = ImageChops.difference(whole, Image.new("RGB", whole.size, "white")).getbbox()
        small = whole.crop(drawn)
        small.thumbnail(THUMBNAIL)
        card = Image.new("RGB", THUMBNAIL, "white")
        card.paste(small, tuple((a - b) // 2 for a, b in zip(THUMBNAIL, small.size, strict=True)))
        card.save(folder / f"{script.stem}_thumb.png", optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

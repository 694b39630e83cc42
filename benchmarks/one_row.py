"""How long a served model takes for one row: placing it, filling it, and the way back.

    python -m benchmarks.one_row

Models of 1,617 handwritten digits (64 columns), opened from their files; medians over 100 rows.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from twofold import PSOM, UKR, UNN, KernelPCA, load
from twofold.datasets import load_digits_split

N_ROWS = 100


def milliseconds(ask: Callable[[int], object]) -> float:
    """Return the median time of single calls, the first one left out."""
    spent = []
    for number in range(N_ROWS + 1):
        began = time.perf_counter()
        ask(number)
        spent.append(time.perf_counter() - began)
    return 1e3 * float(np.median(spent[1:]))


def main() -> None:
    """Fit, save, open and ask."""
    digits = load_digits_split()
    new = digits.Y_test
    gaps = np.where(np.arange(64) < 16, np.nan, new)
    models = {
        "UKR": UKR(random_state=0),
        "UKR, 100 landmarks": UKR(landmarks=100, random_state=0),
        "UNN": UNN(2, random_state=0),
        "PSOM, 10 × 10": PSOM(grid=(10, 10), random_state=0),
        "KernelPCA, 10 axes": KernelPCA(10),
    }
    print("| model | file | open | transform | complete | inverse_transform |")
    for name, model in models.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.twofold"
            model.fit(digits.Y_train).save(path)
            began = time.perf_counter()
            served = load(path)
            opened = 1e3 * (time.perf_counter() - began)
            size = path.stat().st_size / 1e6
        asked = (
            milliseconds(lambda k, m=served: m.transform(new[k : k + 1])),
            milliseconds(lambda k, m=served: m.complete(gaps[k : k + 1])),
            milliseconds(lambda k, m=served: m.inverse_transform(m.embedding_[k : k + 1])),
        )
        cells = " | ".join(f"{value:.2f} ms" for value in asked)
        print(f"| {name} | {size:.2f} MB | {opened:.1f} ms | {cells} |", flush=True)


if __name__ == "__main__":
    main()

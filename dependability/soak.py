"""The same work over and over: ``python -m dependability.soak --minutes 10``.

A round fits a small model, one family after the other, uses it, saves it, opens it and writes its
page. Memory, threads and open files are noted after each round; past a warm-up, in which everything
is loaded and compiled, none of them may grow. Memory is judged by the slope of a line through all
rounds, since a single figure depends on what the allocator has not given back yet.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.families import FAMILIES, Family

import twofold
from dependability.uses import seeded
from twofold.datasets import make_random_manifold

WARM_UP = 0.4  # share of the rounds
MOST_GROWTH = 1.0  # MB of memory in 100 rounds
TABLE = make_random_manifold(40, 2, 5, noise=0.02, random_state=0).Y


@dataclass(frozen=True)
class Sample:
    """What the process has after a round."""

    megabytes: float
    threads: int
    handles: int

    @classmethod
    def now(cls) -> Sample:
        """Return what this process has."""
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(
            pages * resource.getpagesize() / 2**20,
            len(os.listdir("/proc/self/task")),
            len(os.listdir("/proc/self/fd")),
        )


@dataclass(frozen=True)
class Growth:
    """How the rounds past the warm-up differ.

    Attributes
    ----------
    rounds : int
    megabytes : float, of memory in 100 rounds
    threads, handles : int, more at the end than after the warm-up
    """

    rounds: int
    megabytes: float
    threads: int
    handles: int

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> Growth:
        """Return the growth that samples show."""
        settled = samples[int(WARM_UP * len(samples)) :]
        memory = [sample.megabytes for sample in settled]
        slope = float(np.polyfit(np.arange(len(memory)), memory, 1)[0]) if len(memory) > 1 else 0.0
        first, last = settled[0], settled[-1]
        return cls(
            len(samples), 100 * slope, last.threads - first.threads, last.handles - first.handles
        )

    def __str__(self) -> str:
        return (
            f"{self.rounds} rounds: memory {self.megabytes:+.3f} MB in 100 rounds, "
            f"threads {self.threads:+d}, open files {self.handles:+d}"
        )

    def is_flat(self, most: float = MOST_GROWTH) -> bool:
        """Say whether nothing grows."""
        return self.megabytes <= most and self.threads <= 0 and self.handles <= 0


def one_round(number: int, families: Sequence[Family], folder: Path) -> None:
    """Fit a model and use it from beginning to end."""
    family = families[number % len(families)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = seeded(family.make()).fit(TABLE)
        model.transform(TABLE + 0.01)
        model.complete(TABLE)
        model.sample(3, random_state=number)
        model.save(folder / "model.twofold")
        opened = twofold.load(folder / "model.twofold")
        opened.reconstruct(TABLE)
        twofold.explorer.write(opened, folder / "page.html")


def soak(goes_on: Callable[[int], bool], families: Sequence[Family] = FAMILIES) -> Iterator[Sample]:
    """Yield a sample after each round, as long as that is wanted."""
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        while goes_on(number):
            one_round(number, families, Path(folder))
            yield Sample.now()
            number += 1


def main() -> int:
    """Soak for some minutes, print figures now and then, and return the exit status."""
    parser = argparse.ArgumentParser(description="the same work over and over")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (10)")
    end = time.monotonic() + 60 * parser.parse_args().minutes
    samples: list[Sample] = []
    for sample in soak(lambda _: time.monotonic() < end):
        samples.append(sample)
        if len(samples) % 100 == 0:
            print(f"round {len(samples)}: {sample}", flush=True)
    growth = Growth.of(samples)
    print(growth)
    return 0 if growth.is_flat() else 1


if __name__ == "__main__":
    sys.exit(main())

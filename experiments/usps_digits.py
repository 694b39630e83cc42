"""USPS digits (Klanke 2007, sections 4.6.3 and 5.2.3): the map of the twos, and ten manifolds.

Map: the 731 training images of the digit 2 (256 values in [-1, 1]), q = 2, leave-one-out. Reported
are the leave-one-out error of the best scaled LLE start and after 500 Rprop steps; beside them the
start that ``init="auto"`` picks and the default optimiser.

Classifier: one manifold for each digit from 7,291 images, quartic kernel, PCA start, homotopy over
density bounds (40/n to 2/n), then 300 Rprop steps on the leave-one-out error; 2,007 test images get
the label of the manifold with the smallest error (Table 5.7, in percent). ``--rows`` takes the
first so many images of each digit and, for testing, as many as that in all.

    python -m experiments.usps_digits map
    python -m experiments.usps_digits classify --q 5 10 --settings loo lko2 [--rows 200]
    python -m experiments.usps_digits tubes --wrong-pixels 9 21
    python -m experiments.usps_digits time --q 10 --digits 0 8

The data is the file usps.npz with ``X``, ``y`` and ``n_train``; see twofold.datasets.load_npz.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from experiments import ledger
from experiments.table import show
from twofold import UKR
from twofold.classification import ManifoldClassifier
from twofold.datasets import load_npz
from twofold.losses import EpsilonInsensitive
from twofold.regularization import LeaveOneOut

DIGIT = 2
MAP_STEPS = 500
# Leave-one-out error of the scaled start and after 500 Rprop steps, by kernel.
MAP_PLACE = "Klanke, section 4.6.3, map of the twos"
# Seconds of 500 Rprop steps on a computer of 2007.
REPORTED_MAP_SECONDS = {"gaussian": 753, "quartic": 30}
REPORTED_MAP = {"gaussian": (83.53, 50.90), "quartic": (83.62, 51.52)}
# Test error in percent for q = 5 to 12 (Table 5.7; the first row of each kind also section 4.6.3).
REPORTED = {
    "loo": (4.78, 4.78, 4.53, 4.53, 4.19, 3.94, 3.99, 4.19),
    "lko2": (4.04, 4.14, 3.99, 4.63, 4.83, 4.33, 4.33, 3.94),
    "lko3": (4.14, 4.24, 4.19, 4.24, 4.68, 4.43, 4.24, 4.33),
    "lko4": (3.99, 3.94, 4.24, 4.43, 4.88, 4.19, 4.04, 4.14),
    "lko5": (4.04, 3.94, 3.99, 4.43, 4.73, 3.99, 4.09, 4.24),
    "poly": (4.43, 4.58, 4.19, 4.24, 4.14, 4.29, 4.24, 4.33),
    "poly-lko2": (4.33, 4.19, 4.19, 4.68, 4.68, 4.19, 4.24, 4.24),
    "poly-lko3": (4.38, 4.24, 4.24, 4.53, 5.08, 4.38, 4.29, 4.19),
    "poly-lko4": (4.38, 4.04, 4.24, 4.24, 4.48, 4.24, 4.04, 4.33),
    "poly-lko5": (4.19, 4.33, 4.19, 4.43, 4.29, 4.19, 4.14, 4.29),
}
FIRST_Q = 5
COMMON: dict[str, Any] = {"kernel": "quartic", "init": "pca", "max_iter": 700, "random_state": 0}


class Digits(NamedTuple):
    """Images as rows of 256 values in [-1, 1], with their labels."""

    Y_train: np.ndarray
    y_train: np.ndarray
    Y_test: np.ndarray
    y_test: np.ndarray


def load_usps(rows: int | None = None) -> Digits:
    """Return the split of the original data, or a part of it: so many rows of each digit."""
    data = load_npz("usps")
    n = int(data["n_train"])
    Y, y = data["X"].astype(np.float32), data["y"].astype(int)
    if rows is None:
        return Digits(Y[:n], y[:n], Y[n:], y[n:])
    kept = np.concatenate([np.flatnonzero(y[:n] == digit)[:rows] for digit in range(10)])
    return Digits(Y[kept], y[kept], Y[n : n + rows], y[n : n + rows])


def leave_one_out() -> dict[str, Any]:
    return {"regularization": LeaveOneOut("density")}


def leave_k_out(k: int) -> Callable[[], dict[str, Any]]:
    """Return a setting that leaves k rows out, with the border's penalty of the thesis."""

    def setting() -> dict[str, Any]:
        from twofold.regularization import LeaveKOut

        return {"regularization": LeaveKOut(k, border=0.01, homotopy="density")}

    return setting


def cubic(setting: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """Return the same setting in the space of the polynomial kernel (y·y')³."""

    def changed() -> dict[str, Any]:
        from twofold.features import Polynomial

        return {**setting(), "data_kernel": Polynomial(3, gamma=1.0, coef0=0.0)}

    return changed


DATA_SPACE = {"loo": leave_one_out} | {f"lko{k}": leave_k_out(k) for k in (2, 3, 4, 5)}
FEATURE_SPACE = {
    "poly" if name == "loo" else f"poly-{name}": cubic(setting)
    for name, setting in DATA_SPACE.items()
}
# What UKR is told beyond `COMMON`, by name; functions, so that a setting costs nothing unused.
SETTINGS = DATA_SPACE | FEATURE_SPACE


def map_rows(kernel: str, init: str, Y: np.ndarray) -> list[tuple[str, ...]]:
    """Return a row for each optimiser from the best start."""
    start, start_time = timed(lambda: UKR(2, kernel=kernel, init=init, max_iter=0).fit(Y))
    before, after = REPORTED_MAP[kernel]
    rows = []
    for optimizer, most, tol in (("rprop-", MAP_STEPS, 0.0), ("lbfgs", 200, 1e-4)):
        model, seconds = timed(
            lambda optimizer=optimizer, most=most, tol=tol: UKR(
                2,
                kernel=kernel,
                init=start.embedding_,
                optimizer=optimizer,
                max_iter=most,
                tol=tol,
            ).fit(Y)
        )
        note_map(kernel, init, optimizer, start.starts_[start.start_], model.objective_)
        if (init, optimizer) == ("lle", "rprop-"):
            known = REPORTED_MAP_SECONDS[kernel]
            ledger.figure(f"{MAP_PLACE}, times", kernel, known, [seconds], better="lower")
        rows.append(
            (
                kernel,
                start.start_,
                f"{optimizer}, {model.n_iter_}",
                f"{before:.2f}",
                f"{start.starts_[start.start_]:.2f}",
                f"{after:.2f}",
                f"{model.objective_:.2f}",
                f"{start_time:.1f} + {seconds:.1f}",
            )
        )
    return rows


def note_map(kernel: str, init: str, optimizer: str, before: float, after: float) -> None:
    """Put one row of the map into the ledger: the thesis's way, or the default's result."""
    if (init, optimizer) == ("lle", "rprop-"):
        for name, known, found in zip(
            ("start", "end"), REPORTED_MAP[kernel], (before, after), strict=True
        ):
            ledger.figure(MAP_PLACE, f"{kernel}, {name}", known, [found], better="lower")
    if (init, optimizer) == ("auto", "lbfgs"):
        ledger.default(MAP_PLACE, f'`UKR(2, kernel="{kernel}")`: {before:.2f} → {after:.2f}')


def run_map() -> None:
    """Print the errors of the map of the twos."""
    digits = load_usps()
    Y = digits.Y_train[digits.y_train == DIGIT]
    rows = [
        row
        for kernel in REPORTED_MAP
        for init in ("lle", "auto")
        for row in map_rows(kernel, init, Y)
    ]
    header = ("kernel", "start", "optimiser, steps", "start reported", "measured")
    title = f"USPS digit {DIGIT}, {len(Y)} images: leave-one-out error"
    show(title, (*header, "end reported", "measured", "seconds"), rows)


def run_classifier(qs: list[int], settings: list[str], optimizer: str, rows: int | None) -> None:
    """Print the test error of each setting and q."""
    digits = load_usps(rows)
    table = []
    for name in settings:
        for q in qs:
            model = UKR(q, **COMMON, optimizer=optimizer, **SETTINGS[name]())
            classifier = ManifoldClassifier(model)
            _, fit_time = timed(lambda c=classifier: c.fit(digits.Y_train, digits.y_train))
            found, test_time = timed(lambda c=classifier: c.predict(digits.Y_test))
            error = 100 * np.mean(found != digits.y_test)
            known = reported(name, q)
            if rows is None and known != "-":
                note_error(name, q, float(known), error)
            table.append(
                (
                    name,
                    str(q),
                    reported(name, q),
                    f"{error:.2f}",
                    f"{fit_time:.0f}",
                    f"{test_time:.0f}",
                )
            )
            print(*table[-1], flush=True)
    n, m = len(digits.y_train), len(digits.y_test)
    title = f"USPS, {optimizer}, {n} training and {m} test images: error in percent"
    show(title, ("setting", "q", "reported", "measured", "fit, s", "test, s"), table)


def note_error(name: str, q: int, known: float, error: float) -> None:
    """Put an error rate into the ledger; what leaves one row out is in Table 4.4 as well."""
    tables = ("Table 5.7", "Table 4.4") if name in ("loo", "poly") else ("Table 5.7",)
    for table in tables:
        # One standard error of a rate of 4 % among 2,007 images.
        ledger.figure(
            f"Klanke, {table}",
            f"{name}, q = {q}",
            known,
            [error],
            deviation=0.44,
            better="lower",
        )


def run_times(qs: list[int], settings: list[str], optimizer: str, chosen: list[int]) -> None:
    """Print how long one digit's manifold takes, to plan the whole run."""
    digits = load_usps()
    table = []
    for name in settings:
        for q in qs:
            for digit in chosen:
                Y = digits.Y_train[digits.y_train == digit]
                model = UKR(q, **COMMON, optimizer=optimizer, **SETTINGS[name]())
                _, fit_time = timed(lambda model=model, Y=Y: model.fit(Y))
                _, test_time = timed(lambda model=model: model.score_samples(digits.Y_test[:200]))
                error = f"{model.objective_:.2f}"
                seconds = f"{fit_time:.1f}", f"{test_time:.1f}"
                table.append((name, str(q), str(digit), str(len(Y)), error, *seconds))
                print(*table[-1], flush=True)
    header = ("setting", "q", "digit", "images", "objective", "fit, s", "200 tests, s")
    show(f"USPS, {optimizer}: one manifold", header, table)


def run_tubes(wrong_pixels: list[int]) -> None:
    """Print how many ones pass for twos, by how many wrong pixels a tube forgives.

    An image of a one passes if its error is below the mean error of the twos among the test
    images. A pixel of the wrong sign costs 4, so that n of them are a tube of ε = √(4 n).
    """
    digits = load_usps()
    Y = digits.Y_train[digits.y_train == DIGIT]
    twos, ones = (digits.Y_test[digits.y_test == digit] for digit in (DIGIT, 1))
    start = UKR(2, kernel="quartic", init="isomap", max_iter=1000, random_state=0).fit(Y)
    passing, table = {}, []
    for n in (0, *wrong_pixels):
        model = start
        if n:
            tube = EpsilonInsensitive(float(np.sqrt(4 * n)), per="vector")
            options = {"loss": tube, "regularization": "smoothest", "max_iter": 300}
            model = UKR(2, kernel="quartic", init=start.embedding_, **options).fit(Y)
        error = -model.score(twos)
        passing[n] = float(np.mean(-model.score_samples(ones) < error))
        extension = float(np.linalg.norm(model.embedding_ - model.embedding_.mean(0)))
        table.append((str(n), f"{error:.1f}", f"{passing[n]:.1%}", f"{extension:.0f}"))
        print(*table[-1], flush=True)
    most = max(wrong_pixels)
    words = f"a tube of {most} wrong pixels lets far fewer ones pass than leave-one-out"
    ledger.claim("Klanke, Figure 5.13", words, passing[most] < 0.5 * passing[0], 1)
    header = ("wrong pixels", "error of the twos", "ones that pass", "latent extension")
    show("The smoothest map of the twos within tubes", header, table)


def reported(name: str, q: int) -> str:
    """Return the figure of the thesis, where it has one."""
    figures = REPORTED[name]
    return f"{figures[q - FIRST_Q]:.2f}" if 0 <= q - FIRST_Q < len(figures) else "-"


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a function returns, and how many seconds it took."""
    began = time.perf_counter()
    result = run()
    return result, time.perf_counter() - began


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("map", "classify", "tubes", "time"))
    parser.add_argument("--q", type=int, nargs="+", default=[10], help="latent dimensions")
    parser.add_argument("--settings", nargs="+", choices=tuple(SETTINGS), default=["loo"])
    parser.add_argument("--optimizer", default="lbfgs", help='"rprop-" is the one of the thesis')
    parser.add_argument("--rows", type=int, help="images of each digit; all by default")
    parser.add_argument("--wrong-pixels", type=int, nargs="+", default=[9, 21])
    parser.add_argument("--digits", type=int, nargs="+", default=[DIGIT])
    given = parser.parse_args()
    try:
        if given.what == "map":
            run_map()
        elif given.what == "classify":
            run_classifier(given.q, given.settings, given.optimizer, given.rows)
        elif given.what == "tubes":
            run_tubes(given.wrong_pixels)
        else:
            run_times(given.q, given.settings, given.optimizer, given.digits)
    except FileNotFoundError as error:
        parser.exit(1, f"The USPS images are missing: {error}\n")


if __name__ == "__main__":
    main()

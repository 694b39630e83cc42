"""``twofold demo``: the main job end to end, on handwritten digits that come with scikit-learn.

Fits UKR, holds a tenth of the digits back, compares the round trip of those with PCA's, fills
missing pixels, saves the model and opens it again, draws the map and writes its explorer.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from twofold.cli import arguments as arg
from twofold.cli.console import Console
from twofold.cli.looking import save_figure, without_windows

if TYPE_CHECKING:
    from twofold.array_types import FloatArray
    from twofold.contract import TwoWayModel
    from twofold.datasets.real_data import DigitsSplit

STEPS = 12
MISSING_SHARE = 0.3
PATH_FROM, PATH_TO = 0, 9


def demo(
    output: Path = typer.Option(
        Path("twofold-demo"), "--output", "-o", metavar="FOLDER", help="Where the files go."
    ),
    quiet: arg.Quiet = False,
    json: arg.AsJson = False,
) -> None:
    """Fit a map of handwritten digits and show what it can do."""
    from twofold import UKR, explorer
    from twofold.datasets import load_digits_split

    console = Console(quiet=quiet, as_json=json)
    output.mkdir(parents=True, exist_ok=True)
    paths = {
        "model": output / "digits.twofold",
        "picture": output / "digits.png",
        "page": output / "digits.html",
    }
    digits = load_digits_split()
    n, D = digits.Y_train.shape
    console.say(f"fitting a map of {n:,} digits, {D} pixels each, to 2 dimensions ...")
    started = time.perf_counter()
    with console.warnings_shown():
        model = UKR(random_state=0, verbose=not quiet).fit(digits.Y_train)
    seconds = time.perf_counter() - started
    console.say(f"done in {seconds:.1f} s: start {model.start_}, {model.n_iter_} iterations")
    model.annotate(labels={"digit": digits.labels_train.astype(str)}, image_shape=(8, 8))
    model.save(paths["model"])
    facts = {"seconds": seconds, **compare(model, digits, paths["model"])}
    tell(console, facts)
    with console.warnings_shown():
        draw_digits(model, digits, paths["picture"])
        explorer.write(model, paths["page"], title="Handwritten digits")
    found = {name: str(path) for name, path in paths.items()}
    console.finish("\n".join(found.values()), {**found, **facts})


def compare(model: TwoWayModel, digits: DigitsSplit, path: Path) -> dict[str, Any]:
    """Return what the model can do with digits it has never seen."""
    import numpy as np
    from sklearn.decomposition import PCA

    from twofold import load

    train, test = digits.Y_train, digits.Y_test
    pca = PCA(2).fit(train)
    missing = np.random.default_rng(0).random(test.shape) < MISSING_SHARE
    guess = np.where(missing, train.mean(axis=0), test)
    filled = model.complete(np.where(missing, np.nan, test))
    return {
        "held_out": len(test),
        "error_share": error_share(test, model.reconstruct(test), train),
        "error_share_pca": error_share(test, pca.inverse_transform(pca.transform(test)), train),
        "filling_error": float(((filled - test) ** 2).sum() / ((guess - test) ** 2).sum()),
        "same_after_loading": np.array_equal(load(path).transform(test), model.transform(test)),
    }


def error_share(truth: FloatArray, found: FloatArray, train: FloatArray) -> float:
    """Return a squared error as a share of the variance around the training mean."""
    return float(((truth - found) ** 2).sum() / ((truth - train.mean(axis=0)) ** 2).sum())


def tell(console: Console, facts: dict[str, Any]) -> None:
    """Say how the comparison came out."""
    console.say(f"\n{facts['held_out']} held-out digits{'UKR     PCA':>45}")
    console.say(
        "round-trip error, as a share of the variance:      "
        f"{facts['error_share']:.3f}   {facts['error_share_pca']:.3f}"
    )
    console.say(
        f"{100 * MISSING_SHARE:.0f} % of the pixels missing, error of filling them: "
        f"{facts['filling_error']:.3f}   (1 = by the mean)"
    )
    same = "yes" if facts["same_after_loading"] else "NO"
    console.say(f"saved, opened again, same answers: {same}\n")


def draw_digits(model: TwoWayModel, digits: DigitsSplit, path: Path) -> None:
    """Draw the map with the held-out digits, and the digits on a way through it."""
    without_windows()
    import numpy as np
    from matplotlib import pyplot

    from twofold import plots

    figure, (upper, lower) = pyplot.subplots(
        2, 1, figsize=(9, 10.5), height_ratios=[5, 1], layout="constrained"
    )
    plots.latent_map(model, color="digit", ax=upper)
    upper.scatter(
        *model.transform(digits.Y_test).T[:2],
        s=18, facecolors="none", edgecolors="black", linewidths=0.6,
    )  # fmt: skip
    of_label = [model.embedding_[digits.labels_train == label] for label in (PATH_FROM, PATH_TO)]
    ends = [np.median(X, axis=0) for X in of_label]
    upper.plot(*zip(*ends, strict=True), color="black", linewidth=1.2)
    plots.path(model, *ends, steps=STEPS, ax=lower)
    save_figure(figure, path, dpi=110)

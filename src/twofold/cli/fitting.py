"""``twofold fit``: from a table to a model file, saying what is used, what is not, and why."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from twofold.cli.console import CommandError, Console, Interrupted, UsageError, counted, listed
from twofold.cli.describing import (
    how_it_ended,
    is_left_out,
    is_squared_error,
    is_still_improving,
    takes_gaps,
)
from twofold.cli.files import MODEL_SUFFIX, STANDARD, beside, check_output, shown
from twofold.cli.methods import METHODS, USUAL_DIMENSIONS, USUAL_METHOD, Method, find_method
from twofold.cli.options import (
    AsJson,
    Index,
    Missing,
    Quiet,
    Seed,
    Table,
    option,
    output_option,
)

if TYPE_CHECKING:
    from twofold.cli.training_table import TrainingTable
    from twofold.contract import TwoWayModel

of_ukr = partial(option, rich_help_panel="Options that go with --method ukr")


def fit(
    table: Table,
    output: Annotated[
        str | None,
        output_option(
            "MODEL", "Where the model goes; by default beside the table, ending in .twofold."
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="|".join(METHODS),
            help="What to fit: unsupervised kernel regression, unsupervised nearest neighbours, "
            "kernel PCA, a diffusion map or a parametrized self-organizing map.",
        ),
    ] = USUAL_METHOD,
    dimensions: Annotated[
        int | None,
        option(
            None,
            f"Coordinates of the map; {USUAL_DIMENSIONS} by default.",
            "--dimensions",
            "-q",
            min=1,
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        option("COL", "A column to colour the map by; never used for fitting. Repeatable."),
    ] = None,
    index: Index = None,
    columns: Annotated[
        list[str] | None,
        option("A,B,C", "Use these columns only; by default all columns of numbers."),
    ] = None,
    drop: Annotated[list[str] | None, option("COL", "Do not use this column. Repeatable.")] = None,
    scale: Annotated[
        Literal["standard", "robust", "none"],
        typer.Option(
            help="Let columns count alike: by their standard deviation, by their quartiles (with "
            "outliers), or leave them as they are (if all have the same unit)."
        ),
    ] = "standard",
    missing: Missing = None,
    settings: Annotated[
        list[str] | None,
        option(
            "NAME=VALUE",
            "A parameter of the method as in Python, such as n_neighbors=10. Repeatable.",
            "--set",
        ),
    ] = None,
    degree: Annotated[
        Literal["0", "1", "2", "2-axes"] | None,
        of_ukr(None, "Of the local polynomials, 0 by default; above 0 is slower."),
    ] = None,
    loss: Annotated[
        str | None,
        of_ukr("squared|huber", "squared by default; huber is less disturbed by outliers."),
    ] = None,
    landmarks: Annotated[
        str | None, of_ukr("N|auto", "Number of points that stand for all rows; for large tables.")
    ] = None,
    kernel: Annotated[
        str | None,
        of_ukr("gaussian|quartic|triweight", "How rows nearby are weighted; gaussian by default."),
    ] = None,
    max_iter: Annotated[int | None, of_ukr(None, "Most iterations; 200 by default.", min=0)] = None,
    seed: Seed = 0,
    image_shape: Annotated[
        str | None,
        option("HxW[x3]", "Rows are images, such as 28x28; pictures then show them."),
    ] = None,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Fit a map to a table and save it as a model; by UKR unless --method says otherwise.

    Columns of numbers are used, text is left out, empty cells are allowed (not by kernel-pca and
    diffusion-map). A text column that differs in every row is taken for the names of the rows if
    it is the only one. Ctrl-C ends the fit early and keeps the best model so far, once there is
    one: not while the table is read and the first start is sought, and never of kernel-pca and
    diffusion-map, which have no steps.
    """
    from twofold import Scaled
    from twofold.cli.training_table import Wanted, read_training_table

    console = Console(quiet=quiet, as_json=json)
    if columns and drop:
        raise UsageError(
            "--columns and --drop exclude each other.",
            "Name the columns to use, or those to leave out.",
        )
    chosen = find_method(method)
    target = output or _default_output(table)
    phase = Phase(console)
    given = {
        "kernel": kernel,
        "degree": int(degree) if degree and degree.isdecimal() else degree,
        "loss": loss,
        "landmarks": parse_landmarks(landmarks),
        "max_iter": max_iter,
    }
    estimator = chosen.make(
        dimensions,
        given,
        settings or [],
        random_state=seed,
        verbose=False if quiet else "auto",
        callbacks=[phase.iterations_begin],
    )
    q = estimator.wanted_dimensions()
    shape = parse_image_shape(image_shape)
    check_output(target, table)
    wanted = Wanted(label or [], columns or [], drop or [], index, missing or [])
    with phase("reading", "the table was being read"):
        rows = read_training_table(table, wanted, console, q, shape, chosen.may_exceed_columns)
    check_gaps(chosen, estimator, rows, table)
    describe_scaling(console, scale, rows)
    advice = chosen.advice(estimator, len(rows.frame))
    if advice is not None:
        console.say(f"{len(rows.frame):,} rows take a while; {advice}.")
    started = time.perf_counter()
    with console.warnings_shown(), phase(*chosen.first_phase):
        model = estimator if scale == "none" else Scaled(estimator, how=scale)
        # Columns without names of their own are given as an array: the model then has none either.
        model.fit(rows.frame if rows.has_names else rows.frame.to_numpy())
    seconds = time.perf_counter() - started
    model.annotate(names=rows.names, labels=rows.labels or None, image_shape=shape)
    model.save(target)
    summary = {"method": chosen.name, **summarize(model, rows, seconds)}
    tell_summary(console, summary)
    console.finish(target, {"model": target, "scale": scale, **rows.facts(), **summary})


class Phase:
    """Say what a fit is doing, and if it is interrupted what it was doing."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._doing = ""

    @contextmanager
    def __call__(self, doing: str, done_to: str) -> Iterator[None]:
        """Do something that leaves nothing behind if it is interrupted."""
        self._console.say(doing)
        self._doing = doing
        try:
            yield
        except KeyboardInterrupt:
            raise Interrupted(f"Interrupted while {done_to}; nothing to keep yet.") from None

    def iterations_begin(self, event: Any) -> None:
        """Say at the first iteration that the search for a start is over."""
        # A bar in a terminal says so itself, and a line would tear it.
        if self._doing != "fitting" and not sys.stderr.isatty():
            self._console.say("fitting")
        self._doing = "fitting"


def check_gaps(method: Method, model: TwoWayModel, rows: TrainingTable, path: str) -> None:
    """Raise if cells are missing and the method needs all of them."""
    if not rows.missing_share or takes_gaps(model):
        return
    gaps = rows.frame.isna()
    n_rows = int(gaps.any(axis=1).sum())
    raise CommandError(
        f"--method {method.name} needs complete rows, but {counted(n_rows, 'row')} of "
        f"{shown(path)} {'has' if n_rows == 1 else 'have'} empty cells, in "
        f"{listed(gaps.columns[gaps.any()])}.",
        "Leave these columns out with --drop, or fill the cells first with the map of a method "
        "that allows gaps: twofold fit, then twofold complete.",
    )


def describe_scaling(console: Console, scale: str, rows: TrainingTable) -> None:
    """Say how columns are weighed against each other, and what is odd about that."""
    if rows.constant:
        console.say(f"the same value in every row: {listed(rows.constant)} (used, tells nothing)")
    if scale != "none":
        how = "standard deviation" if scale == "standard" else "distance of its quartiles"
        console.say(f"scaling: every column by its {how}")
        return
    console.say("scaling: none")
    spreads = rows.frame.std()
    least, most = spreads[spreads > 0].min(), spreads.max()
    if most > 100 * least:
        console.warn(
            f"Column '{spreads.idxmax()}' varies {most / least:,.0f} times as much as "
            f"'{spreads[spreads > 0].idxmin()}' and will decide the map; use --scale standard "
            "unless all columns have the same unit."
        )


def summarize(model: TwoWayModel, rows: TrainingTable, seconds: float) -> dict[str, Any]:
    """Return how a fit went."""
    from twofold.cli.scoring import variance_of_rows

    share = None
    if is_error := is_squared_error(model):
        share = float(model.objective_) / variance_of_rows(model, rows.frame.to_numpy())
    return {
        "start": getattr(model, "start_", None),
        "iterations": int(model.n_iter_),
        "stop_reason": str(model.stop_reason_),
        "still_improving": is_still_improving(model),
        "seconds": round(seconds, 3),
        "objective": float(model.objective_),
        "error_kind": "leave-one-out" if is_error and is_left_out(model) else "reconstruction",
        "error_share": share,
    }


def tell_summary(console: Console, summary: dict[str, Any]) -> None:
    """Say how a fit went."""
    end = how_it_ended(
        summary["stop_reason"], summary["iterations"], summary["still_improving"], summary["start"]
    )
    console.say(f"fitted in {summary['seconds']:.1f} s: {end}")
    if summary["error_share"] is not None:
        console.say(
            f"{summary['error_kind']} error: {100 * summary['error_share']:.3g} % of the variance"
        )


def parse_landmarks(text: str | None) -> int | str | None:
    """Return the number of landmarks that an option asks for."""
    if text is None or text == "auto":
        return text
    if not text.isdecimal() or int(text) < 3:
        raise UsageError(f"--landmarks must be 'auto' or a number of at least 3; got '{text}'.")
    return int(text)


def parse_image_shape(text: str | None) -> tuple[int, ...] | None:
    """Return height, width and perhaps 3 from text such as 28x28 or 32x32x3."""
    if text is None:
        return None
    sides = re.split("[x×,*]", "".join(text.lower().split()))
    if not all(side.isdecimal() and int(side) for side in sides) or len(sides) not in (2, 3):
        raise UsageError(
            f"--image-shape must be height x width, such as 28x28, or 32x32x3 for colour; got "
            f"'{text}'."
        )
    return tuple(int(side) for side in sides)


def _default_output(table: str) -> str:
    if table == STANDARD:
        raise UsageError("A table from standard input has no name for the model.", "Add -o MODEL.")
    return beside(table, MODEL_SUFFIX)

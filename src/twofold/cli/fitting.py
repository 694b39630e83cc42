"""``twofold fit``: from a table to a model file, saying what is used, what is not, and why."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import typer

from twofold.cli import arguments as arg
from twofold.cli import describing
from twofold.cli.arguments import MODEL_SUFFIX, STANDARD, beside, check_output, shown
from twofold.cli.console import CommandError, Console, Interrupted, UsageError, counted, listed
from twofold.cli.methods import METHODS, USUAL_DIMENSIONS, USUAL_METHOD, Method, find_method

if TYPE_CHECKING:
    from twofold.cli.large_tables import LargeTable
    from twofold.cli.training_table import TrainingTable
    from twofold.contract import TwoWayModel

Scale: TypeAlias = Literal["standard", "robust", "none"]
HOW_MANY_DIMENSIONS = f"Dimensions of the map; {USUAL_DIMENSIONS} by default."
of_ukr = partial(arg.option, rich_help_panel="Options that go with --method ukr")


def fit(
    table: arg.Table,
    output: arg.Text = arg.output_option(
        "MODEL", "Where the model goes; by default beside the table, ending in .twofold."
    ),
    method: str = typer.Option(
        USUAL_METHOD,
        metavar="|".join(METHODS),
        help="What to fit: unsupervised kernel regression, unsupervised nearest neighbours, "
        "kernel PCA, a diffusion map or a parametrized self-organizing map.",
    ),
    dimensions: int | None = arg.option(None, HOW_MANY_DIMENSIONS, "--dimensions", "-q", min=1),
    label: arg.Texts = arg.option(
        "COL", "A column to colour the map by; never used for fitting. Repeatable."
    ),
    index: arg.Index = None,
    columns: arg.Texts = arg.option(
        "A,B,C", "Use these columns only; by default all of numbers, categories and dates."
    ),
    drop: arg.Texts = arg.option("COL", "Do not use this column. Repeatable."),
    kinds: arg.Kinds = None,
    weights: arg.Weights = None,
    scale: Scale | None = arg.option(
        None,
        "Give all columns equal weight: by their standard deviation (the default) or by their "
        "quartiles (robust against outliers). none leaves them as they are, for columns that share "
        "a unit; it is the default for pixels of images and for embeddings in AnnData files.",
    ),
    missing: arg.Missing = None,
    settings: arg.Texts = arg.option(
        "NAME=VALUE",
        "A parameter of the method as in Python, such as n_neighbors=10. Repeatable.",
        "--set",
    ),
    degree: Literal["0", "1", "2", "2-axes"] | None = of_ukr(
        None, "Degree of the local polynomials; 0 by default, higher is slower."
    ),
    loss: arg.Text = of_ukr(
        "squared|huber", "squared by default; huber is less disturbed by outliers."
    ),
    landmarks: arg.Text = of_ukr(
        "N|auto", "Number of points that stand for all rows; for large tables."
    ),
    kernel: arg.Text = of_ukr(
        "gaussian|quartic|triweight", "How rows nearby are weighted; gaussian by default."
    ),
    max_iter: int | None = of_ukr(
        None, "Maximum number of iterations; by default 400 down to 15, fewer for more rows.", min=0
    ),
    checkpoint: arg.Text = of_ukr(
        "FILE",
        "Save the progress of the fit to FILE; after a kill, the same command continues there.",
    ),
    scheduler: arg.Scheduler = None,
    seed: arg.Seed = 0,
    image_shape: arg.Text = arg.option(
        "HxW[x3]", "Rows are images, such as 28x28; pictures then show them."
    ),
    quiet: arg.Quiet = False,
    json: arg.AsJson = False,
) -> None:
    """Fit a map to a table and save it as a model; by UKR unless --method says otherwise.

    Columns of numbers, categories and dates are used. Names and free text are left out. Empty cells
    are allowed, except with kernel-pca and diffusion-map. If exactly one text column differs in
    every row, it becomes the names of the rows.

    Ctrl-C ends the fit early and keeps the best model so far. There is none yet while the table is
    read and a start is found, and never with kernel-pca and diffusion-map, which have no steps.

    A table larger than the free memory is never loaded whole: --method ukr reads it in pieces and
    lets landmarks stand for its rows.
    """
    from twofold.checks.rows import RowError
    from twofold.cli.large_tables import LargeTable
    from twofold.cli.training_table import facts_of, read_or_walk

    console = Console(quiet=quiet, as_json=json)
    if columns and drop:
        hint = "Name the columns to use, or those to leave out."
        raise UsageError("--columns and --drop exclude each other.", hint)
    chosen = find_method(method)
    target = find_target(output, table)
    phase = Phase(console)
    given = {
        "kernel": kernel,
        "degree": int(degree) if degree and degree.isdecimal() else degree,
        "loss": loss,
        "landmarks": parse_landmarks(landmarks),
        "max_iter": max_iter,
        "checkpoint": checkpoint,
    }
    of_run: dict[str, Any] = {"random_state": seed, "verbose": False if quiet else "auto"}
    of_run["callbacks"] = [phase.iterations_begin]
    estimator = chosen.make(dimensions, given, settings or [], **of_run)
    shape = parse_image_shape(image_shape)
    scale = scale or usual_scale(table, shape)
    if scheduler is not None:
        others = {"label": label, "index": index, "missing": missing, "image-shape": image_shape}
        others |= {"kinds": kinds, "weights": weights}
        check_spread(chosen, table, others)
        choose_landmarks(console, estimator)
        fit_spread(phase, console, estimator, table, target, scheduler, scale, columns, drop)
        return
    q = estimator.wanted_dimensions()
    check_output(target, table)
    wanted: dict[str, Any] = {"label": label, "columns": columns, "drop": drop, "index": index}
    wanted |= {"missing": missing, "image_shape": shape}
    wanted["kinds"], of_columns = kinds_to_use(kinds, weights, scale, shape)
    with phase("reading", "the table was being read"):
        wanted |= {"may_exceed_columns": chosen.may_exceed_columns, "may_walk": chosen.walks}
        rows = read_or_walk(table, console, q, **wanted)
    if isinstance(rows, LargeTable):
        choose_landmarks(console, estimator)
    else:
        check_gaps(chosen, estimator, rows, table)
    describe_scaling(console, scale, rows, share_a_unit=shape is not None)
    advice = chosen.advice(estimator, rows.n_rows)
    if advice is not None:
        console.say(f"{rows.n_rows:,} rows take a while; {advice}.")
    started = time.perf_counter()
    with console.warnings_shown(), phase(*chosen.first_phase):
        model = make_model(estimator, scale, rows, wanted["kinds"], of_columns)
        try:
            model.fit(rows.table)
        except RowError as error:
            raise error.at(rows.row_in_file(error.row)) from None
    seconds = time.perf_counter() - started
    describing.say_kinds(console, model, dict(rows.left_out))
    model.annotate(names=rows.names, labels=rows.labels or None, image_shape=shape)
    model.save(target)
    facts = {"model": target, "scale": scale, **facts_of(rows), "method": chosen.name}
    console.finish(target, {**facts, **summarize(console, model, rows, seconds)})


def usual_scale(table: str, image_shape: tuple[int, ...] | None = None) -> Scale:
    """Return how columns are scaled unless a user says so: not where all share a unit."""
    from twofold.tables.parts import split_part

    # Pixels do, and so do components: their sizes say how much each counts.
    is_embedding = (split_part(table)[1] or "").startswith("obsm/")
    return "none" if image_shape is not None or is_embedding else "standard"


def kinds_to_use(
    kinds: arg.Texts, weights: arg.Texts, scale: str, image_shape: tuple[int, ...] | None
) -> tuple[dict[str, Any] | None, dict[str, float]]:
    """Return kinds of columns that are asked for, None if only numbers are used; and weights."""
    if not kinds and not weights and (scale != "standard" or image_shape is not None):
        return None, {}
    from twofold.cli.mixed_columns import parse_kinds, parse_weights

    if scale != "standard":
        raise UsageError(
            f"--scale {scale} is for columns of numbers, --kinds and --weights are for all kinds.",
            "Leave --scale out, or the others.",
        )
    return parse_kinds(kinds), parse_weights(weights)


def make_model(
    estimator: TwoWayModel,
    scale: str,
    rows: TrainingTable | LargeTable,
    kinds: dict[str, Any] | None,
    weights: dict[str, float],
) -> TwoWayModel:
    """Return the model to fit, with columns brought to one scale as asked."""
    from twofold import Mixed, Scaled
    from twofold.cli.mixed_columns import check_weighed, named_as_levels

    check_weighed(weights, rows.columns, dict(rows.left_out))
    if getattr(rows, "is_mixed", False) or weights:
        used = {name: kind for name, kind in (kinds or {}).items() if name in rows.columns}
        kinds = named_as_levels(used, rows.table)
        return Mixed(estimator, kinds=kinds or None, weights=weights or None)
    return estimator if scale == "none" else Scaled(estimator, how=scale)


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
    if not rows.missing_share or describing.takes_gaps(model):
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


def find_target(output: str | None, table: str) -> str:
    """Return where the model goes; raise where it has no name."""
    if output is None and table == STANDARD:
        raise UsageError("A table from standard input has no name for the model.", "Add -o MODEL.")
    if output is None and "*" in table:
        raise UsageError(f"{shown(table)} has no name for the model.", "Add -o MODEL.")
    if output == STANDARD:
        raise UsageError(
            "A model is a file of arrays, which standard output does not take.",
            f"Name a file: -o {Path(beside(table, MODEL_SUFFIX)).name}",
        )
    return output or beside(table, MODEL_SUFFIX)


def fit_spread(
    phase: Phase, console: Console, model: TwoWayModel, table: str, target: str, *others: Any
) -> None:
    """Fit to part files over a cluster."""
    check_output(target, table)
    with phase("looking for the scheduler", "rows were spread over the workers"):
        from twofold.cli.cluster import fit_parts

        fit_parts(console, model, table, target, *others)


def check_spread(method: Method, table: str, others: dict[str, Any]) -> None:
    """Raise for what a fit over a cluster cannot do."""
    refused = [f"--{name}" for name, given in others.items() if given]
    refused += ["a table from standard input"] if table == STANDARD else []
    if not method.walks:
        raise UsageError(
            f"--method {method.name} holds all rows; with --scheduler only --method ukr is fitted."
        )
    if refused:
        hint = "Fit without it, or without --scheduler."
        raise UsageError(f"--scheduler does not go with {listed(refused)}.", hint)


def choose_landmarks(console: Console, model: TwoWayModel) -> None:
    """Let landmarks stand for the rows of a table that is larger than memory; say so."""
    if model.get_params(deep=False)["landmarks"] is None:
        model.set_params(landmarks="auto")
        console.say("landmarks stand for the rows (--landmarks auto)")


def describe_scaling(
    console: Console,
    scale: str,
    rows: TrainingTable | LargeTable,
    *,
    share_a_unit: bool = False,
) -> None:
    """Say how columns are weighed against each other, and what is odd about that.

    Columns that ``share_a_unit``, as pixels do, may vary as they like.
    """
    if rows.constant and not getattr(rows, "is_mixed", False):
        console.say(
            f"the same value in every row: {listed(rows.constant)} (says nothing, but is kept, and "
            "rows for the model need it)"
        )
    if getattr(rows, "is_mixed", False):
        console.say("scaling: all columns have equal weight, whatever their kind")
        return
    if scale != "none":
        how = "standard deviation" if scale == "standard" else "distance of its quartiles"
        console.say(f"scaling: every column by its {how}")
        return
    console.say("scaling: none")
    spreads = rows.spreads
    least, most = spreads[spreads > 0].min(), spreads.max()
    if most > 100 * least and not share_a_unit:
        console.warn(
            f"Column '{spreads.idxmax()}' varies {most / least:,.0f} times as much as "
            f"'{spreads[spreads > 0].idxmin()}' and will decide the map; use --scale standard "
            "unless all columns have the same unit."
        )


def summarize(
    console: Console, model: TwoWayModel, rows: TrainingTable | LargeTable, seconds: float
) -> dict[str, Any]:
    """Say how a fit went, and return it in facts."""
    start, reason = getattr(model, "start_", None), str(model.stop_reason_)
    n_iter, still_improving = int(model.n_iter_), describing.is_still_improving(model)
    end = describing.how_it_ended(reason, n_iter, still_improving, start)
    console.say(f"fitted in {seconds:.1f} s: {end}")
    kind, share = "reconstruction", None
    if describing.is_squared_error(model):
        kind = "leave-one-out" if describing.is_left_out(model) else kind
        share = float(model.objective_) / rows.variance(model)
        console.say(f"{kind} error: {100 * share:.3g} % of the variance")
    inside: Any = getattr(model, "model_", model)
    # Others have looked after their fit, and warned.
    looks = not inside._regresses_quickly and model.has_noise()
    if looks and (words := model.left_open().warning()):
        console.warn(f"{words[0].upper()}{words[1:]}.")
    return {
        "start": start,
        "iterations": n_iter,
        "stop_reason": reason,
        "still_improving": still_improving,
        "seconds": round(seconds, 3),
        "objective": float(model.objective_),
        "error_kind": kind,
        "error_share": share,
    }


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

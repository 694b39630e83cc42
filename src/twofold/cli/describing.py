"""What a model is, in facts for programs and in lines for people."""

import inspect
from typing import Any

from twofold.cli.columns import shown_feature_names
from twofold.cli.console import counted, listed

# A fit whose last tenth of the iterations gained less than this is as good as done.
SMALL_GAIN, LAST_PART = 0.01, 0.1
FEW_ITERATIONS = 10
# Parameters that say nothing about the model, only about the run that made it.
OF_THE_RUN = ("callbacks", "verbose", "n_jobs", "model", "estimator")
# With these values the objective is a squared error of rows, each reconstructed from the others;
# a model without a loss minimises something else.
OF_SQUARED_ERRORS = {"loss": "squared", "data_kernel": None, "regularization": "loo", "power": 2}
# What fits of one family or another choose and find by themselves, and what people call it.
FOUND = {
    "search_": "search",
    "kernel_": "kernel",
    "bandwidth_": "kernel width",
    "preimage_": "way back",
    "eigenvalues_": "eigenvalues",
    "grid_": "grid",
    "smoothness_": "smoothness",
    "threshold_": "cluster radius",
}
MOST_NUMBERS = 6
# More classes than this are not all named.
MOST_CLASSES = 12
CLOSED_FORM = "closed form"


def describe(model: Any, versions: dict[str, str]) -> dict[str, Any]:
    """Return what a fitted model is and how it came about."""
    import numpy as np
    from scipy.sparse import issparse

    from twofold.contract.row_notes import RowNotes

    inside, is_mixed = getattr(model, "model_", model), hasattr(model, "left_out_")
    given = inside.get_params(deep=False)
    usual = inspect.signature(type(inside)).parameters
    parameters = {name: str(value) for name, value in given.items() if name not in OF_THE_RUN}
    facts: dict[str, Any] = {
        "class": type(inside).__name__,
        "scale": "mixed" if is_mixed else getattr(model, "how", "none"),
        "n_features": int(model.n_features_in_),
        "columns": shown_feature_names(model),
        "parameters": parameters,
        "changed_parameters": [n for n, v in parameters.items() if v != str(usual[n].default)],
        "versions": versions,
    }
    if is_mixed:
        facts["kinds"] = {column.name: column.described() for column in model.columns_}
        facts["left_out"] = dict(model.left_out_)
    if hasattr(model, "embedding_"):
        n, q = model.embedding_.shape
        facts |= {"rows": n, "dimensions": q}
    if hasattr(model, "latent_"):
        # A sparse kernel matrix holds the entries that are not zero.
        values = model.data_.data if issparse(model.data_) else model.data_
        n_missing = int(np.isnan(values).sum())
        facts |= {"carried_rows": len(model.latent_), "missing_cells": n_missing}
    for name in ("start_", "n_iter_", "stop_reason_", "objective_", "backend_"):
        if hasattr(model, name):
            facts[name.rstrip("_")] = getattr(model, name)
    facts["still_improving"] = is_still_improving(model)
    if hasattr(model, "left_open") and model.has_noise():
        left = model.left_open()
        facts |= {"left_open_share": left.share, "left_open": left.in_words()}
        facts["warning"] = left.warning() or None
    # What a fit chose by itself: what only repeats a parameter is none.
    facts["found"] = {
        name.rstrip("_"): _plain(getattr(model, name))
        for name in FOUND
        if hasattr(model, name) and str(getattr(model, name)) != str(given.get(name[:-1]))
    }
    notes = getattr(model, "notes_", RowNotes())
    return facts | {
        "has_names": notes.names is not None,
        "labels": {
            name: _label_in_words(values, notes.orders.get(name))
            for name, values in notes.labels.items()
        },
        "image_shape": notes.image_shape,
    }


def describe_in_lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the facts in words, most telling first."""
    pairs = [("model", facts["class"])]
    if "rows" in facts:
        pairs += [
            ("map", f"{facts['n_features']:,} columns to {facts['dimensions']} dimensions"),
            ("rows", _rows_in_words(facts)),
        ]
    if facts["columns"]:
        pairs.append(("columns", listed(facts["columns"], 20)))
    if "kinds" in facts:
        pairs += [(f"column '{name}'", said) for name, said in facts["kinds"].items()]
        pairs += [(f"left out '{name}'", why) for name, why in facts["left_out"].items()]
    else:
        pairs.append(("scaling", facts["scale"]))
    pairs += [(f"label '{name}'", values) for name, values in facts["labels"].items()]
    if facts["image_shape"]:
        pairs.append(("images", " x ".join(str(side) for side in facts["image_shape"])))
    if "n_iter" in facts:
        how = (facts["stop_reason"], facts["n_iter"], facts["still_improving"])
        pairs.append(("fit", how_it_ended(*how, facts.get("start"))))
        pairs.append(("objective", f"{facts['objective']:.6g}"))
    if "left_open_share" in facts:
        pairs.append(("left open", facts["left_open"]))
        if facts["warning"]:
            pairs.append(("warning", facts["warning"]))
    pairs += [(FOUND[f"{name}_"], _in_words(value)) for name, value in facts["found"].items()]
    changed = [f"{name}={facts['parameters'][name]}" for name in facts["changed_parameters"]]
    pairs.append(("parameters", ", ".join(changed) or "all as usual"))
    pairs.append(("saved with", ", ".join(f"{k} {v}" for k, v in facts["versions"].items())))
    return pairs


def say_kinds(console: Any, model: Any, left_out: dict[str, str]) -> None:
    """Say what each column of a mixed table became, and note which never reached the model."""
    if not hasattr(model, "left_out_"):
        return
    for column in model.columns_:
        console.say(f"  {column.name}: {column.described()}")
    for name, why in model.left_out_.items():
        console.say(f"left out: '{name}': {why}")
    model.left_out_ = {**left_out, **model.left_out_}


def is_still_improving(model: Any) -> bool:
    """Say whether the last iterations of a fit lowered the objective by more than a little."""
    if getattr(model, "stop_reason_", None) == CLOSED_FORM:
        return False
    values = [float(value) for value in getattr(model, "history_", ())]
    if len(values) <= FEW_ITERATIONS:
        return True  # what the last of them gained says nothing about the next hundred
    before = values[-1 - max(1, round(LAST_PART * (len(values) - 1)))]
    return before - values[-1] >= SMALL_GAIN * abs(before)


def how_it_ended(reason: str, n_iter: int, still_improving: bool, start: str | None = None) -> str:
    """Return in words where a fit began, if that was chosen, how long it took, and why no more."""
    begun = "" if start is None else f"start {start}, "
    if reason == CLOSED_FORM:
        return f"{begun}{reason}"
    steps = counted(n_iter, "iteration")
    if reason != "max_iter":
        return f"{begun}{steps}, {reason}"
    advice = "more would change little; --max-iter for more"
    if still_improving:
        advice = "more would still improve it: raise --max-iter"
    return f"{begun}stopped after {steps} ({advice})"


def is_squared_error(model: Any) -> bool:
    """Say whether the objective of a model is a squared error of rows, in its own units."""
    given = getattr(model, "model_", model).get_params(deep=False)
    wanted = OF_SQUARED_ERRORS.items()
    return "loss" in given and all(given.get(name, value) == value for name, value in wanted)


def is_left_out(model: Any) -> bool:
    """Say whether rows were reconstructed from the others; from landmarks they are not."""
    return len(model.latent_) >= len(set(model.member_.tolist())) > 1


def takes_gaps(model: Any) -> bool:
    """Say whether a model takes rows with missing cells."""
    return bool(model.__sklearn_tags__().input_tags.allow_nan)


def _rows_in_words(facts: dict[str, Any]) -> str:
    words = f"{facts['rows']:,}"
    if facts.get("carried_rows", facts["rows"]) < facts["rows"]:
        is_reduced = facts["parameters"].get("landmarks", "None") != "None"
        what = "landmarks" if is_reduced else "different ones"
        words += f", carried by {facts['carried_rows']:,} {what}"
    return words + (", with names" if facts["has_names"] else "")


def _plain(value: Any) -> Any:
    """Return a fitted attribute as numbers or as text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "shape"):  # of a grid its sides say enough
        return " x ".join(str(side) for side in value.shape)
    return value if isinstance(value, int | float) else str(value)


def _in_words(value: Any) -> str:
    """Return what was found in a few words: a number, the first of many, a text."""
    if isinstance(value, list):
        more = f" and {len(value) - MOST_NUMBERS:,} more" if len(value) > MOST_NUMBERS else ""
        return ", ".join(f"{one:.4g}" for one in value[:MOST_NUMBERS]) + more
    return f"{value:.6g}" if isinstance(value, int | float) else str(value)


def _label_in_words(values: Any, order: list[str] | None) -> str:
    import numpy as np

    from twofold.contract.label_values import as_days, reading_order

    if values.dtype.kind != "U":
        return f"numbers from {np.nanmin(values):.4g} to {np.nanmax(values):.4g}"
    classes = [str(name) for name in np.unique(values) if name]
    if not order and len(classes) > MOST_CLASSES and as_days(np.array(classes)) is not None:
        return f"dates from {classes[0]} to {classes[-1]}"
    classes = [classes[number] for number in reading_order(classes, order)]
    kind = "ordered level" if order else "value"
    return f"{counted(len(classes), kind)}: {listed(classes, MOST_CLASSES)}"

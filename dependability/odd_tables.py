"""Tables as odd as they come: a recipe says how one is made, so that it can be made again.

A recipe is a handful of words and numbers, the ordinary choice first in each list. Whoever draws
recipes, by number or by hypothesis, draws from the same lists, and shrinks towards the ordinary.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp

FloatTable = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Recipe:
    """How a table and its weights are made; see `CHOICES` for what each field may say."""

    rows: int
    columns: int
    pattern: str
    size: str
    gaps: str
    form: str
    weights: str
    new_rows: str
    seed: int


CHOICES: dict[str, tuple[Any, ...]] = {
    "rows": (30, 1, 2, 3, 4, 5, 6, 8, 12, 40),
    "columns": (5, 1, 2, 3, 8),
    "pattern": (
        "curve",
        "noise",
        "line",
        "plane of integers",
        "one constant column",
        "equal columns",
        "copies",
        "near copies",
        "two tight clusters",
        "one far row",
        "two values",
        "all equal",
        "zeros",
    ),
    "size": (
        "1",
        "1e-310",
        "1e-300",
        "1e-200",
        "1e-150",
        "1e-80",
        "1e-30",
        "1e-5",
        "1e5",
        "1e30",
        "1e80",
        "1e150",
        "1e200",
        "1e300",
        "1.7e308",
        "each column its own",
        "far from 0",
        "very far from 0",
        "one row at 1e300",
    ),
    "gaps": (
        "none",
        "few",
        "many",
        "one row",
        "one column",
        "everything",
        "one infinity",
        "a column of infinities",
    ),
    "form": (
        "C",
        "F",
        "every other",
        "backwards",
        "read-only",
        "memory-mapped",
        "masked",
        "float16",
        "float32",
        "long double",
        "big-endian",
        "int8",
        "int64",
        "uint64",
        "bool",
        "list",
        "objects",
        "objects with None",
        "text",
        "complex",
        "dates",
        "matrix",
        "one row only",
        "three axes",
        "empty",
        "pandas",
        "pandas with nullable columns",
        "pandas with a text column",
        "polars",
        "csr",
        "coo",
    ),
    "weights": (
        "none",
        "ones",
        "one 0",
        "only one",
        "one next to nothing",
        "all 0",
        "integers",
        "tiny",
        "huge",
        "tiny and huge",
        "NaN",
        "infinite",
        "negative",
        "too few",
        "text",
    ),
    "new_rows": (
        "near",
        "the same",
        "far",
        "farther",
        "farthest",
        "with gaps",
        "with infinity",
        "too few columns",
        "float32",
        "none",
    ),
    "seed": tuple(range(1000)),
}
assert list(CHOICES) == [field.name for field in fields(Recipe)]


def recipe_by_number(case: int) -> Recipe:
    """Return the recipe of a case; each field is ordinary more often than not."""
    rng = np.random.default_rng([case, 2])
    oddness = rng.choice([0.1, 0.3, 0.6])
    chosen = {
        name: options[int(rng.integers(len(options))) if rng.random() < oddness else 0]
        for name, options in CHOICES.items()
    }
    return Recipe(**{**chosen, "seed": case})


def make_table(recipe: Recipe) -> Any:
    """Return the table of a recipe, in the form that it asks for."""
    with np.errstate(all="ignore"):
        return _in_form(_with_gaps(_values(recipe), recipe), recipe)


def make_weights(recipe: Recipe) -> Any:
    """Return weights of the rows, or None."""
    n, rng = recipe.rows, np.random.default_rng([recipe.seed, 3])
    if recipe.weights == "none":
        return None
    weights = rng.uniform(0.5, 2, n)
    last = {
        "one 0": 0.0,
        "one next to nothing": 1e-200,
        "NaN": np.nan,
        "infinite": np.inf,
        "negative": -1.0,
    }
    if recipe.weights in last:
        weights[-1] = last[recipe.weights]
    if recipe.weights == "only one":
        weights[1:] = 0
    if recipe.weights == "tiny and huge":
        weights = 10.0 ** rng.uniform(-300, 300, n)
    return {
        "ones": np.ones(n),
        "all 0": np.zeros(n),
        "integers": np.arange(1, n + 1),
        "tiny": np.full(n, 1e-300),
        "huge": np.full(n, 1e300),
        "too few": weights[:-1],
        "text": ["a"] * n,
    }.get(recipe.weights, weights)


def make_new_rows(recipe: Recipe) -> Any:
    """Return rows that a fitted model has not seen."""
    Y, rng = _values(recipe), np.random.default_rng([recipe.seed, 4])
    Y = Y[rng.integers(len(Y), size=4)]
    with np.errstate(all="ignore"):
        near = Y + 0.1 * (Y - Y.mean(axis=0)) * rng.normal(size=Y.shape)
        near = np.where(np.isfinite(near), near, Y)
        if recipe.new_rows == "with gaps":
            near[0, 0] = np.nan
        if recipe.new_rows == "with infinity":
            near[-1, -1] = np.inf
        far = {"far": 1e3, "farther": 1e30, "farthest": 1.0}.get(recipe.new_rows)
        if far is not None:
            shift = 1.7e308 if recipe.new_rows == "farthest" else far * (np.abs(Y).max() + 1)
            near[1:] = np.clip(near[1:] + rng.normal(size=near[1:].shape) * shift, -1e308, 1e308)
        return {
            "the same": Y,
            "too few columns": near[:, 1:],
            "float32": near.astype(np.float32),
            "none": near[:0],
        }.get(recipe.new_rows, near)


def _values(recipe: Recipe) -> FloatTable:
    """Return finite values (n, D)."""
    rng = np.random.default_rng([recipe.seed, 5])
    with np.errstate(all="ignore"):
        Y = _sized(_pattern(recipe.pattern, recipe.rows, recipe.columns, rng), recipe.size, rng)
    return np.nan_to_num(Y)


def _pattern(pattern: str, n: int, D: int, rng: np.random.Generator) -> FloatTable:
    t = np.linspace(-1, 1, n)[:, None]
    curve = np.sin(3 * t + np.arange(D)) + 0.02 * rng.normal(size=(n, D))
    near = rng.normal(size=(2, D))[np.arange(n) % 2]
    patterns = {
        "curve": curve,
        "noise": rng.normal(size=(n, D)),
        "line": t * np.arange(1, D + 1),
        "plane of integers": (np.arange(n)[:, None] // 5 ** np.arange(D)) % 5,
        "one constant column": np.where(np.arange(D) == 0, 1.5, curve),
        "equal columns": np.repeat(curve[:, :1], D, axis=1),
        "copies": curve[np.arange(n) // 2],
        "near copies": curve[np.arange(n) // 2] * (1 + 1e-15 * rng.normal(size=(n, D))),
        "two tight clusters": near + 1e-9 * rng.normal(size=(n, D)),
        "one far row": np.where(np.arange(n)[:, None] == 0, 1e6, curve),
        "two values": rng.integers(2, size=(n, D)),
        "all equal": np.ones((n, D)),
        "zeros": np.zeros((n, D)),
    }
    return patterns[pattern].astype(np.float64)


def _sized(Y: FloatTable, size: str, rng: np.random.Generator) -> FloatTable:
    if size == "each column its own":
        return Y * 10.0 ** rng.integers(-200, 200, Y.shape[1])
    if size == "far from 0":
        return Y + 1e8
    if size == "very far from 0":
        return Y + 1e17
    if size == "one row at 1e300":
        return np.where(np.arange(len(Y))[:, None] == 1, 1e300, Y)
    return Y / np.abs(Y).max(initial=1) * float(size)


def _with_gaps(Y: FloatTable, recipe: Recipe) -> FloatTable:
    Y, rng = Y.copy(), np.random.default_rng([recipe.seed, 6])
    share = {"few": 0.1, "many": 0.6}.get(recipe.gaps)
    if share is not None:
        holes = rng.random(Y.shape) < share
        holes[np.arange(len(Y)), rng.integers(Y.shape[1], size=len(Y))] = False
        Y[holes] = np.nan
    where: dict[str, Any] = {
        "one row": (0, slice(None)),
        "one column": (slice(None), 0),
        "everything": (slice(None), slice(None)),
    }
    if recipe.gaps in where:
        Y[where[recipe.gaps]] = np.nan
    if recipe.gaps == "one infinity":
        Y[-1, 0] = -np.inf
    if recipe.gaps == "a column of infinities":
        Y[:, -1] = np.inf
    return Y


def _in_form(Y: FloatTable, recipe: Recipe) -> Any:
    named = [f"c{d}" for d in range(Y.shape[1])]
    numbers = {"float16": "f2", "float32": "f4", "long double": "longdouble", "big-endian": ">f8"}
    whole = {"int8": "i1", "int64": "i8", "uint64": "u8", "bool": "?", "dates": "M8[s]"}
    form = recipe.form
    if form in numbers:
        return Y.astype(numbers[form])
    if form in whole:
        return np.nan_to_num(Y * 10).astype(whole[form])
    if form in ("read-only", "memory-mapped"):
        return _locked(Y, mapped=form == "memory-mapped")
    if form in ("csr", "coo"):
        return sp.csr_array(Y) if form == "csr" else sp.coo_matrix(Y)
    if form.startswith("pandas"):
        return _frame(Y, form, named)
    return {
        "C": lambda: Y,
        "F": lambda: np.asfortranarray(Y),
        "every other": lambda: np.repeat(np.repeat(Y, 2, axis=0), 2, axis=1)[::2, ::2],
        "backwards": lambda: np.ascontiguousarray(Y[::-1, ::-1])[::-1, ::-1],
        "masked": lambda: np.ma.masked_array(np.nan_to_num(Y), mask=np.isnan(Y) | (Y > 0.95)),
        "list": Y.tolist,
        "objects": lambda: Y.astype(object),
        "objects with None": lambda: np.where(np.isnan(Y), None, Y.astype(object)),
        "text": lambda: Y.astype(str),
        "complex": lambda: Y.astype(complex),
        "matrix": lambda: np.asmatrix(Y),
        "one row only": lambda: Y[0],
        "three axes": lambda: Y[:, :, None],
        "empty": lambda: Y[:0],
        "polars": lambda: pl.DataFrame(Y, schema=named),
    }[form]()


def _locked(Y: FloatTable, *, mapped: bool) -> FloatTable:
    Y = Y.copy()
    Y.flags.writeable = False
    if not mapped:
        return Y
    with tempfile.NamedTemporaryFile() as file:  # the map outlives its name
        file.write(Y.tobytes())
        file.flush()
        return np.memmap(file.name, dtype=np.float64, mode="r", shape=Y.shape)


def _frame(Y: FloatTable, form: str, named: list[str]) -> pd.DataFrame:
    frame = pd.DataFrame(Y, columns=named)
    if form == "pandas with nullable columns":
        return frame.astype("Float64")
    return frame.assign(text="a") if form == "pandas with a text column" else frame

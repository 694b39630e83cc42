"""What a file of a fitted model may hold: sizes that belong together, finite numbers, in range.

Compiled loops trust their input, so nothing out of a file reaches them before it has been compared
with what a fit leaves. A family says that in a table, one line for each fitted attribute. Letters
in a shape stand for sizes, which the first array of the table that has them decides:

    n  rows of the model      D  features      q  latent dimensions      N  rows passed to fit
    s  rows kept beside landmarks

What a fit only reports, and nothing computes with, is checked for its kind alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from twofold.checks.parameters import is_integer, is_number
from twofold.contract.row_notes import RowNotes
from twofold.noise.noise_model import NoiseModel

Sizes: TypeAlias = dict[str, int]

# The smallest number that still has all its digits; what is divided by must not lie below.
TINY = float(np.finfo(np.float64).tiny)
# The smallest number above 0: a column of such numbers has no larger spread.
SMALLEST = float(np.finfo(np.float64).smallest_subnormal)
# How far places of rows may lie from the latent points, in sizes of these, or in ones: pages hold
# them in single precision. A map of known places may have rows far from its distinct ones.
FARTHEST = 1e30

_KINDS = {"f": "numbers", "i": "whole numbers", "b": "yes or no", "U": "text"}


class Expected(Protocol):
    """What an attribute should be."""

    @property
    def is_optional(self) -> bool:
        """Whether a fit may leave it out."""
        ...

    def check(self, value: Any, sizes: Sizes) -> None:
        """Raise a ValueError that says what is wrong; may add to the sizes."""
        ...


FittedState: TypeAlias = Mapping[str, Expected]


@dataclass(frozen=True)
class Array:
    """An array of a shape, of one kind, within bounds, themselves included."""

    shape: tuple[int | str, ...]  # sizes, given as numbers or letters
    kind: str = "f"  # a key of `_KINDS`
    low: float = -np.inf
    high: float | str = np.inf  # or the letter of a size, for indices below it
    has_gaps: bool = False  # whether NaN may stand for missing entries
    is_optional: bool = False

    def check(self, value: Any, sizes: Sizes) -> None:
        """Raise unless the value is such an array."""
        if not isinstance(value, np.ndarray) or not self._is_kind(value.dtype):
            raise ValueError(f"is not an array of {_KINDS[self.kind]}")
        wanted = [sizes.get(size, size) for size in self.shape]  # type: ignore[arg-type]
        # Letters that no array has decided yet are still letters, and fit any size.
        fits = len(wanted) == value.ndim and all(
            isinstance(size, str) or size == found
            for size, found in zip(wanted, value.shape, strict=True)
        )
        if not fits:
            shape = ", ".join(map(str, wanted))
            raise ValueError(f"has shape {value.shape}, which should be ({shape})")
        named = zip(self.shape, value.shape, strict=True)
        sizes.update({size: found for size, found in named if isinstance(size, str)})
        if self.kind in "fi":
            self._check_range(value, sizes)

    def _is_kind(self, dtype: np.dtype[Any]) -> bool:
        if self.kind == "f":
            return dtype in (np.float64, np.float32)
        if self.kind == "i":
            return dtype == np.int64
        return dtype.kind in ("UO" if self.kind == "U" else self.kind)

    def _check_range(self, value: Any, sizes: Sizes) -> None:
        known = value[~np.isnan(value)] if self.has_gaps else value
        if not np.isfinite(known).all():
            raise ValueError("holds NaN or infinity")
        high = sizes[self.high] - 1 if isinstance(self.high, str) else self.high
        if known.size and (known.min() < self.low or known.max() > high):
            raise ValueError(
                f"goes from {known.min():.6g} to {known.max():.6g}, outside of "
                f"[{self.low:.6g}, {high:.6g}]"
            )


@dataclass(frozen=True)
class Number:
    """A finite number within bounds, themselves included."""

    low: float = -np.inf
    high: float = np.inf
    is_optional: bool = False

    def check(self, value: Any, sizes: Sizes) -> None:
        """Raise unless the value is such a number."""
        # Integers beyond 64 bits are numbers to Python only.
        is_known = is_number(value) and np.asarray(value).dtype.kind in "fi"
        if not is_known or not self.low <= value <= self.high or not np.isfinite(value):
            raise ValueError(
                f"is {_brief(value)}, not a finite number in [{self.low:.6g}, {self.high:.6g}]"
            )


@dataclass(frozen=True)
class Size:
    """A whole number that is a size; it decides what its letter stands for."""

    letter: str
    is_optional: bool = False

    def check(self, value: Any, sizes: Sizes) -> None:
        """Raise unless the value is that size."""
        if not is_integer(value) or value < 1 or sizes.setdefault(self.letter, value) != value:
            wanted = sizes.get(self.letter, "a whole number of at least 1")
            raise ValueError(f"is {value!r}, which should be {wanted}")


@dataclass(frozen=True)
class Value:
    """A value of some types, and what else may be asked of it."""

    types: tuple[type, ...]
    ask: Callable[[Any], object] | None = None
    is_optional: bool = False

    def check(self, value: Any, sizes: Sizes) -> None:
        """Raise unless the value is of such a type and passes."""
        if not isinstance(value, self.types):
            names = " or ".join(sorted(kind.__name__ for kind in self.types))
            raise ValueError(f"is {_brief(value)}, not of type {names}")
        if self.ask is not None:
            self.ask(value)


@dataclass(frozen=True)
class Report:
    """What a fit tells of itself: text, a number, an array of numbers, or some of these by name."""

    is_optional: bool = True

    def check(self, value: Any, sizes: Sizes) -> None:
        """Raise unless pictures and words can be made of the value."""
        parts = list(value.values()) if isinstance(value, dict) else [value]
        for part in parts:
            is_array = isinstance(part, np.ndarray) and part.dtype.kind in "fi" and part.ndim == 1
            if not (is_array or isinstance(part, str) or is_number(part)):
                raise ValueError(f"is {_brief(value)}, not a report of a fit")


@dataclass(frozen=True)
class Notes:
    """Names, labels and image shape of the rows passed to fit.

    They are only shown, so that numbers among them may be infinite.
    """

    is_optional: bool = True

    def check(self, value: Any, sizes: Sizes) -> None:
        """Raise unless the value holds a note for every row, and an image fills a row."""
        if not isinstance(value, RowNotes) or not isinstance(value.labels, dict):
            raise ValueError(f"is {_brief(value)}, not notes on rows")
        for column in (value.names, *value.labels.values()):
            if column is None:
                continue
            if not isinstance(column, np.ndarray) or column.dtype.kind not in "iufUO":
                raise ValueError("holds labels that are neither text nor numbers")
            if column.shape != (sizes["N"],):
                raise ValueError(f"has shape {column.shape}, which should be ({sizes['N']},)")
        is_order = isinstance(value.orders, dict) and all(
            name in value.labels and isinstance(order, list) and all(type(t) is str for t in order)
            for name, order in value.orders.items()
        )
        if not is_order:
            raise ValueError("holds orders that are no levels of its labels")
        if value.image_shape is not None:
            value.with_image_shape(value.image_shape, sizes["D"])


@dataclass(frozen=True)
class Noise:
    """The noise model, whose arrays belong to D features."""

    is_optional: bool = True

    def check(self, value: Any, sizes: Sizes) -> None:
        """Raise unless the value is a noise model of these features, with numbers that can be."""
        if not isinstance(value, NoiseModel):
            raise ValueError(f"is {_brief(value)}, not a noise model")
        found = vars(value)
        check_state(found, NOISE, {"D": sizes["D"]})
        if len(found["sizes"]) + 2 != found["weights"].shape[1]:
            raise ValueError("has weights for other neighbourhoods than it has sizes")
        rows = sizes.get("s", sizes.get("n", np.inf))  # those of a sample, with landmarks
        if len(found["sizes"]) and found["sizes"].max() > rows:
            raise ValueError("has neighbourhoods of more rows than there are")


NOISE: FittedState = {
    "center": Array(("D",)),
    "unit": Array(("D",), low=TINY),
    "mean": Array(("D",)),
    "loadings": Array(("D", "r")),
    "variances": Array(("D",), low=TINY),
    "sizes": Array(("k",), "i", low=1),
    "weights": Array(("D", "E"), low=0),
    "stretch": Number(low=0),
    "usual": Array(("D",), low=0),
    "ratios": Array(("h",), low=0),
    "columns": Array(("h",), "i", low=0, high="D"),
    "residuals": Array(("D",), low=0),
    "log_likelihoods": Array(("t",)),
    "larger_errors": Array(("g",)),
    "larger_spread": Array(("g",), low=0),
    "larger_columns": Array(("g",), "i", low=0, high="D"),
    "larger_shares": Array(("g",), low=0, high=1),
    "usual_share": Number(low=0, high=1),
}

# Rows that a model with landmarks keeps beside them; before COMMON, whose noise is made of them.
SAMPLE: FittedState = {
    "n_features_in_": Size("D"),
    "sample_rows_": Array(("s", "D"), has_gaps=True, is_optional=True),
    "sample_weights_": Array(("s",), low=TINY, is_optional=True),
}

COMMON: FittedState = {
    "n_features_in_": Size("D"),
    "feature_names_in_": Array(("D",), "U", is_optional=True),
    "data_": Array(("n", "D"), has_gaps=True),
    "weights_": Array(("n",), low=5e-324),
    "latent_": Array(("n", "q")),
    "embedding_": Array(("N", "q")),
    "member_": Array(("N",), "i", low=-1, high="n"),
    "domain_threshold_": Number(low=0),
    "objective_": Report(is_optional=False),
    "history_": Report(is_optional=False),
    "n_iter_": Number(low=0),
    "stop_reason_": Report(is_optional=False),
    "notes_": Notes(),
    "noise_": Noise(),
}


def check_state(
    state: Mapping[str, Any], expected: FittedState, known: Sizes | None = None
) -> Sizes:
    """Raise a ValueError unless a fit could have left these attributes; return their sizes.

    ``known`` are sizes that were decided elsewhere.
    """
    unknown = sorted(set(state) - set(expected))
    if unknown:
        raise ValueError(f"`{unknown[0]}` is not an attribute of a fitted model")
    sizes: Sizes = dict(known or {})
    for name, wanted in expected.items():
        if name not in state:
            if not wanted.is_optional:
                raise ValueError(f"`{name}` is missing")
            continue
        try:
            wanted.check(state[name], sizes)
        except (ValueError, TypeError) as error:
            raise ValueError(f"`{name}` {error}") from error
    return sizes


def check_totals(state: Mapping[str, Any]) -> None:
    """Raise unless weights can be added up and rows have entries, all in one precision."""
    data, weights = state["data_"], state["weights_"]
    with np.errstate(over="ignore"):
        if not np.isfinite(weights.sum()):
            raise ValueError("`weights_` add up to infinity")
        farthest = FARTHEST * (1 + np.abs(state["latent_"].astype(np.float64)).max(initial=0.0))
    if {state[name].dtype for name in ("latent_", "embedding_")} != {data.dtype}:
        raise ValueError("`data_`, `latent_` and `embedding_` differ in their precision")
    if not (np.abs(state["embedding_"].astype(np.float64)) <= farthest).all():
        raise ValueError("`embedding_` has points far from all of `latent_`")
    if isinstance(data, np.ndarray) and np.isnan(data).all(axis=1).any():
        raise ValueError("`data_` has a row without a single entry")


def check_there(model: object, needed: Mapping[str, bool]) -> None:
    """Raise unless a model has the attributes that it needs."""
    for name, is_needed in needed.items():
        if is_needed and not hasattr(model, name):
            raise ValueError(f"`{name}` is missing")


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."

"""Checks of data tables, and of the weights of their rows, that name what is at fault."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import _check_sample_weight, validate_data

from twofold.array_types import FloatArray, IntArray

# Sums of squares of such values, and of their products with weights, are still numbers: in double
# precision, and in single precision.
LARGEST, LARGEST_SINGLE = 1e140, 1e17
# Entries of a sparse table that is made dense without a word: 160 MB.
MOST_DENSE = 20_000_000
# Products of such weights with squares of data are numbers, and so are their sums.
LARGEST_WEIGHT, SMALLEST_WEIGHT = 1e60, 1e-60

# What takes the tables that are refused here.
FIT_MIXED = (
    "`twofold.Mixed` takes categories and dates as they are: `Mixed(UKR()).fit(table)`. Or leave "
    "these columns out."
)


class RowError(ValueError):
    """An error that names the first of the rows at fault, counted from 0.

    Who gives a model rows out of a longer table says which row of the table that is by `at`.
    """

    def __init__(self, problem: str, row: int, advice: str) -> None:
        super().__init__(problem, row, advice)
        self.problem, self.row, self.advice = problem, row, advice

    def __str__(self) -> str:
        return f"{self.problem} (first: row {self.row}){self.advice}"

    def at(self, row: int) -> RowError:
        """Return this error with another number of the row."""
        return type(self)(self.problem, row, self.advice)


def is_lazy(X: Any) -> bool:
    """Say whether something is an array or a data frame of dask, which is not computed yet.

    Nothing here imports dask: who passes such a table has.
    """
    is_of_dask = type(X).__module__.partition(".")[0] == "dask"
    return is_of_dask and hasattr(type(X), "npartitions") and hasattr(type(X), "ndim")


def check_in_memory(X: Any) -> None:
    """Raise if a table is one of dask, which would be loaded unasked and without its names."""
    if is_lazy(X):
        raise TypeError(
            "Expected a table in memory; got a dask table, which this method does not take. "
            "Pass a part at a time, e.g. `X.partitions[0].compute()`, or all of it if it fits into "
            "memory, `X.compute()`."
        )


def check_places_in_memory(model: Any) -> None:
    """Raise if the places of a model's rows are an array of dask, of which no picture is made."""
    if is_lazy(model.embedding_):
        raise TypeError(
            "The places of this model's rows lie on the workers of a dask cluster. To see those of "
            "a sample, save the model and open it: `model.save(path)`, `twofold.load(path)`."
        )


def comes_in_chunks(X: Any) -> bool:
    """Say whether a table is walked: a path, a mapped array, an iterable of chunks, one of dask."""
    if isinstance(X, np.memmap | str | os.PathLike) or hasattr(X, "__next__") or is_lazy(X):
        return True
    # Asked of the type: some tables compute their columns, or what else they have, when asked.
    is_table = any(hasattr(type(X), name) for name in ("__len__", "__array__", "shape", "columns"))
    return hasattr(type(X), "__iter__") and not is_table


def validate_rows(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    least: int | None = None,
    instead: str = FIT_MIXED,
) -> FloatArray:
    """Return the table an estimator was given as floats, NaN where an entry is missing.

    With ``reset`` its width and column names are remembered, else they are compared. It must have
    ``least`` rows, by default two for a fit. ``instead`` says what takes categories and dates.
    """
    check_in_memory(X)
    check_numeric(X, instead if reset else "Pass them as numbers, as for the fit.")
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    if sparse.issparse(X) and get_tags(estimator).input_tags.sparse:
        X = _made_dense(X, type(estimator).__name__)
    with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn sums up to find infinities
        Y = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
            ensure_min_samples=least or (2 if reset else 1),
        )
    return np.ascontiguousarray(Y)


def _made_dense(X: Any, name: str) -> Any:
    """Return a sparse table as an array, unless that would be large."""
    n_entries = X.shape[0] * X.shape[1]
    if n_entries > MOST_DENSE:
        raise ValueError(
            f"{name} computes with dense rows, and a sparse table is made dense up to "
            f"{MOST_DENSE:,} entries; this one of {X.shape[0]:,} x {X.shape[1]:,} would take "
            f"{8 * n_entries / 1e9:,.1f} GB. Fit twofold.Reduced({name}(...)), which keeps few "
            "components of its rows and gives all columns back; of a fitted model, ask for fewer "
            "rows at a time."
        )
    return X.toarray()


def checked_weights(sample_weight: Any, Y: Any) -> FloatArray:
    """Return the weights (n,) of the rows of Y (n, D) that a user passed; ones if None.

    They must be finite and not negative, the largest of them neither huge nor next to nothing.
    """
    n = np.shape(Y)[0]
    shape = () if sample_weight is None else np.asarray(sample_weight).shape
    if shape not in ((), (n,)):
        raise ValueError(
            f"`sample_weight` must be one number for each of the {n} rows; got an array of shape "
            f"{shape}."
        )
    weights: FloatArray = _check_sample_weight(
        sample_weight, Y, dtype=np.float64, ensure_non_negative=True
    )
    largest = float(weights.max(initial=0.0))
    if largest == 0:  # which scikit-learn checks from 1.9 on
        raise ValueError("`sample_weight` must hold at least one non-zero number; got zeros.")
    if not SMALLEST_WEIGHT <= largest <= LARGEST_WEIGHT:
        raise ValueError(
            f"The largest entry of `sample_weight` is {largest:.3g}; sums weighted by it leave the "
            f"range of numbers. It must lie between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}: "
            "divide all weights by a number of their size."
        )
    return weights


def validate_latent(X: Any, q: int, dtype: np.dtype[Any]) -> FloatArray:
    """Return latent points (m, q) that a user passed."""
    check_in_memory(X)
    # What is too large for the type is infinite, and refused.
    with np.errstate(over="ignore", invalid="ignore"):
        X = check_array(X, dtype=dtype, input_name="X")
    if X.shape[1] != q:
        raise ValueError(
            f"Expected latent points with {q} columns, as in `embedding_`; "
            f"got {X.shape[1]}. (Data rows go through `transform` first.)"
        )
    return X


def check_finite_points(X: FloatArray) -> None:
    """Raise if a coordinate of the points X (n, q) is NaN or infinite.

    Compiled loops sort points by their coordinates, and find no place for one that is no number.
    """
    if np.isfinite(X).all():
        return
    rows = np.flatnonzero(~np.isfinite(X).all(axis=1))
    raise ValueError(
        f"{len(rows)} of {len(X)} latent points have coordinates that are NaN or infinite (first: "
        f"point {rows[0]}: {X[rows[0]]}); all must be finite. Very large or very "
        "small values in the data cause this: scale the data, or leave such rows out."
    )


def check_entries(
    Y: FloatArray, largest: float = LARGEST, largest_single: float = LARGEST_SINGLE
) -> None:
    """Raise if entries of rows Y (m, D) are so large that their squares overflow.

    NaN marks what is missing and passes; infinity, to which larger numbers were rounded, does not.
    """
    wanted = largest if Y.dtype == np.float64 else largest_single
    largest = min(wanted, float(np.finfo(Y.dtype).max))
    too_large = np.abs(Y) > largest
    if not too_large.any():
        return
    rows = np.flatnonzero(too_large.any(axis=1))
    raise RowError(
        f"{len(rows)} row(s) have entries beyond {largest:.4g}",
        int(rows[0]),
        f", and the squares of larger values overflow {Y.dtype}; scale the data, or leave these "
        "rows out.",
    )


def check_differences(Y: FloatArray, smallest: float = 1 / LARGEST, *, what: str = "Rows") -> None:
    """Raise if rows Y (n, D) differ by so little that squares of their differences vanish."""
    known = ~np.isnan(Y)
    if not known.any():
        return
    highest = np.max(Y, axis=0, initial=-np.inf, where=known)
    lowest = np.min(Y, axis=0, initial=np.inf, where=known)
    widest = float((highest - lowest).max())
    if 0 < widest < smallest:
        raise ValueError(
            f"{what} differ by at most {widest:.3g}, and the squares of values below {smallest:g} "
            "underflow to zero; multiply the data by a number that brings it near 1."
        )


def check_finite_entries(Y: FloatArray) -> None:
    """Raise if entries of rows Y (m, D) became infinite; NaN marks what is missing."""
    check_entries(Y, np.inf, np.inf)


def check_images(values: FloatArray) -> FloatArray:
    """Return values (m, …) of a map at m places, or raise where it left the range of numbers."""
    rows = _rows_that_are_not_finite(values)
    if len(rows):
        raise RowError(
            f"{len(rows)} place(s) lie so far outside the domain that the map overflows there",
            int(rows[0]),
            "; pass places for which `in_domain` is True.",
        )
    return values


def check_errors(squared_errors: FloatArray) -> FloatArray:
    """Return the squared errors (m,) of rows, or raise where they left the range of numbers."""
    rows = _rows_that_are_not_finite(squared_errors)
    if len(rows):
        raise RowError(
            f"{len(rows)} row(s) lie so far from the manifold that their squared errors overflow "
            f"{squared_errors.dtype}",
            int(rows[0]),
            "; leave these rows out, or scale the data.",
        )
    return squared_errors


def _rows_that_are_not_finite(values: FloatArray) -> IntArray:
    return np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))


def check_missing(Y: FloatArray, names: FloatArray | None = None, *, columns: bool = True) -> None:
    """Raise if a row of Y (n, D), or a column where that matters, has no observed entry."""
    missing = np.isnan(Y)
    if not missing.any():
        return
    rows = np.flatnonzero(missing.all(axis=1))
    if len(rows):
        raise RowError(
            f"{len(rows)} row(s) have no observed entry",
            int(rows[0]),
            "; nothing tells where they belong, nor whether they are odd. Leave them out, e.g. "
            "`X[~np.isnan(X).all(axis=1)]`, of a frame `X.dropna(how='all')`. (Where they have to "
            "be filled, ManifoldImputer takes the means of the columns.)",
        )
    if columns:
        check_columns(Y, names)


def check_columns(Y: FloatArray, names: FloatArray | None = None) -> None:
    """Raise if a column of Y (n, D) has no observed entry."""
    empty = np.flatnonzero(np.isnan(Y).all(axis=0))
    if len(empty):
        label = f"'{names[empty[0]]}'" if names is not None else str(empty[0])
        raise ValueError(
            f"{len(empty)} column(s) have no observed entry (first: column {label}); nothing can "
            "be learned about them. Leave them out."
        )


def check_numeric(X: Any, instead: str = FIT_MIXED) -> None:
    """Raise if a table holds text, dates or other non-numbers; name such columns of a frame.

    ``instead`` says what to do with categories and dates.
    """
    if hasattr(X, "lazy") and hasattr(X, "collect"):
        raise TypeError("A lazy data frame has no rows yet; call its `collect()` first.")
    if isinstance(X, (np.ndarray, list, tuple)):
        _check_lengths(X)
        _check_numeric_array(np.asanyarray(X))
        return
    dtypes = getattr(X, "dtypes", None)
    columns = getattr(X, "columns", None)
    if dtypes is None or columns is None:
        return
    _check_frame(columns, dtypes)
    words: dict[Any, str] = {}  # of a type, which many columns share
    odd = []
    for name, dtype in zip(columns, dtypes, strict=True):
        said = words.get(dtype) or words.setdefault(dtype, str(dtype))
        is_object = said == "object"
        if not _NUMERIC.match(said.lower()) or (is_object and not _converts(X[name])):
            odd.append(f"'{name}' ({said})")
    if odd:
        raise ValueError(
            f"Every column must hold numbers; could not convert {_first_few(odd)}. {instead}"
        )


def _check_lengths(X: Any) -> None:
    """Raise if a list of rows has rows of different lengths."""
    if isinstance(X, np.ndarray) or not all(isinstance(row, list | tuple) for row in X):
        return
    for number, row in enumerate(X):
        if len(row) != len(X[0]):
            raise ValueError(
                f"All rows must have the same number of entries; row 0 has {len(X[0])} and row "
                f"{number} has {len(row)}. Put NaN where an entry is missing."
            )


def _check_numeric_array(X: npt.NDArray[Any]) -> None:
    """Raise if an array holds records, times or complex numbers."""
    if X.dtype.names is not None:
        fields = _first_few([f"'{name}'" for name in X.dtype.names])
        raise ValueError(
            f"Every entry must be a number; got records with the fields {fields}. Pass a data "
            "frame, e.g. `pd.DataFrame.from_records(X)`, or an array of rows and columns."
        )
    if X.dtype.kind in "mM":
        raise ValueError(
            f"Every entry must be a number; got an array of {X.dtype}. Turn times into numbers, "
            "in a unit of your choice."
        )
    if X.dtype.kind == "O":
        try:
            X.astype(np.float64)
        except OverflowError:
            raise ValueError(
                "Every entry must be a number that a float can hold; one of these integers is too "
                "large. Divide its column by a number of its size."
            ) from None
        except (TypeError, ValueError):  # scikit-learn says what is wrong
            return
    if X.dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported; got an array of {X.dtype}. Pass real and imaginary "
            "parts as columns of their own, e.g. `np.hstack([X.real, X.imag])`."
        )


def _check_frame(columns: Any, dtypes: Any) -> None:
    """Raise if columns share a name, or if all leave out a value that is not 0."""
    twice = [f"'{name}'" for name, times in Counter(columns).items() if times > 1]
    if twice:
        raise ValueError(
            f"Column names must be unique; several columns are called {_first_few(twice)}. "
            "Rename them, or pass the numbers without names, e.g. `X.to_numpy()`."
        )
    # scikit-learn makes a sparse matrix of such a frame, and only zeros can be left out of that.
    left_out = [getattr(dtype, "fill_value", None) for dtype in dtypes]
    if None not in left_out and any(value != 0 for value in left_out):
        raise ValueError(
            "The fill value of sparse columns must be 0, and some of these have another one; pass "
            "`X.sparse.to_dense()`."
        )


def _first_few(words: list[str]) -> str:
    more = f" and {len(words) - 5} more" if len(words) > 5 else ""
    return ", ".join(words[:5]) + more


def _converts(column: Any) -> bool:
    """Say whether a column of objects holds numbers; strings that look like some will do."""
    try:
        np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


# What pandas and polars call columns that convert to floats; "object" may hold numbers, too.
_NUMERIC = re.compile(r"^(u?int|float|bool|double|decimal|object|null|sparse)")


def check_size(Y: FloatArray, q: int, n_rows: int) -> None:
    """Raise unless distinct rows Y (n, D), of n_rows given, allow a q-dimensional manifold."""
    n, D = Y.shape
    # Any q + 1 rows lie on a q-dimensional plane.
    least = max(3, q + 2)
    if q > D:
        raise ValueError(
            f"`n_components` = {q} is more than the {D} feature(s) of the data; choose at most {D}."
        )
    if n < least:
        copies = f" ({n} distinct row(s) among {n_rows} samples)" if n < n_rows else ""
        raise ValueError(
            f"A {q}-dimensional manifold needs at least {least} distinct rows; "
            f"got n_samples = {n}{copies}. Pass more rows or take fewer latent dimensions."
        )
    if np.all(np.nanmax(Y, axis=0) == np.nanmin(Y, axis=0)):
        raise ValueError(
            "No column of the data has two different observed values, so there is nothing to "
            f"embed. First values: {describe_values(Y)}."
        )


def describe_values(Y: FloatArray, limit: int = 6) -> str:
    """Return the first few observed values, for messages."""
    values = Y[~np.isnan(Y)].ravel()
    return np.array2string(values[:limit], precision=4, threshold=limit)

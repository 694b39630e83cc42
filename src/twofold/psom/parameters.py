"""What the parameters of the estimator mean, and what is wrong with them."""

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from twofold.array_types import FloatArray
from twofold.checks.parameters import check_count, check_progress
from twofold.checks.rows import RowError, check_missing
from twofold.process_settings import warn
from twofold.psom.annealing import get_schedule
from twofold.psom.grid import SPACINGS, Grid
from twofold.psom.interpolation import Windows
from twofold.psom.known_places import MOST_NODES_DENSE
from twofold.psom.unsupervised import check_init

# Lengths of axes: from which ratio on smoothing goes wrong, and what can be computed at all.
FAIR_RATIO, MOST_RATIO = 30.0, 1e6
SHORTEST, LONGEST = 1e-30, 1e30
# More than fits memory with any number of features.
MOST_NODES = 100_000_000
# Searches from one row; a second start already finds almost all that a first one misses.
MOST_STARTS = 1_000
# Beyond this many nodes a fit spends most of its time solving for them.
SLOW_NODES = 1500


# Nodes multiply with the axes: about this many in all, and enough for a bend on each axis.
USUAL_NODES, MOST_ON_AN_AXIS, LEAST_ON_AN_AXIS = 100, 10, 3


def usual_grid(n_axes: int) -> tuple[int, ...]:
    """Return how many nodes each of q axes has if nothing is asked for."""
    nodes = round(USUAL_NODES ** (1 / n_axes))
    return (min(max(nodes, LEAST_ON_AN_AXIS), MOST_ON_AN_AXIS),) * n_axes


def make_grid(model: Any, bounds: ArrayLike | None) -> Grid:
    """Return the grid that the parameters of a model ask for, on the given domain."""
    q, grid, nodes = model.n_components, model.grid, model.nodes
    if not isinstance(q, Integral) or isinstance(q, bool) or q < 1:
        hint = "" if isinstance(q, str) else f" The nodes on each axis are `grid={q!r}`."
        raise ValueError(
            f"`n_components` must be a number of latent dimensions, such as 2; got {q!r}.{hint}"
        )
    if not isinstance(nodes, str):
        axes = _listed(nodes)
        _check_agreement("nodes", len(axes), int(q))
        return Grid.through(axes, bounds)
    if nodes not in SPACINGS:
        raise ValueError(
            f"`nodes` must be one of {SPACINGS}, or a list of coordinates for each axis; "
            f"got {nodes!r}."
        )
    counts = _node_counts(grid, int(q))
    if math.prod(int(count) for count in counts) > MOST_NODES:
        raise ValueError(
            f"`grid` must have at most {MOST_NODES:,} nodes in all; got {grid!r}. A map that many "
            "rows support has far fewer."
        )
    return Grid.make(counts, nodes, bounds)


def _node_counts(grid: Any, q: int) -> Sequence[int]:
    """Return how many nodes each of q axes has."""
    if isinstance(grid, str) and grid == "auto":
        return usual_grid(q)
    counts = (int(grid),) * q if isinstance(grid, Integral) else grid
    try:
        are_counts = all(int(count) == count for count in counts)
    except (TypeError, ValueError):
        are_counts = False
    if not are_counts:
        raise ValueError(
            f'`grid` must be "auto" or the number of nodes on each axis, such as (10, 10); got '
            f"{grid!r}."
        )
    _check_agreement("grid", len(counts), q)
    return counts


def _check_agreement(name: str, n_axes: int, q: int) -> None:
    if n_axes != q:
        raise ValueError(
            f"`{name}` has {n_axes} axes and `n_components` is {q}; they must be the same."
        )


def _listed(nodes: Any) -> Sequence[ArrayLike]:
    """Return the node coordinates of each axis."""
    is_list = isinstance(nodes, Sequence) or (isinstance(nodes, np.ndarray) and nodes.ndim > 0)
    axes = list(nodes) if is_list else []
    if not axes or not all(np.ndim(axis) == 1 for axis in axes):
        raise ValueError(
            f"`nodes` must be one of {SPACINGS}, or a list with the coordinates of the nodes of "
            f"each axis, such as [[0, 1, 3], [0, 2]]; got {nodes!r}."
        )
    return axes


def make_unit_grid(model: Any) -> Grid:
    """Return the grid on [-1, 1]^q, given nodes shifted and stretched to it."""
    raw = make_grid(model, None)
    if isinstance(model.nodes, str):
        return raw
    scaled = [
        # The ends are hit exactly: a rounding error would put them outside of the domain.
        np.clip(2 * (axis - axis[0]) / (axis[-1] - axis[0]) - 1, -1, 1)
        for axis in raw.nodes
    ]
    return Grid.through(scaled)


def check_axes(grid: Grid, *, is_smoothed: bool) -> None:
    """Raise or warn if axes are of so different lengths that their roughness cannot be compared.

    The roughness weighs second derivatives by the fourth power of the ratio of two lengths.
    """
    lengths = grid.hi - grid.lo
    ratio = lengths.max() / lengths.min()
    numbers = " to ".join(f"{length:.3g}" for length in (lengths.min(), lengths.max()))
    advice = "bring places to comparable units, such as [-1, 1], before the fit."
    fits = lengths.min() >= SHORTEST and lengths.max() <= LONGEST
    if not fits or (is_smoothed and ratio > MOST_RATIO):
        raise ValueError(
            f"the axes of the domain are {numbers} long; their roughness cannot be computed in "
            f"common units: {advice}"
        )
    if is_smoothed and ratio > FAIR_RATIO:
        warn(
            f"the axes of the domain are {numbers} long. Roughness is measured in their units, so "
            f"the map is smoothed almost only along the shortest: {advice}"
        )


def enclose(X: Any, q: int) -> Any:
    """Return the borders (q, 2) of the box around places X (m, q)."""
    if X.shape[1] != q:
        raise ValueError(
            f"`X` must have one column for each of the {q} axes of the grid; got shape {X.shape}."
        )
    box = np.column_stack([X.min(axis=0), X.max(axis=0)])
    flat = np.flatnonzero(box[:, 0] == box[:, 1])
    if len(flat):
        raise ValueError(
            f"all places have the same coordinate on axis {flat[0]}; leave that axis out, or say "
            "by `bounds` how far it goes."
        )
    return box


def check_inside(X: FloatArray, grid: Grid) -> None:
    """Raise if places X (m, q) lie outside of the domain."""
    outside = np.flatnonzero(((grid.lo > X) | (grid.hi < X)).any(axis=1))
    if len(outside):
        raise RowError(
            f"{len(outside)} place(s) of `X` lie outside of `bounds`",
            int(outside[0]),
            "; widen the bounds, or leave these samples out.",
        )


def check_common(model: Any) -> None:
    """Raise unless the parameters that every way to fit reads can be used."""
    for name in ("n_starts", "max_iter"):
        check_count(name, getattr(model, name))
    if model.n_starts > MOST_STARTS:
        raise ValueError(
            f"`n_starts` must be at most {MOST_STARTS}, which is already more than helps; got "
            f"{model.n_starts}."
        )
    check_progress(model.verbose, model.callbacks)
    Windows.of(make_unit_grid(model), model.local)


def check_for_fit(model: Any) -> None:
    """Raise unless the parameters that learning without known places reads can be used."""
    check_common(model)
    refuse_local(model, "fit")
    get_schedule(model.smoothness)
    check_init(model.init)
    if model.bounds is not None:
        raise ValueError(
            "`fit` learns places on [-1, 1] along each axis; `bounds` are for `fit_grid` and "
            "`fit_scattered`. Leave them out."
        )


def refuse_local(model: Any, method: str) -> None:
    """Raise if a local map is asked for where node values are found by smoothing."""
    if model.local is not None:
        raise ValueError(
            f"`{method}` finds node values for the full map, which a local one would not follow; "
            "leave `local` out, or use `fit_grid`."
        )


def warn_of_size(grid: Grid, n_rows: int) -> None:
    """Warn of a grid that makes ``fit`` slow without need."""
    if max(SLOW_NODES, n_rows) < grid.size <= MOST_NODES_DENSE:
        warn(
            f"the grid has {grid.size} nodes for {n_rows} distinct rows, and the time of `fit` "
            "grows with the cube of their number; fewer nodes fit so few rows just as well."
        )


def check_searched(Y: FloatArray, component_weights: Any) -> None:
    """Raise if there is a row of Y (m, D) of which nothing is searched for."""
    check_missing(Y, columns=False)
    if component_weights is None:
        return
    weights = np.asarray(component_weights, dtype=np.float64)
    # Weights of a wrong shape are told of by the search itself.
    if weights.shape not in ((), Y.shape[1:], Y.shape):
        return
    rows = np.flatnonzero(~((weights > 0) & ~np.isnan(Y)).any(axis=1))
    if len(rows):
        raise RowError(
            f"{len(rows)} row(s) have nothing to search for",
            int(rows[0]),
            ": every entry is NaN or has `component_weights` 0. Give weight to an observed entry.",
        )

"""Single numbers about embeddings, maps and reconstructions.

Trustworthiness falls where latent neighbours are strangers in the data, continuity where neighbours
in the data are apart in the embedding (Venna and Kaski, 2001; formulas in
:mod:`twofold.metrics.co_ranking`). Neighbourhood hit asks labels instead: the mean share of a
point's k nearest latent neighbours that carry its own label (Paulovich et al., 2008).

With ``c_{i*}`` the prototype nearest to row i,

    E_Q = (1/n) Σ_i ||y_i - c_{i*}||²        (squared; or the mean of the distances themselves)
    E_T = (1/n) Σ_i 1[nearest and second nearest prototype are not adjacent on the map]

(Kramer, "Dimensionality Reduction with Unsupervised Nearest Neighbors", 2013, eqs. 4.37 and 4.38,
whose text says distance where the formula has its square; Kiviluoto, 1996, for E_T.)

Of reconstructed rows, over the observed entries of Y, with ``ȳ_d`` the mean of the observed entries
of column d,

    relative:  Σ (y_id - ŷ_id)² / Σ (y_id - ȳ_d)²       0 perfect, 1 no better than the mean
    absolute:  (1/n) Σ (y_id - ŷ_id)²                   the negative of the models' ``score``

The data space reconstruction error (DSRE) of Kramer (2013, eqs. 4.19, 5.4) compares each row with
the mean ``f(x_i)`` of the rows of its K nearest latent points. One name stands for four functions
of the residuals ``r_i = ||f(x_i) - y_i||``, none of which is the printed one:

=============  ==================  ========================
kind           value               book's tables
=============  ==================  ========================
"sum_norm"     Σ r_i               5.1-5.4, 6.1, 6.2
"fro_norm"     sqrt(Σ r_i²) / n    6.3, 7.1-7.3
"mean_norm"    Σ r_i / n           7.4
"squared"      Σ r_i²              the formulas
=============  ==================  ========================

In the tables each point is the first of its own K neighbours. Without it the error is an honest
one: the row itself is left out of what is to reproduce it.

Of latent points at the same distance, the one with the smaller first coordinate comes first, then
the second and so on, then the row that comes first: on a line, left before right.
"""

import math
from typing import Any, Literal, get_args

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import column_or_1d

from twofold.array_types import FloatArray, IntArray
from twofold.checks.rows import RowError
from twofold.compiled import compiled_in_order, square
from twofold.metrics.checks import check_neighbors, check_same_rows, checked_table
from twofold.metrics.co_ranking import coranking
from twofold.neighborhoods.nearest import insert_sorted

Kind = Literal["sum_norm", "fro_norm", "mean_norm", "squared"]


def trustworthiness(
    Y: Any, X: Any, n_neighbors: int = 5, *, sample: int | None = None, random_state: Any = None
) -> float:
    """Return how well neighbours in the embedding are neighbours in the data, 0 to 1.

    1 is best; random embeddings score about 0.5. Equal to scikit-learn's function of that name, in
    blocks instead of n × n arrays.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_features)
        Data.
    X : array-like of shape (n_samples, n_components)
        Embedding of the same rows.
    n_neighbors : int
        Less than half the number of points.
    sample, random_state
        As in :func:`twofold.metrics.coranking`, which has the standard error as well.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.metrics import trustworthiness
    >>> Y = np.arange(20.0)[:, None] ** 2
    >>> trustworthiness(Y, Y, n_neighbors=3)
    1.0
    """
    return _ranked_score("trustworthiness", Y, X, n_neighbors, sample, random_state)


def continuity(
    Y: Any, X: Any, n_neighbors: int = 5, *, sample: int | None = None, random_state: Any = None
) -> float:
    """Return how well neighbours in the data stay neighbours in the embedding, 0 to 1.

    :func:`trustworthiness` with data and embedding exchanged; same parameters and range.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.metrics import continuity
    >>> Y = np.random.default_rng(0).normal(size=(50, 3))
    >>> continuity(Y, 2 * Y)
    1.0
    """
    return _ranked_score("continuity", Y, X, n_neighbors, sample, random_state)


def _ranked_score(
    name: str, Y: Any, X: Any, n_neighbors: int, sample: int | None, random_state: Any
) -> float:
    Y = checked_table(Y, "Y", any_size=True)
    if len(Y) < 3:  # one neighbour would not be less than half
        raise ValueError(f"{name.capitalize()} needs at least 3 points; got {len(Y)}.")
    most = (len(Y) - 1) // 2
    n_neighbors = check_neighbors(n_neighbors, most, "`n_neighbors`, less than n_samples / 2")
    found = coranking(Y, X, n_neighbors_max=1, sample=sample, random_state=random_state)
    return float(getattr(found, name)(n_neighbors))


def neighborhood_hit(X: Any, labels: Any, n_neighbors: int = 5) -> float:
    """Return the mean share of a point's nearest neighbours that have its label; 1 is best.

    Labels without any relation to X give Σ p², p the shares of the labels.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_components)
        Embedding (or data, to know what there was to keep).
    labels : array-like of shape (n_samples,)
        A label for each row: numbers or text.
    n_neighbors : int
        Number of neighbours, the point itself not counted.

    Examples
    --------
    >>> from twofold.metrics import neighborhood_hit
    >>> neighborhood_hit([[0.0], [1.0], [9.0], [8.0]], ["a", "a", "b", "b"], n_neighbors=1)
    1.0
    """
    X = checked_table(X, "X")
    labels = column_or_1d(labels)
    if len(labels) != len(X):
        raise ValueError(
            f"`labels` must have one label for each of {len(X)} rows of `X`; got {len(labels)}."
        )
    if any(label is None or label != label for label in labels):
        raise ValueError(
            "`labels` has missing labels. Leave these rows out of `X` and `labels`, or give them "
            "a label of their own."
        )
    k = check_neighbors(n_neighbors, len(X) - 1, "`n_neighbors`, less than n_samples")
    codes = np.unique(labels, return_inverse=True)[1]
    neighbors = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(return_distance=False)
    return float((codes[neighbors] == codes[:, None]).mean())


def quantization_error(Y: Any, prototypes: Any, *, squared: bool = True) -> float:
    """Return the mean squared distance of rows to their nearest prototype.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_features)
        Data.
    prototypes : array-like of shape (n_prototypes, n_features)
        Codebook vectors, cluster centres, landmarks.
    squared : bool
        False: the mean of the distances themselves.

    Examples
    --------
    >>> from twofold.metrics import quantization_error
    >>> quantization_error([[0.0], [2.0], [9.0]], [[0.0], [10.0]])  # (0 + 4 + 1) / 3
    1.6666666666666667
    >>> quantization_error([[0.0], [2.0], [9.0]], [[0.0], [10.0]], squared=False)
    1.0
    """
    Y, prototypes = _checked_codebook(Y, prototypes)
    nearest = _nearest(Y, prototypes, 1)[:, 0]
    squares = ((Y - prototypes[nearest]) ** 2).sum(axis=1)
    return float(squares.mean() if squared else np.sqrt(squares).mean())


def topographic_error(
    Y: Any, prototypes: Any, positions: Any, *, reach: float | None = None
) -> float:
    """Return the share of rows whose two nearest prototypes are not adjacent on the map.

    Parameters
    ----------
    Y, prototypes
        Data and codebook vectors, as in :func:`quantization_error`.
    positions : tuple of ints or array-like of shape (n_prototypes, n_components)
        Where the prototypes lie on the map: their places, or the shape of a regular grid that they
        fill in C order.
    reach : float or None
        Prototypes are adjacent up to this distance on the map. None means the smallest distance of
        two of them: the four neighbours of a square grid, the six of a hexagonal one. On a grid of
        spacing 1 a reach of 1.5 counts diagonal neighbours, too. Give it where places are
        irregular.

    Examples
    --------
    >>> from twofold.metrics import topographic_error
    >>> line = [[0.0], [1.0], [2.0]]
    >>> topographic_error([[0.4], [1.4]], line, (3,))
    0.0
    >>> topographic_error([[0.4], [1.4]], line, [[0], [2], [1]])  # 0 and 1 are not adjacent
    0.5
    """
    Y, prototypes = _checked_codebook(Y, prototypes)
    if len(prototypes) < 2:
        raise ValueError("A topographic error needs at least 2 prototypes; got 1.")
    if isinstance(positions, tuple) and all(isinstance(size, int) for size in positions):
        # The shape of a grid stands for its nodes.
        nodes = np.array(list(np.ndindex(positions)), dtype=np.float64)
        places: FloatArray = nodes.reshape(math.prod(positions), len(positions))
    else:
        places = checked_table(positions, "positions")
    check_same_rows(prototypes, "prototypes", places, "positions")
    if reach is None:
        reach = float(pdist(places).min())
        if reach == 0:
            raise ValueError(
                "Two prototypes have the same position, so the smallest distance says nothing "
                "about the map. Give `reach`."
            )
    elif not 0 < reach < np.inf:
        raise ValueError(f"`reach` must be a positive distance on the map; got {reach!r}.")
    best = _nearest(Y, prototypes, 2)
    gaps = np.linalg.norm(places[best[:, 0]] - places[best[:, 1]], axis=1)
    # Places such as 0.1, 0.2, 0.3 are not equally far apart in the last digit.
    return float((gaps > reach * (1 + 1e-9)).mean())


def _checked_codebook(Y: Any, prototypes: Any) -> tuple[FloatArray, FloatArray]:
    Y, prototypes = checked_table(Y, "Y"), checked_table(prototypes, "prototypes")
    if Y.shape[1] != prototypes.shape[1]:
        raise ValueError(
            f"`prototypes` must have the {Y.shape[1]} columns of `Y`; got {prototypes.shape[1]}."
        )
    return Y, prototypes


def _nearest(Y: FloatArray, prototypes: FloatArray, k: int) -> IntArray:
    index = NearestNeighbors(n_neighbors=k).fit(prototypes)
    return np.asarray(index.kneighbors(Y, return_distance=False))


def reconstruction_error(Y: Any, Y_hat: Any, *, relative: bool = True) -> float:
    """Return the squared error of reconstructed rows, as a share of the variance.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_features)
        Data; missing entries (NaN) are left out.
    Y_hat : array-like of shape (n_samples, n_features)
        The same rows as a model gives them back.
    relative : bool
        False: the squared error of a row, mean over rows, in squared units of the data.

    Examples
    --------
    >>> from twofold.metrics import reconstruction_error
    >>> reconstruction_error([[0.0], [2.0], [4.0]], [[0.0], [2.0], [3.0]])  # 1 / (4 + 0 + 4)
    0.125
    """
    Y = checked_table(Y, "Y", allow_missing=True)
    Y_hat = checked_table(Y_hat, "Y_hat", allow_missing=True)
    if Y.shape != Y_hat.shape:
        raise ValueError(f"`Y_hat` must have the shape of `Y`, {Y.shape}; got {Y_hat.shape}.")
    seen = ~np.isnan(Y)
    if not seen.any():
        raise ValueError("`Y` has no observed entry, so there is nothing to compare.")
    if np.isnan(Y_hat[seen]).any():
        row = int(np.flatnonzero((np.isnan(Y_hat) & seen).any(axis=1))[0])
        raise RowError("`Y_hat` is missing where `Y` is observed", row, ".")
    error = float(((Y - Y_hat)[seen] ** 2).sum())
    if not relative:
        return error / len(Y)
    counts = np.maximum(seen.sum(axis=0), 1)
    means = np.where(seen, Y, 0.0).sum(axis=0) / counts
    variance = float(((Y - means)[seen] ** 2).sum())
    if variance == 0:
        raise ValueError(
            "No column of `Y` varies, so there is no variance to take a share of. "
            "Use relative=False."
        )
    return error / variance


def dsre(
    Y: Any, X: Any, n_neighbors: int = 5, *, kind: Kind = "sum_norm", include_self: bool = True
) -> float:
    """Return the data space reconstruction error of an embedding; 0 is best.

    Parameters
    ----------
    Y, X
        Data and embedding, as in :func:`trustworthiness`.
    n_neighbors : int
        K, the number of latent neighbours whose mean stands for a row.
    kind : {"sum_norm", "fro_norm", "mean_norm", "squared"}
        Which function of the residuals; see the table above.
    include_self : bool
        Whether a point is one of its own K neighbours, as in the book's tables.

    Examples
    --------
    >>> from twofold.metrics import dsre
    >>> Y = [[0.0], [1.0], [2.0], [3.0]]
    >>> dsre(Y, Y, n_neighbors=2)  # each row but the first is half a step from its mean
    2.0
    >>> dsre(Y, Y, n_neighbors=2, include_self=False)
    3.0
    """
    Y, X = checked_table(Y, "Y"), checked_table(X, "X")
    check_same_rows(Y, "Y", X, "X")
    if kind not in get_args(Kind):
        raise ValueError(
            f"`kind` must be 'sum_norm', 'fro_norm', 'mean_norm' or 'squared'; got {kind!r}."
        )
    why = "`n_neighbors`, no more than there are rows"
    k = check_neighbors(n_neighbors, len(Y) if include_self else len(Y) - 1, why)
    n_others = k - 1 if include_self else k
    # Ties go by index, and so to the smaller coordinate of points in this order.
    order = np.lexsort(X.T[::-1])  # stable: equal points by row
    Y, X = Y[order], np.ascontiguousarray(X[order])
    is_line = X.shape[1] == 1 and bool((np.diff(X[:, 0]) > 0).all())
    nearest = _neighbors_on_line(X[:, 0], n_others) if is_line else _neighbors(X, n_others)
    sums = Y.copy() if include_self else np.zeros_like(Y)
    for column in nearest.T:
        sums += Y[column]
    squares = ((sums / k - Y) ** 2).sum(axis=1)
    if kind == "squared":
        return float(squares.sum())
    if kind == "fro_norm":
        return math.sqrt(squares.sum()) / len(squares)
    return float(np.sqrt(squares).sum() if kind == "sum_norm" else np.sqrt(squares).mean())


@compiled_in_order
def _neighbors(X: FloatArray, k: int) -> IntArray:
    """Return the k nearest other points of each one, (n, k); ties by index."""
    n, q = X.shape
    nearest = np.zeros((n, k), dtype=np.intp)
    distances = np.empty(k)
    for i in range(n if k > 0 else 0):
        distances[:] = np.inf
        for j in range(n):
            gap = 0.0
            for a in range(q):
                gap += square(X[i, a] - X[j, a])
            if j != i and gap < distances[k - 1]:
                insert_sorted(distances, nearest[i], gap, j)
    return nearest


@compiled_in_order
def _neighbors_on_line(x: FloatArray, k: int) -> IntArray:
    """Return the k nearest other points of each one, (n, k), of rising points; ties left first."""
    n = len(x)
    nearest = np.empty((n, k), dtype=np.intp)
    for i in range(n):
        # Two fingers move outwards, and the nearer one is taken: no sorting.
        left, right = i - 1, i + 1
        for place in range(k):
            if right >= n or (left >= 0 and x[i] - x[left] <= x[right] - x[i]):
                nearest[i, place] = left
                left -= 1
            else:
                nearest[i, place] = right
                right += 1
    return nearest


def e_nx(
    Y: Any,
    X: Any,
    n_neighbors: int = 5,
    *,
    include_self: bool = True,
    sample: int | None = None,
    random_state: Any = None,
) -> float:
    """Return the share of the K nearest neighbours that the embedding keeps (Kramer 2013, 4.41).

    Parameters
    ----------
    Y, X, n_neighbors
        Data, embedding and K, as in :func:`dsre`.
    include_self : bool
        Whether a point is the first of its own K neighbours, as in the book's tables; without it
        the score is Q_NX of Lee and Verleysen (2009).
    sample, random_state
        As in :func:`twofold.metrics.coranking`, which has the curve over all K as well.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.metrics import e_nx
    >>> Y = np.random.default_rng(0).normal(size=(50, 3))
    >>> e_nx(Y, 2 * Y, 5)
    1.0
    """
    Y = checked_table(Y, "Y", any_size=True)
    why = "`n_neighbors`, no more than there are rows"
    k = check_neighbors(n_neighbors, len(Y) if include_self else len(Y) - 1, why)
    ranks = coranking(Y, X, n_neighbors_max=1, sample=sample, random_state=random_state)
    return float(ranks.e_nx(k) if include_self else ranks.q_nx(k))

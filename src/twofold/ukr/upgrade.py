"""Any embedding becomes a two-way model.

The picture is kept exactly as it is drawn: each row's latent point is its place in it. What is
found, by leave-one-out error, is only the bandwidth of the kernel regression that leads back:

- one for each dimension, or
- local: ``h_i = h r_i^a`` with ``r_i`` the distance to the k-th neighbour in the picture, relative
  to its median, so that dense regions get narrow kernels (Breiman, Meisel & Purcell 1977); ``h``
  and ``a`` (0 to 1) are found.
"""

from typing import Any

import numpy as np
from scipy import optimize, spatial
from sklearn.utils.validation import check_array

from twofold.array_types import FloatArray
from twofold.checks.parameters import check_choice
from twofold.checks.rows import (
    check_differences,
    check_entries,
    check_missing,
    check_numeric,
    check_size,
    checked_weights,
)
from twofold.engine import PreparedReferences
from twofold.regularization import Smoothest
from twofold.ukr.estimator import UKR
from twofold.ukr.objective import MOST_SCALED_ROWS, Problem, spread_rows

LOCAL_NEIGHBORS = 10
# Where the search for (log h, a) begins: at (0, 0), where all widths are equal, so that local
# widths never do worse, and again from where widths follow the density closely.
SIMPLEXES = (((0.0, 0.0), (0.5, 0.0), (0.0, 0.4)), ((0.0, 0.7), (-0.5, 0.7), (0.0, 1.0)))
INSTEAD = (
    "A picture of a table of categories and dates becomes a model, with the way back to such "
    "tables, by `Mixed(UKR(init=picture, max_iter=0)).fit(table)`."
)


def upgrade(
    embedding: Any,
    Y: Any,
    *,
    sample_weight: Any = None,
    bandwidth: str = "per_dimension",
    refine: bool = False,
    **parameters: Any,
) -> UKR:
    """Turn an embedding of Y into a fitted model that goes both ways.

    Parameters
    ----------
    embedding : array-like of shape (n_samples, n_components)
        Where each row of Y is drawn: t-SNE, UMAP, PaCMAP, a map made by hand.
    Y : array-like of shape (n_samples, n_features)
        The data; NaN marks missing entries.
    sample_weight : array-like of shape (n_samples,), default=None
        How much each row counts.
    bandwidth : {"per_dimension", "local"}, default="per_dimension"
        What the leave-one-out error decides: one bandwidth per dimension, or one per point.
    refine : bool, default=False
        Also move the latent points, starting from the picture.
    **parameters
        Further parameters of :class:`twofold.UKR`, e.g. ``kernel``.

    Returns
    -------
    UKR
        Fitted; without ``refine`` its ``embedding_`` is the picture, to the last bit, and
        ``transform`` gives each row its place in it. Equal rows that are drawn in different places
        cannot be told apart: ``transform`` gives them the first of these places.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.manifold import TSNE
    >>> from twofold import upgrade
    >>> Y = load_iris().data
    >>> picture = TSNE(random_state=0).fit_transform(Y)
    >>> model = upgrade(picture, Y)
    >>> model.inverse_transform(picture[:1]).shape
    (1, 4)
    """
    check_choice("bandwidth", bandwidth, ("per_dimension", "local"))
    if refine and bandwidth == "local":
        raise ValueError("refine=True moves points under one bandwidth; use 'per_dimension'.")
    # What the picture itself decides; without `refine` it does not move at all.
    decided = {"init", "n_components", "landmarks", "data_kernel"}
    decided |= set() if refine else {"max_iter"}
    reserved = sorted(decided & set(parameters))
    if reserved:
        raise TypeError(f"{', '.join(reserved)}: the picture decides that; leave it out.")
    check_numeric(Y, INSTEAD)
    X = _checked_picture(embedding, Y)
    if refine:
        return UKR(X.shape[1], init=X, **parameters).fit(Y, sample_weight=sample_weight)
    model = UKR(X.shape[1], init=X, max_iter=0, **parameters)
    model._check_parameters()
    if model.regularization == "smoothest" or isinstance(model.regularization, Smoothest):
        raise TypeError("regularization='smoothest' moves latent points; that needs refine=True.")
    if getattr(model.loss, "trim", None) is not None:
        raise TypeError("`trim` fits again without some rows; a picture keeps all. Leave it out.")
    data = model._validate(Y, reset=True)
    weights = checked_weights(sample_weight, data)
    if not (weights > 0).all():
        raise ValueError("Every row of a picture needs a positive `sample_weight`.")
    check_missing(data, getattr(model, "feature_names_in_", None))
    check_size(data, X.shape[1], len(data))
    # In the wider of the two types, so that neither picture nor data loses a digit.
    with model._changing():
        model._adopt(data.astype(np.result_type(data, X)), weights, X, bandwidth)
        model._keep_names(Y)
    return model


def _checked_picture(embedding: Any, Y: Any) -> FloatArray:
    if hasattr(embedding, "fit") or np.ndim(embedding) == 0:
        is_text = isinstance(embedding, str)
        given = repr(embedding) if is_text else f"an object of type {type(embedding).__name__}"
        raise TypeError(
            "`embedding` must be an (n, q) array of places, one for each row of Y; got "
            f"{given}. Let a method draw the rows first, e.g. "
            "`upgrade(TSNE().fit_transform(Y), Y)`."
        )
    X: FloatArray = check_array(
        embedding, dtype=[np.float64, np.float32], input_name="embedding", ensure_min_samples=3
    )
    check_entries(X)
    # A list of numbers counts as one column here; the check of Y itself says more.
    n_rows, n_features = (*np.shape(Y), 1)[:2]
    if n_rows != len(X):
        raise ValueError(
            f"The embedding has {len(X)} rows and Y has {n_rows}; each row of Y needs its place."
        )
    if X.shape[1] > n_features:
        raise ValueError(
            f"The embedding has {X.shape[1]} columns and Y only {n_features}: the call is "
            "upgrade(embedding, Y), the picture first."
        )
    if np.all(np.ptp(X, axis=0) == 0):
        raise ValueError("The embedding puts every row in the same place.")
    check_differences(X, what="Points of the embedding")
    return X


def fit_local_widths(problem: Problem, X: FloatArray) -> tuple[FloatArray, float]:
    """Return a width for each latent point (n,) and the leave-one-out error with them."""
    spread = _neighbor_spread(X)
    error = problem.reconstruction(cross_validated=True)
    rows = spread_rows(len(X), MOST_SCALED_ROWS)

    def widths(log_width: float, power: float) -> FloatArray:
        return np.exp(log_width) * spread ** np.clip(power, 0, 1)

    def loss(parameters: FloatArray) -> float:
        prepared = PreparedReferences(
            problem.engine, X, problem.rows.V, widths(parameters[0], parameters[1])
        )
        return error.value_of_sums(prepared.at(X[rows], hidden=rows).values, rows)

    best = min(
        (
            optimize.minimize(
                loss,
                simplex[0],
                method="Nelder-Mead",
                bounds=[(-3, 3), (0, 1)],
                options={
                    "initial_simplex": simplex,
                    "maxfev": 40,
                    "xatol": 0.02,
                    "fatol": 1e-4 * problem.spread(),
                },
            )
            for simplex in SIMPLEXES
        ),
        key=lambda found: float(found.fun),
    )
    return widths(best.x[0], best.x[1]).astype(X.dtype), float(best.fun)


def _neighbor_spread(X: FloatArray) -> FloatArray:
    """Return the distance to a near neighbour of each latent point, relative to the median."""
    k = min(LOCAL_NEIGHBORS, len(X) - 1)
    distance = spatial.cKDTree(X).query(X, k=k + 1)[0][:, -1]
    typical = np.median(distance[distance > 0]) if (distance > 0).any() else 1.0
    # Points drawn on top of each other still need a width.
    return np.asarray(np.clip(distance / typical, 0.05, 20.0))

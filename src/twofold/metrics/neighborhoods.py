"""Single numbers about neighbourhoods of one size.

Trustworthiness falls where latent neighbours are strangers in the data, continuity where neighbours
in the data are apart in the embedding (Venna and Kaski, 2001; formulas in
:mod:`twofold.metrics.curves`). Neighbourhood hit asks labels instead: the mean share of a point's k
nearest latent neighbours that carry its own label (Paulovich et al., 2008).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import column_or_1d

from twofold.metrics.checks import check_neighbors, checked_table
from twofold.metrics.co_ranking import coranking

# Of fewer points one neighbour is not less than half.
FEWEST_ROWS = 3


def trustworthiness(
    Y: Any, X: Any, n_neighbors: int = 5, *, sample: int | None = None, random_state: Any = None
) -> float:
    """Return how far latent neighbours can be believed to be neighbours in the data.

    Equal to scikit-learn's function of that name, in blocks instead of n × n arrays.

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

    Returns
    -------
    float
        Within [0, 1], 1 is best. Random embeddings score about 0.5.

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
    """Return how far neighbours in the data are still neighbours in the embedding.

    :func:`trustworthiness` with data and embedding exchanged; same parameters and range.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_features)
        Data.
    X : array-like of shape (n_samples, n_components)
        Embedding of the same rows.
    n_neighbors : int
        Less than half the number of points.
    sample, random_state
        As in :func:`twofold.metrics.coranking`.

    Returns
    -------
    float
    """
    return _ranked_score("continuity", Y, X, n_neighbors, sample, random_state)


def _ranked_score(
    name: str, Y: Any, X: Any, n_neighbors: int, sample: int | None, random_state: Any
) -> float:
    Y = checked_table(Y, "Y", any_size=True)
    if len(Y) < FEWEST_ROWS:
        raise ValueError(f"{name.capitalize()} needs at least {FEWEST_ROWS} points; got {len(Y)}.")
    most = (len(Y) - 1) // 2
    n_neighbors = check_neighbors(n_neighbors, most, "`n_neighbors`, less than n_samples / 2")
    found = coranking(Y, X, n_neighbors_max=1, sample=sample, random_state=random_state)
    return float(getattr(found, name)(n_neighbors))


def neighborhood_hit(X: Any, labels: Any, n_neighbors: int = 5) -> float:
    """Return the mean share of a point's nearest neighbours that have its label.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_components)
        Embedding (or data, to know what there was to keep).
    labels : array-like of shape (n_samples,)
        A label for each row: numbers or text.
    n_neighbors : int
        Number of neighbours, the point itself not counted.

    Returns
    -------
    float
        1 is best; labels without any relation to X give Σ p², p the shares of the labels.

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

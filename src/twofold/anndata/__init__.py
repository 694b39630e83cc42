"""Maps of single cells: models fitted to AnnData objects, and back from the map to genes.

A model learns from a representation of the cells, usually their principal components. Its places
are kept where scanpy looks for an embedding: ``sc.pl.embedding(adata, "ukr")`` draws them.
Genes come back in one of two ways. *Through the loadings* P (genes, k) and the mean μ of the
principal components, from what the model generates:

    y(x) = μ + P f(x)

*Over the cells*, as the kernel regression of expression on the places x_i of the cells, with the
weights of the model itself:

    y(x) = Σ_i w_i(x) y_i,    w_i(x) = F(s_i) / Σ_j F(s_j),    s_i = ||(x - x_i) / h||²

The second knows every gene, also those that the components leave out, and any layer. Labels are
carried over in the same way: a kernel regression of the indicator of a label is its probability.
AnnData is imported at first use.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from twofold.anndata.cells import (
    NotThereError,
    check_known,
    chosen_genes,
    expression,
    generated,
    query_rows,
    representation,
)
from twofold.anndata.smoothing import Smoother
from twofold.array_types import FloatArray
from twofold.checks.parameters import check_count
from twofold.contract import TwoWayModel
from twofold.loading import load
from twofold.ukr import UKR

__all__ = ["fit", "genes", "markers_along", "model_of", "path", "place"]
__dir__ = __all__.copy  # numpy and the like are not ours to show


def fit(
    adata: Any,
    model: TwoWayModel | None = None,
    *,
    use_rep: str = "X_pca",
    layer: str | None = None,
    key_added: str = "ukr",
    path: str | os.PathLike[str] | None = None,
) -> TwoWayModel:
    """Fit a model to cells and keep their places in ``adata.obsm["X_ukr"]``.

    Parameters
    ----------
    adata : AnnData
        Changed in place: ``.obsm[f"X_{key_added}"]`` holds the places, ``.uns[key_added]`` how they
        were made, and the model.
    model : TwoWayModel, default=None
        Fitted as a clone. None means ``UKR(random_state=0)``.
    use_rep : str, default="X_pca"
        What the model learns from: a key of ``.obsm``, or "X" for the expression itself.
    layer : str, default=None
        With ``use_rep="X"``, the layer to take instead of ``.X``.
    key_added : str, default="ukr"
        The name of the map.
    path : str or path, default=None
        The file to keep the model in; ``.uns`` then holds its name. None keeps the model itself in
        ``.uns``, as the bytes of such a file, so that it goes wherever the AnnData object goes.

    Returns
    -------
    model : TwoWayModel
        The fitted model, which :func:`model_of` returns as well.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import twofold.anndata
    >>> cells = anndata.AnnData(np.random.default_rng(0).normal(size=(40, 5)))
    >>> model = twofold.anndata.fit(cells, use_rep="X")
    >>> cells.obsm["X_ukr"].shape
    (40, 2)
    """
    if f"X_{key_added}" == use_rep:
        raise ValueError(
            f"The places would take the place of what they are made from: with "
            f"key_added={key_added!r} both are `.obsm[{use_rep!r}]`. Give the map another name."
        )
    Y = representation(adata, use_rep, layer)
    fitted = clone(UKR(random_state=0) if model is None else model).fit(Y)
    params = {
        "use_rep": use_rep,
        "method": type(fitted).__name__,
        "n_components": int(fitted.embedding_.shape[1]),
    }
    if layer is not None:
        params["layer"] = layer
    kept: dict[str, Any] = {"params": params}
    if path is None:
        kept["model"] = _as_bytes(fitted)
    else:
        fitted.save(path)
        kept["model_file"] = os.fspath(path)
    adata.obsm[f"X_{key_added}"] = np.asarray(fitted.embedding_)
    adata.uns[key_added] = kept
    return fitted


def model_of(adata: Any, key: str = "ukr") -> TwoWayModel:
    """Return the fitted model of a map that :func:`fit` has left in an AnnData object.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import twofold.anndata
    >>> cells = anndata.AnnData(np.random.default_rng(0).normal(size=(40, 5)))
    >>> _ = twofold.anndata.fit(cells, use_rep="X")
    >>> type(twofold.anndata.model_of(cells)).__name__
    'UKR'
    """
    kept = _kept(adata, key)
    if "model_file" in kept:
        file = Path(str(kept["model_file"]))
        if not file.exists():
            raise FileNotFoundError(
                f"The model of the map {key!r} is kept in '{file}', which is not there. Put the "
                f"file back, or set `adata.uns[{key!r}]['model_file']` to where it is now."
            )
        return load(file)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.twofold"
        file.write_bytes(np.asarray(kept["model"], dtype=np.uint8).tobytes())
        return load(file)


def place(
    query: Any, reference: Any, *, key: str = "ukr", obs: str | Iterable[str] = ()
) -> TwoWayModel:
    """Place new cells on the map of a reference, and carry labels over.

    Components of the new cells are computed with the loadings and the mean of the reference, so
    expression must have been normalised (and scaled) as the reference was.

    Parameters
    ----------
    query : AnnData
        Changed in place: ``.obsm[f"X_{key}"]`` holds the places, and ``.obs[f"{key}_p_value"]`` the
        share of reference cells that are at most as likely under the model. Only what the
        representation keeps of a cell is judged. The p-values are written for models with a noise
        model, such as UKR.
    reference : AnnData
        That :func:`fit` has been called with. For a representation other than "X" and "X_pca"
        ``query.obsm`` must hold it, made in the same way.
    key : str, default="ukr"
        The name of the map.
    obs : str or iterable of str, default=()
        Columns of ``reference.obs`` to carry over: the most likely level of each, by its share
        among the reference cells around the place, which ``.obs[f"{column}_probability"]`` holds.
        Where none of these cells has a label, neither has the new one.

    Returns
    -------
    model : TwoWayModel
        The model of the reference.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import twofold.anndata
    >>> cells = anndata.AnnData(np.random.default_rng(0).normal(size=(40, 5)))
    >>> _ = twofold.anndata.fit(cells, use_rep="X")
    >>> new = anndata.AnnData(np.random.default_rng(1).normal(size=(3, 5)))
    >>> _ = twofold.anndata.place(new, cells)
    >>> new.obsm["X_ukr"].shape
    (3, 2)
    """
    columns = [obs] if isinstance(obs, str) else list(obs)
    for name in columns:
        check_known(name, reference.obs.columns, "`reference.obs`", "column")
        if reference.obs[name].isna().all():
            raise ValueError(f"No cell of `reference` has a label in the column {name!r}.")
    model = model_of(reference, key)
    Y = query_rows(query, reference, _kept(reference, key)["params"])
    X = model.transform(Y)
    query.obsm[f"X_{key}"] = X
    if model._has_noise():
        query.obs[f"{key}_p_value"] = model.p_values(Y)
    smoother = Smoother(model, reference.obsm[f"X_{key}"])
    for name in columns:
        levels = reference.obs[name].astype("category")
        indicators = pd.get_dummies(levels).to_numpy(dtype=np.float64)
        P = smoother.means(X, indicators)
        # Where no cell around has a label, there is none to carry over.
        codes = np.where(P.max(axis=1) > 0, P.argmax(axis=1), -1)
        found = pd.Categorical.from_codes(codes, dtype=levels.dtype)
        query.obs[name] = found
        query.obs[f"{name}_probability"] = P.max(axis=1)
        if f"{name}_colors" in reference.uns:
            query.uns[f"{name}_colors"] = reference.uns[f"{name}_colors"]
    return model


def genes(
    adata: Any,
    places: Any,
    names: Iterable[str] | None = None,
    *,
    key: str = "ukr",
    through: str = "cells",
    layer: str | None = None,
    use_raw: bool = False,
) -> pd.DataFrame:
    """Return the expression that belongs to places on the map.

    Parameters
    ----------
    adata : AnnData
        That :func:`fit` has been called with.
    places : array-like of shape (n_places, n_components)
    names : iterable of str, default=None
        The genes; None means all.
    key : str, default="ukr"
        The name of the map.
    through : {"cells", "loadings"}, default="cells"
        The way back to genes: the mean of the cells around a place, weighted as in the model, for
        any gene and layer; or what the model generates, carried through the loadings of the
        principal components if it was fitted to these.
    layer : str, default=None
        The layer that expression is taken from, by default ``.X``.
    use_raw : bool, default=False
        Whether to take it from ``.raw``.

    Returns
    -------
    found : DataFrame of shape (n_places, n_genes)

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import twofold.anndata
    >>> cells = anndata.AnnData(np.random.default_rng(0).normal(size=(40, 5)))
    >>> _ = twofold.anndata.fit(cells, use_rep="X")
    >>> twofold.anndata.genes(cells, cells.obsm["X_ukr"][:2]).shape
    (2, 5)
    """
    model = model_of(adata, key)
    X = model._validate_latent(places)
    if through == "loadings":
        if layer is not None or use_raw:
            raise ValueError("Loadings lead back to what they were made from; leave `layer` out.")
        found = generated(adata, model, _kept(adata, key)["params"], X)
        chosen = chosen_genes(adata.var_names, names)
        return pd.DataFrame(found[:, chosen], columns=adata.var_names[chosen])
    if through != "cells":
        raise ValueError(f'`through` must be "cells" or "loadings"; got {through!r}.')
    matrix, known = expression(adata, layer, use_raw)
    chosen = chosen_genes(known, names)
    smoother = Smoother(model, adata.obsm[f"X_{key}"])
    return pd.DataFrame(smoother.means(X, matrix[:, chosen]), columns=known[chosen])


def path(adata: Any, waypoints: Sequence[Any], *, steps: int = 50, key: str = "ukr") -> FloatArray:
    """Return places (steps, n_components) along straight lines from one waypoint to the next.

    Steps are equally long. Waypoints are names of cells, or places on the map; the model's
    ``in_domain`` says where cells support the way, and more waypoints lead it around a gap.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import twofold.anndata
    >>> cells = anndata.AnnData(np.random.default_rng(0).normal(size=(40, 5)))
    >>> _ = twofold.anndata.fit(cells, use_rep="X")
    >>> twofold.anndata.path(cells, ["0", "7"], steps=5).shape
    (5, 2)
    """
    check_count("steps", steps, 2)
    corners = np.array([_waypoint(adata, point, key) for point in waypoints])
    lengths = np.linalg.norm(np.diff(corners, axis=0), axis=1) if len(corners) > 1 else np.zeros(1)
    if not lengths.sum() > 0:
        raise ValueError("A path needs at least two waypoints at different places.")
    at = np.concatenate([[0], np.cumsum(lengths)])
    t = np.linspace(0, at[-1], steps)
    return np.column_stack([np.interp(t, at, axis) for axis in corners.T])


def markers_along(
    adata: Any,
    waypoints: Sequence[Any],
    *,
    steps: int = 50,
    key: str = "ukr",
    names: Iterable[str] | None = None,
    layer: str | None = None,
    use_raw: bool = False,
) -> pd.DataFrame:
    """Return genes by how much they change along a path over the map.

    The change of a gene is the difference between its highest and its lowest mean on the way. It is
    divided by its standard error, so that a gene known from few cells does not come first by
    chance. Because the highest and the lowest place are chosen, use it for sorting, not as a test.

    Parameters
    ----------
    waypoints, steps :
        As in :func:`path`.
    adata, key, names, layer, use_raw :
        As in :func:`genes`.

    Returns
    -------
    markers : DataFrame
        Genes as the index, the most certain change first: ``change``; ``z``, the change in
        standard errors; ``start`` and ``end``, the means at both ends; ``highest`` and ``lowest``,
        the share of the way at which these are; ``trend``, the correlation with the way gone,
        1 for genes that rise steadily.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import twofold.anndata
    >>> cells = anndata.AnnData(np.random.default_rng(0).normal(size=(40, 5)))
    >>> _ = twofold.anndata.fit(cells, use_rep="X")
    >>> found = twofold.anndata.markers_along(cells, ["0", "7"], steps=20)
    >>> len(found)
    5
    """
    way = path(adata, waypoints, steps=steps, key=key)
    model = model_of(adata, key)
    matrix, known = expression(adata, layer, use_raw)
    chosen = chosen_genes(known, names)
    matrix = matrix[:, chosen]
    smoother = Smoother(model, adata.obsm[f"X_{key}"])
    courses, errors = smoother.means(way, matrix), smoother.standard_errors(way, matrix)
    highest, lowest = courses.argmax(axis=0), courses.argmin(axis=0)
    columns = np.arange(len(chosen))
    change = courses[highest, columns] - courses[lowest, columns]
    error = np.hypot(errors[highest, columns], errors[lowest, columns])
    t = np.linspace(0, 1, steps)
    found = pd.DataFrame(
        {
            "change": change,
            "z": np.divide(change, error, out=np.zeros_like(change), where=error > 0),
            "start": courses[0],
            "end": courses[-1],
            "highest": t[highest],
            "lowest": t[lowest],
            "trend": _correlations(t, courses),
        },
        index=pd.Index(known[chosen], name="gene"),
    )
    return found.sort_values("z", ascending=False, kind="stable")


def _as_bytes(model: TwoWayModel) -> Any:
    """Return the bytes of the model's file as an array, which h5ad files can hold."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.twofold"
        model.save(file)
        return np.frombuffer(file.read_bytes(), dtype=np.uint8)


def _kept(adata: Any, key: str) -> Any:
    """Return what `fit` has left in ``.uns``."""
    kept = adata.uns.get(key)
    if not isinstance(kept, dict) or not {"model", "model_file"} & set(kept):
        raise NotThereError(
            f"There is no model of a map {key!r} in this AnnData object; call "
            f"twofold.anndata.fit(adata, key_added={key!r}) first."
        )
    return kept


def _waypoint(adata: Any, point: Any, key: str) -> FloatArray:
    """Return the place (q,) of a cell's name, or the place given."""
    places = np.asarray(adata.obsm[f"X_{key}"], dtype=np.float64)
    if isinstance(point, str):
        check_known(point, adata.obs_names, "`adata`", "cell")
        same = np.flatnonzero(adata.obs_names == point)
        if len(same) > 1:
            raise ValueError(f"{len(same)} cells are called {point!r}; give the place of one.")
        return places[same[0]]
    given = np.asarray(point, dtype=np.float64)
    if given.shape != (places.shape[1],) or not np.isfinite(given).all():
        raise ValueError(
            f"A waypoint is the name of a cell or a place of {places.shape[1]} numbers; got "
            f"{point!r}."
        )
    return given


def _correlations(t: FloatArray, courses: FloatArray) -> FloatArray:
    """Return the correlation (c,) of each course (m, c) with the way gone, 0 for flat ones."""
    T, C = t - t.mean(), courses - courses.mean(axis=0)
    norm = np.sqrt((T**2).sum() * (C**2).sum(axis=0))
    return np.divide(T @ C, norm, out=np.zeros(C.shape[1]), where=norm > 0)

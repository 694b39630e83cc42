"""What AnnData objects hold of cells: expression, representations, the loadings between them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from twofold.array_types import FloatArray
from twofold.contract import TwoWayModel
from twofold.tables.table import close_names

# Where the loadings of a representation are kept.
_LOADINGS = {"X_pca": "PCs"}
# How far recomputed components may differ from the stored ones, in standard deviations.
_MOST_OFF = 0.01
# Share of the squared loadings that genes missing from query cells may have.
_MOST_MISSING = 0.1
_CELLS_TO_CHECK = 200


class NotThereError(KeyError):
    """What an AnnData object lacks; key errors show their message in quotes, with escapes."""

    def __str__(self) -> str:
        return str(self.args[0])


def check_known(name: str, known: Iterable[str], where: str, what: str) -> None:
    """Raise if a name is unknown, with those that are close."""
    if name not in known:
        close = close_names(str(name), map(str, known))
        hint = f" Did you mean {close}?" if close else ""
        raise NotThereError(f"{where} has no {what} {name!r}.{hint}")


def _check_unique(genes: pd.Index, where: str) -> None:
    """Raise if genes are to be found by names that some of them share."""
    if not genes.is_unique:
        first = genes[genes.duplicated()][0]
        raise ValueError(
            f"{where} has more than one gene {first!r}; `adata.var_names_make_unique()` gives each "
            "a name of its own."
        )


def representation(adata: Any, use_rep: str, layer: str | None) -> FloatArray:
    """Return the rows (n, D) that a model learns from."""
    if use_rep == "X":
        return _dense(expression(adata, layer, False)[0])
    if layer is not None:
        raise ValueError(f'`layer` is for `use_rep="X"`; got use_rep={use_rep!r}.')
    if use_rep not in adata.obsm:
        hint = " Compute it with scanpy.pp.pca(adata)." if use_rep == "X_pca" else ""
        raise NotThereError(
            f'`adata.obsm` has no {use_rep!r}; it has {list(adata.obsm)}.{hint} use_rep="X" takes '
            "the expression itself."
        )
    return _dense(_in_memory(adata.obsm[use_rep]))


def expression(adata: Any, layer: str | None, use_raw: bool) -> tuple[Any, pd.Index]:
    """Return a matrix of cells and genes, dense or sparse, and the names of its genes."""
    if use_raw:
        if layer is not None or adata.raw is None:
            raise ValueError(
                "`use_raw` takes `.raw`, which this AnnData object lacks; leave it out."
                if adata.raw is None
                else "Give either `layer` or `use_raw`."
            )
        return _in_memory(adata.raw.X), adata.raw.var_names
    if layer is not None:
        check_known(layer, adata.layers, "`adata.layers`", "layer")
        return _in_memory(adata.layers[layer]), adata.var_names
    if adata.X is None:
        raise ValueError("`adata.X` is empty; name a `layer`.")
    return _in_memory(adata.X), adata.var_names


def _in_memory(matrix: Any) -> Any:
    """Return a matrix that may lie in a file as an array or a sparse matrix."""
    if hasattr(matrix, "to_memory"):
        return matrix.to_memory()
    return matrix if hasattr(matrix, "toarray") else np.asarray(matrix)


def _dense(matrix: Any) -> FloatArray:
    dense = matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)
    return dense if dense.dtype in (np.float32, np.float64) else dense.astype(np.float64)


def query_rows(query: Any, reference: Any, params: Any) -> FloatArray:
    """Return rows of new cells as the model of the reference knows them."""
    use_rep = str(params["use_rep"])
    layer = params.get("layer")
    if use_rep == "X" or use_rep in _LOADINGS:
        _check_unique(reference.var_names, "`reference`")
        _check_unique(query.var_names, "`query`")
    if use_rep == "X":
        names = reference.var_names
        if missing := [name for name in names if name not in query.var_names]:
            raise NotThereError(
                f"The query cells lack {len(missing):,} of the {len(names):,} genes of the model: "
                f"{', '.join(missing[:5])}."
            )
        return _dense(expression(query[:, names], layer, False)[0])
    if use_rep not in _LOADINGS:
        return representation(query, use_rep, None)
    mean, loadings = _checked_loadings(reference, use_rep)
    return _components(query, reference.var_names, mean, loadings)


def _components(query: Any, names: pd.Index, mean: FloatArray, loadings: FloatArray) -> FloatArray:
    """Return the components of new cells, by loadings of genes that are found by their names."""
    share = (loadings**2).sum(axis=1) / (loadings**2).sum()
    at = query.var_names.get_indexer(names)
    needed, known = share > 0, at >= 0
    lacking = float(share[~known].sum())
    if lacking > _MOST_MISSING:
        raise NotThereError(
            f"The query cells lack {int((needed & ~known).sum()):,} of the {int(needed.sum()):,} "
            f"genes of the components, with {lacking:.0%} of their loadings; at most "
            f"{_MOST_MISSING:.0%} may be missing."
        )
    if lacking > 0:
        warnings.warn(
            f"{int((needed & ~known).sum()):,} genes of the components are missing from the query "
            f"cells and count as average there; they have {lacking:.1%} of the loadings.",
            UserWarning,
            stacklevel=4,
        )
    used = needed & known
    matrix = expression(query, None, False)[0][:, at[used]]
    return np.asarray(matrix @ loadings[used] - mean[used] @ loadings[used])


def _checked_loadings(adata: Any, use_rep: str) -> tuple[FloatArray, FloatArray]:
    """Return mean (genes,) and loadings (genes, k), having found that the components follow."""
    stored = adata.varm.get(_LOADINGS[use_rep])
    Z = np.asarray(adata.obsm[use_rep], dtype=np.float64)
    if stored is None or np.shape(stored)[1] < Z.shape[1] or not np.isfinite(stored).all():
        raise ValueError(
            f"The way between genes and {use_rep!r} needs loadings in `adata.varm` under "
            f"{_LOADINGS[use_rep]!r}, {Z.shape[1]} columns of numbers; there are none. Compute "
            "both with scanpy.pp.pca(adata) and fit again."
        )
    loadings = np.asarray(stored, dtype=np.float64)[:, : Z.shape[1]]
    matrix = expression(adata, None, False)[0]
    mean = np.asarray(matrix.mean(axis=0), dtype=np.float64).ravel()
    some = slice(0, _CELLS_TO_CHECK)
    # Components may have been centred by the mean of more cells than these: the same for all.
    shifts = matrix[some] @ loadings - Z[some]
    centre = shifts.mean(axis=0)
    mean += np.linalg.lstsq(loadings.T, centre - mean @ loadings, rcond=None)[0]
    off = np.abs(shifts - centre).max() / Z.std()
    if not off <= _MOST_OFF:
        raise ValueError(
            f"`adata.X` is not what {use_rep!r} was computed from: recomputed components are "
            f"off by {off:.2g} standard deviations. Put the matrix of the components back into "
            "`.X`, or compute them again with scanpy.pp.pca(adata) and fit again."
        )
    return mean, loadings


def generated(adata: Any, model: TwoWayModel, params: Any, X: FloatArray) -> FloatArray:
    """Return genes (m, genes) that the model generates, through loadings if it has components."""
    use_rep = str(params["use_rep"])
    if use_rep == "X":
        return np.asarray(model.inverse_transform(X))
    if use_rep not in _LOADINGS:
        raise ValueError(
            f'There are no loadings that lead from {use_rep!r} to genes; take through="cells".'
        )
    mean, loadings = _checked_loadings(adata, use_rep)
    return mean + np.asarray(model.inverse_transform(X), dtype=np.float64) @ loadings.T


def chosen_genes(known: pd.Index, names: Iterable[str] | None) -> Any:
    """Return the numbers of genes by their names."""
    if names is None:
        return np.arange(len(known))
    wanted = [names] if isinstance(names, str) else list(names)
    _check_unique(known, "The matrix")
    for name in wanted:
        check_known(name, known, "The matrix", "gene")
    return known.get_indexer(wanted)

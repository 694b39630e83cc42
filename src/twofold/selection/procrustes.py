"""Whitening, and the distance of two embeddings up to rotation, reflection, shift and scale.

With centred columns and the covariance ``C = XᵀX / n = V Λ Vᵀ`` the whitened embedding is
``X_w = X V Λ^(-1/2)``. The Procrustes distance of whitened X and Z (n, q), minimised over a scale
α, a rotation or reflection A and a shift b, as a share of the spread of Z, is

    ρ(X, Z) = min Σ_i ||z_i - (α A x_i + b)||² / Σ_i ||z_i - z̄||²  =  1 - (||X_wᵀ Z_w / n||_* / q)²

with the trace norm ||·||_*; it is symmetric and lies in [0, 1]. Whitened, embeddings also count as
equal when they differ by the scale of single directions, which no method is asked to find.

S. Harmeling, "Exploring model selection techniques for nonlinear dimensionality reduction",
report EDI-INF-RR-0960, Edinburgh 2007, section 4.
"""

from typing import Any, Literal

import numpy as np

from twofold.array_types import FloatArray
from twofold.checks.parameters import check_choice
from twofold.metrics.checks import check_same_rows, checked_table


def whiten(X: Any, *, rank: Literal["full", "numerical"] = "full") -> FloatArray:
    """Return the rows with zero mean and unit covariance (n_samples, n_kept).

    Columns are along the principal axes, the one of largest variance first.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_columns)
        Rows without missing entries.
    rank : {"full", "numerical"}
        What to do with directions of no variance, which cannot be scaled to one: "full" refuses,
        "numerical" leaves them out, and the result has as many columns as directions were kept.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.selection import whiten
    >>> X_w = whiten(np.random.default_rng(0).normal(size=(50, 2)) * [1.0, 1000.0])
    >>> bool(np.allclose(X_w.T @ X_w / 50, np.eye(2)))
    True
    """
    return whitened(X, "X", rank)


def procrustes_distance(X: Any, Z: Any) -> float:
    """Return how far two embeddings of the same rows are from each other, 0 to 1.

    Both are whitened first, so neither shift, rotation, reflection nor the scale of any direction
    counts. 0: equal up to these. Unrelated embeddings come close to 1.

    Parameters
    ----------
    X, Z : array-like of shape (n_samples, n_components)
        The embeddings; row i of both is the same point.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.selection import procrustes_distance
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> abs(procrustes_distance(X, 3 * X[:, ::-1] + 1)) < 1e-12
    True
    """
    X, Z = checked_table(X, "X"), checked_table(Z, "Z")
    check_same_rows(X, "X", Z, "Z")
    if X.shape[1] != Z.shape[1]:
        raise ValueError(
            "Only embeddings with the same number of columns can be compared; "
            f"got {X.shape[1]} and {Z.shape[1]}."
        )
    return whitened_distance(whitened(X, "X", "full"), whitened(Z, "Z", "full"))


def whitened_distance(X: FloatArray, Z: FloatArray) -> float:
    """Return the Procrustes distance of whitened embeddings (n, q)."""
    n, q = X.shape
    overlap = np.linalg.svd(X.T @ Z / n, compute_uv=False).sum() / q
    # Rounding can carry the overlap of equal embeddings beyond one.
    return float(max(0.0, 1.0 - overlap**2))


def whitened(table: Any, name: str, rank: str) -> FloatArray:
    """Whiten rows; ``name`` is what messages call them."""
    check_choice("rank", rank, ("full", "numerical"))
    # Rows in single precision carry rounding of that size into directions that have no variance.
    is_single = getattr(table, "dtype", None) in (np.float32, np.float16)
    eps = np.finfo(np.float32 if is_single else np.float64).eps
    X = checked_table(table, name)
    n, width = X.shape
    centred = X - X.mean(axis=0)
    # By singular values of the rows: the covariance would square the range of scales.
    axes, spread, _ = np.linalg.svd(centred, full_matrices=False)
    # Centring leaves rounding of the size of the entries, not of what is left of them; n rows of
    # independent errors of size e have singular values of e (sqrt(n) + sqrt(width)) at most.
    rounding = 10 * eps * (np.sqrt(n) + np.sqrt(width)) * float(np.abs(X).max())
    n_kept = int(np.count_nonzero(spread > rounding))
    if n_kept == 0 or (rank == "full" and n_kept < width):
        few = f" {width} columns need at least {width + 1} rows." if n <= width else ""
        raise ValueError(
            f"`{name}` cannot be whitened: its {width} column(s) over {n} row(s) vary along "
            f"{n_kept} direction(s) only (rank {n_kept}).{few} Leave out columns that are constant "
            "or that depend on others."
        )
    return np.sqrt(n) * axes[:, :n_kept]

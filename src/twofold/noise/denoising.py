"""Rows between what was measured and what the model expects: how much of an entry is noise.

A measured row is ``y = z + e`` with noise e of variance s_d² in column d, independent of the row z
behind it. The other entries of the row let entry d be expected at m_d, with y_d off by the
variance V_d, noise included (:mod:`twofold.noise.noise_model`). Then

    E[z_d | y] = y_d - (s_d² / V_d) (y_d - m_d)

which is the posterior mean if y is Gaussian around its place (Tweedie's formula: the slope of the
log density is ``(m_d - y_d) / V_d``). With neighbourhoods as large as the table this is the Wiener
filter, which shrinks principal components; with small ones it is local PCA. Which size counts how
much, hidden entries have decided: their squared error is the risk of m_d plus s_d², so the least
error is the least risk whatever the noise (Batson & Royer 2019).

How large the noise is. It has the same size σ in every column, in the units in which the model
measures distances, as squared errors assume. No direction u has a variance below σ². With P the
inverse of the covariance around a row, which has not seen the row itself, the variance along
``u_d = P e_d / ‖P e_d‖``, the direction in which column d departs from what the others let expect,
is estimated by

    (u_dᵀ (y - μ))² = a_d² / (P²)_dd,   a = P (y - μ)

The columns and the neighbourhoods that have the lowest ones on one half of the rows give the
estimate on the other half, and the other way round: a minimum that is not too low for having been
chosen. It is an upper bound of σ², close where some directions carry no signal.
"""

from collections.abc import Callable, Iterable

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.noise.conditioning import Gaussians, by_woodbury

# The share of columns whose directions are the quietest, and the rows that are looked at.
QUIET_SHARE, MOST_LOOKED_AT = 0.1, 200
# Rows that are worked on at a time: each has a matrix of its own.
ROWS_AT_A_TIME = 25
# From the numbers of rows (m,) and of neighbours to the Gaussians around these rows.
AroundRows = Callable[[IntArray, int], Gaussians]


def without_noise(
    Y: FloatArray, means: FloatArray, variances: FloatArray, noise: FloatArray
) -> FloatArray:
    """Return rows Y (m, D) without noise of variance (D,); missing entries as expected."""
    shrinkage = np.minimum(noise / variances, 1)
    return np.where(np.isnan(Y), means, Y - shrinkage * (Y - means))


def noise_variance(Y: FloatArray, sizes: Iterable[int], around: AroundRows) -> float:
    """Return the variance of the noise of an entry of rows Y (n, D).

    ``around`` gives the Gaussians around rows in the units of Y, for each of the sizes.
    """
    squares = np.stack([_quiet_squares(Y, around, int(k)) for k in sizes])
    halves = np.arange(len(Y)) % 2 == 0
    found = [_lowest(squares[:, half], squares[:, ~half]) for half in (halves, ~halves)]
    # Of too few rows nothing is known, and nothing is taken away.
    return float(np.mean(found)) if np.isfinite(found).all() else 0.0


def _quiet_squares(Y: FloatArray, around: AroundRows, k: int) -> FloatArray:
    rows = np.arange(len(Y))
    parts = [rows[i : i + ROWS_AT_A_TIME] for i in range(0, len(Y), ROWS_AT_A_TIME)]
    return np.concatenate([squares_along(Y[part], around(part, k)) for part in parts])


def squares_along(Y: FloatArray, g: Gaussians) -> FloatArray:
    """Return the squares (m, D) of rows along the directions u_d; NaN where missing."""
    observed = ~np.isnan(Y)
    R = np.where(observed, Y - g.means, 0)
    solve = _by_columns if g.factors.shape[2] >= Y.shape[1] else _by_factors
    a, lengths = solve(R, observed, g)
    return np.where(observed, a**2 / np.where(observed, lengths, 1), np.nan)


def _by_columns(R: FloatArray, observed: BoolArray, g: Gaussians) -> tuple[FloatArray, FloatArray]:
    """Return a and the diagonal of P² (m, D) from the inverse itself."""
    S = np.matmul(g.factors, g.factors.transpose(0, 2, 1))
    diagonal = np.arange(S.shape[1])
    S[:, diagonal, diagonal] += g.variances
    both = observed[:, :, None] & observed[:, None, :]
    masked = np.where(both, S, 0)
    masked[:, diagonal, diagonal] += ~observed
    P = np.where(both, np.linalg.inv(masked), 0)
    return np.einsum("mij,mj->mi", P, R), (P**2).sum(axis=2)


def _by_factors(R: FloatArray, observed: BoolArray, g: Gaussians) -> tuple[FloatArray, FloatArray]:
    """Return a and the diagonal of P² (m, D) by Woodbury's identity, linear in D."""
    a, known, B, _, inverse = by_woodbury(R, observed, g)
    # Column d of P is known_d (e_d - B h_d) with h_d the row d of H.
    H = np.matmul(g.factors, inverse)
    overlap = (B * H).sum(axis=2)
    squares = (np.matmul(H, np.matmul(B.transpose(0, 2, 1), B)) * H).sum(axis=2)
    return a, known**2 * (1 - 2 * overlap + squares)


def _lowest(chosen_on: FloatArray, squares: FloatArray) -> float:
    """Return the mean of squares (sizes, m, D) where those they are chosen on are the lowest."""
    count = max(1, int(QUIET_SHARE * squares.shape[2]))
    best = (np.inf, np.inf)
    for there, here in zip(chosen_on, squares, strict=True):
        level = _known_means(there)
        columns = np.argsort(level, kind="stable")[:count]
        found = _known_means(here[:, columns].reshape(-1, 1))[0]
        best = min(best, (float(level[columns].mean()), float(found)))
    return best[1]


def _known_means(values: FloatArray) -> FloatArray:
    """Return the means of columns over what is not NaN; infinite of columns without any."""
    known = ~np.isnan(values)
    total = np.where(known, values, 0).sum(axis=0)
    count = known.sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.inf)

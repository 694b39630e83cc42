"""How rows spread about single rows, at several scales, and what dimension that shows.

Of the k nearest rows of a centre, the principal variances ``λ_1 ≥ λ_2 ≥ …`` as shares of their sum
tell tangent directions, which grow with the neighbourhood, from curvature, which grows with its
square, and from noise, which does not grow at all (Little, Maggioni and Rosasco, "Multiscale
geometric methods for data sets", 2017). The shares are averaged over centres. Even isotropic rows
have unequal variances if they are few, so all is judged beside shares ``λ⁰_j`` of k isotropic rows
in as many dimensions:

    gap:     g_j = (λ_j / λ_{j+1}) / (λ⁰_j / λ⁰_{j+1})                           1: none
    excess:  e_q = (Σ_{j≤q} λ_j - Σ_{j≤q} λ⁰_j) / (1 - Σ_{j≤q} λ⁰_j)             0: none, 1: flat

Neighbour distances give a dimension, too. With ``r_j`` the distance to the j-th nearest row,

    d_k = (k - 2) / Σ_{j<k} log(r_k / r_j),

the inverse averaged over centres (Levina and Bickel, 2004, as corrected by MacKay and Ghahramani,
2005). Noise in all directions makes it too large at small scales, borders make it too small.

Neighbourhoods that reach across a gap between clusters are long for that reason only. So it is
also noted which share of them is in one piece with its centre, in the graph of nearest rows.

The rule looks at neighbourhoods from small to large. At every scale the dimension is the first q
with a clear gap, ``g_q ≥ 2``: the q-th local direction carries at least twice as much of the
variance, compared with the next one, as it would of isotropic rows. The smallest scale decides that
has a clear gap and whose next larger scale finds the same q. Below it noise hides the manifold, far
above it folds do. Scales at which neighbourhoods reach into other clusters do not count. Rows
without any such scale, a Gaussian cloud for example, get no answer.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from twofold.array_types import FloatArray, IntArray
from twofold.process_settings import warn

# Centres, scales, and the rows of the smallest neighbourhood.
N_CENTERS, N_SCALES, FEWEST_NEIGHBORS = 150, 8, 12
# The largest neighbourhood is this share of all rows: beyond, there is nothing local about it.
LARGEST_SHARE = 1 / 3
# More columns than this are reduced to their principal axes first.
MOST_AXES = 50
NULL_DRAWS = 40
# A single row beyond a gap is so far off that it makes a direction of its own.
MOSTLY_IN_ONE_PIECE = 0.99
# Next neighbours this many times as far away are beyond a gap. Of rows spread evenly along a line a
# third of the neighbourhoods have such a step by chance, of surfaces and more far fewer.
GAP_FACTOR = 4.0
# Neighbourhoods that more often reach across gaps show how groups lie, not what they are.
MOSTLY_ACROSS_GAPS = 0.5
CLEAR_GAP = 2.0
# Without two scales there is nothing that could agree; of more rows than this, a sample is drawn.
FEWEST_ROWS, MOST_ROWS = 40, 3_000
USUAL_MOST = 10
# What to draw if the data does not say: a map to look at.
MAP_DIMENSION = 2


@dataclass(frozen=True, eq=False)
class LocalScale:
    """Neighbourhoods of one size."""

    n_neighbors: int  # rows of a neighbourhood, its centre among them
    shares: FloatArray  # (d,) of the variance along local principal axes
    isotropic: FloatArray  # (d,) the same of isotropic rows
    variance: float  # of a neighbourhood as a share of the variance of all rows
    neighbor_dimension: float  # by neighbour distances
    in_one_piece: float  # share of the rows of a neighbourhood in one piece with its centre
    # Share of the neighbourhoods in which one neighbour is many times as far away as the one
    # before: those of tight groups that are smaller than neighbourhoods.
    across_gaps: float = 0.0

    def gaps(self, most: int) -> FloatArray:
        """Return g_1 … g_m, m at most ``most``; as many as k rows can tell of."""
        m = min(most, len(self.shares) - 1, self.n_neighbors - 4)
        tiny = np.finfo(float).tiny
        found = self.shares[:m] / np.maximum(self.shares[1 : m + 1], tiny)
        return np.asarray(found * self.isotropic[1 : m + 1] / self.isotropic[:m])

    def excess(self, q: int) -> float:
        """Return e_q, how much more than isotropic rows these lie along q directions."""
        chance = float(self.isotropic[:q].sum())
        return (float(self.shares[:q].sum()) - chance) / max(1 - chance, 1e-12)

    def left_open(self, q: int) -> float:
        """Return what q local axes leave open, as a share of the variance of all rows."""
        k = self.n_neighbors
        # k rows give away one degree of freedom to their mean and one to every axis.
        return float(self.shares[q:].sum()) * self.variance * (k - 1) / max(k - 1 - q, 1)

    def largest_gap(self, most: int) -> float:
        """Return the largest of g_1 … g_m, 0 if there is none."""
        return float(self.gaps(most).max(initial=0.0))

    def first_clear_gap(self, most: int) -> int:
        """Return the first dimension with a clear gap, 0 if there is none."""
        clear = np.flatnonzero(self.gaps(most) >= CLEAR_GAP)
        return int(clear[0]) + 1 if len(clear) else 0

    @property
    def shows_groups(self) -> bool:
        """Whether the rows come in tight groups that are smaller than the neighbourhoods."""
        return self.across_gaps > MOSTLY_ACROSS_GAPS


@dataclass(frozen=True, eq=False)
class LocalDimension:
    """What neighbourhoods say of the dimension."""

    dimension: int | None  # what two scales in a row agree on
    scales: list[LocalScale]  # those that do not reach into other clusters
    found: list[int]  # the first clear gap of each of them, 0 for none
    looked_at: int  # how many directions were compared where nothing is clear
    decided: LocalScale  # the scale that decided, or the one of the largest gap

    def gaps(self) -> list[float]:
        """Return for each scale its first clear gap, or the largest if none is clear."""
        return [
            float(scale.gaps(q)[-1]) if q else scale.largest_gap(self.looked_at)
            for scale, q in zip(self.scales, self.found, strict=True)
        ]

    def why_none(self) -> str:
        """Say why there is no answer."""
        if self.decided.shows_groups:
            return (
                "No confident answer: the rows come in tight groups of fewer than "
                f"{self.decided.n_neighbors}, too small to tell what they are like inside."
            )
        return (
            "No confident answer: at no two scales in a row is there a dimension whose local "
            f"direction stands out (largest gap {max(self.gaps()):.2g}, {CLEAR_GAP:g} would be "
            "clear). The rows fill all directions, or noise hides what they do not fill."
        )


def local_dimension(rows: FloatArray, most: int, random_state: int | None) -> LocalDimension | str:
    """Apply the rule to distinct rows (n, D), up to a dimension; or say why it does not apply."""
    if rows.shape[1] < 2:
        return "No confident answer. One column has one dimension."
    if len(rows) < FEWEST_ROWS:
        return (
            f"No confident answer. Neighbourhoods need at least {FEWEST_ROWS} different rows; "
            f"there are {len(rows)}."
        )
    most = min(most, rows.shape[1] - 1)
    scales = of_one_piece(local_scales(rows, random_state))
    found = [scale.first_clear_gap(most) for scale in scales]
    agreed = [place for place, (here, next_one) in enumerate(pairwise(found)) if here == next_one]
    place = next((place for place in agreed if found[place]), None)
    q = None if place is None else found[place]
    looked_at = max(min(most, (q or MAP_DIMENSION) + 2), *found)
    if place is None:
        place = int(np.argmax([scale.largest_gap(looked_at) for scale in scales]))
    return LocalDimension(q, scales, found, looked_at, scales[place])


def dimension_of(Y: FloatArray, random_state: int | None = 0) -> int:
    """Return the dimension for a model of Y (n, D), in which NaN marks missing entries.

    Where neighbourhoods show none it is 2, a map to look at, and a warning says so.
    """
    Y = np.asarray(Y, dtype=np.float64)
    seen = ~np.isnan(Y)
    complete = Y[seen.all(axis=1)]
    if len(complete) < FEWEST_ROWS:
        counts = np.maximum(seen.sum(axis=0), 1)
        complete = np.where(seen, Y, np.where(seen, Y, 0.0).sum(axis=0) / counts)
    rows = np.unique(complete, axis=0)
    rows = drawn_rows(rows, MOST_ROWS, np.random.default_rng(random_state))
    found = local_dimension(rows, USUAL_MOST, random_state)
    if isinstance(found, LocalDimension) and found.dimension:
        return found.dimension
    taken = int(min(MAP_DIMENSION, Y.shape[1]))
    if Y.shape[1] > 1:
        why = found if isinstance(found, str) else found.why_none()
        warn(
            f"The data does not show how many dimensions it has; the map gets {taken}, so that "
            f"you can look at it. {why} Set `n_components` to choose yourself."
        )
    return taken


def drawn_rows(rows: FloatArray, most: int, rng: np.random.Generator) -> FloatArray:
    """Return the rows, or a sample of them if there are too many."""
    return rows if len(rows) <= most else rows[rng.permutation(len(rows))[:most]]


def neighborhood_sizes(n: int) -> list[int]:
    """Return ascending sizes of neighbourhoods of n rows, in equal factors."""
    largest = max(n * LARGEST_SHARE, FEWEST_NEIGHBORS)
    sizes = np.geomspace(FEWEST_NEIGHBORS, largest, N_SCALES).round().astype(int)
    return [int(size) for size in np.unique(sizes)]


def local_scales(Y: FloatArray, random_state: int | None = 0) -> list[LocalScale]:
    """Measure the neighbourhoods of at least twelve distinct rows (n, D), from small to large."""
    rng = np.random.default_rng(random_state)
    rows = Y - Y.mean(axis=0)
    total = float((rows**2).sum() / len(Y))
    if Y.shape[1] > MOST_AXES:
        U, S, _ = np.linalg.svd(rows, full_matrices=False)
        rows = U[:, :MOST_AXES] * S[:MOST_AXES]
    sizes = neighborhood_sizes(len(rows))
    centers = rng.permutation(len(rows))[:N_CENTERS]
    search = NearestNeighbors(n_neighbors=sizes[-1]).fit(rows)
    distances, members = search.kneighbors(rows[centers])
    graph = search.kneighbors_graph(n_neighbors=FEWEST_NEIGHBORS - 1)
    piece = connected_components(graph, directed=False)[1]
    scales = []
    for k in sizes:
        shares, variance = _mean_spectrum(rows, members[:, :k])
        together = piece[members[:, :k]] == piece[centers][:, None]
        scales.append(
            LocalScale(
                k,
                shares,
                _isotropic_spectrum(k, rows.shape[1], rng),
                variance / total,
                neighbor_dimension(distances[:, 1:k]),
                float(together.mean()),
                share_across_gaps(distances[:, 1:k]),
            )
        )
    return scales


def of_one_piece(scales: list[LocalScale]) -> list[LocalScale]:
    """Return the scales whose neighbourhoods do not reach across gaps, the smallest at least."""
    whole = [scale for scale in scales if scale.in_one_piece >= MOSTLY_IN_ONE_PIECE]
    return whole or scales[:1]


def share_across_gaps(distances: FloatArray) -> float:
    """Return the share of centres whose ascending distances (m, k) have a step like a gap."""
    steps = distances[:, 1:] > GAP_FACTOR * distances[:, :-1]
    return float(steps.any(axis=1).mean())


def neighbor_dimension(distances: FloatArray) -> float:
    """Return the dimension by ascending distances (m, k) to the nearest rows of m centres."""
    k = distances.shape[1]
    tiny = np.finfo(float).tiny
    logs = np.log(np.maximum(distances, tiny))
    ratios = logs[:, -1:] - logs[:, :-1]
    return float(max(k - 2, 1) / max(ratios.sum(axis=1).mean(), tiny))


def _mean_spectrum(rows: FloatArray, members: IntArray) -> tuple[FloatArray, float]:
    """Return mean shares (D,) and mean variance of the neighbourhoods with these members."""
    shares, variances = np.zeros(rows.shape[1]), []
    for group in members:
        spectrum = _spectrum(rows[group])
        variances.append(spectrum.sum() / len(group))
        shares += spectrum / max(spectrum.sum(), np.finfo(float).tiny)
    return shares / len(members), float(np.mean(variances))


def _isotropic_spectrum(k: int, n_axes: int, rng: np.random.Generator) -> FloatArray:
    """Return the mean shares (n_axes,) of k isotropic rows."""
    spectra = np.array([_spectrum(rng.normal(size=(k, n_axes))) for _ in range(NULL_DRAWS)])
    shares = (spectra / spectra.sum(axis=1, keepdims=True)).mean(axis=0)
    return np.asarray(np.maximum(shares, np.finfo(float).tiny))


def _spectrum(rows: FloatArray) -> FloatArray:
    """Return the squared singular values of centred rows (k, D), padded to D."""
    found = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False) ** 2
    return np.pad(found, (0, rows.shape[1] - len(found)))

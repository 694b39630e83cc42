"""Curves over the neighbourhood size K, from the sums of :mod:`twofold.metrics.ranks`.

With m query points among n and ``q_kl`` the number of pairs of data rank k and latent rank l,

    Q_NX(K) = Σ_{k ≤ K, l ≤ K} q_kl / (K m)          share of K neighbours kept
    R_NX(K) = ((n - 1) Q_NX(K) - K) / (n - 1 - K)    0 for a random embedding, 1 for a perfect one
    LCMC(K) = Q_NX(K) - K / (n - 1)
    U_N(K), U_X(K)   the parts of Q_NX(K) with k > l (intrusions) and with k < l (extrusions)
    B_NX(K) = U_X(K) - U_N(K)                        positive where the embedding is intrusive
    AUC     = Σ_K R_NX(K) / K  /  Σ_K 1 / K          K = 1 .. n - 2
    Q_local, Q_global: means of Q_NX over K ≤ K_max and over K ≥ K_max, K_max = argmax LCMC
    T(K)    = 1 - 2 / (m K (2 n - 3 K - 1)) Σ_{l ≤ K < k} (k - K) q_kl
    C(K)    = the same with k and l exchanged

(Lee and Verleysen, "Quality assessment of dimensionality reduction: rank-based criteria", 2009, and
"Scale-independent quality criteria for dimensionality reduction", 2010; Lee, Peluffo-Ordóñez and
Verleysen, "Multi-scale similarities in stochastic neighbour embedding", 2015; Chen and Buja, "Local
multidimensional scaling", 2009, for LCMC; Venna and Kaski, 2001, for T and C.) Kramer's book counts
a point among its own neighbours: E_NX(K) = (1 + (K - 1) Q_NX(K - 1)) / K.

An intrusive embedding puts strangers (k > K ≥ l) among the neighbours of a point. They crowd the
neighbours that stay, which move to higher ranks: extrusions *inside* the K × K block. Hence the
sign of B_NX.

A pair with l < k adds k - K to the sum in T for every K from l to k. As a function of K that is a
step of k - l at K = l and then a slope of -1 until K = k, so two running sums give all K at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.metrics.ranks import CLOSER, CLOSER_BY, FARTHER, FARTHER_BY, SAME


@dataclass(frozen=True)
class RankCurves:
    """All curves of some query points; entry K - 1 of a curve belongs to K neighbours.

    Attributes
    ----------
    n_queries : number of points from which ranks were seen
    sums : (5, n) the sums over pairs by rank
    """

    n_queries: int
    sums: IntArray

    @property
    def n(self) -> int:
        """Number of points."""
        return self.sums.shape[1]

    @property
    def sizes(self) -> IntArray:
        """The neighbourhood sizes 1 .. n - 1."""
        return np.arange(1, self.n)

    def q_nx(self) -> FloatArray:
        """Return the share of neighbours kept."""
        return self._share(self.sums[SAME] + self.sums[CLOSER] + self.sums[FARTHER])

    def e_nx(self) -> FloatArray:
        """Return the share kept where a point is its own first neighbour."""
        before = np.concatenate([[0.0], self.q_nx()[:-1]])
        return (1 + (self.sizes - 1) * before) / self.sizes

    def lcmc(self) -> FloatArray:
        """Return what is kept beyond chance."""
        return self.q_nx() - self.sizes / (self.n - 1)

    def r_nx(self) -> FloatArray:
        """Return what is kept beyond chance, of what can be; K = 1 .. n - 2."""
        K = self.sizes[:-1]
        return ((self.n - 1) * self.q_nx()[:-1] - K) / (self.n - 1 - K)

    def intrusions(self) -> FloatArray:
        """Return the share of neighbours kept that came closer."""
        return self._share(self.sums[CLOSER])

    def extrusions(self) -> FloatArray:
        """Return the share of neighbours kept that went farther away."""
        return self._share(self.sums[FARTHER])

    def b_nx(self) -> FloatArray:
        """Return extrusions less intrusions."""
        return self._share(self.sums[FARTHER] - self.sums[CLOSER])

    def trustworthiness(self) -> FloatArray:
        """Return one less the penalty of strangers among latent neighbours; K < n / 2."""
        starts = self.n_queries - self.sums[SAME] - self.sums[FARTHER]
        return self._ranked(starts, self.sums[CLOSER], self.sums[CLOSER_BY])

    def continuity(self) -> FloatArray:
        """Return one less the penalty of neighbours lost in latent space; K < n / 2."""
        starts = self.n_queries - self.sums[SAME] - self.sums[CLOSER]
        return self._ranked(starts, self.sums[FARTHER], self.sums[FARTHER_BY])

    def auc(self) -> float:
        """Return the mean of R_NX, sizes weighted as on a logarithmic axis."""
        return float(np.average(self.r_nx(), weights=1 / self.sizes[:-1]))

    def k_max(self) -> int:
        """Return the size at which most is kept beyond chance."""
        return int(np.argmax(self.lcmc())) + 1

    def q_local(self) -> float:
        """Return the mean of Q_NX up to k_max."""
        return float(self.q_nx()[: self.k_max()].mean())

    def q_global(self) -> float:
        """Return the mean of Q_NX from k_max on."""
        return float(self.q_nx()[self.k_max() - 1 :].mean())

    def _share(self, pairs: IntArray) -> FloatArray:
        """Return pairs up to each K, as a share of K for each query."""
        return np.cumsum(pairs[1:]) / (self.sizes * self.n_queries)

    def _ranked(self, starts: IntArray, ends: IntArray, steps: IntArray) -> FloatArray:
        """Return 1 - normalised Σ (rank - K) from pairs that start, end and step at each K."""
        # The slope of a pair holds after its start up to and with its end.
        open_pairs = np.cumsum(starts[1:]) - np.cumsum(ends[1:])
        slopes = np.concatenate([[0], -open_pairs[:-1]])
        penalty = np.cumsum(steps[1:] + slopes)
        K = self.sizes[: (self.n - 1) // 2]
        worst = self.n_queries * K * (2 * self.n - 3 * K - 1) / 2
        return 1 - penalty[: len(K)] / worst

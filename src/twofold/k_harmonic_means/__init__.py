"""K-harmonic means: clustering that hardly depends on where it starts.

`estimator` is the front door, `descent` the objective and the way down, `scaled_rows` and
`distances` what sums over distances need; choosing and finding landmarks needs these two, too.
"""

from twofold.k_harmonic_means.estimator import KHarmonicMeans

__all__ = ["KHarmonicMeans"]

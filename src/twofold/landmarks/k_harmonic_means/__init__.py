"""K-harmonic means: clustering that hardly depends on where it starts.

`estimator` is the front door, `descent` the objective and the way down, `distances` what sums over
distances need; choosing and finding landmarks needs these, too.
"""

from twofold.landmarks.k_harmonic_means.estimator import KHarmonicMeans

__all__ = ["KHarmonicMeans"]

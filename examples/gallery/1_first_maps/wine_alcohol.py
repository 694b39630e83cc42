"""Where alcohol rises on the map of wines.

The colour is the value of one column, and arrows point to where it grows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from twofold import UKR, Scaled, plots

wine = load_wine(as_frame=True)
model = Scaled(UKR(random_state=0, max_iter=60)).fit(wine.data)
plots.sensitivity(model, "alcohol")
plt.show()

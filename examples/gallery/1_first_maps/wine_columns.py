"""Which columns make wines differ.

``Scaled`` gives every column equal weight. A long bar is a column that changes a lot over the map.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from twofold import UKR, Scaled, plots

wine = load_wine(as_frame=True)
model = Scaled(UKR(random_state=0, max_iter=60)).fit(wine.data)
plots.important_features(model)
plt.show()

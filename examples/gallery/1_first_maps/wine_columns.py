"""Which columns make wines differ.

``Scaled`` lets every column count alike. A long bar is a column that changes much over the map.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from twofold import UKR, Scaled, plots

wine = load_wine(as_frame=True)
model = Scaled(UKR(random_state=0, max_iter=60)).fit(wine.data)
plots.important_features(model)
plt.show()

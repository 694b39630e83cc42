"""How many neighbours a map keeps.

The curve is the share of the K nearest neighbours that survive, chance taken out, for every K.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE, Isomap

from twofold import UKR, metrics, plots

Y, _ = load_digits(return_X_y=True)
Y = Y[:400]
maps = {
    "PCA": PCA(2).fit_transform(Y),
    "Isomap": Isomap(n_neighbors=10).fit_transform(Y),
    "t-SNE": TSNE(random_state=0).fit_transform(Y),
    "UKR": UKR(random_state=0, max_iter=60).fit_transform(Y),
}
plots.coranking({name: metrics.coranking(Y, X) for name, X in maps.items()})
plt.show()

"""Four pictures of one bent triangle: which to trust.

``compare`` scores pictures without the truth and says why it recommends one.
"""

# %%
from matplotlib import pyplot as plt

from twofold import compare, datasets

bent = datasets.make_s_triangle(200, noise=0.05, random_state=0)
found = compare(bent.Y, ["pca", "isomap", "tsne", "lle"], n_neighbors=10)

# %%
print(found.reason)
found.plot()
plt.show()

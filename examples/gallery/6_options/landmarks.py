"""A small model of a large table.

A few landmarks stand for all rows, so the saved model is small.
"""

import matplotlib.pyplot as plt

from twofold import UKR, datasets

roll = datasets.make_s_structure(3000, noise=0.1, random_state=0)
model = UKR(landmarks=60, random_state=0, max_iter=40).fit(roll.Y)
print(f"{len(model.embedding_)} rows placed, {len(model.data_)} landmarks kept")

figure, axis = plt.subplots(figsize=(6, 4.5), layout="constrained")
axis.hexbin(*model.embedding_.T, gridsize=40, cmap="Greys")
axis.scatter(*model.latent_.T, s=40, color="tab:red", label="landmarks")
axis.set(xlabel="latent 1", ylabel="latent 2")
axis.legend()
plt.show()

"""Unroll a Swiss roll and place new rows.

The roll has three columns and two dimensions. New rows (black) get their place on the flat map.
"""

import matplotlib.pyplot as plt

from twofold import UKR, datasets

roll = datasets.make_swiss_roll(800, noise=0.2, random_state=0)
new = datasets.make_swiss_roll(60, noise=0.2, random_state=1)
model = UKR(degree=1, init="isomap", max_iter=60).fit(roll.Y)
places = model.transform(new.Y)

figure = plt.figure(figsize=(8, 4), layout="constrained")
space = figure.add_subplot(1, 2, 1, projection="3d")
space.scatter(*roll.Y.T, c=roll.latent[:, 0], cmap="turbo", s=8)
space.set_axis_off()
flat = figure.add_subplot(1, 2, 2)
flat.scatter(*model.embedding_.T, c=roll.latent[:, 0], cmap="turbo", s=8)
flat.scatter(*places.T, c="black", marker="x", s=20)
flat.set(xlabel="latent 1", ylabel="latent 2", aspect="equal")
plt.show()

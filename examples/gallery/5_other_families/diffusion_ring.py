"""A diffusion map finds the ring.

The views of a turning pot form a closed curve, and so does their map.
"""

import matplotlib.pyplot as plt

from twofold import DiffusionMap
from twofold.datasets import make_rotating_object

pot = make_rotating_object(120, noise=0.02, random_state=0)
walk = DiffusionMap(n_components=3).fit(pot.Y)

axis = plt.figure(figsize=(5.5, 5)).add_subplot(projection="3d")
axis.plot(*walk.embedding_.T, color="lightgrey")
axis.scatter(*walk.embedding_.T, c=pot.latent[:, 0], cmap="hsv", s=24)
axis.set_title("coloured by the true angle", size=10)
plt.show()

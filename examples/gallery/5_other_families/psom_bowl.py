"""A surface through a cloud of points.

A PSOM is a grid of nodes with polynomials between them. Here it learns a bowl from noisy rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from twofold import PSOM, datasets

bowl = datasets.make_fish_bowl(300, noise=0.3, random_state=0)
model = PSOM(grid=(8, 8), random_state=0).fit(bowl.Y)

u = np.linspace(-1, 1, 30)
places = np.array([(a, b) for a in u for b in u])
surface = model.inverse_transform(places).reshape(30, 30, 3)
axis = plt.figure(figsize=(6, 5)).add_subplot(projection="3d")
axis.plot_wireframe(*np.moveaxis(surface, 2, 0), color="tab:cyan", lw=0.8)
axis.scatter(*bowl.Y.T, s=6, color="black")
axis.set_axis_off()
plt.show()

"""What the axes of kernel PCA see.

Lines are places of equal coordinate. The first axis tells the two moons apart; later ones run along
them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from twofold import KernelPCA
from twofold.features import RBF

Y, moon = make_moons(300, noise=0.06, random_state=0)
model = KernelPCA(4, kernel=RBF(4.0)).fit(Y)
across, up = np.meshgrid(np.linspace(-1.5, 2.5, 70), np.linspace(-1, 1.5, 50))
values = model.transform(np.column_stack([across.ravel(), up.ravel()]))

figure, axes = plt.subplots(2, 2, figsize=(7, 5), layout="constrained")
for q, axis in enumerate(axes.flat):
    axis.contourf(across, up, values[:, q].reshape(across.shape), 12, cmap="PiYG")
    axis.scatter(*Y.T, c=moon, cmap="gray", s=4)
    axis.set(xticks=[], yticks=[], title=f"axis {q + 1}")
plt.show()

"""Sort images into a line.

UNN with one dimension puts rows in an order in which neighbours look alike.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from twofold import UNN

Y, digits = load_digits(return_X_y=True)
twos = Y[digits == 2]
order = np.argsort(UNN(random_state=0).fit(twos).embedding_[:, 0])

figure, axes = plt.subplots(8, 22, figsize=(9, 3.4), layout="constrained")
for axis, row in zip(axes.flat, order, strict=False):
    axis.imshow(twos[row].reshape(8, 8), cmap="gray_r")
    axis.axis("off")
plt.show()

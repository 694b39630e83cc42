"""Guess the lower half of an image.

The rows of NaN below the middle are filled from the upper half.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from twofold import UKR

Y, _ = load_digits(return_X_y=True)
model = UKR(random_state=0, max_iter=60).fit(Y[:600])
seen = Y[602:612].copy()
seen[:, 32:] = np.nan
filled = model.complete(seen)

figure, axes = plt.subplots(3, 10, figsize=(8, 2.8), layout="constrained")
for line, images in zip(axes, (Y[602:612], seen, filled), strict=True):
    for axis, image in zip(line, images, strict=True):
        axis.imshow(image.reshape(8, 8), cmap="magma", vmin=0, vmax=16)
        axis.axis("off")
figure.suptitle("true, seen, filled", size=10)
plt.show()

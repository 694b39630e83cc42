"""Views of a pot that were never taken.

Twenty-four photographs of a turning pot are placed on a line. Between two of them the model
generates views that nobody has taken.
"""

import matplotlib.pyplot as plt
import numpy as np

from twofold import UKR
from twofold.datasets import make_rotating_object

pot = make_rotating_object(24, random_state=0)
model = UKR(1, degree=1, init=pot.latent, random_state=0).fit(pot.Y)
ends = model.embedding_[[2, 5]]
places = np.linspace(*ends, 7)
views = model.inverse_transform(places)

figure, axes = plt.subplots(2, 7, figsize=(8, 3), layout="constrained")
for axis, image in zip(axes[1], views, strict=True):
    axis.imshow(image.reshape(26, 34), cmap="bone", vmin=0, vmax=1)
for axis, image in zip(axes[0, ::2], pot.Y[2:6], strict=True):
    axis.imshow(image.reshape(26, 34), cmap="bone", vmin=0, vmax=1)
for axis in axes.flat:
    axis.axis("off")
figure.suptitle("four photographs, and seven generated views", size=10)
plt.show()

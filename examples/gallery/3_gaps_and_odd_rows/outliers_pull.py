"""A curve that outliers cannot pull away.

A fifth of the rows is wrong. With the squared loss the curve follows them. Huber's loss with
``trim`` leaves them out.
"""

import matplotlib.pyplot as plt
import numpy as np

from twofold import UKR, datasets
from twofold.losses import Huber

bow = datasets.make_half_circle(200, noise=0.2, random_state=2)
Y = bow.Y.copy()
Y[::5] += np.random.default_rng(0).normal(0, 6, size=(40, 2))

figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharex=True, sharey=True)
for axis, loss, name in zip(axes, ("squared", Huber(trim=4)), ("squared", "Huber"), strict=True):
    model = UKR(1, loss=loss, random_state=0).fit(Y)
    found = model.reconstruct(bow.Y)
    axis.scatter(*Y.T, color="lightgrey", s=14)
    axis.scatter(*found.T, color="tab:red", s=8)
    axis.set_title(f"{name}: {bow.distance(found).mean():.2f} off", size=10)
    axis.set_aspect("equal")
plt.show()

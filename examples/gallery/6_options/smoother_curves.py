"""Four ways to draw a noisy half circle.

With few noisy rows the plain model follows the noise. Three options make the curve smoother.
"""

import matplotlib.pyplot as plt
import numpy as np

from twofold import UKR, datasets
from twofold.losses import EpsilonInsensitive
from twofold.regularization import LeaveKOut

Y = datasets.make_half_circle(150, noise=0.5, random_state=0).Y
tube = EpsilonInsensitive(1.0)
ways = {
    "as it is": UKR(1, random_state=0),
    "degree=2": UKR(1, degree=2, random_state=0),
    "LeaveKOut(6)": UKR(1, regularization=LeaveKOut(6, border=1e-2), random_state=0),
    "smoothest within 1": UKR(1, regularization="smoothest", loss=tube, random_state=0),
}
figure, axes = plt.subplots(2, 2, figsize=(7, 4), layout="constrained")
for axis, (name, model) in zip(axes.flat, ways.items(), strict=True):
    X = model.fit_transform(Y)
    axis.scatter(*Y.T, s=4, color="silver")
    axis.plot(*model.inverse_transform(np.linspace(X.min(), X.max(), 400)[:, None]).T, color="k")
    axis.set(title=name, xticks=[], yticks=[], aspect="equal")
plt.show()

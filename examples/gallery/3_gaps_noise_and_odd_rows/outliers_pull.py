"""A curve that outliers cannot pull away.

A fifth of the rows is wrong. The squared loss follows them; Huber's loss with ``trim`` leaves them
out.
"""

import matplotlib.pyplot as plt
import numpy as np

from twofold import UKR, datasets
from twofold.losses import Huber

Y = datasets.make_half_circle(200, noise=0.2, random_state=2).Y
Y[::5] += np.random.default_rng(0).normal(0, 6, size=(40, 2))

figure, axis = plt.subplots(figsize=(6, 4.5), layout="constrained")
axis.scatter(*Y.T, color="lightgrey", s=14)
for loss, color in (("squared", "tab:red"), (Huber(trim=4), "tab:blue")):
    model = UKR(1, loss=loss, degree=2, random_state=0).fit(Y)
    line = np.linspace(*np.quantile(model.embedding_, [0.02, 0.98]), 400)[:, None]
    axis.plot(*model.inverse_transform(line).T, color=color, lw=2, label=str(loss))
axis.legend()
axis.set_aspect("equal")
plt.show()

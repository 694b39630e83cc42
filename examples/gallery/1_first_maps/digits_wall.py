"""A wall of generated digits.

Every tile is what the model says lies at that place of the map. No tile is a training image.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from twofold import UKR, plots

Y, _ = load_digits(return_X_y=True)
model = UKR(random_state=0, max_iter=60).fit(Y[:500])
model.annotate(image_shape=(8, 8))
plots.grid(model, shape=18)
plt.show()

"""Where a map stretches.

Bright places stand for more of data space than dark ones: neighbours there are far apart.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from twofold import UKR, plots

Y, _ = load_digits(return_X_y=True)
model = UKR(random_state=0, max_iter=60).fit(Y[:300])
plots.magnification(model)
plt.show()

"""Rows that a map explains badly.

The map is fitted to zeros, ones and twos. New digits of all kinds are sorted by their distance from
it: the worst are named.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from twofold import UKR, plots

Y, digits = load_digits(return_X_y=True)
few = digits[:1000] < 3
model = UKR(random_state=0, max_iter=60).fit(Y[:1000][few])
plots.errors(model, Y[1000:1100])
plt.show()

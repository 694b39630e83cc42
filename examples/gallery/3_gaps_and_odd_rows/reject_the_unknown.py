"""A classifier that can say "none of these".

One manifold for the zeros, one for the ones. All other digits fit neither and are rejected.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from twofold import UKR, ManifoldClassifier

Y, digits = load_digits(return_X_y=True)
train, test, y, y_test = train_test_split(Y, digits, test_size=0.3, random_state=0)
model = ManifoldClassifier(UKR(init="isomap", max_iter=20), reject=0.05)
model.fit(train[y < 2], y[y < 2])

shares = [model.is_rejected(test[y_test == digit]).mean() for digit in range(10)]
plt.figure(figsize=(6, 4))
plt.bar(np.arange(10), shares, color=["tab:green"] * 2 + ["tab:grey"] * 8)
plt.xticks(range(10))
plt.xlabel("true digit (green: known to the model)")
plt.ylabel("share rejected")
plt.show()

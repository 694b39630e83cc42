"""Several manifolds side by side.

``SubmanifoldUNN`` finds clusters first and gives each its own small map.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from twofold import SubmanifoldUNN

Y, digits = load_digits(return_X_y=True)
six = digits < 6
model = SubmanifoldUNN(random_state=0).fit(Y[six])
figure, axis = plt.subplots(figsize=(8, 3), layout="constrained")
axis.scatter(*model.embedding_.T, c=digits[six], cmap="Set1", s=6)
axis.set(xticks=[], yticks=[], title="one map for each cluster, coloured by the true digit")
plt.show()

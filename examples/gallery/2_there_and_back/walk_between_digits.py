"""Walk from a zero to a nine.

Points on the straight way between two rows are turned back into images. Below them is the density:
where it is hatched, the way leaves the data.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from twofold import UKR, plots

Y, digits = load_digits(return_X_y=True)
model = UKR(random_state=0, max_iter=60).fit(Y[:500])

# %%
model.annotate(image_shape=(8, 8))
plots.path(model, 0, 9, steps=10)
plt.show()

"""A map of handwritten digits.

Five hundred images of 64 pixels become points in the plane. Nothing has to be chosen. Outside the
line, in the grey, no data supports what the model says.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from twofold import UKR, plots

Y, digits = load_digits(return_X_y=True)
model = UKR(random_state=0).fit(Y[:500])

# %%
model.annotate(labels={"digit": digits[:500]}, image_shape=(8, 8))
plots.latent_map(model)
plt.show()

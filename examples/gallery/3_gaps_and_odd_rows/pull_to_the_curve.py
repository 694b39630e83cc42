"""Denoise by going there and back.

``reconstruct`` takes each noisy row to the nearest point of the manifold.
"""

import matplotlib.pyplot as plt

from twofold import UKR, datasets

train = datasets.make_spiral(300, noise=0.08, random_state=0)
noisy = datasets.make_spiral(150, noise=0.15, random_state=1)
model = UKR(1, init="isomap", max_iter=100).fit(train.Y)
clean = model.reconstruct(noisy.Y)
print(f"distance from the true spiral: {noisy.distance(noisy.Y).mean():.3f} before, ", end="")
print(f"{noisy.distance(clean).mean():.3f} after")

plt.figure(figsize=(5, 5))
plt.quiver(*noisy.Y.T, *(clean - noisy.Y).T, angles="xy", scale_units="xy", scale=1, width=0.004)
plt.scatter(*clean.T, s=12, color="tab:orange", zorder=2)
plt.axis("equal")
plt.axis("off")
plt.show()

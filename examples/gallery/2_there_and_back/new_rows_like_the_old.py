"""Draw new rows.

``sample`` draws places inside the data. With ``noise=True`` the rows scatter like the real ones;
without, they are means on the manifold.
"""

import matplotlib.pyplot as plt

from twofold import UKR, datasets

bow = datasets.make_half_circle(200, noise=0.8, random_state=0)
model = UKR(1, random_state=0).fit(bow.Y)
drawn = {
    "the rows": bow.Y,
    "sample(noise=True)": model.sample(200, random_state=0, noise=True),
    "sample()": model.sample(200, random_state=0),
}
figure, axes = plt.subplots(3, 1, figsize=(5, 6), layout="constrained", sharex=True, sharey=True)
for axis, (name, rows) in zip(axes, drawn.items(), strict=True):
    axis.scatter(*rows.T, s=10, color="tab:purple")
    axis.set_title(name, size=10)
    axis.set_aspect("equal")
plt.show()

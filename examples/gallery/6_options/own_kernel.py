"""A kernel of your own.

A kernel is a function of the squared distance and its derivative. Here Student's kernel, with heavy
tails, beside those of the library.
"""

import matplotlib.pyplot as plt
import numpy as np

from twofold import UKR, datasets
from twofold.kernels import GAUSSIAN, QUARTIC, Kernel

student = Kernel("student", lambda s: (1 + s) ** -3, lambda s: -3 * (1 + s) ** -4)
Y = datasets.make_s_triangle(200, random_state=0).Y
model = UKR(kernel=student, init="isomap", max_iter=40).fit(Y)
print(f"squared error with Student's kernel: {-model.score(Y):.4f}")

distance = np.linspace(0, 4, 200)
plt.figure(figsize=(6, 4))
for kernel in (GAUSSIAN, QUARTIC, student):
    plt.plot(distance, kernel.value(distance**2), lw=3, label=kernel.name)
plt.xlabel("distance on the map")
plt.ylabel("weight")
plt.legend()
plt.show()

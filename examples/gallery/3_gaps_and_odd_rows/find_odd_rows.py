"""Find the odd rows.

The detector learns from a table that holds odd rows itself. In 30 of 400 rows one half was swapped
with that of another row: each entry looks usual, only together they do not.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from twofold import ManifoldOutlierDetector, datasets

Y = datasets.make_random_manifold(400, 2, 12, noise=0.05, random_state=0).Y
Y[:30, :6] = Y[30:60, :6]
is_odd = np.arange(400) < 30

# %%
detector = ManifoldOutlierDetector(contamination=30 / 400).fit(Y)
found = detector.predict(Y) < 0
print(
    f"{(found & is_odd).sum()} of {is_odd.sum()} odd rows found, {(found & ~is_odd).sum()} others"
)

# %%
scores = -detector.score_samples(Y)
order = np.argsort(scores)
plt.figure(figsize=(6, 4))
plt.bar(np.arange(400), scores[order], 1.0, color=np.where(is_odd[order], "tab:red", "tab:blue"))
plt.xlabel("rows, sorted (red: truly odd)")
plt.ylabel("how odd")
plt.show()

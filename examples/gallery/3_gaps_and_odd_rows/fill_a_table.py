"""Fill gaps and say how sure.

A tenth of a table of wines is hidden. Each filled entry has a 90 % interval; bars that miss the
diagonal are wrong.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from twofold import ManifoldImputer

wine = StandardScaler().fit_transform(load_wine().data)
gaps = np.random.default_rng(0).random(wine.shape) < 0.1
partial = np.where(gaps, np.nan, wine)

# %%
imputer = ManifoldImputer(trees=False, random_state=0).fit(partial)
filled = imputer.transform(partial)
low, high = imputer.intervals(partial, level=0.9)
held = ((low <= wine) & (wine <= high))[gaps].mean()
print(f"{held:.0%} of {gaps.sum()} hidden entries lie in their interval")

# %%
off = np.array([filled - low, high - filled])[:, gaps]
plt.figure(figsize=(5, 5))
plt.errorbar(wine[gaps], filled[gaps], yerr=off, fmt="o", ms=3, lw=0.6, color="tab:green")
plt.axline((0, 0), slope=1, color="black", lw=1)
plt.xlabel("true value (standard deviations)")
plt.ylabel("filled")
plt.show()

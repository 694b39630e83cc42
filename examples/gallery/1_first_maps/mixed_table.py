"""A table with words and dates.

``Mixed`` takes the table as it is. A place on the map gives back a row of the same table, words and
dates included.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from twofold import UKR, Mixed, plots

rng = np.random.default_rng(0)
age = rng.uniform(0, 10, 240)
cars = pd.DataFrame(
    {
        "price": 30_000 * np.exp(-age / 5 + 0.1 * rng.normal(size=240)),
        "condition": np.select([age < 3, age < 7], ["like new", "used"], "worn"),
        "first seen": pd.Timestamp("2025-01-01") - pd.to_timedelta((365 * age).round(), unit="D"),
        "owners": rng.poisson(1 + age / 3),
    }
)
model = Mixed(UKR(random_state=0, max_iter=40)).fit(cars)
plots.latent_map(model.annotate(labels={"condition": cars["condition"]}))
print(model.inverse_transform(model.embedding_[:3]))
plt.show()

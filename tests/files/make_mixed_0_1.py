"""How the files in `mixed/` were made: a table with categories, an order, dates and counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from twofold import UKR, Mixed

HERE = Path(__file__).parent / "mixed"


def items() -> pd.DataFrame:
    """Return 40 items on a sheet with coordinates t and u."""
    rng = np.random.default_rng(0)
    t, u = rng.random((2, 40))
    sizes = ["small", "large"]
    return pd.DataFrame(
        {
            "length": np.sin(3 * t),
            "price": np.exp(6 * t),
            "visits": rng.poisson(6 * u**4),
            "colour": np.array(["blue", "green", "red"])[(3 * t).astype(int)],
            "size": pd.Categorical(np.array(sizes)[(2 * u).astype(int)], sizes, ordered=True),
            "when": pd.Timestamp("2015-01-01", tz="Europe/Berlin")
            + pd.to_timedelta(np.round(t * 1500), unit="D"),
        }
    )


def main() -> None:
    """Write the file and what it must answer for ever."""
    table = items()
    model = Mixed(UKR(init="pca", max_iter=5, random_state=0)).fit(table)
    model.save(HERE / "items_0_1.twofold")
    model.inverse_transform(model.embedding_[:5]).to_json(
        HERE / "items_0_1.json", orient="table", index=False, indent=1
    )


if __name__ == "__main__":
    main()
